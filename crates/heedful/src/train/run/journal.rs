//! What a run writes down: `metrics.jsonl`, `attention.jsonl`, TensorBoard events, `report.html`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::RunError;
use super::page::{Page, Past, page};
use crate::plot::Status;
use crate::store::durable;
use crate::train::log::{self, AttentionFile, AttentionRecord, EventFile, MetricsFile, Record};

/// Between two writings of a page that nobody may be looking at.
const PAGE_EVERY: Duration = Duration::from_secs(10);

/// The open files of a run.
pub(super) struct Journal {
    metrics: MetricsFile,
    attention: AttentionFile,
    events: Option<EventFile>,
    past: Past,
    page: Option<(PathBuf, Page)>,
    page_written: Option<Instant>,
}

impl Journal {
    /// Goes on after `step`, which is 0 at the beginning. Without a page there is no report.
    pub(super) fn open(
        folder: &Path,
        step: u64,
        tensorboard: bool,
        page: Option<Page>,
    ) -> Result<Journal, RunError> {
        let (metrics, records) = MetricsFile::resume(&folder.join(log::METRICS), step)?;
        let (attention, looks) = AttentionFile::resume(&folder.join(log::ATTENTION), step)?;
        let events = match (tensorboard, step) {
            (false, _) => None,
            (true, 0) => Some(EventFile::create(folder)?),
            (true, step) => Some(EventFile::resume(folder, step)?),
        };
        let page = page.map(|page| (folder.join("report.html"), page));
        let past = Past { records, attention: looks };
        Ok(Journal { metrics, attention, events, past, page, page_written: None })
    }

    /// Writes a record everywhere.
    pub(super) fn write(&mut self, record: Record) -> Result<(), RunError> {
        self.metrics.write(&record)?;
        if let Some(events) = &mut self.events {
            events.write(&record)?;
        }
        self.past.records.push(record);
        Ok(())
    }

    /// Notes where the model looks now.
    pub(super) fn write_attention(&mut self, record: AttentionRecord) -> Result<(), RunError> {
        self.attention.write(&record)?;
        self.past.attention.push(record);
        Ok(())
    }

    /// Where the model looks in a sentence, for the page.
    pub(super) fn page(&mut self) -> Option<&mut Page> {
        self.page.as_mut().map(|(_, page)| page)
    }

    /// Writes the page again, unless it goes on and was written a moment ago.
    pub(super) fn publish(&mut self, status: Status) -> Result<(), RunError> {
        let Some((path, contents)) = &self.page else { return Ok(()) };
        let is_running = matches!(status, Status::Running { .. });
        if is_running && self.page_written.is_some_and(|written| written.elapsed() < PAGE_EVERY) {
            return Ok(());
        }
        durable::write_bytes(path, page(contents, &self.past, status).to_html().as_bytes())?;
        self.page_written = Some(Instant::now());
        Ok(())
    }
}
