//! Keeps the records and the events of this node's sessions in the directory of all nodes, and takes the events of the others from there.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use directory::{Error, Record};
use tokio::time::{Instant, sleep_until};

use super::handle::Handle;
use super::node_directory::{Followed, NodeDirectory, record};
use super::services::Services;
use super::shared_tokens::Exchange;
use crate::action::SessionStatus;
use crate::ids::SessionId;

/// The claim is renewed, and what has changed is written, at least this often.
const BEAT: Duration = Duration::from_secs(5);

/// Everything is written again this often, because the directory may lose a part of it: it evicts keys, or another one takes its place.
const WHOLE_EVERY: Duration = Duration::from_secs(60);

/// After a change others are collected for this long, so that a busy session costs few writes.
const DELAY: Duration = Duration::from_millis(200);

/// Looks for tokens that other nodes have made, for the authentication layer.
#[derive(Debug, Clone)]
pub struct NewTokens {
    services: Arc<Services>,
}

impl NewTokens {
    pub(crate) fn new(services: Arc<Services>) -> Self {
        Self { services }
    }

    /// Takes the news of the directory. It returns false if nodes share no tokens.
    pub async fn look(&self) -> bool {
        let Some(shared) = self.services.directory.as_ref().and_then(|directory| directory.tokens.as_ref()) else {
            return false;
        };
        let names = shared.look_for_news(&self.services.tokens).await;
        take_names(&self.services, &names);
        true
    }
}

/// Exchanges the tokens of all nodes, if they share them.
async fn exchange_tokens(services: &Services, directory: &NodeDirectory, extent: Exchange) -> Result<(), Error> {
    if let Some(shared) = &directory.tokens {
        take_names(services, &shared.exchange(&services.tokens, extent).await?);
    }
    Ok(())
}

/// Gives the other nodes the change of this one's tokens.
pub(super) async fn exchange_changed_tokens(services: &Services) {
    let Some(directory) = &services.directory else { return };
    // This node has news, even if the others have none.
    if let Err(error) = exchange_tokens(services, directory, Exchange::Whole).await {
        tracing::warn!(%error, "cannot tell the other nodes of a changed token; they learn of it once the directory answers");
    }
}

/// Another principal has these names from now on, or none.
fn take_names(services: &Services, names: &[String]) {
    for name in names {
        services.approvals.forget_principal(name);
        tracing::info!(token = %name, "another node made or revoked a token");
    }
}

/// Writes the records that have changed, and the events that are new.
async fn write(
    services: &Services,
    directory: &NodeDirectory,
    written: &mut Option<HashMap<SessionId, Record>>,
    shown: &mut u64,
) -> Result<(), Error> {
    let extent = if written.is_none() { Exchange::Whole } else { Exchange::News };
    if !directory.beat(written, || records(services), || services.create_keys.all()).await? {
        return Ok(());
    }
    let (events, newest) = services.server_events.own_since(*shown, services.settings.node);
    if !events.is_empty() {
        directory.show(&events).await?;
    }
    *shown = newest;
    exchange_tokens(services, directory, extent).await
}

/// Keeps this node's records in the directory until the server stops, and frees its number then.
pub fn keep_directory(services: &Arc<Services>) {
    if services.directory.is_none() {
        return;
    }
    tokio::spawn(take_events(Arc::clone(services)));
    let services = Arc::clone(services);
    tokio::spawn(async move {
        let Some(directory) = &services.directory else { return };
        let mut changes = services.server_events.changes();
        let mut stopping = services.sessions.stop_signal();
        let (mut written, mut is_answering, mut whole_at) = (None, true, Instant::now());
        let (_, mut shown) = services.server_events.own_since(u64::MAX, services.settings.node);
        while !*stopping.borrow() {
            changes.mark_unchanged();
            if Instant::now() >= whole_at {
                whole_at = Instant::now() + sys::fault::scaled(WHOLE_EVERY);
                written = None;
            }
            let result = write(&services, directory, &mut written, &mut shown).await;
            services.server_events.metrics.called_directory("beat", result.is_ok());
            if result.is_err() {
                // The directory that answers next may have older records.
                written = None;
            }
            if is_answering != result.is_ok() {
                is_answering = result.is_ok();
                match result {
                    Ok(()) => tracing::info!("the directory answers again"),
                    Err(error) => {
                        tracing::warn!(%error, "the directory does not answer; lists have only this node's sessions")
                    }
                }
            }
            tokio::select! {
                () = sleep_until(Instant::now() + sys::fault::scaled(BEAT)) => {}
                _ = changes.changed() => sleep_until(Instant::now() + DELAY).await,
                _ = stopping.changed() => {}
            }
        }
        directory.release().await;
    });
}

/// Takes the events of the other nodes until the server stops.
async fn take_events(services: Arc<Services>) {
    let Some(directory) = &services.directory else { return };
    let mut followed = Followed::default();
    let stopping = pin!(services.sessions.stopping());
    let follow = async {
        loop {
            match directory.follow(&mut followed).await {
                Ok(events) => events.into_iter().for_each(|event| services.server_events.of_another_node(event)),
                // The other task has logged it.
                Err(_) => sleep_until(Instant::now() + sys::fault::scaled(BEAT)).await,
            }
        }
    };
    tokio::select! { () = follow => {} () = stopping => {} }
}

/// The records of this node's live sessions.
fn records(services: &Services) -> HashMap<SessionId, Record> {
    let (handles, unreachable) = services.sessions.everything_live();
    let published = handles.iter().filter_map(Handle::published).map(|(view, _)| view);
    let views = published.chain(unreachable.values().map(|one| one.view()));
    views.filter(|view| view.status != SessionStatus::Terminated).filter_map(|view| record(&view)).collect()
}
