//! A wait for output that may be there already, before it is read.

use journal::MaskedText;

use super::command::CommandView;
use super::output::Since;
use super::report::Report;
use super::wait::Wait;
use crate::ids::{CommandId, SessionId};

/// A request to wait before output is read; output that came since the caller's last request counts, too.
#[derive(Debug, Clone)]
pub struct AwaitOutput {
    /// The session.
    pub session: SessionId,
    /// The conditions and the timeout.
    pub wait: Wait,
    /// The offset at which the caller will read; existing output from there on counts.
    pub since: Option<Since>,
    /// The command whose output the caller will read.
    pub command: Option<CommandId>,
    /// Text on the present screen counts, instead of existing output.
    pub on_screen: bool,
}

/// A request to wait in several sessions at once.
#[derive(Debug, Clone)]
pub struct AwaitSessions {
    /// One wait for each session, [`crate::limits::SESSIONS_AWAITED_MAX`] at most.
    pub waits: Vec<AwaitOutput>,
    /// Until all of them are over, instead of the first.
    pub all: bool,
}

/// The result of such a wait.
#[derive(Debug, Clone, Default)]
pub struct AwaitedOutput {
    /// The beginning of the awaited output, if it is known.
    pub from: Option<u64>,
    /// The text in existing output, or on the screen, that matched the pattern.
    pub matched: Option<MaskedText>,
    /// The report on the wait, if nothing matched before.
    pub report: Option<Box<Report>>,
    /// The command that ran when the wait began and has ended since, if the caller named none.
    pub ended: Option<CommandView>,
}
