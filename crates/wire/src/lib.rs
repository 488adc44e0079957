//! Everything that a server and a holder share: the frames between them, the spec of a session, the claim to its folder,
//! and the names in that folder.
//!
//! Holders live longer than the server that started them, so everything here is only ever added to. The holder links this
//! crate: no async runtime, no JSON, no terminal emulation.

#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod claim;
mod frames;
mod spec;

pub use claim::{Claim, Holding};
pub use frames::{
    Activity, ENDS_LINE, FRAME_BYTES_MAX, FrameTooLarge, Frames, FromHolder, Hello, Key, NO_KEY, Observed, PROTOCOL,
    ShownBy, State, Status, Tail, Target, ToHolder, in_part, is_same_name, line_ends, typed_in_part,
};
pub use spec::{Handover, HandoverMethod, HardLimits, Spec};
pub use sys::confinement::{Namespaces, Rules};

/// The socket in a session's folder on which its holder listens.
pub const SOCKET_FILE: &str = "control";
/// The file in a session's folder that says how the session was started.
pub const SPEC_FILE: &str = "spec";
/// Its successor while it is written.
pub(crate) const NEW_SPEC_FILE: &str = "spec.new";
/// The folder for the temporary files of a confined session, while it lives.
pub const TEMPORARY_FOLDER: &str = "tmp";
/// The file in a session's folder that says which process holds it.
pub const CLAIM_FILE: &str = "holder";
/// The descriptor on which the shell finds its end of the attestation socket.
pub const ATTESTATION_FD: i32 = 97;
/// The descriptor on which a shell with our hooks finds the staged command.
pub const COMMAND_FD: i32 = 96;
/// The descriptor on which a shell that cannot open its script by path finds it (for zsh the script's folder).
pub const SCRIPT_FD: i32 = 95;
/// The number of the limit of a session's output rate in its events: the one limit that a holder keeps by itself.
pub const OUTPUT_RATE: u8 = 9;
/// The number of the memory limit in a session's events. The holder counts its kills once more if the shell was killed.
pub const MEMORY: u8 = 2;
/// The line in a holder's log if it gets no terminal; the kernel's error follows.
pub const NO_TERMINAL: &str = "no terminal can be opened";
/// The argument with which the holder's binary tries splice(2) in a folder instead of holding a session.
pub const SELF_TEST: &str = "--self-test";
/// The beginning of the name of a folder that is none: a holder with it waits on its standard input for the path of its session's
/// folder, which has the same length.
pub const SPARE: &str = "spare-";
/// The argument with which the holder's binary is the first process of a container, and connects to the socket that the next
/// argument names.
pub const FIRST_IN_CONTAINER: &str = "--first-in-container";
/// The exit code of the self-test where splice(2) carries the output.
pub const SPLICE_WORKS: i32 = 0;
/// The same where output has to be copied.
pub const SPLICE_FAILS: i32 = 3;
