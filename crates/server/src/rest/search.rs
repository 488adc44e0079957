//! `…/search`: searches for lines of text.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::extract::{self, Params, Reader, Session};
use super::output::{to_kind, to_since};
use super::state::{Rest, unexpected};
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, FoundView, Outcome, PatternShare, Search, Since};
use ptyd_core::ids::{CommandId, SessionId};
use ptyd_core::limits;

/// Matches in one answer by default.
const MATCHES: usize = 100;

pub(super) async fn search(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
    Params(query): Params<api::SearchQuery>,
) -> Result<Json<api::SearchAnswer>, ProblemResponse> {
    match rest.act(&principal, Action::Search(to_search(&rest.patterns(&principal), session, &query).await?)).await? {
        Outcome::Found(view) => Ok(Json(answer(view))),
        other => Err(unexpected(&other)),
    }
}

async fn to_search(
    patterns: &Arc<PatternShare>,
    session: SessionId,
    query: &api::SearchQuery,
) -> Result<Search, ProblemResponse> {
    let command = query
        .command_id
        .as_deref()
        .map(|id| CommandId::parse(id).ok_or_else(|| ProblemResponse::field("commandId", "must be an id such as c7")));
    let pattern = patterns.compile("q", "", &query.q).await?;
    Ok(Search {
        session,
        since: query.since.as_deref().map_or(Ok(Since::First), to_since)?,
        command: command.transpose()?,
        kind: query.kind.map(to_kind),
        pattern,
        limit: extract::count("limit", query.limit, MATCHES, 1, limits::SEARCH_MATCHES_MAX)?,
        newest: false,
    })
}

fn answer(view: FoundView) -> api::SearchAnswer {
    let matches = view.matches.into_iter().map(|m| api::Match {
        offset: m.offset,
        line: m.line,
        text: m.text.into(),
        command_id: m.command.map(|id| id.to_string()),
    });
    api::SearchAnswer {
        matches: matches.collect(),
        next_offset: view.next,
        end_offset: view.end,
        lines: view.lines,
        more: view.has_more,
        gap: view.gap.map(|(from, to)| api::Gap { from, to }),
    }
}
