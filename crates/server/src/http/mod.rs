//! The common parts of every protocol over HTTP: connections, problem documents, request bodies and their limits,
//! bodies that say when they end, response bodies that can be revoked, and the conversion into wire types.

mod connection_slots;
pub(crate) mod connections;
pub(crate) mod convert;
pub(crate) mod html_page;
pub(crate) mod misdirected;
pub(crate) mod polled_again;
pub(crate) mod problem;
pub(crate) mod request_body;
pub(crate) mod token_revocation;
pub(crate) mod unread_body;
pub(crate) mod watched_body;
