//! One open wait: what ends it, decided the moment that it is decided.

use std::time::Duration;

use terminal::Transcript;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::session::Finished;
use crate::action::{EndedBy, Wait};
use crate::limits::PATTERN_TEXT_MAX;

/// A caller that waits. Dropping its receiver ends the wait and nothing else.
pub(crate) struct Waiter {
    /// Whose end ends it; `None` waits on whatever runs.
    pub(crate) command: Option<u32>,
    /// The first byte that counts as new for this caller.
    pub(crate) from: u64,
    pub(crate) began: Instant,
    pub(crate) accepted_bytes: Option<usize>,
    deadline: Instant,
    quiet: Option<Duration>,
    last_output: Instant,
    input_wanted: bool,
    matcher: Option<Matcher>,
    pub(crate) reply: oneshot::Sender<Finished>,
}

/// A pattern and the clean text that it is matched against.
struct Matcher {
    pattern: regex::Regex,
    transcript: Transcript,
    cols: u16,
    /// Finished lines, the newest part.
    text: String,
}

impl Matcher {
    fn new(pattern: regex::Regex, cols: u16) -> Self {
        Self { pattern, transcript: Transcript::new(cols), cols, text: String::new() }
    }

    /// The bytes of an echo and a prompt do not count: the command's own output begins here.
    fn restart(&mut self) {
        self.transcript = Transcript::new(self.cols);
        self.text.clear();
    }

    fn feed(&mut self, bytes: &[u8]) -> Option<String> {
        self.transcript.feed(bytes);
        self.text.push_str(&self.transcript.take_finished());
        // A prompt has no line end, so the unfinished line counts too.
        let seen = format!("{}{}", self.text, self.transcript.peek());
        let found = self.pattern.find(&seen).map(|m| m.as_str().to_owned());
        if self.text.len() > PATTERN_TEXT_MAX {
            let cut = (self.text.len() - PATTERN_TEXT_MAX / 2..self.text.len())
                .find(|i| self.text.is_char_boundary(*i))
                .unwrap_or(self.text.len());
            self.text.drain(..cut);
        }
        found
    }
}

impl Waiter {
    pub(crate) fn new(
        wait: Wait,
        command: Option<u32>,
        from: u64,
        cols: u16,
        accepted_bytes: Option<usize>,
        reply: oneshot::Sender<Finished>,
    ) -> Self {
        let now = Instant::now();
        Self {
            command,
            from,
            began: now,
            accepted_bytes,
            deadline: now + wait.timeout,
            quiet: wait.quiet,
            last_output: now,
            // Who waits for a pattern gets the pattern, whatever the program asks meanwhile.
            input_wanted: wait.input_wanted && wait.pattern.is_none(),
            matcher: wait.pattern.map(|p| Matcher::new(p, cols)),
            reply,
        }
    }

    /// The caller has gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// The output of the command begins here.
    pub(crate) fn output_begins(&mut self, command: u32, at: u64) {
        if self.command == Some(command) {
            self.from = at;
            if let Some(matcher) = &mut self.matcher {
                matcher.restart();
            }
        }
    }

    /// New output, standing at `offset`; gives what matched.
    pub(crate) fn output(&mut self, offset: u64, bytes: &[u8], now: Instant) -> Option<String> {
        self.last_output = now;
        let skip = usize::try_from(self.from.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
        self.matcher.as_mut().and_then(|m| m.feed(&bytes[skip..]))
    }

    /// The screen of a full-screen program; gives what matched.
    pub(crate) fn screen(&mut self, rows: &str) -> Option<String> {
        self.matcher.as_ref().and_then(|m| m.pattern.find(rows).map(|f| f.as_str().to_owned()))
    }

    pub(crate) fn wants_pattern(&self) -> bool {
        self.matcher.is_some()
    }

    /// Whether it ends when the program wants input or is stopped.
    pub(crate) fn heeds_pauses(&self) -> bool {
        self.input_wanted
    }

    /// When it has to be looked at again at the latest.
    pub(crate) fn next_at(&self) -> Instant {
        self.quiet.map_or(self.deadline, |quiet| self.deadline.min(self.last_output + quiet))
    }

    /// Whether time ends it.
    pub(crate) fn by_time(&self, now: Instant) -> Option<EndedBy> {
        if now >= self.deadline {
            Some(EndedBy::TimedOut)
        } else if self.quiet.is_some_and(|quiet| now >= self.last_output + quiet) {
            Some(EndedBy::Quiet)
        } else {
            None
        }
    }
}
