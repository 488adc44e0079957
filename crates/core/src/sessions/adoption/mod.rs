//! Adoption: how the sessions of a state directory get their actors in this server.

pub(super) mod adopt;
pub(super) mod examination;
pub(super) mod state;
