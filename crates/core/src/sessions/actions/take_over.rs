//! Takes the keyboard of a session, and returns it.

use crate::action::{ActionError, Hold, Outcome, SessionView, Take, Taken};
use crate::ids::SessionId;
use crate::limits::TAKE_OVER_MAX;
use crate::principal::Principal;
use crate::sessions::person::check_person;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// Takes the keyboard for a person. A policy judges what a bound token types, and other clients of its principal may not be bound: so
/// such a token shuts nobody out.
pub(in crate::sessions) async fn take(
    services: &Services,
    principal: &Principal,
    take: &Take,
) -> Result<Outcome, ActionError> {
    check_person(principal)?;
    if principal.is_bound() {
        let why = "a token with bounds cannot take a keyboard; use one without";
        return Err(ActionError::Denied { why: why.to_owned() });
    }
    if principal.client.is_none() {
        let problem = "name this client in the header, so that its input is told from that of others".to_owned();
        return Err(ActionError::Invalid { field: "Ptyd-Client", problem });
    }
    let Take { session, lasts, forces, is_held } = take;
    if lasts.is_zero() || *lasts > TAKE_OVER_MAX {
        let problem = format!("must be more than 0 and at most {} seconds", TAKE_OVER_MAX.as_secs());
        return Err(ActionError::Invalid { field: "for", problem });
    }
    let handle = services.sessions.live(principal, session).await?;
    let (hold, dropped) = is_held.then(Hold::new).unzip();
    let (by, lasts, forces) = (principal.typist(), *lasts, *forces);
    handle.ask(|reply| Request::Take { by, lasts, forces, hold: dropped, reply }).await??;
    let session = services.sessions.live_view(&handle).await?;
    Ok(Outcome::Taken(Box::new(Taken { session, hold })))
}

/// Returns the keyboard, and the session afterwards. Only a person frees it from another driver.
pub(in crate::sessions) async fn give_back(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    forces: bool,
) -> Result<SessionView, ActionError> {
    if forces {
        check_person(principal)?;
    }
    let handle = services.sessions.live(principal, session).await?;
    let by = principal.typist();
    handle.ask(|reply| Request::GiveBack { by, forces, reply }).await??;
    services.sessions.live_view(&handle).await
}
