//! The kinds of shells, by program name. Another shell of a known kind is one more row.

use super::scripts::Script;
use super::start::{Shell, Start};
use super::{bash, fish, nu, other, posix, zsh};

/// How commands are handed over to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Private keys in readline.
    Bash,
    /// Private keys in its line editor.
    Zsh,
    /// Private keys in its line editor.
    Fish,
    /// A typed line; the shell reads our script by `ENV`.
    Posix,
    /// A private key in its line editor; it reports ends in its output.
    Nu,
    /// Without our script: a typed command ends when the program reads the terminal again.
    Other,
}

impl Kind {
    /// Programs by file name.
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
        // It loses input that is typed while its editor draws.
        ("ksh93", Self::Other),
        ("yash", Self::Other),
    ];

    /// The kind of a file name, which may end with a version (`zsh-5.9`).
    pub(super) fn of(name: &str) -> Self {
        let stem = name.split('-').next().unwrap_or(name);
        Self::NAMES.iter().find(|(known, _)| *known == stem).map_or(Self::Other, |(_, kind)| *kind)
    }

    /// Its integration script.
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
