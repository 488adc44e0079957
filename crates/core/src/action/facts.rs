//! One table of the facts about every action: its name, the scope that it needs, how the audit log records it, and whether it waits.

use super::{Action, Composite, LogInStep};
use crate::principal::Scope;

/// The facts about an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The name in logs and in the audit log.
    pub name: &'static str,
    /// The scope that the caller needs.
    pub needs: Scope,
    /// How the audit log records it.
    pub(crate) audit: AuditClass,
    /// Whether the request waits for events that take their own time, or gives programs time to exit or to read.
    pub waits: bool,
}

/// How the audit log records an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditClass {
    /// It changes something: a line before it, and one before its answer. Without the first line it is not performed.
    Change,
    /// The same, but it is performed in any case: nobody may be kept from ending or calming what runs.
    Ending,
    /// It only reads: one line, soon after.
    Reading,
    /// Its primitives have their lines; it has one only if it fails.
    Composite,
}

impl Action {
    /// The facts about this action.
    pub fn facts(&self) -> Facts {
        use AuditClass::{Change, Composite as Composed, Ending, Reading};
        use Scope::{Admin, Read, Write};

        let (name, needs, audit, waits) = match self {
            Self::Composite(Composite::Create(_)) => ("create", Write, Composed, false),
            Self::Composite(Composite::Execute(execute)) => {
                ("limited execute", Write, Composed, execute.wait.is_some())
            }
            Self::Composite(Composite::NamedAction { .. }) => ("named action", Write, Composed, false),
            // Even a call of the `terminal` tool that only looks may start a shell.
            Self::Composite(Composite::Terminal(_)) => ("terminal", Write, Composed, true),
            Self::Composite(Composite::Dialogue(_)) => ("dialogue", Write, Composed, true),
            Self::Composite(Composite::AwaitOutput(_)) => ("await output", Read, Composed, true),
            Self::Composite(Composite::AwaitSessions(_)) => ("await sessions", Read, Composed, true),
            Self::Start(_) => ("start", Write, Change, false),
            Self::Restart(_) => ("restart", Write, Change, true),
            Self::StartupDone { .. } => ("start-up done", Write, Reading, false),
            Self::List(_) => ("list", Read, Reading, false),
            Self::FindSession(_) => ("find session", Read, Reading, false),
            Self::Show(_) => ("show", Read, Reading, false),
            Self::Terminate(_) => ("terminate", Write, Ending, true),
            Self::Rename { .. } => ("rename", Write, Change, false),
            Self::Resize { .. } => ("resize", Write, Ending, false),
            Self::Execute(execute) => ("execute", Write, Change, execute.wait.is_some()),
            Self::Commands { .. } => ("commands", Read, Reading, false),
            Self::Command { .. } => ("command", Read, Reading, false),
            Self::Input(input) => ("input", Write, Change, input.wait.is_some()),
            // The name of a request lets nobody type.
            Self::AskSecret(_) => ("ask secret", Read, Reading, false),
            Self::ShowSecretRequest(_) => ("show secret request", Write, Reading, false),
            Self::TypeSecret { .. } => ("type secret", Write, Change, true),
            Self::Type { .. } => ("type", Write, Change, true),
            Self::Take(_) => ("take keyboard", Write, Change, false),
            // A full audit log keeps nobody from freeing a keyboard.
            Self::GiveBack { .. } => ("return keyboard", Write, Ending, false),
            Self::Watch { .. } => ("watch", Read, Reading, false),
            // A read-only ticket allows no more than its requester may do.
            Self::Ticket { may_write: false, .. } => ("ticket", Read, Change, false),
            Self::Ticket { may_write: true, .. } => ("ticket", Write, Change, false),
            // A log-in allows no more than the credential that it stands for.
            Self::LogIn(LogInStep::Link) => ("make log-in link", Read, Change, false),
            Self::LogIn(LogInStep::In) => ("log in", Read, Change, false),
            Self::LogIn(LogInStep::Out) => ("log out", Read, Ending, false),
            Self::Signal { .. } => ("signal", Write, Ending, false),
            Self::FindNamedAction { .. } => ("find named action", Read, Reading, false),
            Self::Processes(_) => ("processes", Read, Reading, false),
            // The environment has what the server inherited: as much as a caller that may type there can print.
            Self::Environment(_) => ("environment", Write, Reading, false),
            Self::Signals(_) => ("signals", Read, Reading, false),
            Self::Wait { .. } => ("wait", Read, Reading, true),
            Self::Output(read) => ("output", Read, Reading, !read.wait.is_zero()),
            Self::Search(_) => ("search", Read, Reading, false),
            Self::Recording(..) => ("recording", Read, Reading, false),
            Self::Screen(_) => ("screen", Read, Reading, false),
            Self::Task(_) => ("task", Read, Reading, true),
            Self::TellTask { .. } => ("tell task", Read, Reading, false),
            Self::CancelTask(_) => ("cancel task", Write, Ending, false),
            Self::AnswerTask { .. } => ("answer task", Write, Change, false),
            // Finding the default session waits for the one that is being started.
            Self::Locate(_) => ("locate", Read, Reading, true),
            Self::Unread { .. } => ("unread", Read, Reading, false),
            Self::Missed(_) => ("missed", Read, Reading, false),
            Self::Earlier(_) => ("earlier", Read, Reading, true),
            Self::FinalCommands(_) => ("final commands", Read, Reading, true),
            Self::Events(read) => ("events", Read, Reading, !read.wait.is_zero()),
            Self::Tokens => ("tokens", Admin, Reading, false),
            Self::MakeToken(_) => ("make token", Admin, Change, false),
            Self::RevokeToken { .. } => ("revoke token", Admin, Ending, false),
            Self::NamedSecrets => ("named secrets", Admin, Reading, false),
            Self::SetSecret { .. } => ("set secret", Admin, Change, false),
            Self::RemoveSecret { .. } => ("remove secret", Admin, Ending, false),
            Self::Approvals => ("approvals", Read, Reading, false),
            // The name of the page decides nothing.
            Self::AskApproval(_) => ("ask approval", Read, Reading, false),
            Self::ShowApproval(_) => ("show approval", Read, Reading, false),
            Self::DecideApproval { .. } => ("decide approval", Admin, Change, false),
            Self::Capabilities => ("capabilities", Read, Reading, false),
            // It runs nothing, so a full audit log does not keep a server from being drained.
            Self::SetDrain(true) => ("drain", Admin, Ending, false),
            Self::SetDrain(false) => ("end drain", Admin, Ending, false),
            Self::Drain(read) => ("show drain", Admin, Reading, !read.wait.is_zero()),
            Self::Audit(_) => ("audit", Admin, Reading, false),
        };
        Facts { name, needs, audit, waits }
    }
}
