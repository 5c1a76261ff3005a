//! A server from its start to its shutdown.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use heedful::system::{self, Signal, Signals};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::{
    AppState, Phase, SharedState, SwitchingService, app, metrics_app, starting_app, starting_metrics_app,
};
use crate::connections;
use crate::error::Error;
use crate::keys::Keys;
use crate::models::{ServedModel, Stamps, watch as watch_models};
use crate::options::{Limits, ServerOptions};

/// A running server, on threads of its own. Dropping it ends it at once; [`Server::stop`] shuts it down
/// gracefully.
pub struct Server {
    listening: Listening,
    drain: Duration,
    state: Arc<AppState>,
}

/// A server that listens and has no models yet: it reports that it is alive, but not ready (503).
pub struct StartingServer {
    listening: Listening,
    options: ServerOptions,
    keys: Keys,
    service: SwitchingService,
    metrics_service: SwitchingService,
}

/// The threads and addresses of a server, from its start to its end.
struct Listening {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    shared: Arc<SharedState>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    runtime: HttpThreads,
}

impl StartingServer {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Loads the models. An error ends the server.
    pub fn load(self) -> Result<Server, Error> {
        let stamps = Stamps::of(&self.options.models);
        let state = Arc::new(AppState::load(&self.options, self.listening.shared.clone(), self.keys)?);
        self.service.switch(app(state.clone()));
        self.metrics_service.switch(metrics_app(state.clone()));
        state.shared.enter(Phase::Ready);
        if let Some(every) = self.options.watch {
            let watching = watch_models(Arc::downgrade(&state.models), stamps, every);
            self.listening.runtime.spawn(watching);
        }
        Ok(Server { listening: self.listening, drain: self.options.drain, state })
    }
}

impl Server {
    /// Starts listening, then loads the models.
    pub fn start(options: ServerOptions) -> Result<Server, Error> {
        Server::listen(options)?.load()
    }

    /// Starts listening. Errors in the options are reported here, errors in the models by
    /// [`StartingServer::load`].
    pub fn listen(options: ServerOptions) -> Result<StartingServer, Error> {
        check(&options)?;
        // Each connection needs a file descriptor. If the system grants fewer, connections wait instead.
        system::allow_open_files(options.limits.connections as u64 + 512);
        let shared = Arc::new(SharedState::new(&options)?);
        let keys = options.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
        // The cores belong to the models: HTTP is little work, and more HTTP threads would delay the threads
        // of a model, which wait for each other.
        let threads = thread::available_parallelism().map_or(1, usize::from).div_ceil(4);
        let runtime =
            Builder::new_multi_thread().worker_threads(threads).enable_all().thread_name("http").build()?;
        let (stop, stopped) = watch::channel(false);
        let serve = |address, service: &SwitchingService, connected| {
            let _inside = runtime.enter();
            let listener = listen(address)?;
            let address = listener.local_addr()?;
            let serving = (listener, service.clone(), shared.clone());
            let serving = connections::serve(serving, options.limits.clone(), connected, stopped.clone());
            Ok((address, runtime.spawn(serving)))
        };
        let service = SwitchingService::new(starting_app(shared.clone()));
        let address = options.address;
        let (address, serving) = serve(address, &service, shared.metrics.connections.clone())
            .map_err(|cause| Error::Address { address, cause })?;
        let metrics_service = SwitchingService::new(starting_metrics_app(shared.clone()));
        let serve_metrics = |address| {
            let served = serve(address, &metrics_service, Arc::default());
            served.map(|(own, _)| own).map_err(|cause| Error::MetricsAddress { address, cause })
        };
        let metrics_address = options.metrics_address.map(serve_metrics).transpose()?;
        let runtime = HttpThreads(Some(runtime));
        let listening = Listening { address, metrics_address, shared, stop, serving, runtime };
        Ok(StartingServer { listening, options, keys, service, metrics_service })
    }

    /// The address of `--metrics-listen`.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.listening.metrics_address
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Its models as `name (source → target)`, or `name` where there are no languages.
    pub fn models(&self) -> Vec<String> {
        let described = |served: &ServedModel| match served.task {
            heedful::tasks::Task::Translate => {
                format!("{} ({} → {})", served.spec.name, served.spec.source, served.spec.target)
            }
            _ => served.spec.name.clone(),
        };
        self.state.models.served.iter().map(described).collect()
    }

    /// Reloads all models. Returns an error for each one that cannot be loaded; its old version keeps
    /// serving.
    pub fn reload(&self) -> Vec<Error> {
        self.state.models.reload()
    }

    /// Keeps answering, but `/health/ready` reports from now on that no more requests should be sent.
    pub fn drain(&self) {
        self.state.shared.enter(Phase::Draining);
    }

    /// Accepts no more requests, finishes the accepted ones, and ends.
    pub fn stop(self) {
        self.drain();
        let _ = self.listening.stop.send(true);
        // It ends by itself after the grace period.
        let _ = self.listening.runtime.block_on(self.listening.serving);
    }

    /// Serves until Ctrl-C or SIGTERM, then stops like [`Server::stop`]; a second signal ends at once. After
    /// SIGTERM, requests are still answered for [`ServerOptions::drain`]. SIGHUP reloads all models.
    /// `announce` is called once signals are handled.
    pub fn run_until_signal(self, announce: impl FnOnce(&Server)) -> Result<(), Error> {
        // One listener from the start: a signal that arrives while a model is loaded is not lost.
        let mut signals = Signals::listen(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])?;
        announce(&self);
        let reload = self.reloader()?;
        let asked = loop {
            match signals.wait() {
                // A reload that is already pending covers this one.
                Signal::Hangup => {
                    let _ = reload.try_send(());
                }
                signal => break signal,
            }
        };
        self.drain();
        let end_at_once = move || loop {
            let signal = signals.wait();
            if signal != Signal::Hangup {
                std::process::exit(signal.exit_status().into());
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(end_at_once)?;
        // Ctrl-C comes from a terminal, where no load balancer needs time.
        if asked == Signal::Terminate {
            thread::sleep(self.drain);
        }
        self.stop();
        Ok(())
    }
}

impl Server {
    /// A thread that reloads all models on request, so that signals are handled during a long reload.
    fn reloader(&self) -> Result<SyncSender<()>, Error> {
        let (ask, asked) = mpsc::sync_channel(1);
        let models = self.state.models.clone();
        let reload = move || {
            for () in asked {
                let failures = models.reload();
                for error in &failures {
                    eprintln!("heedful: {error}; the old model keeps serving");
                }
                if failures.is_empty() {
                    eprintln!("heedful: all models were reloaded");
                }
            }
        };
        thread::Builder::new().name("reload".to_owned()).spawn(reload)?;
        Ok(ask)
    }
}

/// The HTTP threads, which end when this is dropped, without waiting for running work such as a reload.
struct HttpThreads(Option<Runtime>);

impl Deref for HttpThreads {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("the runtime is present until the drop")
    }
}

impl Drop for HttpThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Connections that the system queues until they are accepted.
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is restarted immediately can bind its port.
    if system::REBINDS_PORTS {
        socket.set_reuseaddr(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Above the number of file descriptors that any system grants.
const MAX_CONNECTIONS: usize = 1 << 20;
/// The maximum of each time limit: 30 days, in effect no limit.
const LONGEST_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

fn check(options: &ServerOptions) -> Result<(), Error> {
    options.search.check().map_err(|error| Error::Limits(error.to_string()))?;
    let (limits, beam) = (&options.limits, options.search.beam);
    let Limits { sentences, queue, connections, .. } = *limits;
    let refuse = |message: String| Err(Error::Limits(message));
    if sentences > queue {
        return refuse(format!(
            "a request may have {sentences} sentences, but only {queue} may wait: make --queue at least as large"
        ));
    }
    if limits.beam < beam {
        let most = limits.beam;
        return refuse(format!(
            "the beam is {beam}, but requests may have at most {most}: make --max-beam at least as large"
        ));
    }
    if connections > MAX_CONNECTIONS {
        return refuse(format!(
            "{connections} connections at a time are too many: set at most {MAX_CONNECTIONS}"
        ));
    }
    let of_requests = [limits.timeout, limits.worker_timeout, limits.client_timeout, limits.grace];
    if of_requests.into_iter().chain([options.batch_wait, options.drain]).any(|time| time > LONGEST_TIME) {
        let most = LONGEST_TIME.as_secs();
        return refuse(format!("a time limit is too long: set at most {most} seconds"));
    }
    if limits.worker_timeout.is_zero() {
        return refuse("no worker makes progress within 0 s: set --worker-timeout to at least 1".to_owned());
    }
    if connections == 0 || limits.connections_per_address == 0 || sentences == 0 {
        return refuse("no request could be served: set connections and sentences to at least 1".to_owned());
    }
    Ok(())
}
