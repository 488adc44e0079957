//! Checks the owner, the name, the size and the limits that a request asks for.

use super::confinement::namespaces;
use super::launcher::Launcher;
use crate::action::{ActionError, Create, Limits};
use crate::limits;
use crate::principal::Principal;
use crate::profile::Profile;
use crate::sessions::names::{WantedName, checked_name};
use crate::sessions::resource_limits;

/// The owner of the session that a request starts.
pub(in crate::sessions) fn owner(principal: &Principal, request: &Create) -> Result<String, ActionError> {
    match &request.owner {
        Some(owner) if *owner != principal.name && !principal.is_admin() => {
            Err(ActionError::Denied { why: "only an admin starts sessions for others; omit owner".to_owned() })
        }
        Some(owner) => checked_name(Some(owner)).map(|o| o.unwrap_or_else(|| principal.name.clone())),
        None => Ok(principal.name.clone()),
    }
}

/// The name of the session that a request starts.
pub(in crate::sessions) fn wanted_name(principal: &Principal, request: &Create) -> Result<WantedName, ActionError> {
    Ok(match checked_name(request.name.as_deref())? {
        Some(name) => WantedName::Exactly(name),
        None if request.is_by_model => WantedName::of_client(principal.origin.client_name.as_deref()),
        None => WantedName::Nothing,
    })
}

/// Checks the size of a terminal.
pub(in crate::sessions) fn checked_size(cols: Option<u16>, rows: Option<u16>) -> Result<(u16, u16), ActionError> {
    let (cols, rows) = (cols.unwrap_or(limits::COLS_DEFAULT), rows.unwrap_or(limits::ROWS_DEFAULT));
    for (field, value, max) in [("cols", cols, limits::COLS_MAX), ("rows", rows, limits::ROWS_MAX)] {
        if !(1..=max).contains(&value) {
            return Err(ActionError::Invalid { field, problem: format!("{value} is not between 1 and {max}") });
        }
    }
    Ok((cols, rows))
}

/// The limits of a new session: the first of request, profile and default that sets one.
pub(super) fn limits_of(
    launcher: &Launcher,
    principal: &Principal,
    request: &Create,
    profile: &Profile,
) -> Result<Limits, ActionError> {
    let inactivity = principal.pass.as_ref().map(|_| limits::TOKEN_INACTIVITY);
    let default = launcher.limits.or(Limits { inactivity, ..Limits::default() });
    let asked = request.limits.or(profile.limits.or(default));
    let limits = resource_limits::within(asked, &launcher.limits_max)?;
    // A token that is bound to profiles gets no more by a request than they give.
    if principal.profiles().is_some() {
        resource_limits::within(limits, &profile.limits)?;
    }
    let namespaces = profile.confinement.as_ref().map(|confinement| namespaces(confinement.tier)).unwrap_or_default();
    resource_limits::can_be_kept(&*launcher.backends.host, &limits, namespaces)?;
    Ok(limits)
}
