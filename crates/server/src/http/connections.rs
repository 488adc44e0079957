//! The connections of one listener: how many may be open, and how long a request's head may take.
//!
//! Both limits apply before authentication: a stranger on loopback can occupy connections, but neither all descriptors
//! of the process nor the other listener.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::connection_slots::{Place, Places, origin};
use super::polled_again::polled_again;
use ptyd_core::limits;
use ptyd_core::principal::UnixPeer;

/// The bytes of a connection. One type for all transports: the code of HTTP is there once.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that is ready for requests.
pub(crate) type Opened = (Box<dyn Stream>, Transport);

/// The transport of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transport {
    /// TCP, also below TLS, with the peer's address if the kernel reported it.
    Tcp {
        /// Its port identifies the process (`ss -tnp`).
        peer: Option<SocketAddr>,
        /// The server's end of it.
        server: Option<SocketAddr>,
    },
    /// The Unix socket, with the peer's process if the kernel reported it.
    Unix {
        /// The process.
        peer: Option<UnixPeer>,
    },
}

/// The limits of a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Open connections, including those upgraded to another protocol.
    pub(crate) connections: usize,
    /// Those of one address.
    pub(crate) of_one_address: usize,
    /// How long a TLS handshake and a head may take, and how long a connection may be idle before the head.
    pub(crate) head: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self::of(limits::CONNECTIONS_MAX)
    }
}

impl Bounds {
    /// The limits of a listener with so many connections, of which one address has the usual share.
    pub(crate) fn of(connections: usize) -> Self {
        let of_one_address = connections * limits::CONNECTIONS_PER_ADDRESS_MAX / limits::CONNECTIONS_MAX;
        Self { connections, of_one_address, head: limits::HEAD_TIMEOUT }
    }
}

/// Serves every connection until the server stops; then no new one is accepted, and open ones finish their requests.
/// `open` makes an accepted stream ready for requests, or gives it up; `peer` is its address, where there are any.
pub(crate) async fn serve<L: Listener, O: Future<Output = Option<Opened>> + Send + 'static>(
    mut listener: L,
    app: Router,
    open: impl Fn(L::Io) -> O,
    peer: impl Fn(&L::Addr) -> Option<SocketAddr>,
    bounds: Bounds,
    stopped: watch::Receiver<bool>,
) {
    let places = Places::new(bounds.connections, bounds.of_one_address);
    let mut connections = JoinSet::new();
    let mut refused: u64 = 0;
    loop {
        let (stream, from) = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            () = until(stopped.clone()) => break,
        };
        let Some((place, gone)) = places.take(origin(peer(&from))) else {
            // Logged once per episode, so that the client that causes it cannot fill the log, too.
            if refused == 0 {
                let (most, of_one) = (bounds.connections, bounds.of_one_address);
                tracing::warn!(most, of_one, "too many connections; further ones are closed at once");
            }
            refused += 1;
            continue;
        };
        if refused > 0 {
            tracing::warn!(refused, "connections are taken again");
            refused = 0;
        }
        let opened = tokio::time::timeout(bounds.head, open(stream));
        let (app, stopped) = (app.clone(), stopped.clone());
        connections.spawn(async move {
            let served = async {
                if let Ok(Some((stream, from))) = opened.await {
                    one(Placed { stream, place }, app, from, bounds.head, stopped).await;
                }
            };
            tokio::select! {
                biased;
                () = makes_room(gone) => {}
                () = served => {}
            }
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Until the connection is told to make room.
async fn makes_room(gone: oneshot::Receiver<()>) {
    // Its sender is dropped once it has asked for something.
    if gone.await.is_err() {
        std::future::pending().await
    }
}

async fn one(stream: Placed, app: Router, from: Transport, head: Duration, stopped: watch::Receiver<bool>) {
    let place = Arc::clone(&stream.place);
    let app = app.map_request(move |mut request: Request<Incoming>| {
        place.heard();
        request.extensions_mut().insert(ConnectInfo(from.clone()));
        request
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = polled_again(connection.as_mut()) => ended,
        () = until(stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|is| *is).await;
}

/// A stream together with the place of its connection, which is free when the stream is dropped, also after an upgrade.
struct Placed {
    stream: Box<dyn Stream>,
    place: Arc<Place>,
}

impl AsyncRead for Placed {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Placed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::future::ready;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    /// For what comes at once; longer than any time-out in here.
    const PATIENCE: Duration = Duration::from_secs(10);

    struct Rig {
        address: SocketAddr,
        stop: watch::Sender<bool>,
        served: tokio::task::JoinHandle<()>,
    }

    async fn listening(bounds: Bounds) -> Rig {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (stop, stopped) = watch::channel(false);
        let app = Router::new()
            .route("/", get(async |ConnectInfo(transport): ConnectInfo<Transport>| format!("{transport:?}")));
        let open = |stream| {
            let stream: Box<dyn Stream> = Box::new(stream);
            ready(Some((stream, Transport::Tcp { peer: None, server: None })))
        };
        let served = tokio::spawn(serve(listener, app, open, |peer| Some(*peer), bounds, stopped));
        Rig { address, stop, served }
    }

    impl Rig {
        /// A connection that has sent this.
        async fn sent(&self, bytes: &[u8]) -> TcpStream {
            let mut stream = TcpStream::connect(self.address).await.expect("it listens");
            // One that is closed already says so when it is read.
            let _ = stream.write_all(bytes).await;
            stream
        }
    }

    /// Reads until the other side closes or sends something.
    async fn heard(stream: &mut TcpStream) -> String {
        let mut bytes = vec![0; 4096];
        let n =
            tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await.expect("an answer or an end").unwrap_or(0);
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    }

    #[tokio::test]
    // promise: rest-9
    async fn a_connection_without_a_head_and_an_idle_one_are_closed() {
        let rig = listening(Bounds { head: Duration::from_millis(50), ..Bounds::default() }).await;
        let mut slow = rig.sent(b"GET / HTTP/1.1\r\nHost: lo").await;
        assert!(!heard(&mut slow).await.contains(" 200 "));
        let mut idle = rig.sent(ASK).await;
        let answer = heard(&mut idle).await;
        assert!(answer.contains(" 200 ") && answer.ends_with("Tcp { peer: None, server: None }"), "{answer}");
        assert_eq!(heard(&mut idle).await, "");
    }

    #[test]
    fn a_listener_holds_the_promised_number_of_connections() {
        let promised = (2_048, Duration::from_secs(30));
        assert_eq!((Bounds::default().connections, Bounds::default().head), promised);
    }

    #[tokio::test]
    // promise: rest-9
    async fn silent_connections_of_one_address_block_no_other_connections() {
        let rig = listening(Bounds { connections: 8, of_one_address: 6, ..Bounds::default() }).await;
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(rig.sent(b"").await);
        }
        // More than have a place; the oldest are closed.
        assert_eq!(heard(&mut silent[0]).await, "");
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.2:0".parse().expect("an address")).expect("an address of this machine");
        let mut other = socket.connect(rig.address).await.expect("it listens");
        other.write_all(ASK).await.expect("taken");
        assert!(heard(&mut other).await.contains(" 200 "));
        assert!(heard(&mut rig.sent(ASK).await).await.contains(" 200 "));
    }

    #[tokio::test]
    // promise: rest-9
    async fn a_connection_beyond_the_bound_is_closed_and_an_end_frees_a_place() {
        let rig = listening(Bounds { connections: 2, ..Bounds::default() }).await;
        let mut first = rig.sent(ASK).await;
        let mut second = rig.sent(ASK).await;
        for stream in [&mut first, &mut second] {
            assert!(heard(stream).await.contains(" 200 "));
        }
        assert_eq!(heard(&mut rig.sent(ASK).await).await, "");
        drop(first);
        // Its end is noticed in a moment.
        while !heard(&mut rig.sent(ASK).await).await.contains(" 200 ") {}
        rig.stop.send_replace(true);
        tokio::time::timeout(PATIENCE, rig.served).await.expect("it stops").expect("without a panic");
        assert_eq!(heard(&mut second).await, "");
    }
}
