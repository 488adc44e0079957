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
mod start;
mod zsh;

use std::path::Path;

use kind::Kind;
pub(crate) use scripts::Integration;
use start::Start;
pub(crate) use start::{ScriptAccess, Shell, Wanted};

use crate::action::ActionError;
use crate::host::{Host, Programs};

/// The requirement's name for PowerShell (terminal-management.md §3.4.1).
const POWERSHELL: &str = "powershell";
/// The name of its program on Linux.
const PWSH: &str = "pwsh";

impl Integration {
    /// Finds the requested shell, or the user's own.
    pub(crate) fn pick(&self, host: &dyn Host, wanted: &Wanted<'_>) -> Result<Shell, ActionError> {
        self.pick_among(host, wanted, || find::users_own(host, wanted))
    }

    /// Finds the requested shell among the programs of a file system, or the usual one.
    pub(crate) fn pick_among(
        &self,
        host: &dyn Programs,
        wanted: &Wanted<'_>,
        usual: impl FnOnce() -> String,
    ) -> Result<Shell, ActionError> {
        self.write_missing().map_err(|e| ActionError::Start { why: format!("the shell integration: {e}") })?;
        let asked = match wanted.shell {
            Some(asked) => asked.to_owned(),
            None => usual(),
        };
        let asked_program = if asked == POWERSHELL { PWSH } else { &asked };
        let program =
            host.resolve_program(asked_program, wanted.path).ok_or_else(|| not_found(host, &asked, wanted))?;
        // A link such as `sh` selects a behaviour, its target is the program.
        let real = host.real_path(&program).unwrap_or_else(|| program.clone());
        let name = |path: &Path| path.file_name().map_or_else(|| asked.clone(), |n| n.to_string_lossy().into_owned());
        let (asked_name, real_name) = (name(&program), name(&real));
        let kind = Kind::of(&real_name);
        let start = Start { name: &asked_name, program: &program, wanted, scripts: self };
        let mut shell = kind.start(&start);
        let inherits = wanted.scripts == ScriptAccess::Descriptor && shell.handover.has_hooks();
        if let (true, Some(script)) = (inherits, kind.script()) {
            shell.handover.script = self.place(script, None);
        }
        if wanted.clean && kind == Kind::Other {
            let problem = format!("rc: {asked_name} cannot be started clean, because ptyd has no script for it");
            return Err(ActionError::Invalid { field: "profile", problem });
        }
        let shown = match kind {
            Kind::Other if asked == POWERSHELL => asked,
            Kind::Other => asked_name,
            _ => real_name,
        };
        Ok(Shell { name: shown, program, ..shell })
    }
}

fn not_found(host: &dyn Programs, asked: &str, wanted: &Wanted<'_>) -> ActionError {
    let is_there = |name: &&str| host.resolve_program(name, wanted.path).is_some();
    let there: Vec<_> = Kind::NAMES.iter().map(|(name, _)| *name).filter(is_there).collect();
    let problem = if asked == POWERSHELL {
        format!(
            "PowerShell is missing: there is no {PWSH:?} on PATH; install the package `powershell` from \
             https://learn.microsoft.com/powershell, or give the program's absolute path"
        )
    } else if asked.contains('/') {
        format!("{asked:?} is not the absolute path of a program; the installed shells are {}", there.join(", "))
    } else {
        let there = there.join(", ");
        format!(
            "no program {asked:?} on PATH; the installed shells are {there}; install it, or give another name or an absolute path"
        )
    };
    ActionError::Invalid { field: "shell", problem }
}

#[cfg(test)]
mod tests;
