//! The facts of an action that a line of the audit log holds: what it names, counts and changes.

use journal::Masks;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::action::{
    Action, Composite, Create, InputBytes, Locate, Outcome, Report, SignalTarget, TargetShell, signal_name,
};
use crate::ids::SessionId;
use crate::limits::{AUDIT_NAME_BYTES_MAX, AUDIT_PATH_BYTES_MAX, AUDIT_TEXT_BYTES_MAX};
use crate::principal::TicketTarget;
use crate::token_bounds::TokenBounds;

/// The subject of an action. Input and environment are counted and named; their content is never here.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(flatten)]
    pub text: Option<CommandText>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub purge: bool,
    #[serde(flatten)]
    pub creation: Option<Creation>,
    #[serde(flatten)]
    pub judged: Option<Judged>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_action: Option<String>,
    /// The approval that is decided on, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
}

impl Details {
    /// Masks what a caller wrote freely.
    pub(super) fn mask(&mut self, masks: &[Masks]) {
        if masks.is_empty() {
            return;
        }
        let Self { session_name, text, named_action, creation, .. } = self;
        let of_creation =
            creation.iter_mut().flat_map(|of| [&mut of.shell, &mut of.cwd, &mut of.profile, &mut of.owner]);
        let text = text.as_mut().map(|of| &mut of.text);
        for field in [session_name, named_action].into_iter().chain(of_creation).flatten().chain(text) {
            *field = masked(std::mem::take(field), masks);
        }
        for name in creation.iter_mut().flat_map(|of| &mut of.env_names) {
            *name = masked(std::mem::take(name), masks);
        }
    }

    /// Bounds what a caller wrote freely; before that it is masked, for half a secret is not recognized.
    pub(super) fn shorten(&mut self) {
        let Self { session, session_name, named_action, token, approval, creation, text, .. } = self;
        text.iter_mut().for_each(CommandText::shorten);
        let session = session.as_mut().map(|SessionName(name)| name);
        let names = [session_name, named_action, token, approval].into_iter().flatten().chain(session);
        names.for_each(|name| truncate(name, AUDIT_NAME_BYTES_MAX));
        if let Some(creation) = creation {
            creation.shorten();
        }
    }
}

/// The text of a command.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandText {
    text: String,
    /// The length of a text of which the line has only the beginning, and the SHA-256 of all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    text_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_sha256: Option<String>,
}

impl CommandText {
    fn of(text: &str) -> Option<Self> {
        Some(Self { text: text.to_owned(), ..Self::default() })
    }

    fn shorten(&mut self) {
        let kept = cut(&self.text, AUDIT_TEXT_BYTES_MAX).len();
        if kept < self.text.len() {
            (self.text_bytes, self.text_sha256) = (Some(self.text.len()), Some(hex(&Sha256::digest(&self.text))));
            self.text.truncate(kept);
        }
    }
}

/// The verdict of the session's policy.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Judged {
    pub verdict: &'static str,
    pub rule: String,
    /// The approval that allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The principal that gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

/// The facts of a request for a session, a token or a named secret.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Creation {
    #[serde(skip_serializing_if = "Option::is_none")]
    shell: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env_names: Vec<String>,
    /// The profiles of a token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_policy: Option<String>,
    /// The names of the secrets that a token gives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    token_secrets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_name: Option<String>,
    /// How many names the lists above omit.
    #[serde(skip_serializing_if = "is_zero")]
    omitted_names: u64,
}

impl Creation {
    fn shorten(&mut self) {
        let Self { shell, cwd, profile, owner, token_policy, secret_name, .. } = self;
        for name in [shell, profile, owner, token_policy, secret_name].into_iter().flatten() {
            truncate(name, AUDIT_NAME_BYTES_MAX);
        }
        cwd.iter_mut().for_each(|cwd| truncate(cwd, AUDIT_PATH_BYTES_MAX));
        for list in [&mut self.env_names, &mut self.profiles, &mut self.token_secrets] {
            let mut room = AUDIT_PATH_BYTES_MAX;
            let mut fits = |name: &String| {
                let bytes = cut(name, AUDIT_NAME_BYTES_MAX).chars().map(json_bytes).sum::<usize>() + 3;
                room.checked_sub(bytes).inspect(|left| room = *left).is_some()
            };
            let kept = list.iter().take_while(|name| fits(name)).count();
            self.omitted_names += (list.len() - kept) as u64;
            list.truncate(kept);
            list.iter_mut().for_each(|name| truncate(name, AUDIT_NAME_BYTES_MAX));
        }
    }
}

/// The bytes of a character in a text of JSON.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// The beginning of a text that takes no more than so many bytes of JSON.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let mut bytes = 0;
    let end = text.char_indices().find(|(_, c)| {
        bytes += json_bytes(*c);
        bytes > most
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

fn truncate(text: &mut String, most: usize) {
    text.truncate(cut(text, most).len());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A session as its caller named it: most often by its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub(super) struct SessionName(pub String);

impl From<&SessionId> for SessionName {
    fn from(id: &SessionId) -> Self {
        Self(id.as_str().to_owned())
    }
}

fn of_session(session: &SessionId) -> Details {
    Details { session: Some(session.into()), ..Details::default() }
}

/// The subject of an action.
pub(super) fn details(action: &Action) -> Details {
    let none = Details::default;
    match action {
        Action::Composite(Composite::Create(create)) => of_create(create),
        Action::Composite(Composite::Execute(execute)) => {
            Details { text: CommandText::of(&execute.command), ..of_session(&execute.session) }
        }
        Action::Composite(Composite::NamedAction { session, name, .. }) => {
            Details { named_action: Some(name.clone()), ..of_session(session) }
        }
        // Its text is a command or input, which its primitives know.
        Action::Composite(Composite::Terminal(call)) => {
            let bytes = Some(call.command.len());
            Details { session: call.session.as_ref().map(Into::into), bytes, ..none() }
        }
        Action::Composite(Composite::Dialogue(dialogue)) => of_session(&dialogue.session),
        Action::Composite(Composite::AwaitOutput(wait)) => of_session(&wait.session),
        Action::Composite(Composite::AwaitSessions(_)) => none(),
        Action::Start(create) => of_create(create),
        Action::Restart(session) => of_session(session),
        Action::Execute(execute) => {
            let (text, inside) = (CommandText::of(&execute.command), execute.shell == TargetShell::Nested);
            Details { text, inside, ..of_session(&execute.session) }
        }
        Action::Input(input) => {
            let (bytes, keys) = match &input.bytes {
                InputBytes::Raw(bytes) => (Some(bytes.len()), None),
                InputBytes::Keys(keys) => (None, Some(keys.len())),
                InputBytes::Paste { text, enters } => (Some(text.len() + usize::from(*enters)), None),
            };
            Details { bytes, keys, secret: input.is_secret, ..of_session(&input.session) }
        }
        Action::Type { session, bytes, .. } => Details { bytes: Some(bytes.len()), ..of_session(session) },
        Action::TypeSecret { .. } => Details { secret: true, ..none() },
        Action::AnswerTask { task, .. } => of_session(&task.session),
        Action::Ticket { place, may_write } => {
            let scope = Some(if *may_write { "write" } else { "read" });
            let of = match place {
                TicketTarget::Socket(session) => of_session(session),
                TicketTarget::Docs => none(),
            };
            Details { token_scope: scope, ..of }
        }
        Action::MakeToken(request) => {
            let (token, token_scope) = (Some(request.name.clone()), Some(request.scope.name()));
            let TokenBounds { profiles, policy, secrets, .. } = &request.bounds;
            let creation = Creation {
                profiles: profiles.clone(),
                token_policy: policy.clone(),
                token_secrets: secrets.iter().map(|secret| secret.name.clone()).collect(),
                ..Creation::default()
            };
            Details { token, token_scope, creation: Some(creation), ..none() }
        }
        Action::DecideApproval { id, decision } => {
            Details { approval: Some(id.clone()), decision: Some(decision.name()), ..none() }
        }
        Action::SetSecret { name, .. } => of_secret(name),
        Action::RemoveSecret { name } => of_secret(name),
        Action::RevokeToken { name } => Details { token: Some(name.clone()), ..none() },
        Action::Terminate(end) => {
            let of = of_session(&end.session);
            Details { signal: end.signo.map(signal_name), force: end.force, purge: end.purges, ..of }
        }
        Action::Take(take) => Details { force: take.forces, ..of_session(&take.session) },
        Action::GiveBack { session, forces } => Details { force: *forces, ..of_session(session) },
        Action::Signal { session, target, signo } => {
            let target = match target {
                SignalTarget::Foreground => "foreground".to_owned(),
                SignalTarget::Session => "session".to_owned(),
                SignalTarget::Process(pid) => pid.to_string(),
            };
            Details { signal: Some(signal_name(*signo)), target: Some(target), ..of_session(session) }
        }
        Action::Rename { session, name } => {
            Details { session_name: Some(name.clone()), ..of_session(session) }
        }
        Action::Resize { session, cols, rows } => {
            Details { size: Some(format!("{cols}x{rows}")), ..of_session(session) }
        }
        Action::CancelTask(task) => {
            Details { command: Some(task.command.to_string()), ..of_session(&task.session) }
        }
        Action::FindSession(text) => Details { session: Some(SessionName(text.clone())), ..none() },
        Action::Command { session, command, .. } => {
            Details { command: Some(command.to_string()), ..of_session(session) }
        }
        Action::FindNamedAction { session, name } => {
            Details { named_action: Some(name.clone()), ..of_session(session) }
        }
        Action::Locate(Locate::Session(session)) => of_session(session),
        Action::StartupDone { session, .. }
        | Action::Show(session)
        | Action::Commands { session, .. }
        | Action::AskSecret(session)
        | Action::Watch { session, .. }
        | Action::Processes(session)
        | Action::Environment(session)
        | Action::Signals(session)
        | Action::Wait { session, .. }
        | Action::Recording(session, _)
        | Action::Screen(session)
        | Action::Unread { session, .. }
        | Action::FinalCommands(session) => of_session(session),
        Action::Missed(read) => of_session(&read.session),
        Action::Output(read) => of_session(&read.session),
        Action::Search(search) => of_session(&search.session),
        Action::Task(task) | Action::TellTask { task, .. } => of_session(&task.session),
        Action::List(_)
        // The name of a request for a secret admits to its page.
        | Action::ShowSecretRequest(_)
        | Action::Locate(_)
        | Action::Earlier(_)
        | Action::Events(_)
        | Action::Tokens
        | Action::NamedSecrets
        | Action::Approvals
        | Action::AskApproval(_)
        // The name of its page stays secret.
        | Action::ShowApproval(_)
        | Action::Capabilities
        | Action::LogIn(_)
        | Action::SetDrain(_)
        | Action::Drain(_)
        | Action::Audit(_) => none(),
    }
}

fn of_secret(name: &str) -> Details {
    let creation = Creation { secret_name: Some(name.to_owned()), ..Creation::default() };
    Details { creation: Some(creation), ..Details::default() }
}

fn of_create(create: &Create) -> Details {
    let creation = Creation {
        shell: create.shell.clone(),
        cwd: create.cwd.as_ref().map(|path| path.display().to_string()),
        profile: create.profile.clone(),
        owner: create.owner.clone(),
        env_names: create.env.iter().map(|(name, _)| name.clone()).collect(),
        ..Creation::default()
    };
    Details { session_name: create.name.clone(), creation: Some(creation), ..Details::default() }
}

/// The facts that the answer to an action adds.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    /// Only if the request did not name it.
    #[serde(skip)]
    pub session: Option<SessionName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed: Option<usize>,
}

pub(super) fn found(outcome: &Outcome) -> Found {
    match outcome {
        Outcome::Created(created) => Found { session: Some((&created.session.id).into()), ..Found::default() },
        Outcome::Report(report) => {
            let Report { command, accepted_bytes, .. } = &**report;
            let command_id = command.as_ref().map(|command| command.id.to_string());
            let exit_code = command.as_ref().and_then(|command| command.exit_code);
            Found { command: command_id, exit_code, typed: *accepted_bytes, ..Found::default() }
        }
        Outcome::Terminated(ended) => Found { killed: Some(ended.killed), ..Found::default() },
        Outcome::Typed(bytes) => Found { typed: Some(*bytes), ..Found::default() },
        _ => Found::default(),
    }
}

pub(super) fn masked(text: String, masks: &[Masks]) -> String {
    masks.iter().fold(text, |text, masks| masks.text(text).into())
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
