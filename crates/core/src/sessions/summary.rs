//! The part of a session's view that changes while it lives. The actor publishes it at the end of every turn, so a list
//! asks only actors that are in one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::resource_limits;
use super::shared::Shared;
use super::timeline::time;
use crate::action::{Boundary, Driver, Foreground, LimitHit, SessionExit, SessionStatus, SessionView, Tools, Usage};
use crate::ids::CommandId;
use crate::mutex::locked;

/// The part of a session's view that changes. Each turn makes one, so the usual one copies no text.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    pub(crate) status: SessionStatus,
    pub(crate) pid: Option<u32>,
    /// `None` before the shell has reported it.
    pub(crate) cwd: Option<Arc<Path>>,
    pub(crate) last_activity_us: u64,
    /// Columns and rows.
    pub(crate) size: (u16, u16),
    pub(crate) foreground: Foreground,
    pub(crate) boundary: Boundary,
    pub(crate) current_command: Option<CommandId>,
    pub(crate) current_command_text: Option<Arc<str>>,
    pub(crate) last_ended: Option<CommandId>,
    pub(crate) end_offset: u64,
    pub(crate) exit: Option<SessionExit>,
    pub(crate) trouble: Option<String>,
    pub(crate) is_unreachable: bool,
    pub(crate) tools: Arc<Tools>,
    pub(crate) limits_hit: Vec<LimitHit>,
    pub(crate) driver: Option<Arc<Driver>>,
    /// The parent of all processes of the session.
    pub(crate) holder_pid: u32,
}

impl Summary {
    /// The view of the session.
    pub(crate) fn view(&self, shared: &Shared) -> SessionView {
        let (cols, rows) = self.size;
        SessionView {
            id: shared.id.clone(),
            name: shared.meta.name.get(),
            status: self.status,
            shell: shared.meta.shell.clone(),
            pid: self.pid,
            cwd: self.cwd.as_deref().map_or_else(|| bytes_to_path(&shared.spec.cwd), Path::to_owned),
            env: shared.meta.shown_env(shared.folder.masks()),
            created_at: time(shared.meta.created_us),
            last_activity: time(self.last_activity_us),
            owner: shared.meta.owner.clone(),
            cols,
            rows,
            usage: Usage::default(),
            foreground: self.foreground,
            boundary: self.boundary,
            current_command: self.current_command,
            current_command_text: self.current_command_text.clone(),
            last_ended: self.last_ended,
            first_offset: shared.reader.first().unwrap_or_default().0,
            end_offset: self.end_offset,
            exit: self.exit.clone(),
            trouble: self.trouble.clone(),
            is_unreachable: self.is_unreachable,
            is_cwd_gone: false,
            tools: Tools::clone(&self.tools),
            profile: shared.meta.profile.clone(),
            confinement: shared.meta.confinement.tier,
            policy: shared.meta.policy_view(shared.taint.reason()),
            startup_failed: locked(&shared.startup_failed).clone(),
            log_file: shared.folder.log_file(),
            limits: resource_limits::kept(&shared.spec, &shared.meta.limits),
            limits_hit: self.limits_hit.clone(),
            driver: self.driver.clone(),
            client_name: shared.meta.creation.client_name.clone(),
            viewers: shared.viewers.names(),
        }
    }
}

fn bytes_to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}
