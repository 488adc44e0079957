//! `/terminals/{sessionId}/actions/{action}`: performs a named action that the session got at its start;
//! `composites/named_actions.rs` of the core does it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;

use super::extract::{self, ActionName, Key, Reader, Session};
use super::state::Rest;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Composite, NamedAction, check_command};
use ptyd_core::{keys, limits};

pub(super) async fn perform(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Key(key): Key,
    Session(session): Session,
    ActionName(name): ActionName,
) -> Result<Json<api::WaitAnswer>, ProblemResponse> {
    rest.report(&principal, Action::Composite(Composite::NamedAction { session, name, key })).await
}

/// The named actions of a new session, each checked now and not when it is used.
pub(super) fn checked(
    actions: BTreeMap<String, api::SessionAction>,
) -> Result<BTreeMap<String, NamedAction>, ProblemResponse> {
    let most = limits::ACTIONS_MAX;
    if actions.len() > most {
        return Err(ProblemResponse::field("actions", format!("more than {most}")));
    }
    let each = |(name, action): (String, api::SessionAction)| {
        let longest = limits::ACTION_NAME_CHARS_MAX;
        let is_name =
            (1..=longest).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !is_name {
            let problem = format!("a name is 1 to {longest} letters, digits and any of -_. and not {name:?}");
            return Err(ProblemResponse::field("actions", problem));
        }
        let named =
            named_action(action).map_err(|problem| ProblemResponse::field("actions", format!("{name}: {problem}")))?;
        Ok((name, named))
    };
    actions.into_iter().map(each).collect()
}

fn named_action(action: api::SessionAction) -> Result<NamedAction, String> {
    match (action.signal, action.keys, action.command) {
        (Some(signal), None, None) => {
            let text = match signal {
                api::NumberOrName::Number(number) => number.to_string(),
                api::NumberOrName::Name(name) => name,
            };
            extract::signal_number(&text).map(NamedAction::Signal)
        }
        (None, Some(names), None) => {
            if names.is_empty() || names.len() > limits::INPUT_KEYS_MAX {
                return Err(format!("1 to {} keys", limits::INPUT_KEYS_MAX));
            }
            names.iter().try_for_each(|name| keys::parse(name).map(drop))?;
            Ok(NamedAction::Keys(names))
        }
        (None, None, Some(command)) => check_command(&command).map(|()| NamedAction::Command(command)),
        _ => Err("exactly one of signal, keys and command is needed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<BTreeMap<String, NamedAction>, String> {
        checked(serde_json::from_str(body).expect("well-formed")).map_err(|refusal| refusal.detail)
    }

    #[test]
    fn an_action_is_one_signal_some_keys_or_one_command() {
        let all =
            r#"{"reload":{"signal":"HUP"},"quit":{"keys":["Escape",":","q","Enter"]},"test":{"command":"make test"}}"#;
        let keys = ["Escape", ":", "q", "Enter"].map(str::to_owned).to_vec();
        let expected = [
            ("quit".to_owned(), NamedAction::Keys(keys)),
            ("reload".to_owned(), NamedAction::Signal(1)),
            ("test".to_owned(), NamedAction::Command("make test".to_owned())),
        ];
        assert_eq!(parse(all), Ok(BTreeMap::from(expected)));
    }

    #[test]
    // promise: stop-3
    fn an_action_that_could_not_be_done_is_refused_at_once() {
        for (body, said) in [
            (r#"{"a":{}}"#, "exactly one"),
            (r#"{"a":{"signal":1,"command":"x"}}"#, "exactly one"),
            (r#"{"a":{"signal":"NOPE"}}"#, "a: "),
            (r#"{"a":{"keys":["NoSuchKey"]}}"#, "NoSuchKey"),
            (r#"{"a":{"keys":[]}}"#, "1 to"),
            (r#"{"a b":{"signal":1}}"#, "a name is"),
        ] {
            let problem = parse(body).expect_err(body);
            assert!(problem.contains(said), "{body}: {problem}");
        }
    }
}
