//! Accepting connections, with limits for clients that are many, slow or gone.
//!
//! ```text
//! limit      a maximum of connections at a time; further ones wait in the system's backlog
//! timeouts   a client that takes too long to send a request head, or to read a response, is disconnected
//! cancel     an end of input during a request means that the client is gone: the request is cancelled
//! shutdown   no new connections, open requests are answered, idle connections are closed
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::metrics::Gauge;
use crate::options::Limits;
use crate::write_timeout::WriteTimeout;

/// The address that a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client(pub(crate) SocketAddr);

/// After a failed `accept`: the system is out of file descriptors, and an immediate retry would spin.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Serves until `stopped` is set, and then until all open requests are answered or the grace period is over.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    connected: Arc<Gauge>,
    mut stopped: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.client_timeout).half_close(false);
    loop {
        let next = async {
            let permit = permits.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        };
        // Responses are written in one piece; waiting for more would only delay them.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(WriteTimeout::new(stream, limits.client_timeout));
        let connection = graceful.watch(http.serve_connection(io, service(&router, address)));
        let (connected, permits, most) = (connected.clone(), permits.clone(), limits.connections);
        connected.set(most - permits.available_permits());
        tokio::spawn(async move {
            // An error means that the client disconnected: there is nobody to report it to.
            let _ = connection.await;
            drop(permit);
            connected.set(most - permits.available_permits());
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(limits.grace, graceful.shutdown()).await;
}

/// The router, with the client's address attached to every request.
fn service(
    router: &Router,
    address: SocketAddr,
) -> impl Service<
    Request<Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send + 'static,
> + use<> {
    let router = TowerToHyperService::new(router.clone());
    service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Client(address));
        router.call(request.map(Body::new))
    })
}
