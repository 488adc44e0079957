//! The start of a session: a checked request, its container and its spec, and then its holder.

pub(super) mod again;
pub(super) mod claim_name;
pub(super) mod confinement;
mod container;
pub(super) mod created;
pub(super) mod directory;
pub(super) mod effective_profile;
pub(super) mod launch_once;
pub(super) mod launcher;
pub(super) mod policy_of_new;
pub(super) mod prepare;
mod profile_secrets;
mod quota;
pub(super) mod request;
mod spec;
pub(super) mod start;
pub(super) mod variables;
mod wanted_shell;
