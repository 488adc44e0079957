//! The take-over of the session: who drives it, and the only gate before what anybody types.
//!
//! ```text
//! free ──take──► driven ──returned, forced, time, last hold dropped, session's end──► free
//! ```
//! While somebody drives, a request of another client that runs or types something waits as long as it says, and is refused then.
//! A request that was admitted before goes on. Signals and ends pass: nobody may be kept from calming what runs.

pub(in crate::sessions::session) mod state;
pub(super) mod steps;
