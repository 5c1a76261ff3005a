//! What every request passes first, also while there is no model yet: which phase the server is in, whose page asks, counters
//! and the log.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use axum::Router;

use crate::doors::Doors;
use crate::error::ServerError;
use crate::metrics::Metrics;
use crate::options::{AccessLog, ServerOptions};
use crate::proxies::Proxies;

/// From the start of a server to its end. It only goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The models are being loaded; requests for them get 503.
    Loading,
    /// Everything is answered.
    Ready,
    /// Everything is answered, and nothing more should be sent here: the server will end.
    Draining,
}

/// What all requests share, whether there are models or not.
pub(crate) struct Front {
    phase: AtomicU8,
    pub(crate) doors: Doors,
    pub(crate) proxies: Arc<Proxies>,
    pub(crate) metrics: Metrics,
    pub(crate) log: AccessLog,
}

impl Front {
    pub(crate) fn new(options: &ServerOptions) -> Result<Front, ServerError> {
        Ok(Front {
            phase: AtomicU8::new(Phase::Loading as u8),
            doors: Doors::new(options)?,
            proxies: Arc::new(Proxies::new(options)?),
            metrics: Metrics::default(),
            log: options.log,
        })
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::SeqCst) {
            phase if phase == Phase::Loading as u8 => Phase::Loading,
            phase if phase == Phase::Ready as u8 => Phase::Ready,
            _ => Phase::Draining,
        }
    }

    /// The next phase has begun.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
    }
}

/// Who answers: at first a router that knows no model, and from some moment on the one that does.
#[derive(Clone)]
pub(crate) struct Answering {
    starting: Router,
    serving: Arc<OnceLock<Router>>,
}

impl Answering {
    pub(crate) fn new(starting: Router) -> Answering {
        Answering { starting, serving: Arc::default() }
    }

    /// From here on this router answers.
    pub(crate) fn serve(&self, router: Router) {
        // Only the first one counts, and there is only one.
        let _ = self.serving.set(router);
    }

    /// For the next request.
    pub(crate) fn router(&self) -> Router {
        self.serving.get().unwrap_or(&self.starting).clone()
    }
}
