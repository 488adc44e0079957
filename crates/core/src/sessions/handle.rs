//! The handle of a live session: how requests reach its actor.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use wire::Tail;

use super::concurrency_limits::Permits;
use super::session::Request;
use super::shared::Shared;
use super::viewer_feed::Published;
use crate::action::{ActionError, EndReason, SessionStatus, SessionView};

/// The handle of a live session.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    /// Boxed, because a channel keeps places for 32 messages, used or not.
    pub(super) mailbox: mpsc::Sender<Box<Request>>,
    pub(super) tail: watch::Receiver<Tail>,
    pub(super) feed: watch::Receiver<Published>,
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) permits: Permits,
}

impl Handle {
    /// The view of the session, if its actor has published one, and the process of its holder.
    pub(crate) fn published(&self) -> Option<(SessionView, u32)> {
        let feed = self.feed.borrow();
        let summary = feed.summary.as_ref()?;
        Some((summary.view(&self.shared), summary.holder_pid))
    }

    /// The status that its actor has published.
    pub(crate) fn status(&self) -> Option<SessionStatus> {
        self.feed.borrow().summary.as_ref().map(|summary| summary.status)
    }

    /// Sends a request to the actor. If the actor goes away, the session has ended or the server stops.
    pub(super) async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, ActionError> {
        let (reply, mut answer) = oneshot::channel();
        self.mailbox.send(Box::new(request(reply))).await.map_err(|_| self.why_gone())?;
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer.ok(),
            // A request sent while the actor was ending stays in the mailbox as long as this handle exists.
            () = self.mailbox.closed() => answer.try_recv().ok(),
        };
        answer.ok_or_else(|| self.why_gone())
    }

    /// The error of a request whose actor went away before it answered.
    pub(super) fn why_gone(&self) -> ActionError {
        if *self.stopping.borrow() || self.shared.has_faulted() {
            return ActionError::Restarting;
        }
        ActionError::Ended { session: self.shared.id.clone(), reason: EndReason::DuringRequest }
    }

    /// Whether the session has ended although its handle still exists.
    pub(super) fn is_gone(&self) -> bool {
        self.mailbox.is_closed() && !*self.stopping.borrow() && !self.shared.has_faulted()
    }

    /// Waits until the actor is gone.
    pub(super) async fn gone(&self) {
        self.mailbox.closed().await;
    }
}
