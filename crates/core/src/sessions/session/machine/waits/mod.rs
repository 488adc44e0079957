//! The open waits of the session: their conditions, their beginning and their answers.

pub(super) mod state;
mod steps;
