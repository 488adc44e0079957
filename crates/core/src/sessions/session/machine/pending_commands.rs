//! Commands that wait for the shell's first prompt, or for a nested shell to be at its prompt again.

use tokio::time::Instant;
use wire::Key;

use crate::action::{Foreground, TargetShell, Wait};
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::errors::why_not_ready;
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::machine::waits::state::OpenWaits;
use crate::sessions::session::requests::StartReply;

/// A command that waits for the shell's first prompt.
pub(crate) struct Pending {
    pub(crate) text: Vec<u8>,
    pub(crate) key: Key,
    pub(crate) shell: TargetShell,
    pub(crate) until: Instant,
    pub(crate) wait: Option<Wait>,
    pub(crate) started: StartReply,
}

/// A command that waits for the nested shell to be at its prompt again.
pub(crate) struct PendingNested {
    pub(crate) text: String,
    pub(crate) key: Key,
    pub(crate) until: Instant,
    /// How long the session's own shell may take to its prompt.
    pub(crate) patience_until: Instant,
    pub(crate) wait: Option<Wait>,
    /// [`TargetShell::Nested`], or [`TargetShell::Foremost`]: the session's own runs it if no nested one is there any more.
    pub(crate) shell: TargetShell,
    pub(crate) started: StartReply,
}

/// The waiting commands.
#[derive(Default)]
pub(crate) struct PendingCommands {
    pub(crate) at_prompt: Vec<Pending>,
    pub(crate) nested: Vec<PendingNested>,
}

impl PendingCommands {
    /// When the first one is refused that waits for the first prompt, or the first is checked that waits for a nested shell.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let nested = self.nested.iter().map(|p| p.until);
        self.at_prompt.iter().map(|p| p.until).chain(nested).min()
    }

    /// Takes the commands whose wait for the first prompt is over.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> Vec<Pending> {
        self.at_prompt.extract_if(.., |p| now >= p.until).collect()
    }

    /// Refuses waiting commands if a start-up file asks for input or has the whole screen, or after their deadline: they
    /// could wait for ever.
    pub(super) fn refuse(&mut self, cx: &Context, foreground: &ForegroundState, waits: &mut OpenWaits) {
        let never_ends = match foreground.foreground(cx) {
            Foreground::InputWanted | Foreground::PasswordWanted => true,
            Foreground::Fullscreen => foreground.settles_at().is_none_or(|at| cx.now.at >= at),
            Foreground::Idle | Foreground::Running | Foreground::Stopped => false,
        };
        if never_ends {
            waits.notify_prompt();
        }
        let refused = if never_ends { std::mem::take(&mut self.at_prompt) } else { self.take_overdue(cx.now.at) };
        if !refused.is_empty() {
            let why = why_not_ready(cx, foreground);
            for pending in refused {
                let _ = pending.started.send(Err(cx.not_ready(&why)));
            }
        }
    }
}
