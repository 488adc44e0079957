//! What every protocol over HTTP stands on: the listeners and their connections, request bodies and their bounds, and bodies
//! that end early.

pub(crate) mod connections;
pub mod listeners;
pub(crate) mod problem;
pub(crate) mod request_body;
pub(crate) mod revocable_body;
pub(crate) mod unread_body;
