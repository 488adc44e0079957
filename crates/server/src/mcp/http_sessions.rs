//! The MCP sessions of one principal over HTTP, before the stateless era. Their names begin with `http` or `mcp`, because a
//! session is a terminal everywhere else.
//!
//! An MCP session carries a client's notifications. It owns no terminal, so ending one loses nothing, and their number
//! can be bounded. An unknown id belongs to an ended session or to another principal; its client starts a new one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_core::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId, SessionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::deliveries::Delivering;
use super::dispatch_port::Server;
use super::http_session_store::HttpSessionStore;
use ptyd_core::ids::IdKind;
use ptyd_core::limits::MCP_SESSIONS_PER_PRINCIPAL_MAX;

/// The MCP sessions of one principal. rmcp implements them; their number and lifetime are decided here.
pub(super) struct HttpSessions {
    local: LocalSessionManager,
    /// The permits of all principals.
    places: Arc<Semaphore>,
    open: Mutex<HashMap<SessionId, OpenSession>>,
    /// The store for the next server.
    kept: Option<HttpSessionStore>,
    server: Arc<dyn Server>,
}

struct OpenSession {
    place: OwnedSemaphorePermit,
    /// The number of its open requests and streams.
    held: usize,
    /// When the last of them ended.
    since: Instant,
}

/// An open request or stream: the MCP session is not idle while there is one.
pub(super) struct Held {
    sessions: Arc<HttpSessions>,
    id: SessionId,
}

impl HttpSessions {
    /// No sessions yet.
    pub fn new(places: Arc<Semaphore>, kept: Option<HttpSessionStore>, server: Arc<dyn Server>) -> Self {
        let mut local = LocalSessionManager::default();
        // rmcp's timeout would end an MCP session in which a long command runs, or whose client only listens.
        local.session_config.keep_alive = None;
        // Priming would promise that an answer can be fetched later, but rmcp drops an answer that was not read.
        local.session_config.sse_retry = None;
        Self { local, places, open: Mutex::default(), kept, server }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, OpenSession>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another MCP session may begin, if necessary by closing an idle one.
    pub fn has_room(&self) -> bool {
        let open = self.open();
        let is_free = open.len() < MCP_SESSIONS_PER_PRINCIPAL_MAX && self.places.available_permits() > 0;
        is_free || open.values().any(|one| one.held == 0)
    }

    /// Whether the session is open, or was at an earlier server.
    pub fn knows(&self, id: &str) -> bool {
        self.open().contains_key(id) || self.kept.as_ref().is_some_and(|kept| kept.has(id))
    }

    /// Marks an open session as in use.
    pub fn hold(self: &Arc<Self>, id: &str) -> Option<Held> {
        let mut open = self.open();
        let (id, one) = open.iter_mut().find(|(key, _)| &***key == id)?;
        one.held += 1;
        Some(Held { sessions: Arc::clone(self), id: Arc::clone(id) })
    }

    /// Closes sessions that have been idle for this long.
    pub async fn end_idle(&self, patience: Duration) {
        let is_idle = |one: &OpenSession| one.held == 0 && one.since.elapsed() >= patience;
        let idle: Vec<_> = self.open().iter().filter(|(_, one)| is_idle(one)).map(|(id, _)| Arc::clone(id)).collect();
        for id in idle {
            // A session that is being closed counts as closed.
            let _ = self.close_session(&id).await;
        }
    }

    /// Removes the stored session: the next server could not continue it.
    pub fn forget(&self, id: &str) {
        self.kept.iter().for_each(|kept| kept.forget(id));
    }

    /// Takes a permit, for which an idle session may be closed.
    async fn take_place(&self) -> Result<OwnedSemaphorePermit> {
        let (place, instead_of) = self.place().ok_or(HttpSessionError::Full)?;
        if let Some(id) = instead_of {
            tracing::debug!(%id, "an MCP session was dropped to make room for another");
            self.forget(&id);
            self.local.close_session(&id).await?;
        }
        Ok(place)
    }

    fn place(&self) -> Option<(OwnedSemaphorePermit, Option<SessionId>)> {
        let mut open = self.open();
        let free = (open.len() < MCP_SESSIONS_PER_PRINCIPAL_MAX).then(|| Arc::clone(&self.places).try_acquire_owned());
        if let Some(Ok(place)) = free {
            return Some((place, None));
        }
        let idle = open.iter().filter(|(_, one)| one.held == 0).min_by_key(|(_, one)| one.since)?;
        let id = Arc::clone(idle.0);
        open.remove(&id).map(|one| (one.place, Some(id)))
    }

    fn begun(&self, id: &SessionId, place: OwnedSemaphorePermit) {
        self.open().insert(Arc::clone(id), OpenSession { place, held: 0, since: Instant::now() });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(one) = self.sessions.open().get_mut(&self.id) {
            one.held -= 1;
            one.since = Instant::now();
        }
    }
}

impl Held {
    /// The client disconnected and cannot fetch the answer any more: its wait ends.
    pub async fn say(&self, message: ClientJsonRpcMessage) {
        // A session that has ended waits for nothing.
        let _ = self.sessions.accept_message(&self.id, message).await;
    }
}

/// The error of an MCP session.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpSessionError {
    /// Every permit is taken by a session in use.
    #[error("too many MCP sessions are open; end one with DELETE")]
    Full,
    /// An error of rmcp.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

type Result<T> = std::result::Result<T, HttpSessionError>;

impl SessionManager for HttpSessions {
    type Error = HttpSessionError;
    type Transport = Delivering<<LocalSessionManager as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport)> {
        // rmcp takes an id of ours only for a session that it continues, and begins that one in the same way.
        let id = SessionId::from(IdKind::Conversation.random(self.server.node()));
        match self.restore_session(Arc::clone(&id)).await? {
            RestoreOutcome::Restored(transport) => Ok((id, transport)),
            _ => Err(HttpSessionError::Full),
        }
    }

    async fn initialize_session(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<ServerJsonRpcMessage> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool> {
        Ok(self.open().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<()> {
        self.open().remove(id);
        // A session that ends with the server continues at the next one.
        if !self.server.is_stopping() {
            self.forget(id);
        }
        Ok(self.local.close_session(id).await?)
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>> {
        let place = self.take_place().await?;
        Ok(match self.local.restore_session(Arc::clone(&id)).await? {
            RestoreOutcome::Restored(transport) => {
                self.begun(&id, place);
                RestoreOutcome::Restored(Delivering::in_bodies(transport))
            }
            RestoreOutcome::AlreadyPresent => RestoreOutcome::AlreadyPresent,
            _ => RestoreOutcome::NotSupported,
        })
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
