//! The check of a principal before an action of persons: a decision on a request, a new token, a named secret.

use crate::action::ActionError;
use crate::principal::Principal;

/// Refuses programs in sessions and tools.
pub(super) fn check_person(principal: &Principal) -> Result<(), ActionError> {
    principal.may_be_a_person().map_err(|why| ActionError::Denied { why: why.to_owned() })
}
