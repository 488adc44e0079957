//! The operating system interface of ptyd: pseudoterminals, spawning, signals, sockets with kernel credentials and
//! `/proc`.
//!
//! This is the only crate with `unsafe`; every block states why it is sound. It depends on no other crate of ours and
//! makes no decisions: it gives typed, narrow access to the kernel (Linux; the interface is here so that another system
//! can be added).

pub mod capacity;
pub mod cgroup;
pub mod confinement;
pub mod fault;
pub mod memory;
#[cfg(test)]
#[path = "../../e2e/src/not_run.rs"]
#[allow(dead_code, reason = "it is for all tests")]
mod not_run;
pub mod priority;
pub mod process;
pub mod pty;
pub mod removal;
pub mod sandbox;
pub mod sealed;
pub mod service_manager;
pub mod signal;
pub mod socket;
pub mod spawn;
pub mod start;
pub mod syscall;
pub mod time;
pub mod user;
