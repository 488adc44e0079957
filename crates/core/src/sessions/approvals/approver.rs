//! Says who may decide on a request.

use crate::action::ActionError;
use crate::principal::{Door, Principal};

/// The one who asks.
pub(super) struct Asker<'a> {
    /// The first maker of the principal's token, or the principal itself.
    pub(super) first_maker: &'a str,
    /// Whether a program in a session has asked.
    pub(super) is_of_program: bool,
    pub(super) door: Door,
}

/// Refuses a decision on one's own request, and on one from a token with the same first maker.
///
/// * The caller of a tool and a program in a session have the user's name, but the user may decide on their requests.
/// * A token of scope admin can type into every session, so it does not decide on requests of a program in a session.
pub(super) fn check_approver(approver: &Principal, asker: &Asker<'_>) -> Result<(), ActionError> {
    let is_user = approver.pass.is_none();
    let why = if asker.is_of_program && !is_user {
        "a program in a session asked, and a token of scope admin may have started that program: only the user can \
         decide, at the command line"
    } else if asker.first_maker == approver.first_maker()
        && !(is_user && (asker.door == Door::Mcp || asker.is_of_program))
    {
        "you cannot approve your own request, or one of a token with the same first maker; use a token of scope admin that the user made for this"
    } else {
        return Ok(());
    };
    Err(ActionError::Denied { why: why.to_owned() })
}
