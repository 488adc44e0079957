//! Commands in a nested shell.

pub(super) mod programs;
pub(super) mod state;
mod steps;
