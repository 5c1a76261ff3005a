//! Rates as token buckets.

use std::time::Instant;

use parking_lot::Mutex;

/// A token bucket: refills evenly and holds the amount of one minute.
#[derive(Debug)]
pub(super) struct Bucket {
    per_minute: f64,
    level: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub(super) fn new(per_minute: f64) -> Bucket {
        Bucket { per_minute, level: Mutex::new((per_minute.max(1.0), Instant::now())) }
    }

    /// Takes an amount, or returns the seconds after which it will be available. A full bucket allows any
    /// amount; its level then goes below zero, and later requests wait until it is refilled.
    pub(super) fn take(&self, amount: f64, now: Instant) -> Result<(), u64> {
        let full = self.per_minute.max(1.0);
        let mut level = self.level.lock();
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
    fn a_bucket_allows_a_burst_and_then_the_mean_rate() {
        let bucket = Bucket::new(60.0);
        let start = Instant::now();
        assert!((0..60).all(|_| bucket.take(1.0, start).is_ok()));
        assert_eq!(bucket.take(1.0, start), Err(1));
        assert_eq!(bucket.take(1.0, start + Duration::from_secs(1)), Ok(()));
        assert_eq!(bucket.take(3.0, start + Duration::from_secs(2)), Err(2));
        // A text larger than the bucket passes when it is full, and leaves a negative level.
        assert_eq!(bucket.take(120.0, start + Duration::from_secs(600)), Ok(()));
        assert_eq!(bucket.take(1.0, start + Duration::from_secs(600)), Err(61));
    }
}
