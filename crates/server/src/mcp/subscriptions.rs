//! Word of changes of transcripts and screens, for whoever asked to be told.
//!
//! A subscription is a viewer that reads no more than that something came: what it is, the client reads when it likes.
//! The stateless era asks with one request that stays open, on either transport; before that the word goes over the
//! stream of a stdio client, or over the one that a client over HTTP opens in its session of the protocol.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RoleServer, SubscriptionContext, SubscriptionSink};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::dispatch_port::Dispatch;
use super::resources::{self, unknown};
use crate::action::{Action, ActionError, Outcome, Piece, SessionEvent, ViewerCursor};
use crate::auth::principal::Principal;
use crate::ids::SessionId;
use crate::limits::{SUBSCRIPTION_PAUSE, SUBSCRIPTIONS_MAX};

/// Enough for any sequence that has to be seen as a whole; the bytes are not kept.
const PIECE_BYTES: usize = 8 << 10;

/// Who wants to be told.
#[derive(Clone)]
pub(super) struct Subscriber {
    pub road: Arc<dyn Dispatch>,
    pub principal: Arc<Principal>,
}

/// On which way the word about a resource goes.
enum Channel {
    /// Over the client's stream.
    Stream(Peer<RoleServer>, String),
    /// As a part of the request that stays open.
    Request(SubscriptionSink, String),
}

impl Channel {
    /// Says that there is something new; false when nobody listens any more.
    async fn tell(&self) -> bool {
        match self {
            Self::Stream(peer, uri) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
            }
            Self::Request(sink, uri) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }
}

/// The subscriptions of one client, by their URIs. They end with it.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<HashMap<String, AbortHandle>>);

impl Subscriptions {
    /// Begins to tell this client.
    pub async fn begin(&self, by: Subscriber, peer: Peer<RoleServer>, uri: String) -> Result<(), ErrorData> {
        let Some(session) = resources::session_of(&uri) else { return Err(unknown(&uri)) };
        // From now on, so that nothing between the answer and the first look is missed.
        let feed = by.look(&session).await.map_err(|error| resources::error(error, &uri))?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, task| !task.is_finished());
        if all.len() >= SUBSCRIPTIONS_MAX && !all.contains_key(&uri) {
            let why = format!("{SUBSCRIPTIONS_MAX} subscriptions are open; end one with resources/unsubscribe");
            return Err(ErrorData::invalid_request(why, None));
        }
        let way = Channel::Stream(peer, uri.clone());
        // A server that stops is no change; the shim subscribes at the next one.
        let task = tokio::spawn(async move { by.follow(session, feed, way).await });
        if let Some(before) = all.insert(uri, task.abort_handle()) {
            before.abort();
        }
        Ok(())
    }

    /// Ends it; one that is not there has ended.
    pub fn end(&self, uri: &str) {
        if let Some(task) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri) {
            task.abort();
        }
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).drain().for_each(|(_, task)| task.abort());
    }
}

/// The part of a wish that can be kept: resources that are named as ours are. Lists do not tell of their changes.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let known = uris.filter(|uri| resources::session_of(uri).is_some()).take(SUBSCRIPTIONS_MAX).cloned();
    SubscriptionFilter::builder().resource_subscriptions(known).build()
}

/// Tells until the client has had enough. Ends by itself only where that is to be said: when the server stops and nobody
/// between us and the client asks the next one.
pub(super) async fn listen(by: &Subscriber, context: SubscriptionContext, is_asked_again: bool) {
    let mut all = JoinSet::new();
    for uri in context.accepted().resource_subscriptions.iter().flatten().cloned() {
        let (by, sink) = (by.clone(), context.sink().clone());
        all.spawn(async move {
            let session = resources::session_of(&uri)?;
            let feed = by.look(&session).await.ok()?;
            by.follow(session, feed, Channel::Request(sink, uri)).await.err()
        });
    }
    loop {
        tokio::select! {
            () = context.cancelled() => return,
            Some(ended) = all.join_next() => {
                if matches!(ended, Ok(Some(ActionError::Restarting))) && !is_asked_again {
                    return;
                }
            }
            // What is followed has ended, or never was; the request stays until it is cancelled.
            else => return context.cancelled().await,
        }
    }
}

impl Subscriber {
    /// A place behind everything that is there now.
    async fn look(&self, session: &SessionId) -> Result<ViewerCursor, ActionError> {
        let watch = Action::Watch { session: session.clone(), since: None };
        match self.road.dispatch(&self.principal, watch).await? {
            Outcome::Watching(watching) => Ok(watching.feed),
            _ => Err(ActionError::Internal { why: "a watch was answered with something else".to_owned() }),
        }
    }

    /// Tells of every change, until the session ends or nobody listens. After each word it looks from the present on, so
    /// that a flood costs a few words a second and no reading.
    async fn follow(self, session: SessionId, mut feed: ViewerCursor, way: Channel) -> Result<(), ActionError> {
        while changes(&mut feed).await? {
            feed = self.look(&session).await?;
            if !way.tell().await {
                return Ok(());
            }
            tokio::time::sleep_until(Instant::now() + SUBSCRIPTION_PAUSE).await;
        }
        way.tell().await;
        Ok(())
    }
}

/// Waits for something that changes a screen or a transcript; false once the session has ended.
async fn changes(feed: &mut ViewerCursor) -> Result<bool, ActionError> {
    loop {
        match feed.next(PIECE_BYTES).await? {
            Piece::Data { .. } | Piece::Gap { .. } | Piece::Snapshot { .. } => return Ok(true),
            Piece::Over => return Ok(false),
            Piece::Event(event) => match *event {
                SessionEvent::Resized { .. } => return Ok(true),
                SessionEvent::Exited(_) => return Ok(false),
                SessionEvent::Started(_)
                | SessionEvent::Completed(_)
                | SessionEvent::Foreground(_)
                | SessionEvent::LimitHit(_)
                | SessionEvent::Missed(_) => {}
            },
        }
    }
}
