//! Signals that a server asks for: to the foreground, to one process, or to every process of the session.

use std::io;

use journal::Record;
use rustix::io::Errno;
use sys::{pty, signal, time};
use wire::{Activity, Status, Target};

use super::Holder;
use crate::connections::Caller;
use crate::input::SignalKey;
use crate::termination;

/// After this time a program that reads keys has read one.
const KEY_UNREAD_US: u64 = 500_000;

impl Holder {
    pub(super) fn signal(&mut self, from: Caller, target: Target, signo: i32, now: u64) {
        let (result, number) = match target {
            Target::Foreground => {
                self.on_signal_sent(signo, now);
                (self.signal_foreground(signo), 0)
            }
            Target::Session => {
                termination::signal_all(&termination::living(), signo);
                (Ok(()), -1)
            }
            Target::Process(pid) => {
                let pid_number = i32::try_from(pid).unwrap_or(0);
                if pid_number <= 0 || !termination::living().contains(&pid) {
                    return self.connections.answer(from, Status::NoProcess, u64::from(pid));
                }
                (signal::send(pid_number, signo), pid_number)
            }
        };
        let errno = result.as_ref().err().and_then(io::Error::raw_os_error).unwrap_or(0);
        self.records.note(&Record::Signalled { target: number, signo, errno });
        self.schedule_sample(now);
        match result {
            Ok(()) => self.connections.answer(from, Status::Ok, 0),
            Err(_) => self.connections.answer(from, Status::Failed, errno.unsigned_abs().into()),
        }
    }

    /// Sends it through the terminal where ISIG is set, as a key where the program reads raw keys, by kill(2)
    /// otherwise.
    fn signal_foreground(&mut self, signo: i32) -> io::Result<()> {
        let modes = pty::modes(self.terminal.leader())?;
        let character = match signo {
            signal::INT => Some(0x03),
            signal::QUIT => Some(0x1c),
            signal::TSTP => Some(0x1a),
            _ => None,
        };
        match character {
            Some(_) if modes.isig => {
                if modes.flushes && !self.has_keys_of_ours_to_read() {
                    self.drop_queued_input(time::monotonic_us());
                    // The signal is sent even if this fails.
                    let _ = pty::discard_typed(self.terminal.leader());
                }
                pty::signal_foreground(self.terminal.leader(), signo)
            }
            Some(byte) => {
                let written = self.terminal.write(&[byte]);
                // At its prompt the shell reads keys, however late.
                self.unread_key = match self.shell.command() {
                    0 => None,
                    command => Some(SignalKey { signo, command, due_at: time::monotonic_us() + KEY_UNREAD_US }),
                };
                match written {
                    // A terminal that is full of input takes no key; its program reads none.
                    Err(Errno::AGAIN) => Ok(()),
                    written => Ok(written.map(drop)?),
                }
            }
            None => self.kill_foreground(signo),
        }
    }

    fn kill_foreground(&self, signo: i32) -> io::Result<()> {
        let group = i32::try_from(pty::foreground_group(self.terminal.leader())).unwrap_or(0);
        if group <= 0 {
            return Err(io::Error::from_raw_os_error(Errno::SRCH.raw_os_error()));
        }
        signal::send(-group, signo)
    }

    /// Sends the signal of a key by kill(2) if the command that ran then still runs, reads nothing, and has not read the key: an
    /// earlier program has left a terminal behind that makes no signals.
    pub(super) fn check_unread_key(&mut self, now: u64) {
        let Some(SignalKey { signo, command, .. }) = self.unread_key.take_if(|key| now >= key.due_at) else { return };
        if self.output.blocked_until().is_some() {
            // The program may read keys again when its output moves on.
            self.unread_key = Some(SignalKey { signo, command, due_at: now + KEY_UNREAD_US });
            return;
        }
        let leader = self.terminal.leader();
        let Ok(modes) = pty::modes(leader) else { return };
        let works = || {
            let sample = self.sampler.sample(leader, self.terminal.shell_pid());
            sample.is_some_and(|sample| sample.state.foreground == Activity::Busy)
        };
        // The line discipline counts no byte of an unfinished line.
        let is_unread = || modes.canonical || pty::unread(leader) > 0;
        if modes.isig || self.shell.command() != command || !is_unread() || !works() {
            return;
        }
        self.on_signal_sent(signo, now);
        if modes.flushes {
            self.drop_queued_input(now);
            // The signal is sent even if this fails.
            let _ = pty::discard_typed(self.terminal.leader());
        }
        let result = self.kill_foreground(signo);
        let errno = result.err().and_then(|error| error.raw_os_error()).unwrap_or(0);
        self.records.note(&Record::Signalled { target: 0, signo, errno });
        self.schedule_sample(now);
    }

    /// An interrupt makes the shell discard its unfinished line.
    fn on_signal_sent(&mut self, signo: i32, now: u64) {
        self.sampler.signalled(now);
        if signo == signal::INT {
            self.shell.interrupted(now);
        }
    }
}
