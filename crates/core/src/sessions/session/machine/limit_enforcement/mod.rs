//! The session's limits: their use, and the end of processes that exceeded one.

pub(super) mod state;
mod steps;
