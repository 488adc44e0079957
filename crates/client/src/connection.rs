//! Persistent HTTP/1.1 connections: one request at a time on each, as many connections as are needed at once.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, UPGRADE, USER_AGENT};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::error::ClientError;
use crate::owner;

type Sender = SendRequest<Full<Bytes>>;

/// Idle connections to keep; a client rarely has more than two calls open.
const IDLE_MAX: usize = 4;

/// The longest time for an answer, beyond the requested wait.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The address of a server.
#[derive(Debug, Clone)]
pub enum ServerAddress {
    /// Its Unix socket.
    Unix {
        /// Its path.
        path: PathBuf,
        /// A user who may listen there besides this user and root.
        owner: Option<u32>,
    },
    /// Its loopback listener.
    Tcp(SocketAddr),
    /// A URL, perhaps of a proxy in front of it.
    Url(ServerUrl),
}

/// The URL of a server: `http` or `https`, a host, and perhaps a port and a path that a proxy adds.
#[derive(Clone)]
pub struct ServerUrl {
    host: String,
    port: u16,
    /// The host, and the port if it is not the scheme's.
    authority: String,
    /// In front of every path; without a slash at the end.
    prefix: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl std::fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

impl ServerUrl {
    /// Reads the URL. For `https`, the certificates of the system are loaded, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url: Uri = text.parse().map_err(|error| format!("{text:?} is not a URL: {error}"))?;
        let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return Err(format!("{text:?} is not a URL: it needs a scheme and a host, such as https://ptyd.example"));
        };
        if authority.as_str().contains('@') || url.query().is_some() {
            return Err("a URL with a user or a query is not accepted; PTYD_TOKEN has the token".to_owned());
        }
        let (port, is_secret) = match scheme {
            "https" => (443, true),
            "http" => (80, false),
            _ => return Err(format!("{scheme:?} is not a scheme of ptyd's; use http or https")),
        };
        if authority.port_u16().is_none() && authority.as_str().rsplit(']').next().is_some_and(|end| end.contains(':'))
        {
            return Err(format!("{text:?} has a port that is not a number from 0 to 65535"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = if is_secret {
            let name =
                ServerName::try_from(host.clone()).map_err(|error| format!("{host:?} is not a host: {error}"))?;
            Some((TlsConnector::from(Arc::new(with_system_roots()?)), name))
        } else {
            None
        };
        let prefix = url.path().trim_end_matches('/').to_owned();
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(port),
            authority: authority.as_str().to_ascii_lowercase(),
            prefix,
            tls,
        })
    }

    /// Whether a token that is sent there can be read on the way.
    pub fn is_readable_on_the_way(&self) -> bool {
        let is_loopback =
            self.host.eq_ignore_ascii_case("localhost") || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        self.tls.is_none() && !is_loopback
    }
}

fn with_system_roots() -> Result<ClientConfig, String> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        let why = loaded.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(format!(
            "ptyd found no root certificates for https{why}; install ca-certificates, or set SSL_CERT_FILE"
        ));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct Pool {
    place: ServerAddress,
    token: Option<String>,
    /// The name that the client gives itself.
    pub(crate) name: Option<String>,
    /// The name of its program.
    pub(crate) program: &'static str,
    idle: Mutex<Vec<Sender>>,
    pub(crate) answer_max: Duration,
}

impl Pool {
    pub(crate) fn new(place: ServerAddress, token: Option<String>) -> Self {
        Self { place, token, name: None, program: "ptyd", idle: Mutex::new(Vec::new()), answer_max: ANSWER_MAX }
    }

    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self.place, ServerAddress::Url(_))
    }

    /// The answer, if it comes in time: a frozen server still accepts connections.
    pub(crate) async fn answered<T>(
        &self,
        waits: Duration,
        answer: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let most = self.answer_max + waits;
        tokio::time::timeout(most, answer).await.unwrap_or(Err(ClientError::Silent(most)))
    }

    /// Sends one request and receives its whole answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        key: Option<&str>,
    ) -> Result<Answer, ClientError> {
        let mut request = self.request(method, path, body)?;
        if let Some(name) = &self.name {
            request.headers_mut().insert("ptyd-client", header(name)?);
        }
        if let Some(key) = key {
            request.headers_mut().insert("idempotency-key", header(key)?);
        }
        // A persistent connection may have been closed meanwhile. Hyper returns the request if no part of it was sent,
        // and only then is it sent again.
        while let Some(mut kept) = self.kept() {
            // The connection's own task notices a server's death only when it is polled.
            tokio::task::yield_now().await;
            if kept.ready().await.is_err() {
                continue;
            }
            match kept.try_send_request(request).await {
                Ok(response) => return self.finish(kept, response).await,
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(ClientError::Broken(failed.into_error())),
                },
            }
        }
        let mut fresh = self.connect().await?;
        let response = fresh.send_request(request).await.map_err(ClientError::Broken)?;
        self.finish(fresh, response).await
    }

    /// Requests an upgrade to another protocol; the inner error is the answer of a server that refuses.
    pub(crate) async fn upgrade(
        &self,
        path: &str,
        protocol: &'static str,
    ) -> Result<Result<TokioIo<Upgraded>, Answer>, ClientError> {
        let mut request = self.request(Method::GET, path, Bytes::new())?;
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        request.headers_mut().insert(UPGRADE, HeaderValue::from_static(protocol));
        let mut fresh = self.connect().await?;
        let response = fresh.send_request(request).await.map_err(ClientError::Broken)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return self.finish(fresh, response).await.map(Err);
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(ClientError::Broken)?;
        Ok(Ok(TokioIo::new(upgraded)))
    }

    /// Receives a long answer piece by piece, until its end or until `piece` wants no more; it may be silent for as long as `waits`.
    /// A refusal is the inner error, and has given no piece.
    pub(crate) async fn get(
        &self,
        path: &str,
        waits: Duration,
        piece: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<Result<(), Answer>, ClientError> {
        let begun = async {
            let mut fresh = self.connect().await?;
            let request = self.request(Method::GET, path, Bytes::new())?;
            let response = fresh.send_request(request).await.map_err(ClientError::Broken)?;
            Ok((fresh, response))
        };
        let (fresh, response) = self.answered(Duration::ZERO, begun).await?;
        if !response.status().is_success() {
            return self.finish(fresh, response).await.map(Err);
        }
        let mut body = response.into_body();
        while let Some(frame) = self.answered(waits, async { Ok(body.frame().await) }).await? {
            if frame.map_err(ClientError::Broken)?.data_ref().is_some_and(|data| !piece(data)) {
                break;
            }
        }
        Ok(Ok(()))
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, ClientError> {
        let (host, prefix) = match &self.place {
            ServerAddress::Unix { .. } => ("localhost".to_owned(), ""),
            ServerAddress::Tcp(address) => (address.to_string(), ""),
            ServerAddress::Url(url) => (url.authority.clone(), &*url.prefix),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{prefix}{path}"))
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, format!("{}/{}", self.program, env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|e| ClientError::Strange(e.to_string()))?;
        if let Some(token) = &self.token {
            let mut value = header(&format!("Bearer {token}"))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    async fn connect(&self) -> Result<Sender, ClientError> {
        match &self.place {
            ServerAddress::Unix { path, owner } => {
                let stream = UnixStream::connect(path).await.map_err(|e| unreached(path, e))?;
                owner::check(&stream, path, *owner).map_err(ClientError::Closed)?;
                handshake(stream).await
            }
            ServerAddress::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(ClientError::NoServer)?;
                // Without this option small requests would wait for more data.
                let _ = stream.set_nodelay(true);
                handshake(stream).await
            }
            ServerAddress::Url(url) => {
                let failed = |error: io::Error| {
                    ClientError::Unreachable(io::Error::new(error.kind(), format!("{url}: {error}")))
                };
                let stream = TcpStream::connect((&*url.host, url.port)).await.map_err(failed)?;
                let _ = stream.set_nodelay(true);
                match &url.tls {
                    Some((connector, name)) => {
                        handshake(connector.connect(name.clone(), stream).await.map_err(failed)?).await
                    }
                    None => handshake(stream).await,
                }
            }
        }
    }

    fn kept(&self) -> Option<Sender> {
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop()
    }

    async fn finish(
        &self,
        sender: Sender,
        response: hyper::Response<hyper::body::Incoming>,
    ) -> Result<Answer, ClientError> {
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(ClientError::Broken)?.to_bytes();
        let mut idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !sender.is_closed() && idle.len() < IDLE_MAX {
            idle.push(sender);
        }
        Ok(Answer { status, body })
    }
}

/// Why no server could be connected to at `path`.
fn unreached(path: &Path, error: io::Error) -> ClientError {
    if error.kind() == io::ErrorKind::PermissionDenied {
        ClientError::Closed(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    } else {
        let why = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no socket {}", path.display()),
            io::ErrorKind::ConnectionRefused => format!("no server listens on {}", path.display()),
            _ => format!("{}: {error}", path.display()),
        };
        ClientError::NoServer(io::Error::new(error.kind(), why))
    }
}

fn header(text: &str) -> Result<HeaderValue, ClientError> {
    HeaderValue::from_str(text).map_err(|e| ClientError::Strange(e.to_string()))
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Sender, ClientError> {
    let (sender, connection) = Builder::new().handshake(TokioIo::new(stream)).await.map_err(ClientError::Broken)?;
    // The connection ends with its last sender, or with the upgraded stream.
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}
