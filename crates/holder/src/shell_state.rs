//! The shell's state, as far as the holder needs it to decide whether a command may be handed over.
//!
//! ```text
//! Starting ──D──► Ready ──RUN──► Running ──D of it──► Ready
//!                  │ ▲ a line typed
//!                  ▼ │ D
//!                 Typed
//! ```
//! Only the shell's reports change the state: those that `Attestation` has accepted, and its prompt marks.

use std::collections::VecDeque;

use journal::Offset;

use wire::{ENDS_LINE, Key, NO_KEY, Status, is_same_name};

/// How many idempotency keys a session remembers.
const KEYS_MAX: usize = 256;

/// After this time a shell has handled an interrupt; if not, it does so before it reads the next input.
const CLEARED_US: u64 = 50_000;
/// After this time a shell has read the keys that hand a command over. If it has not, the report key makes it say so.
const KEYS_READ_US: u64 = 200_000;
/// A shell that has not begun a command after this long will not.
const BEGINNING_US: u64 = 3_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No prompt was seen yet.
    Starting,
    /// At the prompt, nothing accepted.
    Ready,
    /// A line was typed at the prompt; the next report makes the shell ready again.
    Typed,
    /// This command was handed over and has not ended.
    Running(u32),
}

/// The keys with which a command was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandoverKeys {
    /// The load key, or a line of a shell without one.
    Load,
    Short,
    /// The load key, behind an interrupt that the shell has not reported. bash may notice that one only while it performs the
    /// load key: the key is lost, and the accept key behind it makes a second prompt.
    LoadBehindInterrupt,
    /// The keys were lost: the shell has reached its next prompt without taking the command, and the load key is to hand it over.
    Lost,
}

/// The keys with which the shell takes a command in a shorter way than with the load key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortKeys {
    /// A key for which the shell has builtins.
    Run,
    /// A line that the shell runs as it is, for a plain text.
    Line,
}

/// The shell's state and the reports that move it.
#[derive(Debug)]
pub(crate) struct ShellState {
    phase: Phase,
    last_id: u32,
    /// The report key was pressed for the running command: an `R` report of the shell is about that command.
    is_asked: bool,
    /// The shell said with its last end that it takes commands with these keys.
    short_keys: Option<ShortKeys>,
    /// How the running command was handed over.
    handed_over_with: HandoverKeys,
    /// Short keys have not made the shell take a command: they are used no more.
    have_short_keys_failed: bool,
    /// A prompt came that did not end the running command: if the shell then refuses the command, it is at that prompt.
    has_prompted: bool,
    keys: VecDeque<(Key, Status, u64)>,
    /// Input was typed since the last command was handed over: by a person at the prompt, or for a program that may
    /// have left it unread.
    input_since_handover: bool,
    /// The shell was sampled at its prompt but has not reported it.
    is_sampled_only: bool,
    /// When the newest command was handed over.
    begun_at: u64,
    /// The nonce of the marker with which it begins, and where it was handed over; until that marker was seen.
    marker: Option<(u64, Offset)>,
    /// When the foreground was interrupted; `None` after later input or a prompt.
    interrupted_at: Option<u64>,
    /// The line editor has had the terminal at this prompt.
    has_edited: bool,
    /// A hook of this prompt was reported as one that asks.
    has_asked: bool,
    /// Hooks of the prompt have read all lines that were typed since the newest report. The shell reports no end of those.
    is_a_hooks: bool,
}

impl ShellState {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Starting,
            last_id: 0,
            is_asked: false,
            short_keys: None,
            handed_over_with: HandoverKeys::Load,
            have_short_keys_failed: false,
            has_prompted: false,
            keys: VecDeque::new(),
            input_since_handover: false,
            is_sampled_only: false,
            begun_at: 0,
            marker: None,
            interrupted_at: None,
            has_edited: false,
            has_asked: false,
            is_a_hooks: false,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// The running command, 0 for none.
    pub(crate) fn command(&self) -> u32 {
        match self.phase {
            Phase::Running(id) => id,
            Phase::Starting | Phase::Ready | Phase::Typed => 0,
        }
    }

    /// Applies a report: `D;;<nonce>;<id>;<exit>;<pipestatus>;<flags>;<cwd>`, and `R;;<nonce>;<id>` change the state,
    /// the other kinds are only for the server.
    pub(crate) fn report(&mut self, report: &[u8]) {
        let mut fields = report.splitn(8, |b| *b == b';');
        let kind = fields.next();
        let id = fields.nth(2).and_then(|f| std::str::from_utf8(f).ok()).and_then(|f| f.parse::<u32>().ok());
        match (kind, self.phase) {
            // The keys arrived at a continuation line: the shell refused the command, and a person's line is
            // unfinished. The same holds if the shell was asked by the report key and knows no such command.
            (Some(b"R"), Phase::Running(run)) if id != Some(run) || !self.is_asked => {
                self.phase = if self.has_prompted { Phase::Ready } else { Phase::Typed };
                self.is_a_hooks = false;
                self.have_short_keys_failed |= self.handed_over_with == HandoverKeys::Short;
            }
            // A hook of the prompt reads with the shell's editor, which would take our keys for its answer.
            (Some(b"R"), Phase::Ready) if !self.is_asked => (self.phase, self.is_a_hooks) = (Phase::Typed, false),
            (Some(b"D"), shell) => {
                (self.has_edited, self.has_asked) = (false, false);
                let is_interrupted = self.interrupted_at.take().is_some();
                let flags = fields.nth(2).unwrap_or_default();
                let is_answer_to_report_key = flags.contains(&b'l');
                // The line is an alias, which bash does not expand after some syntax errors.
                self.short_keys = match flags {
                    flags if flags.contains(&b'k') => Some(ShortKeys::Run),
                    [] => Some(ShortKeys::Line),
                    _ => None,
                };
                match shell {
                    // Lines that were typed ahead end before the shell reads our keys. Short keys are never typed behind one: they
                    // did something else, because the user has taken the alias, the builtin or a key away.
                    Phase::Running(run) if id != Some(run) && !is_answer_to_report_key => {
                        self.has_prompted = true;
                        let with = self.handed_over_with;
                        let may_be_lost = with == HandoverKeys::Short || with == HandoverKeys::LoadBehindInterrupt;
                        if may_be_lost && self.marker.is_some() && !is_interrupted {
                            self.have_short_keys_failed |= with == HandoverKeys::Short;
                            self.handed_over_with = HandoverKeys::Lost;
                        }
                    }
                    Phase::Starting | Phase::Ready | Phase::Typed | Phase::Running(_) => {
                        (self.phase, self.is_sampled_only) = (Phase::Ready, false);
                    }
                }
            }
            _ => {}
        }
    }

    /// The short keys for the shell's present state. Input since the last command may be in its editor, and an interrupt that was not
    /// reported may still discard a line.
    pub(crate) fn short_keys(&self) -> Option<ShortKeys> {
        self.short_keys.filter(|_| !self.have_short_keys_failed && !self.input_since_handover && !self.is_interrupted())
    }

    /// Whether the keys have not begun the running command, which the load key is to hand over. A server gives a command up that has
    /// not begun after some time.
    pub(crate) fn awaits_load_key(&self, now: u64) -> bool {
        self.handed_over_with == HandoverKeys::Lost && self.awaited_marker(now).is_some()
    }

    /// The load key was pressed for the running command.
    pub(crate) fn load_key_pressed(&mut self) {
        self.handed_over_with = HandoverKeys::Load;
    }

    /// The shell was sampled at its prompt.
    pub(crate) fn seen(&mut self) {
        (self.phase, self.is_sampled_only) = (Phase::Ready, true);
    }

    /// Whether the shell was sampled at its prompt without a report of its own. Its server may treat it as a shell
    /// without hooks, which runs a command only where the foreground is known.
    pub(crate) fn is_sampled_only(&self) -> bool {
        self.phase == Phase::Ready && self.is_sampled_only
    }

    /// The foreground was interrupted: a shell that has the terminal discards its unfinished line.
    pub(crate) fn interrupted(&mut self, now: u64) {
        self.interrupted_at = Some(now);
        // A client that interrupts a command before it begins does not want it to be loaded again.
        self.handed_over_with = HandoverKeys::Load;
    }

    /// Whether the interrupt has discarded the typed line, so that a shell which waits for a line is at its prompt.
    pub(crate) fn is_cleared(&self, now: u64) -> bool {
        self.phase == Phase::Typed && self.interrupted_at.is_some_and(|at| now >= at + CLEARED_US)
    }

    /// Whether the shell may still have to handle an interrupt, with which it discards the keys it has read so far.
    pub(crate) fn is_unsettled(&self, now: u64) -> bool {
        self.interrupted_at.is_some_and(|at| now < at + CLEARED_US)
    }

    /// Whether the foreground was interrupted and nothing was typed since.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted_at.is_some()
    }

    /// Whether input since the hand-over may have left the editor in a search, a count or a half-typed key.
    pub(crate) fn input_since_handover(&self) -> bool {
        self.input_since_handover
    }

    /// The terminal was seen in the modes of a line editor.
    pub(crate) fn edits(&mut self) {
        self.has_edited |= self.phase == Phase::Ready;
    }

    /// The shell itself reads a line before its prompt, because a hook asks something.
    pub(crate) fn hook_asks(&mut self) {
        self.has_asked = true;
    }

    /// Takes the note that a hook has asked, for the report that the editor waits.
    pub(crate) fn take_hook_asked(&mut self) -> bool {
        std::mem::take(&mut self.has_asked)
    }

    /// Whether hooks may run before the prompt, or the editor was not reported behind one that has asked.
    pub(crate) fn may_run_hooks(&self) -> bool {
        self.may_begin_to_edit() || self.phase == Phase::Ready && self.has_asked
    }

    /// Whether the line editor may have taken the terminal since the prompt.
    pub(crate) fn may_begin_to_edit(&self) -> bool {
        self.phase == Phase::Ready && !self.has_edited
    }

    /// Whether the line editor has had the terminal at this prompt, and nothing was typed there.
    pub(crate) fn has_an_empty_line(&self) -> bool {
        self.phase == Phase::Ready && self.has_edited && !self.input_since_handover
    }

    /// A server has concluded that this command has ended, because the shell waits for input. A part of its keys may stand in the
    /// editor. A shell that has lost its hooks is ready when it reports again.
    pub(crate) fn judged(&mut self, id: u32, is_hookless: bool) {
        if self.phase == Phase::Running(id) {
            self.phase = if is_hookless { Phase::Typed } else { Phase::Ready };
            self.input_since_handover = true;
        }
    }

    /// The report key was pressed.
    pub(crate) fn asked(&mut self) {
        self.is_asked = true;
    }

    /// Records input that no client typed: a reply to a program's query.
    pub(crate) fn touch(&mut self) {
        self.input_since_handover = true;
    }

    /// Records typed input: at the prompt, a line that it ends may run anything. A hook that reads has the first line only.
    pub(crate) fn typed(&mut self, bytes: &[u8], hook_reads: bool) {
        self.input_since_handover = true;
        self.interrupted_at = None;
        let Some(end) = bytes.iter().position(|b| ENDS_LINE.contains(b)) else { return };
        let is_a_hooks = hook_reads && end + 1 == bytes.len();
        match self.phase {
            Phase::Ready => (self.phase, self.is_a_hooks) = (Phase::Typed, is_a_hooks),
            Phase::Typed => self.is_a_hooks &= is_a_hooks,
            Phase::Starting | Phase::Running(_) => {}
        }
    }

    /// Whether all that was typed were answers to hooks of the prompt. An editor that waits for keys is then the prompt's.
    pub(crate) fn has_answered_a_hook(&self) -> bool {
        self.phase == Phase::Typed && self.is_a_hooks
    }

    /// The line editor waits for keys behind the answer to a hook.
    pub(crate) fn edits_behind_a_hook(&mut self) {
        (self.phase, self.has_edited, self.is_a_hooks) = (Phase::Ready, true, false);
    }

    /// The number of the next command; it counts as running from [`Self::begin`] on.
    pub(crate) fn next_id(&self) -> u32 {
        self.last_id + 1
    }

    /// Numbers a command that is typed as a line.
    pub(crate) fn number(&mut self) -> u32 {
        self.last_id = self.next_id();
        self.last_id
    }

    /// Whether a command was handed over so recently that the shell may not have read its keys yet. A shell that has begun the
    /// command has read them.
    pub(crate) fn may_have_keys_to_read(&self, now: u64) -> bool {
        self.command() != 0 && self.marker.is_some() && now < self.begun_at + KEYS_READ_US
    }

    /// The newest command's output begins with a marker of this nonce, behind this offset.
    pub(crate) fn awaits_marker(&mut self, nonce: u64, from: Offset) {
        self.marker = Some((nonce, from));
    }

    /// The marker with which the running command begins, while it may still be on its way.
    pub(crate) fn awaited_marker(&self, now: u64) -> Option<(u64, Offset)> {
        self.marker.filter(|_| self.command() != 0 && now < self.begun_at + BEGINNING_US)
    }

    /// The running command has begun.
    pub(crate) fn has_begun(&mut self) {
        self.marker = None;
    }

    /// A command was handed over with these keys.
    pub(crate) fn begin(&mut self, id: u32, keys: HandoverKeys, now: u64) {
        let is_behind_interrupt = keys == HandoverKeys::Load && self.is_interrupted();
        self.handed_over_with = if is_behind_interrupt { HandoverKeys::LoadBehindInterrupt } else { keys };
        (self.last_id, self.begun_at) = (id, now);
        self.is_asked = false;
        self.has_prompted = false;
        self.input_since_handover = false;
        self.phase = Phase::Running(id);
    }

    /// The earlier result of this idempotency key. The first half of a key is the hash of the caller's key, the second half
    /// that of key and request.
    pub(crate) fn earlier(&self, key: &Key) -> Option<(Status, u64)> {
        let (known, status, value) = self.keys.iter().find(|(k, ..)| is_same_name(k, key))?;
        Some(match (known == key, status) {
            (false, _) => (Status::KeyReused, *value),
            (true, Status::Ok) => (Status::Duplicate, *value),
            // A request that was not done in full gets its earlier result.
            (true, status) => (*status, *value),
        })
    }

    pub(crate) fn remember(&mut self, key: Key, status: Status, value: u64) {
        if key != NO_KEY {
            if self.keys.len() == KEYS_MAX {
                self.keys.pop_front();
            }
            self.keys.push_back((key, status, value));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn ready() -> ShellState {
        let mut p = ShellState::new();
        p.report(b"D;;n1;0;0;0;;/");
        assert_eq!(p.phase, Phase::Ready);
        p
    }

    #[test]
    fn a_command_that_a_server_judged_as_ended_is_not_running() {
        let mut p = ready();
        p.begin(2, HandoverKeys::Short, 0);
        p.judged(1, false);
        assert_eq!(p.phase, Phase::Running(2), "that was another one");
        p.judged(2, false);
        assert_eq!((p.phase, p.short_keys()), (Phase::Ready, None), "a part of the keys may stand in the editor");
        p.begin(3, HandoverKeys::Load, 0);
        p.judged(3, true);
        assert_eq!(p.phase, Phase::Typed, "its hooks are gone");
        p.report(b"D;;n2;0;130;130;k;/");
        assert_eq!(p.phase, Phase::Ready);
    }

    #[test]
    fn only_the_end_of_the_running_command_ends_it() {
        let mut p = ready();
        p.begin(1, HandoverKeys::Load, 0);
        p.report(b"D;;n2;0;0;0;;/");
        assert_eq!(p.phase, Phase::Running(1));
        p.report(b"D;;n3;0;0;0;l;/");
        assert_eq!(p.phase, Phase::Ready);
    }

    #[test]
    fn a_command_that_the_shell_refused_to_take_is_not_running() {
        let mut p = ready();
        p.begin(1, HandoverKeys::Load, 0);
        p.report(b"R;;n2;1");
        assert_eq!(p.phase, Phase::Typed);
        p.report(b"D;;n3;0;130;130;;/");
        p.begin(2, HandoverKeys::Load, 0);
        p.asked();
        p.report(b"R;;n5;2");
        assert_eq!(p.phase, Phase::Running(2));
    }

    #[test]
    fn a_command_that_the_short_line_did_not_take_waits_for_the_next_prompt() {
        let mut p = ready();
        assert_eq!(p.short_keys(), Some(ShortKeys::Line));
        p.begin(1, HandoverKeys::Short, 0);
        p.awaits_marker(7, Offset(0));
        assert!(!p.awaits_load_key(1));
        p.report(b"D;;n2;0;127;127;;/");
        assert_eq!((p.awaits_load_key(1), p.phase), (true, Phase::Running(1)));
        assert!(!p.awaits_load_key(BEGINNING_US), "the server has given it up");
        p.load_key_pressed();
        assert!(!p.awaits_load_key(1));
        p.report(b"D;;n3;1;0;0;;/");
        assert_eq!(p.short_keys(), None, "they failed once");
    }

    #[test]
    fn a_command_that_was_interrupted_or_has_begun_is_not_loaded_again() {
        let mut p = ready();
        p.begin(1, HandoverKeys::Short, 0);
        p.awaits_marker(7, Offset(0));
        p.interrupted(1);
        p.report(b"D;;n2;0;130;130;;/");
        assert!(!p.awaits_load_key(2));
        let mut p = ready();
        p.begin(1, HandoverKeys::Short, 0);
        p.awaits_marker(7, Offset(0));
        p.has_begun();
        p.report(b"D;;n2;0;0;0;;/");
        assert_eq!((p.awaits_load_key(1), p.short_keys()), (false, Some(ShortKeys::Line)));
    }

    #[test]
    fn a_shell_that_has_begun_its_command_has_read_our_keys() {
        let mut p = ready();
        p.begin(1, HandoverKeys::Load, 0);
        p.awaits_marker(7, Offset(0));
        assert_eq!((p.may_have_keys_to_read(1), p.may_have_keys_to_read(KEYS_READ_US)), (true, false));
        p.has_begun();
        assert!(!p.may_have_keys_to_read(1), "an interrupt may throw away what is typed");
    }

    #[test]
    fn a_load_key_behind_an_interrupt_is_lost_if_a_second_prompt_appears() {
        let interrupted = || {
            let mut p = ready();
            p.interrupted(1);
            assert_eq!(p.short_keys(), None);
            p.begin(1, HandoverKeys::Load, 60_000);
            p.awaits_marker(7, Offset(0));
            p.report(b"D;;n2;0;130;130;;/");
            assert!(!p.awaits_load_key(60_001), "the interrupt's prompt; the key may be read behind it");
            p
        };
        let mut lost = interrupted();
        lost.report(b"D;;n3;0;130;130;;/");
        assert!(lost.awaits_load_key(60_002));
        lost.load_key_pressed();
        lost.report(b"D;;n4;0;0;0;;/");
        assert!(!lost.awaits_load_key(60_003), "once");
        let mut again = interrupted();
        again.interrupted(60_001);
        again.report(b"D;;n3;0;130;130;;/");
        again.report(b"D;;n4;0;130;130;;/");
        assert!(!again.awaits_load_key(60_002), "the command itself was interrupted");
    }

    #[test]
    fn the_flags_of_an_end_choose_the_short_keys() {
        let mut p = ready();
        for (flags, keys) in
            [("k", Some(ShortKeys::Run)), ("", Some(ShortKeys::Line)), ("u", None), ("nk", Some(ShortKeys::Run))]
        {
            p.report(format!("D;;n2;0;0;0;{flags};/").as_bytes());
            assert_eq!(p.short_keys(), keys, "{flags:?}");
        }
        p.touch();
        assert_eq!(p.short_keys(), None, "the editor may not be empty");
    }

    #[test]
    fn a_typed_line_makes_the_prompt_busy_until_the_shell_reports() {
        let mut p = ready();
        p.typed(b"ls", false);
        assert_eq!(p.phase, Phase::Ready);
        p.typed(b"\r", false);
        assert_eq!(p.phase, Phase::Typed);
        p.report(b"D;;n2;0;0;0;;/");
        assert_eq!(p.phase, Phase::Ready);
    }

    #[test]
    fn a_hook_that_reads_behind_the_end_of_a_command_is_not_the_prompt() {
        let mut p = ready();
        p.report(b"R;;n2;0");
        assert_eq!(p.phase, Phase::Typed);
        p.report(b"D;;n3;0;0;0;;/");
        assert_eq!(p.phase, Phase::Ready);
        p.asked();
        p.report(b"R;;n4;0");
        assert_eq!(p.phase, Phase::Ready, "zsh answers the report key so at its prompt");
    }

    #[test]
    fn an_editor_behind_lines_that_hooks_have_read_is_the_prompts() {
        let mut p = ready();
        p.typed(b"yes\r", true);
        assert!(p.has_answered_a_hook());
        p.edits_behind_a_hook();
        assert_eq!((p.phase, p.short_keys()), (Phase::Ready, None), "a line may be in the editor");
        p.begin(1, HandoverKeys::Load, 0);
        p.report(b"R;;n2;1");
        assert_eq!((p.phase, p.has_answered_a_hook()), (Phase::Typed, false), "it was the editor of a line");
        p.report(b"D;;n3;0;0;0;;/");
        p.typed(b"yes\r", true);
        p.typed(b"read -e x\r", false);
        assert!(!p.has_answered_a_hook(), "a line of the prompt runs");
        p.report(b"D;;n4;0;0;0;;/");
        p.typed(b"yes\rread -e x\r", true);
        assert!(!p.has_answered_a_hook(), "the second line is the prompt's");
    }

    #[test]
    fn an_editor_is_woken_only_where_it_had_the_terminal_at_this_prompt_and_nothing_was_typed() {
        let mut p = ShellState::new();
        p.edits();
        assert!(!p.has_an_empty_line(), "no prompt was seen");
        p.report(b"D;;n1;0;0;0;;/");
        assert!(!p.has_an_empty_line(), "a hook of the prompt may read");
        p.edits();
        assert!(p.has_an_empty_line());
        p.report(b"D;;n2;0;0;0;;/");
        assert!(!p.has_an_empty_line(), "another prompt");
        p.edits();
        p.typed(b"rm", false);
        assert!(!p.has_an_empty_line(), "an unfinished line would run");
    }

    #[test]
    fn a_prompt_is_settled_a_moment_after_an_interrupt_or_when_the_shell_reports() {
        let mut p = ready();
        assert!(!p.is_unsettled(7));
        p.interrupted(7);
        assert!(p.is_unsettled(7) && p.is_unsettled(7 + CLEARED_US - 1));
        assert!(!p.is_unsettled(7 + CLEARED_US));
        p.report(b"D;;n2;0;130;130;;/");
        assert!(!p.is_unsettled(7));
        p.interrupted(7);
        p.typed(b"l", false);
        assert!(!p.is_unsettled(7));
    }

    #[test]
    fn keys_are_remembered_up_to_a_bound() {
        let mut p = ready();
        p.remember(NO_KEY, Status::Ok, 1);
        assert_eq!(p.earlier(&NO_KEY), None);
        for n in 0..=256u64 {
            let mut key = NO_KEY;
            key[..8].copy_from_slice(&(n + 1).to_le_bytes());
            p.remember(key, Status::Ok, n);
        }
        let mut first = NO_KEY;
        first[0] = 1;
        assert_eq!((p.earlier(&first), p.keys.len()), (None, KEYS_MAX));
    }
}
