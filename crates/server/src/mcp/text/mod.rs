//! The text of answers for a model: the output as a person would see it, then one status line, `[fact · fact · …]`.
//!
//! The grammar is docs/text-format.md. Only the last line is ever ours: a program may print a line that looks like it,
//! so nothing may follow the status line. State that did not change since the last answer is not repeated.

mod condense;
mod context;
mod size;
mod status_line;
#[cfg(test)]
pub(super) mod tests;

use std::time::Duration;

pub(super) use condense::visible;
pub(super) use context::AnswerContext;
pub(super) use size::{counted, grouped, seconds};
pub(super) use status_line::{Facts, metadata, path, plain, quoted, shell_words, startup};

use super::password_place::PasswordPlace;
use ptyd_core::action::{
    Boundary, CommandStatus, CommandView, EndedBy, Ending, Foreground, Fresh, HiddenText, INNER_SHELL_ENDED, Limit,
    Look, MissedEnd, MovedRows, Omitted, OutputView, PersonReply, Report, ScreenView, SessionStatus, SessionView,
    TaskEnd, TaskNote, TerminalView, TextView, WITHOUT_HOOKS, signal_name,
};
use ptyd_core::ids::CommandId;
use ptyd_core::limits::LEFT_BEHIND_NAMED;

/// Characters of a command by which a task's end names it.
const COMMAND_CHARS_MAX: usize = 40;
/// Ranges in reverse video that are mentioned; a menu has one, and a status line is another.
const INVERSE_MAX: usize = 3;

/// The fact of a command whose end a task of the caller reports.
const WILL_BE_TOLD: &str = "its end will be reported";

/// Whether a task of the caller reports the command's end.
pub(super) fn will_be_told(report: &Report) -> bool {
    matches!(report.task, Some(TaskNote::TellsEnd(_)))
}

/// The body and the status line of a task's end. Ends of several commands are told together, so it names its own.
pub(super) fn task(end: &TaskEnd, context: &AnswerContext<'_>) -> (String, String) {
    let (report, mut facts) = (&end.report, Facts::default());
    let (body, notes) = body(report, context);
    state(&mut facts, report, context);
    if let Some(command) = &report.command {
        let is_named = command.status == CommandStatus::Running;
        if !is_named && context.shown.is_some() {
            facts.add(format!("session {}", report.session.id));
        }
        let text: String = command.command.chars().take(COMMAND_CHARS_MAX).collect();
        facts.add(if is_named { quoted(&text) } else { format!("command {} {}", command.id, quoted(&text)) });
    }
    match end.person {
        Some(PersonReply::Declined) => facts.add("a person declined"),
        Some(PersonReply::Accepted | PersonReply::Cancelled) => facts.add("nobody answered"),
        None => {}
    }
    if end.cancelled.is_some() && end.interrupted {
        facts.add("C-c was sent");
    }
    if end.told_before > 0 {
        facts.add(format!("{} reported before", counted(end.told_before, "byte", "bytes")));
    }
    circumstances(&mut facts, report, notes, context);
    (body, facts.line())
}

/// Output or screen, then the status line, of a command, an input or a wait.
pub(super) fn report(report: &Report, context: &AnswerContext<'_>) -> String {
    let mut facts = Facts::default();
    let (body, notes) = body(report, context);
    state(&mut facts, report, context);
    if report.is_typed_at_prompt {
        facts.add("typed at the shell's prompt");
    }
    ignored(&mut facts, report, "send C-\\, or reset the session");
    circumstances(&mut facts, report, notes, context);
    body + &facts.line()
}

/// Names the program that runs on because it ignores the interrupt, and the next step.
fn ignored(facts: &mut Facts, report: &Report, next_step: &str) {
    if let Some(program) = report.still_ignored_by() {
        facts.add(format!("{} ignores C-c: {next_step}", plain(program)));
    }
}

/// The same for the `terminal` tool, which may have started a new shell or may only have looked.
pub(super) fn terminal(view: &TerminalView, context: &AnswerContext<'_>) -> String {
    let report = &view.report;
    let mut facts = Facts::default();
    match &view.look {
        None | Some(Look::Running) => {
            state(&mut facts, report, context);
            ignored(&mut facts, report, "send C-\\ with is_input, or reset");
        }
        Some(Look::Idle) => {
            facts.add("idle");
            last_result(&mut facts, report);
        }
        Some(Look::NothingToInterrupt) => {
            facts.add("nothing runs; nothing was sent");
            last_result(&mut facts, report);
        }
        Some(Look::Reset) => facts.add("terminal reset: all previous state is lost"),
    }
    match &view.fresh {
        None => {}
        Some(Fresh::First(left_behind)) => sessions_left_behind(&mut facts, left_behind),
        Some(Fresh::Ended { how, keeps_cwd, .. }) => {
            let lost = if *keeps_cwd { "all state but the directory" } else { "all state" };
            facts.add(format!("fresh shell, {lost} is lost: the last one ended ({})", plain(how)))
        }
        Some(Fresh::Reset(lost)) => {
            if view.look.as_ref() != Some(&Look::Reset) {
                facts.add("terminal reset: all previous state is lost");
            }
            if let Some(lost) = lost {
                facts.add(format!("killed {}", quoted(lost)));
            }
        }
    }
    if view.fresh.is_some() {
        startup(&mut facts, &report.session);
    }
    // A reset itself mentions the command that it killed.
    let is_reset = matches!(view.fresh, Some(Fresh::Reset(_)));
    let missed = view.missed.iter().filter(|it| !(is_reset && it.command.status == CommandStatus::Terminated));
    with_missed_ends(facts, report, missed, context)
}

/// The same for `execute_in_terminal`.
pub(super) fn execution(report: &Report, missed: &[MissedEnd], context: &AnswerContext<'_>) -> String {
    let mut facts = Facts::default();
    state(&mut facts, report, context);
    with_missed_ends(facts, report, missed.iter(), context)
}

/// The answer whose first facts these are, with the ends of other commands and their output.
fn with_missed_ends<'m>(
    mut facts: Facts,
    report: &Report,
    missed: impl Iterator<Item = &'m MissedEnd>,
    context: &AnswerContext<'_>,
) -> String {
    let mut unread = String::new();
    for missed in missed {
        // Lines from the background are said to be the first.
        let text = missed.unread.as_ref().filter(|_| report.background.is_none());
        facts.add(missed_end(missed, text, &mut unread, context));
    }
    let (body, notes) = body(report, context);
    circumstances(&mut facts, report, notes, context);
    unread + &body + &facts.line()
}

/// The sessions that still live although their client has gone.
fn sessions_left_behind(facts: &mut Facts, sessions: &[SessionView]) {
    for session in sessions.iter().take(LEFT_BEHIND_NAMED) {
        let runs = session.current_command_text.as_ref().map(|text| format!("still runs {}", quoted(text)));
        let runs = runs.unwrap_or_else(|| "is idle".to_owned());
        facts.add(format!("earlier session {} {runs} in {}", session.id, path(&session.cwd)));
    }
    if let Some(more @ 1..) = sessions.len().checked_sub(LEFT_BEHIND_NAMED) {
        facts.add(format!("{more} more from earlier clients"));
    }
}

/// How a command ended that is not the subject of this answer. Its unread text is added to the lines at the beginning of
/// the answer, or the call that reads it is named.
fn missed_end(missed: &MissedEnd, text: Option<&TextView>, lines: &mut String, context: &AnswerContext<'_>) -> String {
    let MissedEnd { session, command, read_to, .. } = missed;
    let mut end = Facts::default();
    ended(&mut end, command, &AnswerContext { names_command: false, ..context.clone() });
    limits_hit(&mut end, command, session);
    let to = command.end_offset.unwrap_or(command.start_offset);
    let from = command.start_offset.max(*read_to);
    let id = command.id;
    if let Some(text) = text {
        let first = lines.matches('\n').count() + 1;
        let (mut text, mut notes) = rendered(text, session, Some(id), context);
        end_output(&mut text, true, &mut notes);
        lines.push_str(&text);
        match lines.matches('\n').count() {
            last if last > first => end.add(format!("its output is lines {first}–{last}")),
            last if last == first => end.add(format!("its output is line {first}")),
            _ => {}
        }
        notes.into_iter().for_each(|note| end.add(note));
    } else if from < to {
        let how = way_to((from, to), Some(id), session, context);
        end.add(format!("{} not read: {how}", counted(to - from, "byte", "bytes")));
    }
    format!("command {id} {} has ended: {}", quoted(&command.command), end.within())
}

/// How to read this range.
fn way_to(
    (from, to): (u64, u64),
    command: Option<CommandId>,
    session: &SessionView,
    context: &AnswerContext<'_>,
) -> String {
    if !context.has_read_tool {
        return in_log_file((from, to), session);
    }
    // Ids have no character that JSON would escape.
    let of_command = command.map(|id| format!("\"command_id\":\"{id}\",")).unwrap_or_default();
    format!("get_terminal_output {{\"session_id\":\"{}\",{of_command}\"since\":\"o:{from}\"}}", session.id)
}

/// This range in the session's log file. The offset in the journal is the offset in that file.
fn in_log_file((from, to): (u64, u64), session: &SessionView) -> String {
    let file = shell_words(&session.log_file);
    let advice = match session.confinement {
        None => "",
        Some(_) => ", which a confined session cannot read: send long output to a file of your own",
    };
    format!("bytes {from}–{to} of {file}{advice}")
}

/// Text of the journal from a position on, with the position to continue at.
pub(super) fn output(
    session: &SessionView,
    view: &OutputView,
    command: Option<CommandId>,
    over: &Over,
    context: &AnswerContext<'_>,
) -> String {
    let (body, notes) = rendered(&view.text, session, command, context);
    paged(session, view, body, over, notes, context)
}

/// The result of a wait before a read.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Over {
    /// Why the wait ended, if the state does not show it.
    pub(in crate::mcp) why: Option<String>,
    /// A task of the caller reports the end of the running command.
    pub(in crate::mcp) will_be_told: bool,
    /// The command that ran when the wait began, if it has ended.
    pub(in crate::mcp) ended: Option<CommandView>,
    /// The newest ended command, if none runs.
    pub(in crate::mcp) last: Option<CommandView>,
}

/// Every byte of the journal from a position on, as characters.
pub(super) fn raw(
    session: &SessionView,
    view: &OutputView,
    shown: String,
    over: &Over,
    context: &AnswerContext<'_>,
) -> String {
    paged(session, view, shown, over, Vec::new(), context)
}

fn paged(
    session: &SessionView,
    view: &OutputView,
    mut body: String,
    over: &Over,
    notes: Vec<String>,
    context: &AnswerContext<'_>,
) -> String {
    let mut facts = Facts::default();
    state_of(&mut facts, session, over, context);
    if let Some((from, to)) = view.gap {
        facts.add(format!("bytes {from}–{to} are no longer kept"));
    }
    notes.into_iter().for_each(|note| facts.add(note));
    metadata(&mut facts, session, context);
    let left = view.end.saturating_sub(view.next);
    if left > 0 {
        facts.add(counted(left, "more byte", "more bytes"));
    }
    facts.add(format!("next o:{}", view.next));
    end_line(&mut body);
    body + &facts.line()
}

/// The screen, with the cursor's position.
pub(super) fn screen(session: &SessionView, screen: &ScreenView, over: &Over, context: &AnswerContext<'_>) -> String {
    let mut facts = Facts::default();
    state_of(&mut facts, session, over, context);
    let (rows, notes) = rows(screen);
    cursor(&mut facts, screen, false);
    notes.into_iter().for_each(|note| facts.add(note));
    metadata(&mut facts, session, context);
    facts.add(format!("next o:{}", screen.at));
    rows + &facts.line()
}

/// The state of the session, after the end of the awaited command.
fn state_of(facts: &mut Facts, session: &SessionView, over: &Over, context: &AnswerContext<'_>) {
    if let Some(command) = &over.ended {
        ended(facts, command, context);
        limits_hit(facts, command, session);
        facts.add(format!("command {}", command.id));
    }
    facts.add(session_state(session, context));
    if let Some(command) = &over.last {
        let mut end = Facts::default();
        ended(&mut end, command, context);
        limits_hit(&mut end, command, session);
        facts.add(format!("last {}", end.within()));
        facts.add(format!("command {}", command.id));
    }
    over.why.iter().for_each(|why| facts.add(why.clone()));
    if over.will_be_told {
        facts.add(WILL_BE_TOLD);
    }
}

/// The first fact: the state of the command, or of the shell if there is none.
fn state(facts: &mut Facts, report: &Report, context: &AnswerContext<'_>) {
    if report.session.status == SessionStatus::Terminated {
        if let Some(command) = &report.command
            && command.status == CommandStatus::Completed
        {
            ended(facts, command, context);
        }
        facts.add(session_end(&report.session));
        return;
    }
    match &report.command {
        Some(command) if command.status == CommandStatus::Running => running(facts, report, command, context),
        Some(command) => {
            ended(facts, command, context);
            limits_hit(facts, command, &report.session);
            if report.session.foreground == Foreground::Stopped {
                facts.add("stopped; fg resumes it");
            }
        }
        None => facts.add(session_state(&report.session, context)),
    }
    reason(report, context.quiet).into_iter().for_each(|why| facts.add(why));
    let goes_on = report.command.as_ref().is_some_and(|command| command.status == CommandStatus::Running);
    match report.time_limit {
        None => {}
        Some(Ending::Interrupt) if goes_on => facts.add("C-c was sent at its timeout, and it continues"),
        Some(Ending::Interrupt) => facts.add("interrupted at its timeout"),
        Some(Ending::Kill) if goes_on => facts.add("C-c, TERM and KILL were sent at its timeout, and it continues"),
        Some(Ending::Kill) => facts.add("killed at its timeout"),
    }
}

/// Why a wait ended, if the state does not show it, or how the last line that was typed has ended.
pub(super) fn reason(report: &Report, quiet: Option<Duration>) -> Option<String> {
    match report.ended_by {
        EndedBy::Matched => report.matched.as_deref().map(matched),
        EndedBy::Listens => report.matched.as_deref().map(|ports| format!("listens on {ports}")),
        // An unchanged screen shows this by itself, and long before the quiet time.
        EndedBy::Quiet if report.session.foreground == Foreground::Fullscreen => None,
        EndedBy::Quiet => {
            Some(quiet.map_or_else(|| "quiet".to_owned(), |q| format!("no new output for {}", seconds(q))))
        }
        EndedBy::TimedOut => Some("timeout".to_owned()),
        EndedBy::Ended => report.line_exit.map(|code| format!("exit {code} of the last typed line")),
        EndedBy::Accepted | EndedBy::InputWanted | EndedBy::Stopped | EndedBy::Exited => None,
    }
}

/// The condition that was met.
pub(super) fn matched(what: &str) -> String {
    format!("matched {}", quoted(what))
}

fn running(facts: &mut Facts, report: &Report, command: &CommandView, context: &AnswerContext<'_>) {
    let session = &report.session;
    facts.add("still running");
    let is_known = context.shown.is_some_and(|shown| shown.running == Some(command.id));
    let asks = report.ended_by == EndedBy::InputWanted
        || matches!(session.foreground, Foreground::InputWanted | Foreground::PasswordWanted | Foreground::Fullscreen);
    let elapsed = context.now.duration_since(command.started_at).unwrap_or_default();
    // A line of a dialogue needs neither the time nor the names that an earlier answer has told.
    if elapsed >= Duration::from_secs(1) && !(is_known && asks) {
        facts.add(seconds(elapsed));
    }
    // The full metadata include the session.
    if context.shown.is_some() && !is_known {
        facts.add(format!("session {}", session.id));
    }
    if !is_known {
        facts.add(format!("command {}", command.id));
    }
    if report.is_given_up {
        facts.add("its call was cancelled: C-c ends it");
    }
    match (session.foreground, report.ended_by) {
        (Foreground::PasswordWanted, _) => facts.add(password_wanted(session, context)),
        (Foreground::Fullscreen, EndedBy::InputWanted) => facts.add("full-screen · wants input"),
        (Foreground::Fullscreen, _) => facts.add("full-screen"),
        (Foreground::InputWanted, _) | (_, EndedBy::InputWanted) => facts.add("wants input"),
        // A stopped job's command has ended; this one has not.
        (Foreground::Stopped, _) => facts.add("stopped; kill -CONT resumes it"),
        (Foreground::Idle | Foreground::Running, _) => {}
    }
}

/// A person types it, so the fact says where.
fn password_wanted(session: &SessionView, context: &AnswerContext<'_>) -> String {
    let page = match &context.password {
        PasswordPlace::Told => return "wants a password".to_owned(),
        PasswordPlace::Page(address) => format!("at {address} or "),
        PasswordPlace::CommandLine => String::new(),
    };
    let id = &session.id;
    format!("wants a password: a person types it {page}with ptyd send --secret {id}; do not ask for it here")
}

fn ended(facts: &mut Facts, command: &CommandView, context: &AnswerContext<'_>) {
    match (command.status, command.exit_code) {
        (CommandStatus::Terminated, None) => facts.add("terminated with its session"),
        (CommandStatus::Failed, _) => {
            facts.add(format!("failed: {}", plain(command.error.as_deref().unwrap_or("no reason is known"))))
        }
        (_, Some(code)) => facts.add(format!("exit {code}")),
        (CommandStatus::Running | CommandStatus::Completed, None) => match command.error.as_deref() {
            Some(why) if why.starts_with(INNER_SHELL_ENDED) => facts.add(plain(why)),
            None | Some(WITHOUT_HOOKS) => facts.add("ended, exit code unknown"),
            Some(why) => facts.add(format!("ended, exit code unknown: {}", plain(why))),
        },
    }
    if let Some(signo) = command.signal {
        facts.add(signal_name(signo));
    }
    if command.exit_code == Some(0) && command.pipestatus.iter().any(|code| *code != 0) {
        let parts: Vec<String> = command.pipestatus.iter().map(i32::to_string).collect();
        facts.add(format!("pipestatus {}", parts.join("|")));
    }
    // timeout(1) signals its process group, which is the whole pipeline where a shell with job control made it the leader.
    let others_got_term =
        |codes: &[i32]| codes.len() > 1 && codes[0] == 124 && codes[1..].iter().all(|code| *code == 143);
    if others_got_term(&command.pipestatus) && command.command.contains("timeout") {
        facts.add("timeout ended the whole pipeline: run it as bash -c '…' to keep the output");
    }
    let took = command.lasted.unwrap_or_default();
    if took >= Duration::from_secs(1) {
        facts.add(seconds(took));
    }
    if context.names_command {
        facts.add(format!("command {}", command.id));
    }
}

/// Limits that the command hit, which may explain its end.
fn limits_hit(facts: &mut Facts, command: &CommandView, session: &SessionView) {
    for hit in &command.limits_hit {
        let value = session.limits.iter().find(|kept| kept.limit == *hit).map_or(0.0, |kept| kept.value);
        let how = if *hit == Limit::OutputMbPerSecond { "was slowed down by" } else { "hit" };
        facts.add(format!("{how} its limit {} {value}", hit.name()));
    }
}

fn last_result(facts: &mut Facts, report: &Report) {
    if let Some(code) = report.command.as_ref().and_then(|c| c.exit_code) {
        facts.add(format!("last exit {code}"));
    }
}

/// Facts that are only mentioned when they are unusual or new.
fn circumstances(facts: &mut Facts, report: &Report, notes: Vec<String>, context: &AnswerContext<'_>) {
    if let Some(screen) = &report.screen {
        cursor(facts, screen, only_changed(screen));
        let is_over_first = matches!(report.ended_by, EndedBy::Quiet | EndedBy::TimedOut);
        if is_over_first && report.accepted_bytes.is_some() && screen.changed.as_deref() == Some(&[]) {
            // The program may still be at work on what was typed.
            facts.replace("no row changed", "no reaction yet");
        }
    }
    let boundary = report.command.as_ref().map_or(report.session.boundary, |c| c.boundary);
    match boundary {
        Boundary::Attested => {}
        Boundary::Nonce => facts.add("boundary nonce"),
        Boundary::Heuristic => facts.add("boundary heuristic"),
    }
    notes.into_iter().for_each(|note| facts.add(note));
    if will_be_told(report) {
        facts.add(WILL_BE_TOLD);
    }
    if let Some(trouble) = &report.session.trouble {
        facts.add(format!("trouble: {}", plain(trouble)));
    }
    metadata(facts, &report.session, context);
}

/// Whether nothing runs in the session.
pub(super) fn is_idle(session: &SessionView) -> bool {
    let is_free = session.status == SessionStatus::Running && session.current_command.is_none();
    is_free && matches!(session.foreground, Foreground::Idle | Foreground::Stopped)
}

/// The state of a session without regard to a command.
fn session_state(session: &SessionView, context: &AnswerContext<'_>) -> String {
    let password;
    let running = match (session.status, session.foreground) {
        (SessionStatus::Terminated, _) => return session_end(session),
        (SessionStatus::Creating, _) => return "the shell is starting".to_owned(),
        (SessionStatus::Running, Foreground::Idle) => return "idle".to_owned(),
        (SessionStatus::Running, Foreground::Running) => "still running",
        (SessionStatus::Running, Foreground::InputWanted) => "still running · wants input",
        (SessionStatus::Running, Foreground::PasswordWanted) => {
            password = format!("still running · {}", password_wanted(session, context));
            &password
        }
        (SessionStatus::Running, Foreground::Fullscreen) => "still running · full-screen",
        (SessionStatus::Running, Foreground::Stopped) if session.current_command.is_some() => {
            "still running · stopped; kill -CONT resumes it"
        }
        (SessionStatus::Running, Foreground::Stopped) => "idle · a job is stopped; fg resumes it",
    };
    session.current_command.map_or_else(|| running.to_owned(), |id| format!("{running} · command {id}"))
}

fn session_end(session: &SessionView) -> String {
    let mut text = "session ended".to_owned();
    if let Some(exit) = &session.exit {
        if let Some(signo) = exit.signal {
            text += &format!(" · {}", signal_name(signo));
        } else if let Some(code) = exit.code {
            text += &format!(" · exit {code}");
        }
        if !exit.reason.is_empty() {
            text += &format!(" · {}", plain(&exit.reason));
        }
    }
    text
}

/// Output and screen, with notes about them.
fn body(report: &Report, context: &AnswerContext<'_>) -> (String, Vec<String>) {
    let command = report.command.as_ref().map(|c| c.id);
    let (mut body, mut notes) = rendered(&report.output, &report.session, command, context);
    let has_ended = report.command.as_ref().is_some_and(|command| command.status != CommandStatus::Running);
    end_output(&mut body, has_ended, &mut notes);
    if let Some(background) = &report.background {
        let (mut before, more) = rendered(background, &report.session, None, context);
        end_line(&mut before);
        let lines = before.matches('\n').count() as u64;
        notes.push(format!("the first {} came from the background before it", counted(lines, "line", "lines")));
        notes.extend(more);
        body.insert_str(0, &before);
    }
    if let Some(screen) = &report.screen {
        let (rows, more) = if only_changed(screen) { changed_rows(screen) } else { rows(screen) };
        body += &rows;
        notes.extend(more);
    }
    (body, notes)
}

/// Head, the line that says exactly what is missing and how to read it, and tail; and notes on hidden text.
pub(super) fn rendered(
    text: &TextView,
    session: &SessionView,
    command: Option<CommandId>,
    context: &AnswerContext<'_>,
) -> (String, Vec<String>) {
    // A program may print text that looks like such a byte; without any real one there is nothing to summarise.
    let is_binary = |part: &str| text.escaped > 0 && condense::is_binary(part);
    let is_all = |part: &str| part.trim().is_empty() || is_binary(part) && condense::around_binary(part) == ("", "");
    if is_binary(&text.head) && is_all(&text.head) && is_all(&text.tail) {
        return (binary(&text.head, (text.from, text.to), true, session, context), unseen(text.unseen, 0));
    }
    let mut written_out = 0;
    let mut part = |part: &str, range: (u64, u64)| {
        let mut shown = |text: &str| {
            let (shown, count) = condense::economical(text);
            written_out += count;
            shown
        };
        if !is_binary(part) {
            return shown(part);
        }
        let (before, after) = condense::around_binary(part);
        let line = binary(part.get(before.len()..).unwrap_or_default(), range, false, session, context);
        shown(before) + &line + &shown(after)
    };
    let head_to = text.omitted.as_ref().map_or(text.to, |omitted| omitted.from);
    let mut body = part(&text.head, (text.from, head_to));
    if let Some(omitted) = &text.omitted {
        end_line(&mut body);
        body += &omission(omitted, session, command, context);
        body += &part(&text.tail, (omitted.to, text.to));
    }
    let mut notes = unseen(text.unseen, written_out);
    if text.escaped > 0 && !is_binary(&text.head) && !is_binary(&text.tail) {
        notes.insert(0, escaped(text.escaped));
    }
    if text.crlf_lines > 0 {
        notes.push(counted(text.crlf_lines, "line ends in CR LF", "lines end in CR LF"));
    }
    (body, notes)
}

/// The line that replaces binary output in this range of the journal.
fn binary(
    part: &str,
    (from, to): (u64, u64),
    is_all: bool,
    session: &SessionView,
    context: &AnswerContext<'_>,
) -> String {
    /// Enough to recognise a format.
    const BEGINNING_CHARS: usize = 40;
    let begins: String = part.chars().take(BEGINNING_CHARS).collect();
    let how = if context.has_read_tool {
        format!("get_terminal_output {{\"session_id\":\"{}\",\"since\":\"o:{from}\",\"view\":\"raw\"}}", session.id)
    } else {
        in_log_file((from, to), session)
    };
    let bytes = grouped(to.saturating_sub(from));
    let what =
        if is_all { format!("{bytes} bytes of binary output") } else { format!("binary output among {bytes} bytes") };
    format!("[… {what}, beginning {}; {how}]\n", quoted(&begins))
}

/// Notes on text that a person would not have seen, and on characters that were written out.
pub(super) fn unseen(unseen: HiddenText, written_out: usize) -> Vec<String> {
    let counts = [
        (written_out as u64, "invisible character shown as \\u{…}", "invisible characters shown as \\u{…}"),
        (unseen.concealed, "character was concealed from people", "characters were concealed from people"),
        (unseen.links, "link target not shown", "link targets not shown"),
        (unseen.clipboard, "clipboard write not shown", "clipboard writes not shown"),
        (unseen.unfinished, "byte of an unfinished sequence not shown", "bytes of unfinished sequences not shown"),
    ];
    counts.into_iter().filter(|(count, ..)| *count > 0).map(|(count, one, many)| counted(count, one, many)).collect()
}

fn omission(
    omitted: &Omitted,
    session: &SessionView,
    command: Option<CommandId>,
    context: &AnswerContext<'_>,
) -> String {
    let (bytes, kept) = (grouped(omitted.bytes()), omitted.kept());
    if kept.is_empty() {
        return format!("[… {bytes} bytes omitted: no longer kept]\n");
    }
    let how = way_to((kept.start, kept.end), command, session, context);
    if omitted.freed > 0 {
        return format!("[… {bytes} bytes omitted: the first {} are no longer kept; {how}]\n", grouped(omitted.freed));
    }
    format!("[… {bytes} bytes omitted: lines {}–{}; {how}]\n", omitted.first_line, omitted.last_line)
}

/// Whether an answer shows only the rows that changed: fewer than half of those that are not empty.
fn only_changed(screen: &ScreenView) -> bool {
    screen.changed.is_some() && new_rows(screen).count() * 2 < used_rows(screen)
}

/// The rows whose text the caller has not been shown: those that changed and did not only move.
fn new_rows(screen: &ScreenView) -> impl Iterator<Item = u16> {
    let is_moved = |row: &u16| screen.moved.as_ref().is_some_and(|moved| moved.rows.contains(&usize::from(*row)));
    screen.changed.iter().flatten().copied().filter(move |row| !is_moved(row))
}

fn cursor(facts: &mut Facts, screen: &ScreenView, only_changed: bool) {
    if !only_changed {
        facts.add(format!("screen {}×{}", screen.cols, screen.rows.len()));
    }
    let hidden = if screen.cursor_visible { "" } else { " hidden" };
    facts.add(format!("cursor{hidden} row {} column {}", screen.cursor_row + 1, screen.cursor_col + 1));
    if !screen.title.is_empty() && (screen.is_title_new || !only_changed) {
        facts.add(format!("title {}", quoted(&screen.title)));
    }
    let changed = screen.changed.as_deref();
    let is_new = |row: &u16| !only_changed || changed.is_none_or(|changed| changed.contains(row));
    let inverse: Vec<_> = screen.inverse.iter().filter(|span| is_new(&span.row)).collect();
    for span in inverse.iter().take(INVERSE_MAX) {
        facts.add(format!("inverse row {} {}", span.row + 1, quoted(screen.text_of(span))));
    }
    if inverse.len() > INVERSE_MAX {
        facts.add(format!("{} more inverse", inverse.len() - INVERSE_MAX));
    }
    match changed {
        None => {}
        Some([]) => facts.add("no row changed"),
        Some(_) if only_changed => {
            facts.add("only changed rows");
            if let Some(MovedRows { rows, from }) = &screen.moved {
                let was = |row: usize| row + from + 1 - rows.start;
                let (first, last) = (was(rows.start), was(rows.end - 1));
                facts.add(format!("rows {}–{} stood on {first}–{last}", rows.start + 1, rows.end));
            }
        }
        Some(rows) => facts.add(format!("changed rows {}", ranges(rows))),
    }
}

/// Rows counted from 1, with ranges.
fn ranges(rows: &[u16]) -> String {
    let range = |run: &[u16]| match run {
        [one] => (one + 1).to_string(),
        run => format!("{}–{}", run[0] + 1, run[run.len() - 1] + 1),
    };
    rows.chunk_by(|a, b| a + 1 == *b).map(range).collect::<Vec<_>>().join(", ")
}

fn used_rows(screen: &ScreenView) -> usize {
    screen.rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1)
}

/// The rows down to the last one that is not empty.
fn rows(screen: &ScreenView) -> (String, Vec<String>) {
    let text: String = screen.rows[..used_rows(screen)].iter().flat_map(|row| [&**row, "\n"]).collect();
    let (shown, written_out) = condense::economical(&text);
    (shown, unseen(HiddenText::default(), written_out))
}

/// The rows that changed, each with its number.
fn changed_rows(screen: &ScreenView) -> (String, Vec<String>) {
    let mut written_out = 0;
    let mut shown = String::new();
    for row in new_rows(screen) {
        let text = screen.rows.get(usize::from(row)).map_or("", |row| row);
        shown += format!("{}: {}", row + 1, visible(text, &mut written_out)).trim_end();
        shown.push('\n');
    }
    (shown, unseen(HiddenText::default(), written_out))
}

fn escaped(bytes: u64) -> String {
    format!("{} not text, shown as \\xNN", counted(bytes, "byte is", "bytes are"))
}

/// The status line begins on a line of its own.
fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Ends a command's output with a newline, and notes it if the program did not print one.
fn end_output(text: &mut String, has_ended: bool, notes: &mut Vec<String>) {
    if has_ended && !text.is_empty() && !text.ends_with('\n') {
        notes.push("no newline at the end".to_owned());
    }
    end_line(text);
}
