//! Facts about the foreground of a terminal, and the two tables of named rules that say what they mean.
//!
//! An [`Observation`] holds what the kernel shows: which calls the processes sleep in, and the terminal's modes. The rules
//! of [`activity`] make an [`Activity`] of it, the rules of [`verdict`] a [`Verdict`], by what the session knows beside the
//! kernel. An observer asks [`missing`] which fact to fetch next, so that a fact that decides nothing costs nothing.
//!
//! Nothing here reads a file, a socket, a process or a clock, so every rule is tested with recorded facts.

#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod activity;
mod members;
mod observation;
mod text;
mod verdict;

pub use activity::{
    Activity, LineReader, Missing, Reading, activity, activity_rules, depends_on_silence, missing, reads_lines,
};
pub use members::{Member, Terminal, all_are_stopped, at_terminal, members, nested, nested_job};
pub use observation::{
    EventLoop, Job, LoopLimit, Modes, NESTED_MAX, Observation, PollCall, Process, Shell, THREADS_MAX, Wait, quiet_step,
};
pub use text::Unreadable;
pub use verdict::{Situation, Verdict, verdict, verdict_rules};
