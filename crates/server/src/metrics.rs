//! Counters for `/metrics`, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// A counter or a gauge.
#[derive(Debug, Default)]
pub(crate) struct Metric(AtomicU64);

impl Metric {
    pub(crate) fn set(&self, value: usize) {
        self.0.store(value as u64, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, less: usize) {
        self.0.fetch_sub(less as u64, Ordering::Relaxed);
    }

    fn value(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64
    }
}

/// The counters of one model.
#[derive(Debug, Default)]
pub(crate) struct ModelMetrics {
    pub(crate) sentences: Metric,
    pub(crate) source_tokens: Metric,
    pub(crate) target_tokens: Metric,
    pub(crate) cancelled: Metric,
    pub(crate) refused: Metric,
    pub(crate) panics: Metric,
    pub(crate) reloads: Metric,
    pub(crate) steps: Metric,
    /// Batch sizes, summed over steps: divided by `steps`, this is the mean batch size.
    pub(crate) step_sentences: Metric,
    pub(crate) in_flight: Metric,
    pub(crate) busy: BusyTime,
}

/// A snapshot of a model's counters and queue.
pub(crate) struct ModelReading {
    pub(crate) name: String,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) waiting: QueueDepth,
    /// Versions in memory.
    pub(crate) versions: usize,
    /// Workers that make no progress.
    pub(crate) stuck: usize,
}

/// The contents of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueDepth {
    pub(crate) sentences: usize,
    pub(crate) tokens: usize,
}

/// Upper bounds of the latency histogram, in seconds.
const BOUNDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The counters of the server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By route and status.
    answers: Mutex<BTreeMap<(String, u16), u64>>,
    /// By route.
    latencies: Mutex<BTreeMap<String, Histogram>>,
    pub(crate) connections: Arc<Metric>,
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

impl Metrics {
    /// Counts a response. `route` is a pattern of the router, so the number of labels is bounded.
    pub(crate) fn observe(&self, route: &str, status: u16, time: Duration) {
        *self.answers.lock().entry((route.to_owned(), status)).or_default() += 1;
        let mut latencies = self.latencies.lock();
        let histogram = latencies.entry(route.to_owned()).or_default();
        let seconds = time.as_secs_f64();
        histogram.count += 1;
        histogram.seconds += seconds;
        if let Some(bucket) = BOUNDS.iter().position(|&bound| seconds <= bound) {
            histogram.buckets[bucket] += 1;
        }
    }

    /// The metrics in the text format of Prometheus.
    pub(crate) fn render(&self, is_ready: bool, models: &[ModelReading]) -> String {
        let mut page = String::new();
        head(&mut page, "heedful_responses_total", "counter", "Responses by route and status.");
        for ((route, status), count) in self.answers.lock().iter() {
            let _ =
                writeln!(page, "heedful_responses_total{{route=\"{route}\",status=\"{status}\"}} {count}");
        }
        head(&mut page, "heedful_response_seconds", "histogram", "Time from request to response.");
        for (route, histogram) in self.latencies.lock().iter() {
            histogram.write(route, &mut page);
        }
        head(&mut page, "heedful_connections", "gauge", "Open connections.");
        let _ = writeln!(page, "heedful_connections {}", self.connections.value());
        head(&mut page, "heedful_ready", "gauge", "1 if requests should be sent here, else 0.");
        let _ = writeln!(page, "heedful_ready {}", u8::from(is_ready));
        for (name, kind, help, read) in MODEL_METRICS {
            let name = format!("heedful_{name}");
            head(&mut page, &name, kind, help);
            for model in models {
                let value = read(model);
                let _ = writeln!(page, "{name}{{model=\"{}\"}} {value}", escaped(&model.name));
            }
        }
        page
    }
}

/// Name, kind, help text and value of a metric that each model has.
type MetricDefinition = (&'static str, &'static str, &'static str, fn(&ModelReading) -> f64);

const MODEL_METRICS: [MetricDefinition; 16] = [
    ("sentences_total", "counter", "Finished sentences.", |m| m.metrics.sentences.value()),
    ("source_tokens_total", "counter", "Source tokens of finished sentences.", |m| {
        m.metrics.source_tokens.value()
    }),
    ("target_tokens_total", "counter", "Tokens of the best outputs.", |m| m.metrics.target_tokens.value()),
    ("cancelled_total", "counter", "Sentences cancelled because their client disconnected.", |m| {
        m.metrics.cancelled.value()
    }),
    ("refused_total", "counter", "Requests refused because the queue was full or the worker stuck.", |m| {
        m.metrics.refused.value()
    }),
    ("panics_total", "counter", "Panics of the worker, after which it was restarted.", |m| {
        m.metrics.panics.value()
    }),
    ("reloads_total", "counter", "Times the model was replaced.", |m| m.metrics.reloads.value()),
    ("steps_total", "counter", "Steps of the worker, one batch each.", |m| m.metrics.steps.value()),
    ("step_sentences_total", "counter", "Batch sizes, summed over steps.", |m| {
        m.metrics.step_sentences.value()
    }),
    ("busy_seconds_total", "counter", "Time in which the model computed.", |m| m.metrics.busy.read().0),
    (
        "utilization",
        "gauge",
        "Share of the last half minute in which the model computed, from 0 to 1.",
        |m| m.metrics.busy.read().1,
    ),
    ("waiting", "gauge", "Sentences in the queue.", |m| m.waiting.sentences as f64),
    ("waiting_tokens", "gauge", "Tokens of the sentences in the queue.", |m| m.waiting.tokens as f64),
    ("in_flight", "gauge", "Sentences in the batch.", |m| m.metrics.in_flight.value()),
    ("versions", "gauge", "Versions in memory: 2 while requests finish on a replaced one.", |m| {
        m.versions as f64
    }),
    ("stuck_workers", "gauge", "Workers that have made no progress for --worker-timeout.", |m| {
        m.stuck as f64
    }),
];

/// The time in which at least one lane of a model computes.
#[derive(Debug, Default)]
pub(crate) struct BusyTime(Mutex<BusyState>);

#[derive(Debug, Default)]
struct BusyState {
    /// The number of lanes that compute.
    lanes: usize,
    /// The time up to which `seconds` and `share` are counted.
    counted: Option<Instant>,
    seconds: f64,
    share: f64,
}

/// The time constant of the moving average: past work counts by e^(−t / TIME_CONSTANT).
const TIME_CONSTANT: f64 = 30.0;

impl BusyTime {
    /// Counts the time of some work.
    pub(crate) fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        self.count().lanes += 1;
        let _working = BusyGuard(self);
        work()
    }

    /// The total seconds, and the recent share.
    pub(crate) fn read(&self) -> (f64, f64) {
        let state = self.count();
        (state.seconds, state.share)
    }

    fn count(&self) -> MutexGuard<'_, BusyState> {
        let (mut state, now) = (self.0.lock(), Instant::now());
        let before = state.counted.replace(now).unwrap_or(now);
        state.add(now.duration_since(before).as_secs_f64());
        state
    }
}

/// Ends the work even if it panics.
struct BusyGuard<'b>(&'b BusyTime);

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.count().lanes -= 1;
    }
}

impl BusyState {
    fn add(&mut self, seconds: f64) {
        let working = if self.lanes > 0 { 1.0 } else { 0.0 };
        self.seconds += working * seconds;
        self.share = working + (self.share - working) * (-seconds / TIME_CONSTANT).exp();
    }
}

impl Histogram {
    fn write(&self, route: &str, page: &mut String) {
        let mut below = 0;
        for (bound, count) in BOUNDS.iter().zip(self.buckets) {
            below += count;
            let _ =
                writeln!(page, "heedful_response_seconds_bucket{{route=\"{route}\",le=\"{bound}\"}} {below}");
        }
        let Histogram { count, seconds, .. } = self;
        let _ = writeln!(page, "heedful_response_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(page, "heedful_response_seconds_sum{{route=\"{route}\"}} {seconds}");
        let _ = writeln!(page, "heedful_response_seconds_count{{route=\"{route}\"}} {count}");
    }
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_cumulative_buckets_and_escaped_labels() {
        let metrics = Metrics::default();
        for milliseconds in [3, 8, 8, 60_000] {
            metrics.observe("/translate", 200, Duration::from_millis(milliseconds));
        }
        let model = ModelMetrics::default();
        model.sentences.add(7);
        let waiting = QueueDepth { sentences: 5, tokens: 60 };
        let name = "a\"b".to_owned();
        let model = ModelReading { name, metrics: Arc::new(model), waiting, versions: 2, stuck: 1 };
        let page = metrics.render(false, &[model]);
        for line in [
            "heedful_responses_total{route=\"/translate\",status=\"200\"} 4",
            "heedful_response_seconds_bucket{route=\"/translate\",le=\"0.005\"} 1",
            "heedful_response_seconds_bucket{route=\"/translate\",le=\"30\"} 3",
            "heedful_response_seconds_bucket{route=\"/translate\",le=\"+Inf\"} 4",
            "heedful_sentences_total{model=\"a\\\"b\"} 7",
            "heedful_waiting{model=\"a\\\"b\"} 5",
            "heedful_waiting_tokens{model=\"a\\\"b\"} 60",
            "heedful_utilization{model=\"a\\\"b\"} 0",
            "heedful_versions{model=\"a\\\"b\"} 2",
            "heedful_stuck_workers{model=\"a\\\"b\"} 1",
            "heedful_ready 0",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn the_share_of_busy_time_follows_the_work_and_decays() {
        let mut state = BusyState { lanes: 1, ..BusyState::default() };
        (0..20).for_each(|_| state.add(15.0));
        assert!((state.seconds - 300.0).abs() < 1e-9 && state.share > 0.999, "{state:?}");
        // Two lanes at once count once.
        state.lanes = 2;
        state.add(1.0);
        assert!((state.seconds - 301.0).abs() < 1e-9 && state.share <= 1.0);
        state.lanes = 0;
        state.add(TIME_CONSTANT);
        assert!((state.share - (-1.0_f64).exp()).abs() < 1e-3 && (state.seconds - 301.0).abs() < 1e-9);
        let busy = BusyTime::default();
        assert_eq!(busy.during(|| 7), 7);
        assert_eq!(busy.0.lock().lanes, 0);
    }
}
