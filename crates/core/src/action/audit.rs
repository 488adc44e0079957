//! The audit log: requests to read it, and the answers.

use std::time::SystemTime;

use serde_json::{Map, Value};

/// A line of the audit log, as it is in the file: fields are added in later versions.
pub type AuditRecord = Map<String, Value>;

/// The lines of the audit log to look for; each condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only those about the session of this id or name.
    pub session: Option<String>,
    /// Only those of this principal.
    pub principal: Option<String>,
    /// Only those of this action, or of this event.
    pub action: Option<String>,
    /// Only those from this time on.
    pub since: Option<SystemTime>,
    /// Only those up to this time.
    pub until: Option<SystemTime>,
    /// Only those that have this text in any of their values.
    pub text: Option<String>,
}

/// A request to read the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadAudit {
    /// The lines to look for.
    pub filter: AuditFilter,
    /// At most this many.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
}

/// Lines of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditView {
    /// The lines.
    pub records: Vec<AuditRecord>,
    /// Whether there are older ones.
    pub has_more: bool,
}
