//! A reading of one session: output from a position on, as text, as a screen, or searched.

use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::{budget, pattern};
use super::structured::OutputAnswer;
use super::tool::{Answer, ToolCall, ToolError, mismatch};
use crate::mcp::text::Over;
use crate::mcp::{search_results, text};
use ptyd_core::action::{
    Action, AwaitOutput, AwaitedOutput, Budget, CommandView, EndedBy, Lines, Outcome, OutputView, Pattern, ReadOutput,
    Search, SessionView, Since, View, Wait,
};
use ptyd_core::ids::{CommandId, SessionId};
use ptyd_core::limits::{READ_BYTES_MAX, RENDER_BYTES_MAX, SEARCH_MATCHES_MAX};

/// Matches in one answer by default.
const MATCHES_DEFAULT: usize = 100;

/// The forms of output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    #[default]
    Text,
    Screen,
    Raw,
}

/// The arguments of a call about what it reads.
#[derive(Debug)]
pub(super) struct ReadingRequest<'a> {
    pub since: &'a str,
    pub command_id: &'a str,
    pub search: &'a str,
    pub view: Form,
    pub max_lines: u32,
}

/// Output or the screen, as a call wants it read.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) since: Option<Since>,
    pub(super) command: Option<CommandId>,
    search: Option<Pattern>,
    form: Form,
    max_lines: u32,
    pub(super) budget: Budget,
}

/// The result of the wait before a reading.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// The beginning of the awaited output, if the wait has moved the read cursor.
    from: Option<u64>,
    ended_by: Option<EndedBy>,
    line_exit: Option<i32>,
    over: Over,
}

impl From<AwaitedOutput> for Awaited {
    fn from(awaited: AwaitedOutput) -> Self {
        let AwaitedOutput { from, matched, report, ended } = awaited;
        let ended_by = match &matched {
            Some(_) => Some(EndedBy::Matched),
            None => report.as_deref().map(|report| report.ended_by),
        };
        let will_be_told = report.as_deref().is_some_and(text::will_be_told);
        let line_exit = report.as_deref().and_then(|report| report.line_exit);
        let why = match matched {
            Some(found) => Some(text::matched(&found)),
            None => report.and_then(|report| text::reason(&report, None)),
        };
        Self { from, ended_by, line_exit, over: Over { why, will_be_told, ended, last: None } }
    }
}

impl Reading {
    /// Checks the arguments of the call.
    pub(super) async fn of(call: &ToolCall<'_>, request: ReadingRequest<'_>) -> Result<Self, ToolError> {
        let command = match request.command_id {
            "" => None,
            text => Some(
                CommandId::parse(text)
                    .ok_or_else(|| ToolError::Said(format!("command_id: {text:?} is not like \"c7\"")))?,
            ),
        };
        let since = since(request.since)?;
        let search = pattern(call, "search", request.search).await?;
        if request.view != Form::Text && search.is_some() {
            return Err(ToolError::Said("search: only the text view can be searched; omit view".to_owned()));
        }
        if request.view == Form::Raw && request.max_lines > 0 {
            return Err(ToolError::Said(
                "max_lines: the raw view has bytes and no lines; omit one of the two".to_owned(),
            ));
        }
        let ReadingRequest { view: form, max_lines, .. } = request;
        Ok(Self { since, command, search, form, max_lines, budget: budget(None) })
    }

    /// Whether it is the text since the caller's last read, or the newest.
    pub(super) fn is_plain(&self) -> bool {
        let is_newest = matches!(self.since, None | Some(Since::Last)) && self.command.is_none();
        is_newest && self.search.is_none() && self.max_lines == 0 && self.form == Form::Text
    }

    /// The wait before it.
    pub(super) fn after(&self, session: SessionId, wait: Wait) -> AwaitOutput {
        let (since, command) = (self.since.clone(), self.command);
        AwaitOutput { session, wait, since, command, on_screen: self.form == Form::Screen }
    }

    /// Reads in this session.
    pub(super) async fn answer(
        self,
        call: &ToolCall<'_>,
        id: &SessionId,
        awaited: Awaited,
    ) -> Result<Answer, ToolError> {
        let Self { since, command, search, form, max_lines, budget } = self;
        let Awaited { from: awaited_from, ended_by, line_exit, mut over } = awaited;
        let view = if form == Form::Raw { View::Raw } else { View::Text };
        // From a position on the lines are paged; without one, what is newest counts.
        let some = if since.is_some() { Lines::First } else { Lines::Newest };
        let lines = Some(max_lines as usize).filter(|n| *n > 0).map(some);
        if let (Some(command), None, View::Text, None) = (command, &since, view, &search) {
            return whole_command(call, id, command, max_lines, ended_by).await;
        }
        let shown = show(call, id).await?;
        if command.is_none() && over.ended.is_none() && text::is_idle(&shown) {
            over.last = last_ended(call, &shown).await;
        }
        // Looked at before the output is read, so that an ended command's output is all there.
        let about = match command {
            Some(id) if call.caller.structured => command_now(call, &shown.id, id).await?,
            Some(_) => None,
            None => over.ended.clone().or_else(|| over.last.clone()),
        };
        let answer = |text: String, to: u64, printed: &dyn Fn(OutputAnswer) -> OutputAnswer| {
            let read = |text: &str| {
                printed(OutputAnswer::read(&shown, text, to).about(about.as_ref()).after(ended_by).line(line_exit))
            };
            Ok(call.answer(text, read))
        };
        if form == Form::Screen {
            let (text, at) = screen(call, &shown, &over).await?;
            return answer(text, at, &|answer| answer);
        }
        if let Some(pattern) = search {
            // From a position on the search goes forward in pages; without one, what is newest counts.
            let newest = since.is_none();
            let since = match (since, awaited_from) {
                (Some(Since::Last), Some(from)) => Since::Offset(from),
                (Some(since), _) => since,
                (None, _) => Since::First,
            };
            let limit = if max_lines == 0 { MATCHES_DEFAULT } else { max_lines as usize };
            let limit = limit.min(SEARCH_MATCHES_MAX);
            let request = Search { session: id.clone(), since, command, kind: None, pattern, limit, newest };
            return match call.act(Action::Search(request)).await? {
                Outcome::Found(view) => {
                    let before = call.note(&shown);
                    let context = call.context(&shown, before.as_ref(), None).await;
                    let (text, next) = search_results::shown(&shown, &view, (newest, command), budget, &context);
                    answer(text, next, &|answer| answer)
                }
                other => Err(mismatch(other)),
            };
        }
        let range = match (since, awaited_from) {
            // The wait for the pattern has moved `last` already, so the answer begins where that wait began.
            (Some(Since::Last), Some(from)) if max_lines == 0 => {
                Range { since: Since::Offset(from), limit: READ_BYTES_MAX, end: None }
            }
            (Some(Since::Last), Some(from)) => Range { since: Since::Offset(from), limit: budget.chars, end: None },
            (since, _) => range(call, &shown, since, command, view, max_lines, budget).await?,
        };
        let mut output = output(call, id, range.since, view, range.limit, lines, budget).await?;
        // Output after the command does not belong to it.
        output.end = range.end.map_or(output.end, |end| end.min(output.end));
        let before = call.note(&shown);
        let context = call.context(&shown, before.as_ref(), None).await;
        if view == View::Raw {
            let bytes = visible(&output.bytes);
            let text = text::raw(&shown, &output, bytes.clone(), &over, &context);
            return answer(text, output.next, &|answer| answer.visible(bytes.clone()));
        }
        let text = text::output(&shown, &output, command, &over, &context);
        answer(text, output.next, &|answer| answer.printed(&output.text))
    }
}

/// The range to read.
struct Range {
    since: Since,
    limit: usize,
    /// The end of the requested output, if it is known.
    end: Option<u64>,
}

/// The range of an answer: pages in sequence from a position; without one, the newest part.
async fn range(
    call: &ToolCall<'_>,
    shown: &SessionView,
    since: Option<Since>,
    command: Option<CommandId>,
    view: View,
    max_lines: u32,
    budget: Budget,
) -> Result<Range, ToolError> {
    // A page whose text always fits the budget, so that reading on from `next` reads everything exactly once.
    let page = if view == View::Raw { budget.chars / 4 } else { budget.chars };
    let bounds = match command {
        None => None,
        Some(id) => Some(command_bounds(call, &shown.id, id, shown.end_offset).await?),
    };
    Ok(match (since, bounds) {
        (since, Some((start, end))) => {
            let from = if let Some(Since::Offset(from)) = since { from.clamp(start, end) } else { start };
            let left = usize::try_from(end - from).unwrap_or(usize::MAX);
            Range { since: Since::Offset(from), limit: page.min(left), end: Some(end) }
        }
        (Some(since @ (Since::Offset(_) | Since::First)), None) => Range { since, limit: page, end: None },
        (Some(since), None) => {
            let is_page = view == View::Raw || max_lines > 0;
            Range { since, limit: if is_page { page } else { READ_BYTES_MAX }, end: None }
        }
        (None, None) => {
            let window = if view == View::Raw { page as u64 } else { RENDER_BYTES_MAX };
            let from = shown.first_offset.max(shown.end_offset.saturating_sub(window));
            Range { since: Since::Offset(from), limit: READ_BYTES_MAX, end: None }
        }
    })
}

async fn command_bounds(
    call: &ToolCall<'_>,
    id: &SessionId,
    command: CommandId,
    now: u64,
) -> Result<(u64, u64), ToolError> {
    let view = command_now(call, id, command).await?;
    let CommandView { start_offset, end_offset, .. } =
        view.ok_or_else(|| ToolError::Said(format!("no command {command}")))?;
    Ok((start_offset, end_offset.unwrap_or(now).max(start_offset)))
}

async fn command_now(
    call: &ToolCall<'_>,
    id: &SessionId,
    command: CommandId,
) -> Result<Option<CommandView>, ToolError> {
    match call.act(Action::Command { session: id.clone(), command, budget: Budget::NONE }).await? {
        Outcome::Report(report) => Ok(report.command),
        other => Err(mismatch(other)),
    }
}

/// The command that ended last, if it is still known.
async fn last_ended(call: &ToolCall<'_>, shown: &SessionView) -> Option<CommandView> {
    command_now(call, &shown.id, shown.last_ended?).await.ok()?
}

/// One whole command, with its end.
async fn whole_command(
    call: &ToolCall<'_>,
    id: &SessionId,
    command: CommandId,
    max_lines: u32,
    ended_by: Option<EndedBy>,
) -> Result<Answer, ToolError> {
    match call.act(Action::Command { session: id.clone(), command, budget: budget(None) }).await? {
        Outcome::Report(mut report) => {
            if let (true, Some(of)) = (max_lines > 0, &report.command) {
                let (from, to) = (of.start_offset, of.end_offset.unwrap_or(report.output.to));
                let limit = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
                let lines = Some(Lines::Newest(max_lines as usize));
                report.output =
                    output(call, id, Since::Offset(from), View::Text, limit, lines, budget(None)).await?.text;
            }
            let before = call.note_report(&mut report);
            let mut context = call.context(&report.session, before.as_ref(), None).await;
            context.names_command = true;
            let next = report.output.to;
            let text = text::report(&report, &context);
            let text = format!("{} · next o:{next}]", text.strip_suffix(']').unwrap_or(&text));
            Ok(call.answer(text, |text| OutputAnswer::of(&report, text).after(ended_by)))
        }
        other => Err(mismatch(other)),
    }
}

/// The text of the screen, and the position up to which output is part of it.
async fn screen(call: &ToolCall<'_>, shown: &SessionView, over: &Over) -> Result<(String, u64), ToolError> {
    match call.act(Action::Screen(shown.id.clone())).await? {
        Outcome::Screen(mut screen) => {
            let before = call.note(shown);
            call.caller.memory.note_screen(&shown.id, &mut screen);
            let context = call.context(shown, before.as_ref(), None).await;
            Ok((text::screen(shown, &screen, over, &context), screen.at))
        }
        other => Err(mismatch(other)),
    }
}

pub(super) async fn show(call: &ToolCall<'_>, id: &SessionId) -> Result<SessionView, ToolError> {
    match call.act(Action::Show(id.clone())).await? {
        Outcome::Session(session) => Ok(*session),
        other => Err(mismatch(other)),
    }
}

/// Reads output once.
async fn output(
    call: &ToolCall<'_>,
    id: &SessionId,
    since: Since,
    view: View,
    limit: usize,
    lines: Option<Lines>,
    budget: Budget,
) -> Result<OutputView, ToolError> {
    let read = ReadOutput {
        session: id.clone(),
        since,
        kind: None,
        view,
        limit,
        lines,
        wait: Duration::ZERO,
        budget,
        moves_cursor: true,
    };
    match call.act(Action::Output(read)).await? {
        Outcome::Output(view) => Ok(view),
        other => Err(mismatch(other)),
    }
}

fn since(text: &str) -> Result<Option<Since>, ToolError> {
    match text {
        "" => Ok(None),
        "last" => Ok(Some(Since::Last)),
        "first" => Ok(Some(Since::First)),
        text => {
            let offset = text.strip_prefix("o:").and_then(|n| n.parse().ok()).map(Since::Offset);
            let time = || text.parse::<jiff::Timestamp>().ok().map(|t| Since::Time(SystemTime::from(t)));
            offset.or_else(time).map(Some).ok_or_else(|| {
                ToolError::Said(format!(
                    "since: {text:?} is none of \"last\", \"o:<offset>\", an RFC 3339 time such as 2026-01-31T12:00:00Z"
                ))
            })
        }
    }
}

/// Makes every byte visible: lines stay lines; other control characters and invalid UTF-8 are escaped.
fn visible(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push('\n'),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\x1b' => text.push_str("\\e"),
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => text.extend(c.to_string().bytes().map(|b| format!("\\x{b:02x}"))),
                c => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().map(|b| format!("\\x{b:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_bytes_are_all_visible_and_lines_stay_lines() {
        assert_eq!(visible(b"a\\b\r\n\x1b[1mh\xc3\xa9\xff\0\xc2\x85"), "a\\\\b\\r\n\\e[1mhé\\xff\\x00\\xc2\\x85");
    }

    #[test]
    fn positions_are_read_and_anything_else_is_an_error() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
        assert_eq!(since("1970-01-02T00:00:00Z"), Ok(Some(Since::Time(time))));
        assert_eq!(["", "last", "o:12"].map(since), [Ok(None), Ok(Some(Since::Last)), Ok(Some(Since::Offset(12)))]);
        assert!(["o:", "12", "o:-1", "yesterday"].map(since).iter().all(Result::is_err));
    }
}
