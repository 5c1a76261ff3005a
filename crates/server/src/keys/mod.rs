//! API keys and their rates.
//!
//! ```text
//! [{"key": "…", "name": "the library", "requests_per_minute": 60, "characters_per_minute": 100000},
//!  {"key": "…", "name": "the owner", "admin": true}]
//! ```
//!
//! A rate is a token bucket that holds the amount of one minute and refills evenly: short bursts pass, the
//! mean is limited. An address that guesses keys gets 429 after a few attempts, and keys are compared in
//! constant time. Known keys pass even from such an address, because many clients may share one address.

mod bucket;
mod lockout;

use std::net::IpAddr;
use std::path::Path;
use std::time::Instant;

use serde::Deserialize;

use self::bucket::Bucket;
use self::lockout::Lockout;
use crate::error::{ApiError, Error};

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

/// A request's cost, which its key must allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Allowed for any key without a rate limit.
    Nothing,
    /// The characters of texts plus the tokens that a model may generate: the rates of the key count both.
    Text { characters: usize, generated: usize },
    /// Allowed for admin keys only.
    Administration,
}

#[derive(Debug)]
struct Key {
    rights: Rights,
    requests: Option<Bucket>,
    characters: Option<Bucket>,
}

/// The permissions of a key.
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

impl Cost {
    /// The cost of texts without generation.
    pub(crate) fn text(characters: usize) -> Cost {
        Cost::Text { characters, generated: 0 }
    }
}

impl Keys {
    /// Reads a file of keys.
    pub(crate) fn read(path: &Path) -> Result<Keys, Error> {
        let invalid = |cause: String| Error::Keys { path: path.to_owned(), cause };
        let text = std::fs::read_to_string(path).map_err(|error| invalid(error.to_string()))?;
        Keys::parse(&text).map_err(invalid)
    }

    fn parse(text: &str) -> Result<Keys, String> {
        let entries: Vec<Entry> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut all: Vec<(String, Key)> = Vec::new();
        for (number, entry) in entries.into_iter().enumerate() {
            let number = number + 1;
            if entry.key.is_empty() {
                return Err(format!("key {number} is empty"));
            }
            let rates = [entry.requests_per_minute, entry.characters_per_minute];
            if rates.iter().flatten().any(|rate| !rate.is_finite() || *rate <= 0.0) {
                return Err(format!("a rate of key {number} is not above 0; leave it out for no limit"));
            }
            let key = Key {
                rights: if entry.admin { Rights::Administer } else { Rights::Use },
                requests: entry.requests_per_minute.map(Bucket::new),
                characters: entry.characters_per_minute.map(Bucket::new),
            };
            if all.iter().any(|(known, _)| *known == entry.key) {
                return Err(format!("key {number} occurs twice"));
            }
            all.push((entry.key, key));
        }
        Ok(Keys { all: Some(all), lockout: Lockout::default() })
    }

    /// Whether a key is needed.
    pub(crate) fn are_required(&self) -> bool {
        self.all.is_some()
    }

    /// Admits or refuses a request: 403 if its key is missing, unknown or not an admin key, 429 if the key
    /// has used up its rates, or for an unknown key from an address that sent too many. `read` parses the
    /// fields of the request and returns its cost. It runs after the key check: without a key, a client gets
    /// no errors about fields.
    pub(crate) fn admit<T>(
        &self,
        presented: &PresentedKey,
        read: impl FnOnce() -> Result<(T, Cost), ApiError>,
    ) -> Result<T, ApiError> {
        let key = self.find(presented)?;
        let (fields, cost) = read()?;
        match (cost, key) {
            (Cost::Text { characters, generated }, Some(key)) => {
                let (now, all) = (Instant::now(), characters + generated);
                for (bucket, amount) in [(&key.requests, 1), (&key.characters, all)] {
                    let taken = bucket.as_ref().map_or(Ok(()), |bucket| bucket.take(amount as f64, now));
                    taken.map_err(ApiError::rate_limited)?;
                }
            }
            (Cost::Administration, None) => {
                return Err(ApiError::forbidden(
                    "this needs an admin key: start the server with --keys and an admin key, or send it SIGHUP",
                ));
            }
            (Cost::Administration, Some(key)) if key.rights == Rights::Use => {
                return Err(ApiError::forbidden("this key is not an admin key"));
            }
            (Cost::Nothing | Cost::Text { .. } | Cost::Administration, _) => {}
        }
        Ok(fields)
    }

    /// The key of a request; `None` if the server has no keys.
    fn find(&self, presented: &PresentedKey) -> Result<Option<&Key>, ApiError> {
        let Some(all) = &self.all else { return Ok(None) };
        let Some(given) = presented.key.as_deref().filter(|key| !key.is_empty()) else {
            return Err(ApiError::forbidden(
                "this server needs an API key: send it as `api_key`, or as Authorization: Bearer KEY",
            ));
        };
        // All keys are compared, so that the time does not reveal which one matches.
        let found = all.iter().fold(None, |found, (known, key)| {
            if are_equal(given.as_bytes(), known.as_bytes()) { Some(key) } else { found }
        });
        if found.is_some() {
            return Ok(found);
        }
        let now = Instant::now();
        self.lockout.check(presented.address, now).map_err(ApiError::locked_out)?;
        self.lockout.count(presented.address, now);
        Err(ApiError::forbidden("this API key is not known here"))
    }
}

/// Whether two keys are equal, in a time that depends only on the length of the first, which its sender
/// knows.
fn are_equal(given: &[u8], known: &[u8]) -> bool {
    let mut difference = u8::from(given.len() != known.len());
    for (index, byte) in given.iter().enumerate() {
        let other = known.get(index % known.len().max(1)).copied().unwrap_or_default();
        // Opaque to the optimizer, which could otherwise stop at the first difference.
        difference = std::hint::black_box(difference | (byte ^ other));
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn admit(keys: &Keys, key: Option<&str>, address: u8, cost: Cost) -> Result<(), u16> {
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, address));
        let presented = PresentedKey { key: key.map(str::to_owned), address };
        keys.admit(&presented, || Ok(((), cost))).map_err(|error| error.status.as_u16())
    }

    #[test]
    fn keys_grant_rights_and_invalid_files_are_refused() {
        let keys = Keys::parse(r#"[{"key": "a", "requests_per_minute": 1}, {"key": "b", "admin": true}]"#);
        let keys = keys.expect("good keys");
        for key in [None, Some(""), Some("c"), Some("ab"), Some("A")] {
            assert_eq!(admit(&keys, key, 1, Cost::Nothing), Err(403), "{key:?}");
            let presented = PresentedKey { key: key.map(str::to_owned), address: Ipv4Addr::LOCALHOST.into() };
            let read = || -> Result<((), Cost), ApiError> { panic!("the fields were read without a key") };
            assert!(keys.admit(&presented, read).is_err());
        }
        let with = |key, cost| admit(&keys, Some(key), 1, cost);
        assert_eq!(
            [with("a", Cost::text(5)), with("a", Cost::text(5)), with("a", Cost::Nothing)],
            [Ok(()), Err(429), Ok(())]
        );
        assert_eq!([with("a", Cost::Administration), with("b", Cost::Administration)], [Err(403), Ok(())]);
        let open = Keys::default();
        assert_eq!(admit(&open, None, 1, Cost::text(5)), Ok(()), "no key is needed");
        assert_eq!(admit(&open, None, 1, Cost::Administration), Err(403));
        for invalid in [
            "{",
            r#"[{"key": ""}]"#,
            r#"[{"key": "a"}, {"key": "a"}]"#,
            r#"[{"key": "a", "rate": 1}]"#,
            r#"[{"key": "a", "requests_per_minute": 0}]"#,
        ] {
            assert!(Keys::parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn guessing_locks_an_address_out_but_not_its_known_keys() {
        let keys = Keys::parse(r#"[{"key": "right"}]"#).expect("good keys");
        let with = |key, address| admit(&keys, Some(key), address, Cost::Nothing);
        for _ in 0..lockout::MAX_ATTEMPTS {
            assert_eq!(with("wrong", 1), Err(403));
        }
        assert_eq!((with("wrong", 1), with("wrong", 2)), (Err(429), Err(403)));
        assert!([1, 2].map(|address| with("right", address).is_ok()) == [true; 2]);
        assert_eq!(admit(&keys, None, 1, Cost::Nothing), Err(403), "a missing key is not a guess");
    }

    #[test]
    fn keys_are_equal_only_if_every_byte_is() {
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
            assert_eq!(are_equal(given.as_bytes(), known.as_bytes()), expected, "{given:?} {known:?}");
        }
    }
}
