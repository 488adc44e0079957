//! Starts and stops the parts of a server.

use std::sync::Arc;

use wire::Namespaces;

use super::adoption::examination::adopt_all;
use super::approvals::pending::Approvals;
use super::backends::Backends;
use super::history::History;
use super::known_sessions::KnownSessions;
use super::launch::launcher::Launcher;
use super::node_directory::NodeDirectory;
use super::read_cursor::ReadCursors;
use super::resource_limits;
use super::secret_requests::SecretRequests;
use super::server_events::ServerEvents;
use super::services::{Retention, Services, Settings};
use super::tasks::records::Tasks;
use super::toolchains::Toolchains;
use crate::audit::AuditLog;
use crate::config::Config;
use crate::credentials::named_secrets::NamedSecrets;
use crate::credentials::named_tokens::Tokens;
use crate::credentials::server_token::Token;
use crate::credentials::tickets::Tickets;
use crate::host::LocalHost;
use crate::host::containers::Containers;
use crate::host::holders::HolderBackend;
use crate::serve_error::ServeError;
use crate::store::Store;

/// Opens the store, and begins to adopt every live holder and to record the sessions that ended meanwhile.
pub async fn start(config: &Config) -> Result<Arc<Services>, ServeError> {
    // Otherwise every session would be refused without an evident reason.
    let host = LocalHost::default();
    resource_limits::can_be_kept(&host, &config.limits, Namespaces::Shared)?;
    resource_limits::can_be_kept(&host, &config.limits_max, Namespaces::Shared)?;
    resource_limits::within(config.limits, &config.limits_max)?;
    let holders = HolderBackend::prepare(&config.state_dir).map_err(|(at, e)| ServeError::at(&at)(e))?;
    let services = open(config, host, holders)?;
    if let Some(directory) = &services.directory {
        directory.claim_first(config.network.node).await?;
    }
    Ok(services)
}

/// Opens the parts of a server of these holders.
pub(super) fn open(config: &Config, host: LocalHost, holders: HolderBackend) -> Result<Arc<Services>, ServeError> {
    let place = |name: &str| config.state_dir.join(name);
    let (path, remedy) = (place("secret"), "remove it; a request that a client repeats afterwards runs again");
    let secret = Token::kept_key(&path).map_err(|e| ServeError::unusable("the secret", &path, &e, remedy))?;
    let directory = NodeDirectory::open(config, &secret)?;
    let (path, remedy) = (
        place("tokens.json"),
        "restore it, or remove it: then every named token is revoked, unless other nodes share it",
    );
    let tokens = Tokens::open(&path, config.network.fleet_key.is_some())
        .map_err(|e| ServeError::unusable("the named tokens", &path, &e, remedy))?;
    let (path, remedy) = (place("secrets.json"), "restore it, or remove it and set the secrets again");
    let secrets = NamedSecrets::open(&path).map_err(|e| ServeError::unusable("the secrets", &path, &e, remedy))?;
    let store = Store::open(&config.state_dir.join("store.db")).map_err(ServeError::at(&place("store.db")))?;
    let retention = Retention { age: config.retention_age, bytes: config.retention_bytes, free: config.retention_free };
    let history = Arc::new(History::new(store, holders.sessions().to_owned()));
    let server_events = Arc::new(ServerEvents::with(Arc::new(AuditLog::new(config))));
    let backends = Arc::new(Backends {
        containers: Containers::of(&config.state_dir),
        store: Arc::clone(&history.store),
        host: Arc::new(host),
        holders,
        toolchains: Toolchains::default(),
        secrets,
        lanes: Arc::clone(&server_events.lanes),
    });
    let services = Arc::new(Services {
        sessions: KnownSessions::new(Arc::clone(&backends), config.network.node),
        launcher: Launcher::prepare(config, Arc::clone(&backends))?,
        backends,
        settings: Settings {
            node: config.network.node,
            soft_timeout: config.soft_timeout,
            task_grace: config.task_grace,
            task_quiet: config.task_quiet,
            secret_page: config.secret_page,
            slow_call: config.slow_call,
            retention,
        },
        tasks: Tasks::new(place("removed-tasks"), Arc::clone(&history)),
        read_cursors: ReadCursors::new(Arc::clone(&history)),
        clients: Default::default(),
        create_keys: Default::default(),
        drain: Default::default(),
        whole_reads: Default::default(),
        history,
        secret,
        tickets: Arc::new(Tickets::on(config.network.node)),
        approvals: Approvals::on(config.network.node),
        secret_requests: SecretRequests::on(config.network.node),
        server_events,
        directory,
        tokens: Arc::new(tokens),
    });
    // A mistake in the file is logged now, and not only with the first command.
    let _ = services.launcher.policies.policies();
    adopt_all(&services);
    Ok(services)
}

/// Stops every actor; the sessions continue in their holders.
pub async fn stop(services: &Services) {
    services.sessions.stop();
    let store = Arc::clone(&services.history.store);
    let _ = tokio::task::spawn_blocking(move || store.flush()).await;
}
