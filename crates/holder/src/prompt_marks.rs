//! Prompt marks: a shell without our line editor reports its prompt and `$?` in the output itself.
//!
//! `ESC ] 7337 ; D ; <number>.<status> BEL`; a shell that knows more appends `.<command>` and `.<flags>`. The numbers
//! follow a sequence whose start only the shell was given, so a program that forges a mark must have computed it from
//! earlier ones. That is weaker than a report stamped by the kernel, and is reported as weaker. A mark also shows ends
//! that no report shows: of a line that a person typed, and of a command that was cut short.

use journal::Offset;

use crate::records::{MARKER_SOUGHT_BYTES, Records};

/// How many numbers the shell may be ahead: marks that were written and not found, as in a flood of output.
const AHEAD_MAX: usize = 64;
/// The bytes before the number.
const OPENING: &[u8] = b"\x1b]7337;D;";
/// The longest prompt mark: its numbers and the bytes around them.
const MARK_BYTES_MAX: u64 = 64;

/// Searches new output for prompt marks.
#[derive(Debug)]
pub(crate) struct MarkSearch {
    sequence: PromptSequence,
    /// Output before this offset was searched.
    searched: Offset,
}

impl MarkSearch {
    pub(crate) fn new(seed: u32) -> Self {
        Self { sequence: PromptSequence::new(seed), searched: Offset::ZERO }
    }

    /// The shell reported an end on the attestation socket; its prompt mark follows.
    pub(crate) fn reported(&mut self) {
        self.sequence.reported();
    }

    /// The marks in the output since the last search, as far as it is among the newest MARKER_SOUGHT_BYTES.
    pub(crate) fn search(&mut self, records: &Records) -> Vec<PromptMark> {
        let end = records.end();
        if self.searched >= end {
            return Vec::new();
        }
        let from = self.searched.0.saturating_sub(MARK_BYTES_MAX).max(end.0.saturating_sub(MARKER_SOUGHT_BYTES as u64));
        self.searched = end;
        let mut newest = [0; MARKER_SOUGHT_BYTES];
        let Some(newest) = newest.get_mut(..(end.0 - from) as usize) else { return Vec::new() };
        let Some(newest) = records.newest(newest) else { return Vec::new() };
        let begins = end.0 - newest.len() as u64;
        self.sequence.marks_in(newest, begins)
    }
}

/// The sequence up to the newest mark.
#[derive(Debug)]
struct PromptSequence {
    last: u32,
    /// The offset of the newest mark.
    last_end: u64,
    /// A report announced an end, and its prompt mark has not come yet: that mark is not news.
    is_expected: bool,
}

/// A prompt mark in the output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PromptMark {
    /// The mark's text as it is in the output.
    pub(crate) nonce: String,
    pub(crate) status: i32,
    /// The ended command (0 for a typed line) and its flags; `None` from a shell that does not know them.
    pub(crate) command: Option<(u32, String)>,
    /// The offset where it begins.
    pub(crate) at: u64,
    /// True if this mark is the only evidence of the end: no report preceded it and no newer mark follows.
    pub(crate) is_news: bool,
}

impl PromptSequence {
    /// Starts with the number that the shell was given: 31 bits, because some shells count no further.
    pub(crate) fn new(seed: u32) -> Self {
        Self { last: seed, last_end: 0, is_expected: false }
    }

    /// The shell reported an end on the attestation socket; its prompt mark follows.
    pub(crate) fn reported(&mut self) {
        self.is_expected = true;
    }

    /// The marks in these bytes, of which only the newest may be news; an editor may paint the same mark again. `from`
    /// is the offset of the bytes, which may overlap those of an earlier call.
    fn marks_in(&mut self, bytes: &[u8], from: u64) -> Vec<PromptMark> {
        let mut all: Vec<PromptMark> = Vec::new();
        for at in bytes.windows(OPENING.len()).enumerate().filter(|(_, w)| *w == OPENING).map(|(at, _)| at) {
            let rest = bytes.get(at + OPENING.len()..).unwrap_or_default();
            let at = from + at as u64;
            let Some((number, drawn)) = parse(rest, at).filter(|_| at >= self.last_end) else { continue };
            let is_again = self.last_end > 0 && number == self.last;
            if !is_again && !self.ahead(number) {
                continue;
            }
            (self.last, self.last_end) = (number, at + OPENING.len() as u64);
            if is_again {
                all.push(PromptMark { is_news: false, ..drawn });
            } else {
                all.iter_mut().for_each(|earlier| earlier.is_news = false);
                all.push(PromptMark { is_news: !std::mem::take(&mut self.is_expected), ..drawn });
            }
        }
        all
    }

    fn ahead(&self, number: u32) -> bool {
        std::iter::successors(Some(next(self.last)), |n| Some(next(*n))).take(AHEAD_MAX).any(|n| n == number)
    }
}

/// The same step that sh.sh computes.
fn next(number: u32) -> u32 {
    number.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff
}

fn parse(rest: &[u8], at: u64) -> Option<(u32, PromptMark)> {
    let end = rest.iter().take(MARK_BYTES_MAX as usize).position(|b| *b == 0x07)?;
    let nonce = std::str::from_utf8(rest.get(..end)?).ok()?;
    let mut words = nonce.split('.');
    let number = words.next()?.parse().ok()?;
    let status = words.next()?.parse().ok()?;
    let command = match (words.next(), words.next()) {
        (Some(id), flags) => Some((id.parse().ok()?, flags.unwrap_or_default().to_owned())),
        (None, _) => None,
    };
    Some((number, PromptMark { nonce: nonce.to_owned(), status, command, at, is_news: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u32, status: i32) -> Vec<u8> {
        format!("\x1b]7337;D;{number}.{status}\x07$ ").into_bytes()
    }

    fn drawn(number: u32, status: i32, at: usize, is_news: bool) -> PromptMark {
        PromptMark { nonce: format!("{number}.{status}"), status, command: None, at: at as u64, is_news }
    }

    #[test]
    // promise: shell-8
    fn a_prompt_of_the_sequence_is_reported_once_and_any_other_is_not() {
        let mut prompts = PromptSequence::new(5);
        let (one, two, three) = (next(5), next(next(5)), next(next(next(5))));
        assert_eq!(one, 1_222_621_274, "what dash, busybox and mksh compute");
        assert_eq!(prompts.marks_in(&mark(5, 0), 0), [], "the seed that the shell was given is in no prompt");
        assert_eq!(prompts.marks_in(&mark(4711, 0), 0), []);
        assert_eq!(prompts.marks_in(&mark(one, 3), 0), [drawn(one, 3, 0, true)]);
        assert_eq!(prompts.marks_in(&mark(one, 3), 0), [], "searched again");
        assert_eq!(prompts.marks_in(&mark(one, 3), 100), [drawn(one, 3, 100, false)], "painted again");
        let flood = [b"noise".to_vec(), mark(two, 130), mark(three, 0)].concat();
        let second = 205 + mark(two, 130).len();
        assert_eq!(prompts.marks_in(&flood, 200), [drawn(two, 130, 205, false), drawn(three, 0, second, true)]);
    }

    #[test]
    fn a_shell_that_knows_says_which_command_has_ended_and_what_was_unusual() {
        let parsed = |words: &str| {
            let mark = format!("\x1b]7337;D;{}.{words}\x07", next(5));
            PromptSequence::new(5).marks_in(mark.as_bytes(), 0).pop().map(|drawn| (drawn.status, drawn.command))
        };
        assert_eq!(parsed("1.12.in"), Some((1, Some((12, "in".to_owned())))));
        assert_eq!(parsed("0.0"), Some((0, Some((0, String::new())))));
        assert_eq!((parsed("0.x"), parsed("x.1")), (None, None));
    }

    #[test]
    fn the_prompt_after_a_reported_end_is_not_news() {
        let mut prompts = PromptSequence::new(5);
        prompts.reported();
        assert_eq!(prompts.marks_in(&mark(next(5), 0), 0), [drawn(next(5), 0, 0, false)]);
        let later = next(next(next(5)));
        assert_eq!(
            prompts.marks_in(&mark(later, 1), 100),
            [drawn(later, 1, 100, true)],
            "one that was missed does not end it"
        );
    }
}
