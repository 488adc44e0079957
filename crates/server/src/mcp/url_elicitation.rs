//! Sends a person to a page by URL elicitation: to type a secret, or to decide on an approval.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, Request};
use serde_json::Value;

use super::caller::Caller;
use super::text;
use crate::secret_page;
use ptyd_core::action::{PersonReply, SecretRequest};

/// A person's reply; anything else counts as no reply.
pub(super) fn reply_of(reply: &Value) -> PersonReply {
    match serde_json::from_value::<ElicitResult>(reply.clone()).map(|result| result.action) {
        Ok(ElicitationAction::Accept) => PersonReply::Accepted,
        Ok(ElicitationAction::Decline) => PersonReply::Declined,
        Ok(_) | Err(_) => PersonReply::Cancelled,
    }
}

/// The question for a person: who reads, by the kernel's word, and what it says of itself.
pub(super) fn secret_question(caller: &Caller, request: &SecretRequest) -> InputRequest {
    let SecretRequest { session, command, reader, prompt, .. } = request;
    let program = match &reader.executable {
        Some(path) => text::path(path),
        None => format!("a program that calls itself {}", text::quoted(&reader.process_name)),
    };
    let user = reader.user.as_ref().map_or_else(|| reader.uid.to_string(), |name| text::plain(name));
    let command = command.as_ref().map(|command| format!(" ({})", text::quoted(command))).unwrap_or_default();
    let message = format!(
        "{program}, which runs as {user}, reads a secret in {session}{command}. Its own words: {}. Type it at the page, or \
         run: ptyd send --secret {session}",
        text::quoted(prompt)
    );
    let url = secret_page::address(&caller.base_url, request);
    // This revision has no such id, and the library's type has one.
    InputRequest::Elicitation(Request::new(request_of(message, url, request.name.clone())))
}

/// The question for a person, who decides at the page.
pub(super) fn approval_question(id: &str, url: String) -> InputRequest {
    InputRequest::Elicitation(Request::new(approval_request(id, url)))
}

/// The same as a request of the server's own.
pub(super) fn approval_request(id: &str, url: String) -> ElicitRequestParams {
    let message = format!(
        "A policy asks a person before this runs. Look at it and decide at the page, or run: ptyd approvals (it is {id})"
    );
    request_of(message, url, id.to_owned())
}

fn request_of(message: String, url: String, elicitation_id: String) -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams { meta: None, message, url, elicitation_id }
}

/// Whether a person was sent to the page and does not go there.
pub(super) fn is_declined(action: &ElicitationAction) -> bool {
    !matches!(action, ElicitationAction::Accept)
}
