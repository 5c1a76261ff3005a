//! API keys and their rates.
//!
//! ```text
//! [{"key": "…", "name": "the library", "requests_per_minute": 60, "characters_per_minute": 100000},
//!  {"key": "…", "name": "the owner", "admin": true}]
//! ```
//!
//! A rate is a token bucket that holds one minute's worth and fills evenly: short bursts pass, the mean stays below it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::Deserialize;

use crate::error::{ApiError, ServerError};

/// The keys that a server accepts.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// `None`: no key is needed.
    by_key: Option<HashMap<String, Key>>,
}

#[derive(Debug)]
struct Key {
    rights: Rights,
    requests: Option<Bucket>,
    characters: Option<Bucket>,
}

/// What a key permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    Use,
    Administer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: String,
    /// For the reader of the file.
    #[serde(default, rename = "name")]
    _name: String,
    requests_per_minute: Option<f64>,
    characters_per_minute: Option<f64>,
    #[serde(default)]
    admin: bool,
}

impl Keys {
    /// Reads a file of keys.
    pub(crate) fn read(path: &Path) -> Result<Keys, ServerError> {
        let odd = |cause: String| ServerError::Keys { path: path.to_owned(), cause };
        let text = std::fs::read_to_string(path).map_err(|error| odd(error.to_string()))?;
        Keys::parse(&text).map_err(odd)
    }

    fn parse(text: &str) -> Result<Keys, String> {
        let entries: Vec<Entry> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut by_key = HashMap::new();
        for (number, entry) in entries.into_iter().enumerate() {
            let place = number + 1;
            if entry.key.is_empty() {
                return Err(format!("key {place} is empty"));
            }
            let rates = [entry.requests_per_minute, entry.characters_per_minute];
            if rates.iter().flatten().any(|rate| !rate.is_finite() || *rate <= 0.0) {
                return Err(format!("a rate of key {place} is not above 0; leave it out for no limit"));
            }
            let key = Key {
                rights: if entry.admin { Rights::Administer } else { Rights::Use },
                requests: entry.requests_per_minute.map(Bucket::new),
                characters: entry.characters_per_minute.map(Bucket::new),
            };
            if by_key.insert(entry.key, key).is_some() {
                return Err(format!("key {place} is there twice"));
            }
        }
        Ok(Keys { by_key: Some(by_key) })
    }

    /// Whether a key is needed.
    pub(crate) fn are_required(&self) -> bool {
        self.by_key.is_some()
    }

    /// Checks a key and its rates for a request with so many characters.
    pub(crate) fn admit(&self, key: Option<&str>, characters: usize) -> Result<(), ApiError> {
        let Some(key) = self.find(key)? else { return Ok(()) };
        let now = Instant::now();
        let wait = |bucket: &Option<Bucket>, amount: f64| match bucket {
            Some(bucket) => bucket.take(amount, now),
            None => Ok(()),
        };
        wait(&key.requests, 1.0).map_err(ApiError::rate_limited)?;
        wait(&key.characters, characters as f64).map_err(ApiError::rate_limited)
    }

    /// Checks that a key is an admin key.
    pub(crate) fn admit_admin(&self, key: Option<&str>) -> Result<(), ApiError> {
        match self.find(key)? {
            None => Err(ApiError::forbidden(
                "this needs an admin key: start the server with --keys and an admin key, or send it SIGHUP",
            )),
            Some(key) if key.rights == Rights::Administer => Ok(()),
            Some(_) => Err(ApiError::forbidden("this key is no admin key")),
        }
    }

    fn find(&self, key: Option<&str>) -> Result<Option<&Key>, ApiError> {
        let Some(by_key) = &self.by_key else { return Ok(None) };
        let key = key.ok_or_else(|| {
            ApiError::forbidden(
                "this server needs an API key: send it as `api_key` or as Authorization: Bearer KEY",
            )
        })?;
        by_key.get(key).map(Some).ok_or_else(|| ApiError::forbidden("this API key is not known here"))
    }
}

/// A token bucket: fills evenly, holds one minute's worth.
#[derive(Debug)]
struct Bucket {
    per_minute: f64,
    level: Mutex<(f64, Instant)>,
}

impl Bucket {
    fn new(per_minute: f64) -> Bucket {
        Bucket { per_minute, level: Mutex::new((per_minute.max(1.0), Instant::now())) }
    }

    /// Takes an amount, or returns the seconds after which it will be there. More than a whole bucket may be taken when it is
    /// full; later requests wait until that is paid back.
    fn take(&self, amount: f64, now: Instant) -> Result<(), u64> {
        let full = self.per_minute.max(1.0);
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(level.1).as_secs_f64();
        *level = ((level.0 + since * self.per_minute / 60.0).min(full), now);
        let missing = amount.min(full) - level.0;
        if missing > 0.0 {
            return Err((missing * 60.0 / self.per_minute).ceil() as u64);
        }
        level.0 -= amount;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_lets_a_burst_through_and_then_the_mean() {
        let bucket = Bucket::new(60.0);
        let start = Instant::now();
        assert!((0..60).all(|_| bucket.take(1.0, start).is_ok()));
        assert_eq!(bucket.take(1.0, start), Err(1));
        assert_eq!(bucket.take(1.0, start + Duration::from_secs(1)), Ok(()));
        assert_eq!(bucket.take(3.0, start + Duration::from_secs(2)), Err(2));
        // A text larger than the bucket passes when it is full, and is paid back.
        assert_eq!(bucket.take(120.0, start + Duration::from_secs(600)), Ok(()));
        assert_eq!(bucket.take(1.0, start + Duration::from_secs(600)), Err(61));
    }

    #[test]
    fn keys_open_doors_and_odd_files_are_named() {
        let keys = Keys::parse(r#"[{"key": "a", "requests_per_minute": 1}, {"key": "b", "admin": true}]"#);
        let keys = keys.expect("good keys");
        assert_eq!(keys.admit(None, 5).map_err(|error| error.status.as_u16()), Err(403));
        assert_eq!(keys.admit(Some("c"), 5).map_err(|error| error.status.as_u16()), Err(403));
        assert_eq!(keys.admit(Some("a"), 5), Ok(()));
        assert_eq!(keys.admit(Some("a"), 5).map_err(|error| error.status.as_u16()), Err(429));
        assert_eq!(keys.admit_admin(Some("a")).map_err(|error| error.status.as_u16()), Err(403));
        assert_eq!(keys.admit_admin(Some("b")), Ok(()));
        assert_eq!(Keys::default().admit(None, 5), Ok(()));
        assert!(Keys::default().admit_admin(None).is_err());
        for odd in
            ["{", r#"[{"key": ""}]"#, r#"[{"key": "a"}, {"key": "a"}]"#, r#"[{"key": "a", "rate": 1}]"#]
        {
            assert!(Keys::parse(odd).is_err(), "{odd}");
        }
        assert!(Keys::parse(r#"[{"key": "a", "requests_per_minute": 0}]"#).is_err());
    }
}
