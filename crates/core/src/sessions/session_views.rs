//! Views of known sessions, with what their processes use.

use journal::Masks;

use super::handle::Handle;
use super::known_sessions::{KnownSessions, SessionRef};
use super::processes;
use super::session::{Request, Snapshot};
use crate::action::{ActionError, SessionStatus, SessionView};
use crate::ids::SessionId;
use crate::mutex::locked;
use crate::principal::Principal;

impl KnownSessions {
    /// The name of a live session, and the masks for the audit log: its own, and those of all named secrets.
    pub(crate) fn name_and_masks(&self, id: Option<&str>) -> (Option<String>, Vec<Masks>) {
        let id = id.and_then(|id| SessionId::parse(id).ok());
        let shared = id.and_then(|id| Some(self.handle(&id)?.shared));
        let own = shared.as_ref().map(|shared| shared.folder.masks().clone());
        let all = [self.backends.secrets.masks()].into_iter().chain(own);
        let masks = all.filter(|masks| !masks.is_none()).collect();
        (shared.and_then(|shared| shared.meta.name.get()), masks)
    }

    /// The present view, even if the session ends at this moment.
    pub(super) async fn view_of(&self, principal: &Principal, handle: &Handle) -> Result<SessionView, ActionError> {
        match self.live_view(handle).await {
            Err(ActionError::Ended { .. }) => self.show(principal, &handle.shared.id).await,
            view => view,
        }
    }

    pub(super) async fn live_view(&self, handle: &Handle) -> Result<SessionView, ActionError> {
        let Snapshot { mut view, holder_pid, .. } = handle.ask(Request::Look).await?;
        self.count_usage([(&mut view, holder_pid)].into_iter()).await;
        Ok(view)
    }

    /// Measures the resource usage of these sessions' processes.
    pub(super) async fn count_usage<'a>(&self, views: impl Iterator<Item = (&'a mut SessionView, u32)>) {
        let (views, holders): (Vec<_>, Vec<_>) = views.filter(|(v, _)| v.status != SessionStatus::Terminated).unzip();
        let looked = processes::look(&self.backends.host, holders.clone()).await;
        let mut census = locked(&self.census);
        for ((view, holder), all) in views.into_iter().zip(holders).zip(looked) {
            view.usage = census.usage(holder, &all, self.backends.host.since_boot_us());
            self.set_running_cwd(view);
        }
    }

    /// The shell reports its directory with its prompt, so while a command runs the kernel is asked for it.
    pub(super) fn set_running_cwd(&self, view: &mut SessionView) {
        view.is_cwd_gone = view.pid.is_some_and(|pid| self.backends.host.is_directory_gone(pid));
        if view.current_command.is_some()
            && let Some(cwd) = view.pid.and_then(|pid| self.backends.host.working_directory(pid))
        {
            view.cwd = cwd;
        }
    }

    pub(super) async fn show(&self, principal: &Principal, id: &SessionId) -> Result<SessionView, ActionError> {
        match self.find(principal, id).await? {
            SessionRef::EndedSession(past) => Ok(past.view()),
            SessionRef::Unreachable(unreachable) => Ok(unreachable.view()),
            SessionRef::Live(handle) => self.live_view(&handle).await,
        }
    }
}
