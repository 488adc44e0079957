//! Ended sessions: they are read from their folders, recorded in the store, retained for some time, and removed.

pub(super) mod removal;
pub(super) mod retention;
pub(super) mod session;
pub(super) mod store_rebuild;
pub(super) mod unrecorded_end;
pub(super) mod unwitnessed_end;
