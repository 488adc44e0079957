//! Who asks: a principal from a bearer token or from the kernel's peer credentials, and what it may see.

use std::time::Duration;

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
        let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "local".to_owned());
        Self { name, is_admin: true }
    }
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
