//! Sessions: their manager, the actor of each, and how the past ones are read.
//!
//! `adoption.rs` takes on the sessions that are there; `session.rs` owns one live session's state; `ledger.rs` replays the ground state; `launch.rs` starts and finds
//! holders, `holders.rs` knows whether one lives; `manager.rs` keeps the handles; `reports.rs` turns what an actor says into what a caller sees; `feed.rs` is what
//! a viewer is shown; `desk.rs` is the one-tool shell; `seek.rs` asks `search.rs` for lines of the text.

mod adoption;
mod again;
mod bounds;
mod bulletin;
mod create;
mod desk;
mod environment;
mod feed;
mod holders;
mod inside;
mod judgement;
mod launch;
mod ledger;
mod link;
mod lists;
mod loader;
mod looks;
mod manager;
mod mending;
mod meta;
mod outside;
mod past;
mod permits;
mod places;
mod processes;
mod purge;
mod recording;
mod reports;
mod retention;
mod room;
mod search;
mod seek;
mod session;
mod snapshot;
mod supervision;
mod tape;
#[cfg(test)]
mod tests;
mod turns;
mod unreachable;
mod view;
mod viewing;
mod wait;

pub use feed::Feed;
pub use launch::holder_is_static;
pub use manager::Manager;

/// The variable by which a session's processes are known.
pub(crate) const TAG: &str = "PTYD_SESSION";
/// Commands that were typed into a shell without our hooks, or inside, are numbered from here: the holder does not count
/// them.
pub(crate) const TYPED_IDS_FROM: u32 = 1_000_000;
