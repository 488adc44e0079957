//! Signals that a server asks for: to the foreground, to one process, or to every process of the session.

use std::io;

use journal::Record;
use rustix::io::Errno;
use sys::{process, pty, signal, time};
use wire::{Activity, Status, Target};

use super::context::Context;
use crate::connections::Caller;
use crate::input::Input;
use crate::termination;

/// After this time a program that reads keys has read one.
const KEY_UNREAD_US: u64 = 500_000;
/// After this time the holder checks for the first time whether a signal was lost. Each check waits twice as long as the one before.
const CHECK_US: u64 = 1_000;
/// A copy of a shell that has not become a program after this time will not, and a shell without the terminal does not take it back.
const UNCERTAIN_MAX_US: u64 = 5_000_000;
/// A program does not handle a signal so soon after it was a copy of its shell, as a rule.
const SENT_AT_ONCE_US: u64 = 2_000;

/// A signal to the foreground that its program may not have got. The holder forgets it at the next input.
#[derive(Debug)]
struct UncertainSignal {
    signo: i32,
    /// The command that ran then.
    command: u32,
    /// When it was sent.
    since: u64,
    /// When the holder checks whether the program has got it.
    due_at: u64,
    sent: SentSignal,
}

#[derive(Debug)]
enum SentSignal {
    /// As a key, to a terminal that makes no signals of keys.
    Key,
    /// To these copies of a shell, which were about to become programs. A copy handles the signal as the shell does, and the program in
    /// its place never sees it.
    ToCopies(Vec<ShellCopy>),
    /// To this process group, of which every process had ended. The shell had not taken the terminal back. These processes lived then.
    ToEnded { group: u32, living: Vec<u32> },
}

/// A copy that a shell has made of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShellCopy {
    pid: u32,
    start_ticks: u64,
    /// The image that it shares with its parent.
    image: u64,
}

/// The signals to the foreground.
#[derive(Debug, Default)]
pub(super) struct Signals {
    uncertain: Option<UncertainSignal>,
}

impl Signals {
    /// When the holder checks next whether the program has got a signal.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.uncertain.as_ref().map(|signal| signal.due_at)
    }

    /// Input was typed behind the signal.
    pub(super) fn forget(&mut self) {
        self.uncertain = None;
    }

    pub(super) fn send(
        &mut self,
        from: Caller,
        target: Target,
        signo: i32,
        input: &mut Input,
        context: &mut Context,
        now: u64,
    ) {
        let (result, number) = match target {
            Target::Foreground => {
                on_sent(signo, context, now);
                // The shell may have reaped its child by then, and nobody else is in the foreground.
                let has_continued = signo == signal::CONT && continues_shell(context);
                let result = self.signal_programs(signo, input, context, now);
                (if has_continued { Ok(()) } else { result }, 0)
            }
            Target::Session => {
                termination::signal_all(&termination::living(), signo);
                (Ok(()), -1)
            }
            Target::Process(pid) => {
                let pid_number = i32::try_from(pid).unwrap_or(0);
                if pid_number <= 0 || !termination::living().contains(&pid) {
                    return context.connections.answer(from, Status::NoProcess, u64::from(pid));
                }
                (signal::send(pid_number, signo), pid_number)
            }
        };
        let errno = result.as_ref().err().and_then(io::Error::raw_os_error).unwrap_or(0);
        context.records.note(&Record::Signalled { target: number, signo, errno });
        context.schedule_sample(now);
        match result {
            Ok(()) => context.connections.answer(from, Status::Ok, 0),
            Err(_) => context.connections.answer(from, Status::Failed, errno.unsigned_abs().into()),
        }
    }

    /// Sends it through the terminal where ISIG is set, as a key where the program reads raw keys, by kill(2)
    /// otherwise.
    fn signal_foreground(&mut self, signo: i32, input: &mut Input, context: &mut Context) -> io::Result<()> {
        let modes = pty::modes(context.terminal.leader())?;
        let character = match signo {
            signal::INT => Some(0x03),
            signal::QUIT => Some(0x1c),
            signal::TSTP => Some(0x1a),
            _ => None,
        };
        match character {
            Some(_) if modes.isig => {
                if modes.flushes && !context.has_keys_of_ours_to_read() {
                    input.drop_queued(context, time::monotonic_us());
                    // The signal is sent even if this fails.
                    let _ = pty::discard_typed(context.terminal.leader());
                }
                pty::signal_foreground(context.terminal.leader(), signo)
            }
            Some(byte) => {
                let written = context.terminal.write(&[byte]);
                // At its prompt the shell reads keys, however late.
                self.uncertain = match context.shell.command() {
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
            None => kill_foreground(signo, context),
        }
    }

    /// Sends a signal to the foreground, and notes if no program may have got it.
    fn signal_programs(&mut self, signo: i32, input: &mut Input, context: &mut Context, now: u64) -> io::Result<()> {
        self.uncertain = None;
        // At a prompt nothing is lost that a command's caller waits for.
        if !has_key(signo) || context.shell.command() == 0 {
            return self.signal_foreground(signo, input, context);
        }
        let looked_at = time::monotonic_us();
        let (copies, group) = (shell_copies(context), pty::foreground_group(context.terminal.leader()));
        let living = if copies.is_empty() { living_if_ended(group, context) } else { None };
        let result = self.signal_foreground(signo, input, context);
        // A key waits for its reader.
        if self.uncertain.is_none() {
            let copies = match time::monotonic_us() < looked_at + SENT_AT_ONCE_US {
                true => copies,
                false => shell_copies(context).into_iter().filter(|copy| copies.contains(copy)).collect(),
            };
            let is_same = pty::foreground_group(context.terminal.leader()) == group;
            if let Some(living) = living.filter(|_| is_same) {
                self.watch(signo, SentSignal::ToEnded { group, living }, context, now);
            } else if !copies.is_empty() {
                self.watch(signo, SentSignal::ToCopies(copies), context, now);
            }
        }
        result
    }

    fn watch(&mut self, signo: i32, sent: SentSignal, context: &Context, now: u64) {
        let (command, since, due_at) = (context.shell.command(), now, now + CHECK_US);
        self.uncertain = Some(UncertainSignal { signo, command, since, due_at, sent });
    }

    /// Checks whether the program has got the signal, and sends it again if not.
    pub(super) fn check(&mut self, input: &mut Input, context: &mut Context, now: u64) {
        let Some(mut signal) = self.uncertain.take_if(|signal| now >= signal.due_at) else { return };
        let (signo, waited) = (signal.signo, now - signal.since);
        if context.shell.command() != signal.command {
            return;
        }
        let group = pty::foreground_group(context.terminal.leader());
        match &mut signal.sent {
            SentSignal::Key => return self.check_unread_key(signo, signal.command, input, context, now),
            SentSignal::ToCopies(copies) => {
                // The kernel shows no image while it makes one.
                let is_there =
                    |copy: &ShellCopy, stat: &process::Stat| stat.start_ticks == copy.start_ticks && stat.state != b'Z';
                copies.retain(|copy| process::stat(copy.pid).is_some_and(|stat| is_there(copy, &stat)));
                let has_become = |copy: &ShellCopy| process::image(copy.pid).is_some_and(|image| image != copy.image);
                if let Some(at) = copies.iter().position(|copy| copy.pid == group && has_become(copy)) {
                    let pid = copies.swap_remove(at).pid;
                    on_sent(signo, context, now);
                    // The other processes of its group have got the first one.
                    let result = signal::send(pid.cast_signed(), signo);
                    note(&result, signo, context);
                    return context.schedule_sample(now);
                }
                if copies.is_empty() {
                    return;
                }
            }
            // A shell that was there before runs on, and its next program is new.
            SentSignal::ToEnded { group: ended, living } if group != *ended && !living.contains(&group) => {
                on_sent(signo, context, now);
                let result = self.signal_programs(signo, input, context, now);
                note(&result, signo, context);
                return context.schedule_sample(now);
            }
            SentSignal::ToEnded { .. } => {}
        }
        if waited < UNCERTAIN_MAX_US {
            signal.due_at = now + waited;
            self.uncertain = Some(signal);
        }
    }

    /// Sends the signal of a key by kill(2) if the command that ran then still runs, reads nothing, and has not read the key: an
    /// earlier program has left a terminal behind that makes no signals.
    fn check_unread_key(&mut self, signo: i32, command: u32, input: &mut Input, context: &mut Context, now: u64) {
        if context.output.blocked_until().is_some() {
            // The program may read keys again when its output moves on.
            let (since, due_at, sent) = (now, now + KEY_UNREAD_US, SentSignal::Key);
            self.uncertain = Some(UncertainSignal { signo, command, since, due_at, sent });
            return;
        }
        let leader = context.terminal.leader();
        let Ok(modes) = pty::modes(leader) else { return };
        let works = || {
            let sample = context.sampler.sample(leader, context.terminal.shell_pid());
            sample.is_some_and(|sample| sample.state.foreground == Activity::Busy)
        };
        // The line discipline counts no byte of an unfinished line.
        let is_unread = || modes.canonical || pty::unread(leader) > 0;
        if modes.isig || context.shell.command() != command || !is_unread() || !works() {
            return;
        }
        on_sent(signo, context, now);
        if modes.flushes {
            input.drop_queued(context, now);
            // The signal is sent even if this fails.
            let _ = pty::discard_typed(context.terminal.leader());
        }
        let result = kill_foreground(signo, context);
        note(&result, signo, context);
        context.schedule_sample(now);
    }
}

/// Continues a shell that is stopped while its child has the terminal, and returns whether it did. A stop that is sent while a shell
/// forks stops the shell itself.
fn continues_shell(context: &Context) -> bool {
    let shell = context.terminal.shell_pid();
    let is_stopped = process::stat(shell).is_some_and(|stat| stat.state == b'T');
    is_stopped && signal::send(shell.cast_signed(), signal::CONT).is_ok()
}

fn kill_foreground(signo: i32, context: &Context) -> io::Result<()> {
    let group = i32::try_from(pty::foreground_group(context.terminal.leader())).unwrap_or(0);
    if group <= 0 {
        return Err(io::Error::from_raw_os_error(Errno::SRCH.raw_os_error()));
    }
    signal::send(-group, signo)
}

/// All processes of the session that live, if every process of this group has ended and the shell runs on.
fn living_if_ended(group: u32, context: &Context) -> Option<Vec<u32>> {
    let lives = |stat: process::Stat| stat.pgrp == group && (stat.state != b'Z' || stat.threads > 1);
    // The holder may not see the processes of another user, to which it may not send a signal either.
    let may_see = || signal::send(-i32::try_from(group).unwrap_or(0), 0).is_ok();
    // The leader lives, as a rule, and the others need not be looked at.
    if group == 0 || group == context.terminal.shell_pid() || process::stat(group).is_some_and(lives) || !may_see() {
        return None;
    }
    let living = termination::living();
    let has_ended = !living.iter().filter_map(|pid| process::stat(*pid)).any(lives);
    has_ended.then_some(living)
}

/// The copies of a shell that are about to become programs: the leader of the foreground group, or a child of it that gets a group of
/// its own. A subshell that runs a program has a child.
fn shell_copies(context: &Context) -> Vec<ShellCopy> {
    let group = pty::foreground_group(context.terminal.leader());
    let mut pids = vec![group];
    process::children(group, &mut pids);
    let copy = |pid: u32| {
        let (stat, image) = (process::stat(pid)?, process::image(pid)?);
        let mut children = Vec::new();
        process::children(pid, &mut children);
        let is_copy = children.is_empty() && process::image(stat.ppid) == Some(image);
        is_copy.then_some(ShellCopy { pid, start_ticks: stat.start_ticks, image })
    };
    pids.into_iter().filter_map(copy).collect()
}

fn note(result: &io::Result<()>, signo: i32, context: &mut Context) {
    let errno = result.as_ref().err().and_then(io::Error::raw_os_error).unwrap_or(0);
    context.records.note(&Record::Signalled { target: 0, signo, errno });
}

/// An interrupt makes the shell discard its unfinished line.
fn on_sent(signo: i32, context: &mut Context, now: u64) {
    context.sampler.signalled(now);
    if signo == signal::INT {
        context.shell.interrupted(now);
    }
}

/// Whether a key of the terminal sends this signal.
fn has_key(signo: i32) -> bool {
    [signal::INT, signal::QUIT, signal::TSTP].contains(&signo)
}
