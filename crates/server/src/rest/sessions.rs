//! `/terminals`: creates, lists, shows, resizes and ends sessions.

use std::path::PathBuf;
use std::time::Duration;

use api::ErrorCode;
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::actions;
use super::extract::{self, Body, Key, LongBody, Params, Session};
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Composite, Create, Limit, Limits, List, Otherwise, Outcome, SessionStatus, Terminate};
use ptyd_core::limits;
use ptyd_core::principal::Principal;

/// The default page of a list; a thousand sessions are 1 MB of JSON.
const PAGE: usize = 100;
/// The largest page.
const PAGE_MAX: usize = 1_000;

pub(super) async fn create(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Key(key): Key,
    Body(body): LongBody<api::CreateRequest>,
) -> Result<Response, ProblemResponse> {
    match rest.act(&principal, Action::Composite(Composite::Create(Box::new(to_create(body, key)?)))).await? {
        Outcome::Session(view) => {
            let session = convert::session(*view, &rest.base_url);
            let place = HeaderValue::from_str(&format!("/terminals/{}", session.id));
            let mut response = (StatusCode::CREATED, Json(session)).into_response();
            response.headers_mut().extend(place.ok().map(|place| (header::LOCATION, place)));
            Ok(response)
        }
        other => Err(unexpected(&other)),
    }
}

fn to_create(body: api::CreateRequest, key: Option<String>) -> Result<Create, ProblemResponse> {
    let size = body.dimensions.map(|d| extract::size("dimensions.", d)).transpose()?;
    body.name.as_deref().map_or(Ok(()), check_name)?;
    if body.cwd.as_ref().is_some_and(|c| !c.starts_with('/') || c.contains('\0')) {
        return Err(ProblemResponse::field("cwd", "must be an absolute path"));
    }
    if body.fallback_cwd.as_ref().is_some_and(|c| !c.starts_with('/') || c.contains('\0')) {
        return Err(ProblemResponse::field("fallbackCwd", "must be an absolute path"));
    }
    if body.profile.as_ref().is_some_and(String::is_empty) {
        return Err(ProblemResponse::field("profile", "must be a profile's name"));
    }
    if body.shell.as_ref().is_some_and(|s| s.is_empty() || s.contains('\0')) {
        return Err(ProblemResponse::field("shell", "must be a name such as bash, or a path"));
    }
    for (name, value) in &body.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(ProblemResponse::field(
                "env",
                "a name cannot be empty or contain `=`, and neither names nor values can contain a NUL",
            ));
        }
    }
    Ok(Create {
        shell: body.shell,
        login: body.login,
        cwd: body.cwd.map(PathBuf::from),
        env: body.env.into_iter().collect(),
        cols: size.map(|(cols, _)| cols),
        rows: size.map(|(_, rows)| rows),
        profile: body.profile,
        confinement: body.confinement.map(convert::to_confinement),
        otherwise: Otherwise { cwd: body.fallback_cwd.map(PathBuf::from), ..Otherwise::default() },
        name: body.name,
        owner: body.owner,
        keeps_descendants: body.on_end == api::OnEnd::Keep,
        limits: Limits {
            inactivity: lifetime("inactivityTimeout", body.inactivity_timeout)?,
            max_age: lifetime("maxAge", body.max_age)?,
            ..body.limits.map(to_limits).transpose()?.unwrap_or_default()
        },
        named_actions: actions::checked(body.actions)?,
        key,
        // Fields of stdio clients only.
        ..Create::default()
    })
}

/// Seconds with fractions; zero means none.
fn lifetime(field: &'static str, value: Option<f64>) -> Result<Option<Duration>, ProblemResponse> {
    let Some(value) = value else { return Ok(None) };
    let most = limits::LIFETIME_MAX.as_secs_f64();
    // A session that ends before its shell has started cannot be intended.
    if value != 0.0 && !(limits::LIMIT_MIN..=most).contains(&value) {
        return Err(ProblemResponse::field(
            field,
            format!("{value} is not 0, and not between 0.01 and {most} seconds"),
        ));
    }
    Ok(Some(Duration::from_secs_f64(value)))
}

/// Each within its bounds, which docs/rest.md and the document list.
fn to_limits(request: api::Limits) -> Result<Limits, ProblemResponse> {
    let figures = [
        (Limit::CpuSeconds, request.cpu_seconds),
        (Limit::MemoryMb, request.memory_mb.map(|n| n as f64)),
        (Limit::Processes, request.processes.map(|n| n as f64)),
        (Limit::OpenFiles, request.open_files.map(|n| n as f64)),
        (Limit::OutputMb, request.output_mb),
        (Limit::OutputMbPerSecond, request.output_mb_per_second),
        (Limit::CommandSeconds, request.command_seconds),
    ];
    let mut limits = Limits::default();
    for (limit, value) in figures {
        value
            .map_or(Ok(()), |value| limits.set(limit, value))
            .map_err(|why| ProblemResponse::field(limit.field(), why))?;
    }
    Ok(limits)
}

fn check_name(name: &str) -> Result<(), ProblemResponse> {
    let most = limits::NAME_CHARS_MAX;
    if (1..=most).contains(&name.chars().count()) && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(ProblemResponse::field("name", format!("must be 1 to {most} characters without control characters")))
}

pub(super) async fn list(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<api::SessionListQuery>,
) -> Result<Json<api::SessionList>, ProblemResponse> {
    let status = query.status.map(|status| match status {
        api::SessionStatus::Creating => SessionStatus::Creating,
        api::SessionStatus::Running => SessionStatus::Running,
        api::SessionStatus::Terminated => SessionStatus::Terminated,
    });
    let (limit, offset) = page(query.limit, query.offset)?;
    let is_newest_first = query.order.unwrap_or_default() == api::Order::Newest;
    let list = List { owner: query.owner, name: query.name, status, is_newest_first, limit, offset };
    match rest.act(&principal, Action::List(list)).await? {
        Outcome::Sessions(page) => {
            let terminals = page.sessions.into_iter().map(|v| convert::session(v, &rest.base_url)).collect();
            Ok(Json(api::SessionList { terminals, total: page.total, degraded: page.is_degraded }))
        }
        other => Err(unexpected(&other)),
    }
}

/// The size and start of a page.
pub(super) fn page(limit: Option<u64>, offset: Option<u64>) -> Result<(usize, usize), ProblemResponse> {
    // JSON numbers are exact up to 2^53, and no list is longer.
    let offset = extract::count("offset", offset, 0, 0, 1 << 53)?;
    Ok((extract::count("limit", limit, PAGE, 1, PAGE_MAX)?, offset))
}

pub(super) async fn show(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(id): Session,
) -> Result<Json<api::TerminalSession>, ProblemResponse> {
    rest.session(&principal, Action::Show(id)).await
}

pub(super) async fn environment(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(id): Session,
) -> Result<Json<api::SessionEnvironment>, ProblemResponse> {
    match rest.act(&principal, Action::Environment(id)).await? {
        Outcome::Environment(view) => Ok(Json(convert::environment(*view))),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn terminate(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(session): Session,
    Params(query): Params<api::TerminateQuery>,
    Body(body): Body<api::TerminateQuery>,
) -> Result<Json<api::Terminated>, ProblemResponse> {
    let asked = in_one_place(query, body)?;
    let signo = asked.signal.map(|s| extract::signal("signal", &s)).transpose()?;
    let grace = asked.grace_seconds.map(grace).transpose()?;
    let request = Terminate { session, force: asked.force, signo, grace, purges: asked.purge };
    match rest.act(&principal, Action::Terminate(request)).await? {
        Outcome::Terminated(view) => Ok(Json(api::Terminated {
            status: convert::session_status(view.session.status),
            session: convert::session(view.session, &rest.base_url),
            killed: view.killed,
            left: view.left,
            was_over: view.was_over,
            freed_bytes: view.freed_bytes,
        })),
        other => Err(unexpected(&other)),
    }
}

/// The parameters of a DELETE, which clients send in the query or as a JSON body.
fn in_one_place(query: api::TerminateQuery, body: api::TerminateQuery) -> Result<api::TerminateQuery, ProblemResponse> {
    let none = api::TerminateQuery::default();
    match (query == none, body == none) {
        (_, true) => Ok(query),
        (true, false) => Ok(body),
        (false, false) => {
            let why = "there are parameters both in the query and in the body; put all of them into one of the two";
            Err(ProblemResponse::new(ErrorCode::InvalidField, why))
        }
    }
}

fn grace(seconds: f64) -> Result<Duration, ProblemResponse> {
    let most = limits::GRACE_MAX.as_secs_f64();
    let is_fine = (0.0..=most).contains(&seconds);
    is_fine
        .then(|| Duration::from_secs_f64(seconds))
        .ok_or_else(|| ProblemResponse::field("graceSeconds", format!("{seconds} is not between 0 and {most}")))
}

pub(super) async fn rename(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(session): Session,
    Body(body): Body<api::RenameRequest>,
) -> Result<Json<api::TerminalSession>, ProblemResponse> {
    check_name(&body.name)?;
    rest.session(&principal, Action::Rename { session, name: body.name }).await
}

pub(super) async fn resize(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(id): Session,
    Body(body): Body<api::Dimensions>,
) -> Result<Json<api::Resized>, ProblemResponse> {
    let (cols, rows) = extract::size("", body)?;
    let Json(session) = rest.session(&principal, Action::Resize { session: id, cols, rows }).await?;
    Ok(Json(api::Resized { success: true, session }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(body: &str) -> Option<String> {
        let body = serde_json::from_str(body).expect("a well-formed body");
        to_create(body, None).err().and_then(|r| r.field)
    }

    #[test]
    fn a_session_that_cannot_be_started_as_asked_is_refused_by_field() {
        assert_eq!(field(r#"{"cwd":"here"}"#), Some("cwd".into()));
        assert_eq!(field(r#"{"shell":""}"#), Some("shell".into()));
        assert_eq!(field(r#"{"env":{"A=B":"c"}}"#), Some("env".into()));
        assert_eq!(field(r#"{"name":"a\u001bb"}"#), Some("name".into()));
        assert_eq!(field(r#"{"dimensions":{"cols":0,"rows":24}}"#), Some("dimensions.cols".into()));
    }

    #[test]
    fn null_for_an_optional_parameter_is_as_if_it_were_omitted() {
        let body = r#"{"shell":null,"cwd":null,"env":null,"dimensions":null,"name":null,"owner":null,"limits":null}"#;
        let create = to_create(serde_json::from_str(body).expect("valid"), None).expect("accepted");
        let left_out = to_create(api::CreateRequest::default(), None).expect("accepted");
        assert_eq!(format!("{create:?}"), format!("{left_out:?}"));
    }

    #[test]
    fn every_field_of_a_create_body_takes_effect() {
        let body = r#"{"shell":"bash","cwd":"/tmp","env":{"A":"b=c"},"dimensions":{"cols":80,"rows":24},"name":"Bäcker",
            "owner":"ann","onEnd":"keep","login":true}"#;
        let create = to_create(serde_json::from_str(body).expect("valid"), Some("k1".into())).expect("accepted");
        let whole = Create {
            shell: Some("bash".into()),
            login: true,
            cwd: Some("/tmp".into()),
            env: vec![("A".into(), "b=c".into())],
            cols: Some(80),
            rows: Some(24),
            name: Some("Bäcker".into()),
            owner: Some("ann".into()),
            keeps_descendants: true,
            key: Some("k1".into()),
            ..Create::default()
        };
        assert_eq!(format!("{create:?}"), format!("{whole:?}"));
    }
}
