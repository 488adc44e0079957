//! Who asks: a principal from a bearer token or from the kernel's peer credentials, and what it may see and do.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::ids::SessionId;

/// How much a caller may do; each holds what is before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Look at its own sessions, and wait for them.
    Read,
    /// Start its own sessions, and use them.
    Write,
    /// See, use and set everybody's, and give and take tokens.
    Admin,
}

impl Scope {
    /// Its name, the same at every door.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// A caller. Sessions belong to a principal by name; an admin sees and may set others'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The owner of what it starts.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// The named token by which it came; none for the user that runs the server.
    pub pass: Option<Pass>,
}

impl Principal {
    /// The user that runs the server: its own Unix socket, and the token in its state directory.
    pub fn local() -> Self {
        Self { name: local_name(), scope: Scope::Admin, pass: None }
    }

    /// Whether it may see and set what is others'.
    pub fn is_admin(&self) -> bool {
        self.scope == Scope::Admin
    }

    /// Whether what it came by is no longer good.
    pub fn is_shut_out(&self) -> bool {
        self.pass.as_ref().is_some_and(Pass::is_over)
    }

    /// Waits until what it came by is no longer good.
    pub fn shut_out(&self) -> impl Future<Output = ()> + Send + use<> {
        let pass = self.pass.clone();
        async move {
            match pass {
                Some(pass) => pass.over().await,
                None => std::future::pending().await,
            }
        }
    }
}

/// The owner's name of the user that runs the server, which no token may have. Every request asks for it, so the list of
/// users is read once.
pub(crate) fn local_name() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| user_name().unwrap_or_else(|| "local".to_owned())).clone()
}

/// A named token's goodness: until it is revoked or expires. What is open on it ends then.
#[derive(Debug, Clone)]
pub struct Pass {
    revoked: watch::Receiver<bool>,
    until: Option<SystemTime>,
}

impl Pass {
    pub(crate) fn new(revoked: watch::Receiver<bool>, until: Option<SystemTime>) -> Self {
        Self { revoked, until }
    }

    fn is_over(&self) -> bool {
        *self.revoked.borrow() || self.until.is_some_and(|until| SystemTime::now() >= until)
    }

    async fn over(mut self) {
        let expired = async {
            match self.until {
                Some(until) => {
                    // The clock may be set while it is slept.
                    while let Ok(left) = until.duration_since(SystemTime::now()) {
                        let soon = left.min(Duration::from_secs(60)) + Duration::from_millis(1);
                        tokio::time::sleep_until(tokio::time::Instant::now() + soon).await;
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! { _ = self.revoked.wait_for(|is| *is) => {} () = expired => {} }
    }
}

/// The same token, and not only one with the same name.
impl PartialEq for Pass {
    fn eq(&self, other: &Self) -> bool {
        self.revoked.same_channel(&other.revoked)
    }
}

impl Eq for Pass {}

/// Where a ticket lets its holder in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicketTarget {
    /// The socket of one session.
    Socket(SessionId),
    /// The documentation page, which tells nothing about sessions.
    Docs,
}

/// What a ticket allows: one visit to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Who asked for the ticket, and acts by it.
    pub principal: Principal,
    /// Where to.
    pub place: TicketTarget,
    /// Whether its holder may type and resize there, too.
    pub may_write: bool,
}

/// The name of the user that this process runs as (passwd(5)); the environment may say something else.
fn user_name() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = users.lines().map(|l| l.split(':').collect::<Vec<_>>());
    fields.find(|f| f.get(2) == Some(&uid.as_str())).and_then(|f| f.first().map(|n| (*n).to_owned()))
}

/// What happens to a stdio client's sessions once it has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detach {
    /// They stay.
    Keep,
    /// They end after this long, at once for zero.
    After(Duration),
}

impl Default for Detach {
    fn default() -> Self {
        Self::After(crate::limits::DETACH_GRACE)
    }
}
