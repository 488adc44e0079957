//! One caller: the server that performs its actions, its principal and client, and the state that was reported to it.

use std::sync::{Arc, OnceLock};

use super::command_turns::CommandTurns;
use super::dispatch_port::Server;
use super::handshake::ToolSet;
use super::host::Host;
use super::password_place::PasswordPlace;
use super::reported_state::ReportedStates;
use crate::secret_page;
use ptyd_core::action::{Action, ClientContext, Foreground, Outcome, SessionStatus, SessionView};
use ptyd_core::approval_wait::ApprovalWait;
use ptyd_core::delivery::Delivery;
use ptyd_core::principal::{Origin, Principal, client_name};

/// One caller; clones share what was reported to it.
#[derive(Clone)]
pub(super) struct Caller {
    pub server: Arc<dyn Server>,
    pub principal: Arc<Principal>,
    pub client: Arc<ClientContext>,
    pub host: Arc<Host>,
    pub memory: Arc<ReportedStates>,
    pub turns: Arc<CommandTurns>,
    /// The client's name in the first request, with its principal. Most clients keep one name.
    named: Arc<OnceLock<(String, Arc<Principal>)>>,
    /// The `host:port` of the server.
    pub base_url: Arc<str>,
    /// It requests structured answers.
    pub structured: bool,
    tools: ToolSet,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("who", &self.principal).field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl Caller {
    /// A caller to whom nothing was reported yet.
    pub fn new(
        server: Arc<dyn Server>,
        principal: Principal,
        client: ClientContext,
        tools: ToolSet,
        base_url: &str,
    ) -> Self {
        let (principal, client) = (Arc::new(principal), Arc::new(client));
        Self {
            server,
            principal,
            client,
            host: Arc::new(Host::here()),
            memory: Arc::default(),
            turns: Arc::default(),
            named: Arc::default(),
            base_url: base_url.into(),
            structured: false,
            tools,
        }
    }

    /// The same without what was reported so far, and with no command unanswered.
    pub fn with_its_own_state(&self) -> Self {
        Self { memory: Arc::default(), turns: Arc::default(), named: Arc::default(), ..self.clone() }
    }

    /// The same for requests that ask for structured answers, or also for others.
    pub fn with_structured_answers(&self, structured: bool) -> Self {
        Self { structured: self.structured || structured, ..self.clone() }
    }

    /// The same for a request of which the protocol knows whether its answer is delivered.
    pub fn with_delivery(&self, delivery: Option<Delivery>) -> Self {
        Self { principal: Arc::new(Principal { delivery, ..Principal::clone(&self.principal) }), ..self.clone() }
    }

    /// The same for a request that waits for a person's decision so.
    pub fn with_approval_wait(&self, approval_wait: Option<ApprovalWait>) -> Self {
        Self { principal: Arc::new(Principal { approval_wait, ..Principal::clone(&self.principal) }), ..self.clone() }
    }

    /// Where a person decides on an approval of this caller's; `None` where nobody is sent to pages.
    pub async fn approval_page(&self, id: &str) -> Option<String> {
        match self.server.dispatch(&self.principal, Action::AskApproval(id.to_owned())).await {
            Ok(Outcome::ApprovalPage(name)) => name.map(|name| secret_page::approval_address(&self.base_url, &name)),
            Ok(_) | Err(_) => None,
        }
    }

    /// The same for a request with an origin of its own, from a client with this name.
    pub fn with_origin(self, origin: Option<Origin>, name: Option<&str>) -> Self {
        let with = |origin: &Origin, name: &str| {
            let origin = Origin { client_name: client_name(name), ..origin.clone() };
            Arc::new(Principal { origin, ..Principal::clone(&self.principal) })
        };
        let principal = match (origin, name) {
            (None, None) => return self,
            (Some(origin), name) => with(&origin, name.unwrap_or_default()),
            (None, Some(name)) => {
                let new = || with(&self.principal.origin, name);
                let (first, principal) = self.named.get_or_init(|| (name.to_owned(), new()));
                if first == name { Arc::clone(principal) } else { new() }
            }
        };
        Self { principal, ..self }
    }

    /// Where a person types the password that a program of this session wants, if it wants one and the caller was not told.
    pub async fn password_place(&self, session: &SessionView) -> PasswordPlace {
        if session.foreground != Foreground::PasswordWanted || session.status != SessionStatus::Running {
            return PasswordPlace::Told;
        }
        let place = match self.server.dispatch(&self.principal, Action::AskSecret(session.id.clone())).await {
            Ok(Outcome::SecretRequest(Some(request))) => {
                PasswordPlace::Page(secret_page::address(&self.base_url, &request))
            }
            // Off, over, or too many: the command line needs no request.
            Ok(_) | Err(_) => PasswordPlace::CommandLine,
        };
        self.memory.note_password(&session.id, place)
    }

    /// Whether it has a tool.
    pub fn offers(&self, name: &str) -> bool {
        self.tools.has(name)
    }
}
