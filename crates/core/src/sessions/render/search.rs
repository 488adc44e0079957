//! Searches a session's output: matching lines of plain text, with their offsets in the journal.
//!
//! It searches the text that a reader of the output gets, rendered a block at a time. So memory is bounded whatever the
//! journal's size, and a command's output is never mixed with the text around it. An offset is verified before it is
//! returned: the line there, or the text that ends with that line, reads as the match does.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use journal::{MaskedText, Masks, Reader};
use regex::Regex;
use terminal::Scanner;

use super::handover::{Cuts, Handovers};
use super::paint::plain;
use super::range;
use crate::host::holders::MaskedFolder;
use crate::limits;
use crate::store::CommandRange;

/// Journal bytes rendered at once. They are enough that most of the time is spent in the text, and few enough to find an
/// offset inside by rendering parts again.
const BLOCK_BYTES: u64 = 64 << 10;

/// A range of output: of one command, or background output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sessions) struct Segment {
    pub(in crate::sessions) from: u64,
    pub(in crate::sessions) to: u64,
    pub(in crate::sessions) command: Option<u32>,
}

/// The parameters of a search.
pub(in crate::sessions) struct SearchParameters<'a> {
    pub(in crate::sessions) pattern: &'a Regex,
    pub(in crate::sessions) matches_max: usize,
    /// The newest matches of all, and not the first ones.
    pub(in crate::sessions) newest: bool,
    pub(in crate::sessions) cols: u16,
    /// The last line may still grow.
    pub(in crate::sessions) is_growing: bool,
}

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sessions) struct Hit {
    /// The line's offset in the journal; in a search for the newest an offset before it, from which it can be read.
    pub(in crate::sessions) offset: u64,
    /// The line number in the searched range, from 1.
    pub(in crate::sessions) line: u64,
    pub(in crate::sessions) text: MaskedText,
    pub(in crate::sessions) command: Option<u32>,
}

/// The result of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::sessions) struct Hits {
    pub(in crate::sessions) hits: VecDeque<Hit>,
    /// How many lines match, also those that are not among the hits.
    pub(in crate::sessions) matching: u64,
    /// How many lines were searched.
    pub(in crate::sessions) lines: u64,
    /// The offset at which to continue.
    pub(in crate::sessions) next: u64,
    /// The requested number of matches was found; there may be more.
    pub(in crate::sessions) is_full: bool,
}

/// Searches the ranges in order. It reads everything, so it belongs on a thread that may block; `is_given_up` is
/// polled.
pub(in crate::sessions) fn search(
    (folder, reader): (&MaskedFolder, &Reader),
    segments: &[Segment],
    wanted: &SearchParameters<'_>,
    is_given_up: &dyn Fn() -> bool,
) -> io::Result<Hits> {
    let mut hits = Hits { next: segments.first().map_or(0, |s| s.from), ..Hits::default() };
    let mut handovers = Handovers::default();
    let mut cuts = |from, to| handovers.cuts(folder, reader, from, to);
    for (i, segment) in segments.iter().enumerate() {
        let is_last = i + 1 == segments.len();
        search_segment((reader, folder.masks()), &mut cuts, (segment, is_last), wanted, &mut hits, is_given_up)?;
        if hits.is_full || is_given_up() {
            break;
        }
    }
    Ok(hits)
}

fn search_segment(
    (reader, masks): (&Reader, &Masks),
    cuts: &mut impl FnMut(u64, u64) -> io::Result<Cuts>,
    (segment, is_last): (&Segment, bool),
    wanted: &SearchParameters<'_>,
    hits: &mut Hits,
    is_given_up: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut scanner = Scanner::new(segment.from);
    let mut at = segment.from;
    hits.next = at;
    let mut block_bytes = BLOCK_BYTES;
    while at < segment.to && !is_given_up() {
        let mut slice = range::read(reader, at, segment.to.min(at + block_bytes))?;
        if slice.bytes.is_empty() {
            break;
        }
        let reached = slice.from + slice.bytes.len() as u64;
        if reached < segment.to {
            match memchr::memrchr(b'\n', &slice.bytes) {
                Some(last) => slice.bytes.truncate(last + 1),
                // A line that does not fit is read again in a larger block.
                None if block_bytes < limits::SEARCH_LINE_BYTES_MAX => {
                    block_bytes *= 4;
                    continue;
                }
                // At least one byte: a journal shorter than its events say may end within a sequence.
                None => slice.bytes.truncate(range::whole_text(&slice.bytes).max(1)),
            }
        }
        block_bytes = BLOCK_BYTES;
        at = slice.from + slice.bytes.len() as u64;
        let block = Block {
            from: slice.from,
            bytes: &slice.bytes,
            cuts: cuts(slice.from, at)?,
            cols: wanted.cols,
            in_paint: scanner.modes().alt_screen,
            masks,
        };
        let is_end = is_last && at >= segment.to;
        search_block(&block, segment, is_end, wanted, hits);
        if hits.is_full {
            return Ok(());
        }
        scanner.feed(&slice.bytes, &mut |_| {});
    }
    Ok(())
}

/// A block of output lines.
struct Block<'a> {
    from: u64,
    bytes: &'a [u8],
    cuts: Cuts,
    cols: u16,
    /// The block begins within the paint of a full-screen program, which is not text.
    in_paint: bool,
    masks: &'a Masks,
}

impl Block<'_> {
    fn render(&self, range: Range<usize>) -> MaskedText {
        let bytes = self.cuts.apply(&self.bytes[range.clone()], self.from + range.start as u64);
        plain(&bytes, self.cols, self.in_paint, self.masks).text
    }

    /// The range of the line in the bytes that produced this line of the text.
    fn place(&self, starts: &[usize], index: usize, line: &str) -> (usize, usize) {
        let end = |i: usize| starts.get(i + 1).copied().unwrap_or(self.bytes.len());
        let reads = |text: &str, nth: usize| text.lines().nth(nth) == Some(line);
        // Without overwriting, each line of bytes is one line of text.
        if let Some(from) = starts.get(index)
            && reads(&self.render(*from..end(index)), 0)
        {
            return (*from, end(index));
        }
        let (mut without, mut with) = (0, starts.len());
        while with - without > 1 {
            let middle = without + (with - without) / 2;
            if reads(&self.render(0..starts[middle]), index) { with = middle } else { without = middle }
        }
        (starts.get(with - 1).copied().unwrap_or(0), end(with - 1))
    }
}

fn search_block(block: &Block<'_>, segment: &Segment, is_end: bool, wanted: &SearchParameters<'_>, hits: &mut Hits) {
    let (from, text) = (block.from, block.render(0..block.bytes.len()));
    let mut starts = Vec::new();
    let mut is_open_matched = false;
    let last = if wanted.newest { text.lines().count().saturating_sub(1) } else { 0 };
    for (index, line) in text.lines().enumerate() {
        hits.lines += 1;
        let Some(found) = wanted.pattern.find(line) else { continue };
        if starts.is_empty() && !wanted.newest {
            starts.push(0);
            starts
                .extend(memchr::memchr_iter(b'\n', block.bytes).map(|at| at + 1).filter(|at| *at < block.bytes.len()));
        }
        // Of many matches few are the newest, and a place costs the rendering of the block again.
        let (begin, end) = match wanted.newest {
            true if index == last => (0, block.bytes.len()),
            true => (0, 0),
            false => block.place(&starts, index, line),
        };
        hits.matching += 1;
        if wanted.newest && hits.hits.len() >= wanted.matches_max {
            hits.hits.pop_front();
        }
        hits.hits.push_back(Hit {
            offset: from + begin as u64,
            line: hits.lines,
            text: block.masks.text(around(line, found.range(), limits::SEARCH_LINE_CHARS_MAX)),
            command: segment.command,
        });
        hits.next = from + end as u64;
        is_open_matched = end == block.bytes.len();
        if !wanted.newest && hits.hits.len() >= wanted.matches_max {
            hits.is_full = true;
            return;
        }
    }
    hits.next = from + block.bytes.len() as u64;
    if is_end && wanted.is_growing && !is_open_matched && block.bytes.last() != Some(&b'\n') {
        // The rest of an unfinished last line may make it match, so it is searched again.
        let whole = memchr::memrchr(b'\n', block.bytes).map_or(0, |i| i + 1);
        hits.next = from + whole as u64;
    }
}

/// The line, or as many characters of a longer one around the match, with `…` where the line continues.
fn around(line: &str, found: Range<usize>, chars_max: usize) -> String {
    let (before, after) = (&line[..found.start], &line[found.end..]);
    let (before_chars, found_chars) = (before.chars().count(), line[found].chars().count());
    let chars = before_chars + found_chars + after.chars().count();
    if chars <= chars_max {
        return line.to_owned();
    }
    let margin = chars_max.saturating_sub(found_chars) / 2;
    let from = before_chars.saturating_sub(margin).min(chars - chars_max);
    let part: String = line.chars().skip(from).take(chars_max).collect();
    let (begins, ends) = (if from > 0 { "…" } else { "" }, if from + chars_max < chars { "…" } else { "" });
    format!("{begins}{part}{ends}")
}

/// The ranges within `from..to`: the commands' outputs and the output between them, in order. The commands are in the
/// order in which they ran and do not overlap; a running one has no end yet.
pub(in crate::sessions) fn segments(commands: &[CommandRange], from: u64, to: u64) -> Vec<Segment> {
    let mut all = Vec::new();
    let mut at = from;
    let mut push = |from: u64, to: u64, command| {
        if from < to {
            all.push(Segment { from, to, command });
        }
    };
    for (id, start, end) in commands {
        if end.is_some_and(|end| end < from) || *start > to {
            continue;
        }
        let (start, end) = ((*start).clamp(at, to.max(at)), end.unwrap_or(u64::MAX).min(to));
        push(at, start, None);
        push(start, end, Some(*id));
        at = at.max(end.max(start));
    }
    push(at, to, None);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// A journal with this in it, as a holder writes one.
    fn journal(bytes: &[u8]) -> (tempfile::TempDir, Reader) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut events = journal::EventsWriter::create(dir.path()).expect("events");
        events.release().expect("released");
        let mut file = std::fs::File::create(dir.path().join(journal::JOURNAL_FILE)).expect("a journal");
        file.write_all(bytes).expect("written");
        let reader = Reader::open(dir.path(), Masks::default()).expect("readable");
        (dir, reader)
    }

    fn find(bytes: &[u8], pattern: &str, matches_max: usize) -> Hits {
        find_in_order(bytes, pattern, matches_max, false)
    }

    fn find_in_order(bytes: &[u8], pattern: &str, matches_max: usize, newest: bool) -> Hits {
        let (dir, reader) = journal(bytes);
        let pattern = Regex::new(pattern).expect("valid");
        let wanted = SearchParameters { pattern: &pattern, matches_max, newest, cols: 80, is_growing: true };
        let whole = [Segment { from: 0, to: bytes.len() as u64, command: Some(1) }];
        search((&MaskedFolder::of_test(dir.path()), &reader), &whole, &wanted, &|| false).expect("readable")
    }

    fn hit(offset: usize, line: u64, text: &str) -> Hit {
        Hit { offset: offset as u64, line, text: Masks::default().text(text.to_owned()), command: Some(1) }
    }

    #[test]
    fn a_line_is_found_where_it_was_printed() {
        let found = find(b"one\r\n\x1b[31mtwo\x1b[0m\r\nthree\r\ntw", "t[wh]", 10);
        assert_eq!(found.hits, [hit(5, 2, "two"), hit(19, 3, "three"), hit(26, 4, "tw")]);
        assert_eq!((found.lines, found.next, found.is_full), (4, 28, false));
    }

    #[test]
    fn the_newest_matches_are_the_last_ones_and_all_are_counted() {
        let printed = b"a1\r\nb\r\na2\r\na3\r\nb\r\n";
        let found = find_in_order(printed, "a", 2, true);
        assert_eq!(found.hits, [hit(0, 3, "a2"), hit(0, 4, "a3")]);
        assert_eq!((found.matching, found.lines, found.next, found.is_full), (3, 5, 18, false));
        assert_eq!(find_in_order(printed, "c", 2, true).matching, 0);
    }

    #[test]
    // promise: output-13
    fn an_overwritten_line_is_found_in_its_final_form() {
        let output = b"first\r\nwaiting\r\nlast\r\n\x1b[2A\x1b[Kdone\r\n\x1b[Bafter\r\n";
        assert_eq!(find(output, "waiting", 10).hits, []);
        // The line that the cursor went back to was made by what was printed last.
        assert_eq!(find(output, "done|after", 10).hits, [hit(22, 2, "done"), hit(35, 4, "after")]);
        let progress = b"10 %\r50 %\r100 %\r\nok\r\n";
        assert_eq!(find(progress, "%", 10).hits, [hit(0, 1, "100 %")]);
    }

    #[test]
    fn paint_of_a_full_screen_program_is_not_found_in_any_block() {
        let mut output = b"before\r\n\x1b[?1049h".to_vec();
        for _ in 0..10_000 {
            output.extend(b"paint needle paint\r\n");
        }
        output.extend(b"\x1b[?1049lneedle\r\n");
        let found = find(&output, "needle", 10);
        assert_eq!(found.hits.len(), 1, "{:?}", found.hits.front());
        assert_eq!(found.hits[0].text, "needle");
    }

    #[test]
    // promise: output-13
    fn a_search_that_is_full_continues_behind_its_last_match_and_finds_every_line_once() {
        let mut output = Vec::new();
        for number in 0..30_000 {
            output.extend(format!("line {number}\r\n").into_bytes());
        }
        let (dir, reader) = journal(&output);
        let pattern = Regex::new("7$").expect("valid");
        let wanted =
            SearchParameters { pattern: &pattern, matches_max: 700, newest: false, cols: 80, is_growing: false };
        let (mut from, mut texts) = (0, Vec::new());
        loop {
            let rest = [Segment { from, to: output.len() as u64, command: None }];
            let found =
                search((&MaskedFolder::of_test(dir.path()), &reader), &rest, &wanted, &|| false).expect("readable");
            for hit in &found.hits {
                let at = usize::try_from(hit.offset).expect("small");
                assert!(output[at..].starts_with(format!("{}\r\n", hit.text).as_bytes()), "{hit:?}");
            }
            texts.extend(found.hits.into_iter().map(|h| String::from(h.text)));
            from = found.next;
            if !found.is_full {
                break;
            }
        }
        let expected: Vec<String> = (0..30_000).filter(|n| n % 10 == 7).map(|n| format!("line {n}")).collect();
        assert!(texts == expected, "{} lines", texts.len());
        assert_eq!(from, output.len() as u64);
    }

    #[test]
    // promise: output-13
    fn a_long_line_is_one_line_wherever_its_match_is() {
        for before in [64_533, 65_530, 65_533, 65_536, 131_072, 300_000] {
            let line = format!("{}NEEDLE{}", "x".repeat(before), "y".repeat(100_000));
            let output = format!("first\r\n{line}\r\nlast\r\n").into_bytes();
            let found = find(&output, "NEEDLE|last", 10);
            let places: Vec<_> = found.hits.iter().map(|hit| (hit.offset, hit.line)).collect();
            assert_eq!(places, [(7, 2), (7 + line.len() as u64 + 2, 3)], "{before}");
            assert_eq!(found.lines, 3, "{before}");
        }
        let characters = format!("x{}\r\n", "\u{e9}".repeat(40_000)).into_bytes();
        assert_eq!(find(&characters, "xa9", 10).hits, []);
        // Beyond all measure it is cut, with a character.
        let beyond = format!("x{}\r\n", "\u{e9}".repeat(3_000_000)).into_bytes();
        let found = find(&beyond, "\u{e9}", 10);
        assert_eq!((found.hits.len(), find(&beyond, "xa9|xc3|\u{fffd}", 10).hits.len()), (2, 0));
    }

    #[test]
    // promise: output-13
    fn a_hit_shows_the_part_of_a_long_line_with_the_match() {
        for (before, after) in [(0, 5000), (10, 5000), (2500, 2500), (5000, 10), (5000, 0), (400, 400)] {
            let line = format!("{}NEEDLE{}", "é".repeat(before), "y".repeat(after));
            let found = find(format!("{line}\r\n").as_bytes(), "NEEDLE", 10);
            let shown = &found.hits[0].text;
            let part = shown.trim_matches('…');
            assert!(part.contains("NEEDLE") && line.contains(part), "{before} {after}: {shown}");
            assert_eq!(part.chars().count(), (before + 6 + after).min(1000), "{before} {after}");
            assert_eq!(shown.starts_with('…'), !line.starts_with(part), "{before} {after}");
            assert_eq!(shown.ends_with('…'), !line.ends_with(part), "{before} {after}");
        }
        let long = "x".repeat(3000);
        assert_eq!(find(format!("{long}\r\n").as_bytes(), "x+", 10).hits[0].text, *format!("{}…", "x".repeat(1000)));
    }

    #[test]
    fn an_unfinished_line_is_looked_at_again_when_it_may_still_come_to_match() {
        assert_eq!(find(b"ready\r\nlisten", "listening", 10).next, 7);
        assert_eq!(find(b"ready\r\nlisten", "listen", 10).next, 13);
    }

    #[test]
    fn a_range_includes_its_commands_and_the_output_between_them() {
        let all = [(1, 10, Some(20)), (2, 30, Some(30)), (3, 40, None)];
        let shown =
            |from, to| -> Vec<_> { segments(&all, from, to).into_iter().map(|s| (s.from, s.to, s.command)).collect() };
        let all_of_it = [(0, 10, None), (10, 20, Some(1)), (20, 30, None), (30, 40, None), (40, 50, Some(3))];
        assert_eq!(shown(0, 50), all_of_it);
        assert_eq!(shown(15, 35), [(15, 20, Some(1)), (20, 30, None), (30, 35, None)]);
        assert_eq!(shown(45, 50), [(45, 50, Some(3))]);
    }
}
