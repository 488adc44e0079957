//! Approvals: the gate asks the policies about a request, and a person decides on what they leave to one.

pub(super) mod decision;
pub(super) mod gate;
pub(super) mod pending;
