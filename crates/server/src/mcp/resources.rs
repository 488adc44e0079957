//! Transcripts and screens as resources: another way to the same output, never the only one.

use std::time::Duration;

use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::json;

use super::caller::Caller;
use super::text;
use ptyd_core::action::{Action, ActionError, List, MaskedText, Outcome, ReadOutput, Since, View};
use ptyd_core::ids::SessionId;
use ptyd_core::limits::{BUDGET_CHARS, BUDGET_CHARS_MAX};

/// Sessions in the list; there are two resources for each.
const SESSIONS_MAX: usize = 100;
/// Bytes of journal behind one transcript: most programs print more bytes than characters.
const TRANSCRIPT_BYTES: u64 = 4 * BUDGET_CHARS as u64;

const SCHEME: &str = "ptyd://sessions/";

/// The live sessions' transcripts and screens.
pub(super) async fn list(caller: &Caller) -> Result<ListResourcesResult, ErrorData> {
    let action = Action::List(List { limit: SESSIONS_MAX, ..List::default() });
    let Outcome::Sessions(page) = act(caller, action, SCHEME).await? else { return Err(mismatch()) };
    let resources = page.sessions.iter().flat_map(|session| {
        let id = &session.id;
        let title = session.name.clone().unwrap_or_else(|| format!("{} in {}", session.shell, session.cwd.display()));
        ["output", "screen"].map(|what| {
            Resource::new(format!("{SCHEME}{id}/{what}"), format!("{id} {what}"))
                .with_title(format!("{title}: {what}"))
                .with_mime_type("text/plain")
        })
    });
    Ok(ListResourcesResult::with_all_items(resources.collect()))
}

/// The resources' URI templates.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = |what: &str, description: &str| {
        ResourceTemplate::new(format!("{SCHEME}{{session_id}}/{what}"), format!("session {what}"))
            .with_description(description)
            .with_mime_type("text/plain")
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template("output", "The newest output of a session as text, 30,000 characters at most"),
        template("screen", "The screen of a session as it is now"),
    ])
}

/// Reads one of them.
pub(super) async fn read(caller: &Caller, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let Some((id, what)) = named(uri) else { return Err(unknown(uri)) };
    let text = match what {
        Part::Output => transcript(caller, id, uri).await?,
        Part::Screen => match act(caller, Action::Screen(id), uri).await? {
            Outcome::Screen(screen) => MaskedText::joined(&screen.rows).into(),
            _ => return Err(mismatch()),
        },
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]))
}

/// The kinds of resources of a session.
enum Part {
    Output,
    Screen,
}

fn named(uri: &str) -> Option<(SessionId, Part)> {
    let (id, part) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let part = match part {
        "output" => Part::Output,
        "screen" => Part::Screen,
        _ => return None,
    };
    Some((SessionId::parse(id).ok()?, part))
}

/// The session of a resource's URI, if the URI is one of ours; the session need not exist.
pub(super) fn session_of(uri: &str) -> Option<SessionId> {
    named(uri).map(|(id, _)| id)
}

async fn transcript(caller: &Caller, id: SessionId, uri: &str) -> Result<String, ErrorData> {
    let Outcome::Session(session) = act(caller, Action::Show(id.clone()), uri).await? else { return Err(mismatch()) };
    let from = session.first_offset.max(session.end_offset.saturating_sub(TRANSCRIPT_BYTES));
    let read = ReadOutput {
        session: id,
        since: Since::Offset(from),
        kind: None,
        view: View::Text,
        limit: usize::try_from(TRANSCRIPT_BYTES).unwrap_or(usize::MAX),
        lines: None,
        wait: Duration::ZERO,
        budget: BUDGET_CHARS_MAX.into(),
        moves_cursor: true,
    };
    let Outcome::Output(view) = act(caller, Action::Output(read), uri).await? else { return Err(mismatch()) };
    Ok(text::visible(newest(&format!("{}{}", view.text.head, view.text.tail), BUDGET_CHARS), &mut 0))
}

/// The last `chars` characters, from the beginning of a line if there is one.
fn newest(text: &str, chars: usize) -> &str {
    let Some((cut, _)) = text.char_indices().rev().nth(chars.saturating_sub(1)).filter(|(at, _)| *at > 0) else {
        return text;
    };
    let tail = &text[cut..];
    if text[..cut].ends_with('\n') { tail } else { tail.split_once('\n').map_or(tail, |(_, lines)| lines) }
}

async fn act(caller: &Caller, action: Action, uri: &str) -> Result<Outcome, ErrorData> {
    caller.server.dispatch(&caller.principal, action).await.map_err(|why| error(why, uri))
}

/// The error of a resource.
pub(super) fn error(why: ActionError, uri: &str) -> ErrorData {
    if matches!(why, ActionError::NoSession { .. }) {
        return unknown(uri);
    }
    ErrorData::internal_error(why.to_string(), None)
}

/// An unknown resource. rmcp gives it the code of the era that the client speaks.
pub(super) fn unknown(uri: &str) -> ErrorData {
    let why = format!("no resource {uri}; resources/list names them");
    ErrorData::resource_not_found(why, Some(json!({ "uri": uri })))
}

fn mismatch() -> ErrorData {
    ErrorData::internal_error("the answer does not belong to the request; this is a bug in ptyd", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_cut_at_the_beginning_of_a_line() {
        assert_eq!(newest("one\ntwo\nthree", 20), "one\ntwo\nthree");
        assert_eq!(newest("one\ntwo\nthree", 7), "three");
        assert_eq!(newest("one\ntwo\nthree", 9), "two\nthree");
        assert_eq!(newest("ééé", 2), "éé");
    }
}
