//! The primitive actions, a file for each or for some of one subject: the caller's side. A function finds the
//! session, checks what was asked, and sends the live session a `Request` or reads the files of an ended one.
//!
//! The live session's side of a request is in `../session/`.

mod carried_on;
pub(super) mod commands;
pub(super) mod create;
mod create_default;
pub(super) mod default_session;
pub(super) mod drain;
pub(super) mod environment;
pub(super) mod execute;
pub(super) mod idempotency;
pub(super) mod input;
pub(super) mod list;
pub(super) mod missed_ends;
pub(super) mod named_secrets;
pub(super) mod output;
mod output_view;
mod positions;
pub(super) mod processes;
pub(super) mod purge;
mod range_text;
pub(super) mod recording_extent;
pub(super) mod rename;
mod report;
pub(super) mod resize;
pub(super) mod restart;
pub(super) mod screen;
pub(super) mod search_range;
pub(super) mod secret;
pub(super) mod signals;
mod start_default;
pub(super) mod take_over;
pub(super) mod task;
mod task_view;
mod task_wait;
pub(super) mod terminate;
pub(super) mod terminate_unreachable;
pub(super) mod tokens;
pub(super) mod wait_from_cursor;
pub(super) mod watch;
