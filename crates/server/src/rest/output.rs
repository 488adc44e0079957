//! `…/output` and `…/screen`: reads what a session shows.

use std::time::{Duration, SystemTime};

use api::ErrorCode;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::extract::{self, Params, Reader, Session};
use super::output_sse;
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Budget, Lines, MaskedText, Outcome, OutputKind, ReadOutput, ScreenView, Since, View};
use ptyd_core::ids::{CommandId, SessionId};
use ptyd_core::limits;
use ptyd_core::principal::Principal;

/// The bytes of a read, unless it names them: that fits a terminal's scrollback and is quick to transfer.
const BYTES: usize = 1 << 20;
/// The longest silence of a stream.
const HEARTBEAT_MS: usize = limits::HEARTBEAT.as_millis() as usize;
/// Lines in one answer at most; more would not fit its characters.
const LINES_MAX: usize = limits::BUDGET_CHARS_MAX;

pub(super) async fn output(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
    Params(query): Params<api::OutputQuery>,
) -> Result<Response, ProblemResponse> {
    if query.kind.is_some() && query.command_id.is_some() {
        return Err(ProblemResponse::field("kind", "only one of kind and commandId can be given"));
    }
    let view = match query.view.unwrap_or_default() {
        api::OutputView::Text => View::Text,
        api::OutputView::Raw => View::Raw,
        api::OutputView::Stream => View::Stream,
        api::OutputView::Screen if query.kind.is_some() => {
            return Err(ProblemResponse::field("kind", "cannot be combined with the screen, which shows everything"));
        }
        api::OutputView::Screen => return Ok(screen_as_output(&rest, &principal, session).await?.into_response()),
    };
    match rest.act(&principal, Action::Output(to_read(session, query, view)?)).await? {
        Outcome::Output(mut view) => {
            let (room, bytes) = (view.room.take(), view.bytes.len() + view.text.head.len() + view.text.tail.len());
            let json = || serde_json::to_vec(&convert::output(view));
            let json = rest.dispatcher.lane(&principal).work(bytes, json).await;
            let json = json.map_err(|e| ProblemResponse::new(ErrorCode::Internal, e.to_string()))?;
            let body = Bytes::from_owner(Answer { json, _room: room });
            Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
        }
        other => Err(unexpected(&other)),
    }
}

/// `…/output/stream`: the same output as server-sent events.
pub(super) async fn stream(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
    Params(query): Params<api::OutputStreamQuery>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let view = match query.view.unwrap_or_default() {
        api::OutputStreamView::Text => View::Text,
        api::OutputStreamView::Raw => View::Raw,
        api::OutputStreamView::Stream => View::Stream,
    };
    let resumed = output_sse::resumed(&headers)?;
    let is_resumed = resumed.is_some();
    let most = limits::EVENT_BYTES_MAX;
    let limit = extract::count("maxBytes", query.max_bytes, most, 1, most)?;
    let silence = extract::count("waitMs", query.wait_ms, HEARTBEAT_MS, 1, HEARTBEAT_MS)?;
    let query = api::OutputQuery { since: query.since, kind: query.kind, ..api::OutputQuery::default() };
    let mut read = to_read(session, query, view)?;
    (read.limit, read.since) = (limit, resumed.unwrap_or(read.since));
    output_sse::follow(rest, principal, read, Duration::from_millis(silence as u64), is_resumed).await
}

/// An answer, and its room until its client has taken it.
struct Answer<R> {
    json: Vec<u8>,
    _room: R,
}

impl<R> AsRef<[u8]> for Answer<R> {
    fn as_ref(&self) -> &[u8] {
        &self.json
    }
}

fn to_read(session: SessionId, query: api::OutputQuery, view: View) -> Result<ReadOutput, ProblemResponse> {
    let since = match (query.since.as_deref(), query.command_id.as_deref()) {
        (None, None) => Since::First,
        (Some(since), None) => to_since(since)?,
        (None, Some(id)) => Since::Command(
            CommandId::parse(id).ok_or_else(|| ProblemResponse::field("commandId", "must be an id such as c7"))?,
        ),
        (Some(_), Some(_)) => {
            return Err(ProblemResponse::field("since", "only one of since and commandId can be given"));
        }
    };
    let is_paged = query.max_lines.is_some() && query.since.is_some();
    let lines = query.max_lines.map(|n| extract::count("maxLines", Some(n), 0, 1, LINES_MAX)).transpose()?;
    let budget = extract::budget(query.max_chars)?;
    // Pages leave nothing out of their middle.
    let bytes = if is_paged { budget.chars.clamp(1, BYTES) } else { BYTES };
    Ok(ReadOutput {
        session,
        since,
        kind: query.kind.map(to_kind),
        view,
        limit: extract::count("maxBytes", query.max_bytes, bytes, 1, limits::READ_BYTES_MAX)?,
        lines: lines.map(if is_paged { Lines::First } else { Lines::Newest }),
        wait: extract::millis("waitMs", query.wait_ms.unwrap_or(0))?,
        budget,
        moves_cursor: true,
    })
}

pub(super) fn to_kind(kind: api::OutputKind) -> OutputKind {
    match kind {
        api::OutputKind::Command => OutputKind::Command,
        api::OutputKind::Background => OutputKind::Background,
    }
}

/// Parses `o:4711`, `4711`, a time, or `last`.
pub(super) fn to_since(text: &str) -> Result<Since, ProblemResponse> {
    if text == "last" {
        return Ok(Since::Last);
    }
    let digits = text.strip_prefix("o:").unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return digits.parse().map(Since::Offset).map_err(|e| ProblemResponse::field("since", e));
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(stamp) => Ok(Since::Time(SystemTime::from(stamp))),
        Err(_) => Err(ProblemResponse::field("since", "must be o:<offset>, an RFC 3339 time, or last")),
    }
}

/// The screen in the form of output: it represents the output up to its offset.
async fn screen_as_output(
    rest: &Rest,
    principal: &Principal,
    session: SessionId,
) -> Result<Json<api::Output>, ProblemResponse> {
    let screen = take_screen(rest, principal, session.clone()).await?;
    let read = ReadOutput {
        session,
        since: Since::Offset(screen.at),
        kind: None,
        view: View::Raw,
        limit: 1,
        lines: None,
        wait: Duration::ZERO,
        budget: Budget::NONE,
        moves_cursor: true,
    };
    match rest.act(principal, Action::Output(read)).await? {
        Outcome::Output(tail) => Ok(Json(api::Output {
            view: api::OutputView::Screen,
            text: Some(text_of(&screen)),
            data_base64: None,
            from_offset: screen.at,
            next_offset: screen.at,
            first_offset: tail.first,
            end_offset: tail.end,
            gap: None,
            omitted: None,
            escaped: 0,
            crlf_lines: 0,
            unfinished: 0,
            is_final: tail.is_final && tail.end == screen.at,
        })),
        other => Err(unexpected(&other)),
    }
}

async fn take_screen(rest: &Rest, principal: &Principal, session: SessionId) -> Result<ScreenView, ProblemResponse> {
    match rest.act(principal, Action::Screen(session)).await? {
        Outcome::Screen(view) => Ok(view),
        other => Err(unexpected(&other)),
    }
}

/// The rows as text, down to the last one with text.
fn text_of(screen: &ScreenView) -> String {
    MaskedText::joined(&screen.rows).trim_end_matches('\n').to_owned()
}

pub(super) async fn screen(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
) -> Result<Json<api::Screen>, ProblemResponse> {
    Ok(Json(convert::screen(take_screen(&rest, &principal, session).await?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_an_offset_a_time_or_the_last_one() {
        assert_eq!(to_since("o:4711"), Ok(Since::Offset(4_711)));
        assert_eq!(to_since("0"), Ok(Since::Offset(0)));
        assert_eq!(to_since("last"), Ok(Since::Last));
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_500);
        assert_eq!(to_since("2023-11-14T22:13:20.5Z"), Ok(Since::Time(time)));
        assert_eq!(to_since("2023-11-14T23:13:20.5+01:00"), Ok(Since::Time(time)));
        for bad in ["", "o:", "o:-1", "o:99999999999999999999", "first", "2023-11-14"] {
            assert_eq!(to_since(bad).map_err(|r| r.field), Err(Some("since".into())), "{bad}");
        }
    }

    #[test]
    fn a_read_is_bounded_in_bytes_lines_and_time() {
        let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        let field = |query: api::OutputQuery| {
            to_read(session.clone(), query, View::Text).map(|_| ()).map_err(|r| r.field.expect("a field"))
        };
        let base = api::OutputQuery::default;
        assert_eq!(field(base()), Ok(()));
        assert_eq!(field(api::OutputQuery { max_bytes: Some(0), ..base() }), Err("maxBytes".into()));
        assert_eq!(field(api::OutputQuery { max_bytes: Some(1 << 40), ..base() }), Err("maxBytes".into()));
        assert_eq!(field(api::OutputQuery { max_lines: Some(0), ..base() }), Err("maxLines".into()));
        assert_eq!(field(api::OutputQuery { wait_ms: Some(u64::MAX), ..base() }), Err("waitMs".into()));
        assert_eq!(field(api::OutputQuery { command_id: Some("7".into()), ..base() }), Err("commandId".into()));
    }
}
