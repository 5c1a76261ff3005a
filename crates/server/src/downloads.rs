//! Translated files, kept for a time and within a memory limit.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use parking_lot::Mutex;

/// Retention time of a file.
const RETENTION: Duration = Duration::from_secs(600);
/// The maximum number of files.
const MAX_FILES: usize = 1000;

/// The files, oldest first.
#[derive(Debug)]
pub(crate) struct Downloads {
    files: Mutex<VecDeque<(String, Download, Instant)>>,
    most_bytes: usize,
}

/// A translated file.
#[derive(Clone, Debug)]
pub(crate) struct Download {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) bytes: Bytes,
}

impl Downloads {
    pub(crate) fn new(most_bytes: usize) -> Downloads {
        Downloads { files: Mutex::default(), most_bytes }
    }

    /// Keeps a file and returns an unguessable name for it.
    pub(crate) fn keep(&self, file: Download, now: Instant) -> String {
        // Two hashes under keys from the system's random numbers: SipHash is unpredictable without its key.
        let random = || RandomState::new().hash_one(());
        let id = format!("{:016x}{:016x}", random(), random());
        let mut files = self.files.lock();
        files.push_back((id.clone(), file, now));
        let mut bytes: usize = files.iter().map(|(_, file, _)| file.bytes.len()).sum();
        while bytes > self.most_bytes && files.len() > 1
            || files.len() > MAX_FILES
            || files.front().is_some_and(|(_, _, since)| now.duration_since(*since) > RETENTION)
        {
            bytes -= files.pop_front().map_or(0, |(_, file, _)| file.bytes.len());
        }
        id
    }

    pub(crate) fn find(&self, id: &str, now: Instant) -> Option<Download> {
        let files = self.files.lock();
        let is_it = |(known, _, since): &&(String, Download, Instant)| {
            known == id && now.duration_since(*since) <= RETENTION
        };
        files.iter().find(is_it).map(|(_, file, _)| file.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_expire_and_memory_is_bounded() {
        let (downloads, now) = (Downloads::new(100), Instant::now());
        let file = |size: usize| Download {
            name: "a.txt".into(),
            kind: "text/plain",
            bytes: Bytes::from(vec![b'x'; size]),
        };
        let ids: Vec<String> = (0..5).map(|_| downloads.keep(file(40), now)).collect();
        let found = |id: &String, now| downloads.find(id, now).is_some();
        assert_eq!(
            ids.iter().map(|id| found(id, now)).collect::<Vec<_>>(),
            [false, false, false, true, true]
        );
        assert!(!found(&ids[4], now + RETENTION + Duration::from_secs(1)));
        // The newest file is kept, whatever its size.
        let large = downloads.keep(file(1000), now);
        assert!(found(&large, now) && !found(&ids[4], now));
        assert!(downloads.find("", now).is_none() && ids[0] != ids[1] && ids[0].len() == 32);
        downloads.keep(file(1), now + 2 * RETENTION);
        let count = || downloads.files.lock().len();
        assert_eq!(count(), 1);
        for _ in 0..2 * MAX_FILES {
            downloads.keep(file(0), now + 2 * RETENTION);
        }
        assert_eq!(count(), MAX_FILES);
    }
}
