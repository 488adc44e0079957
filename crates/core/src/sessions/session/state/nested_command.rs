//! The state of a command that was typed into a nested shell.

use tokio::time::Instant;

/// The actor's state of a command that was typed into a nested shell.
#[derive(Debug, Default)]
pub(crate) struct NestedShell {
    /// When it was typed; the marker of its beginning comes soon after, or never.
    pub(crate) typed_at: Option<Instant>,
    /// The process that read the terminal before, and whether in canonical mode: a shell's editor does not use it, its
    /// `read` does. Unknown for a command that an earlier server typed.
    pub(crate) reader: Option<(u32, bool)>,
    /// The foreground was interrupted or stopped since.
    pub(crate) is_interrupted: bool,
    /// Since when, after an interrupt, the same program reads again.
    pub(crate) reads_since: Option<Instant>,
    /// When the newest command ended or the foreground was interrupted: the nested shell may not be at its prompt yet.
    pub(crate) stirred_at: Option<Instant>,
}
