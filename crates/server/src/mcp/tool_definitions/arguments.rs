//! Arguments that several tools share, and their validation.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::tool::{ToolCall, ToolError, mismatch};
use ptyd_core::action::{Action, Budget, Ending, InputBytes, Outcome, Pattern, TimeLimit, Wait};
use ptyd_core::ids::SessionId;
use ptyd_core::keys;
use ptyd_core::limits::BUDGET_CHARS;

/// The longest call that an error proposes.
const CALL_SHOWN_MAX: usize = 500;

/// Seconds, with fractions.
#[derive(Debug, Clone, Copy, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub(super) struct Seconds(#[schemars(range(min = 0, max = 3_600))] pub f64);

/// The longest wait of one call. A longer one is meant in milliseconds, as other tools have them.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

impl Seconds {
    /// As a duration.
    pub fn duration(self) -> Result<Duration, ToolError> {
        Duration::try_from_secs_f64(self.0).ok().filter(|d| *d <= WAIT_MAX).ok_or_else(|| {
            ToolError::Said(format!(
                "timeout: {} is not between 0 and {} seconds (not milliseconds)",
                self.0,
                WAIT_MAX.as_secs()
            ))
        })
    }
}

/// The server does this with a command whose timeout is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnTimeout {
    #[default]
    Continue,
    Interrupt,
    Kill,
}

impl OnTimeout {
    /// The limit that it sets to a command with this timeout.
    pub fn time_limit(self, timeout: Option<Duration>) -> Result<Option<TimeLimit>, ToolError> {
        let ending = match self {
            Self::Continue => return Ok(None),
            Self::Interrupt => Ending::Interrupt,
            Self::Kill => Ending::Kill,
        };
        let needed = || ToolError::Said("timeout: is needed with on_timeout interrupt or kill".to_owned());
        Ok(Some(TimeLimit { after: timeout.ok_or_else(needed)?, ending }))
    }
}

/// The budget of an answer's text.
pub(super) fn budget(max_output: Option<usize>) -> Budget {
    Budget::folded(max_output.unwrap_or(BUDGET_CHARS).min(BUDGET_CHARS))
}

/// The session of this id or name.
pub(in crate::mcp) async fn session(call: &ToolCall<'_>, text: &str) -> Result<SessionId, ToolError> {
    if let Ok(id) = SessionId::parse(text) {
        return Ok(id);
    }
    match call.act(Action::FindSession(text.to_owned())).await? {
        Outcome::SessionId(id) => Ok(id),
        other => Err(mismatch(other)),
    }
}

/// A regular expression; an empty text is none. `^` and `$` match at every line, as people who wait for a line expect.
pub(super) async fn pattern(
    call: &ToolCall<'_>,
    field: &'static str,
    text: &str,
) -> Result<Option<Pattern>, ToolError> {
    if text.is_empty() {
        return Ok(None);
    }
    Ok(Some(call.patterns().compile(field, "not a regular expression (Rust regex syntax): ", text).await?))
}

/// Adds the conditions that end a wait.
pub(super) async fn until(call: &ToolCall<'_>, wait: Wait, words: &[String]) -> Result<Wait, ToolError> {
    Ok(wait.until(&call.patterns(), words).await?)
}

/// How names that are not all keys are to be given if the others are text. A misspelt key is not text, so the caller says it.
fn as_text(names: &[String]) -> String {
    let field = match keys::with_text(names) {
        Some(one) => json!({ "keys": [one] }),
        None if names.iter().all(|name| keys::parse(name).is_err()) => json!({ "input": names.concat() }),
        None => return "; nothing was typed".to_owned(),
    };
    let call = field.to_string();
    if call.len() > CALL_SHOWN_MAX {
        "; nothing was typed".to_owned()
    } else {
        format!("; nothing was typed; as text: {call}")
    }
}

/// Input from either text or keys; `None` if there is neither.
pub(super) fn typing(input: &str, names: &[String], end_with_newline: bool) -> Result<Option<InputBytes>, ToolError> {
    match (input.is_empty() && !end_with_newline, names) {
        (true, []) => Ok(None),
        (false, []) => {
            // The byte of the Enter key: the terminal makes a newline of it, and programs in raw mode expect it.
            let enter = if end_with_newline { "\r" } else { "" };
            Ok(Some(InputBytes::of_text(input.to_owned() + enter)))
        }
        (true, names) => {
            let mut keys = Vec::new();
            for name in names {
                let refused = |why| ToolError::Said(format!("keys: {why}{}", as_text(names)));
                keys.extend(keys::parse(name).map_err(refused)?);
            }
            Ok(Some(InputBytes::Keys(keys)))
        }
        (false, _) => {
            Err(ToolError::Said("input and keys: give one of them; use steps to send both in order".to_owned()))
        }
    }
}
