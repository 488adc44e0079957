//! The record of typed input. A typed secret is in no record: only its length is and how many line ends it has.

use std::io;

use journal::Record;
use sys::pty::Modes;
use wire::{Key, NO_KEY};

use super::context::Context;
use crate::input::{Input, Line};
use crate::shell_state::Phase;

impl Input {
    /// Whether input that is typed in these modes may be a secret. Without echo it counts as one, unless the shell's own line editor
    /// echoes it. Input queued behind other input counts as one too: which program will read it is not known yet.
    pub(super) fn may_be_secret(&self, modes: Option<Modes>, context: &Context) -> bool {
        self.is_writing() || modes.is_none_or(|m| !m.echo && (m.canonical || !shell_edits(context)))
    }
}

/// Whether the shell is at its prompt, where its line editor echoes input. While a line typed there has not ended,
/// the shell is not at its prompt: the program it runs may ask for a secret, also through the shell's own line
/// editor.
pub(super) fn shell_edits(context: &Context) -> bool {
    context.shell.phase() == Phase::Ready && context.terminal.shell_is_foreground()
}

/// Puts input on record, before it is typed.
pub(super) fn put_on_record(
    key: Key,
    bytes: &[u8],
    is_secret: bool,
    command: Option<(u32, &Line)>,
    context: &mut Context,
) -> io::Result<()> {
    // The key belongs to the command's record; the record of the bytes that hand it over has none.
    let key = match command {
        Some((id, Line { is_inside, nonce, text })) => {
            let line = Record::Typed { id, is_inside: *is_inside, nonce: *nonce, key, text };
            context.records.append(&line)?;
            NO_KEY
        }
        None => key,
    };
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    // A server that comes later counts the lines, also those that are typed while another one runs.
    let ends = wire::line_ends(bytes);
    let bytes = if is_secret { &[] } else { bytes };
    context.records.append(&Record::Input { key, len, ends, is_secret, bytes })
}
