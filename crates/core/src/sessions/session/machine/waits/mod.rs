//! The open waits of the session: their conditions, their beginning and their answers. Ports and files that a caller waits for
//! are watched by `wait_external_conditions.rs`.

pub(super) mod matcher;
pub(super) mod state;
pub(super) mod steps;
