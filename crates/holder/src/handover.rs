//! Hands commands over to the shell: the text is staged, then the private key or a line makes the shell load it.

use std::io;

use wire::{Handover, HandoverMethod, Key, Status, is_same_name};

use crate::connections::Caller;
use crate::nonces::Nonces;
use crate::shell_state::ShortKeys;
use crate::staging::Staging;

/// The private keys, bound in every keymap by the scripts in shell-integration/: load the staged command and accept it.
const KEYS_LOAD: &[u8] = b"\x1b\x1f\x1b\x1e";
/// The second of them by itself.
const KEY_ACCEPT: &[u8] = b"\x1b\x1e";
/// The keys with which bash's builtins take a plain text, and one that they examine first.
const KEY_RUN_PLAIN: &[u8] = b"\x1b\x14";
const KEY_RUN_EXAMINED: &[u8] = b"\x1b\x10";
/// The longest plain text. For the short line bash reads 4096 bytes at once, and a longer text could be changed between two reads by a
/// child of the shell, which shares the descriptor's offset.
const PLAIN_BYTES_MAX: usize = 4000;
/// Heads of compound commands, whose bodies may be missing, and of a list, each with its end.
const HEADS: [(&[u8], &[u8]); 4] = [(b"for", b"done"), (b"select", b"done"), (b"case", b"esac"), (b"=(", b")")];
/// Reserved words behind which a command begins.
const WORDS_BEFORE_COMMANDS: [&[u8]; 8] = [b"do", b"then", b"else", b"elif", b"if", b"while", b"until", b"time"];
/// How many requests of one idempotency key may wait for one command to begin; a server has no reason for more.
const CALLERS_MAX: usize = 1024;
/// A shell that waits for a line and sends no prompt mark for this long is at a prompt without a mark.
const UNFINISHED_US: u64 = 300_000;
/// How often a waiting command polls whether the line editor has the terminal; no event reports that.
pub(crate) const READY_RETRY_US: u64 = 50;
/// The same for a shell whose state is read from /proc.
const LINE_RETRY_US: u64 = 200;
/// A command that waits polls again after a 64th of its wait so far.
const RETRY_PART: u64 = 64;
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
    /// The editor was woken for it.
    has_woken: bool,
}

impl WaitingCommand {
    pub(crate) fn new(from: Caller, key: Key, text: Vec<u8>, since: u64, until: u64) -> Self {
        Self { from: vec![from], key, text, since, until, seen_at_line: None, has_woken: false }
    }
}

/// How the shell is given a command: the same for the whole session.
#[derive(Debug)]
pub(crate) struct CommandKeys {
    method: HandoverMethod,
    /// The line that takes a plain text.
    short_line: Vec<u8>,
    hooks_in_editor_modes: bool,
}

impl CommandKeys {
    pub(crate) fn new(handover: Handover) -> Self {
        let Handover { method, short_line, hooks_in_editor_modes, .. } = handover;
        Self { method, short_line, hooks_in_editor_modes }
    }

    /// Whether the shell reports its prompts.
    pub(crate) fn has_hooks(&self) -> bool {
        self.method != HandoverMethod::Typed
    }

    /// Whether the shell's line editor has the private keys.
    pub(crate) fn are_private(&self) -> bool {
        self.method == HandoverMethod::Keys
    }

    /// Whether commands are handed over as lines, because the shell has no private keys.
    pub(crate) fn are_a_line(&self) -> bool {
        matches!(self.method, HandoverMethod::Line(_))
    }

    /// Whether the shell keeps its editor's modes while it runs hooks of its prompt.
    pub(crate) fn hooks_in_editor_modes(&self) -> bool {
        self.hooks_in_editor_modes
    }

    /// Whether the shell reports in its output, without a report on the socket.
    pub(crate) fn are_in_band(&self) -> bool {
        self.method == HandoverMethod::InBand
    }

    /// The keys that make the shell take the staged text in a shorter way than the load key, if there are some.
    pub(crate) fn short_keys(&self, text: &[u8], keys: ShortKeys) -> Option<Vec<u8>> {
        match keys {
            _ if self.short_line.is_empty() => None,
            ShortKeys::Run if is_plain(text) => Some(KEY_RUN_PLAIN.to_vec()),
            ShortKeys::Run => Some(KEY_RUN_EXAMINED.to_vec()),
            ShortKeys::Line => is_plain(text).then(|| [&self.short_line, KEY_ACCEPT].concat()),
        }
    }

    /// The keys that make the shell load the staged command. After other input since the last command, the first of them
    /// clears the editor: C-u deletes a half-typed line, and C-g ends a search or a count.
    pub(crate) fn keys(&self, id: u32, nonce: u64, input_since_handover: bool) -> Vec<u8> {
        match (&self.method, input_since_handover) {
            (HandoverMethod::Line(line), is_touched) => {
                let line = String::from_utf8_lossy(line).replace("{}", &format!("{id} {nonce}"));
                format!("{}{line}\n", if is_touched { "\x15" } else { "" }).into_bytes()
            }
            (_, false) => KEYS_LOAD.to_vec(),
            (_, true) => [b"\x07", KEYS_LOAD].concat(),
        }
    }
}

/// The command that waits, and the place from which the shell loads it.
#[derive(Debug)]
pub(crate) struct CommandHandover {
    staging: Staging,
    nonces: Nonces,
    waiting: Option<WaitingCommand>,
}

impl CommandHandover {
    pub(crate) fn new(staging: Staging) -> Self {
        Self { staging, nonces: Nonces::default(), waiting: None }
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

    /// Whether the editor may be woken for the waiting command: once.
    pub(crate) fn takes_waking(&mut self) -> bool {
        self.waiting.as_mut().is_some_and(|waiting| !std::mem::replace(&mut waiting.has_woken, true))
    }

    /// When to check again whether the waiting command can be handed over.
    pub(crate) fn next_at(&self, keys: &CommandKeys, now: u64) -> Option<u64> {
        let by_proc = keys.are_a_line() || keys.are_in_band() || keys.hooks_in_editor_modes;
        let least = if by_proc { LINE_RETRY_US } else { READY_RETRY_US };
        let retry = |waiting: &WaitingCommand| now + least.max(now.saturating_sub(waiting.since) / RETRY_PART);
        self.waiting.as_ref().map(|waiting| retry(waiting).min(waiting.until.max(now + least)))
    }

    /// Writes the command into the place from which the shell loads it; returns the nonce of its first marker.
    pub(crate) fn stage(&mut self, id: u32, text: &[u8]) -> io::Result<u64> {
        let nonce = self.nonces.next()?;
        self.staging.stage(id, nonce, text)?;
        Ok(nonce)
    }
}

/// Whether a text cannot make the code behind it a part of itself (a here-document, an operator, a function head) or of the
/// shell's message (another head), and does not ask for the pipeline before it. It may be wrong in the careful direction.
fn is_plain(text: &[u8]) -> bool {
    let trimmed = text.trim_ascii_end();
    let mut last_line = trimmed.rsplit(|byte| *byte == b'\n').take(1).flatten();
    let is_open = trimmed.last().is_none_or(|last| b"|&)\\".contains(last)) || last_line.any(|byte| *byte == b'#');
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    text.len() <= PLAIN_BYTES_MAX
        && !is_open
        && !has(b"<<")
        && !has(b"function")
        && !has(b"PIPESTATUS")
        && !HEADS.iter().any(|(head, end)| lacks_end(text, head, end))
}

/// Whether no `end` comes behind the last `head` that a command may begin with.
fn lacks_end(text: &[u8], head: &[u8], end: &[u8]) -> bool {
    let find = |text: &[u8], part: &[u8]| text.windows(part.len()).rposition(|window| window == part);
    let mut before = text;
    while let Some(at) = find(before, head) {
        before = text.get(..at).unwrap_or_default();
        let rest = text.get(at + head.len()..).unwrap_or_default();
        let is_apart = rest.first().is_none_or(|next| next.is_ascii_whitespace() || *next == b'(');
        if head == b"=(" || is_apart && is_at_command(before) {
            return find(rest, end).is_none();
        }
    }
    false
}

/// Whether a command may begin behind this text.
fn is_at_command(before: &[u8]) -> bool {
    let line = before.rsplit(|byte| b"\n;&|({`!".contains(byte)).next().unwrap_or_default();
    let last = line.split(u8::is_ascii_whitespace).rfind(|word| !word.is_empty()).unwrap_or_default();
    let is_apart = line.last().is_none_or(u8::is_ascii_whitespace);
    is_apart && (last.is_empty() || WORDS_BEFORE_COMMANDS.contains(&last))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn keys(method: HandoverMethod) -> CommandKeys {
        CommandKeys::new(Handover { method, short_line: b"take".to_vec(), ..Handover::default() })
    }

    fn handover() -> CommandHandover {
        CommandHandover::new(Staging::of(&Handover::default(), std::path::Path::new("/")).unwrap())
    }

    #[test]
    fn plain_texts_are_taken_with_short_keys() {
        let private = keys(HandoverMethod::Keys);
        let keys = |text: &str| private.short_keys(text.as_bytes(), ShortKeys::Line);
        assert_eq!(keys("ls"), Some(b"take\x1b\x1e".to_vec()));
        let run = [b"ls", &b"ls |"[..]].map(|text| private.short_keys(text, ShortKeys::Run));
        assert_eq!(run, [b"\x1b\x14", b"\x1b\x10"].map(|key| Some(key.to_vec())));
        for plain in ["a | b; c\n", "# a\nb", "x=1", "a <b >c", "{ a; }", "echo \"$#\"\ntrue"] {
            assert!(keys(plain).is_some(), "{plain:?}");
        }
        for plain in [
            "for i in 1; do a; done",
            "echo one for all",
            "case x in a) b;; esac | c",
            "x=(a b) y=() z",
            "perform; select=1",
            "psql -c 'select 1'",
            "for i in 1; do for j in 2; do a; done; done",
        ] {
            assert!(keys(plain).is_some(), "{plain:?}");
        }
        for headed in [
            "for",
            "for i in 1 2",
            "a; for ((;;))",
            "if a; then for i in 1; do",
            "a\n\tselect x",
            "! case x in",
            "a &&case x in",
            "x=(a",
            "x=(a) y=(",
        ] {
            assert_eq!(keys(headed), None, "{headed:?}");
        }
        for other in
            ["", " ", "a &", "a |\n", "a &&\n# b", "cat <<x\nx", "function f", "f()", "a \\", "echo $PIPESTATUS"]
        {
            assert_eq!(keys(other), None, "{other:?}");
        }
        assert_eq!(keys(&"x".repeat(PLAIN_BYTES_MAX + 1)), None);
    }

    #[test]
    fn the_editor_is_cleared_only_after_other_input() {
        let editor = keys(HandoverMethod::Keys);
        assert_eq!(editor.keys(1, 2, true), b"\x07\x1b\x1f\x1b\x1e");
        assert_eq!(editor.keys(1, 2, false), b"\x1b\x1f\x1b\x1e");
        let lines = keys(HandoverMethod::Line(b"run {}".to_vec()));
        assert_eq!(lines.keys(1, 2, true), b"\x15run 1 2\n");
        assert_eq!(lines.keys(7, 9, false), b"run 7 9\n");
    }

    #[test]
    fn a_repeated_command_joins_the_waiting_one() {
        let mut handover = handover();
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
        let mut handover = handover();
        assert!(!handover.is_at_unfinished_line(true, 0), "no command waits");
        handover.wait(WaitingCommand::new((1, 1), [5; 16], b"ls".to_vec(), 0, u64::MAX));
        assert!(!handover.is_at_unfinished_line(true, 10));
        assert!(!handover.is_at_unfinished_line(false, 20));
        assert!(!handover.is_at_unfinished_line(true, 30));
        assert!(!handover.is_at_unfinished_line(true, 29 + UNFINISHED_US));
        assert!(handover.is_at_unfinished_line(true, 30 + UNFINISHED_US));
    }
}
