//! Accepting connections, with limits for slow, disconnected or too many clients.
//!
//! ```text
//! limit      a maximum number of open connections; further ones wait in the system's backlog
//! address    a maximum number of connections from one address, except for trusted proxies; further ones are refused
//! timeouts   a client that takes too long to send a request head, or to read a response, is disconnected
//! cancel     end of input during a request means that the client has disconnected: the request is cancelled
//! shutdown   no new connections, open requests are answered, idle connections are closed
//! ```

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Weak};
use std::time::Duration;

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
use tokio_io_timeout::TimeoutWriter;

use crate::app::{SharedState, SwitchingService};
use crate::metrics::Metric;
use crate::options::Limits;

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    /// The address of the client: behind a trusted proxy, the one that the proxy reports.
    pub(crate) address: IpAddr,
    /// The address of the TCP connection.
    pub(crate) peer: IpAddr,
}

/// The delay after a failed `accept`: the system is out of file descriptors, and an immediate retry would
/// spin. Also the maximum time for writing a refusal.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Serves until `stopped` is set, and then until all open requests are answered or the grace period is over.
pub(crate) async fn serve(
    (listener, service, shared): (TcpListener, SwitchingService, Arc<SharedState>),
    limits: Limits,
    connected: Arc<Metric>,
    mut stopped: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut addresses = Addresses::default();
    let refusal = refusal(limits.connections_per_address);
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
        let peer = address.ip();
        // A trusted proxy forwards many clients.
        let most = if shared.proxies.trusts(peer) { usize::MAX } else { limits.connections_per_address };
        let Some(counted) = addresses.enter(peer, most, limits.connections) else {
            // The send buffer of a new connection is empty; a client that sent more than its head
            // may miss the response.
            if tokio::time::timeout(RETRY_DELAY, stream.writable()).await.is_ok() {
                let _ = stream.try_write(refusal.as_bytes());
            }
            continue;
        };
        // Responses are written at once; Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        // A client that does not read its response must not hold a connection forever.
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(limits.client_timeout));
        let (service, shared) = (service.clone(), shared.clone());
        let answer = service_fn(move |mut request: Request<Incoming>| {
            let address = shared.proxies.client(peer, request.headers());
            request.extensions_mut().insert(Client { address, peer });
            TowerToHyperService::new(service.router()).call(request.map(Body::new))
        });
        let connection = graceful.watch(http.serve_connection(TokioIo::new(Box::pin(stream)), answer));
        let (connected, permits, most) = (connected.clone(), permits.clone(), limits.connections);
        connected.set(most - permits.available_permits());
        tokio::spawn(async move {
            // An error means that the client disconnected: it cannot be reported.
            let _ = connection.await;
            drop((permit, counted));
            connected.set(most - permits.available_permits());
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(limits.grace, graceful.shutdown()).await;
}

/// The connections per address: each connection holds a clone of its address's `Arc`.
#[derive(Default)]
struct Addresses(HashMap<IpAddr, Weak<()>>);

impl Addresses {
    /// Counts a connection until the result is dropped; `None` if its address already has `most`.
    fn enter(&mut self, address: IpAddr, most: usize, most_connections: usize) -> Option<Arc<()>> {
        if self.0.len() > 2 * most_connections {
            self.0.retain(|_, open| open.strong_count() > 0);
        }
        let open = self.0.entry(network(address)).or_default();
        let counted = (open.strong_count() < most).then(|| open.upgrade().unwrap_or_default())?;
        *open = Arc::downgrade(&counted);
        Some(counted)
    }
}

/// The address that limits count by: for IPv6 the /64 network, because one client has 2⁶⁴ addresses.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// The response to a connection beyond the limit, written without a router.
fn refusal(most: usize) -> String {
    let error =
        format!("{{\"error\":\"this address has {most} open connections already: close some of them\"}}");
    format!(
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: {}\r\nRetry-After: 1\r\n\
         Connection: close\r\n\r\n{error}",
        error.len()
    )
}
