//! Command policies: named sets of rules, and the verdict of one on a command.
//!
//! Two analysers read a command, for two purposes. [`lexer`] is small and strict: only of what it reads a policy can say
//! `allow`, because it refuses everything that bash would expand, redirect or define. [`scan`] reads all of bash's grammar
//! as far as it can be read without running it, and can only make a verdict stricter. Neither stands in for the other.
//!
//! Nothing here reads a file, a socket, a process or a clock: text in, verdict out.

#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod file;
mod glob;
mod hygiene;
mod judge;
mod lexer;
mod mistake;
mod provable_environment;
mod remembered;
mod rule;
mod runners;
mod scan;
mod words;

pub use file::Policies;
pub use hygiene::{ANALYSED_BYTES_MAX, unfit};
pub use judge::{Policy, Ruling, Standing};
pub use mistake::Mistake;
pub use provable_environment::{doubtful_environment, harmless_variable};
pub use remembered::{
    REMEMBERED_HEAD, REMEMBERED_PER_POLICY_MAX, Remembered, remembered_entry, remembered_file, unfit_to_remember,
};
pub use rule::Verdict;
