//! Reads a session's output for a caller: text, bytes or the terminal stream, from any position, also waiting for more.

use std::sync::Arc;

use super::output_view::output_view;
use super::positions::{self, catch_up};
use super::report::CLEARING_UP;
use super::search_range;
use crate::action::{ActionError, OutputView, ReadOutput, Since, View};
use crate::principal::Principal;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::{Request, ViewerLimit};
use crate::sessions::timeline::handover::RecentHandovers;
use crate::sessions::viewers::ViewerPlace;

pub(in crate::sessions) async fn output(
    services: &Services,
    principal: &Principal,
    read: &ReadOutput,
) -> Result<OutputView, ActionError> {
    let found = services.sessions.find_to_read(principal, &read.session).await?;
    let (shared, ledger_end) = match &found {
        SessionRef::Live(handle) => (Arc::clone(&handle.shared), None),
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::EndedSession(past) => (Arc::clone(&past.shared), Some(past.timeline.output().scanner.position())),
    };
    // Output of an unreachable session continues although it is not visible here.
    let is_unreachable = matches!(&found, SessionRef::EndedSession(past) if past.unreachable.is_some());
    let (from, bound) = positions::position(services, principal, &found, read).await?;
    let mut past_commands = match &found {
        SessionRef::Live(_) | SessionRef::Unreachable(_) => Vec::new(),
        SessionRef::EndedSession(past) => past.commands(),
    };
    let mut handle = match found {
        SessionRef::Live(handle) => Some(handle),
        SessionRef::EndedSession(_) | SessionRef::Unreachable(_) => None,
    };
    let waits = handle.as_ref().filter(|_| !read.wait.is_zero());
    let _place = waits.and_then(|handle| ViewerPlace::of_reader(&handle.shared.viewers, principal));
    let deadline = tokio::time::Instant::now() + read.wait;
    let mut has_caught_up = false;
    let is_filtered = read.kind.is_some() || matches!(read.since, Since::Command(_));
    loop {
        let shown = match &handle {
            Some(live) => match live.ask(Request::ViewerLimit).await {
                Err(ActionError::Restarting) => return Err(ActionError::Restarting),
                // The holder ends the descendants, then everything is on disk; this answer already is the final
                // one.
                Ok(shown) if shown.has_exited && tokio::time::timeout(CLEARING_UP, live.gone()).await.is_ok() => None,
                shown => shown.ok(),
            },
            None => None,
        };
        // The actor is gone: the session ended meanwhile, and everything is on disk.
        let is_final = shown.is_none();
        let (end, markers, handovers) = match shown {
            Some(shown) => (limit_of(&shown, read.view), shown.markers, shown.handovers),
            None => {
                let end = ledger_end.unwrap_or(shared.reader.len().unwrap_or_default().0);
                let (markers, handovers) = match services.sessions.find(principal, &read.session).await {
                    Ok(SessionRef::EndedSession(past)) => {
                        (handle, past_commands) = (None, past.commands());
                        let markers = past.timeline.output().markers.iter().copied().collect();
                        (markers, past.timeline.log().handovers(from))
                    }
                    Ok(SessionRef::Live(_) | SessionRef::Unreachable(_)) | Err(_) => {
                        (Vec::new(), RecentHandovers::default())
                    }
                };
                (end, markers, handovers)
            }
        };
        if let (true, false, Some(live)) = (from > end, std::mem::replace(&mut has_caught_up, true), &handle) {
            catch_up(live, from).await;
            continue;
        }
        let commands = match &handle {
            Some(live) if is_filtered => match live.ask(Request::Commands).await {
                Ok((_, commands)) => commands,
                // Output must be attributed to its command; the actor is gone, and the next turn finds the command
                // in the records.
                Err(_) if !is_final => continue,
                Err(error) => return Err(error),
            },
            Some(_) => Vec::new(),
            None => past_commands.clone(),
        };
        // A command that ran when it was asked for may have ended meanwhile; later output is not its own.
        let bound = bound.or_else(|| match &read.since {
            Since::Command(id) => commands.iter().find(|c| c.id == *id).and_then(|c| c.end_offset),
            Since::First | Since::Offset(_) | Since::Time(_) | Since::Last => None,
        });
        let (shown, end) = (end, bound.map_or(end, |b| b.min(end)));
        let is_all = is_final || bound.is_some_and(|b| from >= b);
        let (start, stop) = match read.kind {
            Some(kind) if from <= end => {
                search_range::stretch(services, &read.session, kind, &commands, (from, end)).await?
            }
            Some(_) | None => (from, end),
        };
        let is_over = is_all || read.wait.is_zero() || tokio::time::Instant::now() >= deadline;
        if stop > start || is_over {
            let ends = is_final && stop == end && !is_unreachable;
            let mut view = output_view(&shared, read, (start, stop), &markers, handovers, ends).await?;
            if start > from && view.first > from {
                view.gap = Some((from, view.from.min(view.first)));
            }
            view.end = end;
            // A command's marker is part of its range, and may come before any output.
            let is_silent = read.kind.is_some() && read.view == View::Text && view.text.head.is_empty();
            if is_over || !is_silent {
                if read.moves_cursor {
                    services.read_cursors.has_read(principal, &read.session, (from, view.next));
                }
                return Ok(view);
            }
        }
        if let Some(live) = &mut handle {
            live.tail.mark_unchanged();
            if live.ask(Request::ViewerLimit).await.is_ok_and(|now| limit_of(&now, read.view) > shown.max(from)) {
                continue;
            }
            let _ = tokio::time::timeout_at(deadline, live.tail.changed()).await;
        }
    }
}

/// The offset up to which this view may be read.
fn limit_of(shown: &ViewerLimit, view: View) -> u64 {
    match view {
        View::Raw => shown.to,
        View::Stream => shown.stream_to,
        View::Text => shown.text_to,
    }
}
