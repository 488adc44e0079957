//! The parts of a timeline to read; nothing outside writes them.

use std::collections::VecDeque;

use super::{Clock, CommandLog, Hit, OutputScan, Queries, SessionEnd, Shell, SignalLog, Timeline, Trouble};

impl Timeline {
    /// The output, as it was scanned.
    pub(crate) fn output(&self) -> &OutputScan {
        &self.output
    }

    /// The commands.
    pub(crate) fn log(&self) -> &CommandLog {
        &self.log
    }

    /// The shell.
    pub(crate) fn shell(&self) -> &Shell {
        &self.shell
    }

    /// The times.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The signals that were sent.
    pub(crate) fn signals(&self) -> &SignalLog {
        &self.signals
    }

    /// The terminal's queries.
    pub(crate) fn queries(&self) -> &Queries {
        &self.queries
    }

    /// The end of the session.
    pub(crate) fn end(&self) -> &SessionEnd {
        &self.end
    }

    /// When the session ended, or when anything happened last, in microseconds of Unix time.
    pub(crate) fn ended_us(&self) -> u64 {
        self.end.exit.map_or(self.clock.last_us, |(_, _, us)| us)
    }

    /// The trouble on record.
    pub(crate) fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// The part of the events that cannot be read.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// The newest limit hits.
    pub(crate) fn hits(&self) -> &VecDeque<Hit> {
        &self.hits
    }

    /// The process of the holder.
    pub(crate) fn holder_pid(&self) -> u32 {
        self.holder_pid
    }

    /// The width in cells.
    pub(crate) fn cols(&self) -> u16 {
        self.cols
    }

    /// The height in cells.
    pub(crate) fn rows(&self) -> u16 {
        self.rows
    }
}
