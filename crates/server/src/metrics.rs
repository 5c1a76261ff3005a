//! Counters for `/metrics`, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicUsize);

impl Gauge {
    pub(crate) fn set(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, less: usize) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one model.
#[derive(Debug, Default)]
pub(crate) struct ModelMetrics {
    pub(crate) sentences: Counter,
    pub(crate) source_tokens: Counter,
    pub(crate) target_tokens: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) refused: Counter,
    pub(crate) panics: Counter,
    pub(crate) reloads: Counter,
    pub(crate) steps: Counter,
    /// Batch sizes, summed over steps: divided by `steps`, the mean batch size.
    pub(crate) step_sentences: Counter,
    pub(crate) in_flight: Gauge,
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
    pub(crate) connections: Arc<Gauge>,
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
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((route.to_owned(), status)).or_default() += 1;
        drop(answers);
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = latencies.entry(route.to_owned()).or_default();
        let seconds = time.as_secs_f64();
        histogram.count += 1;
        histogram.seconds += seconds;
        if let Some(bucket) = BOUNDS.iter().position(|&bound| seconds <= bound) {
            histogram.buckets[bucket] += 1;
        }
    }

    /// The text that Prometheus reads. `models` are names with their counters and the length of their queue.
    pub(crate) fn render<'a>(
        &self,
        models: impl Iterator<Item = (&'a str, &'a ModelMetrics, usize)> + Clone,
    ) -> String {
        let mut page = String::new();
        head(&mut page, "heedful_responses_total", "counter", "Responses by route and status.");
        for ((route, status), count) in self.answers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ =
                writeln!(page, "heedful_responses_total{{route=\"{route}\",status=\"{status}\"}} {count}");
        }
        head(&mut page, "heedful_response_seconds", "histogram", "Time from request to response.");
        for (route, histogram) in self.latencies.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            histogram.write(route, &mut page);
        }
        head(&mut page, "heedful_connections", "gauge", "Open connections.");
        let _ = writeln!(page, "heedful_connections {}", self.connections.get());
        type Read = fn(&ModelMetrics) -> u64;
        let counters: [(&str, &str, Read); 9] = [
            ("sentences_total", "Sentences that were finished.", |m| m.sentences.get()),
            ("source_tokens_total", "Tokens that were read.", |m| m.source_tokens.get()),
            ("target_tokens_total", "Tokens of the best outputs.", |m| m.target_tokens.get()),
            ("cancelled_total", "Sentences cancelled because their client disconnected.", |m| {
                m.cancelled.get()
            }),
            ("refused_total", "Requests refused because the queue was full.", |m| m.refused.get()),
            ("panics_total", "Panics of the worker, after which it was restarted.", |m| m.panics.get()),
            ("reloads_total", "Times the model was replaced.", |m| m.reloads.get()),
            ("steps_total", "Steps of the worker, one batch each.", |m| m.steps.get()),
            ("step_sentences_total", "Batch sizes, summed over steps.", |m| m.step_sentences.get()),
        ];
        for (name, help, read) in counters {
            let name = format!("heedful_{name}");
            head(&mut page, &name, "counter", help);
            for (model, metrics, _) in models.clone() {
                let _ = writeln!(page, "{name}{{model=\"{}\"}} {}", escaped(model), read(metrics));
            }
        }
        head(&mut page, "heedful_waiting", "gauge", "Sentences in the queue.");
        for (model, _, waiting) in models.clone() {
            let _ = writeln!(page, "heedful_waiting{{model=\"{}\"}} {waiting}", escaped(model));
        }
        head(&mut page, "heedful_in_flight", "gauge", "Sentences in the batch.");
        for (model, metrics, _) in models {
            let in_flight = metrics.in_flight.get();
            let _ = writeln!(page, "heedful_in_flight{{model=\"{}\"}} {in_flight}", escaped(model));
        }
        page
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
        let page = metrics.render([("a\"b", &model, 5)].into_iter());
        for line in [
            "heedful_responses_total{route=\"/translate\",status=\"200\"} 4",
            "heedful_response_seconds_bucket{route=\"/translate\",le=\"0.005\"} 1",
            "heedful_response_seconds_bucket{route=\"/translate\",le=\"30\"} 3",
            "heedful_response_seconds_bucket{route=\"/translate\",le=\"+Inf\"} 4",
            "heedful_sentences_total{model=\"a\\\"b\"} 7",
            "heedful_waiting{model=\"a\\\"b\"} 5",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }
}
