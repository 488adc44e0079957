//! Commands that wait for the shell's first prompt, or for a nested shell to be at its prompt again.

use tokio::sync::oneshot;
use wire::{Key, ToHolder};

use super::errors::key_reused;
use super::typed_commands::Before;
use crate::action::{ActionError, Foreground, Wait};
use crate::sessions::session::requests::Started;
use crate::sessions::session::state::holder_link::Call;
use crate::sessions::session::state::pending_commands::Pending;
use crate::sessions::session::state::session::Session;

impl Session {
    pub(super) fn ask_run(
        &mut self,
        text: Vec<u8>,
        key: Key,
        patience_ms: u32,
        wait: Option<Wait>,
        started: oneshot::Sender<Result<Started, ActionError>>,
    ) {
        match self.before(&key) {
            Before::Command(earlier) => return self.hand_out(earlier, wait, started),
            Before::Reused => return drop(started.send(Err(key_reused()))),
            // The holder answers with the command that it has under this key.
            Before::OnItsWay => return self.run_typed(&text, key, wait, started),
            Before::Nothing => {}
        }
        if self.has_exited() {
            return drop(started.send(Err(self.ended_error())));
        }
        if self.timeline.damage().is_some() {
            // The command's beginning and end might be reported in a part of the journal that cannot be read.
            return drop(started.send(Err(self.not_ready(&self.why_not_ready()))));
        }
        if let Some(inside) = self.timeline.log().inside.as_ref().map(|inside| inside.id) {
            return drop(started.send(Err(self.busy_error(inside))));
        }
        let is_unread = self.foreground.is_heuristic && self.timeline.log().current.is_none() && !self.reads_commands();
        if self.foreground.is_heuristic && !is_unread {
            return self.run_typed(&text, key, wait, started);
        }
        if !self.timeline.shell().prompt_seen || is_unread {
            let until = self.now.at + std::time::Duration::from_millis(u64::from(patience_ms));
            self.pending.at_prompt.push(Pending { text, key, until, wait, started });
            return self.refuse_pending();
        }
        self.link.call(self.now.at, Call::Run { wait, started }, |seq| ToHolder::Run { seq, key, patience_ms, text });
    }

    /// The first prompt came: hands over the commands that waited for it, one at a time.
    pub(super) fn run_pending(&mut self) {
        /// The shell is at its prompt; only its painting may be unfinished.
        const PATIENCE_MS: u32 = 5_000;
        for Pending { text, key, wait, started, .. } in std::mem::take(&mut self.pending.at_prompt) {
            self.ask_run(text, key, PATIENCE_MS, wait, started);
        }
    }

    /// Refuses waiting commands if a start-up file asks for input, or after their deadline: they could wait for ever.
    pub(super) fn refuse_pending(&mut self) {
        let asks = matches!(self.foreground(), Foreground::InputWanted | Foreground::PasswordWanted);
        let refused =
            if asks { std::mem::take(&mut self.pending.at_prompt) } else { self.pending.take_overdue(self.now.at) };
        if !refused.is_empty() {
            let why = self.why_not_ready();
            for pending in refused {
                let _ = pending.started.send(Err(self.not_ready(&why)));
            }
        }
    }
}
