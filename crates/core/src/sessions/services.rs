//! The parts of a server. Each part acts for itself, and every action takes all of them.

use std::sync::Arc;
use std::time::Duration;

use super::approvals::pending::Approvals;
use super::backends::Backends;
use super::clients::Clients;
use super::concurrency_limits::WholeReads;
use super::create_keys::CreateKeys;
use super::drain::Drain;
use super::history::History;
use super::known_sessions::KnownSessions;
use super::launch::launcher::Launcher;
use super::node_directory::NodeDirectory;
use super::read_cursor::ReadCursors;
use super::secret_requests::SecretRequests;
use super::server_events::ServerEvents;
use super::tasks::records::Tasks;
use crate::credentials::named_tokens::Tokens;
use crate::credentials::server_token::Token;
use crate::credentials::tickets::Tickets;

/// The parts of a server.
#[derive(Debug)]
pub struct Services {
    pub(crate) backends: Arc<Backends>,
    pub(crate) sessions: KnownSessions,
    pub(super) launcher: Launcher,
    pub(crate) settings: Settings,
    /// The read cursors of each caller in each session.
    pub(super) read_cursors: ReadCursors,
    /// Waits that continue after their requests were answered.
    pub(super) tasks: Tasks,
    /// The stdio clients.
    pub(crate) clients: Clients,
    pub(super) create_keys: CreateKeys,
    /// Whether the server takes new sessions.
    pub(super) drain: Drain,
    /// Permits for threads that read a whole journal.
    pub(super) whole_reads: WholeReads,
    pub(super) history: Arc<History>,
    /// The key of the hashes of requests in the events, so that typed text cannot be guessed from them.
    pub(super) secret: Token,
    /// One-time tickets for browsers.
    pub(crate) tickets: Arc<Tickets>,
    /// The requests that policies leave to a person.
    pub(crate) approvals: Approvals,
    /// The requests for secrets that programs read.
    pub(super) secret_requests: SecretRequests,
    /// The event log of all sessions.
    pub(crate) server_events: Arc<ServerEvents>,
    /// The directory of all nodes, if there is one.
    pub(super) directory: Option<NodeDirectory>,
    /// Named tokens.
    pub(crate) tokens: Arc<Tokens>,
}

/// The operator's settings for every session and call.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The number of this server in the ids of its sessions.
    pub(crate) node: u16,
    /// The quiet time that ends a wait of the `terminal` tool.
    pub(crate) soft_timeout: Duration,
    /// Calls that a client can take later are answered with a task after this time.
    pub(super) task_grace: Duration,
    /// A task without a timeout ends after this long without output.
    pub(super) task_quiet: Duration,
    /// A page takes the secrets that programs read.
    pub(super) secret_page: bool,
    /// Calls that take longer are logged.
    pub(crate) slow_call: Duration,
    pub(super) retention: Retention,
}

/// How long ended sessions are retained.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    pub(super) age: Duration,
    pub(super) bytes: u64,
    /// The disk space to keep free, or a twentieth of the disk if that is less.
    pub(super) free: u64,
}
