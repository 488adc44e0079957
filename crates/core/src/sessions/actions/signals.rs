//! Sends signals to a session's processes, and lists the signals that were sent.

use wire::Target;

use super::execute;
use crate::action::{ActionError, Outcome, SignalTarget, SignalView};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// Sends a signal, and returns the session afterwards.
pub(in crate::sessions) async fn signal(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    target: SignalTarget,
    signo: i32,
) -> Result<Outcome, ActionError> {
    let handle = services.sessions.live(principal, session).await?;
    let target = match target {
        SignalTarget::Foreground => Target::Foreground,
        SignalTarget::Session => Target::Session,
        SignalTarget::Process(pid) => Target::Process(pid),
    };
    let ignored_by = handle.ask(|reply| Request::Signal { target, signo, reply }).await??;
    let view = match services.sessions.live_view(&handle).await {
        Err(ActionError::Ended { .. }) => execute::after(services, principal, &handle).await?.0,
        view => view?,
    };
    Ok(Outcome::Signalled(Box::new(view), ignored_by))
}

pub(in crate::sessions) async fn signals(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
) -> Result<Vec<SignalView>, ActionError> {
    match services.sessions.find(principal, session).await? {
        SessionRef::Live(handle) => handle.ask(Request::Signals).await,
        SessionRef::Unreachable(unreachable) => Err(unreachable.error()),
        SessionRef::EndedSession(past) => {
            Ok(crate::sessions::views::signal_views(&*services.backends.host, &past.timeline))
        }
    }
}
