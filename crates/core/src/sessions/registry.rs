//! The registry of all live sessions: create, adopt, find, list, end. It holds its lock for one expression at a time.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use journal::Masks;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::Namespaces;

use super::adoption_state::Adoption;
use super::backends::Backends;
use super::clients::Clients;
use super::create_keys::CreateKeys;
use super::ended_session::EndedSession;
use super::ended_sessions::EndedSessions;
use super::ended_sessions::Retention;
use super::handle::Handle;
use super::history::History;
use super::launch_resources::LaunchResources;
use super::live_sessions::LiveSessions;
use super::permits::WholeReads;
use super::person::check_person;
use super::person_requests::PersonRequests;
use super::processes::{self, Census};
use super::quota::Quota;
use super::read_cursor::ReadCursors;
use super::resource_limits;
use super::server_events::ServerEvents;
use super::session::{Request, Session, Snapshot};
use super::session_metadata::SessionMetadata;
use super::shared::Shared;
use super::tasks::Tasks;
use super::toolchains::Toolchains;
use super::unix_peers::UnixPeers;
use super::unreachable::Unreachable;
use crate::action::{
    Action, ActionError, CapabilitiesView, EndReason, Limits, Outcome, SecretRefusal, SessionStatus, SessionView,
    TokenView,
};
use crate::audit::AuditLog;
use crate::config::Config;
use crate::confinement_tier::ConfinementTier;
use crate::credentials::named_secrets::NamedSecrets;
use crate::credentials::named_tokens::Tokens;
use crate::credentials::server_token::Token;
use crate::credentials::tickets::Tickets;
use crate::host::containers::Containers;
use crate::host::holders::{self, HolderBackend};
use crate::host::{Host, LocalHost};
use crate::ids::{NoSessionId, SessionId};
use crate::metrics::Metrics;
use crate::mutex::locked;
use crate::principal::Principal;
use crate::serve_error::ServeError;
use crate::store::{SessionQuery, Store};

/// This node; the only one until there is a cluster.
pub(super) const NODE: u16 = 0;
/// Ended sessions whose timeline is kept in memory, because clients often query them again at once.
const PASTS_KEPT: usize = 4;
/// How many sessions an error names: enough to find the intended one.
const NAMED_MAX: usize = 8;

/// A session that the caller may see.
pub(super) enum SessionRef {
    Live(Handle),
    /// The session lives, but this server has no connection to its holder.
    Unreachable(Arc<Unreachable>),
    EndedSession(Arc<EndedSession>),
}

impl SessionRef {
    pub(super) fn meta(&self) -> &SessionMetadata {
        match self {
            Self::Live(handle) => &handle.shared.meta,
            Self::Unreachable(unreachable) => &unreachable.meta,
            Self::EndedSession(past) => &past.shared.meta,
        }
    }
}

/// All sessions of this server.
#[derive(Debug)]
pub struct Registry {
    pub(super) backends: Arc<Backends>,
    pub(super) launch_resources: LaunchResources,
    pub(crate) settings: Settings,
    pub(super) quota: Quota,
    pub(super) live: Mutex<LiveSessions>,
    pub(super) ended: EndedSessions,
    /// The read cursors of each caller in each session.
    pub(super) read_cursors: ReadCursors,
    /// Waits that go on after their requests were answered.
    pub(super) tasks: Tasks,
    /// The stdio clients.
    pub(crate) clients: Clients,
    pub(super) create_keys: CreateKeys,
    pub(super) adoption: Adoption,
    /// Permits for threads that read a whole journal.
    pub(super) whole_reads: WholeReads,
    pub(super) history: Arc<History>,
    /// The resource usage at the last query.
    census: Mutex<Census>,
    /// The key of the hashes of requests in the events, so that typed text cannot be guessed from them.
    pub(super) secret: Token,
    /// One-time tickets for browsers.
    pub(crate) tickets: Arc<Tickets>,
    /// The requests that wait for a person.
    pub(crate) person_requests: PersonRequests,
    /// The event log of all sessions.
    pub(crate) server_events: Arc<ServerEvents>,
    /// Named tokens.
    pub(crate) tokens: Arc<Tokens>,
    /// Set when the server stops.
    pub(super) stopping: watch::Sender<bool>,
}

/// The operator's settings for every session and call.
#[derive(Debug)]
pub(crate) struct Settings {
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
    /// The default limits of a new session.
    pub(super) limits: Limits,
    /// The maximum limits of a session.
    pub(super) limits_max: Limits,
}

impl Registry {
    /// Opens the store, and begins to adopt every live holder and to record the sessions that ended meanwhile.
    pub async fn start(config: &Config) -> Result<Arc<Self>, ServeError> {
        // Otherwise every session would be refused without an evident reason.
        let host = LocalHost::default();
        resource_limits::can_be_kept(&host, &config.limits, Namespaces::Shared)?;
        resource_limits::can_be_kept(&host, &config.limits_max, Namespaces::Shared)?;
        resource_limits::within(config.limits, &config.limits_max)?;
        let holders = HolderBackend::prepare(&config.state_dir).map_err(|(at, e)| ServeError::at(&at)(e))?;
        let place = |name: &str| config.state_dir.join(name);
        let (path, remedy) = (place("secret"), "remove it; a request that is repeated over that is done again");
        let secret = Token::kept(&path).map_err(|e| ServeError::unusable("the secret", &path, &e, remedy))?;
        let (path, remedy) = (place("tokens.json"), "restore it, or remove it: then every named token is revoked");
        let tokens = Tokens::open(&path).map_err(|e| ServeError::unusable("the named tokens", &path, &e, remedy))?;
        let (path, remedy) = (place("secrets.json"), "restore it, or remove it and set the secrets again");
        let secrets = NamedSecrets::open(&path).map_err(|e| ServeError::unusable("the secrets", &path, &e, remedy))?;
        let store = Store::open(&config.state_dir.join("store.db")).map_err(ServeError::at(&place("store.db")))?;
        let retention =
            Retention { age: config.retention_age, bytes: config.retention_bytes, free: config.retention_free };
        let history = Arc::new(History::new(store, holders.sessions().to_owned()));
        let store = Arc::clone(&history.store);
        let server_events = Arc::new(ServerEvents::with(Arc::new(AuditLog::new(config))));
        let registry = Arc::new(Self {
            backends: Arc::new(Backends {
                containers: Containers::of(&config.state_dir),
                store,
                host: Arc::new(host),
                holders,
                toolchains: Toolchains::default(),
                secrets,
                lanes: Arc::clone(&server_events.lanes),
            }),
            launch_resources: LaunchResources::prepare(config)?,
            settings: Settings {
                soft_timeout: config.soft_timeout,
                task_grace: config.task_grace,
                task_quiet: config.task_quiet,
                secret_page: config.secret_page,
                slow_call: config.slow_call,
                limits: config.limits,
                limits_max: config.limits_max,
            },
            quota: Quota::new(config.sessions_max),
            live: Mutex::default(),
            ended: EndedSessions { sessions: Mutex::default(), retention },
            tasks: Tasks::new(place("removed-tasks")),
            read_cursors: ReadCursors::new(Arc::clone(&history)),
            clients: Clients::default(),
            create_keys: CreateKeys::default(),
            adoption: Adoption::default(),
            whole_reads: WholeReads::default(),
            history,
            census: Mutex::default(),
            secret,
            tickets: Arc::default(),
            person_requests: PersonRequests::default(),
            server_events,
            tokens: Arc::new(tokens),
            stopping: watch::Sender::new(false),
        });
        // A mistake in the file is logged now, and not only with the first command.
        let _ = registry.launch_resources.policies.policies();
        registry.adopt_all();
        Ok(registry)
    }

    /// Stops every actor; the sessions continue in their holders.
    pub async fn stop(&self) {
        self.stopping.send_replace(true);
        locked(&self.live).clear();
        let store = Arc::clone(&self.history.store);
        let _ = tokio::task::spawn_blocking(move || store.flush()).await;
    }

    /// Whether [`Self::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until the server stops: for tasks that publish events without an open request.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stopping.subscribe();
        async move {
            // The registry goes with the server.
            let _ = stopping.wait_for(|is| *is).await;
        }
    }

    /// Performs one action. Only the dispatcher calls this.
    pub(crate) async fn act(self: &Arc<Self>, principal: &Principal, action: &Action) -> Result<Outcome, ActionError> {
        let result = match self.attempt(principal, action).await {
            // The actor ended before it took the request: the session is an ended one now, and is tried again as such.
            Err(ActionError::Ended { reason: EndReason::DuringRequest, .. }) => self.attempt(principal, action).await,
            result => result,
        };
        match result {
            // A new default session whose start-up file exits has just ended, too; its records say how.
            Err(ActionError::Ended { session, reason: EndReason::DuringRequest }) => {
                Err(self.live(principal, &session).await.map_or_else(|error| error, |handle| handle.why_gone()))
            }
            result => result,
        }
    }

    async fn attempt(self: &Arc<Self>, principal: &Principal, action: &Action) -> Result<Outcome, ActionError> {
        match action {
            Action::Composite(_) => {
                Err(ActionError::Internal { why: "a composite action was not expanded; this is a bug".to_owned() })
            }
            Action::Start(request) => self.create(principal, request).await.map(|c| Outcome::Created(Box::new(c))),
            Action::Restart(session) => self.restart(principal, session).await.map(|c| Outcome::Created(Box::new(c))),
            Action::StartupDone { session, failed } => {
                self.startup_done(principal, session, failed).await.map(|s| Outcome::Session(Box::new(s)))
            }
            Action::List(list) => self.list(principal, list).await,
            Action::FindSession(text) => self.find_session(principal, text).await.map(Outcome::SessionId),
            Action::Show(id) => Ok(Outcome::Session(Box::new(self.show(principal, id).await?))),
            Action::Terminate(terminate) => {
                let ended = if terminate.purges {
                    self.purge(principal, terminate).await
                } else {
                    self.terminate(principal, terminate).await
                };
                ended.map(|ended| Outcome::Terminated(Box::new(ended)))
            }
            Action::Resize { session, cols, rows } => {
                self.resize(principal, session, *cols, *rows).await.map(|s| Outcome::Session(Box::new(s)))
            }
            Action::Signal { session, target, signo } => self.signal(principal, session, *target, *signo).await,
            Action::FindNamedAction { session, name } => {
                self.named_action(principal, session, name).await.map(Outcome::NamedAction)
            }
            Action::Processes(session) => self.processes(principal, session).await.map(Outcome::Processes),
            Action::Environment(session) => {
                self.environment(principal, session).await.map(|e| Outcome::Environment(Box::new(e)))
            }
            Action::Signals(session) => self.signals(principal, session).await.map(Outcome::Signals),
            Action::Execute(execute) => self.execute(principal, execute).await.map(|r| Outcome::Report(Box::new(r))),
            Action::Commands { session, limit, offset } => self.commands(principal, session, *limit, *offset).await,
            Action::Command { session, command, budget } => {
                self.command(principal, session, *command, *budget).await.map(|r| Outcome::Report(Box::new(r)))
            }
            Action::Type { session, bytes, key } => {
                self.types(principal, session, bytes, key).await.map(Outcome::Typed)
            }
            Action::AskSecret(session) => {
                let request = self.ask_secret(principal, session).await?;
                Ok(Outcome::SecretRequest(request.map(Box::new)))
            }
            Action::ShowSecretRequest(name) => {
                let request = self.show_secret_request(principal, name).await?;
                Ok(Outcome::SecretRequest(Some(Box::new(request))))
            }
            Action::TypeSecret { name, secret } => self.type_secret(principal, name, secret).await.map(Outcome::Typed),
            Action::Watch { session, since } => self.watch(principal, session, *since).await,
            Action::Ticket { place, may_write } => self.ticket(principal, place.clone(), *may_write).await,
            Action::Input(input) => self.input(principal, input).await.map(|r| Outcome::Report(Box::new(r))),
            Action::Wait { session, wait, command, budget, moves_cursor } => {
                let wait = self.wait(principal, session, wait.clone(), *command, *budget, *moves_cursor);
                wait.await.map(|r| Outcome::Report(Box::new(r)))
            }
            Action::Output(read) => self.output(principal, read).await.map(Outcome::Output),
            Action::Search(search) => self.search(principal, search).await.map(Outcome::Found),
            Action::Recording(session, version) => {
                self.recording(principal, session, *version).await.map(Outcome::Recording)
            }
            Action::Screen(session) => {
                let handle = self.live(principal, session).await?;
                self.screen(principal, &handle).await.map(Outcome::Screen)
            }
            Action::Task(task) => self.task(principal, task).await.map(|t| Outcome::Task(Box::new(t))),
            Action::TellTask { task, text } => {
                self.tell_task(principal, task, text).await.map(|t| Outcome::Task(Box::new(t)))
            }
            Action::AnswerTask { task, key, reply } => {
                self.answer_task(principal, task, *key, *reply).await.map(|t| Outcome::Task(Box::new(t)))
            }
            Action::CancelTask(task) => self.cancel_task(principal, task).await.map(|t| Outcome::Task(Box::new(t))),
            Action::Locate(locate) => self.locate(principal, locate).await.map(Outcome::Located),
            Action::Unread { session, budget } => {
                self.unread(principal, session, *budget).await.map(|r| Outcome::Report(Box::new(r)))
            }
            Action::Missed(read) => Ok(Outcome::Missed(self.missed(principal, read).await)),
            Action::Earlier(earlier) => self.earlier(principal, earlier).await,
            Action::FinalCommands(session) => self.final_commands(principal, session).await,
            Action::Events(read) => {
                let stopping = self.stopping.subscribe();
                self.server_events.read(principal, read, stopping).await.map(Outcome::Events)
            }
            Action::Tokens => Ok(Outcome::Tokens(self.tokens.list())),
            Action::MakeToken(request) => {
                check_person(principal)?;
                let (registry, maker, request) = (Arc::clone(self), principal.clone(), request.clone());
                let mut made = on_disk(move || {
                    registry.check_policy_of_token(&request)?;
                    registry.check_profiles_of_token(&request)?;
                    registry.tokens.make(&maker, &request)
                })
                .await?;
                let TokenView { name, scope, bounds, .. } = &made.view;
                let profiles = &bounds.profiles;
                let is_out_of_bounds = |meta: &&SessionMetadata| {
                    meta.owner == *name && !bounds.hold(meta.profile.as_deref(), meta.confinement.tier)
                };
                made.sessions_out_of_bounds =
                    locked(&self.live).values().map(|handle| &handle.shared.meta).filter(is_out_of_bounds).count();
                self.person_requests.approvals.forget_principal(name);
                tracing::info!(by = %principal.name, token = %name, scope = scope.name(), ?profiles, "a token was made");
                Ok(Outcome::FreshToken(made))
            }
            Action::RevokeToken { name } => {
                let (tokens, name) = (Arc::clone(&self.tokens), name.clone());
                let revoked = on_disk(move || tokens.revoke(&name)).await?;
                self.person_requests.approvals.forget_principal(&revoked.name);
                tracing::info!(by = %principal.name, token = %revoked.name, "a token was revoked");
                Ok(Outcome::Token(revoked))
            }
            Action::NamedSecrets => self.named_secrets(principal).await.map(Outcome::NamedSecrets),
            Action::SetSecret { name, value } => {
                self.set_secret(principal, name, value).await.map(Outcome::NamedSecret)
            }
            Action::RemoveSecret { name } => self.remove_secret(principal, name).await.map(Outcome::NamedSecret),
            Action::Approvals => Ok(Outcome::Approvals(self.person_requests.approvals.list(principal, Instant::now()))),
            Action::AskApproval(id) => {
                let page = self.person_requests.approvals.page(principal, id, Instant::now());
                Ok(Outcome::ApprovalPage(page.filter(|_| self.settings.secret_page)))
            }
            Action::ShowApproval(name) => {
                let view = self.person_requests.approvals.on_page(principal, name, Instant::now());
                let view = view.ok_or(ActionError::SecretRefused(SecretRefusal::Unknown))?;
                Ok(Outcome::Approval(Box::new(view)))
            }
            Action::DecideApproval { id, decision } => {
                let decided = self.decide_approval(principal, id, *decision).await?;
                Ok(Outcome::Approval(Box::new(decided)))
            }
            Action::Capabilities => {
                let registry = Arc::clone(self);
                let tier = move |tier| (tier, registry.host().confinement_hindrance(tier));
                let confinement = on_disk(move || Ok(ConfinementTier::ALL.map(tier).to_vec())).await?;
                Ok(Outcome::Capabilities(CapabilitiesView { confinement }))
            }
            Action::Audit(read) => self.server_events.audit.read(read).await.map(Outcome::Audit),
        }
    }

    // ---- finding ----

    /// The name of a live session, and the masks for the audit log: its own, and those of all named secrets.
    pub(crate) fn name_and_masks(&self, id: Option<&str>) -> (Option<String>, Vec<Arc<Masks>>) {
        let id = id.and_then(|id| SessionId::parse(id).ok());
        let shared = id.and_then(|id| Some(Arc::clone(&locked(&self.live).get(&id)?.shared)));
        let own = shared.as_ref().and_then(|shared| shared.folder.masks().cloned());
        let masks = self.backends.secrets.masks().into_iter().chain(own).collect();
        (shared.and_then(|shared| shared.meta.name.clone()), masks)
    }

    /// The machine of the sessions.
    pub(super) fn host(&self) -> &dyn Host {
        &*self.backends.host
    }

    /// The backend of their holders.
    pub(super) fn holders(&self) -> &HolderBackend {
        &self.backends.holders
    }

    pub(super) fn folder(&self) -> &std::path::Path {
        self.holders().sessions()
    }

    /// The number of live sessions, of those that wait for the disk, and of retained ended ones; an unknown number is
    /// left out.
    pub(crate) async fn counts(&self) -> Vec<(&'static str, usize)> {
        let live = locked(&self.live).len();
        let ended = self.history(|store| store.ended(&SessionQuery::default())).await;
        [("live", Ok(live)), ("stalled", Ok(self.stalled())), ("ended", ended.map(|(_, total)| total))]
            .into_iter()
            .filter_map(|(state, count)| Some((state, count.ok()?)))
            .collect()
    }

    /// The processes at the Unix socket.
    pub(crate) fn unix_peers(&self) -> UnixPeers {
        UnixPeers::new(Arc::clone(&self.backends))
    }

    /// The metrics.
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.server_events.metrics)
    }

    pub(super) fn is_live(&self, id: &SessionId) -> bool {
        locked(&self.live).contains_key(id) || locked(&self.adoption.unreachable).contains_key(id)
    }

    /// Forgets an ended session whose folder is gone.
    pub(super) fn forget_past(&self, id: &SessionId) {
        locked(&self.ended.sessions).retain(|past| past.shared.id != *id);
    }

    pub(super) fn handles(&self) -> Vec<Handle> {
        locked(&self.live).values().cloned().collect()
    }

    /// The session, live or ended, if this caller may see it; a foreign session counts as unknown.
    pub(super) async fn find(&self, principal: &Principal, id: &SessionId) -> Result<SessionRef, ActionError> {
        if self.is_stopping() {
            return Err(ActionError::Restarting);
        }
        let mut found = self.present(id);
        if found.is_none() {
            // Until a live session is known as one, its records read like those of an ended one.
            let is_examined = self.examined(id).await;
            found = self.present(id).or_else(|| (!is_examined).then(|| SessionRef::Unreachable(self.unexamined(id))));
        }
        if let Some(found) = found {
            return if may_see(principal, found.meta()) {
                Ok(found)
            } else {
                Err(self.unknown(principal, id.as_str()))
            };
        }
        match self.past(id).await? {
            Some(past) if may_see(principal, &past.shared.meta) => Ok(SessionRef::EndedSession(past)),
            _ => Err(self.unknown(principal, id.as_str())),
        }
    }

    /// The session, if this server knows it as live.
    fn present(&self, id: &SessionId) -> Option<SessionRef> {
        let live = locked(&self.live).get(id).cloned();
        let live = live.filter(|h| !h.is_gone()).map(SessionRef::Live);
        live.or_else(|| locked(&self.adoption.unreachable).get(id).cloned().map(SessionRef::Unreachable))
    }

    /// The same for a request that only reads files.
    pub(super) async fn find_to_read(&self, principal: &Principal, id: &SessionId) -> Result<SessionRef, ActionError> {
        match self.find(principal, id).await? {
            SessionRef::Unreachable(unreachable) => Ok(SessionRef::EndedSession(self.story_of(&unreachable).await?)),
            found => Ok(found),
        }
    }

    pub(super) async fn live(&self, principal: &Principal, id: &SessionId) -> Result<Handle, ActionError> {
        match self.find(principal, id).await? {
            SessionRef::Live(handle) => Ok(handle),
            SessionRef::Unreachable(unreachable) => Err(unreachable.error()),
            SessionRef::EndedSession(past) => Err(ended(&past.view())),
        }
    }

    /// The ended session with this id, if there is one. If descriptors are exhausted the answer is unknown, which is an
    /// error.
    pub(super) async fn past(&self, id: &SessionId) -> Result<Option<Arc<EndedSession>>, ActionError> {
        if let Some(past) = locked(&self.ended.sessions).iter().find(|p| p.shared.id == *id) {
            return Ok(Some(Arc::clone(past)));
        }
        let folder = self.holders().folder(id);
        let (id, backends) = (id.clone(), Arc::clone(&self.backends));
        let past = match tokio::task::spawn_blocking(move || EndedSession::load(&id, &folder, &backends)).await {
            Ok(Ok(past)) => Arc::new(past),
            Ok(Err(e)) if holders::is_passing(&e) => {
                return Err(ActionError::Exhausted { why: format!("the session's records: {e}") });
            }
            Ok(Err(_)) | Err(_) => return Ok(None),
        };
        let mut pasts = locked(&self.ended.sessions);
        // The task that removes a folder forgets its session afterwards, and waits for this lock.
        if !past.shared.folder.exists() {
            return Ok(None);
        }
        pasts.truncate(PASTS_KEPT - 1);
        pasts.push_front(Arc::clone(&past));
        Ok(Some(past))
    }

    /// The session with this id, or the only live one with this name. An id need not exist: the action with it says so.
    async fn find_session(&self, principal: &Principal, text: &str) -> Result<SessionId, ActionError> {
        let no_id = match SessionId::parse(text) {
            Ok(id) => return Ok(id),
            Err(NoSessionId(beginning)) => beginning,
        };
        let mut named = self.named(principal, text);
        if named.is_empty() && self.adoption.unexamined.has_unknown_names() {
            self.adopted().await;
            named = self.named(principal, text);
        }
        match &named[..] {
            [] => Err(self.unknown(principal, &no_id)),
            [id] => Ok(id.clone()),
            several => {
                let ids: Vec<&str> = several.iter().take(NAMED_MAX).map(SessionId::as_str).collect();
                let problem = format!(
                    "{} sessions are named {}; give the id of one: {}",
                    several.len(),
                    terminal::quote::line(text),
                    ids.join(", ")
                );
                Err(ActionError::Invalid { field: "session", problem })
            }
        }
    }

    /// The live sessions with this name, those included that this server has not examined yet or cannot reach.
    fn named(&self, principal: &Principal, name: &str) -> Vec<SessionId> {
        // Before the others: one that is adopted meanwhile is in both.
        let unexamined = self.adoption.unexamined.named(name);
        let is_it = |meta: &SessionMetadata| meta.name.as_deref() == Some(name) && may_see(principal, meta);
        let mut named: Vec<SessionId> = {
            // In the order of every other place that takes both.
            let live = locked(&self.live);
            let unreachable = locked(&self.adoption.unreachable);
            let live = live.values().filter(|handle| is_it(&handle.shared.meta)).map(|handle| &handle.shared.id);
            live.chain(unreachable.values().filter(|u| is_it(&u.meta)).map(|u| &u.id)).cloned().collect()
        };
        named.extend(unexamined.into_iter().filter(|id| is_it(&self.unexamined(id).meta)));
        named.sort();
        named.dedup();
        named
    }

    fn unknown(&self, principal: &Principal, id: &str) -> ActionError {
        let live = locked(&self.live);
        let mut seen: Vec<&Shared> =
            live.values().map(|h| &*h.shared).filter(|s| may_see(principal, &s.meta)).collect();
        // No text is made of all the others.
        let unnamed = seen.len().saturating_sub(NAMED_MAX);
        if unnamed > 0 {
            seen.select_nth_unstable_by(NAMED_MAX, |a, b| a.id.cmp(&b.id));
            seen.truncate(NAMED_MAX);
        }
        seen.sort_by(|a, b| a.id.cmp(&b.id));
        let named = |shared: &&Shared| match &shared.meta.name {
            None => shared.id.to_string(),
            Some(name) => format!("{} ({})", shared.id, terminal::quote::line(name)),
        };
        let others =
            (unnamed > 0).then(|| format!("and {unnamed} more, which list_terminal_sessions (GET /terminals) names"));
        ActionError::NoSession { id: id.to_owned(), live: Some(seen.iter().map(named).chain(others).collect()) }
    }

    pub(super) async fn live_view(&self, handle: &Handle) -> Result<SessionView, ActionError> {
        let Snapshot { mut view, holder_pid, .. } = handle.ask(Request::Look).await?;
        self.count_usage([(&mut view, holder_pid)].into_iter()).await;
        Ok(view)
    }

    /// Measures the resource usage of these sessions' processes.
    pub(super) async fn count_usage<'a>(&self, views: impl Iterator<Item = (&'a mut SessionView, u32)>) {
        let (views, holders): (Vec<_>, Vec<_>) = views.filter(|(v, _)| v.status != SessionStatus::Terminated).unzip();
        let looked = processes::look(&self.backends.host, holders.clone()).await;
        let mut census = locked(&self.census);
        for ((view, holder), all) in views.into_iter().zip(holders).zip(looked) {
            view.usage = census.usage(holder, &all, self.host().since_boot_us());
            self.set_running_cwd(view);
        }
    }

    /// The shell reports its directory with its prompt, so while a command runs the kernel is asked for it.
    pub(super) fn set_running_cwd(&self, view: &mut SessionView) {
        view.is_cwd_gone = view.pid.is_some_and(|pid| self.host().is_directory_gone(pid));
        if view.current_command.is_some()
            && let Some(cwd) = view.pid.and_then(|pid| self.host().working_directory(pid))
        {
            view.cwd = cwd;
        }
    }

    pub(super) async fn show(&self, principal: &Principal, id: &SessionId) -> Result<SessionView, ActionError> {
        match self.find(principal, id).await? {
            SessionRef::EndedSession(past) => Ok(past.view()),
            SessionRef::Unreachable(unreachable) => Ok(unreachable.view()),
            SessionRef::Live(handle) => self.live_view(&handle).await,
        }
    }

    pub(super) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.history.store)
    }

    // ---- ending ----

    pub(super) fn actor_ended(&self, session: &Session) {
        if session.is_over() {
            resource_limits::remove_group(self.host(), &session.shared.spec);
            session.shared.remove_secret_files();
            self.end_container(&session.shared.id, &session.shared.meta);
        }
        locked(&self.live).remove(&session.shared.id);
        if session.is_over() {
            self.person_requests.approvals.forget_session(&session.shared.id);
        }
        self.read_cursors.has_ended(&session.shared.id);
    }
}

/// Runs blocking disk work on the blocking pool; it finishes even if the caller is cancelled.
pub(super) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ActionError> + Send + 'static,
) -> Result<T, ActionError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(ActionError::Internal { why: e.to_string() }))
}

pub(super) fn may_see(principal: &Principal, meta: &SessionMetadata) -> bool {
    let is_within_bounds = || principal.may_use(meta.profile.as_deref(), meta.confinement.tier);
    principal.is_admin() || meta.owner == principal.name && is_within_bounds()
}

/// How a session ended, as text.
pub(super) fn reason(view: &SessionView) -> String {
    view.exit.as_ref().map_or_else(|| "unknown".to_owned(), |e| e.reason.clone())
}

/// The error for callers whose session has just ended.
pub(super) fn ended(view: &SessionView) -> ActionError {
    ActionError::Ended { session: view.id.clone(), reason: EndReason::Recorded(reason(view)) }
}
