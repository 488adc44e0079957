//! Principals: callers identified by a bearer token or by the kernel's peer credentials, and their permissions.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::approval_wait::ApprovalWait;
use crate::confinement_tier::ConfinementTier;
use crate::delivery::Delivery;
use crate::ids::SessionId;
use crate::limits::NAME_CHARS_MAX;
use crate::token_bounds::{TokenBounds, TokenSecret};

/// The permissions of a caller; each scope includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read its own sessions, and wait on them.
    Read,
    /// Also start and use its own sessions.
    Write,
    /// Also see and use the sessions of all principals, and manage tokens.
    Admin,
}

impl Scope {
    /// Its name, the same in every protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// A caller. Sessions belong to a principal by name; an admin may see and use those of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The owner of sessions that it starts.
    pub name: String,
    /// Its permissions.
    pub scope: Scope,
    /// The named token it used; `None` for the user that runs the server.
    pub pass: Option<Pass>,
    /// The log-in of the browser that it uses.
    pub log_in: Option<LogIn>,
    /// The stdio client, or the name that a REST client gave itself; each has its own read cursor. Clients without a
    /// name share that of their principal.
    pub client: Option<String>,
    /// The delivery of the answer that it waits for, where the protocol knows of it.
    pub delivery: Option<Delivery>,
    /// How its request waits for a person's decision; without it a request that needs one is refused at once.
    pub approval_wait: Option<ApprovalWait>,
    /// How long its request waits at most while another client drives the session; zero refuses it at once.
    pub keyboard_patience: Duration,
    /// The way on which its request came.
    pub origin: Origin,
}

/// A client that types: of a principal, by its own name. The caller of a tool is never the same as a client of another protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typist {
    /// The principal.
    pub name: String,
    /// The client's own name.
    pub client: Option<String>,
    /// It calls a tool.
    pub is_tool: bool,
}

/// The way on which a request came, for the audit log. It is not part of who somebody is, so all are equal.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The protocol.
    pub door: Door,
    /// The kind of the connection, where there is one.
    pub transport: Option<TransportKind>,
    /// The session in whose tree the connected process is, if it is known to be in one.
    pub from_session: Option<SessionId>,
    /// The kernel says that the connected process is of the server's user, and it is in no session's tree.
    pub is_users_process: bool,
    /// The name by which the client calls itself: by its handshake over MCP, by `User-Agent` elsewhere.
    pub client_name: Option<Arc<str>>,
}

/// The name by which a client calls itself, as far as it is one for people.
pub fn client_name(told: &str) -> Option<Arc<str>> {
    let plain: String = told.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    Some(plain.trim()).filter(|name| !name.is_empty()).map(Arc::from)
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

/// A protocol of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Door {
    /// The server itself.
    #[default]
    Server,
    /// REST, which the command line speaks too.
    Rest,
    /// MCP.
    Mcp,
    /// A WebSocket.
    WebSocket,
    /// The page where a person types a password or decides on an approval.
    Page,
}

impl Door {
    /// Its name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Rest => "rest",
            Self::Mcp => "mcp",
            Self::WebSocket => "websocket",
            Self::Page => "page",
        }
    }
}

/// The kind of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// TCP.
    Tcp,
    /// The Unix socket.
    Unix,
}

impl TransportKind {
    /// Its name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
    }
}

impl Principal {
    /// The user that runs the server, who uses its Unix socket or the token in its state directory.
    pub fn local() -> Self {
        Self::named(local_name(), Scope::Admin)
    }

    /// A principal without a named token.
    pub fn named(name: impl Into<String>, scope: Scope) -> Self {
        Self {
            name: name.into(),
            scope,
            pass: None,
            log_in: None,
            client: None,
            delivery: None,
            approval_wait: None,
            keyboard_patience: Duration::ZERO,
            origin: Origin::default(),
        }
    }

    /// The name under which its read cursor is kept. Neither part has a line end.
    pub(crate) fn reader(&self) -> String {
        self.client.as_ref().map_or_else(|| self.name.clone(), |client| format!("{}\n{client}", self.name))
    }

    /// The client that types with its requests.
    pub(crate) fn typist(&self) -> Typist {
        Typist { name: self.name.clone(), client: self.client.clone(), is_tool: self.origin.door == Door::Mcp }
    }

    /// Whether its request is known to come from a tool or from a program in a session.
    pub(crate) fn is_program(&self) -> bool {
        self.origin.from_session.is_some() || self.origin.door == Door::Mcp
    }

    /// Whether its token has bounds.
    pub(crate) fn is_bound(&self) -> bool {
        self.pass.as_ref().is_some_and(|pass| *pass.bounds != TokenBounds::default())
    }

    /// Whether a person may be acting, else why not: a tool or a program in a session is none, and a program in a session that is not
    /// confined can read the server's own token, which it would show over TCP.
    pub(crate) fn may_be_a_person(&self) -> Result<(), NoPerson> {
        let Origin { door, transport, from_session, is_users_process, .. } = &self.origin;
        if from_session.is_some() || *door == Door::Mcp {
            return Err(NoPerson(
                "only a person can do this, at the command line or over REST; no tool and no program in a session can",
            ));
        }
        if self.pass.is_none() && *transport == Some(TransportKind::Tcp) && !is_users_process {
            return Err(NoPerson(
                "the server's own token cannot do this over TCP: use the command line, or a named token of scope admin",
            ));
        }
        Ok(())
    }

    /// The name of the first principal of the chain in which each has made the token of the next; its own where the user has made
    /// its token. A principal has the tokens that it makes, so all with the same first maker may be one.
    pub(crate) fn first_maker(&self) -> &str {
        self.pass.as_ref().and_then(|pass| pass.first_maker.as_deref()).unwrap_or(&self.name)
    }

    /// Whether it may see and use the sessions of others.
    pub fn is_admin(&self) -> bool {
        self.scope == Scope::Admin
    }

    /// The least confinement of the sessions that it starts.
    pub fn confinement(&self) -> Option<ConfinementTier> {
        self.pass.as_ref().and_then(|pass| pass.bounds.confinement)
    }

    /// The policy that counts for its requests besides the sessions' own.
    pub fn policy(&self) -> Option<&str> {
        self.pass.as_ref()?.bounds.policy.as_deref()
    }

    /// The secrets that the sessions which it starts get besides the profile's.
    pub fn secrets(&self) -> &[TokenSecret] {
        self.pass.as_ref().map_or(&[], |pass| &pass.bounds.secrets)
    }

    /// The profiles with which it may start sessions, the first one by default; `None` if it may use all.
    pub fn profiles(&self) -> Option<&[String]> {
        self.pass.as_ref().map(|pass| &*pass.bounds.profiles).filter(|profiles| !profiles.is_empty())
    }

    /// Whether a session of this profile and confinement is within its bounds, so that it may use it.
    pub fn may_use(&self, profile: Option<&str>, confinement: Option<ConfinementTier>) -> bool {
        self.pass.as_ref().is_none_or(|pass| pass.bounds.hold(profile, confinement))
    }

    /// Whether its token was revoked or has expired, or its log-in has ended.
    pub fn is_shut_out(&self) -> bool {
        self.pass.as_ref().is_some_and(Pass::is_over) || self.log_in.as_ref().is_some_and(LogIn::is_over)
    }

    /// Waits until its token is revoked or expires, or its log-in ends.
    pub fn shut_out(&self) -> impl Future<Output = ()> + Send + use<> {
        let (pass, log_in) = (self.pass.clone(), self.log_in.clone());
        let pass_over = async {
            match pass {
                Some(pass) => pass.over().await,
                None => std::future::pending().await,
            }
        };
        let log_in_over = async {
            match log_in {
                Some(log_in) => log_in.over().await,
                None => std::future::pending().await,
            }
        };
        async {
            tokio::select! { () = pass_over => {} () = log_in_over => {} }
        }
    }
}

/// The name of the user that runs the server, which no token may have. Every request needs it, so the user database is
/// read once.
pub(crate) fn local_name() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| user_name().unwrap_or_else(|| "local".to_owned())).clone()
}

/// The validity of a named token: until it is revoked or expires, and within which bounds. Streams and waits opened with it
/// end then.
#[derive(Debug, Clone)]
pub struct Pass {
    revoked: watch::Receiver<bool>,
    until: Option<SystemTime>,
    first_maker: Option<Arc<str>>,
    bounds: Arc<TokenBounds>,
}

impl Pass {
    pub(crate) fn new(
        revoked: watch::Receiver<bool>,
        until: Option<SystemTime>,
        first_maker: Option<String>,
        bounds: TokenBounds,
    ) -> Self {
        Self { revoked, until, first_maker: first_maker.map(Into::into), bounds: Arc::new(bounds) }
    }

    fn is_over(&self) -> bool {
        *self.revoked.borrow() || self.until.is_some_and(|until| sys::time::wall() >= until)
    }

    async fn over(mut self) {
        let expired = async {
            match self.until {
                Some(until) => {
                    // The wall clock may be set during a sleep.
                    while let Ok(left) = until.duration_since(sys::time::wall()) {
                        let soon = left.min(Duration::from_secs(60)) + Duration::from_millis(1);
                        sleep_until(Instant::now() + soon).await;
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! { _ = self.revoked.wait_for(|is| *is) => {} () = expired => {} }
    }
}

/// Compares the tokens themselves and not their names.
impl PartialEq for Pass {
    fn eq(&self, other: &Self) -> bool {
        self.revoked.same_channel(&other.revoked)
    }
}

impl Eq for Pass {}

/// The validity of a browser's log-in: until its owner drops its other end, or its time is up. Streams and waits of the browser end
/// then.
#[derive(Debug, Clone)]
pub struct LogIn {
    open: watch::Receiver<()>,
    until: Instant,
}

impl LogIn {
    /// Open for this long; it ends when the returned end is dropped.
    pub fn for_at_most(lifetime: Duration) -> (watch::Sender<()>, Self) {
        let (end, open) = watch::channel(());
        (end, Self { open, until: Instant::now() + lifetime })
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.open.has_changed().is_err() || Instant::now() >= self.until
    }

    async fn over(mut self) {
        tokio::select! { _ = self.open.wait_for(|()| false) => {} () = sleep_until(self.until) => {} }
    }
}

/// A principal is the same in all of its browsers.
impl PartialEq for LogIn {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LogIn {}

/// Why no person can be acting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoPerson(pub(crate) &'static str);

/// The process at the other end of a connection to the Unix socket, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixPeer {
    /// Its user.
    pub uid: u32,
    /// The session in whose tree it is.
    pub session: PeerSession,
}

/// The session in whose tree a connected process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerSession {
    /// None of this server.
    None,
    /// This one.
    Of {
        /// The session.
        session: SessionId,
        /// Its owner.
        owner: String,
    },
    /// It is not known: the process has ended, or the session's folder cannot be read.
    Unknown,
}

/// The place that a ticket admits to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicketTarget {
    /// The socket of one session.
    Socket(SessionId),
    /// The documentation page, which shows nothing about sessions.
    Docs,
}

/// The grant of a ticket: one connection to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The principal that requested the ticket, and acts by it.
    pub principal: Principal,
    /// The place.
    pub place: TicketTarget,
    /// Whether its holder may also type and resize.
    pub may_write: bool,
}

/// The name of the user that runs this process (passwd(5)); environment variables may differ.
fn user_name() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = users.lines().map(|l| l.split(':').collect::<Vec<_>>());
    fields.find(|f| f.get(2) == Some(&uid.as_str())).and_then(|f| f.first().map(|n| (*n).to_owned()))
}

/// The fate of a stdio client's sessions when the client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detach {
    /// They continue.
    Keep,
    /// They end after this grace period, at once for zero.
    After(Duration),
}

impl Default for Detach {
    fn default() -> Self {
        Self::After(crate::limits::DETACH_GRACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    // promise: access-17
    async fn a_log_in_is_over_after_its_time_or_without_its_other_end() {
        let me = |log_in| Principal { log_in: Some(log_in), ..Principal::named("me", Scope::Write) };
        let (end, log_in) = LogIn::for_at_most(Duration::from_secs(3_600));
        let until_closed = me(log_in);
        assert!(!until_closed.is_shut_out());
        drop(end);
        until_closed.shut_out().await;
        assert!(until_closed.is_shut_out());
        let (_end, log_in) = LogIn::for_at_most(Duration::from_millis(1));
        let for_a_time = me(log_in);
        for_a_time.shut_out().await;
        assert!(for_a_time.is_shut_out());
    }

    #[test]
    // promise: policy-8
    fn no_program_in_a_session_counts_as_a_person() {
        let over = |door, transport| {
            let origin = Origin { door, transport: Some(transport), ..Origin::default() };
            Principal { origin, ..Principal::named("ann", Scope::Admin) }
        };
        assert_eq!(over(Door::Rest, TransportKind::Unix).may_be_a_person(), Ok(()));
        assert!(over(Door::Mcp, TransportKind::Unix).may_be_a_person().is_err());
        assert!(over(Door::Rest, TransportKind::Tcp).may_be_a_person().is_err());
        let mut program = over(Door::Rest, TransportKind::Unix);
        program.origin.from_session = SessionId::parse("s0-aaaaaaaaaa").ok();
        assert!(program.origin.from_session.is_some() && program.may_be_a_person().is_err());
    }
}
