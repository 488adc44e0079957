//! The records of tasks, in the folders of sessions and of removed sessions.

pub(super) mod records;
mod removed;
