//! Notifications of changed transcripts and screens, for clients that have subscribed.
//!
//! A subscription is a viewer that only notices that something changed; the client reads the resource when it likes.
//! The stateless era subscribes with one request that stays open, on either transport. Before that, notifications go
//! over the stream of a stdio client, or over the one that an HTTP client opens in its MCP session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RoleServer, SubscriptionContext, SubscriptionSink};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::dispatch_port::Server;
use super::resources::{self, unknown};
use ptyd_core::action::{Action, ActionError, Feed, Outcome, Piece, SessionEvent};
use ptyd_core::ids::SessionId;
use ptyd_core::limits::{SUBSCRIPTION_PAUSE, SUBSCRIPTIONS_MAX};
use ptyd_core::principal::Principal;

/// Enough for any control sequence that must be seen whole; the bytes are not kept.
const PIECE_BYTES: usize = 8 << 10;

/// A subscribed client.
#[derive(Clone)]
pub(super) struct Subscriber {
    pub server: Arc<dyn Server>,
    pub principal: Arc<Principal>,
}

/// The channel for the notifications of a resource.
enum Channel {
    /// Over the client's stream.
    Stream(Peer<RoleServer>, String),
    /// As part of the open request.
    Request(SubscriptionSink, String),
}

impl Channel {
    /// Sends a notification; false if the client is gone.
    async fn notify(&self) -> bool {
        match self {
            Self::Stream(peer, uri) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
            }
            Self::Request(sink, uri) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }
}

/// The subscriptions of one client, by URI; they end with it.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<HashMap<String, AbortHandle>>);

impl Subscriptions {
    /// Subscribes this client.
    pub async fn begin(&self, by: Subscriber, peer: Peer<RoleServer>, uri: String) -> Result<(), ErrorData> {
        let Some(session) = resources::session_of(&uri) else { return Err(unknown(&uri)) };
        // From now on, so that no change between the answer and the first read is missed.
        let feed = by.cursor(&session).await.map_err(|error| resources::error(error, &uri))?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, task| !task.is_finished());
        if all.len() >= SUBSCRIPTIONS_MAX && !all.contains_key(&uri) {
            let why = format!("{SUBSCRIPTIONS_MAX} subscriptions are open; end one with resources/unsubscribe");
            return Err(ErrorData::invalid_request(why, None));
        }
        let way = Channel::Stream(peer, uri.clone());
        // A stopping server is not a change; the shim subscribes at the next one.
        let task = tokio::spawn(async move { by.follow(session, feed, way).await });
        if let Some(before) = all.insert(uri, task.abort_handle()) {
            before.abort();
        }
        Ok(())
    }

    /// Ends a subscription, if there is one.
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

/// The part of a request that can be served: resources with URIs of ours. Changes of lists are not announced.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let known = uris.filter(|uri| resources::session_of(uri).is_some()).take(SUBSCRIPTIONS_MAX).cloned();
    SubscriptionFilter::builder().resource_subscriptions(known).build()
}

/// Sends notifications until the client cancels. Ends by itself only when the server stops and no shim will repeat the
/// request at the next one.
pub(super) async fn listen(by: &Subscriber, context: SubscriptionContext, is_asked_again: bool) {
    let mut all = JoinSet::new();
    for uri in context.accepted().resource_subscriptions.iter().flatten().cloned() {
        let (by, sink) = (by.clone(), context.sink().clone());
        all.spawn(async move {
            let session = resources::session_of(&uri)?;
            let feed = by.cursor(&session).await.ok()?;
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
            // The followed sessions have ended or never existed; the request stays open until it is cancelled.
            else => return context.cancelled().await,
        }
    }
}

impl Subscriber {
    /// A viewer cursor at the present end.
    async fn cursor(&self, session: &SessionId) -> Result<Box<dyn Feed>, ActionError> {
        let watch = Action::Watch { session: session.clone(), since: None };
        match self.server.dispatch(&self.principal, watch).await? {
            Outcome::Watching(watching) => Ok(watching.feed),
            _ => Err(ActionError::Internal { why: "a watch was answered with something else".to_owned() }),
        }
    }

    /// Announces every change, until the session ends or the client is gone. After each notification it continues from
    /// the present, so that a flood costs a few notifications per second and no reading.
    async fn follow(self, session: SessionId, mut feed: Box<dyn Feed>, way: Channel) -> Result<(), ActionError> {
        while changes(&mut *feed).await? {
            feed = self.cursor(&session).await?;
            if !way.notify().await {
                return Ok(());
            }
            tokio::time::sleep_until(Instant::now() + SUBSCRIPTION_PAUSE).await;
        }
        way.notify().await;
        Ok(())
    }
}

/// Waits for a change of the screen or transcript; false once the session has ended.
async fn changes(feed: &mut dyn Feed) -> Result<bool, ActionError> {
    loop {
        match feed.next(PIECE_BYTES).await? {
            Piece::Data { .. } | Piece::Gap { .. } => return Ok(true),
            Piece::Over => return Ok(false),
            Piece::Event(event) => match *event {
                SessionEvent::Ready | SessionEvent::Resized { .. } => return Ok(true),
                SessionEvent::Exited(_) => return Ok(false),
                SessionEvent::Started(_)
                | SessionEvent::Completed(_)
                | SessionEvent::Foreground(_)
                | SessionEvent::LimitHit(_)
                | SessionEvent::Taken(_)
                | SessionEvent::Returned(..)
                | SessionEvent::Missed(_) => {}
            },
        }
    }
}
