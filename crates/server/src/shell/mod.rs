//! Chooses the program of a session, and starts it so that it reports to its holder.
//!
//! A shell with an integration gets our script and attests its ends ([`Kind`] lists them, one file each). Any other
//! program is started unchanged: a typed command ends when the kernel shows that the program reads the terminal again.

mod bash;
mod find;
mod fish;
mod kind;
mod nu;
mod other;
mod posix;
mod scripts;
mod zsh;

use std::path::{Path, PathBuf};

pub(crate) use find::find;
use kind::Kind;
pub(crate) use scripts::Integration;
use scripts::Script;
use wire::{Handover, HandoverMethod};

use crate::action::ActionError;

/// A shell, found and ready to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shell {
    /// `bash`: the name of the program itself, not of a link to it.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) argv: Vec<Vec<u8>>,
    /// Variables that make it read our script.
    pub(crate) env: Vec<(Vec<u8>, Vec<u8>)>,
    /// How it takes commands and reports their ends.
    pub(crate) handover: Handover,
}

/// The requested shell, with its environment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// A name or a path; `None` for the user's own.
    pub(crate) shell: Option<&'a str>,
    pub(crate) login: bool,
    /// Variables of the session's environment that matter to shells.
    pub(crate) path: Option<&'a [u8]>,
    pub(crate) own_shell: Option<&'a [u8]>,
    pub(crate) env: Option<&'a [u8]>,
    pub(crate) zdotdir: Option<&'a [u8]>,
    /// Whether the user's own start-up files are skipped.
    pub(crate) clean: bool,
    /// Whether it runs as another user, who has no access to our folders.
    pub(crate) is_anothers: bool,
}

/// The input for starting a kind of shell.
#[derive(Debug, Clone, Copy)]
struct Start<'a> {
    /// The requested name.
    name: &'a str,
    program: &'a Path,
    wanted: &'a Wanted<'a>,
    scripts: &'a Integration,
}

impl Shell {
    /// A shell whose line editor has our private keys.
    fn with_keys(argv: Vec<Vec<u8>>, env: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let handover = Handover { method: HandoverMethod::Keys, ..Handover::default() };
        Self { argv, env, handover, ..Self::default() }
    }
}

impl Start<'_> {
    /// The path of the script, or of its folder, for the shell.
    fn script(&self, kind: Script) -> Vec<u8> {
        if self.wanted.is_anothers {
            return format!("/proc/self/fd/{}", wire::SCRIPT_FD).into_bytes();
        }
        self.scripts.place(kind)
    }
}

impl Integration {
    /// Finds the requested shell.
    pub(crate) fn pick(&self, wanted: &Wanted<'_>) -> Result<Shell, ActionError> {
        self.is_installed().map_err(|e| ActionError::Start { why: format!("the shell integration: {e}") })?;
        let asked = match wanted.shell {
            Some(asked) => asked.to_owned(),
            None => find::users_own(wanted),
        };
        let program = find(&asked, wanted.path).ok_or_else(|| not_found(&asked, wanted))?;
        // A link such as `sh` selects a behaviour, its target is the program.
        let real = program.canonicalize().unwrap_or_else(|_| program.clone());
        let name = |path: &Path| path.file_name().map_or_else(|| asked.clone(), |n| n.to_string_lossy().into_owned());
        let (asked_name, real_name) = (name(&program), name(&real));
        let kind = Kind::of(&real_name);
        let start = Start { name: &asked_name, program: &program, wanted, scripts: self };
        let mut shell = kind.start(&start);
        if let (true, Some(script)) = (wanted.is_anothers && shell.handover.has_hooks(), kind.script()) {
            shell.handover.script = self.place(script);
        }
        if wanted.clean && kind == Kind::Other {
            let problem =
                format!("rc: {asked_name} cannot be started clean; the shells that ptyd has a script for can");
            return Err(ActionError::Invalid { field: "profile", problem });
        }
        let shown = if kind == Kind::Other { asked_name } else { real_name };
        Ok(Shell { name: shown, program, ..shell })
    }
}

fn not_found(asked: &str, wanted: &Wanted<'_>) -> ActionError {
    let there: Vec<_> = Kind::NAMES.iter().map(|(name, _)| *name).filter(|n| find(n, wanted.path).is_some()).collect();
    let problem = if asked.contains('/') {
        format!("{asked:?} is not an absolute path of a program; there are {}", there.join(", "))
    } else {
        let there = there.join(", ");
        format!("no program {asked:?} on PATH: there are {there}; install it, or give another name or an absolute path")
    };
    ActionError::Invalid { field: "shell", problem }
}

#[cfg(test)]
mod tests;
