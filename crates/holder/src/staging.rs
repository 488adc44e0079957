//! The place from which the shell takes the next command, in the form of each kind of shell.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use sys::sealed::SealedMemory;
use wire::{COMMAND_FD, FRAME_BYTES_MAX, Handover, HandoverMethod};

/// The staged command at its longest: the longest text that a frame can carry, each character of which is a quote, and its head.
/// Only what is used takes memory.
const CAPACITY: usize = 4 * FRAME_BYTES_MAX + 4096;
/// The length of the head for shells with keys, which some of them read by itself.
const HEAD_BYTES: usize = 48;

#[derive(Debug)]
pub(crate) enum Staging {
    /// A program without our hooks takes no commands.
    Nothing,
    /// Memory that no other process can change: the shell gets the text that was asked for. It inherits the descriptor.
    Inherited { memory: SealedMemory, descriptor: File, is_script: bool },
    /// nushell can neither read a descriptor nor source a memory file: it opens the head, and the text in the session's folder.
    Named { head: File, text: File },
}

impl Staging {
    pub(crate) fn of(handover: &Handover, folder: &Path) -> io::Result<Self> {
        Ok(match &handover.method {
            HandoverMethod::Typed => Self::Nothing,
            method @ (HandoverMethod::Keys | HandoverMethod::Line(_)) => {
                // Memory: a full disk must not keep a command from running.
                let (memory, descriptor) = SealedMemory::new(c"command", CAPACITY)?;
                Self::Inherited { memory, descriptor, is_script: *method != HandoverMethod::Keys }
            }
            HandoverMethod::InBand => {
                let head = File::from(memfd_create("command", MemfdFlags::CLOEXEC)?);
                Self::Named { head, text: text_file(folder)? }
            }
        })
    }

    /// The descriptor that the shell inherits, open for reading only. The shell shares its offset.
    pub(crate) fn descriptor(&self) -> Option<&File> {
        match self {
            Self::Inherited { descriptor, .. } => Some(descriptor),
            Self::Nothing | Self::Named { .. } => None,
        }
    }

    /// The name by which the shell opens it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Inherited { .. } => format!("/proc/self/fd/{COMMAND_FD}"),
            Self::Named { head, .. } => name_of(head),
        }
    }

    pub(crate) fn stage(&mut self, id: u32, nonce: u64, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Nothing => Err(io::ErrorKind::Unsupported.into()),
            Self::Inherited { memory, descriptor, is_script } => {
                if *is_script {
                    memory.replace(&[&script(text)])?;
                } else {
                    memory.replace(&[head(id, nonce, text.len()).as_bytes(), text])?;
                }
                Ok(seek(descriptor, SeekFrom::Start(0)).map(drop)?)
            }
            Self::Named { head, text: file } => {
                replace(file, text)?;
                replace(head, format!("{id}\n{nonce}\n{}\n", name_of(file)).as_bytes())
            }
        }
    }
}

/// The head before the text of a command: the word `ptyd` and the number of the text's bytes, the id, and the nonce, a NUL behind each.
/// A shell whose descriptor was moved, by a child that shares its offset, does not find that word; behind the text are only NULs.
fn head(id: u32, nonce: u64, text_bytes: usize) -> String {
    let numbers = format!("\0{id}\0{nonce}\0");
    let width = HEAD_BYTES.saturating_sub("ptyd".len() + numbers.len());
    format!("ptyd{text_bytes:>width$}{numbers}")
}

/// The script that a shell without keys sources: it evaluates the text at top level, and returns before the NULs behind it. The integration
/// sets `__ptyd_v` to a function that gets the text instead, and `__ptyd_u` to what turns a trace on.
fn script(text: &[u8]) -> Vec<u8> {
    // mksh loses an alias that is the last word of a text without a newline, or exits with it. After a backslash, a
    // newline would change the meaning.
    let end: &[u8] = if text.ends_with(b"\\") { b"" } else { b"\n" };
    let quoted = text.split(|byte| *byte == b'\'').collect::<Vec<_>>().join(&br"'\''"[..]);
    [br#""${__ptyd_v-eval}" "${__ptyd_u-}"'"#, &quoted[..], end, b"';{ \\return; } 2>/dev/null\n"].concat()
}

/// The file for a shell that opens a command's text by path.
fn text_file(folder: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true).mode(0o600).open(folder.join("command"))
}

/// The holder's own descriptor, which the same user may open.
fn name_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Replaces the contents of the file.
fn replace(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all_at(bytes, 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Read;

    fn staging(method: HandoverMethod) -> (tempfile::TempDir, Staging) {
        let folder = tempfile::tempdir().unwrap();
        let staging = Staging::of(&Handover { method, ..Handover::default() }, folder.path()).unwrap();
        (folder, staging)
    }

    /// The bytes that a shell reads from the descriptor, up to the NULs at the end.
    fn read(staging: &Staging) -> String {
        let mut bytes = Vec::new();
        staging.descriptor().unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), CAPACITY);
        String::from_utf8(bytes).unwrap().trim_end_matches('\0').to_owned()
    }

    #[test]
    fn a_shell_with_keys_reads_each_command_from_the_beginning() {
        let (_folder, mut staging) = staging(HandoverMethod::Keys);
        for (id, nonce, text) in [(1, 2, "a long one"), (u32::MAX, u64::MAX, "short"), (3, 4, "a longer one again")] {
            staging.stage(id, nonce, text.as_bytes()).unwrap();
            let read = read(&staging);
            let fields: Vec<_> = read.split([' ', '\0']).filter(|field| !field.is_empty()).collect();
            assert_eq!(fields.join("|"), format!("ptyd|{}|{id}|{nonce}|{}", text.len(), text.replace(' ', "|")));
            assert_eq!(read.len(), HEAD_BYTES + text.len());
        }
    }

    #[test]
    fn a_shell_that_takes_lines_evaluates_the_quoted_text() {
        let (_folder, mut staging) = staging(HandoverMethod::Line(b"run {}".to_vec()));
        for (text, quoted) in [("ls", "ls\n"), ("ls\\", "ls\\"), ("echo 'a b'", "echo '\\''a b'\\''\n")] {
            staging.stage(7, 9, text.as_bytes()).unwrap();
            assert_eq!(
                read(&staging),
                format!("\"${{__ptyd_v-eval}}\" \"${{__ptyd_u-}}\"'{quoted}';{{ \\return; }} 2>/dev/null\n")
            );
        }
    }

    #[test]
    fn a_text_as_long_as_a_frame_has_room_in_every_form() {
        for method in [HandoverMethod::Keys, HandoverMethod::Line(Vec::new())] {
            let (_folder, mut staging) = staging(method);
            staging.stage(u32::MAX, u64::MAX, &vec![b'\''; FRAME_BYTES_MAX]).unwrap();
            assert!(staging.stage(1, 1, &vec![b'x'; CAPACITY]).is_err());
        }
    }

    #[test]
    fn nushell_reads_a_head_with_the_name_of_the_text() {
        let (_folder, mut staging) = staging(HandoverMethod::InBand);
        staging.stage(1, 1, b"an earlier and longer one").unwrap();
        staging.stage(7, 9, b"ls").unwrap();
        assert!(staging.descriptor().is_none());
        let head = std::fs::read_to_string(staging.name()).unwrap();
        assert!(head.starts_with("7\n9\n/proc/"), "{head:?}");
        assert_eq!(std::fs::read_to_string(head.lines().nth(2).unwrap()).unwrap(), "ls");
    }

    #[test]
    fn a_program_without_hooks_is_handed_nothing() {
        let (_folder, mut staging) = staging(HandoverMethod::Typed);
        assert!(staging.stage(1, 1, b"ls").is_err());
    }
}
