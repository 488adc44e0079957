//! The kinds of shells, one row for each name of a program. A shell of a kind that is here is one row more.

use super::scripts::Script;
use super::{Shell, Start, bash, fish, nu, other, posix, zsh};

/// How a program is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Keys of ours in readline.
    Bash,
    /// Keys of ours in its line editor.
    Zsh,
    /// The same.
    Fish,
    /// A line is typed; it reads a script of ours by `ENV`.
    Posix,
    /// A key of ours in its line editor; it tells of ends in the output.
    Nu,
    /// No script of ours: what is typed ends when the program reads the terminal again.
    Other,
}

impl Kind {
    /// Programs by the name of their file.
    pub(super) const NAMES: [(&'static str, Self); 13] = [
        ("bash", Self::Bash),
        ("rbash", Self::Bash),
        ("zsh", Self::Zsh),
        ("zsh5", Self::Zsh),
        ("fish", Self::Fish),
        ("dash", Self::Posix),
        ("ash", Self::Posix),
        ("busybox", Self::Posix),
        ("mksh", Self::Posix),
        ("lksh", Self::Posix),
        ("nu", Self::Nu),
        // It loses what is typed while its editor draws.
        ("ksh93", Self::Other),
        ("yash", Self::Other),
    ];

    /// By the real file's name, in which a version may follow (`zsh-5.9`).
    pub(super) fn of(name: &str) -> Self {
        let stem = name.split('-').next().unwrap_or(name);
        Self::NAMES.iter().find(|(known, _)| *known == stem).map_or(Self::Other, |(_, kind)| *kind)
    }

    /// What makes it speak.
    pub(super) fn script(self) -> Option<Script> {
        match self {
            Self::Bash => Some(Script::Bash),
            Self::Zsh => Some(Script::Zsh),
            Self::Fish => Some(Script::Fish),
            Self::Posix => Some(Script::Posix),
            Self::Nu => Some(Script::Nu),
            Self::Other => None,
        }
    }

    pub(super) fn start(self, start: &Start<'_>) -> Shell {
        match self {
            Self::Bash => bash::start(start),
            Self::Zsh => zsh::start(start),
            Self::Fish => fish::start(start),
            Self::Posix => posix::start(start),
            Self::Nu => nu::start(start),
            Self::Other => other::start(start),
        }
    }
}
