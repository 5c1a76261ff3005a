//! Addresses that sent unknown keys, and how long they must wait.
//!
//! ```text
//! 20 unknown keys within a minute   429 to every unknown key of this address, for a minute
//! memory                            at most 10,000 addresses; the one whose minute ends first is evicted
//! ```

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::connections::network;

/// Unknown keys of an address until it is locked out.
pub(super) const MAX_ATTEMPTS: u32 = 20;
/// How long unknown keys count, and how long an address is locked out.
const MINUTE: Duration = Duration::from_secs(60);
/// The maximum number of tracked addresses.
const MAX_ADDRESSES: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Lockout {
    attempts: Mutex<HashMap<IpAddr, FailedAttempts>>,
}

#[derive(Clone, Copy, Debug)]
struct FailedAttempts {
    count: u32,
    /// When the count expires.
    until: Instant,
}

impl Lockout {
    /// Whether an address may present one more unknown key; else the seconds that it must wait.
    pub(super) fn check(&self, address: IpAddr, now: Instant) -> Result<(), u64> {
        let mut attempts = self.attempts.lock();
        let Some(&FailedAttempts { count, until }) = attempts.get(&network(address)) else { return Ok(()) };
        if until <= now {
            attempts.remove(&network(address));
            return Ok(());
        }
        if count < MAX_ATTEMPTS { Ok(()) } else { Err((until - now).as_secs() + 1) }
    }

    /// Counts an unknown key.
    pub(super) fn count(&self, address: IpAddr, now: Instant) {
        let mut attempts = self.attempts.lock();
        let address = network(address);
        if attempts.len() >= MAX_ADDRESSES && !attempts.contains_key(&address) {
            attempts.retain(|_, failed| failed.until > now);
            let first = attempts.iter().min_by_key(|(_, failed)| failed.until).map(|(address, _)| *address);
            if let Some(first) = first.filter(|_| attempts.len() >= MAX_ADDRESSES) {
                attempts.remove(&first);
            }
        }
        let entry = attempts.entry(address).or_insert(FailedAttempts { count: 0, until: now + MINUTE });
        entry.count += 1;
        if entry.count == MAX_ATTEMPTS {
            entry.until = now + MINUTE;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_lockout_lasts_a_minute() {
        let (lockout, now) = (Lockout::default(), Instant::now());
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for _ in 0..MAX_ATTEMPTS {
            assert_eq!(lockout.check(address, now), Ok(()));
            lockout.count(address, now);
        }
        assert_eq!(lockout.check(address, now), Err(61));
        assert_eq!(lockout.check(address, now + Duration::from_secs(50)), Err(11));
        assert_eq!(lockout.check(address, now + MINUTE), Ok(()));
        // Occasional unknown keys are not an attack.
        for minute in 0..100 {
            let now = now + minute * MINUTE;
            lockout.count(address, now);
            assert_eq!(lockout.check(address, now), Ok(()));
        }
    }

    #[test]
    fn memory_is_bounded_and_a_network_counts_as_one_address() {
        let (lockout, now) = (Lockout::default(), Instant::now());
        for number in 0..3 * MAX_ADDRESSES as u32 {
            lockout
                .count(IpAddr::V4(Ipv4Addr::from_bits(number)), now + Duration::from_millis(number.into()));
        }
        assert_eq!(lockout.attempts.lock().len(), MAX_ADDRESSES);
        // One client has 2⁶⁴ IPv6 addresses.
        for number in 0..MAX_ATTEMPTS {
            lockout.count(IpAddr::V6(Ipv6Addr::from_bits((1 << 127) + u128::from(number))), now);
        }
        assert!(lockout.check(IpAddr::V6(Ipv6Addr::from_bits((1 << 127) + 12_345)), now).is_err());
        assert!(lockout.check(IpAddr::V6(Ipv6Addr::from_bits((1 << 127) + (1 << 64))), now).is_ok());
    }
}
