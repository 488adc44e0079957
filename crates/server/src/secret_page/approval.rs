//! The same page for an approval: a person sees what a policy asks about, and allows or denies it.
//!
//! The address proves nothing here either. It is told to the client that made the request and not to its model; the core
//! decides whether whoever sends the form may decide.

use std::fmt::Write as _;

use axum::http::StatusCode;
use axum::response::Response;
use ptyd_core::action::{Action, ActionError, ApprovalState, ApprovalSubject, ApprovalView, Decision, Outcome};
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::ids::IdKind;
use ptyd_core::principal::Principal;

use super::frame::{PREFIX, code, escaped, page, status_of, unexpected};
use crate::http::problem::ProblemResponse;

/// The longest form.
pub(super) const FORM_BYTES_MAX: usize = 64;

/// Whether this name of a page is that of an approval.
pub(super) fn is_named(name: &str) -> bool {
    IdKind::Approval.node_of(name).is_some()
}

/// Whether this is the path of an approval's page.
pub(crate) fn is_here(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(is_named)
}

/// The address of an approval's page, at the server with this base URL.
pub(crate) fn address(base_url: &str, name: &str) -> String {
    format!("{base_url}{PREFIX}{name}")
}

pub(super) async fn show(dispatcher: &Dispatcher, principal: &Principal, name: String) -> Response {
    match named(dispatcher, principal, name).await {
        Ok(view) => form(&view),
        Err(error) => refused(&error),
    }
}

/// Takes the form.
pub(super) async fn answer(
    dispatcher: &Dispatcher,
    principal: &Principal,
    name: String,
    form: Result<Vec<u8>, String>,
) -> Response {
    let decision = match form.as_deref() {
        Ok(b"decision=allow") => Decision::Allow,
        Ok(b"decision=deny") => Decision::Deny,
        Ok(_) | Err(_) => {
            let problem = "send a form with the field decision: allow or deny".to_owned();
            return refused(&ActionError::Invalid { field: "decision", problem });
        }
    };
    let decided = match named(dispatcher, principal, name).await {
        Ok(view) => dispatcher.dispatch(principal, Action::DecideApproval { id: view.id, decision }).await,
        Err(error) => Err(error),
    };
    match (decided, decision) {
        (Ok(Outcome::Approval(_)), Decision::Allow | Decision::Always) => {
            page(StatusCode::OK, "It is allowed once", "<p>The request may run now. Close this page.</p>")
        }
        (Ok(Outcome::Approval(_)), Decision::Deny) => {
            page(StatusCode::OK, "It is denied", "<p>Nothing has run. Close this page.</p>")
        }
        (Ok(other), _) => refused(&unexpected(&other)),
        (Err(error), _) => refused(&error),
    }
}

async fn named(dispatcher: &Dispatcher, principal: &Principal, name: String) -> Result<ApprovalView, ActionError> {
    match dispatcher.dispatch(principal, Action::ShowApproval(name)).await? {
        Outcome::Approval(view) => Ok(*view),
        other => Err(unexpected(&other)),
    }
}

fn form(view: &ApprovalView) -> Response {
    let mut content = String::from("<p>If you allow it, exactly this runs, once.</p>\n<dl>\n");
    let mut entry = |name: &str, value: String| {
        let _ = writeln!(content, "<dt>{name}</dt><dd>{value}</dd>");
    };
    match &view.subject {
        ApprovalSubject::Command { text, inside } => {
            entry(if *inside { "Command, in a nested shell" } else { "Command" }, code(text));
        }
        ApprovalSubject::Input { text: Some(text), .. } => entry("Input", code(text)),
        ApprovalSubject::Input { text: None, length } => entry("Secret input", format!("{length} bytes")),
        ApprovalSubject::Keys(names) => entry("Keys", code(&names.join(" "))),
    }
    if let Some(cwd) = &view.cwd {
        entry("Directory", code(&cwd.to_string_lossy()));
    }
    let session_name = view.session_name.as_deref().map_or_else(String::new, |name| format!(" ({})", code(name)));
    entry("Session", code(view.session.as_str()) + &session_name);
    entry("Asked by", code(&view.principal));
    entry("Rule", format!("{} of policy {}: {}", code(&view.rule), code(&view.policy), escaped(&view.why)));
    content += "</dl>\n";
    match &view.state {
        ApprovalState::Pending => {
            content += &format!(
                "<form method=\"post\" autocomplete=\"off\">\n<button name=\"decision\" value=\"allow\">Allow once</button>\n\
                 <button name=\"decision\" value=\"deny\">Deny</button>\n</form>\n<p>It waits for another {} minutes.</p>",
                view.left.as_secs().div_ceil(60)
            );
        }
        ApprovalState::Allowed { by, .. } => content += &format!("<p>{} has allowed it.</p>", code(by)),
        ApprovalState::Denied { by } => content += &format!("<p>{} has denied it.</p>", code(by)),
    }
    page(StatusCode::OK, "A policy asks a person", &content)
}

fn refused(error: &ActionError) -> Response {
    let problem = ProblemResponse::from(error.clone());
    let remedy = "<code>ptyd approvals</code> lists the waiting requests, and decides them in your terminal.";
    page(status_of(&problem), "Nothing was decided", &format!("<p>{}.</p>\n<p>{remedy}</p>", escaped(&problem.detail)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use ptyd_core::ids::SessionId;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    #[tokio::test]
    // promise: policy-8
    async fn a_caller_that_may_not_see_an_approval_learns_of_no_typing() {
        let unknown = ActionError::SecretRefused(ptyd_core::action::SecretRefusal::Unknown);
        let response = refused(&unknown);
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        let body = String::from_utf8(body.to_vec()).expect("text");
        assert!(body.contains("Nothing was decided") && body.contains("no such request for this caller"), "{body}");
        assert!(!body.contains("typed"), "{body}");
    }

    #[tokio::test]
    // promise: policy-8
    async fn the_page_quotes_the_command_whole_and_offers_two_decisions() {
        let text = |text: &str| text.to_owned();
        let mut view = ApprovalView {
            id: text("a0-aaaaaaaaaa"),
            session: SessionId::parse("s0-aaaaaaaaaa").expect("an id"),
            session_name: None,
            owner: text("ada"),
            principal: text("ada"),
            policy: text("dev"),
            rule: text("unproven"),
            why: text("it has a <variable>"),
            subject: ApprovalSubject::Command { text: "echo \"</code><script>\"\u{202e}".into(), inside: false },
            cwd: Some(PathBuf::from("/src/<app>")),
            state: ApprovalState::Pending,
            asked_at: SystemTime::now(),
            left: Duration::from_secs(599),
        };
        let body = async |view: &ApprovalView| {
            let body = to_bytes(form(view).into_body(), 1 << 20).await.expect("a body");
            String::from_utf8(body.to_vec()).expect("text")
        };
        let shown = body(&view).await;
        for part in [
            "echo &quot;&lt;/code&gt;&lt;script&gt;&quot;\\u{202e}",
            "value=\"allow\"",
            "value=\"deny\"",
            "&lt;variable&gt;",
            "/src/&lt;app&gt;",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains("<script"));
        view.state = ApprovalState::Denied { by: text("eve") };
        assert!(!body(&view).await.contains("<form"), "a decision stands");
    }
}
