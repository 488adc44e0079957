//! The whole server, put together: one per state directory, TCP and a Unix socket, one router behind both.
//!
//! Starting takes the lock first and accepts clients last. Stopping closes the listeners, answers open waits with
//! `server_restarting` and leaves every session to its holder: nothing in here ends a program.

mod authentication;
mod authorization_header;
mod browser_logins;
mod metrics_page;
mod nodes;
mod rate_limit;
mod refusals;
mod router;
mod tcp_access;
mod tls;

use std::fs;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::http::connections::{self, Bounds, Opened, Stream, Transport};
use crate::page::logins::Logins;
use crate::ws::SocketCount;
use authentication::Guard;
use ptyd_core::config::Config;
use ptyd_core::credentials::server_token::Token;
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::instance_lock::lock;
use ptyd_core::serve_error::ServeError;
use ptyd_core::sessions;
use ptyd_core::state_dir::{self, private_dir};
use ptyd_core::{unix_socket, unix_stream};
use tls::Tls;

/// How long answers may take once the server stops; two seconds in total are promised.
const LAST_ANSWERS: Duration = Duration::from_millis(1_500);

/// The addresses of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// The base URL of REST and MCP: the public one, or that of the address.
    pub url: String,
    /// The TCP address, with the actual port.
    pub address: SocketAddr,
    /// Whether the server's own token opens the URL; it does not from elsewhere.
    pub is_local: bool,
    /// The Unix socket.
    pub socket: PathBuf,
    /// The file with the token; `None` if the token was given.
    pub token_file: Option<PathBuf>,
}

/// The sockets that another process has opened for this server, instead of those that it opens by itself. The
/// configuration has their addresses.
#[derive(Debug, Default)]
pub struct Sockets {
    /// The TCP socket.
    pub tcp: Option<std::net::TcpListener>,
    /// The Unix socket, whose file stays when the server stops.
    pub unix: Option<std::os::unix::net::UnixListener>,
}

/// A moment that the server reports to its program.
#[derive(Debug, Clone, Copy)]
pub enum Stage<'a> {
    /// Clients can connect.
    Listens(&'a Listening),
    /// It was asked to stop, and answers what is open.
    Stops,
}

/// Serves until the process gets TERM, INT or HUP.
pub async fn serve(config: Config, sockets: Sockets, mut tell: impl FnMut(Stage<'_>)) -> Result<(), ServeError> {
    let network = &config.network;
    let missing = network.missing();
    if !missing.is_empty() {
        return Err(ServeError::Unprotected { address: network.listen, missing });
    }
    let tls = network.tls.clone().map(Tls::new).transpose()?.map(Arc::new);
    // Signals are caught first, so that a stop during the start is not lost.
    let stop = stop_signal().map_err(ServeError::Signals)?;
    private_dir(&config.state_dir)?;
    state_dir::check_inner(&config.state_dir)?;
    let _lock = lock(&config.state_dir)?;
    let (token, token_file) = match &config.token {
        Some(given) => {
            let token = Token::given(given).filter(|token| !token.is_weak());
            (token.ok_or(ServeError::Token)?, None)
        }
        None => {
            let path = config.state_dir.join("token");
            let remedy = "remove it, and the next start makes another one";
            let token = Token::kept(&path).map_err(|e| ServeError::unusable("the token", &path, &e, remedy))?;
            (token, Some(path))
        }
    };
    let cannot = |error| ServeError::Listen { address: network.listen, error };
    let tcp = match sockets.tcp {
        Some(inherited) => {
            inherited.set_nonblocking(true).and_then(|()| TcpListener::from_std(inherited)).map_err(cannot)?
        }
        None => TcpListener::bind(network.listen).await.map_err(cannot)?,
    };
    let address = tcp.local_addr().map_err(cannot)?;
    let is_inherited = sockets.unix.is_some();
    let unix = match sockets.unix {
        Some(inherited) => {
            let unix = inherited.set_nonblocking(true).and_then(|()| UnixListener::from_std(inherited));
            unix.map_err(ServeError::at(&config.socket))?
        }
        None => unix_socket::listen(&config.socket)?,
    };
    let socket_file = file_at(&config.socket).filter(|_| !is_inherited);
    let link = unix_socket::Link::make(&config.state_dir, &config.socket);
    if let Err(e) = &link {
        tracing::warn!(error = %e, "clients need --socket, because the state directory cannot hold a link to the socket");
    }
    let services = sessions::start(&config).await?;
    sessions::start_retention(&services);
    sessions::keep_whole(&services);
    sessions::keep_directory(&services);

    let dispatcher = Dispatcher::new(Arc::clone(&services));
    tokio::spawn(dispatcher.clone().end_sessions_of_gone_clients());
    tokio::spawn(dispatcher.give_back_memory());
    let audit = dispatcher.audit();
    if let Some(syslog) = &config.audit.syslog {
        audit.forward(syslog).map_err(ServeError::at(&config.state_dir))?;
    }
    tokio::spawn(async move { audit.keep_written().await });
    let audit = dispatcher.audit();
    let uid = own_uid().map_err(ServeError::at(&config.socket))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = network.public_url.as_ref().map_or_else(|| format!("{scheme}://{address}"), ToString::to_string);
    let guard = Guard::new(token, dispatcher.tokens(), dispatcher.tickets(), uid, &config)
        .recorded_in(dispatcher.audit())
        .with_new_tokens(dispatcher.new_tokens())
        .with_logins(Logins::new(&local_url(scheme, address), &url));
    let visits = SocketCount::new();
    let unix_peers = dispatcher.unix_peers();
    let guard = guard.with_peers(unix_peers.clone()).in_lanes(dispatcher.lanes());
    let app = router::router(dispatcher, guard, &visits, &url, &config);
    let chosen = config.state_dir.join("listen");
    // Only programs that read the address there are affected: a full disk must not prevent clients from ending
    // sessions.
    if let Err(e) = state_dir::write(&chosen, &format!("{address}\n")) {
        tracing::warn!(file = %chosen.display(), error = %e, "the address is not written there");
    }

    let (stopping, stopped) = watch::channel(false);
    let open = |stream: TcpStream| open_tcp(stream, tls.clone());
    let bounds = Bounds::of(sessions::connections_max());
    let over_tcp =
        connections::serve(NoDelayListener(tcp), app.clone(), open, |peer| Some(*peer), bounds, stopped.clone());
    let open = |stream: UnixStream| {
        let peer = unix_peers.peer(stream.as_fd());
        async {
            let stream: Box<dyn Stream> = Box::new(unix_stream::UnixStream::new(stream.into_std().ok()?).ok()?);
            Some((stream, Transport::Unix { peer: peer.await }))
        }
    };
    let over_unix = connections::serve(unix, app, open, |_| None, bounds, stopped);
    let mut serving = pin!(async { tokio::join!(over_tcp, over_unix) });

    let is_local = network.public_url.is_none() && tls.is_none();
    tell(Stage::Listens(&Listening { url, address, is_local, socket: config.socket.clone(), token_file }));
    sessions::keep_spare_holder(&services);
    tokio::select! {
        _ = stop => {}
        // A listener never ends by itself; if one did, the server must not continue without it.
        _ = &mut serving => tracing::error!("the listeners have ended"),
    }
    tell(Stage::Stops);
    tracing::info!("stopping; sessions keep running");
    let _ = stopping.send(true);
    let last = async { tokio::join!(sessions::stop(&services), serving, visits.closed()) };
    if tokio::time::timeout(LAST_ANSWERS, last).await.is_err() {
        tracing::info!("some connections did not end in time");
    }
    let _ = tokio::time::timeout(LAST_ANSWERS, audit.flush()).await;
    // Best effort: the next server removes what is left.
    if socket_file.is_some() && socket_file == file_at(&config.socket) {
        let _ = fs::remove_file(&config.socket);
    }
    let _ = fs::remove_file(&chosen);
    drop(link);
    Ok(())
}

/// The address of the server for browsers on its machine.
fn local_url(scheme: &str, address: SocketAddr) -> String {
    let ip = if address.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { address.ip() };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

/// Identifies the file at a path: a service manager may have put its own socket in the place of ours.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Makes a TCP connection ready for requests: with TLS, after the handshake.
async fn open_tcp(stream: TcpStream, tls: Option<Arc<Tls>>) -> Option<Opened> {
    let transport = Transport::Tcp { peer: stream.peer_addr().ok(), server: stream.local_addr().ok() };
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => Box::new(stream),
            Err(error) => {
                tracing::debug!(%error, ?transport, "a TLS handshake failed");
                return None;
            }
        },
    };
    Some((stream, transport))
}

/// A TCP listener whose connections send small answers at once (TCP_NODELAY).
struct NoDelayListener(TcpListener);

impl Listener for NoDelayListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        let (stream, from) = Listener::accept(&mut self.0).await;
        // The option is not essential.
        let _ = stream.set_nodelay(true);
        (stream, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Resolves when the process is asked to stop; catches the signals from this call on.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! { _ = term.recv() => {} _ = int.recv() => {} _ = hup.recv() => {} }
    })
}

/// The user id of this process, from the same source as those of peers.
fn own_uid() -> io::Result<u32> {
    let (one, _other) = UnixStream::pair()?;
    Ok(one.peer_cred()?.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    // promise: access-14
    async fn an_address_that_others_can_reach_is_refused_without_a_public_url_and_tls_or_a_proxy() {
        let dir = tempfile::tempdir().expect("a directory");
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let listen = listen.parse().expect("an address");
            let mut open = Config::of(listen, dir.path().join("run/ptyd.sock"), dir.path().join("state"));
            let missing = async |open: &Config| match serve(open.clone(), Sockets::default(), |_| ()).await {
                Err(ServeError::Unprotected { missing, .. }) => missing.len(),
                other => panic!("{other:?}"),
            };
            assert_eq!(missing(&open).await, 2);
            open.network.public_url = "https://pty.example".parse().ok();
            assert_eq!(missing(&open).await, 1);
            open.network.public_url = None;
            open.network.trusted_proxies = "10.0.0.0/8".parse().into_iter().collect();
            assert_eq!(missing(&open).await, 1);
        }
        assert!(!dir.path().join("state").exists(), "nothing was begun");
    }
}
