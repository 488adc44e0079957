//! The session's foreground: its newest state, and its meaning together with the output and the shell's reports.

pub(super) mod state;
mod steps;
