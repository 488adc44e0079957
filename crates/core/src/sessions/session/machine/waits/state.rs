//! The open waits of the session, each with the conditions that end it, and all other callers that wait for something that
//! it does.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use journal::{MaskedText, Masks};
use terminal::Screen;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::matcher::{Echo, Matcher};
use crate::action::{EndedBy, Until, Wait};
use crate::limits::{GONE_SETTLES, QUESTION_STANDS, SCREEN_STILL, SCREEN_UNTOUCHED};
use crate::sessions::session::requests::{Finished, ScreenSnapshot, StartReply, Started};

/// A waiting caller. Dropping its receiver ends the wait and nothing else.
pub(crate) struct OpenWait {
    /// The command whose end ends the wait; `None` for whatever runs.
    pub(crate) command: Option<u32>,
    /// A wait for whatever runs ends with this many of the lines that were typed at the prompt.
    pub(crate) lines: u64,
    /// The first byte that counts as new for this caller.
    pub(crate) from: u64,
    pub(crate) began: Instant,
    pub(crate) accepted_bytes: Option<usize>,
    deadline: Instant,
    quiet: Option<Duration>,
    last_output: Instant,
    input_wanted: bool,
    /// It waits for a pattern, which a program that asks something else does not print.
    ends_on_question: bool,
    matcher: Option<Matcher>,
    vanishing: Vec<Vanishing>,
    /// The screen of a new command's own output, without its echo, if the wait needs it.
    painted: Option<Screen>,
    /// The wait ends when a full-screen program has left its screen unchanged for a while.
    ends_with_stillness: bool,
    ends_on_bell: bool,
    /// Conditions outside of the terminal are polled by another task.
    looks_outside: bool,
    /// The bell count when the wait began.
    bells: u64,
    /// Output before the command's beginning is its echo.
    awaits_beginning: bool,
    pub(crate) reply: oneshot::Sender<Finished>,
}

/// A pattern that ends the wait once the screen no longer has it.
struct Vanishing {
    pattern: crate::action::Pattern,
    was_there: bool,
    absent_since: Option<Instant>,
}

impl OpenWait {
    pub(crate) fn new(
        now: Instant,
        wait: Wait,
        command: Option<u32>,
        from: u64,
        (cols, masks): (u16, &Masks),
        accepted_bytes: Option<usize>,
        reply: oneshot::Sender<Finished>,
    ) -> Self {
        let asks = |what: fn(&Until) -> bool| wait.until.iter().any(what);
        // A wait for a specific condition does not end as soon as the program wants input.
        let ends_on_question = wait.input_wanted && wait.pattern.is_some() && wait.until.is_empty();
        let input_wanted =
            wait.input_wanted && wait.pattern.is_none() && wait.until.is_empty() || asks(|u| matches!(u, Until::Input));
        let ends_on_bell = asks(|u| matches!(u, Until::Bell));
        let looks_outside = asks(|u| matches!(u, Until::Listening(_) | Until::File(_)));
        let left = wait.left();
        let vanishing = wait.until.into_iter().filter_map(|until| match until {
            Until::Gone(pattern) => Some(Vanishing { pattern, was_there: false, absent_since: None }),
            Until::Listening(_) | Until::File(_) | Until::Bell | Until::Input => None,
        });
        Self {
            command,
            lines: 0,
            from,
            began: now,
            accepted_bytes,
            deadline: now + left,
            quiet: wait.quiet,
            last_output: now,
            input_wanted,
            ends_on_question,
            vanishing: vanishing.collect(),
            painted: None,
            ends_with_stillness: false,
            ends_on_bell,
            looks_outside,
            bells: 0,
            awaits_beginning: false,
            matcher: wait.pattern.map(|p| Matcher::new(p, cols, masks.clone())),
            reply,
        }
    }

    /// Whether the caller is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Ready once the caller of a wait with a pattern is gone: the pattern takes memory, and a place of its principal.
    pub(crate) fn poll_abandoned(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.matcher.is_none() && self.vanishing.is_empty() { Poll::Pending } else { self.reply.poll_closed(cx) }
    }

    /// The command's output begins at this offset.
    pub(crate) fn output_begins(&mut self, command: u32, at: u64) {
        if self.command == Some(command) {
            (self.from, self.awaits_beginning) = (at, false);
            if let Some(matcher) = &mut self.matcher {
                matcher.restart(self.accepted_bytes.is_some());
            }
            if let Some(painted) = &mut self.painted {
                let (cols, rows) = painted.size();
                *painted = Screen::new(cols, rows);
            }
        }
    }

    /// The call typed something, whose echo does not count.
    pub(crate) fn leaves_out(&mut self, echo: Option<Echo>) {
        if let (Some(matcher), Some(echo)) = (&mut self.matcher, echo) {
            matcher.leaves_out(echo);
        }
    }

    /// Output before the command's beginning does not count.
    pub(crate) fn awaits_beginning(&mut self) {
        self.awaits_beginning = true;
    }

    pub(crate) fn is_awaiting_beginning(&self) -> bool {
        self.awaits_beginning
    }

    /// Output before this offset is lost, perhaps including the command's beginning.
    pub(crate) fn goes_on_from(&mut self, offset: u64) {
        self.awaits_beginning = false;
        self.from = self.from.max(offset);
    }

    /// New output at `offset`; returns the match.
    pub(crate) fn output(&mut self, offset: u64, bytes: &[u8], now: Instant) -> Option<MaskedText> {
        self.last_output = now;
        if self.awaits_beginning {
            return None;
        }
        let skip = usize::try_from(self.from.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
        self.notice(&bytes[skip..]);
        if let Some(painted) = &mut self.painted {
            painted.feed(&bytes[skip..]);
            let rows = painted.text().join("\n");
            self.look(&rows, now);
        }
        self.matcher.as_mut().and_then(|m| m.feed(&bytes[skip..]))
    }

    /// The screen of a full-screen program; returns the match.
    pub(crate) fn screen(&mut self, rows: &MaskedText) -> Option<MaskedText> {
        self.matcher.as_ref().and_then(|m| m.pattern.find(rows).map(|found| rows.part(found.range())))
    }

    /// Sets the bell count at which the wait begins.
    pub(crate) fn count_bells_from(&mut self, bells: u64) {
        self.bells = bells;
    }

    /// Whether the awaited bell has rung.
    pub(crate) fn is_ended_by_bell(&self, bells: u64) -> bool {
        self.ends_on_bell && bells > self.bells
    }

    /// Nothing was run or typed for this wait: text that is not on the screen counts as gone.
    pub(crate) fn count_current_state(&mut self) {
        self.vanishing.iter_mut().for_each(|v| v.was_there = true);
    }

    /// Watches only the output of the command from now on, and not the whole screen.
    pub(crate) fn looks_at_its_command(&mut self, cols: u16, rows: u16) {
        self.painted = (!self.vanishing.is_empty()).then(|| Screen::new(cols, rows));
    }

    pub(crate) fn watches_screen(&self) -> bool {
        !self.vanishing.is_empty() && self.painted.is_none()
    }

    /// Text that comes and goes between two checks of the screen counts as seen.
    fn notice(&mut self, bytes: &[u8]) {
        if self.vanishing.iter().all(|v| v.was_there) {
            return;
        }
        let text = String::from_utf8_lossy(bytes).replace(|c: char| c.is_ascii_control(), "\n");
        self.vanishing.iter_mut().for_each(|v| v.was_there |= v.pattern.is_match(&text));
    }

    /// Checks whether the awaited text is still on the screen.
    pub(crate) fn look(&mut self, rows: &str, now: Instant) {
        for vanishing in &mut self.vanishing {
            if vanishing.pattern.is_match(rows) {
                (vanishing.was_there, vanishing.absent_since) = (true, None);
            } else if vanishing.was_there {
                vanishing.absent_since.get_or_insert(now);
            }
        }
    }

    /// How many characters its patterns match when this many bytes or cells are new.
    pub(crate) fn matching_work(&self, unread: usize, cells: usize) -> usize {
        let of_text = self.matcher.as_ref().map_or(0, |m| m.pattern.work(m.known() + unread + cells));
        of_text + self.vanishing.iter().map(|v| v.pattern.work(unread + cells)).sum::<usize>()
    }

    /// Whether it waits for a condition that needs no running command.
    pub(crate) fn wants_more(&self) -> bool {
        self.matcher.is_some() || self.ends_on_bell || self.looks_outside || !self.vanishing.is_empty()
    }

    pub(crate) fn wants_pattern(&self) -> bool {
        self.matcher.is_some()
    }

    /// A command or input was sent for this wait.
    pub(crate) fn end_on_idle_screen(&mut self) {
        self.ends_with_stillness = self.input_wanted;
    }

    /// When the wait ends if the screen, last painted at this time, stays unchanged.
    pub(crate) fn still_at(&self, painted_at: Instant) -> Option<Instant> {
        // A slow program may not have painted its answer to what was typed.
        let stillness = if self.last_output > self.began { SCREEN_STILL } else { SCREEN_UNTOUCHED };
        self.ends_with_stillness.then(|| painted_at.max(self.began) + stillness)
    }

    /// The state is not decided yet, so the quiet time has not begun.
    pub(crate) fn defer_quiet_timer(&mut self, now: Instant) {
        self.last_output = now;
    }

    /// Whether it ends when the program wants input or is stopped.
    pub(crate) fn ends_on_input_wanted(&self) -> bool {
        self.input_wanted
    }

    pub(crate) fn ends_on_question(&self) -> bool {
        self.ends_on_question
    }

    /// When a question ends it that stands since then.
    pub(crate) fn outlasted_at(&self, since: Instant) -> Option<Instant> {
        self.ends_on_question.then(|| since.max(self.began) + QUESTION_STANDS)
    }

    /// The next deadline.
    pub(crate) fn next_at(&self) -> Instant {
        let quiet = self.quiet.map(|quiet| self.last_output + quiet);
        let gone = self.vanishing.iter().filter_map(|v| v.absent_since).min().map(|since| since + GONE_SETTLES);
        [quiet, gone].into_iter().flatten().fold(self.deadline, Instant::min)
    }

    /// The result, if a deadline ends it now.
    pub(crate) fn by_time(&self, now: Instant) -> Option<(EndedBy, Option<String>)> {
        let has_gone = |v: &&Vanishing| v.absent_since.is_some_and(|since| now >= since + GONE_SETTLES);
        if let Some(gone) = self.vanishing.iter().find(has_gone) {
            Some((EndedBy::Matched, Some(format!("gone:{}", gone.pattern.as_str()))))
        } else if now >= self.deadline {
            Some((EndedBy::TimedOut, None))
        } else if self.quiet.is_some_and(|quiet| now >= self.last_output + quiet) {
            Some((EndedBy::Quiet, None))
        } else {
            None
        }
    }
}

/// The callers that wait for something that the session does.
#[derive(Default)]
pub(crate) struct OpenWaits {
    pub(crate) open: Vec<OpenWait>,
    pub(crate) at_prompt: Vec<oneshot::Sender<()>>,
    /// Callers that wait only until their command's output begins, with their deadlines.
    pub(crate) at_start: Vec<(u32, Instant, StartReply)>,
    /// Viewers that wait for the screen.
    pub(crate) pictures: Vec<oneshot::Sender<ScreenSnapshot>>,
}

impl OpenWaits {
    /// Answers callers that wait for the beginning of a command.
    pub(crate) fn notify_started(&mut self, which: impl Fn(u32) -> bool) {
        self.notify_start_where(|(id, ..)| which(*id));
    }

    /// Answers callers that have waited long enough for the beginning of a command.
    pub(crate) fn notify_overdue(&mut self, now: Instant) {
        self.notify_start_where(|(_, until, _)| now >= *until);
    }

    fn notify_start_where(&mut self, which: impl Fn(&(u32, Instant, StartReply)) -> bool) {
        for (id, _, started) in self.at_start.extract_if(.., |caller| which(caller)) {
            let _ = started.send(Ok(Started { id, is_history: false, finished: None }));
        }
    }

    /// Answers callers that wait for the shell's first prompt, or for what prevents it.
    pub(crate) fn notify_prompt(&mut self) {
        for caller in self.at_prompt.drain(..) {
            let _ = caller.send(());
        }
    }

    /// Until the caller of a wait with a pattern is gone. There may be more waits than a task may poll in one turn.
    pub(crate) async fn abandoned(&mut self) {
        let any = poll_fn(|cx| {
            if self.open.iter_mut().any(|w| w.poll_abandoned(cx).is_ready()) { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::task::unconstrained(any).await;
    }

    /// When the first wait, or the first caller that waits for a beginning, times out.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let start = self.at_start.iter().map(|(_, until, _)| *until);
        self.open.iter().map(OpenWait::next_at).chain(start).min()
    }
}
