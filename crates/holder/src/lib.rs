//! The holder: one small process per session that owns the PTY, the shell and the journal.
//!
//! This library holds what both ends share ([`wire`], [`spec`], [`claim`]) and the holder itself ([`run`]). It depends on no
//! async runtime, no JSON, no HTTP and no terminal emulation; it moves bytes and keeps records, and understands only
//! as much of them as it takes to start a command and to know that one ended.

#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

pub mod claim;
pub mod spec;
pub mod wire;

mod connection;
mod event_loop;
mod folder;
mod foreground_job;
mod foreground_sampler;
mod input_queue;
mod output_pump;
mod output_throttle;
mod prompt_marks;
mod shell_state;
mod termination;

pub use event_loop::run;
pub use output_pump::splice_works;
pub use output_throttle::OUTPUT_RATE;

/// The socket in a session's folder on which its holder listens.
pub const SOCKET_FILE: &str = "control";
/// The file in a session's folder that says how the session was started.
pub const SPEC_FILE: &str = "spec";
/// The file in a session's folder that says which process holds it.
pub const CLAIM_FILE: &str = "holder";
/// The descriptor on which the shell finds its end of the attestation socket.
pub const ATTESTATION_FD: i32 = 97;
/// Where a shell that may not look for them finds the staged command and its script (for zsh the folder of it).
pub const COMMAND_FD: i32 = 96;
/// See [`COMMAND_FD`].
pub const SCRIPT_FD: i32 = 95;
