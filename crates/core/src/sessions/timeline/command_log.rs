//! The commands of a session: each with its number, its channel, its key, and its end.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wire::Key;

use super::handover::{Handover, RecentHandovers};
use crate::action::{Boundary, CommandStatus, Limit};
use crate::limits::{COMMANDS_IN_MEMORY, COMMANDS_TEXT_IN_MEMORY};
use crate::sessions::timeline::nested_line::NestedLine;

/// How many keys of typed input are kept: as many as the holder keeps.
const KEYS_KEPT: usize = 256;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    pub(crate) id: u32,
    pub(crate) key: Key,
    pub(crate) text: Arc<str>,
    pub(crate) accepted_us: u64,
    /// By how much the wall clock was set since.
    pub(crate) set_by_us: i64,
    /// The journal's end when it was accepted.
    pub(crate) accepted_at: u64,
    /// Where background output before it begins: behind the boundary before it, once its marker came.
    pub(crate) background_from: u64,
    /// The first byte of its output, once its marker came.
    pub(crate) start: Option<u64>,
    pub(crate) end: Option<End>,
    /// The limits that it hit.
    pub(crate) limits_hit: Vec<Limit>,
    /// The nonce of the marker where its output begins.
    pub(crate) nonce: u64,
    pub(crate) channel: Channel,
}

/// How a command was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// By the shell's integration, which reports its beginning and its end.
    Hooks,
    /// Typed as a line into a program without our hooks; the kernel's foreground state shows its end.
    Line,
    /// Typed as a line into a nested shell; markers in the line report its beginning and its end.
    NestedShell,
}

/// How and where a command ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) at: u64,
    pub(crate) time_us: u64,
    pub(crate) status: CommandStatus,
    pub(crate) exit: Option<i32>,
    pub(crate) pipestatus: Vec<i32>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) error: Option<String>,
    pub(crate) boundary: Boundary,
}

impl Command {
    /// The time from its acceptance to its end, without steps of the wall clock.
    pub(crate) fn lasted(&self) -> Option<Duration> {
        let passed = self.end.as_ref()?.time_us.cast_signed() - self.accepted_us.cast_signed() - self.set_by_us;
        Some(Duration::from_micros(u64::try_from(passed).unwrap_or(0)))
    }

    /// Whether it was accepted and its output has not begun. The output of a command typed as a line begins with its
    /// echo.
    pub(crate) fn is_about_to_begin(&self) -> bool {
        self.channel != Channel::Line && self.start.is_none() && self.end.is_none()
    }

    /// Where its hand-over ends, once that is known.
    fn handed_over_at(&self) -> Option<u64> {
        self.start.or(self.end.as_ref().map(|end| end.at))
    }

    /// Its hand-over; `None` if the line is the command itself.
    fn handover(&self) -> Option<Handover> {
        let (is_inside, to) = (self.channel == Channel::NestedShell, self.handed_over_at());
        let handover =
            Handover { from: self.accepted_at, to, nonce: self.nonce, is_inside, given: Arc::clone(&self.text) };
        (self.channel != Channel::Line).then_some(handover)
    }

    /// The offset at which its output begins, as far as known.
    pub(crate) fn output_from(&self) -> u64 {
        self.start.unwrap_or(self.accepted_at)
    }
}

/// The newest commands, and which of them run.
#[derive(Debug)]
pub(crate) struct CommandLog {
    pub(crate) commands: VecDeque<Command>,
    /// All hand-overs that begin at this offset or later are of these commands.
    known_from: u64,
    /// The command that was accepted and has not ended.
    pub(crate) current: Option<u32>,
    /// The newest command that was sent an interrupt, by a key or a signal; 0 for none.
    pub(crate) interrupted: u32,
    /// The command that was typed into a nested shell and has not ended.
    pub(crate) inside: Option<NestedLine>,
    /// Behind the newest marker with which a nested shell has reported a command's end.
    pub(super) nested_end_at: u64,
    /// The output's end when something was typed, handed over or signalled last.
    pub(super) typed_at: u64,
    pub(crate) last_id: u32,
    /// Times of `D` records whose marker has not come yet, by command id.
    pub(super) ended_us: HashMap<u32, u64>,
    /// Nested commands that have ended at a time that no event tells yet.
    pub(crate) untimed: VecDeque<u32>,
    /// The offset of the last boundary: output from here on is background output while no command runs.
    pub(crate) background_from: u64,
    /// The keys of typed input, each with the output's end at that time and the number of bytes, also from before this
    /// server.
    input_keys: VecDeque<(Key, u64, u32)>,
}

impl CommandLog {
    /// Whether a nested shell has reported a command's end, and nothing was typed, handed over or signalled since: it reads next.
    pub(crate) fn nested_shell_reads_next(&self) -> bool {
        self.inside.is_none() && self.nested_end_at > self.typed_at
    }

    pub(super) fn new(first: u64) -> Self {
        Self {
            commands: VecDeque::new(),
            known_from: 0,
            current: None,
            interrupted: 0,
            inside: None,
            nested_end_at: 0,
            typed_at: 0,
            last_id: 0,
            ended_us: HashMap::new(),
            untimed: VecDeque::new(),
            background_from: first,
            input_keys: VecDeque::new(),
        }
    }

    /// The wall clock was set while commands ran. A command whose end is on record has ended, also before its marker is read.
    pub(super) fn clock_set(&mut self, by_us: i64) {
        for command in &mut self.commands {
            if command.end.is_none() && !self.ended_us.contains_key(&command.id) {
                command.set_by_us += by_us;
            }
        }
    }

    /// Notes that what has the terminal was sent an interrupt.
    pub(super) fn interrupt(&mut self) {
        self.interrupted = self.current.unwrap_or(self.interrupted);
    }

    /// The time at which this nested command ended, whose marker was read at `read_us`: as an event tells it, or else
    /// that, until one does.
    pub(super) fn end_time(&mut self, id: u32, read_us: u64) -> u64 {
        self.ended_us.remove(&id).unwrap_or_else(|| {
            if self.untimed.len() == COMMANDS_IN_MEMORY {
                self.untimed.pop_front();
            }
            self.untimed.push_back(id);
            read_us
        })
    }

    /// An event tells when this nested command ended; its marker may be read later.
    pub(super) fn set_end_time(&mut self, id: u32, time_us: u64) {
        self.untimed.retain(|untimed| *untimed != id);
        match self.command_mut(id).map(|command| &mut command.end) {
            Some(Some(end)) => end.time_us = time_us,
            Some(None) => drop(self.ended_us.insert(id, time_us)),
            None => {}
        }
    }

    /// Remembers the key of typed input.
    pub(super) fn remember_input(&mut self, key: Key, at: u64, len: u32) {
        if key != wire::NO_KEY {
            if self.input_keys.len() == KEYS_KEPT {
                self.input_keys.pop_front();
            }
            self.input_keys.push_back((key, at, len));
        }
    }

    /// Adds a command, and drops the oldest ended ones if there are too many, or if their texts are too long.
    pub(super) fn push(&mut self, command: Command) {
        loop {
            let text = self.commands.iter().map(|c| c.text.len()).sum::<usize>() + command.text.len();
            let is_full = self.commands.len() >= COMMANDS_IN_MEMORY;
            let oldest = match self.commands.iter().position(|c| c.end.is_some()) {
                Some(ended) if is_full || text > COMMANDS_TEXT_IN_MEMORY => ended,
                None if is_full => 0,
                Some(_) | None => break,
            };
            self.commands.remove(oldest);
            self.known_from = self.commands.get(oldest).map_or(command.accepted_at, |next| next.accepted_at);
        }
        self.commands.push_back(command);
    }

    /// The newest command that ran when the output ended at this offset.
    pub(crate) fn command_at(&self, offset: u64) -> Option<u32> {
        let ran = |c: &&Command| c.accepted_at <= offset && c.end.as_ref().is_none_or(|end| end.at >= offset);
        self.commands.iter().rev().find(ran).map(|c| c.id)
    }

    /// The newest command that has not ended.
    pub(crate) fn newest_running(&self) -> Option<u32> {
        self.inside.as_ref().map(|inside| inside.id).or(self.current)
    }

    /// The output's end when the input with this key was typed.
    pub(crate) fn typed_from(&self, key: &Key) -> Option<u64> {
        self.input_keys.iter().rev().find(|(of, ..)| of == key).map(|(_, at, _)| *at)
    }

    /// The output's end when the input with this key was typed, and its length; an error if the key was used for
    /// another request.
    pub(crate) fn typed_with(&self, key: &Key) -> Option<Result<(u64, u32), ()>> {
        let (known, at, len) = self.input_keys.iter().rev().find(|(of, ..)| wire::is_same_name(of, key))?;
        Some(if known == key { Ok((*at, *len)) } else { Err(()) })
    }

    /// The command whose hand-over may still be on its way.
    pub(crate) fn being_handed_over(&self) -> Option<&Command> {
        self.commands.back().filter(|c| c.is_about_to_begin())
    }

    /// The accepted command whose output has not begun.
    pub(crate) fn awaits_start(&self) -> Option<&Command> {
        self.current_command().filter(|c| c.start.is_none() && c.channel == Channel::Hooks)
    }

    /// The hand-over of the newest command that has one.
    pub(crate) fn newest_handover(&self) -> Option<Handover> {
        self.commands.iter().rev().find_map(Command::handover)
    }

    /// The hand-overs of these commands that may reach behind this offset.
    pub(crate) fn handovers(&self, from: u64) -> RecentHandovers {
        let reaches = |command: &&Command| command.handed_over_at().is_none_or(|to| to > from);
        let handovers = self.commands.iter().filter(reaches).filter_map(Command::handover).collect();
        RecentHandovers { known_from: self.known_from, handovers: Arc::new(handovers) }
    }

    /// Brings hand-overs that were taken from this log earlier up to date.
    pub(crate) fn update(&self, earlier: &mut RecentHandovers) {
        let is_same = |(command, earlier): &(&Command, &Handover)| {
            (command.accepted_at, command.handed_over_at(), command.nonce) == (earlier.from, earlier.to, earlier.nonce)
        };
        let all = || self.commands.iter().filter(|command| command.channel != Channel::Line);
        let known = Arc::make_mut(&mut earlier.handovers);
        let first = all().next().map_or(u64::MAX, |command| command.accepted_at);
        known.drain(..known.iter().take_while(|handover| handover.from < first).count());
        known.truncate(all().zip(known.iter()).take_while(is_same).count());
        known.extend(all().skip(known.len()).filter_map(Command::handover));
        earlier.known_from = self.known_from;
    }

    /// The command that the session runs, unless it has left the memory.
    pub(crate) fn current_command(&self) -> Option<&Command> {
        self.current.and_then(|id| self.command(id))
    }

    pub(crate) fn command(&self, id: u32) -> Option<&Command> {
        self.commands.iter().rev().find(|c| c.id == id)
    }

    pub(crate) fn command_mut(&mut self, id: u32) -> Option<&mut Command> {
        self.commands.iter_mut().rev().find(|c| c.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(id: u32, channel: Channel) -> Command {
        Command {
            id,
            key: wire::NO_KEY,
            text: Arc::from("ls"),
            accepted_us: 0,
            set_by_us: 0,
            accepted_at: u64::from(id) * 100,
            background_from: u64::from(id) * 100,
            start: None,
            end: None,
            limits_hit: Vec::new(),
            nonce: u64::from(id),
            channel,
        }
    }

    fn end(at: u64) -> End {
        End {
            at,
            time_us: 0,
            status: CommandStatus::Completed,
            exit: Some(0),
            pipestatus: Vec::new(),
            cwd: None,
            error: None,
            boundary: Boundary::Attested,
        }
    }

    #[test]
    fn a_command_lasts_as_long_as_it_did_however_the_clock_was_set_meanwhile() {
        let mut log = CommandLog::new(0);
        for id in 1..=3 {
            log.push(Command { accepted_us: 5_000, ..command(id, Channel::Hooks) });
        }
        log.ended_us.insert(1, 6_000);
        log.clock_set(-4_000);
        log.clock_set(-500);
        for (id, time_us) in [(1, 6_000), (2, 2_500), (3, 0)] {
            log.command_mut(id).expect("in memory").end = Some(End { time_us, ..end(0) });
        }
        let lasted = [1, 2, 3].map(|id| log.command(id).and_then(Command::lasted).expect("ended").as_micros());
        assert_eq!(lasted, [1_000, 2_000, 0], "the first had ended before, and none lasts less than no time");
    }

    #[test]
    fn the_text_of_commands_in_memory_is_bounded_and_running_commands_stay() {
        let mut log = CommandLog::new(0);
        let long = |id| Command { text: "x".repeat(COMMANDS_TEXT_IN_MEMORY / 2).into(), ..command(id, Channel::Hooks) };
        for id in 1..=5 {
            log.push(long(id));
        }
        assert_eq!(log.commands.len(), 5, "none of them has ended");
        for id in 1..=4 {
            log.command_mut(id).expect("in memory").end = Some(end(0));
        }
        log.push(long(6));
        assert_eq!(log.commands.iter().map(|c| c.id).collect::<Vec<_>>(), [5, 6]);
        log.push(command(7, Channel::Hooks));
        assert_eq!(log.commands.len(), 3);
    }

    #[test]
    fn updated_handovers_are_those_of_the_present_commands() {
        let mut log = CommandLog::new(0);
        let mut followed = RecentHandovers::default();
        let mut check = |log: &CommandLog| {
            log.update(&mut followed);
            let present = log.handovers(0);
            assert_eq!((followed.known_from, &followed.handovers), (present.known_from, &present.handovers));
        };
        for id in 1..COMMANDS_IN_MEMORY as u32 * 3 {
            let channel = if id % 7 == 0 { Channel::Line } else { Channel::Hooks };
            log.push(command(id, channel));
            check(&log);
            // Some never begin, and one begins after its next one was accepted.
            if id % 5 != 0 && id > 1 {
                let begins = if id % 11 == 0 { id - 1 } else { id };
                let command = log.command_mut(begins).expect("in memory");
                command.start = Some(command.accepted_at + 50);
                check(&log);
            }
            if id % 3 != 0 {
                let end = log.command(id).map(|command| end(command.accepted_at + 60));
                log.command_mut(id).expect("in memory").end = end;
                check(&log);
            }
        }
    }
}
