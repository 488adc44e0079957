//! The records of tasks: those in the folders of sessions, and those of removed sessions.

pub(super) mod records;
mod removed;
