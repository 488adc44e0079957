//! Commands in a nested shell.

mod programs;
pub(super) mod state;
mod steps;
