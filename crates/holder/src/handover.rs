//! Hands commands over to the shell: the text is staged in a file, then the private key or a line makes the shell load it.

use std::cell::Cell;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use wire::{Handover, HandoverMethod, Key, Status, is_same_name};

use crate::connections::Caller;

/// The private keys, bound in every keymap by the scripts in shell-integration/: load the staged command and accept it.
const KEY_RUN: &[u8] = b"\x1b\x1f\x1b\x1e";
/// The second of them by itself.
const KEY_ACCEPT: &[u8] = b"\x1b\x1e";
/// The longest plain text. bash reads 4096 bytes at once, and a longer one could be changed between two reads by a child of the
/// shell, which shares the descriptor's offset.
const PLAIN_BYTES_MAX: usize = 4000;
/// How many requests of one idempotency key may wait for one command to begin; a server has no reason for more.
const CALLERS_MAX: usize = 1024;
/// A shell that waits for a line and sends no prompt mark for this long is at a prompt without a mark.
const UNFINISHED_US: u64 = 300_000;
/// How often a waiting command polls whether the line editor has the terminal; no event reports that.
pub(crate) const READY_RETRY_US: u64 = 50;
/// The same for a shell whose state is read from /proc.
const LINE_RETRY_US: u64 = 200;
/// How long a command waits for a line that was typed at the prompt to end. Most lines end within a moment; one that
/// does not counts as a running program, and the command is refused.
const TYPED_PATIENCE_US: u64 = 500_000;

/// A command that waits for the shell's prompt.
#[derive(Debug)]
pub(crate) struct WaitingCommand {
    /// The callers of the first request, and of later ones with the same idempotency key.
    pub(crate) from: Vec<Caller>,
    pub(crate) key: Key,
    pub(crate) text: Vec<u8>,
    pub(crate) since: u64,
    pub(crate) until: u64,
    /// Since when the shell has waited for a line without a prompt mark.
    seen_at_line: Option<u64>,
}

impl WaitingCommand {
    pub(crate) fn new(from: Caller, key: Key, text: Vec<u8>, since: u64, until: u64) -> Self {
        Self { from: vec![from], key, text, since, until, seen_at_line: None }
    }
}

#[derive(Debug)]
pub(crate) struct CommandHandover {
    method: HandoverMethod,
    /// The line that takes a plain text, and the descriptor from which the shell reads it.
    short_line: Option<(Vec<u8>, std::fs::File)>,
    command_file: std::fs::File,
    /// The length of what is staged.
    staged_bytes: Cell<u64>,
    /// The command's text, for a shell that reads it from a named file.
    text_file: Option<std::fs::File>,
    waiting: Option<WaitingCommand>,
}

impl CommandHandover {
    /// `to_read` is the descriptor of `command_file` that the shell has inherited.
    pub(crate) fn new(
        handover: Handover,
        (command_file, to_read): (std::fs::File, Option<std::fs::File>),
        folder: &Path,
    ) -> io::Result<Self> {
        let Handover { method, short_line, .. } = handover;
        let text_file = (method == HandoverMethod::InBand).then(|| text_file(folder)).transpose()?;
        let short_line = Some(short_line).filter(|line| !line.is_empty()).zip(to_read);
        Ok(Self { method, short_line, command_file, staged_bytes: Cell::default(), text_file, waiting: None })
    }

    /// Whether the shell reports its prompts.
    pub(crate) fn has_hooks(&self) -> bool {
        self.method != HandoverMethod::Typed
    }

    /// Whether commands are handed over as lines, because the shell has no private keys.
    pub(crate) fn takes_lines(&self) -> bool {
        matches!(self.method, HandoverMethod::Line(_))
    }

    /// Whether the shell reports in its output, without a report on the socket.
    pub(crate) fn is_in_band(&self) -> bool {
        self.method == HandoverMethod::InBand
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Adds a repeated request to the waiting command; `None` if it is not the same request. An error is the answer.
    pub(crate) fn join(&mut self, from: Caller, key: &Key) -> Option<Result<(), Status>> {
        let waiting = self.waiting.as_mut().filter(|waiting| is_same_name(&waiting.key, key))?;
        if waiting.key != *key {
            return Some(Err(Status::KeyReused));
        }
        // The same request again: it gets the same answer.
        (waiting.from.len() < CALLERS_MAX).then(|| {
            waiting.from.push(from);
            Ok(())
        })
    }

    pub(crate) fn wait(&mut self, command: WaitingCommand) {
        self.waiting = Some(command);
    }

    pub(crate) fn take_waiting(&mut self) -> Option<WaitingCommand> {
        self.waiting.take()
    }

    /// Whether the waiting command's time is over.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| now >= waiting.until)
    }

    /// Whether the waiting command has waited long enough for a line that was typed at the prompt.
    pub(crate) fn has_waited_for_typed_line(&self, now: u64) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| now >= waiting.since + TYPED_PATIENCE_US)
    }

    /// Whether the shell has been at a line without a prompt mark for so long that the mark will not come. `is_at_line` is
    /// what it does now.
    pub(crate) fn is_at_unfinished_line(&mut self, is_at_line: bool, now: u64) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        waiting.seen_at_line = is_at_line.then(|| waiting.seen_at_line.unwrap_or(now));
        waiting.seen_at_line.is_some_and(|since| now >= since + UNFINISHED_US)
    }

    /// When to check again whether the waiting command can be handed over.
    pub(crate) fn next_at(&self, now: u64) -> Option<u64> {
        let by_proc = self.takes_lines() || self.is_in_band();
        self.waiting.as_ref().map(|_| now + if by_proc { LINE_RETRY_US } else { READY_RETRY_US })
    }

    /// Writes the command into the file from which the shell loads it.
    pub(crate) fn stage(&self, id: u32, nonce: u64, text: &[u8], is_short: bool) -> io::Result<()> {
        let head = match &self.text_file {
            Some(file) => {
                replace(file, text)?;
                format!("{id}\n{nonce}\n/proc/{}/fd/{}\n", std::process::id(), file.as_raw_fd())
            }
            // A shell that takes lines finds id and nonce in its line, and reads the file like a script.
            None if self.takes_lines() => String::new(),
            None => format!("{id}\0{nonce}\0"),
        };
        let text_behind = if self.text_file.is_some() { b"" } else { text };
        // mksh loses an alias that is the last word of a file without a newline, or exits with it. After a backslash, a
        // newline would change the meaning.
        let end: &[u8] = match is_short {
            // The shell reads up to here, and not once more to find the end of the file.
            true => b"\0",
            false if self.takes_lines() && !text.ends_with(b"\\") => b"\n",
            false => b"",
        };
        let staged = [head.as_bytes(), text_behind, end].concat();
        self.command_file.write_all_at(&staged, 0)?;
        // Freeing a page of the file costs more than writing to it.
        let bytes = staged.len() as u64;
        if self.staged_bytes.replace(bytes) > bytes {
            self.command_file.set_len(bytes)?;
        }
        match &self.short_line {
            Some((_, file)) => {
                rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0)).map(drop).map_err(io::Error::from)
            }
            None => Ok(()),
        }
    }

    /// The keys that make the shell take the staged text in the shortest way: a line that the shell runs as it is, if the
    /// text is plain, the shell is in its usual state, and no input can be in its editor.
    pub(crate) fn short_keys(&self, text: &[u8], is_usual: bool, input_since_handover: bool) -> Option<Vec<u8>> {
        let (line, _) = self.short_line.as_ref()?;
        (is_usual && !input_since_handover && is_plain(text)).then(|| [line, KEY_ACCEPT].concat())
    }

    /// The keys that make the shell load the staged command. After other input since the last command, the first of them
    /// clears the editor: C-u deletes a half-typed line, and C-g ends a search or a count.
    pub(crate) fn keys(&self, id: u32, nonce: u64, input_since_handover: bool) -> Vec<u8> {
        match (&self.method, input_since_handover) {
            (HandoverMethod::Line(line), is_touched) => {
                let line = String::from_utf8_lossy(line).replace("{}", &format!("{id} {nonce}"));
                format!("{}{line}\n", if is_touched { "\x15" } else { "" }).into_bytes()
            }
            (_, false) => KEY_RUN.to_vec(),
            (_, true) => [b"\x07", KEY_RUN].concat(),
        }
    }
}

/// Whether a text cannot make the code behind it a part of itself (a here-document, an operator, a function head), and
/// does not ask for the pipeline before it. It may be wrong in the careful direction.
fn is_plain(text: &[u8]) -> bool {
    let trimmed = text.trim_ascii_end();
    let mut last_line = trimmed.rsplit(|byte| *byte == b'\n').take(1).flatten();
    let is_open = trimmed.last().is_none_or(|last| b"|&)\\".contains(last)) || last_line.any(|byte| *byte == b'#');
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    text.len() <= PLAIN_BYTES_MAX && !is_open && !has(b"<<") && !has(b"function") && !has(b"PIPESTATUS")
}

/// The named file for a shell that opens a command's text by path.
fn text_file(folder: &Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(folder.join("command"))
}

/// Replaces the contents of the file.
fn replace(file: &std::fs::File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all_at(bytes, 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn handover(method: HandoverMethod) -> (tempfile::TempDir, CommandHandover) {
        let folder = tempfile::tempdir().unwrap();
        let staged = folder.path().join("staged");
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&staged).unwrap();
        let to_read = std::fs::File::open(staged).unwrap();
        let method = Handover { method, short_line: b"take".to_vec(), ..Handover::default() };
        let handover = CommandHandover::new(method, (file, Some(to_read)), folder.path()).unwrap();
        (folder, handover)
    }

    #[test]
    fn the_short_line_takes_plain_texts_in_the_usual_state_of_an_untouched_shell() {
        let (_folder, handover) = handover(HandoverMethod::Keys);
        let keys = |text: &str, is_usual, is_touched| handover.short_keys(text.as_bytes(), is_usual, is_touched);
        assert_eq!(keys("ls", true, false), Some(b"take\x1b\x1e".to_vec()));
        assert_eq!((keys("ls", false, false), keys("ls", true, true)), (None, None));
        for plain in ["a | b; c\n", "# a\nb", "x=1", "a <b >c", "{ a; }", "echo \"$#\"\ntrue"] {
            assert!(keys(plain, true, false).is_some(), "{plain:?}");
        }
        for other in
            ["", " ", "a &", "a |\n", "a &&\n# b", "cat <<x\nx", "function f", "f()", "a \\", "echo $PIPESTATUS"]
        {
            assert_eq!(keys(other, true, false), None, "{other:?}");
        }
        assert_eq!(keys(&"x".repeat(PLAIN_BYTES_MAX + 1), true, false), None);
    }

    #[test]
    fn the_shell_reads_each_staged_command_from_its_beginning() {
        use std::io::Read;
        let (_folder, handover) = handover(HandoverMethod::Keys);
        for text in ["a long one", "short", "a longer one again"] {
            handover.stage(1, 2, text.as_bytes(), true).unwrap();
            let mut read = String::new();
            handover.short_line.as_ref().map(|(_, file)| file).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, format!("1\x002\0{text}\0"));
        }
    }

    #[test]
    fn each_kind_of_shell_finds_the_staged_command_in_its_own_form() {
        let line = HandoverMethod::Line(b" run {}".to_vec());
        for (method, text, staged, keys) in [
            (HandoverMethod::Keys, "ls", "7\x009\0ls", "\x1b\x1f\x1b\x1e"),
            (line.clone(), "ls", "ls\n", " run 7 9\n"),
            (line, "ls\\", "ls\\", " run 7 9\n"),
        ] {
            let (folder, handover) = handover(method);
            handover.stage(1, 1, b"an earlier and longer one", false).unwrap();
            handover.stage(7, 9, text.as_bytes(), false).unwrap();
            assert_eq!(std::fs::read_to_string(folder.path().join("staged")).unwrap(), staged);
            assert_eq!(String::from_utf8(handover.keys(7, 9, false)).unwrap(), keys);
        }
        let (folder, handover) = handover(HandoverMethod::InBand);
        handover.stage(7, 9, b"ls", false).unwrap();
        let head = std::fs::read_to_string(folder.path().join("staged")).unwrap();
        assert!(head.starts_with("7\n9\n/proc/"), "{head:?}");
        assert_eq!(std::fs::read_to_string(head.lines().nth(2).unwrap()).unwrap(), "ls");
    }

    #[test]
    fn the_editor_is_cleared_only_after_other_input() {
        let (_folder, keys) = handover(HandoverMethod::Keys);
        assert_eq!(keys.keys(1, 2, true), b"\x07\x1b\x1f\x1b\x1e");
        let (_folder, lines) = handover(HandoverMethod::Line(b"run {}".to_vec()));
        assert_eq!(lines.keys(1, 2, true), b"\x15run 1 2\n");
    }

    #[test]
    fn a_repeated_command_joins_the_waiting_one() {
        let (_folder, mut handover) = handover(HandoverMethod::Keys);
        assert_eq!(handover.join((1, 1), &[5; 16]), None);
        handover.wait(WaitingCommand::new((1, 1), [5; 16], b"ls".to_vec(), 0, 9));
        assert_eq!(handover.join((1, 2), &[5; 16]), Some(Ok(())));
        let mut other_text = [5; 16];
        other_text[15] = 6;
        assert_eq!(handover.join((1, 3), &other_text), Some(Err(Status::KeyReused)));
        assert_eq!(handover.join((1, 4), &[6; 16]), None);
        assert_eq!(handover.take_waiting().map(|w| w.from), Some(vec![(1, 1), (1, 2)]));
    }

    #[test]
    fn a_shell_that_stays_at_a_line_without_a_mark_is_at_an_unfinished_one() {
        let (_folder, mut handover) = handover(HandoverMethod::Line(b"run {}".to_vec()));
        assert!(!handover.is_at_unfinished_line(true, 0), "no command waits");
        handover.wait(WaitingCommand::new((1, 1), [5; 16], b"ls".to_vec(), 0, u64::MAX));
        assert!(!handover.is_at_unfinished_line(true, 10));
        assert!(!handover.is_at_unfinished_line(false, 20));
        assert!(!handover.is_at_unfinished_line(true, 30));
        assert!(!handover.is_at_unfinished_line(true, 29 + UNFINISHED_US));
        assert!(handover.is_at_unfinished_line(true, 30 + UNFINISHED_US));
    }
}
