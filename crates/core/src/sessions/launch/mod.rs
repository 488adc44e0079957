//! The start of a session: its spec, made of the request, its profile and its policy, and then its holder.

mod confinement;
mod container;
pub(super) mod directory;
pub(super) mod launcher;
pub(super) mod policy_of_new;
mod quota;
pub(super) mod setting;
pub(super) mod spec;
pub(super) mod start;
pub(super) mod variables;
