//! The fields of a spec, whatever the layout of its file.

use sys::confinement::Rules;

/// Everything that a holder needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec {
    /// The session's id.
    pub session: String,
    /// The shell's path, for execve(2).
    pub program: Vec<u8>,
    /// Its arguments, the first one being its name.
    pub argv: Vec<Vec<u8>>,
    /// Its whole environment, `NAME=value`.
    pub env: Vec<Vec<u8>>,
    /// Its first working directory.
    pub cwd: Vec<u8>,
    /// Its file mode mask.
    pub umask: u32,
    /// The terminal's width in cells.
    pub cols: u16,
    /// The terminal's height in cells.
    pub rows: u16,
    /// How many bytes of output are kept at least; 0 keeps all.
    pub journal_bytes_max: u64,
    /// Whether splice(2) from a terminal into a file of this file system was seen to work.
    pub may_splice: bool,
    /// Whether descendants stay alive when the session ends.
    pub keeps_descendants: bool,
    /// Fields that only the server understands: name, owner, and so on.
    pub meta: Vec<u8>,
    /// The soft limit of open files for the shell (the server raises its own); 0 leaves it.
    pub open_files: u64,
    /// The `cgroup.procs` files of the control groups that the shell joins.
    pub groups: Vec<Vec<u8>>,
    /// The hard limits of the shell and its programs.
    pub hard_limits: HardLimits,
    /// Another user whose shell it is: uid, gid and all groups, in this order; empty for the holder's own.
    pub identity: Vec<u32>,
    /// The highest output rate in bytes per second; 0 is unlimited.
    pub output_rate: u64,
    /// How the shell takes commands and reports their ends.
    pub handover: Handover,
    /// The rules that confine the shell and its programs; the holder adds the terminal and a folder for temporary files.
    pub confinement: Option<Rules>,
}

/// Limits that the kernel keeps; 0 leaves one as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HardLimits {
    /// Open files of each process.
    pub open_files: u64,
    /// The address space of each process in bytes.
    pub address_space: u64,
    /// The processes and threads of a sandbox, its first process included.
    pub tasks: u64,
}

/// How a shell takes commands and reports their ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handover {
    /// The way on which it takes them.
    pub method: HandoverMethod,
    /// The descriptor on which the shell reports; 0 is [`crate::ATTESTATION_FD`].
    pub attestation_fd: u32,
    /// The script of a shell that cannot open it by path, because it is another user's or confined: the shell inherits it as
    /// [`crate::SCRIPT_FD`]. Empty if the shell opens it by path.
    pub script: Vec<u8>,
    /// The line with which a shell with keys takes a plain command in its usual state from [`crate::COMMAND_FD`]. Empty if
    /// it has none.
    pub short_line: Vec<u8>,
    /// The shell keeps its editor's modes while it runs hooks of its prompt, so the modes do not show that the editor reads.
    pub hooks_in_editor_modes: bool,
    /// The shell reads the script behind the user's files.
    pub script_is_last: bool,
}

/// The way on which a shell takes commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HandoverMethod {
    /// The program has none of our hooks: the server types commands as input, and nothing attests their ends.
    #[default]
    Typed,
    /// The shell's line editor has our private keys.
    Keys,
    /// The holder types this line, with the command's id and nonce in the place of `{}`.
    Line(Vec<u8>),
    /// As [`Self::Keys`], but the shell reports in its output instead of on a descriptor, and reads the command from a
    /// file in the session's folder.
    InBand,
}

impl Handover {
    /// Whether the shell has our hooks.
    #[must_use]
    pub fn has_hooks(&self) -> bool {
        self.method != HandoverMethod::Typed
    }

    /// The line that hands a command over, if the shell takes lines.
    #[must_use]
    pub fn line(&self) -> Option<&[u8]> {
        match &self.method {
            HandoverMethod::Line(line) => Some(line),
            HandoverMethod::Typed | HandoverMethod::Keys | HandoverMethod::InBand => None,
        }
    }

    /// Whether the shell reports in its output.
    #[must_use]
    pub fn is_in_band(&self) -> bool {
        self.method == HandoverMethod::InBand
    }
}
