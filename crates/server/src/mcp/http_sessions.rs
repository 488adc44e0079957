//! The protocol's own sessions of one principal over HTTP, before the stateless era: here they are called conversations,
//! because a session is a terminal everywhere else.
//!
//! A conversation carries what a client is told without asking. It owns no terminal, so nothing is lost when one ends:
//! that is why they can be bounded. What is not found here was ended, or is somebody else's; its client begins anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_core::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId, SessionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::dispatch_port::Dispatch;
use super::http_session_store::HttpSessionStore;
use crate::limits::CONVERSATIONS_PER_PRINCIPAL_MAX;

/// Those of one principal. What they say is rmcp's; how many there are, and how long, is decided here.
pub(super) struct HttpSessions {
    local: LocalSessionManager,
    /// The places for all principals.
    places: Arc<Semaphore>,
    open: Mutex<HashMap<SessionId, Open>>,
    /// What the next server is to know.
    kept: Option<HttpSessionStore>,
    road: Arc<dyn Dispatch>,
}

struct Open {
    place: OwnedSemaphorePermit,
    /// Requests and streams of it that are open.
    held: usize,
    /// When the last of them ended.
    since: Instant,
}

/// Somebody listens: while there is one, the conversation is not idle.
pub(super) struct Held {
    conversations: Arc<HttpSessions>,
    id: SessionId,
}

impl HttpSessions {
    /// None yet.
    pub fn new(places: Arc<Semaphore>, kept: Option<HttpSessionStore>, road: Arc<dyn Dispatch>) -> Self {
        let mut local = LocalSessionManager::default();
        // rmcp's clock ends a conversation in which a long command runs, and one whose client only listens.
        local.session_config.keep_alive = None;
        // Priming says that an answer can be fetched later, and rmcp forgets an answer that nobody took.
        local.session_config.sse_retry = None;
        Self { local, places, open: Mutex::default(), kept, road }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another one can begin, if need be in the place of one that is idle.
    pub fn has_room(&self) -> bool {
        let open = self.open();
        let is_free = open.len() < CONVERSATIONS_PER_PRINCIPAL_MAX && self.places.available_permits() > 0;
        is_free || open.values().any(|one| one.held == 0)
    }

    /// Whether it is there, or was at an earlier server.
    pub fn knows(&self, id: &str) -> bool {
        self.open().contains_key(id) || self.kept.as_ref().is_some_and(|kept| kept.has(id))
    }

    /// Holds one that is there.
    pub fn hold(self: &Arc<Self>, id: &str) -> Option<Held> {
        let mut open = self.open();
        let (id, one) = open.iter_mut().find(|(key, _)| &***key == id)?;
        one.held += 1;
        Some(Held { conversations: Arc::clone(self), id: Arc::clone(id) })
    }

    /// Ends what nobody was in for so long.
    pub async fn end_idle(&self, patience: Duration) {
        let is_idle = |one: &Open| one.held == 0 && one.since.elapsed() >= patience;
        let idle: Vec<_> = self.open().iter().filter(|(_, one)| is_idle(one)).map(|(id, _)| Arc::clone(id)).collect();
        for id in idle {
            // One whose end is under way is ended.
            let _ = self.close_session(&id).await;
        }
    }

    /// The next server cannot go on with this one.
    pub fn forget(&self, id: &str) {
        self.kept.iter().for_each(|kept| kept.forget(id));
    }

    /// A place, for which one that is idle may have to go.
    async fn take_place(&self) -> Result<OwnedSemaphorePermit> {
        let (place, instead_of) = self.place().ok_or(HttpSessionError::Full)?;
        if let Some(id) = instead_of {
            tracing::debug!(%id, "a session of the protocol makes room for another");
            self.forget(&id);
            self.local.close_session(&id).await?;
        }
        Ok(place)
    }

    fn place(&self) -> Option<(OwnedSemaphorePermit, Option<SessionId>)> {
        let mut open = self.open();
        let free = (open.len() < CONVERSATIONS_PER_PRINCIPAL_MAX).then(|| Arc::clone(&self.places).try_acquire_owned());
        if let Some(Ok(place)) = free {
            return Some((place, None));
        }
        let idle = open.iter().filter(|(_, one)| one.held == 0).min_by_key(|(_, one)| one.since)?;
        let id = Arc::clone(idle.0);
        open.remove(&id).map(|one| (one.place, Some(id)))
    }

    fn begun(&self, id: &SessionId, place: OwnedSemaphorePermit) {
        self.open().insert(Arc::clone(id), Open { place, held: 0, since: Instant::now() });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(one) = self.conversations.open().get_mut(&self.id) {
            one.held -= 1;
            one.since = Instant::now();
        }
    }
}

impl Held {
    /// The client has gone and cannot fetch the answer any more: its wait ends.
    pub async fn say(&self, message: ClientJsonRpcMessage) {
        // One that has ended waits for nothing.
        let _ = self.conversations.accept_message(&self.id, message).await;
    }
}

/// Why a conversation cannot do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpSessionError {
    /// Every place is taken by somebody who is there.
    #[error("too many sessions of the protocol are open; end one with DELETE")]
    Full,
    /// What rmcp says.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

type Result<T> = std::result::Result<T, HttpSessionError>;

impl SessionManager for HttpSessions {
    type Error = HttpSessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport)> {
        let place = self.take_place().await?;
        let (id, transport) = self.local.create_session().await?;
        self.begun(&id, place);
        Ok((id, transport))
    }

    async fn initialize_session(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<ServerJsonRpcMessage> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool> {
        Ok(self.open().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<()> {
        self.open().remove(id);
        // What ends with a server goes on at the next one.
        if !self.road.is_stopping() {
            self.forget(id);
        }
        Ok(self.local.close_session(id).await?)
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>> {
        let place = self.take_place().await?;
        let outcome = self.local.restore_session(Arc::clone(&id)).await?;
        if let RestoreOutcome::Restored(_) = &outcome {
            self.begun(&id, place);
        }
        Ok(outcome)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        Ok(self.local.create_stream(id, message).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<()> {
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        Ok(self.local.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        Ok(self.local.resume(id, last_event_id).await?)
    }
}
