//! Named actions of a session: a command, keys, or a signal for the foreground.

use std::time::Duration;

use super::caller::{Caller, mismatch};
use crate::action::{
    Action, ActionError, Budget, Execute, Input, InputBytes, NamedAction, Outcome, SignalTarget, TargetShell, Wait,
};
use crate::ids::SessionId;
use crate::{keys, limits};

/// Looks the name up and performs its action; a signal is followed by a look at the session.
pub(super) async fn perform(
    caller: Caller<'_>,
    session: SessionId,
    name: String,
    key: Option<String>,
) -> Result<Outcome, ActionError> {
    let budget = Budget::from(limits::BUDGET_CHARS);
    let named = match caller.act(Action::FindNamedAction { session: session.clone(), name }).await? {
        Outcome::NamedAction(named) => named,
        other => return Err(mismatch(&other)),
    };
    let action = match named {
        NamedAction::Command(command) => Action::Execute(Execute {
            session,
            command,
            shell: TargetShell::Own,
            allowed_in: None,
            wait: None,
            time_limit: None,
            key,
            budget,
        }),
        NamedAction::Keys(names) => {
            let keys = names.iter().map(|name| keys::parse(name)).collect::<Result<Vec<_>, _>>();
            let bytes = InputBytes::Keys(keys.map_err(|why| ActionError::Internal { why })?.concat());
            Action::Input(Input {
                session,
                bytes,
                is_secret: false,
                is_hidden: false,
                wait: None,
                key,
                budget,
                without_echo: false,
                meant_for: None,
            })
        }
        NamedAction::Signal(signo) => {
            let signal = Action::Signal { session: session.clone(), target: SignalTarget::Foreground, signo };
            caller.session(signal).await?;
            Action::Wait { session, wait: Wait::at_most(Duration::ZERO), command: None, budget, moves_cursor: true }
        }
    };
    caller.act(action).await
}
