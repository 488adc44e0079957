//! The types for starting a shell: the request, the input for its kind, and the result.

use std::path::{Path, PathBuf};

use wire::{Handover, HandoverMethod};

use super::scripts::{Integration, Script};

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
    pub(crate) scripts: ScriptAccess<'a>,
}

/// How a shell comes by its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ScriptAccess<'a> {
    /// In the state directory.
    #[default]
    Path,
    /// By a descriptor that it inherits: it runs as another user, or is confined without namespaces.
    Descriptor,
    /// In this folder of its own file system. A descriptor of the machine's would lead out of it.
    Folder(&'a Path),
}

/// The input for starting a kind of shell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    /// The requested name.
    pub(super) name: &'a str,
    pub(super) program: &'a Path,
    pub(super) wanted: &'a Wanted<'a>,
    pub(super) scripts: &'a Integration,
}

impl Shell {
    /// A shell whose line editor has our private keys.
    pub(super) fn with_keys(argv: Vec<Vec<u8>>, env: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let handover = Handover { method: HandoverMethod::Keys, ..Handover::default() };
        Self { argv, env, handover, ..Self::default() }
    }
}

impl Start<'_> {
    /// The path of the script, or of its folder, for the shell.
    pub(super) fn script(&self, kind: Script) -> Vec<u8> {
        match self.wanted.scripts {
            ScriptAccess::Path => self.scripts.place(kind, None),
            ScriptAccess::Descriptor => format!("/proc/self/fd/{}", wire::SCRIPT_FD).into_bytes(),
            ScriptAccess::Folder(folder) => self.scripts.place(kind, Some(folder)),
        }
    }
}
