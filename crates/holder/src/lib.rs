//! The holder: one small process per session that owns the PTY, the shell and the journal.
//!
//! It depends on no async runtime, no JSON, no HTTP and no terminal emulation; it moves bytes and keeps records, and
//! understands only as much of them as it takes to start a command and to know that one ended.

#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod attestation;
mod attestation_socket;
mod connection;
mod connections;
pub mod container_init;
mod event_loop;
mod folder;
mod foreground_observer;
mod foreground_sampler;
mod handover;
mod input;
mod input_queue;
pub mod log;
mod memory_kills;
mod nonces;
mod output_backpressure;
mod output_pump;
mod output_throttle;
mod prompt_marks;
mod publication;
mod query_replies;
mod records;
mod session_end;
mod shell_state;
pub mod spare;
mod staging;
mod startup;
mod terminal;
mod termination;

pub use event_loop::run;
pub use output_pump::splice_works;
