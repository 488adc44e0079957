//! The session's end: signals to the holder, the shell's exit, and the termination of what is left.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use journal::{EndReason, Record, TroubleKind};
use rustix::process::{WaitOptions, wait};
use sys::signal;
use wire::{Spec, Status};

use super::context::Context;
use super::reports::Reports;
use crate::folder::Folder;
use crate::handover::CommandHandover;
use crate::memory_kills::MemoryKills;

/// The grace period of the session's programs when the holder itself ends the session.
const GRACE_US: u64 = 1_000_000;

/// The events that end a session, and the facts that its last records name.
pub(super) struct Ending {
    signals: OwnedFd,
    folder: Folder,
    memory_kills: MemoryKills,
}

impl Ending {
    /// Watches the session's folder. `signals` is the descriptor of the signals to the holder.
    pub(super) fn watching(folder: &Path, signals: OwnedFd, spec: &Spec, now: u64) -> io::Result<Self> {
        Ok(Self { signals, folder: Folder::watched(folder, now)?, memory_kills: MemoryKills::new(&spec.groups) })
    }

    pub(super) fn signals(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    /// When the folder is checked next.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.folder.next_at()
    }

    pub(super) fn check_folder_if_due(&mut self, handover: &mut CommandHandover, context: &mut Context, now: u64) {
        if self.folder.is_due(now) {
            self.check_folder(handover, context, now);
        }
    }

    /// Ends the session if its folder was removed: no client could reach or end it any more.
    fn check_folder(&mut self, handover: &mut CommandHandover, context: &mut Context, now: u64) {
        if self.folder.is_gone(now) {
            end_by_itself(b"the session's folder was removed", handover, context, now);
        }
    }

    /// Reaps every child; the shell's exit is the session's end.
    pub(super) fn reap(
        &mut self,
        handover: &mut CommandHandover,
        reports: &mut Reports,
        context: &mut Context,
        now: u64,
    ) {
        while let Some(signo) = signal::take(&self.signals) {
            match signo {
                signal::TERM => end_by_itself(b"the holder got SIGTERM", handover, context, now),
                signal::IO => self.check_folder(handover, context, now),
                _ => {}
            }
        }
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let is_shell = pid.as_raw_nonzero().get().unsigned_abs() == context.terminal.shell_pid();
            if is_shell && !context.end.has_exited() {
                context.end.shell_exited(status.as_raw());
                context.sampler.suspend();
            }
        }
        let Some(wait_status) = context.end.unrecorded_exit() else {
            return;
        };
        // The shell's last output is in the terminal already, and its last reports are in the socket.
        let is_drained = context.takes_the_rest(now);
        reports.drain(context, now);
        if !is_drained {
            // The exit record names an end offset, so all output up to it must be in the journal. Until then the
            // writers block as before.
            if context.end.delay_exit() {
                let words = b"the shell has exited; its last output waits for room on the disk";
                context.records.trouble(TroubleKind::DISK_FULL, 0, words);
            }
            return;
        }
        if context.output.disk_is_full() {
            let words = b"ended while the disk was full; the last output is lost";
            context.records.trouble(TroubleKind::DISK_FULL, 0, words);
        }
        if signal::of_wait_status(wait_status) == Some(signal::KILL) {
            self.record_memory_kills(context);
        }
        let (left, names) = context.end.left_behind();
        let (end, dropped_records) = (context.records.end(), reports.dropped());
        let exited = Record::Exited { wait_status, end, dropped_records, left, names: names.as_bytes() };
        if context.records.append(&exited).is_ok() {
            context.publication.announce_now(now);
            handover.refuse_waiting(Status::Ended, context);
            context.end.exit_recorded(now);
        } else {
            context.output.retry_later(now);
        }
    }

    /// Records the kernel's kills that no server has counted; the shell's own may be one of them.
    fn record_memory_kills(&mut self, context: &mut Context) {
        let command = context.shell.command();
        if let Some(count) = self.memory_kills.unrecorded(command) {
            context.records.note(&Record::Limited { limit: wire::MEMORY, command, count });
            self.memory_kills.recorded(command, count);
        }
    }

    /// The server has counted the kernel's kills for the session's memory limit.
    pub(super) fn counted_memory_kills(&mut self, command: u32, count: u64) {
        self.memory_kills.recorded(command, count);
    }

    /// Removes the socket and the temporary files; `close` closes what may still write to the folder.
    pub(super) fn leave(&self, close: impl FnOnce()) {
        self.folder.remove_socket();
        close();
        self.folder.remove_temporary();
    }
}

/// Ends the session without a client's request.
fn end_by_itself(why: &[u8], handover: &mut CommandHandover, context: &mut Context, now: u64) {
    context.end.request(None);
    if !context.end.is_terminating() {
        handover.refuse_waiting(Status::Ended, context);
        context.begin_end((EndReason::HOLDER, why), signal::HUP, GRACE_US, now);
    }
}
