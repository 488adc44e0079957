//! The machine of the sessions and their holders, behind two ports: [`Host`] and [`HolderBackend`](holders::HolderBackend).

pub(crate) mod capacity;
pub(crate) mod containers;
#[cfg(test)]
pub(crate) mod fake;
mod holder_program;
pub(crate) mod holders;
mod local;
mod port;
pub(crate) mod sensitive_paths;

#[cfg(test)]
pub(crate) use fake::{FakeHost, process};
pub use holder_program::holder_is_static;
pub(crate) use local::LocalHost;
pub use local::confinement_hindrance;
pub(crate) use port::{
    Bounds, ControlGroup, Controller, Counts, FileFacts, Host, Identity, Process, Programs, TAG, User, descendants,
};
