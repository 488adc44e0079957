//! The rig of the end-to-end tests: a real server in a home of its own, and sessions that read like the product.
//!
//! Nothing in here knows how ptyd works inside: it starts the binary, speaks REST and looks at `/proc`. A [`Server`]
//! that goes out of scope ends everything that it started and fails the test when anything is left.

pub mod approvals;
pub mod attack;
mod audit;
mod binary;
pub mod confinement;
mod descendants;
mod eventually;
mod follower;
mod home;
mod http;
pub mod inside;
mod join;
pub mod limits;
mod load;
mod mcp;
pub mod metrics;
mod not_run;
mod person;
pub mod podman;
pub mod policy;
pub mod printer;
mod processes;
mod random;
mod redis;
mod server;
mod session;
pub mod shells;
mod socket;
mod tokens;
pub mod user;

pub use audit::audit_lines;
pub use binary::{Binary, copy_program};
pub use descendants::{holder, sleepers, spawned};
pub use eventually::{PATIENCE, eventually, passes};
pub use follower::Follower;
pub use home::{Home, configure};
pub use http::{Connection, Reply};
pub use join::join_all;
pub use load::{Load, Loaded};
pub use mcp::Mcp;
pub use not_run::{in_part, is_program, lacks, not_run};
pub use person::Person;
pub use processes::{Footprint, Pid, footprint, groups, marked, spare_holders, with_descendants};
pub use random::Random;
pub use redis::Redis;
pub use server::{Server, Start};
pub use session::{Session, has_builtins, seq};
pub use socket::{Socket, SocketMessage};
pub use tokens::token;

/// Whether there is time for the long counts (`cargo xtask test --full`, `cargo xtask soak`).
pub fn is_full() -> bool {
    std::env::var_os("PTYD_TEST_FULL").is_some_and(|v| v == "1")
}

/// The long count where there is time for it, else the short one.
pub fn count(short: usize, full: usize) -> usize {
    if is_full() { full } else { short }
}
