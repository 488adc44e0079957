//! Runs, types, waits and reads for a caller: from what an actor says to what is shown.

use std::sync::Arc;
use std::time::Duration;

use holder::wire::Target;
use journal::Reader;

use super::ended_session::EndedSession;
use super::external_conditions::{self, ExternalConditions};
use super::output_text::{self, Begins};
use super::registry::{Found, Handle, Registry, locked, reason};
use super::session::{Finished, Painted, Request, Shared, Snapshot};
use crate::action::{
    ActionError, CommandStatus, CommandView, EndedBy, Execute, Foreground, Input, InputBytes, NamedAction, Outcome,
    OutputView, ProcessView, ReadOutput, Report, ScreenView, SessionView, SignalTarget, SignalView, Since, TextView,
    View, Wait,
};
use crate::auth::principal::Principal;
use crate::ids::{CommandId, SessionId};
use crate::limits;

/// How long the holder of a shell that has gone may take to end what it left behind.
pub(super) const CLEARING_UP: Duration = Duration::from_secs(1);
/// How long a command waits for the prompt when its caller waits for nothing.
const PATIENCE_WITHOUT_WAIT: Duration = Duration::from_secs(5);

/// A command of a session, and where what is shown of it ends while it runs.
pub(super) struct Known {
    pub(super) session: SessionView,
    shared: Arc<Shared>,
    pub(super) command: CommandView,
    shown_to: u64,
}

impl Registry {
    pub(super) async fn execute(&self, principal: &Principal, request: Execute) -> Result<Report, ActionError> {
        match self.execute_once(principal, request.clone()).await {
            Err(ended @ ActionError::Ended { .. }) => {
                self.executed_before(principal, &request).await.unwrap_or(Err(ended))
            }
            result => result,
        }
    }

    async fn execute_once(&self, principal: &Principal, request: Execute) -> Result<Report, ActionError> {
        check_command(&request.command)?;
        let handle = self.live(principal, &request.session).await?;
        let _permit = request.wait.as_ref().map(|_| handle.permits.wait()).transpose()?;
        self.not_a_creates(principal, request.key.as_deref()).await?;
        let key = self.key_of_command(&request);
        let patience = request.wait.as_ref().map_or(PATIENCE_WITHOUT_WAIT, |w| w.timeout);
        let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        let (text, wait, is_inside) = (request.command.into_bytes(), request.wait, request.is_inside);
        let outside = ExternalConditions::of(&handle, wait.as_ref(), false).await?;
        let started = handle.ask(|started| Request::Run { text, key, patience_ms, wait, is_inside, started }).await?;
        let started = started.map_err(|e| with_key(e, request.key.as_deref()))?;
        let report = match started.finished {
            None if started.is_history => {
                self.command(principal, &request.session, CommandId(started.id), request.budget).await?
            }
            Some(finished) => {
                let finished = async { finished.await.map_err(|_| handle.why_gone()) };
                let finished =
                    external_conditions::either(&handle, finished, outside, (Some(started.id), None)).await?;
                self.report(principal, &handle, finished, request.budget).await?
            }
            None => {
                let (view, all) = self.after(principal, &handle).await?;
                let command = all.into_iter().find(|c| c.id.0 == started.id);
                let at = command.as_ref().map_or(0, |c| c.start_offset);
                let output = TextView { from: at, to: at, ..TextView::default() };
                plain_report(view, command, EndedBy::Accepted, output)
            }
        };
        self.has_read(principal, &request.session, report.output.to);
        Ok(report)
    }

    /// How it stands after what was done. What has ended its session already is told from the records and is no refusal.
    async fn after(
        &self,
        principal: &Principal,
        handle: &Handle,
    ) -> Result<(SessionView, Vec<CommandView>), ActionError> {
        match handle.ask(Request::Commands).await {
            Ok((snapshot, all)) => Ok((snapshot.view, all)),
            Err(ended @ ActionError::Ended { .. }) => {
                let _ = tokio::time::timeout(CLEARING_UP, handle.gone()).await;
                match self.find(principal, &handle.shared.id).await? {
                    Found::EndedSession(past) => Ok((past.view(), past.commands())),
                    Found::Live(_) | Found::Unreachable(_) => Err(ended),
                }
            }
            Err(other) => Err(other),
        }
    }

    pub(super) async fn input(&self, principal: &Principal, request: Input) -> Result<Report, ActionError> {
        match self.input_once(principal, request.clone()).await {
            Err(ended @ ActionError::Ended { .. }) => {
                self.typed_before(principal, &request).await.unwrap_or(Err(ended))
            }
            result => result,
        }
    }

    async fn input_once(&self, principal: &Principal, request: Input) -> Result<Report, ActionError> {
        let handle = self.live(principal, &request.session).await?;
        let size = match &request.bytes {
            InputBytes::Raw(bytes) => bytes.len(),
            InputBytes::Paste { text, .. } => text.len(),
            InputBytes::Keys(_) => 0,
        };
        if size > limits::INPUT_BYTES_MAX {
            let problem = format!("{size} bytes; at most {} at once", limits::INPUT_BYTES_MAX);
            return Err(ActionError::Invalid { field: "input", problem });
        }
        let _permit = request.wait.as_ref().map(|_| handle.permits.wait()).transpose()?;
        self.not_a_creates(principal, request.key.as_deref()).await?;
        let key = self.key_of_input(&request);
        let Input { bytes, is_secret, wait, .. } = request;
        let outside = ExternalConditions::of(&handle, wait.as_ref(), false).await?;
        let typed = handle.ask(|typed| Request::Input { bytes, key, is_secret, wait, typed }).await?;
        let typed = typed.map_err(|e| with_key(e, request.key.as_deref()))?;
        let report = match typed.finished {
            Some(finished) => {
                let finished = async { finished.await.map_err(|_| handle.why_gone()) };
                let mut finished =
                    external_conditions::either(&handle, finished, outside, (None, Some(typed.from))).await?;
                finished.accepted_bytes = Some(typed.accepted);
                self.report(principal, &handle, finished, request.budget).await?
            }
            None => {
                let (view, all) = self.after(principal, &handle).await?;
                let running = all.into_iter().find(|c| view.current_command == Some(c.id));
                let output = TextView { from: typed.from, to: typed.from, ..TextView::default() };
                let mut report = plain_report(view, running, EndedBy::Accepted, output);
                report.accepted_bytes = Some(typed.accepted);
                report
            }
        };
        self.has_read(principal, &request.session, report.output.to);
        Ok(report)
    }

    pub(super) async fn wait(
        &self,
        principal: &Principal,
        session: &SessionId,
        wait: Wait,
        command: Option<CommandId>,
        budget: usize,
    ) -> Result<Report, ActionError> {
        let handle = match self.find(principal, session).await? {
            Found::Live(handle) => handle,
            Found::Unreachable(unreachable) => return Err(unreachable.error()),
            Found::EndedSession(past) => return Ok(past_report(&past)),
        };
        let _permit = handle.permits.wait()?;
        let from = self.waits_from(principal, &handle, wait.pattern.is_some()).await?;
        let outside = ExternalConditions::of(&handle, Some(&wait), true).await?;
        let command = command.map(|c| c.0);
        let has_pattern = wait.pattern.is_some();
        let finished = handle.ask(|reply| Request::Wait { wait, command, from: Some(from), reply });
        let finished = external_conditions::either(&handle, finished, outside, (command, Some(from))).await?;
        let report = self.report(principal, &handle, finished, budget).await?;
        self.has_read(principal, session, report.output.to);
        if has_pattern {
            // What it matched must not match again.
            self.keeps_read_cursors().await;
        }
        Ok(report)
    }

    /// Where the output begins that is new to who waits. For a pattern that is written down before it is waited for: a wait that
    /// is asked again, of the next server too, begins at the same place.
    async fn waits_from(&self, principal: &Principal, handle: &Handle, has_pattern: bool) -> Result<u64, ActionError> {
        let id = &handle.shared.id;
        let from = match self.read_to(principal, id).await {
            Some(from) => from,
            None => {
                let from = handle.ask(Request::ViewerLimit).await?.to;
                self.has_read(principal, id, from);
                from
            }
        };
        if has_pattern {
            self.keeps_read_cursors().await;
        }
        Ok(from)
    }

    pub(super) async fn signal(
        &self,
        principal: &Principal,
        session: &SessionId,
        target: SignalTarget,
        signo: i32,
    ) -> Result<Outcome, ActionError> {
        let handle = self.live(principal, session).await?;
        let target = match target {
            SignalTarget::Foreground => Target::Foreground,
            SignalTarget::Session => Target::Session,
            SignalTarget::Process(pid) => Target::Process(pid),
        };
        handle.ask(|reply| Request::Signal { target, signo, reply }).await??;
        let view = match self.live_view(&handle).await {
            Err(ActionError::Ended { .. }) => self.after(principal, &handle).await?.0,
            view => view?,
        };
        Ok(Outcome::Session(Box::new(view)))
    }

    /// Does what the session has under this name.
    pub(super) async fn react(
        &self,
        principal: &Principal,
        session: SessionId,
        name: &str,
        key: Option<String>,
    ) -> Result<Report, ActionError> {
        let budget = limits::BUDGET_CHARS;
        let handle = self.live(principal, &session).await?;
        let known = &handle.shared.meta.reactions;
        match known.get(name).cloned() {
            Some(NamedAction::Command(command)) => {
                self.execute(principal, Execute { session, command, is_inside: false, wait: None, key, budget }).await
            }
            Some(NamedAction::Keys(names)) => {
                let keys = names.iter().map(|name| crate::keys::parse(name)).collect::<Result<Vec<_>, _>>();
                let bytes = InputBytes::Keys(keys.map_err(|why| ActionError::Internal { why })?.concat());
                self.input(principal, Input { session, bytes, is_secret: false, wait: None, key, budget }).await
            }
            Some(NamedAction::Signal(signo)) => {
                self.signal(principal, &session, SignalTarget::Foreground, signo).await?;
                let wait = Wait::at_most(Duration::ZERO);
                self.wait(principal, &session, wait, None, budget).await
            }
            None => {
                let all: Vec<&str> = known.keys().map(String::as_str).collect();
                let problem = match all.as_slice() {
                    [] => "this session has none; they are given when it is started".to_owned(),
                    all => format!("this session has {}", all.join(", ")),
                };
                Err(ActionError::Invalid { field: "action", problem })
            }
        }
    }

    /// None are left of a session that has ended.
    pub(super) async fn processes(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Vec<ProcessView>, ActionError> {
        match self.find(principal, session).await? {
            Found::Live(handle) => handle.ask(Request::Processes).await,
            Found::Unreachable(unreachable) => Err(unreachable.error()),
            Found::EndedSession(_) => Ok(Vec::new()),
        }
    }

    pub(super) async fn signals(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Vec<SignalView>, ActionError> {
        match self.find(principal, session).await? {
            Found::Live(handle) => handle.ask(Request::Signals).await,
            Found::Unreachable(unreachable) => Err(unreachable.error()),
            Found::EndedSession(past) => Ok(super::views::signal_views(&past.timeline)),
        }
    }

    /// A key that has started a session is used up for everything else: that is another request.
    async fn not_a_creates(&self, principal: &Principal, key: Option<&str>) -> Result<(), ActionError> {
        let Some(key) = key else { return Ok(()) };
        let Some(session) = locked(&self.keys).get(&(principal.name.clone(), key.to_owned())).cloned() else {
            return Ok(());
        };
        match self.find(principal, &session).await {
            Ok(_) => Err(ActionError::KeyReused { key: key.to_owned() }),
            // Somebody else's keys are none of this caller's business.
            Err(_) => Ok(()),
        }
    }

    /// A wait that is over, with the output that belongs to it.
    pub(super) async fn report(
        &self,
        principal: &Principal,
        handle: &Handle,
        finished: Finished,
        budget: usize,
    ) -> Result<Report, ActionError> {
        let Finished { ended_by, from, waited, matched, accepted_bytes, snapshot } = finished;
        let Snapshot { view, command, shown_to, paint, .. } = snapshot;
        let to = command.as_ref().and_then(|c| c.end_offset).unwrap_or(shown_to);
        let (from, to) = (from.min(to), to);
        let is_fullscreen = view.foreground == Foreground::Fullscreen;
        let screen = if is_fullscreen { self.screen(principal, handle).await.ok() } else { None };
        // What was painted since the last look is no text: the screen shows what came of it.
        let is_paint = screen.is_some() && paint.covers(from);
        let output = if is_paint {
            TextView { from, to, ..TextView::default() }
        } else {
            let was_on = paint.was_at(from);
            let begins = Begins { in_paint: was_on == Some(Painted::Alternate), ..Begins::default() };
            // What is painted on the main screen would be told twice.
            let text_to = paint.main_from().filter(|_| screen.is_some()).map_or(to, |paint| paint.min(to));
            let mut text = self.text_with(&handle.shared, (from, text_to), view.cols, budget, begins).await?;
            if matches!(was_on, Some(Painted::Main { .. })) {
                // The way to the place where the cursor was left.
                text.head.drain(..text.head.len() - text.head.trim_start_matches('\n').len());
            }
            TextView { to, ..text }
        };
        Ok(Report { session: view, command, ended_by, waited, output, screen, accepted_bytes, matched })
    }

    /// The screen, with what of it is new to this caller.
    pub(super) async fn screen(&self, principal: &Principal, handle: &Handle) -> Result<ScreenView, ActionError> {
        let mut screen = handle.ask(Request::Picture).await?.screen;
        self.read_cursors.shows(&principal.name, &handle.shared.id, &mut screen);
        Ok(screen)
    }

    /// Renders a range; a long one on a thread that may block.
    pub(super) async fn text(
        &self,
        shared: &Arc<Shared>,
        from: u64,
        to: u64,
        cols: u16,
        budget: usize,
    ) -> Result<TextView, ActionError> {
        self.text_with(shared, (from, to), cols, budget, Begins::default()).await
    }

    /// The same for a range that begins otherwise than with a command's output.
    async fn text_with(
        &self,
        shared: &Arc<Shared>,
        (from, to): (u64, u64),
        cols: u16,
        budget: usize,
        begins: Begins,
    ) -> Result<TextView, ActionError> {
        /// What is rendered where it is asked for: a fraction of a millisecond.
        const SMALL: u64 = 16 << 10;
        let unreadable = |e: std::io::Error| ActionError::Internal { why: format!("the journal: {e}") };
        if to - from <= SMALL {
            return output_text::text(&shared.reader, from, to, cols, budget, &begins).map_err(unreadable);
        }
        let shared = Arc::clone(shared);
        tokio::task::spawn_blocking(move || output_text::text(&shared.reader, from, to, cols, budget, &begins))
            .await
            .map_err(|e| ActionError::Internal { why: e.to_string() })?
            .map_err(unreadable)
    }

    // ---- commands ----

    pub(super) async fn commands(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
        offset: usize,
    ) -> Result<Outcome, ActionError> {
        let (recent, view) = match self.find_to_read(principal, session).await? {
            Found::Live(handle) => {
                let (snapshot, recent) = handle.ask(Request::Commands).await?;
                (recent, snapshot.view)
            }
            Found::Unreachable(unreachable) => return Err(unreachable.error()),
            Found::EndedSession(past) => (past.commands(), past.view()),
        };
        // What has left the actor's memory is in the history; the newest are taken from the source.
        let newest: Vec<u32> = recent.iter().map(|c| c.id.0).collect();
        let id = session.as_str().to_owned();
        let (rows, older) = self
            .history(move |store| {
                store.flush_as_far_as_possible()?;
                store.commands(&id, &newest, limit, offset)
            })
            .await?;
        let total = older + recent.len();
        let mut page: Vec<CommandView> = rows.into_iter().map(|r| from_history(&view, r)).collect();
        let left = limit.saturating_sub(page.len());
        page.extend(recent.into_iter().skip(offset.saturating_sub(older)).take(left));
        Ok(Outcome::Commands(page, total))
    }

    pub(super) async fn command(
        &self,
        principal: &Principal,
        session: &SessionId,
        id: CommandId,
        budget: usize,
    ) -> Result<Report, ActionError> {
        let Known { session: view, shared, command, shown_to } = self.known(principal, session, id).await?;
        let to = command.end_offset.unwrap_or(shown_to);
        let output = self.text(&shared, command.start_offset.min(to), to, view.cols, budget).await?;
        let ended_by = if command.status == CommandStatus::Running { EndedBy::Accepted } else { EndedBy::Ended };
        Ok(plain_report(view, Some(command), ended_by, output))
    }

    /// A command, wherever it is still known.
    pub(super) async fn known(
        &self,
        principal: &Principal,
        session: &SessionId,
        id: CommandId,
    ) -> Result<Known, ActionError> {
        let (view, shared, command, shown_to) = match self.find_to_read(principal, session).await? {
            Found::Unreachable(unreachable) => return Err(unreachable.error()),
            Found::Live(handle) => {
                let (snapshot, all) = handle.ask(Request::Commands).await?;
                let command = all.into_iter().find(|c| c.id == id);
                (snapshot.view, Arc::clone(&handle.shared), command, snapshot.shown_to)
            }
            Found::EndedSession(past) => {
                let command = past.commands().into_iter().find(|c| c.id == id);
                (past.view(), Arc::clone(&past.shared), command, past.timeline.scanner.position())
            }
        };
        if let Some(command) = command {
            return Ok(Known { session: view, shared, command, shown_to });
        }
        let name = session.as_str().to_owned();
        let row = self
            .history(move |store| {
                store.flush_as_far_as_possible()?;
                store.command(&name, id.0)
            })
            .await?;
        let row = row.ok_or_else(|| ActionError::NoCommand { session: session.clone(), id: id.to_string() })?;
        let command = from_history(&view, row);
        let shown_to = command.start_offset;
        Ok(Known { session: view, shared, command, shown_to })
    }

    // ---- output ----

    pub(super) async fn output(&self, principal: &Principal, read: &ReadOutput) -> Result<OutputView, ActionError> {
        let found = self.find_to_read(principal, &read.session).await?;
        let (shared, ledger_end) = match &found {
            Found::Live(handle) => (Arc::clone(&handle.shared), None),
            Found::Unreachable(unreachable) => return Err(unreachable.error()),
            Found::EndedSession(past) => (Arc::clone(&past.shared), Some(past.timeline.scanner.position())),
        };
        // What it writes now is not seen, and comes all the same.
        let is_unreachable = matches!(&found, Found::EndedSession(past) if past.unreachable.is_some());
        let (from, bound) = self.position(principal, &found, read).await?;
        let mut past_commands = match &found {
            Found::Live(_) | Found::Unreachable(_) => Vec::new(),
            Found::EndedSession(past) => past.commands(),
        };
        let mut handle = match found {
            Found::Live(handle) => Some(handle),
            Found::EndedSession(_) | Found::Unreachable(_) => None,
        };
        let deadline = tokio::time::Instant::now() + read.wait;
        let mut has_caught_up = false;
        let is_filtered = read.kind.is_some() || matches!(read.since, Since::Command(_));
        loop {
            let shown = match &handle {
                Some(live) => match live.ask(Request::ViewerLimit).await {
                    Err(ActionError::Restarting) => return Err(ActionError::Restarting),
                    // The holder clears up and then everything is on disk; whoever asks now is told that it is all.
                    Ok(shown) if shown.has_exited && tokio::time::timeout(CLEARING_UP, live.gone()).await.is_ok() => {
                        None
                    }
                    shown => shown.ok(),
                },
                None => None,
            };
            // The actor has gone: the session ended while we waited, and everything is on disk.
            let is_final = shown.is_none();
            let (end, markers) = match shown {
                Some(shown) if read.view == View::Stream => (shown.stream_to, shown.markers),
                Some(shown) => (shown.to, shown.markers),
                None => {
                    let end = ledger_end.unwrap_or(shared.reader.len().unwrap_or_default().0);
                    let markers = match self.find(principal, &read.session).await {
                        Ok(Found::EndedSession(past)) => {
                            (handle, past_commands) = (None, past.commands());
                            past.timeline.markers.iter().copied().collect()
                        }
                        Ok(Found::Live(_) | Found::Unreachable(_)) | Err(_) => Vec::new(),
                    };
                    (end, markers)
                }
            };
            if let (true, false, Some(live)) = (from > end, std::mem::replace(&mut has_caught_up, true), &handle) {
                catch_up(live, from).await;
                continue;
            }
            let commands = match &handle {
                Some(live) if read.view != View::Raw || is_filtered => match live.ask(Request::Commands).await {
                    Ok((_, commands)) => commands,
                    // Whose output it is must be known; the actor has gone, and the next turn finds it in the records.
                    Err(_) if is_filtered && !is_final => continue,
                    Err(error) if is_filtered => return Err(error),
                    Err(_) => Vec::new(),
                },
                Some(_) => Vec::new(),
                None => past_commands.clone(),
            };
            // A command that ran when it was asked for may have ended meanwhile, and what follows is not its output.
            let bound = bound.or_else(|| match &read.since {
                Since::Command(id) => commands.iter().find(|c| c.id == *id).and_then(|c| c.end_offset),
                Since::First | Since::Offset(_) | Since::Time(_) | Since::Last => None,
            });
            let (shown, end) = (end, bound.map_or(end, |b| b.min(end)));
            let is_all = is_final || bound.is_some_and(|b| from >= b);
            let (start, stop) = match read.kind {
                Some(kind) if from <= end => self.stretch(&read.session, kind, &commands, (from, end)).await?,
                Some(_) | None => (from, end),
            };
            let is_over = is_all || read.wait.is_zero() || tokio::time::Instant::now() >= deadline;
            if stop > start || is_over {
                let ends = is_final && stop == end && !is_unreachable;
                let mut view = self.output_view(&shared, read, (start, stop), &markers, echoes(commands), ends).await?;
                if start > from && view.first > from {
                    view.gap = Some((from, view.from.min(view.first)));
                }
                view.end = end;
                // A command's marker is a part of its stretch, and may come before what it prints.
                let is_silent = read.kind.is_some() && read.view == View::Text && view.text.head.is_empty();
                if is_over || !is_silent {
                    self.has_read(principal, &read.session, view.next);
                    return Ok(view);
                }
            }
            if let Some(live) = &mut handle {
                live.tail.mark_unchanged();
                if live.ask(Request::ViewerLimit).await.is_ok_and(|now| now.to > shown.max(from)) {
                    continue;
                }
                let _ = tokio::time::timeout_at(deadline, live.tail.changed()).await;
            }
        }
    }

    /// Where to read from, and where to stop if the request says.
    async fn position(
        &self,
        principal: &Principal,
        found: &Found,
        read: &ReadOutput,
    ) -> Result<(u64, Option<u64>), ActionError> {
        let Since::Command(id) = &read.since else {
            return Ok((self.since(principal, found, &read.session, &read.since).await?, None));
        };
        let command = self.known_command(principal, &read.session, *id).await?;
        Ok((command.start_offset, command.end_offset))
    }

    async fn known_command(
        &self,
        principal: &Principal,
        session: &SessionId,
        id: CommandId,
    ) -> Result<CommandView, ActionError> {
        let report = Box::pin(self.command(principal, session, id, 1)).await?;
        report.command.ok_or_else(|| ActionError::NoCommand { session: session.clone(), id: id.to_string() })
    }

    /// A position as an offset.
    pub(super) async fn since(
        &self,
        principal: &Principal,
        found: &Found,
        session: &SessionId,
        since: &Since,
    ) -> Result<u64, ActionError> {
        Ok(match since {
            Since::First => 0,
            Since::Offset(at) => *at,
            Since::Last => self.read_to(principal, session).await.unwrap_or(0),
            Since::Time(when) => match found {
                Found::Live(handle) => handle.ask(|reply| Request::At(*when, reply)).await?,
                Found::Unreachable(unreachable) => return Err(unreachable.error()),
                Found::EndedSession(past) => past.timeline.offset_at(*when),
            },
            Since::Command(id) => self.known_command(principal, session, *id).await?.start_offset,
        })
    }

    async fn output_view(
        &self,
        shared: &Arc<Shared>,
        read: &ReadOutput,
        (asked, end): (u64, u64),
        markers: &[(u64, u64)],
        echoes: output_text::Echoes,
        is_final: bool,
    ) -> Result<OutputView, ActionError> {
        let unreadable = |e: std::io::Error| ActionError::Internal { why: format!("the journal: {e}") };
        if asked > end && !matches!(read.since, Since::Last) {
            let problem = format!("o:{asked} is behind the end of the output, o:{end}");
            return Err(ActionError::Invalid { field: "since", problem });
        }
        let first = shared.reader.first().map_err(unreadable)?.0;
        let from = asked.max(first).min(end);
        let to = end.min(from.saturating_add(read.limit.min(limits::READ_BYTES_MAX) as u64));
        let mut view = OutputView {
            view: read.view,
            bytes: Vec::new(),
            text: TextView { from, to: from, ..TextView::default() },
            from,
            next: from,
            first,
            end,
            gap: (asked < from).then_some((asked, from)),
            is_final: is_final && to == end,
        };
        match read.view {
            View::Raw | View::Stream => {
                let slice = output_text::read(&shared.reader, from, to).map_err(unreadable)?;
                view.next = slice.from + slice.bytes.len() as u64;
                if slice.from > from {
                    // Retention was faster than the read.
                    (view.gap, view.from) = (Some((asked, slice.from)), slice.from);
                }
                view.bytes = match read.view {
                    View::Stream => output_text::stream(&slice, |from, to| markers.contains(&(from, to)), &echoes),
                    View::Raw | View::Text => slice.bytes,
                };
            }
            View::Text => {
                let to = if to < end { line_end(&shared.reader, from, to).map_err(unreadable)? } else { to };
                let newest = match read.lines_max {
                    Some(lines) => newest_lines(&shared.reader, from, to, lines).map_err(unreadable)?,
                    None => from,
                };
                let begins = Begins { echoes, ..Begins::default() };
                view.text = self.text_with(shared, (newest, to), shared.spec.cols, read.budget, begins).await?;
                if newest > from {
                    output_text::say_left_out(&shared.reader, &mut view.text, from, newest).map_err(unreadable)?;
                }
                view.next = to;
            }
        }
        Ok(view)
    }
}

/// A server that has just begun has not read all that the one before had shown; waits until this one has come so far,
/// if there is so much. Each question costs a turn, in which some output is read.
pub(super) async fn catch_up(live: &Handle, to: u64) {
    let mut reached = None;
    while to <= live.tail.borrow().journal.0 {
        match live.ask(Request::ViewerLimit).await {
            Ok(shown) if shown.to < to && reached != Some(shown.to) => reached = Some(shown.to),
            // What cannot be read is waited for by nobody.
            Ok(_) | Err(_) => return,
        }
    }
}

/// The last line end in a range, so that text is given in whole lines; its last whole character when there is none.
fn line_end(reader: &Reader, from: u64, to: u64) -> std::io::Result<u64> {
    let back = to.saturating_sub(64 << 10).max(from);
    let slice = output_text::read(reader, back, to)?;
    let end =
        slice.bytes.iter().rposition(|b| *b == b'\n').map_or_else(|| output_text::whole_chars(&slice.bytes), |i| i + 1);
    Ok(slice.from + end as u64)
}

fn echoes(commands: Vec<CommandView>) -> output_text::Echoes {
    let mut before = 0;
    commands
        .into_iter()
        .map(|c| {
            let prompt = before..c.start_offset;
            before = c.end_offset.unwrap_or(u64::MAX);
            (prompt, c.command)
        })
        .collect()
}

/// Where the newest so many lines of a range begin; the last one may be unfinished.
fn newest_lines(reader: &Reader, from: u64, to: u64, lines: usize) -> std::io::Result<u64> {
    const STEP: u64 = 64 << 10;
    let (mut end, mut left) = (to, lines);
    while end > from {
        let start = end.saturating_sub(STEP).max(from);
        let slice = output_text::read(reader, start, end)?;
        for (i, _) in slice.bytes.iter().enumerate().rev().filter(|(_, b)| **b == b'\n') {
            let at = slice.from + i as u64 + 1;
            // A line end at the very end closes the last line and begins none.
            if at == to {
                continue;
            }
            left = left.saturating_sub(1);
            if left == 0 {
                return Ok(at);
            }
        }
        end = start;
    }
    Ok(from)
}

fn check_command(text: &str) -> Result<(), ActionError> {
    if text.len() > limits::COMMAND_BYTES_MAX {
        let problem = format!(
            "{} bytes; at most {}; write a file with several commands instead",
            text.len(),
            limits::COMMAND_BYTES_MAX
        );
        return Err(ActionError::Invalid { field: "command", problem });
    }
    if text.contains('\0') {
        return Err(ActionError::Invalid {
            field: "command",
            problem: "holds a NUL byte, which no shell takes".to_owned(),
        });
    }
    Ok(())
}

pub(super) fn with_key(error: ActionError, key: Option<&str>) -> ActionError {
    match (error, key) {
        (ActionError::KeyReused { .. }, Some(key)) => ActionError::KeyReused { key: key.to_owned() },
        (error, _) => error,
    }
}

/// FNV-1a: only a name for text, never a defence.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

pub(super) fn plain_report(
    session: SessionView,
    command: Option<CommandView>,
    ended_by: EndedBy,
    output: TextView,
) -> Report {
    Report {
        session,
        command,
        ended_by,
        waited: Duration::ZERO,
        output,
        screen: None,
        accepted_bytes: None,
        matched: None,
    }
}

fn past_report(past: &EndedSession) -> Report {
    let at = past.timeline.scanner.position();
    plain_report(past.view(), None, EndedBy::Exited, TextView { from: at, to: at, ..TextView::default() })
}

/// A command that only the history knows any more: its output's place is not in there.
fn from_history(session: &SessionView, row: crate::store::HistoryRow) -> CommandView {
    use crate::action::{Boundary, CommandStatus};
    let status = match row.status.as_str() {
        "completed" => CommandStatus::Completed,
        "terminated" => CommandStatus::Terminated,
        _ => CommandStatus::Failed,
    };
    CommandView {
        id: CommandId(row.id),
        session: session.id.clone(),
        command: row.command,
        status,
        started_at: super::timeline::time(row.started_us),
        completed_at: row.ended_us.map(super::timeline::time),
        exit_code: row.exit,
        signal: row.exit.and_then(sys::signal::of_exit_code),
        pipestatus: Vec::new(),
        limits_hit: Vec::new(),
        // Nobody but the server that typed it could have told its end.
        error: (row.status == "running")
            .then(|| "the server was restarted while it ran: its end is not known".to_owned()),
        start_offset: row.start_offset,
        end_offset: Some(row.end_offset),
        output_size: row.end_offset.saturating_sub(row.start_offset),
        cwd: None,
        // A code of a typed one was told by a mark.
        boundary: match (row.id > super::TYPED_IDS_FROM, row.exit) {
            (false, _) => Boundary::Attested,
            (true, Some(_)) => Boundary::Nonce,
            (true, None) => Boundary::Heuristic,
        },
    }
}

/// The session's last words for callers whose session has just ended.
pub(super) fn ended(view: &SessionView) -> ActionError {
    ActionError::Ended { session: view.id.clone(), reason: reason(view) }
}
