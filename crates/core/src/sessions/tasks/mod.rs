//! Tasks: waits that outlive their requests. Their records are in the folders of sessions and of removed sessions.

pub(super) mod follow;
mod question;
pub(super) mod records;
mod removed;
