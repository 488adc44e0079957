//! Takes the keyboard of a session, and returns it.

use crate::action::{ActionError, Hold, Outcome, SessionView, Take, Taken};
use crate::ids::SessionId;
use crate::limits::TAKE_OVER_MAX;
use crate::principal::Principal;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// Takes the keyboard for a person.
pub(in crate::sessions) async fn take(
    services: &Services,
    principal: &Principal,
    take: &Take,
) -> Result<Outcome, ActionError> {
    check_person(principal)?;
    if principal.client.is_none() {
        let problem =
            "send this header with a name for the client, so that ptyd can tell its input from the others'".to_owned();
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

/// Refuses tools, programs that are known to be in a session, and tokens with bounds: agents have these, and shut no person out. To
/// drive gives no other power, so a browser elsewhere needs no further proof of a person than to type.
fn check_person(principal: &Principal) -> Result<(), ActionError> {
    let why = if principal.is_program() {
        "only a person can take a keyboard; MCP tools and programs in a session cannot"
    } else if principal.is_bound() {
        "a restricted token cannot take a keyboard; use a token without profiles, confinement and policy"
    } else {
        return Ok(());
    };
    Err(ActionError::Denied { why: why.to_owned() })
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
