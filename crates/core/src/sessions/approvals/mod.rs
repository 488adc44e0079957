//! Approvals: the gate asks the policies about a request, and a person decides on what they leave to one.

mod approver;
pub(super) mod gate;
pub(super) mod pending;
pub(super) mod record_decision;
