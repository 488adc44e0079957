//! Unreachable sessions: their holder does not answer or speaks an unknown protocol, or their files are damaged. They are
//! listed, can be terminated, and do not count as ended.

use std::path::PathBuf;

use journal::Record;
use wire::Spec;

use super::resource_limits;
use super::session_metadata::SessionMetadata;
use super::shared::Shared;
use super::timeline::time;
use crate::action::{ActionError, Boundary, Foreground, SessionExit, SessionStatus, SessionView, Tools, Usage};
use crate::host::Identity;
use crate::host::holders::{MaskedFolder, SessionFolder};
use crate::ids::SessionId;
use crate::store::SessionRow;

/// The reason why this server cannot reach the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// Its holder does not answer, or does not listen (yet).
    Silent,
    /// Its holder speaks a protocol that this server does not know.
    Foreign,
    /// Its holder answers, and its files cannot be read.
    Damaged,
    /// Its holder answers, and this server's actor fails each time it reads the session's output.
    Faulty,
}

/// An unreachable session.
#[derive(Debug)]
pub(crate) struct Unreachable {
    pub(crate) id: SessionId,
    pub(crate) folder: MaskedFolder,
    pub(crate) meta: SessionMetadata,
    spec: Spec,
    pub(crate) unreachable_reason: Hindrance,
    /// The reason as text.
    pub(crate) why: String,
    /// The process behind its socket, if there was a connection.
    pub(crate) met: Option<Identity>,
    shell_pid: Option<u32>,
}

impl Unreachable {
    /// Reads what is readable; `row` supplies the rest if the spec is damaged.
    pub(crate) fn new(
        id: &SessionId,
        folder: SessionFolder,
        row: Option<&SessionRow>,
        (unreachable_reason, why): (Hindrance, String),
        met: Option<Identity>,
    ) -> Self {
        let spec = folder.spec().unwrap_or_default();
        let mut meta = SessionMetadata::decode(&spec.meta);
        let folder = folder.masked(meta.secrets.masks());
        if let (true, Some(row)) = (spec.session.is_empty(), row) {
            meta = SessionMetadata {
                name: row.name.clone().into(),
                owner: row.owner.clone(),
                created_us: row.created_us,
                key: row.key.clone(),
                ..meta
            };
        }
        meta.created_us = meta.created_us_in(&folder);
        let started = folder.events().ok().and_then(|mut events| events.next(u64::MAX).ok()?);
        let shell_pid = started.and_then(|event| match event.record() {
            Some(Record::Started { shell_pid, .. }) => Some(shell_pid),
            _ => None,
        });
        Self { id: id.clone(), folder, meta, spec, unreachable_reason, why, met, shell_pid }
    }

    /// A session whose holder does not answer, for this reason.
    pub(crate) fn silent(id: &SessionId, folder: SessionFolder, why: String) -> Self {
        Self::new(id, folder, None, (Hindrance::Silent, why), None)
    }

    /// A session whose actor is gone for a moment.
    pub(crate) fn without_actor(shared: &Shared) -> Self {
        Self::silent(&shared.id, SessionFolder::clone(&shared.folder), "the server is reconnecting to it".to_owned())
    }

    /// The error of a request that needs the holder.
    pub(crate) fn error(&self) -> ActionError {
        ActionError::Unreachable { session: self.id.clone(), why: self.why.clone() }
    }

    /// The view, as far as known without the holder.
    pub(crate) fn view(&self) -> SessionView {
        use std::os::unix::ffi::OsStrExt;
        let (length, written) = self.folder.output().unwrap_or_else(|_| (0, time(self.meta.created_us)));
        let (cols, rows) = (self.spec.cols.max(1), self.spec.rows.max(1));
        SessionView {
            id: self.id.clone(),
            name: self.meta.name.get(),
            // Only the events show whether it has had a prompt, and they may be long or damaged.
            status: if self.shell_pid.is_some() { SessionStatus::Running } else { SessionStatus::Creating },
            shell: self.meta.shell.clone(),
            pid: self.shell_pid,
            cwd: PathBuf::from(std::ffi::OsStr::from_bytes(&self.spec.cwd)),
            env: self.meta.shown_env(self.folder.masks()),
            created_at: time(self.meta.created_us),
            last_activity: written,
            owner: self.meta.owner.clone(),
            cols,
            rows,
            usage: Usage::default(),
            foreground: Foreground::Running,
            boundary: Boundary::Attested,
            current_command: None,
            current_command_text: None,
            last_ended: None,
            first_offset: 0,
            end_offset: length,
            exit: None,
            trouble: Some(self.why.clone()),
            is_unreachable: true,
            is_cwd_gone: false,
            tools: Tools::default(),
            profile: self.meta.profile.clone(),
            confinement: self.meta.confinement.tier,
            policy: self.meta.policy_view(None),
            startup_failed: Vec::new(),
            log_file: self.folder.log_file(),
            limits: resource_limits::kept(&self.spec, &self.meta.limits),
            limits_hit: Vec::new(),
            driver: None,
            client_name: self.meta.creation.client_name.clone(),
            viewers: Vec::new(),
        }
    }

    /// The same view, terminated just now.
    pub(super) fn ended_view(&self) -> SessionView {
        let exit =
            SessionExit { code: None, signal: None, reason: "terminated on request".to_owned(), at: sys::time::wall() };
        SessionView {
            status: SessionStatus::Terminated,
            pid: None,
            exit: Some(exit),
            is_unreachable: false,
            is_cwd_gone: false,
            ..self.view()
        }
    }
}

/// The message about a holder that does not answer.
pub(crate) fn does_not_answer(holder: Option<Identity>) -> String {
    match holder {
        Some((pid, _)) => format!("its holder (process {pid}) does not answer"),
        None => "its holder does not answer".to_owned(),
    }
}
