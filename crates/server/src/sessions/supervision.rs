//! What becomes of a session when its actor makes a mistake: the shell lives on in its holder, so the session is taken up again as a
//! new server would, and nobody is told that it ended.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holder::wire::{PROTOCOL, ToHolder};
use tokio::sync::watch;
use tokio::time::Instant;

use super::launch;
use super::link::Link;
use super::manager::{Manager, locked};
use super::session::{Session, Shared};
use crate::limits::FAULT_PAUSE;

/// An actor's first field: it notes a panic before anybody who waits learns that the actor has gone.
#[derive(Debug)]
pub(crate) struct Alarm(pub(crate) Arc<Shared>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.faulted.store(true, Ordering::Release);
        }
    }
}

/// Runs the actor to its end, and takes its session up again where that was a panic. It is boxed because that ends in here.
pub(super) fn watch_over(
    manager: Arc<Manager>,
    session: Box<Session>,
    stopping: watch::Receiver<bool>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let (shared, began) = (Arc::clone(&session.shared), Instant::now());
        match tokio::spawn(session.run(stopping)).await {
            Ok(session) => manager.actor_ended(&session),
            Err(fault) if fault.is_panic() => {
                tracing::error!(session = %shared.id, "a fault of ptyd's in this session; it is taken up again");
                // One that comes back at once must not keep a processor busy.
                tokio::time::sleep_until(began + FAULT_PAUSE).await;
                take_up(&manager, &shared).await;
            }
            // The server's runtime ends.
            Err(_) => {}
        }
    })
}

async fn take_up(manager: &Arc<Manager>, shared: &Shared) {
    let taken = match launch::connect(&shared.folder) {
        Ok(stream) => {
            let mut link = Link::new(stream);
            link.send(&ToHolder::Hello { protocol: PROTOCOL, attaches: true });
            manager.take_on(&shared.id, shared.folder.clone(), link).await.map(drop).map_err(|e| e.to_string())
        }
        Err(e) => Err(e.to_string()),
    };
    if let Err(why) = taken {
        // Its holder has gone meanwhile: what is on disk tells the rest.
        tracing::warn!(session = %shared.id, %why, "not taken up again");
        locked(&manager.live).remove(&shared.id);
    }
}
