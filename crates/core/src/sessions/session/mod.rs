//! One live session: a machine of steps, the only owner of its state.
//!
//! ```text
//! Creating ──first prompt──► Running ──shell exits or holder gone──► Terminated
//!
//! requests ─┐                          ┌─► frames for the holder, rows of the history
//! frames ───┼─► Session::step(now, …) ─┼─► events for viewers, counts
//! time ─────┘         │                └─► answers of callers (oneshot)
//!                events, then output up to the tail
//! ```
//! A step reads the session's files up to the tail that its holder has published, and the machine through its host. It
//! reads no clock, waits for nothing and sends nothing. [`actor`] makes inputs of what wakes it, and does what a step wants
//! done.
//!
//! A file takes names only from files above it in this list:
//!
//! ```text
//! now.rs, fullscreen.rs                the time of a step; the output that full-screen programs paint
//! question_ending.rs                   how a question ends in the output
//! requests.rs                          the requests and answers
//! draw_task.rs                         draws the screen at low priority
//! step_input.rs, effects.rs            the inputs and the effects of a step
//! machine/                             the state (`session.rs`) and its steps, by subject: `expiry.rs`, `waits/`
//! publish.rs, pattern_matching.rs      what viewers follow, and the turns of costly patterns
//! actor.rs                             the task
//! ```

mod actor;
mod draw_task;
mod effects;
mod fullscreen;
mod machine;
mod now;
mod pattern_matching;
mod publish;
mod question_ending;
mod requests;
mod step_input;
#[cfg(test)]
mod tests;

pub(crate) use actor::Actor;
pub(crate) use fullscreen::Painted;
pub(crate) use machine::session::Session;
pub(crate) use now::Now;
pub(crate) use requests::{
    Ended, Finished, KeyUse, NewInput, Request, ScreenSnapshot, SecretPrompt, Snapshot, Started, Typing, ViewerLimit,
};
