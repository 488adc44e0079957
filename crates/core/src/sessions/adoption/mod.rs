//! Adoption: how the sessions of a state directory get their actors in this server.

pub(super) mod adopt;
pub(super) mod examination;
mod seat;
pub(super) mod state;
pub(super) mod take_on;
