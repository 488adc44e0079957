//! Dialogues: several steps of waiting and typing in one request.

use std::time::Instant;

use super::input::InputBytes;
use super::pattern::Pattern;
use super::report::Report;
use super::wait::Wait;
use crate::ids::SessionId;

/// A request to play a dialogue with the running program.
#[derive(Debug, Clone)]
pub struct Dialogue {
    /// The session.
    pub session: SessionId,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The wait after the last step.
    pub finally: Wait,
    /// The end of the whole dialogue.
    pub deadline: Instant,
    /// The idempotency key: a step of a repeated request with it is not typed again.
    pub key: Option<String>,
}

/// One step.
#[derive(Debug, Clone)]
pub struct Step {
    /// The pattern to wait for first.
    pub wait_for: Option<Pattern>,
    /// The input to type then.
    pub bytes: Option<InputBytes>,
}

/// The result of a dialogue.
#[derive(Debug, Clone)]
pub struct DialogueView {
    /// The report on the last step, with the output of the whole dialogue.
    pub report: Report,
    /// The step (from 0) that ended without its pattern, if one did.
    pub unmatched: Option<usize>,
}
