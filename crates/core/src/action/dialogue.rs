//! Dialogues: several steps of waiting and typing in one request.

use std::time::Instant;

use super::input::InputBytes;
use super::pattern::Pattern;
use super::report::Report;
use super::wait::Wait;
use crate::ids::{CommandId, SessionId};

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
    /// The command that runs, as far as the caller knows; its steps are not typed at the shell's prompt after its end.
    pub meant_for: Option<CommandId>,
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
    /// The step (from 0) that was not typed, if one was not: its pattern did not come, or its program had ended.
    pub unmatched: Option<usize>,
    /// The program of that step had ended.
    pub is_too_late: bool,
}
