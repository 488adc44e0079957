//! Commands that wait for the shell's first prompt, or for a nested shell to be at its prompt again.

use tokio::time::Instant;
use wire::Key;

use crate::action::Wait;
use crate::sessions::session::requests::StartReply;

/// A command that waits for the shell's first prompt.
pub(crate) struct Pending {
    pub(crate) text: Vec<u8>,
    pub(crate) key: Key,
    pub(crate) until: Instant,
    pub(crate) wait: Option<Wait>,
    pub(crate) started: StartReply,
}

/// A command that waits for the nested shell to be at its prompt again.
pub(crate) struct PendingNested {
    pub(crate) text: String,
    pub(crate) key: Key,
    pub(crate) until: Instant,
    pub(crate) wait: Option<Wait>,
    pub(crate) started: StartReply,
}

/// The waiting commands.
#[derive(Default)]
pub(crate) struct PendingCommands {
    pub(crate) at_prompt: Vec<Pending>,
    pub(crate) nested: Vec<PendingNested>,
}

impl PendingCommands {
    /// When the first one is refused that waits for the first prompt.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.at_prompt.iter().map(|p| p.until).min()
    }
}
