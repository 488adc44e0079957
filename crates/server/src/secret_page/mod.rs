//! `/ask/{name}`: the page where a person types a secret that a program of a session reads, or decides on an approval (`approval.rs`).
//!
//! It is for people, so it is in no OpenAPI document; a program sends input that is marked as secret. The address proves
//! nothing: like every route it is behind the guard, which also admits a browser that logs in with a token, or whose process
//! belongs to the server's user. It shows who asks and nothing that was typed, and it loads and runs nothing.

mod approval;
mod frame;

use api::ErrorCode;
use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::get;

use frame::{PREFIX, code, escaped, page, status_of, unexpected};

use crate::http::problem::ProblemResponse;
use crate::http::request_body::Inbox;
use ptyd_core::action::{Action, ActionError, Outcome, Secret, SecretReader, SecretRequest};
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::principal::Principal;

/// The route.
pub(crate) const PATH: &str = "/ask/{name}";
/// The field of the form.
const FIELD: &str = "secret=";
/// A secret of which each byte is written as three.
const FORM_BYTES_MAX: usize = 4 * Secret::BYTES_MAX;

pub(crate) use approval::{address as approval_address, is_here as is_approval};

/// Whether this is the path of such a page.
pub(crate) fn is_here(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Whether the answer is for a browser, which shows it to a person.
pub(crate) fn takes_html(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|types| types.to_str().is_ok_and(|types| types.contains("text/html")))
}

/// The address of a request's page, at the server with this base URL.
pub(crate) fn address(base_url: &str, request: &SecretRequest) -> String {
    format!("{base_url}{PREFIX}{}", request.name)
}

/// The route.
pub(crate) fn router(dispatcher: Dispatcher) -> Router {
    Router::new().route(PATH, get(show).post(answer)).with_state(dispatcher)
}

async fn show(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Response {
    if approval::is_named(&name) {
        return approval::show(&dispatcher, &principal, name).await;
    }
    match dispatcher.dispatch(&principal, Action::ShowSecretRequest(name)).await {
        Ok(Outcome::SecretRequest(Some(request))) => form(&request),
        Ok(other) => refused(&unexpected(&other)),
        Err(error) => refused(&error),
    }
}

async fn answer(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    if is_from_another_site(request.headers()) {
        let refusal = ProblemResponse::new(ErrorCode::OriginRefused, "only this page's own form may be sent to it");
        return not_admitted(&refusal);
    }
    let (mut parts, body) = request.into_parts();
    let inbox = parts.extensions.remove::<Inbox>().unwrap_or_else(Inbox::alone);
    if approval::is_named(&name) {
        let form = inbox.take(body, approval::FORM_BYTES_MAX).await;
        let form = form.map(|form| form.to_vec()).map_err(|why| why.to_string());
        return approval::answer(&dispatcher, &principal, name, form).await;
    }
    let secret = match inbox.take(body, FORM_BYTES_MAX).await {
        Ok(form) => field(&form),
        Err(why) => Err(why.to_string()),
    };
    let secret = match secret.and_then(|text| Secret::new(text).map_err(|why| why.to_string())) {
        Ok(secret) => secret,
        Err(problem) => return refused(&ActionError::Invalid { field: "secret", problem }),
    };
    match dispatcher.dispatch(&principal, Action::TypeSecret { name, secret }).await {
        Ok(Outcome::Typed(_)) => {
            page(StatusCode::OK, "The secret was typed", "<p>The program has it. Close this page.</p>")
        }
        Ok(other) => refused(&unexpected(&other)),
        Err(error) => refused(&error),
    }
}

/// Whether a browser says that another site's page has sent this, where it leaves the origin out (Fetch Metadata). A link to
/// this page may stand anywhere.
fn is_from_another_site(headers: &HeaderMap) -> bool {
    headers.get_all("sec-fetch-site").iter().any(|site| site != "same-origin" && site != "none")
}

/// The value of the form's only field (the URL standard's `application/x-www-form-urlencoded`).
fn field(form: &[u8]) -> Result<String, String> {
    let wrong = || format!("send a form with the field {}", FIELD.trim_end_matches('='));
    let value = form.strip_prefix(FIELD.as_bytes()).filter(|value| !value.contains(&b'&')).ok_or_else(wrong)?;
    let spaced: Vec<u8> = value.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let decoded = percent_encoding::percent_decode(&spaced).decode_utf8().map_err(|_| wrong())?;
    Ok(decoded.into_owned())
}

fn form(request: &SecretRequest) -> Response {
    let SecretRequest { session, session_name, command, reader, prompt, left, .. } = request;
    let mut content = String::from("<p>Type it only if you expect this program to ask you.</p>\n<dl>\n");
    let mut entry = |name: &str, value: String| content += &format!("<dt>{name}</dt><dd>{value}</dd>\n");
    entry("Program, as the system names it", program(reader));
    entry("It runs with the rights of", user(reader));
    let session_name = session_name.as_deref().map_or_else(String::new, |name| format!(" ({})", code(name)));
    entry("Session", code(session.as_str()) + &session_name);
    entry("Command", command.as_deref().map_or_else(|| "none: it was typed at the prompt".to_owned(), code));
    let prompt = if prompt.trim().is_empty() { "none".to_owned() } else { format!("<q>{}</q>", escaped(prompt)) };
    entry("The program’s own words, which any program can print", prompt);
    content += &format!(
        "</dl>\n<form method=\"post\" autocomplete=\"off\">\n<label for=\"secret\">The secret: this program receives it, and ptyd records it nowhere</label>\n<input id=\"secret\" name=\"secret\" type=\"password\" autocomplete=\"off\" \
         maxlength=\"{}\" autofocus>\n<button>Type it</button>\n</form>\n<p>This page works once, for another {} \
         minutes.</p>",
        Secret::BYTES_MAX,
        left.as_secs().div_ceil(60)
    );
    page(StatusCode::OK, "A program asks for a secret", &content)
}

fn program(reader: &SecretReader) -> String {
    let pid = reader.pid;
    match &reader.executable {
        Some(path) => format!("{}, process {pid}", code(&path.to_string_lossy())),
        None => {
            format!(
                "a file that this server may not look at; process {pid} calls itself {}",
                code(&reader.process_name)
            )
        }
    }
}

fn user(reader: &SecretReader) -> String {
    let how = if reader.is_set_user_id { ", set-user-id" } else { "" };
    match &reader.user {
        Some(name) => format!("{} (user {}){how}", code(name), reader.uid),
        None => format!("user {}{how}", reader.uid),
    }
}

fn refused(error: &ActionError) -> Response {
    let problem = ProblemResponse::from(error.clone());
    let status = status_of(&problem);
    let remedy = "Look at the session again: while a program asks, an answer names a page for it, and <code>ptyd send \
                  --secret</code> types a secret, too.";
    page(status, "Nothing was typed", &format!("<p>{}.</p>\n<p>{remedy}</p>", escaped(&problem.detail)))
}

/// A person is not admitted to the page.
pub(crate) fn not_admitted(refusal: &ProblemResponse) -> Response {
    let status = status_of(refusal);
    let content = format!(
        "<p>{}.</p>\n<p><code>ptyd send --secret</code> types a secret in a terminal of yours.</p>",
        escaped(&refusal.detail)
    );
    page(status, "This page does not open", &content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use ptyd_core::ids::SessionId;
    use std::time::Duration;

    fn request(prompt: &str) -> SecretRequest {
        let reader = SecretReader {
            pid: 4711,
            start_ticks: 1,
            executable: Some("/usr/bin/sudo".into()),
            process_name: "sudo".to_owned(),
            uid: 0,
            user: Some("root".to_owned()),
            is_set_user_id: true,
        };
        SecretRequest {
            name: "AbC".to_owned(),
            session: SessionId::parse("s0-aaaaaaaaaa").expect("an id"),
            session_name: Some("build".to_owned()),
            command: Some("sudo apt install jq".to_owned()),
            reader,
            prompt: prompt.to_owned(),
            left: Duration::from_secs(599),
        }
    }

    async fn text(response: Response) -> String {
        let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        String::from_utf8(body.to_vec()).expect("text")
    }

    #[tokio::test]
    // promise: access-12
    async fn the_page_names_who_asks_and_quotes_the_programs_words() {
        let response = form(&request("</q><script>x</script>\u{202e} Password:"));
        let allowed = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("text").to_owned();
        assert!(
            allowed.starts_with("default-src 'none'; style-src 'nonce-") && !allowed.contains("script"),
            "{allowed}"
        );
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        let shown = text(response).await;
        for part in [
            "<code>/usr/bin/sudo</code>, process 4711",
            "<code>root</code> (user 0), set-user-id",
            "<code>s0-aaaaaaaaaa</code> (<code>build</code>)",
            "<code>sudo apt install jq</code>",
            "<q>&lt;/q&gt;&lt;script&gt;x&lt;/script&gt;\\u{202e} Password:</q>",
            "for another 10 minutes",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains("<script") && !shown.contains("value="));
    }

    #[tokio::test]
    // promise: access-12
    async fn a_program_that_may_not_be_inspected_is_not_shown_as_a_file() {
        let mut hidden = request("Password:");
        hidden.reader.executable = None;
        let shown = text(form(&hidden)).await;
        assert!(shown.contains("may not look at; process 4711 calls itself <code>sudo</code>"), "{shown}");
    }

    #[test]
    fn the_field_is_read_as_browsers_write_it() {
        assert_eq!(field(b"secret=a+b%2Bc%C3%A9"), Ok("a b+cé".to_owned()));
        assert_eq!(field(b"secret="), Ok(String::new()));
        for wrong in [&b""[..], b"token=x", b"secret=a&token=b", b"secret=%ff"] {
            assert!(field(wrong).is_err());
        }
        assert!(is_here("/ask/x") && !is_here("/ask"));
    }
}
