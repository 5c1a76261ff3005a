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

use crate::app::{AppState, app, metrics_app, starting_app, starting_metrics_app};
use crate::connections;
use crate::error::ServerError;
use crate::front::{Answering, Front, Phase};
use crate::keys::Keys;
use crate::models::{ServedModel, Stamps, watch as watch_models};
use crate::options::ServerOptions;

/// A running server, on threads of its own. Dropped, it ends at once; [`Server::stop`] shuts it down gracefully.
pub struct Server {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    drain: Duration,
    state: Arc<AppState>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    runtime: HttpThreads,
}

/// A server that listens and has no models yet: it says that it is alive, and that it is not ready (503).
pub struct StartingServer {
    options: ServerOptions,
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    front: Arc<Front>,
    keys: Keys,
    answering: Answering,
    answering_metrics: Answering,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    runtime: HttpThreads,
}

impl StartingServer {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loads the models. An error ends the server.
    pub fn load(self) -> Result<Server, ServerError> {
        let stamps = Stamps::of(&self.options.models);
        let state = Arc::new(AppState::load(&self.options, self.front, self.keys)?);
        self.answering.serve(app(state.clone()));
        self.answering_metrics.serve(metrics_app(state.clone()));
        state.front.enter(Phase::Ready);
        if let Some(every) = self.options.watch {
            self.runtime.spawn(watch_models(Arc::downgrade(&state.models), stamps, every));
        }
        Ok(Server {
            address: self.address,
            metrics_address: self.metrics_address,
            drain: self.options.drain,
            state,
            stop: self.stop,
            serving: self.serving,
            runtime: self.runtime,
        })
    }
}

impl Server {
    /// Begins to listen, then loads the models.
    pub fn start(options: ServerOptions) -> Result<Server, ServerError> {
        Server::listen(options)?.load()
    }

    /// Begins to listen. What is wrong with the options is found here; what is wrong with the models, by
    /// [`StartingServer::load`].
    pub fn listen(options: ServerOptions) -> Result<StartingServer, ServerError> {
        check(&options)?;
        // Each connection needs a file descriptor. If the system grants fewer, connections wait instead.
        system::allow_open_files(options.limits.connections as u64 + 512);
        let front = Arc::new(Front::new(&options)?);
        let keys = options.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
        // The cores belong to the models: HTTP is little work, and more threads for it delay those of a model, which
        // wait for each other.
        let threads = thread::available_parallelism().map_or(1, usize::from).div_ceil(4);
        let runtime =
            Builder::new_multi_thread().worker_threads(threads).enable_all().thread_name("http").build()?;
        let listening = |address| {
            let _inside = runtime.enter();
            listen(address)
        };
        let address = options.address;
        let listener = listening(address).map_err(|cause| ServerError::Address { address, cause })?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let limits = || options.limits.clone();
        let answering = Answering::new(starting_app(front.clone()));
        let connected = front.metrics.connections.clone();
        let proxies = &front.proxies;
        let serving = (listener, answering.clone(), proxies.clone());
        let serving = connections::serve(serving, limits(), connected, stopped.clone());
        let serving = runtime.spawn(serving);
        let answering_metrics = Answering::new(starting_metrics_app(front.clone()));
        let mut metrics_address = None;
        if let Some(address) = options.metrics_address {
            let listener =
                listening(address).map_err(|cause| ServerError::MetricsAddress { address, cause })?;
            metrics_address = Some(listener.local_addr()?);
            let answering = answering_metrics.clone();
            let serving = (listener, answering, proxies.clone());
            runtime.spawn(connections::serve(serving, limits(), Arc::default(), stopped));
        }
        Ok(StartingServer {
            options,
            address,
            metrics_address,
            front,
            keys,
            answering,
            answering_metrics,
            stop,
            serving,
            runtime: HttpThreads(Some(runtime)),
        })
    }

    /// The address of `--metrics-listen`.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
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

    /// Reloads all models. Returns an error for each one that cannot be loaded; its old version keeps serving.
    pub fn reload(&self) -> Vec<ServerError> {
        self.state.models.reload()
    }

    /// Answers as before, but `/health/ready` says from here on that no more requests should be sent.
    pub fn drain(&self) {
        self.state.front.enter(Phase::Draining);
    }

    /// Accepts no more requests, finishes those that were accepted, and ends.
    pub fn stop(self) {
        self.drain();
        let _ = self.stop.send(true);
        // It ends by itself after the grace period.
        let _ = self.runtime.block_on(self.serving);
    }

    /// Serves until Ctrl-C or SIGTERM, then stops as [`Server::stop`] does; a second one ends at once. After SIGTERM it first
    /// answers for the time of [`ServerOptions::drain`]. SIGHUP reloads all models. `announce` is called when signals are handled.
    pub fn run_until_signal(self, announce: impl FnOnce(&Server)) -> Result<(), ServerError> {
        // One listener from the start: a signal that arrives while a model is loaded is not lost.
        let mut signals = Signals::listen(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])?;
        announce(&self);
        let reload = self.reloader()?;
        let asked = loop {
            match signals.wait() {
                // One that waits already includes this one.
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
        // Whoever sits at the terminal has no load balancer.
        if asked == Signal::Terminate {
            thread::sleep(self.drain);
        }
        self.stop();
        Ok(())
    }
}

impl Server {
    /// A thread that reloads all models when it is asked. However long that takes, signals are obeyed meanwhile.
    fn reloader(&self) -> Result<SyncSender<()>, ServerError> {
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

/// The threads of HTTP, which end when this is dropped. Nobody waits for what they do at that moment, such as a reload.
struct HttpThreads(Option<Runtime>);

impl Deref for HttpThreads {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for HttpThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is restarted at once can bind its port.
    if system::REBINDS_PORTS {
        socket.set_reuseaddr(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// More than the system has descriptors for.
const MOST_CONNECTIONS: usize = 1 << 20;
/// Of a time limit: 30 days, which are as good as none.
const LONGEST_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

fn check(options: &ServerOptions) -> Result<(), ServerError> {
    options.search.check().map_err(|error| ServerError::Limits(error.to_string()))?;
    let limits = &options.limits;
    if limits.sentences > limits.queue {
        return Err(ServerError::Limits(format!(
            "a request may have {} sentences, but only {} may wait: make --queue at least as large",
            limits.sentences, limits.queue
        )));
    }
    if limits.beam < options.search.beam {
        return Err(ServerError::Limits(format!(
            "the beam is {}, but requests may have at most {}: make --max-beam at least as large",
            options.search.beam, limits.beam
        )));
    }
    if limits.connections > MOST_CONNECTIONS {
        return Err(ServerError::Limits(format!(
            "{} connections at a time are too many: set at most {MOST_CONNECTIONS}",
            limits.connections
        )));
    }
    let times = [
        limits.timeout,
        limits.worker_timeout,
        limits.client_timeout,
        limits.grace,
        options.batch_wait,
        options.drain,
    ];
    if times.iter().any(|time| *time > LONGEST_TIME) {
        let most = LONGEST_TIME.as_secs();
        return Err(ServerError::Limits(format!("a time limit is too long: set at most {most} seconds")));
    }
    if limits.worker_timeout.is_zero() {
        return Err(ServerError::Limits(
            "no worker makes progress within 0 s: set --worker-timeout to at least 1".into(),
        ));
    }
    if limits.connections == 0 || limits.connections_per_address == 0 || limits.sentences == 0 {
        return Err(ServerError::Limits(
            "no request could be served: set connections and sentences to at least 1".into(),
        ));
    }
    Ok(())
}
