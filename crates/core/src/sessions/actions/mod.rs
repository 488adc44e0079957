//! The primitive actions, a file for each or for some of one subject: the caller's side. A method of the registry finds the
//! session, checks what was asked, and sends the live session a `Request` or reads the files of an ended one.
//!
//! The live session's side of a request is in `../session/`.

mod carried_on;
mod commands;
mod confinement;
pub(super) mod container;
mod create;
mod default_session;
mod directory;
mod environment;
mod execute;
mod idempotency;
mod input;
mod list;
mod named_secrets;
mod output;
mod processes;
mod purge;
mod recording_extent;
mod report;
mod resize;
mod search_range;
mod secret;
mod session_spec;
mod signals;
mod silent_listener;
mod task;
mod task_question;
mod task_wait;
mod terminate;
mod variables;
mod wait_external_conditions;
mod wait_from_cursor;
mod watch;
