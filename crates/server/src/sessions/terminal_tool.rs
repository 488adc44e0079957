//! The `terminal` tool: a client's default session, and the meaning of `terminal(command, is_input, timeout, reset)`.
//!
//! terminal-mcp.md is the requirement; docs/deviations.md lists where its figures differ from the shell's.

use std::sync::Arc;
use std::time::SystemTime;

use wire::Spec;

use super::read_cursors::ReadCursors;
use super::registry::{Found, Handle, NODE, Registry, locked, reason};
use super::report::{CLEARING_UP, plain_report};
use super::session::Request;
use super::session_metadata::SessionMetadata;
use super::unreachable::Unreachable;
use super::{create, output_text};
use crate::action::{
    ActionError, ClientContext, CommandStatus, CommandView, Create, EndedBy, Execute, Foreground, Fresh, Input,
    InputBytes, Look, Missed, Otherwise, Report, TerminalCall, TerminalView, Wait,
};
use crate::auth::principal::Principal;
use crate::ids::SessionId;
use crate::limits;
use crate::store::SessionRow;

/// How long an interrupted program may take to end before the answer says that it still runs.
const INTERRUPT_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

/// The byte of C-d.
const END_OF_FILE: &[u8] = b"\x04";

/// The session of a call.
enum TerminalTool {
    /// This session, and the reason if it is a new one.
    At(Handle, Option<Fresh>),
    /// The call was performed earlier, in a session that it ended.
    Done(Box<Report>),
}

/// The meaning of a call.
enum Ask {
    Look,
    Signal(i32),
    EndOfFile,
    Input(Vec<u8>),
    Command(String),
}

impl Registry {
    pub(super) async fn terminal(
        self: &Arc<Self>,
        principal: &Principal,
        call: &TerminalCall,
    ) -> Result<TerminalView, ActionError> {
        let asked_at = SystemTime::now();
        match self.terminal_once(principal, call).await {
            // The shell ended at this very moment: a command that has not run goes to the next shell.
            Err(ActionError::Ended { session, .. })
                if call.session.is_none()
                    && !call.is_input
                    && self.has_not_run(principal, &session, asked_at).await =>
            {
                self.terminal_once(principal, call).await
            }
            answer => answer,
        }
    }

    /// Whether a session that has just ended recorded no command since then.
    async fn has_not_run(&self, principal: &Principal, session: &SessionId, asked_at: SystemTime) -> bool {
        if let Ok(Found::Live(handle)) = self.find(principal, session).await {
            let _ = tokio::time::timeout(CLEARING_UP, handle.gone()).await;
        }
        let Ok(Found::EndedSession(past)) = self.find(principal, session).await else { return false };
        past.commands().iter().all(|command| command.started_at < asked_at)
    }

    async fn terminal_once(
        self: &Arc<Self>,
        principal: &Principal,
        call: &TerminalCall,
    ) -> Result<TerminalView, ActionError> {
        if call.reset && call.is_input {
            let problem = "cannot be combined with is_input: a fresh shell runs nothing that could read it".to_owned();
            return Err(ActionError::Invalid { field: "reset", problem });
        }
        let (mut handle, mut fresh) = match self.terminal_tool(principal, call).await? {
            TerminalTool::At(handle, fresh) => (handle, fresh),
            TerminalTool::Done(report) => {
                let (id, report) = (report.session.id.clone(), *report);
                let read_to = self.read_to(principal, &id).await?.unwrap_or(0);
                let told = report.command.as_ref().map(|command| (&id, command));
                let missed = self.missed(principal, &id, read_to, told).await;
                return Ok(TerminalView { report, fresh: None, look: None, missed, soft_timeout: self.soft_timeout });
            }
        };
        let before = match &fresh {
            Some(Fresh::Ended { session, .. }) => session.clone(),
            _ => handle.shared.id.clone(),
        };
        // Before anything is done: a disk that does not give it refuses the call.
        let read_to = self.read_to(principal, &before).await?.unwrap_or(0);
        if call.reset {
            let mut lost = None;
            if fresh.is_none() {
                (handle, lost) = self.reset(principal, &handle).await?;
            }
            fresh = Some(Fresh::Reset(lost));
        }
        let id = handle.shared.id.clone();
        let ask = ask(call);
        let only_reset = call.reset && matches!(ask, Ask::Look);
        let (report, look) = match ask {
            Ask::Look if only_reset => (self.peek(principal, &handle, call.budget).await?, Some(Look::Reset)),
            Ask::Look => self.look(principal, &handle, call).await?,
            Ask::Signal(signo) => self.interrupt(principal, &handle, call, signo).await?,
            Ask::EndOfFile if self.is_idle(&handle).await? => {
                (self.peek(principal, &handle, call.budget).await?, Some(Look::NothingToInterrupt))
            }
            Ask::EndOfFile => (self.type_in(principal, &id, END_OF_FILE.to_vec(), call).await?, None),
            Ask::Input(_) if self.is_idle(&handle).await? => {
                return Err(ActionError::NothingRuns { session: id });
            }
            Ask::Input(bytes) => (self.type_in(principal, &id, bytes, call).await?, None),
            Ask::Command(command) => (self.execute(principal, &self.execution(id, command, call)).await?, None),
        };
        let told = report.command.as_ref().map(|command| (&report.session.id, command));
        let missed = self.missed(principal, &before, read_to, told).await;
        Ok(TerminalView { report, fresh, look, missed, soft_timeout: self.soft_timeout })
    }

    /// The commands that were reported to this caller as running and have ended since, except the one that this answer
    /// reports.
    async fn missed(
        &self,
        principal: &Principal,
        session: &SessionId,
        read_to: u64,
        told: Option<(&SessionId, &CommandView)>,
    ) -> Vec<Missed> {
        let is_running = |command: &CommandView| command.status == CommandStatus::Running;
        let told = told.map(|(of, command)| {
            let note = if is_running(command) { ReadCursors::says_running } else { ReadCursors::says_ended };
            note(&self.read_cursors, &principal.name, of, command.id);
            (of, command.id)
        });
        let mut missed = Vec::new();
        for id in self.read_cursors.running(&principal.name, session) {
            if told == Some((session, id)) {
                continue;
            }
            let known = match self.known(principal, session, id).await {
                Ok(known) if is_running(&known.command) => continue,
                Ok(known) => Some(known),
                Err(ActionError::NoSession { .. } | ActionError::NoCommand { .. }) => None,
                // The next call finds it.
                Err(_) => continue,
            };
            self.read_cursors.says_ended(&principal.name, session, id);
            missed.extend(known.map(|known| Missed { session: known.session, command: known.command, read_to }));
        }
        missed
    }

    /// The session of the call; a client's first call, and the first after the shell's end, start a new one.
    async fn terminal_tool(
        self: &Arc<Self>,
        principal: &Principal,
        call: &TerminalCall,
    ) -> Result<TerminalTool, ActionError> {
        if let Some(id) = &call.session {
            return match self.find(principal, id).await? {
                Found::Live(handle) => Ok(TerminalTool::At(handle, None)),
                Found::Unreachable(unreachable) => Err(unreachable.error()),
                Found::EndedSession(past) => Err(super::report::ended(&past.view())),
            };
        }
        let Some(client) = call.client.client.clone() else {
            let problem =
                "needed here: this connection has no default session; start_terminal_session gives one".to_owned();
            return Err(ActionError::Invalid { field: "session_id", problem });
        };
        // Two calls at the same time must not start two shells.
        let turn = self.creating.of(format!("client {client}")).await;
        self.adopted().await;
        let mine = |h: &Handle| h.shared.meta.is_default && h.shared.meta.client.as_ref() == Some(&client);
        let live = self.handles().into_iter().find(|h| mine(h));
        if let Some(handle) = live {
            match handle.ask(Request::Look).await {
                Ok(snapshot) if snapshot.view.exit.is_none() => return Ok(TerminalTool::At(handle, None)),
                // The session continues.
                Err(ActionError::Restarting) => return Err(ActionError::Restarting),
                Ok(_) | Err(_) => {}
            }
            // The shell has exited and its holder still ends descendants: the records say how it ended.
            handle.gone().await;
        }
        let mine = |u: &&Arc<Unreachable>| u.meta.is_default && u.meta.client.as_ref() == Some(&client);
        let unreachable = locked(&self.unreachable).values().find(mine).cloned();
        if let Some(unreachable) = unreachable {
            return Err(unreachable.error());
        }
        if let Some(old) = self.last_default(&client).await {
            if let Some(report) = self.done_before(principal, &old.shared.id, call).await {
                return report.map(|report| TerminalTool::Done(Box::new(report)));
            }
            let how = reason(&old.view());
            let id = SessionId::random(NODE);
            let spec = create::again(&old.shared.spec, &old.shared.meta, &id)?;
            let handle = self.launch(&id, &spec).await?;
            drop(turn);
            self.begin(principal, &handle).await;
            return Ok(TerminalTool::At(handle, Some(Fresh::Ended { session: old.shared.id.clone(), how })));
        }
        let id = SessionId::random(NODE);
        let spec = self.spec_of(&id, principal, &request(&call.client, client)).await?;
        let handle = self.launch(&id, &spec).await?;
        drop(turn);
        self.begin(principal, &handle).await;
        Ok(TerminalTool::At(handle, Some(Fresh::First)))
    }

    /// The result of the same call, if it is a repetition and has ended the default session: a new shell must not
    /// perform it again.
    async fn done_before(
        &self,
        principal: &Principal,
        old: &SessionId,
        call: &TerminalCall,
    ) -> Option<Result<Report, ActionError>> {
        match ask(call) {
            _ if call.reset => None,
            Ask::Command(command) => self.executed_before(principal, &self.execution(old.clone(), command, call)).await,
            Ask::Input(bytes) => self.typed_before(principal, &self.typing(old, bytes, call)).await,
            Ask::EndOfFile => self.typed_before(principal, &self.typing(old, END_OF_FILE.to_vec(), call)).await,
            Ask::Look | Ask::Signal(_) => None,
        }
    }

    /// Remembers this session as its client's default, unless a newer one is known.
    pub(super) fn remember_default(&self, meta: &SessionMetadata, id: &SessionId) {
        let (true, Some(client)) = (meta.is_default, &meta.client) else { return };
        let mut defaults = locked(&self.defaults);
        if defaults.get(client).is_none_or(|(created_us, _)| *created_us <= meta.created_us) {
            defaults.insert(client.clone(), (meta.created_us, id.clone()));
        }
    }

    /// The same for the sessions that ended last, whose metadata is only in their folders.
    pub(super) fn remember_defaults(&self, rows: &[SessionRow]) {
        let mut ended: Vec<(u64, &str)> =
            rows.iter().filter_map(|row| Some((row.ended_us?, row.id.as_str()))).collect();
        ended.sort_unstable_by(|a, b| b.cmp(a));
        let ids = ended.into_iter().take(limits::DEFAULTS_LOOKED_FOR).filter_map(|(_, id)| SessionId::parse(id).ok());
        for id in ids {
            if let Ok(spec) = Spec::load(&self.folder().join(id.as_str())) {
                self.remember_default(&SessionMetadata::decode(&spec.meta), &id);
            }
        }
    }

    /// Kills what runs and starts the same shell again; returns the lost command.
    async fn reset(
        self: &Arc<Self>,
        principal: &Principal,
        old: &Handle,
    ) -> Result<(Handle, Option<String>), ActionError> {
        let lost = handle_command(old).await;
        self.end(old, sys::signal::KILL, limits::TERMINATE_GRACE).await?;
        let id = SessionId::random(NODE);
        let spec = create::again(&old.shared.spec, &old.shared.meta, &id)?;
        let handle = self.launch(&id, &spec).await?;
        self.begin(principal, &handle).await;
        Ok((handle, lost))
    }

    async fn is_idle(&self, handle: &Handle) -> Result<bool, ActionError> {
        let view = handle.ask(Request::Look).await?.view;
        Ok(matches!(view.foreground, Foreground::Idle | Foreground::Stopped) && view.current_command.is_none())
    }

    /// `""`: continues to wait for the running command, or shows background output and the last result.
    async fn look(
        &self,
        principal: &Principal,
        handle: &Handle,
        call: &TerminalCall,
    ) -> Result<(Report, Option<Look>), ActionError> {
        // By its id: it may end before the wait begins.
        let running = handle.ask(Request::Look).await?.view.current_command;
        if running.is_none() && self.is_idle(handle).await? {
            return Ok((self.peek(principal, handle, call.budget).await?, Some(Look::Idle)));
        }
        let report = self.wait(principal, &handle.shared.id, self.wait_of(call), running, call.budget).await?;
        Ok((report, Some(Look::Running)))
    }

    /// The output since this caller's last call, and the newest command; does not wait.
    async fn peek(&self, principal: &Principal, handle: &Handle, budget: usize) -> Result<Report, ActionError> {
        let (snapshot, commands) = handle.ask(Request::Commands).await?;
        let session = snapshot.view;
        let last = commands.into_iter().rev().find(|c| c.end_offset.is_some());
        let seen = self.read_to(principal, &session.id).await?.unwrap_or(0);
        // The end of a command for which no caller waited is shown first, background output at the next call.
        let unseen =
            last.as_ref().and_then(|c| c.end_offset.filter(|end| *end > seen).map(|end| (c.start_offset, end)));
        if let Some((start, end)) = unseen {
            let output = self.text(&handle.shared, seen.max(start), end, session.cols, budget).await?;
            self.has_read(principal, &session.id, end);
            return Ok(plain_report(session, last, EndedBy::Ended, output));
        }
        // Prompt and echo are not output: background output begins behind the last prompt's marker.
        let from = seen.max(snapshot.background_from).min(snapshot.shown_to);
        let mut output = self.text(&handle.shared, from, snapshot.shown_to, session.cols, budget).await?;
        output_text::without_prompt(&mut output);
        self.has_read(principal, &session.id, snapshot.shown_to);
        Ok(plain_report(session, last, EndedBy::Ended, output))
    }

    async fn interrupt(
        &self,
        principal: &Principal,
        handle: &Handle,
        call: &TerminalCall,
        signo: i32,
    ) -> Result<(Report, Option<Look>), ActionError> {
        let snapshot = handle.ask(Request::Look).await?;
        let running = snapshot.view.current_command;
        // A shell that refused a command because its editor had no terminal was reported as needing the key.
        if running.is_none() && !snapshot.was_not_ready && self.is_idle(handle).await? {
            return Ok((self.peek(principal, handle, call.budget).await?, Some(Look::NothingToInterrupt)));
        }
        let id = &handle.shared.id;
        self.signal(principal, id, crate::action::SignalTarget::Foreground, signo).await?;
        let timeout = call.timeout.unwrap_or(INTERRUPT_WAIT);
        // The input wanted before the signal is forgotten, so the wait ends on input wanted after it.
        let wait = Wait { pattern: call.pattern.clone(), input_wanted: true, ..Wait::at_most(timeout) };
        Ok((self.wait(principal, id, wait, running, call.budget).await?, None))
    }

    /// A given timeout bounds the whole wait; without one, silence ends it, and so does the total timeout.
    fn wait_of(&self, call: &TerminalCall) -> Wait {
        Wait {
            pattern: call.pattern.clone(),
            input_wanted: true,
            quiet: call.timeout.is_none().then_some(self.soft_timeout),
            ..Wait::at_most(call.timeout.unwrap_or(limits::TOTAL_TIMEOUT))
        }
    }

    async fn type_in(
        &self,
        principal: &Principal,
        id: &SessionId,
        bytes: Vec<u8>,
        call: &TerminalCall,
    ) -> Result<Report, ActionError> {
        self.input(principal, &self.typing(id, bytes, call)).await
    }

    fn typing(&self, id: &SessionId, bytes: Vec<u8>, call: &TerminalCall) -> Input {
        Input {
            session: id.clone(),
            bytes: InputBytes::Raw(bytes),
            is_secret: false,
            wait: Some(self.wait_of(call)),
            key: call.key.clone(),
            budget: call.budget,
        }
    }

    fn execution(&self, session: SessionId, command: String, call: &TerminalCall) -> Execute {
        let (wait, key) = (Some(self.wait_of(call)), call.key.clone());
        Execute { session, command, is_inside: call.is_inside, wait, key, budget: call.budget }
    }
}

async fn handle_command(handle: &Handle) -> Option<String> {
    let snapshot = handle.ask(Request::Look).await.ok()?;
    snapshot.view.current_command?;
    snapshot.command.map(|c| c.command)
}

/// Exactly these texts are keys; any other text is a command or input.
fn ask(call: &TerminalCall) -> Ask {
    match call.command.as_str() {
        "C-c" => Ask::Signal(sys::signal::INT),
        "C-z" => Ask::Signal(sys::signal::TSTP),
        "C-d" => Ask::EndOfFile,
        "" if !call.is_input => Ask::Look,
        text if call.is_input => {
            let newline = if text.ends_with('\n') { "" } else { "\n" };
            Ask::Input(format!("{text}{newline}").into_bytes())
        }
        text if text.trim().is_empty() => Ask::Look,
        text => Ask::Command(text.to_owned()),
    }
}

fn request(context: &ClientContext, client: String) -> Create {
    Create {
        otherwise: Otherwise {
            // Models write for bash, whatever their user's shell is.
            shell: Some("bash".to_owned()),
            cwd: context.cwd.clone(),
            ..Otherwise::default()
        },
        base_env: context.env.clone(),
        umask: context.umask,
        client: Some(client),
        detach: context.detach,
        is_default: true,
        ..Create::default()
    }
}
