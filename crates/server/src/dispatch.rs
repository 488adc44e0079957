//! The one road of every request: who → may they → note → do → note.
//!
//! Dropping the future that [`Dispatcher::dispatch`] returns cancels the *wait*, never the program.

use std::sync::Arc;
use std::time::Instant;

use crate::action::{Action, ActionError, Outcome};
use crate::identity::Principal;
use crate::sessions::Manager;
use crate::tickets::Tickets;

/// A cheap handle that the doors hold.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    manager: Arc<Manager>,
}

impl Dispatcher {
    /// The road to this manager's sessions.
    pub fn new(manager: Arc<Manager>) -> Self {
        Self { manager }
    }

    /// Does one action for one caller.
    pub async fn dispatch(&self, who: &Principal, action: Action) -> Result<Outcome, ActionError> {
        let name = name(&action);
        let begun = Instant::now();
        let result = self.manager.act(who, action).await;
        let ms = begun.elapsed().as_millis();
        match &result {
            Ok(_) => tracing::debug!(action = name, who = %who.name, ms, "done"),
            Err(e) => tracing::info!(action = name, who = %who.name, ms, error = %e, "not done"),
        }
        result
    }

    /// Where the guard looks tickets up.
    pub(crate) fn tickets(&self) -> Arc<Tickets> {
        Arc::clone(&self.manager.tickets)
    }

    /// The server stops, and does nothing for anybody any more.
    pub fn is_stopping(&self) -> bool {
        self.manager.is_stopping()
    }

    /// A stdio client has gone: its sessions end after their grace period.
    pub fn client_gone(&self, client: &str, grace: crate::identity::Detach) {
        self.manager.client_gone(client, grace);
    }

    /// A stdio client is there (again): its sessions stay.
    pub fn client_here(&self, client: &str) {
        self.manager.client_here(client);
    }
}

fn name(action: &Action) -> &'static str {
    match action {
        Action::Create(_) => "create",
        Action::List(_) => "list",
        Action::Show(_) => "show",
        Action::Terminate(_) => "terminate",
        Action::Resize { .. } => "resize",
        Action::Execute(_) => "execute",
        Action::Commands { .. } => "commands",
        Action::Command { .. } => "command",
        Action::Input(_) => "input",
        Action::Type { .. } => "type",
        Action::Watch { .. } => "watch",
        Action::Ticket { .. } => "ticket",
        Action::Signal { .. } => "signal",
        Action::React { .. } => "react",
        Action::Processes(_) => "processes",
        Action::Signals(_) => "signals",
        Action::Wait { .. } => "wait",
        Action::Output(_) => "output",
        Action::Search(_) => "search",
        Action::Recording(..) => "recording",
        Action::Screen(_) => "screen",
        Action::Terminal(_) => "terminal",
    }
}
