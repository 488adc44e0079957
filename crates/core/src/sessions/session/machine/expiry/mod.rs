//! `inactivityTimeout` and `maxAge`: the deadlines, and the end of a session whose deadline has passed.

pub(super) mod state;
mod steps;
