//! Searches a session's output: finds the range and the commands in it. The journal is read on a thread of low priority.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::commands;
use super::positions::{self, catch_up};
use crate::action::{ActionError, Budget, CommandView, FoundView, MatchView, OutputKind, Search, Since};
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::low_priority::run_at_low_priority;
use crate::principal::Principal;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::render::search::{self, SearchParameters};
use crate::sessions::services::Services;
use crate::sessions::session::Request;
use crate::store::CommandRange;

/// Tells the thread to stop once its caller is gone.
#[derive(Debug, Default)]
pub(super) struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    /// The check that the thread polls.
    pub(super) fn asks(&self) -> impl Fn() -> bool + Send + 'static {
        let flag = Arc::clone(&self.0);
        move || flag.load(Ordering::Relaxed)
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(in crate::sessions) async fn search(
    services: &Services,
    principal: &Principal,
    request: &Search,
) -> Result<FoundView, ActionError> {
    let found = services.sessions.find_to_read(principal, &request.session).await?;
    let (shared, end, recent, is_growing) = match &found {
        SessionRef::Live(handle) => {
            let tail = handle.tail.borrow().journal.0;
            catch_up(handle, tail).await;
            let (snapshot, recent) = handle.ask(Request::Commands).await?;
            (Arc::clone(&handle.shared), snapshot.shown_to, recent, true)
        }
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::EndedSession(past) => {
            past.has_journal()?;
            (Arc::clone(&past.shared), past.timeline.output().scanner.position(), past.commands(), false)
        }
    };
    let asked = positions::since(services, principal, &found, &request.session, &request.since).await?;
    if asked > end && !matches!(request.since, Since::Last) {
        let problem = format!("o:{asked} is beyond the end of the output, o:{end}");
        return Err(ActionError::Invalid { field: "since", problem });
    }
    let failed = |e: std::io::Error| ActionError::Internal { why: format!("the journal: {e}") };
    let from = asked.max(shared.reader.first().map_err(failed)?.0).min(end);
    let mut texts: HashMap<u32, String> = HashMap::new();
    if request.newest {
        texts.extend(recent.iter().map(|command| (command.id.0, command.command.clone())));
    }
    let (commands, (searched_from, to)) =
        places(services, &request.session, recent, (from, end), request.newest).await?;
    if let Some(id) = request.command
        && !commands.iter().any(|c| c.0 == id.0)
    {
        // A command that does not exist is an error; one whose output is outside of the range is not.
        Box::pin(commands::command(services, principal, &request.session, id, Budget::NONE)).await?;
    }
    let mut segments = search::segments(&commands, searched_from, to);
    segments.retain(|s| {
        request.command.is_none_or(|id| s.command == Some(id.0))
            && request.kind.is_none_or(|kind| (kind == OutputKind::Command) == s.command.is_some())
    });
    let permit = services.whole_reads.place(&principal.name).await;
    let given_up = GivenUp::default();
    let is_given_up = given_up.asks();
    let cols = shared.spec.cols;
    let reaches_end = segments.last().is_some_and(|s| s.to == end);
    let (pattern, matches_max, newest) = (request.pattern.clone(), request.limit, request.newest);
    let hits = run_at_low_priority(move || {
        let _permit = permit;
        let is_growing = is_growing && reaches_end;
        let wanted = SearchParameters { pattern: &pattern, matches_max, newest, cols, is_growing };
        search::search((&shared.folder, &shared.reader), &segments, &wanted, &is_given_up)
    });
    let hits = hits.await.map_err(|e| ActionError::Internal { why: format!("the search: {e}") })?.map_err(failed)?;
    drop(given_up);
    let mut commands: Vec<(CommandId, String)> = Vec::new();
    for id in hits.hits.iter().filter_map(|hit| hit.command).filter(|_| newest) {
        if commands.last().is_some_and(|(last, _)| last.0 == id) {
            continue;
        }
        let text = match texts.remove(&id) {
            Some(text) => Some(text),
            // If the store does not give it, the heading has only the command's id.
            None => Box::pin(commands::known(services, principal, &request.session, CommandId(id)))
                .await
                .ok()
                .map(|it| it.command.command),
        };
        commands.extend(text.map(|text| (CommandId(id), text)));
    }
    let found = hits.hits.into_iter().map(|h| MatchView {
        offset: h.offset,
        line: h.line,
        text: h.text,
        command: h.command.map(CommandId),
    });
    Ok(FoundView {
        matches: found.collect(),
        matching: hits.matching,
        commands,
        lines: hits.lines,
        // Behind the searched ranges there may be output of another kind, which need not be searched again.
        next: if hits.is_full || (is_growing && reaches_end) { hits.next } else { to },
        end,
        gap: (asked < from).then_some((asked, from)),
        has_more: hits.is_full || to < end || from < searched_from,
    })
}

/// The first range of this kind of output; an empty one at the end if there is none.
pub(super) async fn stretch(
    services: &Services,
    session: &SessionId,
    kind: OutputKind,
    recent: &[CommandView],
    (from, end): (u64, u64),
) -> Result<(u64, u64), ActionError> {
    let (commands, (from, known_to)) = places(services, session, recent.to_vec(), (from, end), false).await?;
    let segments = search::segments(&commands, from, known_to);
    let first = segments.into_iter().find(|s| (kind == OutputKind::Command) == s.command.is_some());
    Ok(first.map_or((known_to, known_to), |s| (s.from, s.to)))
}

/// The commands with output in a range, and the part of the range in which they are complete: its beginning, or its end for
/// the newest. The rest is for another search.
async fn places(
    services: &Services,
    session: &SessionId,
    recent: Vec<CommandView>,
    (from, to): (u64, u64),
    is_newest: bool,
) -> Result<(Vec<CommandRange>, (u64, u64)), ActionError> {
    let newest: Vec<u32> = recent.iter().map(|c| c.id.0).collect();
    let id = session.as_str().to_owned();
    let mut places = services
        .history
        .query(move |store| {
            store.flush_as_far_as_possible()?;
            store.places(&id, &newest, (from, to), (limits::SEARCH_COMMANDS_MAX, is_newest))
        })
        .await?;
    let is_part = places.len() == limits::SEARCH_COMMANDS_MAX;
    let from = if is_part && is_newest { places.last().map_or(from, |p| p.1.max(from)) } else { from };
    if is_part && !is_newest {
        let known_to = places.last().and_then(|p| p.2).unwrap_or(to);
        return Ok((places, (from, known_to.min(to))));
    }
    let is_in_range = |c: &CommandView| c.start_offset < to && c.end_offset.is_none_or(|end| end >= from);
    let recent = recent.into_iter().filter(is_in_range);
    places.extend(recent.map(|c| (c.id.0, c.start_offset, c.end_offset)));
    places.sort_by_key(|p| (p.1, p.0));
    Ok((places, (from, to)))
}
