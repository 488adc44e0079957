//! What the shell is doing, as far as it takes to know whether a command may be handed to it.
//!
//! ```text
//! Starting ──D──► Ready ──RUN──► Running ──D of it──► Ready
//!                  │ ▲ a line typed
//!                  ▼ │ D
//!                 Typed
//! ```
//! Only reports that the kernel stamped with the shell's pid and that carry the secret move it.

use std::collections::VecDeque;

use wire::{ENDS_LINE, Key, NO_KEY, Status, is_same_name};

/// How many idempotency keys a session remembers.
const KEYS_MAX: usize = 256;
/// The longest report: a working directory of PATH_MAX (limits.h) and what stands before it; PATH may be longer.
const REPORT_BYTES_MAX: usize = 64 << 10;

/// After this a shell has seen an interrupt. If it has not, it does so before it reads what is typed next.
const CLEARED_US: u64 = 50_000;
/// After this a shell has read the keys that hand a command over; if it has not, it is asked and says so.
const KEYS_READ_US: u64 = 200_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No prompt was seen yet.
    Starting,
    /// At the prompt, nothing accepted.
    Ready,
    /// A person ended a line at the prompt; the next report makes it ready again.
    Typed,
    /// This command was handed over and has not ended.
    Running(u32),
}

/// The shell's state and the reports that move it.
#[derive(Debug)]
pub(crate) struct ShellState {
    pub(crate) shell: Phase,
    secret: Vec<u8>,
    /// A report of which the NUL has not come yet: the shell's stdio may split it at newlines.
    partial: Vec<u8>,
    /// Datagrams of other processes or without the secret.
    pub(crate) dropped: u64,
    last_id: u32,
    /// The report key was pressed for the running command: an R of the shell's is about that.
    is_asked: bool,
    /// A prompt came that was not the running command's: a refusal that comes behind it leaves the shell at that prompt.
    has_prompted: bool,
    keys: VecDeque<(Key, Status, u64)>,
    /// Something was typed since the last command was handed over: by a person at the prompt, or for a program that may
    /// have left it to the prompt.
    input_since_handover: bool,
    /// The shell was seen at its prompt and has not reported it.
    is_only_seen: bool,
    /// When the newest command was handed over.
    begun_at: u64,
    /// When the foreground was interrupted, with nothing typed and no prompt since.
    interrupted_at: Option<u64>,
}

impl ShellState {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self {
            shell: Phase::Starting,
            secret,
            partial: Vec::new(),
            dropped: 0,
            last_id: 0,
            is_asked: false,
            has_prompted: false,
            keys: VecDeque::new(),
            input_since_handover: false,
            is_only_seen: false,
            begun_at: 0,
            interrupted_at: None,
        }
    }

    /// The command that runs, 0 for none.
    pub(crate) fn command(&self) -> u32 {
        match self.shell {
            Phase::Running(id) => id,
            Phase::Starting | Phase::Ready | Phase::Typed => 0,
        }
    }

    /// Takes a datagram of the shell's; gives the whole report, its secret left out, once it is there.
    pub(crate) fn datagram(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > REPORT_BYTES_MAX {
            self.partial = Vec::new();
            self.dropped += 1;
        }
        if self.partial.last() != Some(&0) {
            return None;
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.pop();
        let report = self.without_secret(&whole);
        match &report {
            Some(report) => self.report(report),
            None => self.dropped += 1,
        }
        report
    }

    /// `D;<secret>;rest` becomes `D;;rest`: the events are kept on disk, the secret is not.
    fn without_secret(&self, report: &[u8]) -> Option<Vec<u8>> {
        let (kind, rest) = report.split_first_chunk::<2>()?;
        let rest = rest.strip_prefix(self.secret.as_slice())?;
        (kind[1] == b';' && rest.first() == Some(&b';')).then(|| [kind, rest].concat())
    }

    /// `D;;<nonce>;<id>;<exit>;<pipestatus>;<flags>;<cwd>` and `R;;<nonce>;<id>` move the state; the rest is for the
    /// server.
    pub(crate) fn report(&mut self, report: &[u8]) {
        let mut fields = report.splitn(8, |b| *b == b';');
        let kind = fields.next();
        let id = fields.nth(2).and_then(|f| std::str::from_utf8(f).ok()).and_then(|f| f.parse::<u32>().ok());
        match (kind, self.shell) {
            // Key and continuation line crossed: the shell refused the command, and a person's line is unfinished.
            // The same when it was asked and knows of no such command.
            (Some(b"R"), Phase::Running(run)) if id != Some(run) || !self.is_asked => {
                self.shell = if self.has_prompted { Phase::Ready } else { Phase::Typed };
            }
            (Some(b"D"), shell) => {
                self.interrupted_at = None;
                let is_answer_to_report_key = fields.nth(2).is_some_and(|flags| flags.contains(&b'l'));
                match shell {
                    // Lines that were typed ahead end before our keys are read.
                    Phase::Running(run) if id != Some(run) && !is_answer_to_report_key => self.has_prompted = true,
                    Phase::Starting | Phase::Ready | Phase::Typed | Phase::Running(_) => {
                        (self.shell, self.is_only_seen) = (Phase::Ready, false);
                    }
                }
            }
            _ => {}
        }
    }

    /// The shell was seen at its prompt.
    pub(crate) fn seen(&mut self) {
        (self.shell, self.is_only_seen) = (Phase::Ready, true);
    }

    /// Whether the shell was seen at its prompt and has not reported it. Its server may take it for one without hooks, which
    /// runs a command only where the foreground is known.
    pub(crate) fn is_only_seen(&self) -> bool {
        self.shell == Phase::Ready && self.is_only_seen
    }

    /// The foreground was interrupted: a shell that has the terminal throws away what a person has begun.
    pub(crate) fn interrupted(&mut self, now: u64) {
        self.interrupted_at = Some(now);
    }

    /// Whether what a person had typed was thrown away, so that a shell which waits for a line is at its prompt.
    pub(crate) fn is_cleared(&self, now: u64) -> bool {
        self.shell == Phase::Typed && self.interrupted_at.is_some_and(|at| now >= at + CLEARED_US)
    }

    /// Whether an interrupt may still be on its way to the shell: with it goes what it has read of the next keys.
    pub(crate) fn is_unsettled(&self, now: u64) -> bool {
        self.interrupted_at.is_some_and(|at| now < at + CLEARED_US)
    }

    /// Whether somebody has interrupted what a person had begun, and typed nothing since.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted_at.is_some()
    }

    /// Whether the editor may be in a search, a count or a half key.
    pub(crate) fn input_since_handover(&self) -> bool {
        self.input_since_handover
    }

    /// The report key was pressed.
    pub(crate) fn asked(&mut self) {
        self.is_asked = true;
    }

    /// Notes what was typed by nobody: an answer to a program's query.
    pub(crate) fn touch(&mut self) {
        self.input_since_handover = true;
    }

    /// Notes what was typed by hand: a line that was ended may run anything.
    pub(crate) fn typed(&mut self, bytes: &[u8]) {
        self.input_since_handover = true;
        self.interrupted_at = None;
        if self.shell == Phase::Ready && bytes.iter().any(|b| ENDS_LINE.contains(b)) {
            self.shell = Phase::Typed;
        }
    }

    /// The number of the next command; it counts as running from [`Self::begin`] on.
    pub(crate) fn next_id(&self) -> u32 {
        self.last_id + 1
    }

    /// A command was handed over so lately that the shell may not have read its keys yet.
    pub(crate) fn may_have_keys_to_read(&self, now: u64) -> bool {
        self.command() != 0 && now < self.begun_at + KEYS_READ_US
    }

    pub(crate) fn begin(&mut self, id: u32, now: u64) {
        (self.last_id, self.begun_at) = (id, now);
        self.is_asked = false;
        self.has_prompted = false;
        self.input_since_handover = false;
        self.shell = Phase::Running(id);
    }

    /// What this key got before. Its first half names the caller's key and its second half the request's body.
    pub(crate) fn earlier(&self, key: &Key) -> Option<(Status, u64)> {
        let (known, status, value) = self.keys.iter().find(|(k, ..)| is_same_name(k, key))?;
        Some(match (known == key, status) {
            (false, _) => (Status::KeyReused, *value),
            (true, Status::Ok) => (Status::Duplicate, *value),
            // What was not done in full is told as it was.
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
        let mut p = ShellState::new(b"s3".to_vec());
        assert_eq!(p.datagram(b"D;s3;n1;0;0;0;;/\0"), Some(b"D;;n1;0;0;0;;/".to_vec()));
        assert_eq!(p.shell, Phase::Ready);
        p
    }

    #[test]
    fn a_report_without_the_secret_moves_nothing_and_is_counted() {
        let mut p = ShellState::new(b"s3".to_vec());
        assert_eq!(p.datagram(b"D;s4;n;0;0;0;;/\0"), None);
        assert_eq!(p.datagram(b"D;;n;0;0;0;;/\0"), None);
        assert_eq!(p.datagram(b"x\0"), None);
        assert_eq!((p.shell, p.dropped), (Phase::Starting, 3));
    }

    #[test]
    fn a_report_that_was_split_at_newlines_is_joined() {
        let mut p = ready();
        p.begin(1, 0);
        assert_eq!(p.datagram(b"D;s3;n2;1;7;7;;/a\n"), None);
        assert_eq!(p.datagram(b"b;c\0"), Some(b"D;;n2;1;7;7;;/a\nb;c".to_vec()));
        assert_eq!(p.shell, Phase::Ready);
    }

    #[test]
    fn only_the_end_of_the_running_command_ends_it() {
        let mut p = ready();
        p.begin(1, 0);
        p.datagram(b"D;s3;n2;0;0;0;;/\0");
        assert_eq!(p.shell, Phase::Running(1));
        p.datagram(b"D;s3;n3;0;0;0;l;/\0");
        assert_eq!(p.shell, Phase::Ready);
    }

    #[test]
    fn a_command_that_the_shell_refused_to_take_is_not_running() {
        let mut p = ready();
        p.begin(1, 0);
        p.datagram(b"R;s3;n2;1\0");
        assert_eq!(p.shell, Phase::Typed);
        p.datagram(b"D;s3;n3;0;130;130;;/\0");
        p.begin(2, 0);
        p.asked();
        p.datagram(b"R;s3;n5;2\0");
        assert_eq!(p.shell, Phase::Running(2));
    }

    #[test]
    fn a_typed_line_makes_the_prompt_busy_until_the_shell_reports() {
        let mut p = ready();
        p.typed(b"ls");
        assert_eq!(p.shell, Phase::Ready);
        p.typed(b"\r");
        assert_eq!(p.shell, Phase::Typed);
        p.datagram(b"D;s3;n2;0;0;0;;/\0");
        assert_eq!(p.shell, Phase::Ready);
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
