//! Signals that a server asks for: to the foreground, to one process, or to every process of the session.

use std::io;

use journal::Record;
use rustix::io::Errno;
use sys::{process, pty, signal, time};
use wire::{Activity, Status, Target};

use super::Holder;
use crate::connections::Caller;
use crate::input::{SentSignal, UncertainSignal};
use crate::termination;

/// After this time a program that reads keys has read one.
const KEY_UNREAD_US: u64 = 500_000;
/// After this time the holder checks for the first time whether a signal was lost. Each check waits twice as long as the one before.
const CHECK_US: u64 = 1_000;
/// A copy of a shell that has not become a program after this time will not, and a shell without the terminal does not take it back.
const UNCERTAIN_MAX_US: u64 = 5_000_000;
/// Until this time after the holder has looked at a copy of a shell, that copy is no program which handles signals.
const SENT_AT_ONCE_US: u64 = 2_000;
/// A shell that has had the terminal for so long runs the command itself.
const SHELL_RUNS_US: u64 = 20_000;

impl Holder {
    pub(super) fn signal(&mut self, from: Caller, target: Target, signo: i32, now: u64) {
        let (result, number) = match target {
            Target::Foreground => {
                self.on_signal_sent(signo, now);
                (self.signal_programs(signo, now), 0)
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
                self.uncertain_signal = match self.shell.command() {
                    0 => None,
                    command => {
                        let since = time::monotonic_us();
                        let due_at = since + KEY_UNREAD_US;
                        Some(UncertainSignal { signo, command, since, due_at, sent: SentSignal::Key })
                    }
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

    /// Sends a signal to the foreground, and notes if no program may have got it.
    fn signal_programs(&mut self, signo: i32, now: u64) -> io::Result<()> {
        // At a prompt nothing is lost that a command's caller waits for.
        if !has_key(signo) || self.shell.command() == 0 {
            return self.signal_foreground(signo);
        }
        self.uncertain_signal = None;
        let (forks, group) = (self.forks(), pty::foreground_group(self.terminal.leader()));
        let had_ended = forks.is_empty() && self.has_ended(group);
        let looked_at = time::monotonic_us();
        let result = self.signal_foreground(signo);
        let forks = match time::monotonic_us() < looked_at + SENT_AT_ONCE_US {
            true => forks,
            false => self.forks().into_iter().filter(|fork| forks.contains(fork)).collect(),
        };
        if self.uncertain_signal.is_some() {
            // It is a key, which waits for its reader.
        } else if had_ended {
            self.watch_signal(signo, SentSignal::Ended(group), now);
        } else if !forks.is_empty() {
            self.watch_signal(signo, SentSignal::Forks(forks), now);
        }
        result
    }

    /// Whether the shell runs on, and every process of this group has ended.
    fn has_ended(&self, group: u32) -> bool {
        let is_alive = |stat: process::Stat| stat.pgrp == group && stat.state != b'Z';
        // Its leader lives, as a rule, and the others need not be looked at.
        let leader_lives = process::stat(group).is_some_and(is_alive);
        let others_live = || termination::living().into_iter().filter_map(process::stat).any(is_alive);
        group != self.terminal.shell_pid() && !leader_lives && !others_live()
    }

    fn watch_signal(&mut self, signo: i32, sent: SentSignal, now: u64) {
        let (command, since, due_at) = (self.shell.command(), now, now + CHECK_US);
        self.uncertain_signal = Some(UncertainSignal { signo, command, since, due_at, sent });
    }

    /// The copies of a shell that are about to become programs of the foreground, each with its image.
    fn forks(&self) -> Vec<(u32, u64)> {
        let group = pty::foreground_group(self.terminal.leader());
        let mut pids = vec![group];
        process::children(group, &mut pids);
        let image_of_copy = |pid: u32| {
            let image = process::image(pid)?;
            let parent = process::stat(pid)?.ppid;
            (process::image(parent) == Some(image)).then_some((pid, image))
        };
        pids.into_iter().filter_map(image_of_copy).collect()
    }

    /// Checks whether the program has got the signal, and sends it again if not.
    pub(super) fn check_uncertain_signal(&mut self, now: u64) {
        let Some(mut signal) = self.uncertain_signal.take_if(|signal| now >= signal.due_at) else { return };
        let (signo, waited) = (signal.signo, now - signal.since);
        if self.shell.command() != signal.command {
            return;
        }
        let group = pty::foreground_group(self.terminal.leader());
        let is_lost = match &mut signal.sent {
            SentSignal::Key => return self.check_unread_key(signo, signal.command, now),
            SentSignal::Forks(forks) => {
                let is_program = |(pid, image): &(u32, u64)| process::image(*pid).is_some_and(|now| now != *image);
                let is_lost = forks.iter().any(|fork| fork.0 == group && is_program(fork));
                // The kernel shows no image while it makes one.
                forks.retain(|(pid, _)| process::stat(*pid).is_some_and(|stat| stat.state != b'Z'));
                if forks.is_empty() {
                    return;
                }
                is_lost
            }
            SentSignal::Ended(ended) => {
                group != *ended && (group != self.terminal.shell_pid() || waited >= SHELL_RUNS_US)
            }
        };
        if is_lost {
            self.on_signal_sent(signo, now);
            let result = self.signal_programs(signo, now);
            self.note_signal(&result, signo);
            self.schedule_sample(now);
        } else if waited < UNCERTAIN_MAX_US {
            signal.due_at = now + waited;
            self.uncertain_signal = Some(signal);
        }
    }

    fn note_signal(&mut self, result: &io::Result<()>, signo: i32) {
        let errno = result.as_ref().err().and_then(io::Error::raw_os_error).unwrap_or(0);
        self.records.note(&Record::Signalled { target: 0, signo, errno });
    }

    /// Sends the signal of a key by kill(2) if the command that ran then still runs, reads nothing, and has not read the key: an
    /// earlier program has left a terminal behind that makes no signals.
    fn check_unread_key(&mut self, signo: i32, command: u32, now: u64) {
        if self.output.blocked_until().is_some() {
            // The program may read keys again when its output moves on.
            let (since, due_at, sent) = (now, now + KEY_UNREAD_US, SentSignal::Key);
            self.uncertain_signal = Some(UncertainSignal { signo, command, since, due_at, sent });
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
        self.note_signal(&result, signo);
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

/// Whether a key of the terminal sends this signal.
fn has_key(signo: i32) -> bool {
    [signal::INT, signal::QUIT, signal::TSTP].contains(&signo)
}
