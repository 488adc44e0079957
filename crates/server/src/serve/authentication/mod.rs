//! Authentication middleware: the one layer around every route of both listeners.
//!
//! A request over TCP that `tcp_access` lets pass needs a bearer token; a remote one needs a named token, because the
//! server's own is for this machine. A connection to the Unix socket must come from the same user or from root, as the kernel
//! reports. A person's browser at a page for people (`secret_page/`) logs in with a token, or is of the server's user, as the
//! kernel reports. A handler always gets a [`Principal`], and there is no other way to get one. A WebSocket that opens without a
//! credential gets its principal by its first message.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use api::ErrorCode;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::authorization_header::{bearer, password};
use super::browser_logins::Browser;
use super::nodes::Nodes;
use super::rate_limit::{Buckets, Rate};
use super::refusals::{self, RefusalRecorder};
use super::tcp_access::{self, Ends, Locality, OPEN, TcpAccess};
use crate::http::connections::Transport;
use crate::http::misdirected::{Forwarding, Misdirected};
use crate::http::problem::ProblemResponse;
use crate::http::request_body::RequestBodies;
use crate::http::token_revocation;
use crate::page;
use crate::page::logins::{self, Logins};
use crate::rest::DOCS;
use crate::secret_page;
use crate::ws::first_message::{Admission, Admit, Admitted, Credential};
use ptyd_core::action::ActionError;
use ptyd_core::audit::AuditLog;
use ptyd_core::config::Config;
use ptyd_core::credentials::named_tokens::{PREFIX, Tokens};
use ptyd_core::credentials::peer_users::PeerUsers;
use ptyd_core::credentials::server_token::Token;
use ptyd_core::credentials::tickets::Tickets;
use ptyd_core::ids::IdKind;
use ptyd_core::lane::Lanes;
use ptyd_core::limits;
use ptyd_core::principal::{Grant, PeerSession, Principal, Scope, TicketTarget, UnixPeer};
use ptyd_core::sessions::{NewTokens, UnixPeers};

/// It must not reveal which tokens exist.
const TOKEN_REFUSED: &str = "the bearer token is not valid here (unknown, revoked or expired)";
/// Makes a browser ask for a token, as the password of whatever name.
const BROWSERS_LOG_IN: HeaderValue =
    HeaderValue::from_static("Basic realm=\"ptyd: a token is the password\", charset=\"UTF-8\"");

/// An authenticated caller, and its ticket's grant if it used one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authenticated {
    principal: Principal,
    grant: Option<Grant>,
}

/// The credentials and limits that the layer checks.
#[derive(Debug)]
pub(super) struct Guard {
    /// The bearer token of the user that runs the server.
    token: Token,
    /// The named tokens.
    tokens: Arc<Tokens>,
    /// One-time tickets, each for one socket or for the docs.
    tickets: Arc<Tickets>,
    /// The log-ins of browsers.
    logins: Arc<Logins>,
    /// The user id of the server.
    uid: u32,
    /// The rules of the TCP listener.
    access: TcpAccess,
    /// The nodes behind the same load balancer.
    nodes: Nodes,
    /// The users behind connections over TCP.
    peer_users: PeerUsers,
    /// The sessions of connected processes, to know a person's browser from a program in a session.
    peers: Option<UnixPeers>,
    /// The tokens that other nodes have made meanwhile.
    new_tokens: Option<NewTokens>,
    /// Request rates, by principal.
    asked: Buckets<String>,
    /// Rates of requests without a valid token, by listener.
    failed: Buckets<bool>,
    /// The warnings about wrong tokens that the server has logged.
    refused: Mutex<RefusalCount>,
    /// The request bodies of each principal.
    bodies: RequestBodies,
    /// The audit of refused requests.
    refusals: RefusalRecorder,
    /// Places of sockets that wait for a credential in their first message.
    waiting: Arc<Semaphore>,
}

/// Counts requests with wrong credentials between two log lines.
#[derive(Debug, Default)]
struct RefusalCount {
    silent_until: Option<Instant>,
    unnamed: u64,
}

impl RefusalCount {
    /// Counts one; returns the number of uncounted others if this one is to be logged.
    fn count(&mut self, now: Instant) -> Option<u64> {
        if self.silent_until.is_some_and(|until| now < until) {
            self.unnamed += 1;
            return None;
        }
        self.silent_until = Some(now + limits::REFUSED_LOGGED_EVERY);
        Some(std::mem::take(&mut self.unnamed))
    }
}

impl Guard {
    /// Uses these tokens and tickets, with the configured rates.
    pub(super) fn new(token: Token, tokens: Arc<Tokens>, tickets: Arc<Tickets>, uid: u32, config: &Config) -> Self {
        let rate = |count: u32, seconds: u32| Rate::per_second(count, count.saturating_mul(seconds));
        Self {
            token,
            tokens,
            tickets,
            logins: Arc::new(Logins::new("http://127.0.0.1", "http://127.0.0.1")),
            uid,
            access: TcpAccess::new(&config.network),
            nodes: Nodes::new(&config.network),
            peer_users: PeerUsers::here(),
            peers: None,
            new_tokens: None,
            asked: Buckets::new(rate(config.requests_per_second, limits::REQUESTS_BURST_SECONDS)),
            failed: Buckets::new(rate(config.failures_per_second, limits::FAILURES_BURST_SECONDS)),
            refused: Mutex::default(),
            bodies: RequestBodies::default(),
            refusals: RefusalRecorder::default(),
            waiting: Arc::new(Semaphore::new(limits::SOCKETS_WITHOUT_CREDENTIAL_MAX)),
        }
    }

    /// Learns of tokens that other nodes make.
    pub(super) fn with_new_tokens(self, new_tokens: NewTokens) -> Self {
        Self { new_tokens: Some(new_tokens), ..self }
    }

    /// Knows these log-ins of browsers.
    pub(super) fn with_logins(self, logins: Logins) -> Self {
        Self { logins: Arc::new(logins), ..self }
    }

    /// The log-ins of browsers.
    pub(super) fn logins(&self) -> Arc<Logins> {
        Arc::clone(&self.logins)
    }

    /// Large bodies of requests are taken in these lanes.
    pub(super) fn in_lanes(self, lanes: Arc<Lanes>) -> Self {
        Self { bodies: RequestBodies::in_lanes(lanes), ..self }
    }

    /// Knows the sessions of connected processes.
    pub(super) fn with_peers(self, peers: UnixPeers) -> Self {
        Self { peers: Some(peers), ..self }
    }

    /// Whether the kernel says that a person's browser may be at the other end: a process of the server's user, in no session.
    async fn is_users_process(&self, peer: SocketAddr, server: SocketAddr) -> bool {
        match &self.peers {
            Some(peers) => peers.is_users_process(self.uid, peer, server).await,
            None => false,
        }
    }

    /// Records refused requests in this audit log.
    pub(super) fn recorded_in(self, audit: Arc<AuditLog>) -> Self {
        Self { refusals: RefusalRecorder::new(audit), ..self }
    }

    /// Logs a refused request; repeated ones cannot fill the log.
    fn log_refused(&self, transport: Option<&Transport>) {
        let unnamed = self.refused.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now());
        let Some(unnamed) = unnamed else { return };
        match transport {
            Some(Transport::Tcp { peer: Some(peer), .. }) => {
                tracing::warn!(%peer, unnamed, "refused a request: its token is not valid here");
            }
            Some(Transport::Unix { peer: Some(peer) }) => {
                let UnixPeer { uid, session } = peer;
                tracing::warn!(
                    uid,
                    ?session,
                    unnamed,
                    "refused a request: the socket is for the user that runs the server"
                );
            }
            Some(Transport::Tcp { peer: None, .. } | Transport::Unix { peer: None }) | None => {
                tracing::warn!(unnamed, "refused a request from an unknown peer");
            }
        }
    }

    /// Applies the rate limits; the refusal of a caller beyond its rate says when to retry.
    fn paced(
        &self,
        transport: Option<&Transport>,
        admitted: Result<Option<Authenticated>, ProblemResponse>,
    ) -> Result<Option<Authenticated>, (ProblemResponse, Option<u64>)> {
        let (taken, why) = match &admitted {
            Ok(Some(Authenticated { principal, .. })) => {
                (self.asked.take(principal.name.clone(), Instant::now()), "requests")
            }
            // Open routes reveal nothing, and cost no more than a refusal.
            Ok(None) => (Ok(()), ""),
            Err(_) => {
                let is_tcp = matches!(transport, Some(Transport::Tcp { .. }));
                (self.failed.take(is_tcp, Instant::now()), "requests without a valid token")
            }
        };
        let Err(wait) = taken else { return admitted.map_err(|refusal| (refusal, None)) };
        // The header has whole seconds, so round up.
        let seconds = wait.as_secs() + 1;
        let help = format!("too many {why}; retry in {seconds} s");
        Err((ProblemResponse::new(ErrorCode::RateLimited, help), Some(seconds)))
    }
}

pub(super) async fn check(guard: &Arc<Guard>, mut request: Request, next: Next) -> Response {
    let transport =
        request.extensions().get::<ConnectInfo<Transport>>().map(|ConnectInfo(transport)| transport.clone());
    let is_for_people = secret_page::is_here(request.uri().path());
    let is_browsers = is_for_people && secret_page::takes_html(request.headers());
    let elsewhere = guard.nodes.elsewhere(request.headers(), request.uri());
    let (headers, uri) = (request.headers(), request.uri());
    let admit = async || match &transport {
        Some(Transport::Tcp { peer, server }) => {
            guard.over_tcp(Ends { peer: *peer, server: *server }, headers, uri).await
        }
        Some(Transport::Unix { peer }) => guard.over_unix(peer.as_ref(), headers),
        None => Err(ProblemResponse::new(ErrorCode::Internal, "the connection has no transport")),
    };
    let mut admitted = admit().await;
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| bearer(value).map(str::to_owned).or_else(|| password(value)));
    let is_refused = matches!(&admitted, Err(refusal) if refusal.code == ErrorCode::Unauthorized);
    if is_refused && guard.learns_of(shown.as_deref().unwrap_or_default()).await {
        admitted = admit().await;
    }
    if let (Err(refusal), Some(admission)) = (&admitted, guard.admission(transport.as_ref(), &admitted, &request)) {
        let (code, method, uri) = (refusal.code, request.method().clone(), request.uri().clone());
        // Without forwarding, a client learns where the session is once it has shown its credential.
        let response = match elsewhere.filter(|_| guard.nodes.forwards()) {
            Some(node) => guard.on_another_node(node, transport.as_ref(), request).await,
            None => {
                request.extensions_mut().insert(admission);
                next.run(request).await
            }
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return response;
        }
        guard.refusals.record(transport.as_ref(), &method, &uri, code).await;
        return closing(match guard.paced(transport.as_ref(), admitted) {
            Err((refusal, Some(_))) => refusal.into_response(),
            Ok(_) | Err((_, None)) => response,
        });
    }
    let has_token = request.headers().contains_key(header::AUTHORIZATION);
    let has_shown = matches!(transport, Some(Transport::Unix { .. })) || has_token;
    if has_shown && admitted.is_err() {
        guard.log_refused(transport.as_ref());
    }
    if let Err(refusal) = &admitted {
        guard.refusals.record(transport.as_ref(), request.method(), request.uri(), refusal.code).await;
    }
    let is_known = matches!(admitted, Ok(Some(_)));
    let response = match guard.paced(transport.as_ref(), admitted) {
        Ok(admitted) => {
            let mut shut_out = None;
            if let Some(Authenticated { mut principal, grant }) = admitted {
                principal.origin = refusals::origin(transport.as_ref(), request.uri(), request.headers());
                let path = request.uri().path();
                let is_decision = secret_page::is_approval(path)
                    || path.starts_with("/approvals/") && request.headers().contains_key(logins::KEY) && !has_token;
                if let (true, Some(Transport::Tcp { peer: Some(peer), server: Some(server) })) =
                    (is_decision, &transport)
                {
                    principal.origin.is_users_process = guard.is_users_process(*peer, *server).await;
                }
                if !request.body().is_end_stream() {
                    request.extensions_mut().insert(guard.bodies.of(&principal.name, principal.scope >= Scope::Write));
                }
                shut_out = (principal.pass.is_some() || principal.log_in.is_some()).then(|| principal.shut_out());
                request.extensions_mut().insert(principal);
                if let Some(grant) = grant {
                    request.extensions_mut().insert(grant);
                }
            }
            let response = match elsewhere {
                Some(node) => guard.on_another_node(node, transport.as_ref(), request).await,
                None => guard.here(transport.as_ref(), request, next).await,
            };
            match shut_out {
                // A complete answer is sent whole; it may be the one that reports the revocation.
                Some(shut_out) if response.body().size_hint().exact().is_none() => {
                    response.map(|body| token_revocation::when(shut_out, body))
                }
                Some(_) | None => response,
            }
        }
        Err((refusal, retry_after)) => {
            let mut response = if is_browsers { secret_page::not_admitted(&refusal) } else { refusal.into_response() };
            if is_for_people && response.status() == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, BROWSERS_LOG_IN);
            }
            response.headers_mut().extend(retry_after.map(|seconds| (header::RETRY_AFTER, seconds.into())));
            response
        }
    };
    let is_kept = is_known || response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if is_kept { response } else { closing(response) }
}

/// Closes the connection of an unauthenticated caller: such connections must not occupy places.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

impl Guard {
    /// Takes the news of other nodes' tokens, if this may be one of them. It returns whether it did.
    async fn learns_of(&self, shown: &str) -> bool {
        match &self.new_tokens {
            Some(new_tokens) if shown.starts_with(PREFIX) => new_tokens.look().await,
            Some(_) | None => false,
        }
    }

    /// The answer to a request with an id of another node.
    async fn on_another_node(&self, node: u16, transport: Option<&Transport>, request: Request) -> Response {
        let is_tcp = matches!(transport, Some(Transport::Tcp { .. }));
        let is_browsers = secret_page::is_here(request.uri().path()) && secret_page::takes_html(request.headers());
        match self.nodes.answer(node, is_tcp, request).await {
            Ok(response) => response,
            Err(refusal) if is_browsers => secret_page::not_admitted(&refusal),
            Err(refusal) => refusal.into_response(),
        }
    }

    /// The answer of this node's route, or that of another node if the route has found its id in the body.
    async fn here(&self, transport: Option<&Transport>, mut request: Request, next: Next) -> Response {
        let forwards = matches!(transport, Some(Transport::Tcp { .. })) && self.nodes.forwards_body_of(&request);
        let again = forwards.then(|| Nodes::without_conversation(&request));
        if forwards {
            request.extensions_mut().insert(Forwarding);
        }
        let mut response = next.run(request).await;
        match (again, response.extensions_mut().remove::<Misdirected>()) {
            (Some(mut again), Some(Misdirected { node, body })) => {
                *again.body_mut() = Body::from(body);
                self.on_another_node(node, transport, again).await
            }
            _ => response,
        }
    }

    async fn over_tcp(
        &self,
        ends: Ends,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Option<Authenticated>, ProblemResponse> {
        let locality = self.access.check(ends, headers, uri)?;
        let browser = Browser { access: &self.access, logins: &self.logins, locality, headers, uri };
        if let Some(principal) = browser.logged_in(&self.peer_users, self.uid, ends).await? {
            return Ok(Some(Authenticated { principal, grant: None }));
        }
        match self.with_credential(locality, headers, uri) {
            Err(refusal) if secret_page::is_here(uri.path()) && refusal.code == ErrorCode::Unauthorized => {
                self.person(locality, headers, ends, refusal).await
            }
            admitted => admitted,
        }
    }

    /// The check of the first message, for a socket over TCP that shows no credential; `None` where a credential is shown, and
    /// where too many sockets wait for theirs.
    fn admission(
        self: &Arc<Self>,
        transport: Option<&Transport>,
        admitted: &Result<Option<Authenticated>, ProblemResponse>,
        request: &Request,
    ) -> Option<Admission> {
        let Some(transport @ Transport::Tcp { peer, server }) = transport else { return None };
        let is_missing = matches!(admitted, Err(refusal) if refusal.code == ErrorCode::Unauthorized)
            && !request.headers().contains_key(header::AUTHORIZATION)
            && ticket(request.headers(), request.uri()).is_none();
        let upgrade = request.headers().get(header::UPGRADE).and_then(|value| value.to_str().ok());
        let is_upgrade =
            request.method() == Method::GET && upgrade.is_some_and(|name| name.eq_ignore_ascii_case("websocket"));
        socket_of(request.uri()).filter(|_| is_missing && is_upgrade)?;
        let ends = Ends { peer: *peer, server: *server };
        let locality = self.access.check(ends, request.headers(), request.uri()).ok()?;
        let place = Arc::clone(&self.waiting).try_acquire_owned().ok()?;
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let guard = Arc::clone(self);
        Some(Admission::new(UnknownClient {
            guard,
            transport: transport.clone(),
            locality,
            method,
            uri,
            _place: place,
        }))
    }

    /// `None` for the open routes, which need no principal, and for a ticket of the node that the request is for.
    fn with_credential(
        &self,
        locality: Locality,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Option<Authenticated>, ProblemResponse> {
        if OPEN.contains(&uri.path()) || page::is_open(headers, uri) {
            return Ok(None);
        }
        let shown = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).and_then(bearer);
        if let Some(known) = shown.map_or(Ok(None), |shown| self.by_token(locality, shown))? {
            return Ok(Some(known));
        }
        if let Some((entrance, shown)) = ticket(headers, uri) {
            // The ticket's own node redeems it, and the request goes no further on this one.
            let elsewhere = self.nodes.elsewhere(headers, uri);
            if elsewhere.is_some() && IdKind::Ticket.node_of(shown) == elsewhere {
                return Ok(None);
            }
            return self.by_ticket(entrance, shown);
        }
        let help = match shown {
            Some(_) => TOKEN_REFUSED,
            None if locality == Locality::Remote => {
                "send `Authorization: Bearer <token>` with a named token; `ptyd token new NAME` makes one"
            }
            None => {
                "send `Authorization: Bearer <token>`; the token is in the file `token` of the server's state directory"
            }
        };
        Err(ProblemResponse::new(ErrorCode::Unauthorized, help))
    }

    /// The server's own token is for this machine: whoever gets hold of it elsewhere has nothing.
    fn by_token(&self, locality: Locality, shown: &str) -> Result<Option<Authenticated>, ProblemResponse> {
        let principal = match (self.token.is(shown), locality) {
            (true, Locality::Local) => Some(Principal::local()),
            (true, Locality::Remote) => {
                let help = "the server's own token is valid only on its machine, and not through a proxy; `ptyd token new NAME` makes a token for other machines";
                return Err(ProblemResponse::new(ErrorCode::Unauthorized, help));
            }
            (false, _) => self.tokens.find(shown),
        };
        Ok(principal.map(|principal| Authenticated { principal, grant: None }))
    }

    /// A person at a page, whose browser has no bearer token: it logs in with a token as the password, or its process is of
    /// the server's user and in no session.
    async fn person(
        &self,
        locality: Locality,
        headers: &HeaderMap,
        ends: Ends,
        refusal: ProblemResponse,
    ) -> Result<Option<Authenticated>, ProblemResponse> {
        let help = "this page opens only for the user that runs the server, outside of sessions and containers; \
         everybody else must log in with a token as the password";
        let refusal = ProblemResponse { detail: help.to_owned(), ..refusal };
        if let Some(shown) = headers.get(header::AUTHORIZATION) {
            let token = shown.to_str().ok().and_then(password);
            return token.map_or(Ok(None), |token| self.by_token(locality, &token))?.map(Some).ok_or(refusal);
        }
        let ends = ends.peer.zip(ends.server).filter(|_| locality == Locality::Local);
        let Some((peer, server)) = ends else { return Err(refusal) };
        match self.peer_users.user(peer, server).await {
            Some(uid) if uid == self.uid && self.is_users_process(peer, server).await => {
                Ok(Some(Authenticated { principal: Principal::local(), grant: None }))
            }
            Some(_) | None => Err(refusal),
        }
    }

    /// A ticket is used up even if it is for another place.
    fn by_ticket(&self, entrance: Entrance<'_>, shown: &str) -> Result<Option<Authenticated>, ProblemResponse> {
        let Some(grant) = self.tickets.redeem(shown) else {
            let help = "the ticket is unknown, used or expired; get a new one with POST /tickets";
            return Err(ProblemResponse::new(ErrorCode::Unauthorized, help));
        };
        if grant.principal.is_shut_out() {
            return Err(ProblemResponse::from(ActionError::ShutOut));
        }
        let fits = match (&grant.place, entrance) {
            (TicketTarget::Socket(session), Entrance::Socket(named)) => session.as_str() == named,
            (TicketTarget::Docs, Entrance::Docs) => true,
            (TicketTarget::Socket(_), Entrance::Docs) | (TicketTarget::Docs, Entrance::Socket(_)) => false,
        };
        if !fits {
            return Err(ProblemResponse::new(ErrorCode::Forbidden, "the ticket is for another session or page"));
        }
        Ok(Some(Authenticated { principal: grant.principal.clone(), grant: Some(grant) }))
    }

    /// A program in a session acts for the session's owner, also where the user could do more.
    fn over_unix(
        &self,
        peer: Option<&UnixPeer>,
        headers: &HeaderMap,
    ) -> Result<Option<Authenticated>, ProblemResponse> {
        let refused = |why: &str| Err(ProblemResponse::new(ErrorCode::Forbidden, why));
        // The proxy's user is not the user that sent it.
        if tcp_access::is_forwarded(headers) {
            return refused(
                "this request came through a proxy, which must use the server's TCP address and not its \
             Unix socket",
            );
        }
        let Some(peer) = peer.filter(|peer| peer.uid == self.uid || peer.uid == 0) else {
            return refused("this socket is for the user that runs the server");
        };
        let principal = match &peer.session {
            PeerSession::None => Principal::local(),
            PeerSession::Of { owner, .. } if *owner == Principal::local().name => Principal::local(),
            PeerSession::Of { owner, .. } => match self.tokens.find_by_name(owner) {
                Some(principal) => principal,
                None => return refused("this program runs in a session whose owner's token is no longer valid"),
            },
            PeerSession::Unknown => {
                return refused(
                    "the connected process has ended, is in a container without a session, or belongs to a session that cannot be read; connect again, or from a container use a named token over TCP",
                );
            }
        };
        Ok(Some(Authenticated { principal, grant: None }))
    }
}

/// The client of a socket that opened without a credential.
struct UnknownClient {
    guard: Arc<Guard>,
    transport: Transport,
    locality: Locality,
    method: Method,
    uri: Uri,
    _place: OwnedSemaphorePermit,
}

impl Admit for UnknownClient {
    fn admit(&self, credential: Option<Credential>) -> Pin<Box<dyn Future<Output = Admitted> + Send + '_>> {
        Box::pin(async move {
            let Self { guard, transport, locality, method, uri, .. } = self;
            let admitted = match &credential {
                Some(Credential::Token(shown)) => match guard.by_token(*locality, shown) {
                    Ok(None) if guard.learns_of(shown).await => guard.by_token(*locality, shown),
                    known => known,
                },
                Some(Credential::Ticket(shown)) => {
                    guard.by_ticket(Entrance::Socket(socket_of(uri).unwrap_or_default()), shown)
                }
                None => Ok(None),
            };
            let unknown = || ProblemResponse::new(ErrorCode::Unauthorized, TOKEN_REFUSED);
            let admitted = admitted.and_then(|known| known.map(Some).ok_or_else(unknown));
            if let Err(refusal) = &admitted {
                if matches!(credential, Some(Credential::Token(_))) {
                    guard.log_refused(Some(transport));
                }
                guard.refusals.record(Some(transport), method, uri, refusal.code).await;
            }
            let paced = guard.paced(Some(transport), admitted).map_err(|(refusal, _)| refusal)?;
            let Authenticated { mut principal, grant } = paced.ok_or_else(unknown)?;
            principal.origin = refusals::origin(Some(transport), uri, &HeaderMap::new());
            Ok((principal, grant))
        })
    }
}

/// The place that a ticket admits to; a socket by its session's id in the path.
#[derive(Debug, Clone, Copy)]
enum Entrance<'a> {
    Socket(&'a str),
    Docs,
}

/// The place and the ticket in a request for a socket or the docs: browsers cannot set headers there, only the URL and,
/// for a socket, the names of sub-protocols.
fn ticket<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<(Entrance<'a>, &'a str)> {
    let entrance = if uri.path() == DOCS { Entrance::Docs } else { Entrance::Socket(socket_of(uri)?) };
    let in_query = || uri.query()?.split('&').find_map(|pair| pair.strip_prefix("ticket="));
    let mut offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|v| v.to_str().ok());
    let in_names = || offered.find_map(|v| v.split(',').find_map(|name| name.trim().strip_prefix("ptyd.ticket.")));
    in_query().or_else(in_names).map(|shown| (entrance, shown))
}

/// The session whose socket this address is.
fn socket_of(uri: &Uri) -> Option<&str> {
    uri.path().strip_prefix("/terminals/")?.strip_suffix("/socket").filter(|session| !session.contains('/'))
}

#[cfg(test)]
mod tests;
