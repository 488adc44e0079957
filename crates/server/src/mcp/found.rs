//! Searching a session's text: matching lines with their numbers, over any length, a page at a time.
//!
//! Only one page is in memory, and a line that two pages share is put together before it is matched.

use regex::Regex;

use super::text::{self, Facts, grouped};
use super::tools::{Answer, Call, Refusal, output};
use crate::action::{SessionView, Since, View};

/// Matches in one answer when the caller does not say.
pub(super) const MATCHES_DEFAULT: usize = 100;
/// Bytes of one page: at most four characters stand for a byte, so its text always fits one answer.
const PAGE_BYTES: usize = crate::limits::BUDGET_CHARS / 4;
/// Characters of a matching line that are shown.
const LINE_CHARS_MAX: usize = 1_000;

/// Every matching line from a position on, counted from 1 there.
pub(super) async fn search(
    call: &Call<'_>,
    session: &SessionView,
    since: Since,
    end: Option<u64>,
    pattern: &Regex,
    matches_max: usize,
) -> Result<Answer, Refusal> {
    let mut finder = Finder { pattern, matches_max, lines: 0, matches: 0, text: String::new(), open: String::new() };
    let mut since = since;
    let stop = end.unwrap_or(session.end_offset);
    let next = loop {
        let limit = match since {
            Since::Offset(at) => usize::try_from(stop.saturating_sub(at)).unwrap_or(PAGE_BYTES).min(PAGE_BYTES),
            Since::First | Since::Time(_) | Since::Last | Since::Command(_) => PAGE_BYTES,
        };
        let view = output::output(call, &session.id, since, View::Text, limit, None).await?;
        finder.page(&view.text.head);
        finder.page(&view.text.tail);
        let is_stuck = view.next <= view.from;
        if is_stuck || view.next >= stop || finder.is_full() {
            break view.next;
        }
        since = Since::Offset(view.next);
    };
    finder.finish();
    call.note(session);
    let mut facts = Facts::default();
    let found = text::counted(finder.matches as u64, "matching line", "matching lines");
    facts.add(format!("{found} in {}", grouped(finder.lines)));
    if finder.is_full() {
        facts.add("more may follow: search again with since");
    }
    text::metadata(&mut facts, session, &call.telling(None, None));
    facts.add(format!("next o:{next}"));
    Ok((finder.text + &facts.line()).into())
}

struct Finder<'a> {
    pattern: &'a Regex,
    matches_max: usize,
    lines: u64,
    matches: usize,
    text: String,
    /// The last line of a page, which the next page may continue.
    open: String,
}

impl Finder<'_> {
    fn page(&mut self, text: &str) {
        self.open.push_str(text);
        let Some(end) = self.open.rfind('\n') else { return };
        let rest = self.open.split_off(end + 1);
        let whole = std::mem::replace(&mut self.open, rest);
        whole.lines().for_each(|line| self.line(line));
    }

    fn line(&mut self, line: &str) {
        self.lines += 1;
        if self.matches < self.matches_max && self.pattern.is_match(line) {
            self.matches += 1;
            let short: String = line.chars().take(LINE_CHARS_MAX).collect();
            self.text += &format!("{}: {short}\n", self.lines);
        }
    }

    fn is_full(&self) -> bool {
        self.matches >= self.matches_max || self.text.len() >= crate::limits::BUDGET_CHARS
    }

    fn finish(&mut self) {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.line(&open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_two_pages_share_is_matched_once_and_counted_once() {
        let pattern = Regex::new("err.r").expect("valid");
        let mut finder = Finder {
            pattern: &pattern,
            matches_max: 9,
            lines: 0,
            matches: 0,
            text: String::new(),
            open: String::new(),
        };
        ["ok\nan er", "ror here\n", "fine\nerror"].iter().for_each(|page| finder.page(page));
        finder.finish();
        assert_eq!((finder.text.as_str(), finder.lines), ("2: an error here\n4: error\n", 4));
    }
}
