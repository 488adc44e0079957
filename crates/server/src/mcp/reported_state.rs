//! What one caller was told about each session, so that an answer only says what changed.
//!
//! Forgetting is harmless (the next answer is complete again), so the memory is small and the oldest entry goes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::action::{SessionView, Tools};
use crate::ids::SessionId;

/// Sessions that are remembered: far more than one conversation works in.
const SESSIONS_MAX: usize = 64;

/// What was said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReportedState {
    /// The working directory.
    pub cwd: PathBuf,
    /// The toolchains.
    pub tools: Tools,
}

impl ReportedState {
    /// What an answer with this session in it tells.
    fn of(session: &SessionView) -> Self {
        Self { cwd: session.cwd.clone(), tools: session.tools.clone() }
    }
}

/// The memory of one connection.
#[derive(Debug, Default)]
pub(super) struct ReportedStates(Mutex<VecDeque<(SessionId, ReportedState)>>);

impl ReportedStates {
    /// Notes what is said now and returns what was said before.
    pub fn note(&self, session: &SessionView) -> Option<ReportedState> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = entries.iter().position(|(id, _)| *id == session.id).and_then(|at| entries.remove(at));
        entries.push_back((session.id.clone(), ReportedState::of(session)));
        if entries.len() > SESSIONS_MAX {
            entries.pop_front();
        }
        before.map(|(_, shown)| shown)
    }
}
