//! Rivals: processes that read the session's terminal beside its shell, such as `setsid cat <$(tty) &`. They take keys that were
//! meant for the shell, those too that hand a command over.

use tokio::time::Instant;
use wire::Activity;

use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::foreground::state::ForegroundState;

/// How many rivals are named.
const NAMED_MAX: usize = 3;

impl ForegroundState {
    /// When the command ends whose keys the rivals have taken: its shell waits for input and has not begun it.
    pub(super) fn keys_lost_at(&self, cx: &Context) -> Option<Instant> {
        let shell_waits = self.state.is_some_and(|state| state.foreground.is_a_waiting_shell());
        if !shell_waits || self.rivals.is_empty() {
            return None;
        }
        cx.keys_read_at()
    }

    /// When something is due about the keys of a command.
    pub(super) fn keys_due_at(&self, cx: &Context) -> Option<Instant> {
        self.keys_lost_at(cx).or_else(|| self.keys_are_on_their_way(cx).then(|| cx.keys_read_at()).flatten())
    }

    /// Whether a shell that waits for input may still have to read the keys of its command. The kernel shows the same state
    /// if a rival has taken the key that woke its line editor, or if another process has set the terminal's modes.
    pub(super) fn keys_are_on_their_way(&self, cx: &Context) -> bool {
        let shell_reads = self.state.is_some_and(|state| state.foreground == Activity::ShellReads);
        shell_reads && cx.timeline.log().awaits_start().is_some() && !cx.keys_are_read()
    }

    /// The error of a command whose keys the rivals may have taken, with their names; `None` if there is no rival.
    pub(super) fn rivals_in_words(&self, cx: &Context) -> Option<String> {
        let all = &self.rivals;
        let named = |pid: &u32| {
            let name = cx.host().process(*pid).map_or_else(|| "one that has ended".to_owned(), |it| it.name);
            format!("{} (pid {pid})", terminal::quote::line(&name))
        };
        let mut words: Vec<String> = all.iter().take(NAMED_MAX).map(named).collect();
        let more = all.len().checked_sub(NAMED_MAX).filter(|more| *more > 0);
        words.extend(more.map(|more| format!("and {more} more")));
        (!all.is_empty()).then(|| {
            format!(
                "it is unknown whether it ran: other processes read the terminal and may have taken its keys: {}; end them \
                 (kill, from another session) and send C-c, or reset the session",
                words.join(", ")
            )
        })
    }
}
