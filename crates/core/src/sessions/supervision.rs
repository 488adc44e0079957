//! Supervises actors: if an actor ends before its session, by a bug of ours or because it lost its holder, the shell
//! continues. So the session is adopted again, as by a new server, and is not reported as ended.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::registry::Registry;
use super::session::Actor;
use crate::ids::SessionId;
use crate::limits::{FAULT_PAUSE, FAULTS_FORGOTTEN, FAULTS_MAX};
use crate::mutex::locked;

/// Runs the actor to its end, and adopts its session again if that has not ended. Boxed because the future is
/// recursive; what follows the actor's end is boxed so that it takes no memory before.
pub(super) fn watch_over(
    registry: Arc<Registry>,
    actor: Box<Actor>,
    stopping: watch::Receiver<bool>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let shared = Arc::clone(&actor.session.shared);
        match tokio::spawn(actor.run(stopping)).await {
            Ok(actor) if actor.session.is_adrift() && !registry.is_stopping() => {
                let met = actor.session.holder();
                drop(actor);
                // Two servers that displace each other must not do so in a busy loop.
                tokio::time::sleep_until(Instant::now() + FAULT_PAUSE).await;
                Box::pin(registry.adopt_again(shared, met)).await;
            }
            Ok(actor) => registry.actor_ended(&actor.session),
            Err(fault) if fault.is_panic() => match count(&registry, &shared.id) {
                Some(pause) => {
                    tracing::error!(session = %shared.id, ?pause, "the session's task panicked (a bug in ptyd); the session is adopted again");
                    // A session that fails at once must not keep a CPU busy.
                    tokio::time::sleep_until(Instant::now() + pause).await;
                    Box::pin(registry.adopt_again(shared, None)).await;
                }
                None => {
                    tracing::error!(session = %shared.id, "the session's task panicked (a bug in ptyd) {FAULTS_MAX} times in a row");
                    let why = format!(
                        "reading its output crashed this server's session task {FAULTS_MAX} times in a row (a bug in ptyd); \
                         the raw bytes can be read (view=raw), and another version may read the rest"
                    );
                    Box::pin(registry.leave_alone(shared, why)).await;
                }
            },
            // The runtime is shutting down.
            Err(_) => {}
        }
    })
}

/// How long to wait before the session is adopted again; `None` after too many faults.
fn count(registry: &Registry, id: &SessionId) -> Option<Duration> {
    let now = Instant::now();
    let mut faults = locked(&registry.adoption.faults);
    faults.retain(|_, (_, at)| now.duration_since(*at) < FAULTS_FORGOTTEN);
    let (count, at) = faults.entry(id.clone()).or_insert((0, now));
    (*count, *at) = (*count + 1, now);
    (*count < FAULTS_MAX).then(|| FAULT_PAUSE * 2u32.pow(*count - 1))
}
