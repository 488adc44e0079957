//! Who asks: a principal from a bearer token or from the kernel's peer credentials, and what it may see.

use std::time::Duration;

use crate::ids::SessionId;

/// A caller. Sessions belong to a principal by name; an admin sees and may set others'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The owner of what it starts.
    pub name: String,
    /// May act for others.
    pub is_admin: bool,
}

impl Principal {
    /// The user that runs the server: its own Unix socket, and the token in its state directory.
    pub fn local() -> Self {
        Self { name: user_name().unwrap_or_else(|| "local".to_owned()), is_admin: true }
    }
}

/// Where a ticket lets its holder in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The socket of one session.
    Socket(SessionId),
    /// The documentation page, which tells nothing about sessions.
    Docs,
}

/// What a ticket allows: one visit to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Who asked for the ticket, and acts by it.
    pub who: Principal,
    /// Where to.
    pub place: Place,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
