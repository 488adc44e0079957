//! Keeps the records of this node's sessions in the directory of all nodes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use directory::Record;
use tokio::time::{Instant, sleep_until};

use super::handle::Handle;
use super::node_directory::record;
use super::services::Services;
use crate::action::SessionStatus;
use crate::ids::SessionId;

/// The claim is renewed, and what has changed is written, at least this often.
const BEAT: Duration = Duration::from_secs(5);

/// After a change others are collected for this long, so that a busy session costs few writes.
const DELAY: Duration = Duration::from_millis(200);

/// Keeps this node's records in the directory until the server stops, and frees its number then.
pub fn keep_directory(services: &Arc<Services>) {
    if services.directory.is_none() {
        return;
    }
    let services = Arc::clone(services);
    tokio::spawn(async move {
        let Some(directory) = &services.directory else { return };
        let mut changes = services.server_events.changes();
        let mut stopping = services.sessions.stop_signal();
        let (mut written, mut is_answering) = (None, true);
        while !*stopping.borrow() {
            let result = directory.beat(&mut written, || records(&services)).await;
            if is_answering != result.is_ok() {
                is_answering = result.is_ok();
                match result {
                    Ok(()) => tracing::info!("the directory answers again"),
                    Err(error) => {
                        tracing::warn!(%error, "the directory does not answer; lists have only this node's sessions")
                    }
                }
            }
            changes.mark_unchanged();
            tokio::select! {
                () = sleep_until(Instant::now() + sys::fault::scaled(BEAT)) => {}
                _ = changes.changed() => sleep_until(Instant::now() + DELAY).await,
                _ = stopping.changed() => {}
            }
        }
        directory.release().await;
    });
}

/// The records of this node's live sessions.
fn records(services: &Services) -> HashMap<SessionId, Record> {
    let (handles, unreachable) = services.sessions.everything_live();
    let published = handles.iter().filter_map(Handle::published).map(|(view, _)| view);
    let views = published.chain(unreachable.values().map(|one| one.view()));
    views.filter(|view| view.status != SessionStatus::Terminated).filter_map(|view| record(&view)).collect()
}
