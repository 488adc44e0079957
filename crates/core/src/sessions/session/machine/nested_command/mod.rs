//! Commands in a nested shell.

pub(super) mod state;
mod steps;
