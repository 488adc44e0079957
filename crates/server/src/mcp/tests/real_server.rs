//! A server with real sessions, for the tests that need some.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ptyd_core::action::{Action, List, Outcome, Terminate};
use ptyd_core::config::Config;
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::principal::Principal;
use ptyd_core::sessions;

/// A server whose calls become tasks after this time.
pub(in crate::mcp) async fn start(state: &Path, task_grace: Duration) -> Arc<Dispatcher> {
    let config = Config::of(([127, 0, 0, 1], 0).into(), state.join("ptyd.sock"), state.to_owned());
    let services = sessions::start(&Config { task_grace, ..config }).await.expect("services");
    Arc::new(Dispatcher::new(services))
}

/// Ends all its sessions.
pub(in crate::mcp) async fn clear(server: &Dispatcher) {
    let me = Principal::local();
    let Ok(Outcome::Sessions(page)) = server.dispatch(&me, Action::List(List { limit: 200, ..List::default() })).await
    else {
        panic!("sessions are listed")
    };
    for session in page.sessions {
        let end = Terminate { session: session.id, force: true, signo: None, grace: None, purges: false };
        server.dispatch(&me, Action::Terminate(end)).await.expect("ended");
    }
}
