//! The OS edge of ptyd: pseudo-terminals, spawning, signals, sockets with kernel credentials and `/proc`.
//!
//! This is the only crate with `unsafe`; every block states why it is sound. It depends on nothing of ours and
//! decides nothing: it gives typed, narrow access to what the kernel offers (Linux; the edge is here so that
//! another system can come).

pub mod cgroup;
pub mod fault;
pub mod memory;
pub mod process;
pub mod pty;
pub mod signal;
pub mod socket;
pub mod spawn;
pub mod time;
pub mod user;
