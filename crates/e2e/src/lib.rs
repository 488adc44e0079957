//! The rig of the end-to-end tests: a real server in a home of its own, and sessions that read like the product.
//!
//! Nothing in here knows how ptyd works inside: it starts the binary, speaks REST and looks at `/proc`. A [`Server`]
//! that goes out of scope ends everything that it started and fails the test when anything is left.

mod binary;
mod eventually;
mod home;
mod http;
mod load;
mod mcp;
mod not_run;
mod person;
mod processes;
mod random;
mod server;
mod session;
mod socket;

pub use binary::{Binary, copy_program};
pub use eventually::{PATIENCE, eventually};
pub use home::Home;
pub use http::{Connection, Reply};
pub use load::{Load, Loaded};
pub use mcp::Mcp;
pub use not_run::{in_part, is_program, lacks, not_run};
pub use person::Person;
pub use processes::{Footprint, Pid, footprint, groups, marked, spare_holders, with_descendants};
pub use random::Random;
pub use server::{Server, Start};
pub use session::{Session, seq};
pub use socket::{Socket, SocketMessage};

/// Whether there is time for the long counts (`cargo xtask test --full`, `cargo xtask soak`).
pub fn is_full() -> bool {
    std::env::var_os("PTYD_TEST_FULL").is_some_and(|v| v == "1")
}

/// The long count where there is time for it, else the short one.
pub fn count(short: usize, full: usize) -> usize {
    if is_full() { full } else { short }
}
