//! A request to run a command: admits or refuses it, has the holder hand it over (`run_command.rs` of its event loop), and answers its caller.
//!
//! A command that comes before the shell's first prompt waits for that. One for a program without our hooks is typed as a line
//! (`typed_commands.rs`), as is one for a nested shell (`nested_command/`).

use std::path::Path;

use wire::{Key, Status, ToHolder};

use super::errors::{holder_failed, key_reused};
use crate::action::{ActionError, Foreground, TargetShell, Wait};
use crate::limits;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::pending_commands::Pending;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::{KeyUse, StartReply, Started};
use crate::sessions::taint::{ELSEWHERE, UNPROVABLE, overtaken};
use crate::sessions::timeline::Command;

impl Session {
    pub(super) fn ask_run(
        &mut self,
        text: Vec<u8>,
        key: Key,
        shell: TargetShell,
        patience_ms: u32,
        wait: Option<Wait>,
        started: StartReply,
    ) {
        match self.cx.key_use(&key) {
            KeyUse::Command(earlier) => return self.hand_out(earlier, wait, started),
            KeyUse::OtherRequest => return drop(started.send(Err(key_reused()))),
            // The holder answers with the command that it has under this key.
            KeyUse::Underway => return self.run_typed(&text, key, wait, started),
            KeyUse::Unused => {}
        }
        if matches!(shell, TargetShell::Proven(most) if self.cx.shared.taint.admitted() > most) {
            return drop(started.send(Err(overtaken(&self.cx.shared.meta, UNPROVABLE))));
        }
        if self.cx.has_exited() {
            return drop(started.send(Err(self.cx.ended_error())));
        }
        if self.cx.timeline.damage().is_some() {
            // The command's beginning and end might be reported in a part of the journal that cannot be read.
            return drop(started.send(Err(self.cx.not_ready(&self.why_not_ready()))));
        }
        if let Some(inside) = self.cx.timeline.log().inside.as_ref().map(|inside| inside.id) {
            return drop(started.send(Err(self.busy_error(inside))));
        }
        let is_unread =
            self.foreground.is_heuristic && self.cx.timeline.log().current.is_none() && !self.reads_commands();
        if self.foreground.is_heuristic && !is_unread {
            return self.run_typed(&text, key, wait, started);
        }
        if !self.cx.timeline.shell().prompt_seen || is_unread {
            let until = self.cx.now.at + std::time::Duration::from_millis(u64::from(patience_ms));
            self.pending.at_prompt.push(Pending { text, key, shell, until, wait, started });
            return self.refuse_pending();
        }
        self.count_before_command();
        self.cx.link.call(self.cx.now.at, Call::Run { wait, started }, |seq| ToHolder::Run {
            seq,
            key,
            patience_ms,
            text,
        });
    }

    /// The holder's answer: it has handed the command over, or refuses it.
    pub(super) fn on_run_done(&mut self, status: Status, value: u64, wait: Option<Wait>, started: StartReply) {
        let id = u32::try_from(value).unwrap_or(0);
        self.foreground.was_not_ready = status == Status::NotReady;
        let result = match status {
            Status::Ok | Status::Duplicate => return self.hand_out(id, wait, started),
            Status::Busy => Err(self.busy_error(id)),
            Status::Ended => Err(self.cx.ended_error()),
            Status::KeyReused => Err(key_reused()),
            Status::Typed if self.foreign_program_runs() => Err(self.typed_busy_error()),
            Status::Typed => {
                self.cx.timeline.set_typed_line(true);
                let or = if self.cx.takes_lines() {
                    " (or the prompt, PS1, was changed by hand and no longer reports)"
                } else {
                    ""
                };
                let why = format!(
                    "a line typed at the prompt has not ended{or} (C-c clears it), or a hook of the prompt asks something \
                     (answer it with send_input_to_terminal)"
                );
                Err(self.cx.not_ready(&why))
            }
            Status::NotReady => Err(self.cx.not_ready(&self.why_not_ready())),
            Status::Failed | Status::NoProcess | Status::LineTooLong | Status::Stalled | Status::WouldEcho => {
                Err(holder_failed("the command could not be handed over", value))
            }
        };
        let _ = started.send(result);
    }

    /// Why a new request could run in another directory than this one, if it could: a running command or typed input may
    /// change the directory before.
    pub(super) fn may_leave(&self, folder: &Path, key: &Key) -> Option<ActionError> {
        if !matches!(self.cx.key_use(key), KeyUse::Unused) || self.cx.has_exited() {
            return None;
        }
        if let Some(running) = self.cx.timeline.log().newest_running() {
            return Some(self.busy_error(running));
        }
        let is_there =
            || self.cx.host().working_directory(self.cx.timeline.shell().pid).is_some_and(|now| now == folder);
        let stays = self.is_idle() && self.foreground.typing == 0 && is_there();
        (!stays).then(|| overtaken(&self.cx.shared.meta, ELSEWHERE))
    }

    /// Answers the caller of a command that was accepted, now or earlier.
    pub(super) fn hand_out(&mut self, id: u32, wait: Option<Wait>, started: StartReply) {
        if self.cx.timeline.log().command(id).is_none() && id <= self.cx.timeline.log().last_id {
            let known = Started { id, is_history: true, finished: None };
            return drop(started.send(Ok(known)));
        }
        let begins = self.cx.timeline.log().command(id).is_some_and(Command::is_about_to_begin);
        if wait.is_none() && begins {
            // The answer includes the offset of the output, which the shell is about to report.
            let until = self.cx.now.at + limits::START_WAIT;
            return self.waits.at_start.push((id, until, started));
        }
        let begun = self.begin_wait(id, wait);
        let _ = started.send(Ok(begun));
    }

    /// The first prompt came: hands over the commands that waited for it, one at a time.
    pub(super) fn run_pending(&mut self) {
        /// The shell is at its prompt; only its painting may be unfinished.
        const PATIENCE_MS: u32 = 5_000;
        for Pending { text, key, shell, wait, started, .. } in std::mem::take(&mut self.pending.at_prompt) {
            self.ask_run(text, key, shell, PATIENCE_MS, wait, started);
        }
    }

    /// Refuses waiting commands if a start-up file asks for input or has the whole screen, or after their deadline: they
    /// could wait for ever.
    pub(super) fn refuse_pending(&mut self) {
        let never_ends = match self.foreground() {
            Foreground::InputWanted | Foreground::PasswordWanted => true,
            Foreground::Fullscreen => self.foreground.settles_at().is_none_or(|at| self.cx.now.at >= at),
            Foreground::Idle | Foreground::Running | Foreground::Stopped => false,
        };
        if never_ends {
            self.waits.notify_prompt();
        }
        let refused = if never_ends {
            std::mem::take(&mut self.pending.at_prompt)
        } else {
            self.pending.take_overdue(self.cx.now.at)
        };
        if !refused.is_empty() {
            let why = self.why_not_ready();
            for pending in refused {
                let _ = pending.started.send(Err(self.cx.not_ready(&why)));
            }
        }
    }
}
