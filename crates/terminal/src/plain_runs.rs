//! Plain runs: long parts of the output of which a screen keeps only the last rows.
//!
//! In a plain run the cursor leaves its row only downwards, by line feeds and by wraps. Take two screens that differ in their
//! rows and in their cursor's place alone, and feed both from a carriage return on. The first line feeds take both cursors to
//! the last row. As many line feeds again move all that differed out of the screen. So a screen that knows the colours may
//! begin near the end of a run, and is what it would be had it drawn the whole run.

use memchr::{memchr2, memrchr, memrchr_iter, memrchr2};

/// Shorter runs are drawn: that takes some milliseconds.
const RUN_BYTES_MIN: u64 = if cfg!(test) { 24 } else { 128 << 10 };

/// The shortest one is forgotten, and drawn, where there are more.
const RUNS_MAX: usize = 64;

/// A sequence of colours that is longer may have more parameters than an emulator reads.
const RESET_BYTES_MAX: usize = 24;

const ESC: u8 = 0x1b;

/// A part of the output that has nothing but text, line ends, tabs, colours, and movements and erasure within a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainRun {
    /// The offset of its first byte.
    pub from: u64,
    /// The offset behind its last byte.
    pub to: u64,
    /// Behind this offset it has no colours.
    pub coloured_to: u64,
}

impl PlainRun {
    fn at(from: u64) -> Self {
        Self { from, to: from, coloured_to: from }
    }

    fn len(&self) -> u64 {
        self.to - self.from
    }

    fn is_long(&self) -> bool {
        self.len() >= RUN_BYTES_MIN
    }
}

/// The plain runs of the output so far.
#[derive(Clone, Debug)]
pub(crate) struct PlainRuns {
    long: Vec<PlainRun>,
    /// The run that the next byte may belong to.
    open: PlainRun,
}

impl PlainRuns {
    pub(crate) fn new(offset: u64) -> Self {
        Self { long: Vec::new(), open: PlainRun::at(offset) }
    }

    /// All long ones, oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = PlainRun> {
        self.long.iter().copied().chain(Some(self.open).filter(PlainRun::is_long))
    }

    pub(crate) fn text(&mut self, from: u64, text: &[u8]) {
        self.go_on_at(from);
        // These two change the character set, which stays behind the run.
        if let (Some(first), Some(last)) = (memchr2(0x0e, 0x0f, text), memrchr2(0x0e, 0x0f, text)) {
            self.open.to = from + first as u64;
            self.go_on_at(from + last as u64 + 1);
        }
        self.open.to = from + text.len() as u64;
    }

    pub(crate) fn sequence(&mut self, from: u64, sequence: &[u8]) {
        self.go_on_at(from);
        let to = from + sequence.len() as u64;
        match row_change(sequence) {
            Some(change) => {
                self.open.to = to;
                if change == b'm' {
                    self.open.coloured_to = to;
                }
            }
            None => self.go_on_at(to),
        }
    }

    /// The output between the end of the open run and this offset belongs to no run.
    pub(crate) fn go_on_at(&mut self, from: u64) {
        if self.open.to == from {
            return;
        }
        if self.open.is_long() {
            self.long.push(self.open);
            if self.long.len() > RUNS_MAX {
                let shortest = (0..self.long.len()).min_by_key(|index| self.long[*index].len());
                self.long.remove(shortest.unwrap_or_default());
            }
        }
        self.open = PlainRun::at(from);
    }
}

/// The last byte of a sequence that changes nothing but the pen, or its row and the column in it.
fn row_change(sequence: &[u8]) -> Option<u8> {
    match sequence {
        [ESC, b'[', body @ .., last @ (b'm' | b'K' | b'G' | b'C' | b'D' | b'X' | b'P' | b'@')] => {
            body.iter().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).then_some(*last)
        }
        _ => None,
    }
}

/// Where a screen with so many rows may begin in the last bytes of a plain run.
pub fn last_rows(bytes: &[u8], rows: u16) -> Option<usize> {
    let line_feeds = 2 * usize::from(rows) + 2;
    let behind = memrchr_iter(b'\n', bytes).nth(line_feeds - 1)?;
    memrchr(b'\r', &bytes[..behind])
}

/// The sequences of colours in these bytes of a plain run, from the last reset on; and whether there is a reset, so that no
/// colour from before matters.
pub fn colours(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut newest_first = Vec::new();
    let mut is_reset = false;
    for at in memrchr_iter(ESC, bytes) {
        let rest = &bytes[at..];
        let end = rest.iter().position(|byte| matches!(byte, b'@'..=b'Z' | b'a'..=b'z'));
        let sequence = end.map_or(&[][..], |end| &rest[..=end]);
        if row_change(sequence) != Some(b'm') {
            continue;
        }
        newest_first.push(sequence);
        is_reset = resets(sequence);
        if is_reset {
            break;
        }
    }
    newest_first.reverse();
    (newest_first.concat(), is_reset)
}

/// Whether a sequence of colours begins with a reset.
fn resets(sequence: &[u8]) -> bool {
    let is_short = sequence.len() <= RESET_BYTES_MAX;
    is_short && matches!(sequence, [_, _, b'm' | b';', ..] | [_, _, b'0', b'm' | b';', ..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scanner;

    fn runs(bytes: &[u8]) -> Vec<(u64, u64, u64)> {
        let mut scanner = Scanner::new(0);
        scanner.feed(bytes, &mut |_| {});
        scanner.plain_runs().map(|run| (run.from, run.to, run.coloured_to)).collect()
    }

    #[test]
    fn a_run_ends_where_anything_may_move_the_cursor_up_or_stay_behind() {
        let line = "0123456789 123456789\x1b[31m\r\n";
        assert_eq!(runs(line.repeat(2).as_bytes()), [(0, 54, 52)]);
        for stays in [
            "\x1b[A",
            "\x1b[2J",
            "\x1b[H",
            "\x1b7",
            "\x1b]0;t\x07",
            "\x1b[?2004h",
            "\x1b[4h",
            "\x0e",
            "\x1b[>4m",
            "\x1b]8\x18",
        ] {
            let bytes = format!("{line}{stays}{line}");
            let behind = 27 + stays.len() as u64;
            assert_eq!(runs(bytes.as_bytes()), [(0, 27, 25), (behind, behind + 27, behind + 25)], "{stays:?}");
        }
        // A picture is not a piece, and has no place in a run.
        let picture = format!("{line}\x1bPq{}\x1b\\{line}", "x".repeat(5_000));
        assert_eq!(runs(picture.as_bytes()), [(0, 27, 25), (5_032, 5_059, 5_057)]);
    }

    #[test]
    fn the_shortest_runs_are_forgotten_if_there_are_many() {
        let bytes: String = (0..100).map(|n| format!("{}\x1b[H", "x".repeat(50 + n))).collect();
        let kept = runs(bytes.as_bytes());
        assert_eq!(kept.iter().map(|(from, to, _)| to - from).collect::<Vec<_>>(), Vec::from_iter(86..150));
    }

    #[test]
    fn the_last_rows_begin_at_a_carriage_return_and_the_colours_at_a_reset() {
        assert_eq!(last_rows(b"ab\r\n1\n2\n3\n4", 1), Some(2));
        assert_eq!(last_rows(b"\ra\r\n1\n2\n3", 1), None);
        assert_eq!(last_rows(b"a\n1\n2\n3\n4", 1), None);
        assert_eq!(last_rows(b"\r\n1\n2", 1), None);
        assert_eq!(colours(b"1m\x1b[m\x1b[31ma\x1b[K\x1b[1mb"), (b"\x1b[m\x1b[31m\x1b[1m".to_vec(), true));
        assert_eq!(colours(b"\x1b[0;4ma\x1b[03m"), (b"\x1b[0;4m\x1b[03m".to_vec(), true));
        assert_eq!(colours(b"7m\x1b[1ma\x1b[22mb\x1b[3"), (b"\x1b[1m\x1b[22m".to_vec(), false));
    }
}
