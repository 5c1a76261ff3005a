//! API keys and their rates.
//!
//! ```text
//! [{"key": "…", "name": "the library", "requests_per_minute": 60, "characters_per_minute": 100000},
//!  {"key": "…", "name": "the owner", "admin": true}]
//! ```
//!
//! A rate is a token bucket that holds one minute's worth and fills evenly: short bursts pass, the mean stays below it.
//! Somebody who guesses keys gets 429 after a few, and no time that is taken tells how much of a guess was right. Known keys
//! pass, also from an address that guesses: many clients may have one address.

mod bucket;
mod lockout;

use std::net::IpAddr;
use std::path::Path;
use std::time::Instant;

use serde::Deserialize;

use self::bucket::Bucket;
use self::lockout::Lockout;
use crate::error::{ApiError, ServerError};

/// The keys that a server accepts.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// `None`: no key is needed.
    all: Option<Vec<(String, Key)>>,
    lockout: Lockout,
}

/// The key of a request, and where the request came from.
pub(crate) struct PresentedKey {
    pub(crate) key: Option<String>,
    pub(crate) address: IpAddr,
}

/// A key that was found, or that none is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcceptedKey(Option<usize>);

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
        let mut all: Vec<(String, Key)> = Vec::new();
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
            if all.iter().any(|(known, _)| *known == entry.key) {
                return Err(format!("key {place} is there twice"));
            }
            all.push((entry.key, key));
        }
        Ok(Keys { all: Some(all), lockout: Lockout::default() })
    }

    /// Whether a key is needed.
    pub(crate) fn are_required(&self) -> bool {
        self.all.is_some()
    }

    /// Finds the key of a request: 403 if it is missing or unknown, 429 for an unknown one of an address that sent too many.
    pub(crate) fn accept(&self, presented: &PresentedKey) -> Result<AcceptedKey, ApiError> {
        let Some(all) = &self.all else { return Ok(AcceptedKey(None)) };
        let Some(given) = presented.key.as_deref().filter(|key| !key.is_empty()) else {
            return Err(ApiError::forbidden(
                "this server needs an API key: send it as `api_key`, or as Authorization: Bearer KEY",
            ));
        };
        let now = Instant::now();
        // All are compared, so that the time does not tell which one fits.
        let mut found = None;
        for (index, (known, _)) in all.iter().enumerate() {
            if is_same(given.as_bytes(), known.as_bytes()) {
                found = Some(index);
            }
        }
        if found.is_none() {
            self.lockout.check(presented.address, now).map_err(ApiError::locked_out)?;
            self.lockout.count(presented.address, now);
            return Err(ApiError::forbidden("this API key is not known here"));
        }
        Ok(AcceptedKey(found))
    }

    /// Checks the rates of a key for a request with so many characters.
    pub(crate) fn admit(&self, key: AcceptedKey, characters: usize) -> Result<(), ApiError> {
        let Some(key) = self.get(key) else { return Ok(()) };
        let now = Instant::now();
        let wait = |bucket: &Option<Bucket>, amount: f64| match bucket {
            Some(bucket) => bucket.take(amount, now),
            None => Ok(()),
        };
        wait(&key.requests, 1.0).map_err(ApiError::rate_limited)?;
        wait(&key.characters, characters as f64).map_err(ApiError::rate_limited)
    }

    /// Checks that a key is an admin key.
    pub(crate) fn admit_admin(&self, key: AcceptedKey) -> Result<(), ApiError> {
        match self.get(key) {
            None => Err(ApiError::forbidden(
                "this needs an admin key: start the server with --keys and an admin key, or send it SIGHUP",
            )),
            Some(key) if key.rights == Rights::Administer => Ok(()),
            Some(_) => Err(ApiError::forbidden("this key is no admin key")),
        }
    }

    fn get(&self, AcceptedKey(index): AcceptedKey) -> Option<&Key> {
        self.all.as_ref()?.get(index?).map(|(_, key)| key)
    }
}

/// Whether two keys are the same, in a time that depends on the length of the first only, which its sender knows.
fn is_same(given: &[u8], known: &[u8]) -> bool {
    let mut difference = u8::from(given.len() != known.len());
    for (index, byte) in given.iter().enumerate() {
        let other = known.get(index % known.len().max(1)).copied().unwrap_or_default();
        // Unseen by the optimizer, which would otherwise be free to stop at the first difference.
        difference = std::hint::black_box(difference | (byte ^ other));
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn accept(keys: &Keys, key: Option<&str>, address: u8) -> Result<AcceptedKey, u16> {
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, address));
        let presented = PresentedKey { key: key.map(str::to_owned), address };
        keys.accept(&presented).map_err(|error| error.status.as_u16())
    }

    #[test]
    fn keys_open_doors_and_odd_files_are_named() {
        let keys = Keys::parse(r#"[{"key": "a", "requests_per_minute": 1}, {"key": "b", "admin": true}]"#);
        let keys = keys.expect("good keys");
        let status = |admitted: Result<(), ApiError>| admitted.map_err(|error| error.status.as_u16());
        for (key, refused) in
            [(None, 403), (Some(""), 403), (Some("c"), 403), (Some("ab"), 403), (Some("A"), 403)]
        {
            assert_eq!(accept(&keys, key, 1), Err(refused), "{key:?}");
        }
        let (a, b) =
            (accept(&keys, Some("a"), 1).expect("a key"), accept(&keys, Some("b"), 1).expect("a key"));
        assert_eq!((status(keys.admit(a, 5)), status(keys.admit(a, 5))), (Ok(()), Err(429)));
        assert_eq!((status(keys.admit_admin(a)), status(keys.admit_admin(b))), (Err(403), Ok(())));
        let open = Keys::default();
        let nobody = accept(&open, None, 1).expect("no key is needed");
        assert_eq!((status(open.admit(nobody, 5)), status(open.admit_admin(nobody))), (Ok(()), Err(403)));
        for odd in [
            "{",
            r#"[{"key": ""}]"#,
            r#"[{"key": "a"}, {"key": "a"}]"#,
            r#"[{"key": "a", "rate": 1}]"#,
            r#"[{"key": "a", "requests_per_minute": 0}]"#,
        ] {
            assert!(Keys::parse(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn whoever_guesses_is_locked_out_and_known_keys_are_not() {
        let keys = Keys::parse(r#"[{"key": "right"}]"#).expect("good keys");
        for _ in 0..lockout::MOST {
            assert_eq!(accept(&keys, Some("wrong"), 1), Err(403));
        }
        assert_eq!((accept(&keys, Some("wrong"), 1), accept(&keys, Some("wrong"), 2)), (Err(429), Err(403)));
        assert!([1, 2].map(|address| accept(&keys, Some("right"), address).is_ok()) == [true; 2]);
        assert_eq!(accept(&keys, None, 1), Err(403), "no key is no guess");
    }

    #[test]
    fn keys_are_the_same_only_if_every_byte_is() {
        for (given, known, expected) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "b", false),
            ("a", "aa", false),
            ("aa", "a", false),
            ("", "a", false),
            ("a", "", false),
            ("secret", "secreT", false),
        ] {
            assert_eq!(is_same(given.as_bytes(), known.as_bytes()), expected, "{given:?} {known:?}");
        }
    }
}
