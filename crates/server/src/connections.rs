//! Accepting connections, and being careful with them.
//!
//! ```text
//! many      no more than so many at a time; further ones wait in the system's queue
//! slow      who takes too long to send a request head, or to take in an answer, is disconnected
//! gone      an end of input while a request is worked on means that the client is gone: the request is given up
//! at last   no new connections, open requests are answered, idle connections are closed
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
use crate::patience::Patient;

/// Who a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client(pub(crate) SocketAddr);

/// After a failed `accept`: the system is out of files, and asking at once would only burn time.
const BREATH: Duration = Duration::from_millis(50);

/// Serves until it is told to stop, and then until all is answered or the time of grace is over.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    connected: Arc<Gauge>,
    mut stopped: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.client_time).half_close(false);
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        // Answers are written in one piece; waiting for more would only delay them.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Patient::new(stream, limits.client_time));
        let connection = graceful.watch(http.serve_connection(io, service(&router, address)));
        let (connected, places, most) = (connected.clone(), places.clone(), limits.connections);
        connected.set(most - places.available_permits());
        tokio::spawn(async move {
            // A client that broke off has been served as well as it could be.
            let _ = connection.await;
            drop(place);
            connected.set(most - places.available_permits());
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(limits.grace, graceful.shutdown()).await;
}

/// The router, with the client's address noted on every request.
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
