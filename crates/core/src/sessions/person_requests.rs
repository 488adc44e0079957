//! The requests that wait for a person: secrets that programs read, and approvals that policies ask for.

use super::approvals::pending::Approvals;
use super::secret_requests::SecretRequests;

#[derive(Debug, Default)]
pub(crate) struct PersonRequests {
    pub(super) secrets: SecretRequests,
    pub(crate) approvals: Approvals,
}
