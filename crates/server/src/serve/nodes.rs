//! The nodes behind one load balancer: requests for another node's ids are refused here, or forwarded to that node once.
//!
//! An id names its node (`ptyd_core::ids`). The first id of a request decides: in its path, else in a header of MCP. A
//! forwarded request has a `Via` header with this node's name, so the next node neither forwards it again nor takes it for
//! one of its own machine.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use api::ErrorCode;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use crate::http::problem::ProblemResponse;
use crate::rest::DOCS;
use ptyd_core::config::{NODE_IN_URL, NetworkConfig};
use ptyd_core::ids::node_of;
use ptyd_core::limits::{NODE_CONNECT, NODE_PROBE_EVERY};

/// The headers in which clients of MCP repeat an id, the most specific first: of the terminal, of the task, of the
/// conversation.
const MCP_IDS: [&str; 3] = ["mcp-param-session", "mcp-name", "mcp-session-id"];
/// Headers for one connection only (RFC 9110 §7.6.1), and one that this server has answered.
const OF_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
];
/// The route of MCP.
const MCP: &str = "/mcp";
/// How the URI of a session's resource begins.
const RESOURCES: &str = "ptyd://sessions/";
/// How each node calls itself in `Via`.
const NAME: &str = "ptyd-";

/// This node among the others.
#[derive(Debug)]
pub(super) struct Nodes {
    own: u16,
    /// The addresses of all nodes, with `{node}`; `None` if this node forwards nothing.
    peers: Option<String>,
    /// By node, the one question whether it stands still that all requests share which wait for its answers.
    silences: Mutex<HashMap<u16, WeakShared<BoxFuture<'static, ()>>>>,
}

impl Nodes {
    pub(super) fn new(network: &NetworkConfig) -> Self {
        let peers = network.peers.as_deref().and_then(|url| url.strip_prefix("http://"));
        Self { own: network.node, peers: peers.map(str::to_owned), silences: Mutex::default() }
    }

    /// The other node whose id the request names.
    pub(super) fn elsewhere(&self, headers: &HeaderMap, uri: &Uri) -> Option<u16> {
        named_node(headers, uri).filter(|node| *node != self.own)
    }

    /// Whether this node forwards requests of its TCP address.
    pub(super) fn forwards(&self) -> bool {
        self.peers.is_some()
    }

    /// Whether this node forwards the request if its body names another node.
    pub(super) fn forwards_body_of(&self, request: &Request) -> bool {
        self.forwards() && request.uri().path() == MCP && !is_forwarded_by_a_node(request.headers())
    }

    /// The head of a message of MCP, as one that belongs to no conversation: its own is known to this node only.
    pub(super) fn without_conversation(request: &Request) -> Request {
        let mut again = Request::new(Body::empty());
        *again.method_mut() = request.method().clone();
        *again.uri_mut() = request.uri().clone();
        again.headers_mut().clone_from(request.headers());
        again.headers_mut().remove(MCP_IDS[2]);
        again
    }

    /// Answers a request for another node: that node's answer, if this one forwards.
    pub(super) async fn answer(&self, node: u16, is_tcp: bool, request: Request) -> Result<Response, ProblemResponse> {
        let misdirected = |why: &str| {
            let help = format!(
                "the id in this request is on node {node}, and this is node {}{why}; send the request to node {node}",
                self.own
            );
            Err(ProblemResponse::new(ErrorCode::OtherNode, help))
        };
        // The user at the Unix socket has no credential that another node knows.
        let Some(peers) = self.peers.as_ref().filter(|_| is_tcp) else { return misdirected("") };
        if is_forwarded_by_a_node(request.headers()) {
            return misdirected(", to which another node has forwarded it");
        }
        let lost = |error: &dyn std::fmt::Display| {
            let help = format!("node {node} was not reached, or the connection was lost: {error}");
            ProblemResponse::new(ErrorCode::NodeUnreachable, help)
        };
        let address = peers.replace(NODE_IN_URL, &node.to_string());
        let stream = connect(&address).await.map_err(|error| lost(&error))?;
        tokio::select! {
            answer = self.forward(stream, request) => answer.map_err(|error| lost(&error)),
            () = self.silence(node, address) => Err(lost(&"it answers nothing")),
        }
    }

    /// Returns once this node answers nothing any more.
    fn silence(&self, node: u16, address: String) -> Shared<BoxFuture<'static, ()>> {
        let mut silences = self.silences.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has ended belongs to requests that end now.
        let known = silences.get(&node).and_then(WeakShared::upgrade).filter(|silence| silence.peek().is_none());
        known.unwrap_or_else(|| {
            let silence = silent(address).boxed().shared();
            silences.extend(silence.downgrade().map(|weak| (node, weak)));
            silence
        })
    }

    /// One connection for each request: what its client closes, the other node sees closed.
    async fn forward(&self, stream: TcpStream, mut request: Request) -> hyper::Result<Response> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection.with_upgrades());
        let upgrade = request.headers().get(header::UPGRADE).cloned();
        let ours = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        remove_of_connection(&mut parts.headers);
        if let Some(protocol) = upgrade {
            parts.headers.insert(header::CONNECTION, header::UPGRADE.into());
            parts.headers.insert(header::UPGRADE, protocol);
        }
        let via =
            HeaderValue::try_from(format!("1.1 {NAME}{}", self.own)).expect("invariant: a number is a header's text");
        parts.headers.append(header::VIA, via);
        if let (false, Some(host)) = (parts.headers.contains_key(header::HOST), parts.uri.authority()) {
            parts.headers.extend(HeaderValue::from_str(host.as_str()).map(|host| (header::HOST, host)));
        }
        let place = parts.uri.path_and_query().cloned();
        let mut passed = Request::new(body);
        *passed.method_mut() = parts.method;
        *passed.uri_mut() = place.map_or_else(Uri::default, Uri::from);
        *passed.version_mut() = Version::HTTP_11;
        *passed.headers_mut() = parts.headers;
        let mut answer = sender.send_request(passed).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let theirs = hyper::upgrade::on(&mut answer);
            if let Some(ours) = ours {
                tokio::spawn(join(ours, theirs));
            }
        } else {
            remove_of_connection(answer.headers_mut());
        }
        // This node says itself which pages of other origins may read the answer.
        let is_cors = |name: &HeaderName| name.as_str().starts_with("access-control-");
        let cors: Vec<_> = answer.headers().keys().filter(|name| is_cors(name)).cloned().collect();
        cors.iter().for_each(|name| drop(answer.headers_mut().remove(name)));
        Ok(answer.map(Body::new).into_response())
    }
}

/// Connects to a node within bounded time, names included.
async fn connect(address: &str) -> io::Result<TcpStream> {
    // A URL of http without a port means port 80.
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let address = if has_port { address.to_owned() } else { format!("{address}:80") };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection in {} s", NODE_CONNECT.as_secs()));
    let stream = timeout(NODE_CONNECT, TcpStream::connect(address)).await.map_err(late)??;
    stream.set_nodelay(true)?;
    // A machine that was replaced has the address, and not the connection.
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, NODE_PROBE_EVERY)?;
    sockopt::set_tcp_keepintvl(&stream, NODE_PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(&stream, 3)?;
    Ok(stream)
}

/// Returns once a node has twice answered nothing. The answer to a wait may take hours, so only a second request tells whether its node
/// stands still (decision 0119): a stopped process still accepts connections, and a network that drops packets ends none.
async fn silent(address: String) {
    let mut silences = 0;
    while silences < 2 {
        if silences == 0 {
            sleep_until(Instant::now() + NODE_PROBE_EVERY).await;
        }
        silences = if is_silent(&address).await { silences + 1 } else { 0 };
    }
}

/// Whether a node answers nothing to a small request in time. Any answer tells that its server runs. A refusal comes from a kernel,
/// which also ends the connections of a server that is gone.
async fn is_silent(address: &str) -> bool {
    match timeout(NODE_CONNECT, ask(address)).await {
        Ok(Ok(())) => false,
        Ok(Err(error)) => error.kind() == io::ErrorKind::TimedOut,
        Err(_) => true,
    }
}

async fn ask(address: &str) -> io::Result<()> {
    let stream = connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let host = HeaderValue::from_str(address).map_err(io::Error::other)?;
    let request = Request::get("/livez").header(header::HOST, host).body(Body::empty()).map_err(io::Error::other)?;
    sender.send_request(request).await.map_err(io::Error::other)?;
    Ok(())
}

/// Carries the bytes of a socket in both directions until both ends have closed it.
async fn join(ours: OnUpgrade, theirs: OnUpgrade) {
    let (Ok(ours), Ok(theirs)) = tokio::join!(ours, theirs) else { return };
    // A connection that breaks off ends both halves.
    let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(ours), &mut TokioIo::new(theirs)).await;
}

fn remove_of_connection(headers: &mut HeaderMap) {
    OF_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
}

fn is_forwarded_by_a_node(headers: &HeaderMap) -> bool {
    let passed = headers.get_all(header::VIA).iter().filter_map(|via| via.to_str().ok()).flat_map(|via| via.split(','));
    passed.filter_map(|hop| hop.split_whitespace().nth(1)).any(|name| name.starts_with(NAME))
}

/// The node of an id, or of a resource, which MCP names by its URI.
fn node_of_mcp(name: &str) -> Option<u16> {
    node_of(name.strip_prefix(RESOURCES).and_then(|rest| rest.split('/').next()).unwrap_or(name))
}

/// The node of the first id in a request.
fn named_node(headers: &HeaderMap, uri: &Uri) -> Option<u16> {
    let path = uri.path();
    let id_after = |prefix| path.strip_prefix(prefix).and_then(|rest: &str| rest.split('/').next());
    if let Some(id) = ["/terminals/", "/approvals/", "/ask/"].into_iter().find_map(id_after) {
        return node_of(id);
    }
    match path {
        MCP => MCP_IDS.iter().filter_map(|name| headers.get(*name)?.to_str().ok()).find_map(node_of_mcp),
        DOCS => uri.query()?.split('&').find_map(|pair| pair.strip_prefix("ticket=")).and_then(node_of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_first_id_of_a_request_names_its_node() {
        let of = |path: &str, list: &[_]| named_node(&headers(list), &path.parse().expect("a path"));
        let (session, talk) = (("mcp-param-session", "s2-aaaaaaaaaa"), ("mcp-session-id", "m3-aaaaaaaaaa"));
        assert_eq!(of("/terminals/s2-aaaaaaaaaa/output?since=0", &[talk]), Some(2));
        assert_eq!(of("/approvals/a4-aaaaaaaaaa", &[]), Some(4));
        assert_eq!(of("/ask/p5-AbC", &[]), Some(5));
        assert_eq!(of("/docs?ticket=t6-AbC", &[]), Some(6));
        assert_eq!(of("/mcp", &[talk, session]), Some(2));
        assert_eq!(of("/mcp", &[("mcp-name", "terminal"), talk]), Some(3));
        assert_eq!(of("/mcp", &[("mcp-name", "s7-aaaaaaaaaa.c1.2")]), Some(7));
        assert_eq!(of("/mcp", &[("mcp-name", "ptyd://sessions/s8-aaaaaaaaaa/screen")]), Some(8));
        for path in ["/terminals/build", "/terminals/s2-build", "/terminals", "/tokens/a2-x", "/mcp"] {
            assert_eq!(of(path, &[]), None, "{path}");
        }
    }

    #[test]
    fn a_request_that_a_node_has_forwarded_is_known_and_one_of_a_proxy_is_not() {
        let of = |via| is_forwarded_by_a_node(&headers(&[("via", via)]));
        assert_eq!(["1.1 ptyd-2", "1.0 fred, 1.1 ptyd-0"].map(of), [true, true]);
        assert_eq!(["1.1 fred", "", "1.1 my-ptyd-2"].map(of), [false, false, false]);
    }
}
