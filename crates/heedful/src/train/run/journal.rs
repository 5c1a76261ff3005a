//! The files that a run writes during training: `metrics.jsonl`, `attention.jsonl`, TensorBoard events,
//! `report.html`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::page::{Page, RunLogs, page};
use crate::Result;
use crate::plot::Status;
use crate::store::durable;
use crate::train::log::{self, AttentionFile, AttentionRecord, EventFile, MetricsFile, Record};

/// Minimum time between two updates of the report.
const PAGE_EVERY: Duration = Duration::from_secs(10);

/// The open files of a run.
pub(super) struct Journal {
    metrics: MetricsFile,
    attention: AttentionFile,
    events: Option<EventFile>,
    logs: RunLogs,
    page: Option<(PathBuf, Page)>,
    page_written: Option<Instant>,
}

/// The part of a record that the report shows over time: all heads of all validations would take too much
/// memory.
fn without_layers(record: AttentionRecord) -> AttentionRecord {
    AttentionRecord { layers: Vec::new(), ..record }
}

impl Journal {
    /// Opens the files to continue after `step`, which is 0 for a new run. TensorBoard events are written
    /// only with `events`, the report only with `page`.
    pub(super) fn open(
        folder: &Path,
        step: u64,
        events: Option<EventFile>,
        page: Option<Page>,
    ) -> Result<Journal> {
        let (metrics, records) = MetricsFile::resume(&folder.join(log::METRICS), step)?;
        let (attention, attention_records) = AttentionFile::resume(&folder.join(log::ATTENTION), step)?;
        let page = page.map(|page| (folder.join("report.html"), page));
        let attention_records = attention_records.into_iter().map(without_layers).collect();
        let logs = RunLogs { records, attention: attention_records };
        Ok(Journal { metrics, attention, events, logs, page, page_written: None })
    }

    /// Writes a record to all logs.
    pub(super) fn write(&mut self, record: Record) -> Result<()> {
        self.metrics.write(&record)?;
        if let Some(events) = &mut self.events {
            events.write(&record)?;
        }
        self.logs.records.push(record);
        Ok(())
    }

    /// Writes the current attention weights to the log.
    pub(super) fn write_attention(&mut self, record: AttentionRecord) -> Result<()> {
        self.attention.write(&record)?;
        self.logs.attention.push(without_layers(record));
        Ok(())
    }

    /// The contents of the report.
    pub(super) fn page(&mut self) -> Option<&mut Page> {
        self.page.as_mut().map(|(_, page)| page)
    }

    /// Writes the report, unless the run is in progress and the report was written recently.
    pub(super) fn publish(&mut self, status: Status) -> Result<()> {
        let Some((path, contents)) = &self.page else { return Ok(()) };
        let is_running = matches!(status, Status::Running { .. });
        if is_running && self.page_written.is_some_and(|written| written.elapsed() < PAGE_EVERY) {
            return Ok(());
        }
        durable::write_bytes(path, page(contents, &self.logs, status).to_html().as_bytes())?;
        self.page_written = Some(Instant::now());
        Ok(())
    }
}
