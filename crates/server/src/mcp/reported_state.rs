//! The state of each session last reported to a caller, so that an answer only mentions changes.
//!
//! Forgetting is harmless (the next answer is complete again), so few entries are kept and the oldest is dropped.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::password_place::PasswordPlace;
use ptyd_core::action::{ScreenView, SessionView, ShownScreen, Tools};
use ptyd_core::ids::{CommandId, SessionId};

/// Sessions that are kept: far more than one client works in.
const SESSIONS_MAX: usize = 64;

/// The state reported last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReportedState {
    /// The working directory.
    pub cwd: PathBuf,
    /// The toolchains.
    pub tools: Tools,
    /// The command that was said to be running.
    pub running: Option<CommandId>,
    /// The last screen that an answer has shown.
    pub screen: Option<ShownScreen>,
    /// Where a person types the password that its program wants, if an answer has said it.
    pub password: Option<PasswordPlace>,
}

impl ReportedState {
    /// The state that an answer about this session reports.
    fn of(session: &SessionView) -> Self {
        Self {
            cwd: session.cwd.clone(),
            tools: session.tools.clone(),
            running: session.current_command,
            screen: None,
            password: None,
        }
    }
}

/// The reported states of one connection.
#[derive(Debug, Default)]
pub(super) struct ReportedStates(Mutex<VecDeque<(SessionId, ReportedState)>>);

impl ReportedStates {
    /// Stores the new state and returns the one reported before.
    pub fn note(&self, session: &SessionView) -> Option<ReportedState> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = entries.iter().position(|(id, _)| *id == session.id).and_then(|at| entries.remove(at));
        let (screen, password) =
            before.as_ref().map_or((None, None), |(_, shown)| (shown.screen.clone(), shown.password.clone()));
        entries.push_back((session.id.clone(), ReportedState { screen, password, ..ReportedState::of(session) }));
        if entries.len() > SESSIONS_MAX {
            entries.pop_front();
        }
        before.map(|(_, shown)| shown)
    }

    /// The last answer about this session was not delivered: the next one is complete.
    pub fn forget(&self, session: &SessionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(id, _)| id != session);
    }

    /// Whether a command of this session has ended since the last answer about it.
    pub fn is_end_unreported(&self, session: &SessionView) -> bool {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.iter().find(|(id, _)| *id == session.id) {
            Some((_, reported)) => reported.running.is_some() && reported.running != session.current_command,
            None => session.last_ended.is_some(),
        }
    }

    /// The command that the last answer about this session said to be running.
    pub fn running(&self, session: &SessionId) -> Option<CommandId> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|(id, _)| id == session)?.1.running
    }

    /// A refusal says that this command has ended.
    pub fn note_end(&self, session: &SessionId, ended: CommandId) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = entries.iter_mut().filter(|(id, _)| id == session);
        ours.for_each(|(_, shown)| shown.running = shown.running.filter(|running| *running != ended));
    }

    /// The place where a person types a password, if no answer has said it; from now on one has.
    pub fn note_password(&self, session: &SessionId, place: PasswordPlace) -> PasswordPlace {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, shown)) = entries.iter_mut().find(|(id, _)| id == session) else { return place };
        if shown.password.as_ref() == Some(&place) {
            return PasswordPlace::Told;
        }
        shown.password = Some(place.clone());
        place
    }

    /// Marks what is new to the caller in a screen that an answer shows, and stores that screen.
    pub fn note_screen(&self, session: &SessionId, screen: &mut ScreenView) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.iter_mut().find(|(id, _)| id == session) {
            Some((_, shown)) => shown.screen = Some(screen.compare(shown.screen.as_ref())),
            None => drop(screen.compare(None)),
        }
    }
}
