//! The holder: one small process per session that owns the PTY, the shell and the journal.
//!
//! This library holds what both ends share ([`wire`], [`spec`], [`claim`]) and the holder itself ([`run`]). It depends on no
//! async runtime, no JSON, no HTTP and no terminal emulation; it moves bytes and keeps records, and understands only
//! as much of them as it takes to start a command and to know that one ended.

#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

pub mod claim;
pub mod spec;
pub mod wire;

mod control;
mod ending;
mod folder;
mod hold;
mod input;
mod job;
mod pace;
mod prompt;
mod prompts;
mod pump;
mod sampler;

pub use hold::run;
pub use pace::OUTPUT_RATE;
pub use pump::splice_works;

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
