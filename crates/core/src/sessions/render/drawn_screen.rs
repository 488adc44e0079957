//! The stage that draws the screen: on demand and from the journal. Of a plain run, it draws only the last rows.
//!
//! Output that it skips changes nothing: the screen is the same as if every byte had been drawn.

use std::io;

use journal::Reader;
use terminal::{PlainRun, Screen, plain_runs};

use super::handover::Handovers;
use super::range;
use crate::host::holders::MaskedFolder;
use crate::limits;
use crate::sessions::timeline::handover::RecentHandovers;

/// The search for the last rows begins with this many bytes at the end of a run.
const LOOK_BYTES: u64 = 64 << 10;
/// If this many bytes do not contain the rows and the last reset of the colours, the run is drawn.
const LOOK_BYTES_MAX: u64 = 8 << 20;
/// A shorter run is drawn, which is as quick.
const PASSED_BYTES_MIN: u64 = 2 * LOOK_BYTES;

/// The output that a screen is drawn from.
pub(crate) struct DrawnOutput<'a> {
    pub(crate) folder: &'a MaskedFolder,
    pub(crate) reader: &'a Reader,
    /// Those that reach behind the screen's offset, and behind the beginning of the run around it.
    pub(crate) handovers: RecentHandovers,
    /// The plain runs of the output, oldest first.
    pub(crate) runs: Vec<PlainRun>,
}

impl DrawnOutput<'_> {
    /// Searches the last bytes of a range, more and more of them until it finds something.
    fn look_back<T>(&self, from: u64, to: u64, find: impl Fn(&[u8], u64) -> Option<T>) -> io::Result<Look<T>> {
        let mut most = LOOK_BYTES;
        loop {
            let at = to.saturating_sub(most).max(from);
            let slice = range::read(self.reader, at, to)?;
            if slice.from != at || at + slice.bytes.len() as u64 != to {
                return Ok(Look::Nothing);
            }
            let mut handovers = Handovers::new(self.handovers.clone());
            if let Some(from) = handovers.cuts(self.folder, self.reader, at, to)?.first() {
                return Ok(Look::Cut { from });
            }
            if let Some(found) = find(&slice.bytes, at) {
                return Ok(Look::Found(found));
            }
            if at == from || most >= LOOK_BYTES_MAX {
                return Ok(Look::Nothing);
            }
            most *= 8;
        }
    }
}

enum Look<T> {
    Found(T),
    Nothing,
    /// From this offset on, the screen shows something else than the printed bytes.
    Cut {
        from: u64,
    },
}

/// A screen, and how much of the output is in it.
pub(crate) struct DrawnScreen {
    pub(crate) screen: Screen,
    /// The output before this offset is in it.
    pub(crate) at: u64,
    /// The bytes that were drawn for it.
    drawn: u64,
    /// The run whose last rows were not found, and where it ended then.
    unfound: (u64, u64),
}

impl DrawnScreen {
    /// A blank screen before the output from this offset on.
    pub(crate) fn new(cols: u16, rows: u16, at: u64) -> Self {
        Self { screen: Screen::new(cols, rows), at, drawn: 0, unfound: (u64::MAX, 0) }
    }

    /// The same screen once more.
    pub(crate) fn copy(&mut self) -> Self {
        let (cols, rows) = self.screen.size();
        let mut screen = Screen::new(cols, rows);
        screen.feed(&self.screen.ansi());
        Self { screen, ..*self }
    }

    /// How many bytes were drawn for it.
    #[cfg(test)]
    pub(crate) fn drawn_bytes(&self) -> u64 {
        self.drawn
    }

    /// The beginning of the run whose last rows were not found.
    pub(crate) fn unfound(&self) -> Option<u64> {
        Some(self.unfound.0).filter(|from| *from != u64::MAX)
    }

    /// Draws the output up to this offset, but no more than this many bytes.
    pub(crate) fn draw(&mut self, output: &DrawnOutput<'_>, to: u64, most: u64) {
        let mut handovers = Handovers::new(output.handovers.clone());
        let mut runs = output.runs.iter().filter(|run| run.to > self.at).collect::<Vec<_>>().into_iter().peekable();
        let stop = self.drawn.saturating_add(most);
        while self.at < to && self.drawn < stop {
            while let Some(run) = runs.next_if(|run| run.from <= self.at) {
                if self.passes_over(output, run, to) {
                    handovers = Handovers::new(output.handovers.clone());
                }
            }
            let limit = self.at + (limits::SCAN_CHUNK as u64).min(stop - self.drawn);
            let limit = limit.min(to).min(runs.peek().map_or(u64::MAX, |run| run.from));
            match range::read(output.reader, self.at, limit) {
                Ok(slice) if !slice.bytes.is_empty() => {
                    let end = slice.from + slice.bytes.len() as u64;
                    let cuts = handovers.cuts(output.folder, output.reader, slice.from, end);
                    self.screen.feed(&cuts.unwrap_or_default().apply(&slice.bytes, slice.from));
                    self.drawn += end - slice.from;
                    self.at = end;
                }
                _ => self.at = limit,
            }
        }
    }

    /// Continues at the last rows of the run that the screen is in; false if the run must be drawn.
    fn passes_over(&mut self, output: &DrawnOutput<'_>, run: &PlainRun, to: u64) -> bool {
        let end = run.to.min(to);
        if end.saturating_sub(self.at) < PASSED_BYTES_MIN || self.unfound == (run.from, end) {
            return false;
        }
        match self.last_rows(output, run, end) {
            Ok(Some((at, colours))) => {
                self.screen.pass_over(&colours);
                self.at = at;
                true
            }
            Ok(None) | Err(_) => {
                self.unfound = (run.from, end);
                false
            }
        }
    }

    /// The place at which the screen may continue in a run that ends here, and the colours there.
    fn last_rows(&self, output: &DrawnOutput<'_>, run: &PlainRun, mut end: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
        if !self.screen.scrolls_whole() {
            return Ok(None);
        }
        let first = output.reader.first()?.0;
        let (_, rows) = self.screen.size();
        let at = loop {
            let begin = |bytes: &[u8], from| Some(from + plain_runs::last_rows(bytes, rows)? as u64);
            match output.look_back(self.at.max(first), end, begin)? {
                Look::Found(at) => break at,
                Look::Cut { from } if from > self.at + PASSED_BYTES_MIN => end = from,
                Look::Cut { .. } | Look::Nothing => return Ok(None),
            }
        };
        let begins = run.from.max(first);
        let coloured_to = run.coloured_to.min(at);
        if coloured_to <= begins {
            return Ok(Some((at, Vec::new())));
        }
        let last = |bytes: &[u8], from| {
            let (colours, is_reset) = plain_runs::colours(bytes);
            (is_reset || from == begins).then_some(colours)
        };
        match output.look_back(begins, coloured_to, last)? {
            Look::Found(colours) => Ok(Some((at, colours))),
            Look::Cut { .. } | Look::Nothing => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use journal::EventsWriter;
    use terminal::Scanner;

    use super::*;

    /// A session's output in a folder.
    struct Folder {
        dir: tempfile::TempDir,
        reader: Reader,
        runs: Vec<PlainRun>,
        end: u64,
    }

    impl Folder {
        fn of(bytes: &[u8]) -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            EventsWriter::create(dir.path()).expect("events").release().expect("released");
            std::fs::write(dir.path().join(journal::JOURNAL_FILE), bytes).expect("written");
            let mut scanner = Scanner::new(0);
            scanner.feed(bytes, &mut |_| {});
            let reader = Reader::open(dir.path(), journal::Masks::default()).expect("readable");
            Self { dir, reader, runs: scanner.plain_runs().collect(), end: bytes.len() as u64 }
        }

        /// The screen at the end as bytes, and how many bytes were drawn, in steps of so many.
        fn drawn(&self, runs: &[PlainRun], most: u64) -> (String, u64) {
            let folder = MaskedFolder::of_test(self.dir.path());
            let output = DrawnOutput {
                folder: &folder,
                reader: &self.reader,
                handovers: RecentHandovers::default(),
                runs: runs.to_vec(),
            };
            let mut drawn = DrawnScreen::new(80, 24, 0);
            while drawn.at < self.end {
                drawn.draw(&output, self.end, most);
            }
            (String::from_utf8(drawn.screen.ansi()).expect("text"), drawn.drawn)
        }

        /// The same; it is the screen that was drawn of all the bytes.
        fn checked(&self) -> u64 {
            let (whole, _) = self.drawn(&[], u64::MAX);
            let (passed, drawn) = self.drawn(&self.runs, u64::MAX);
            assert_eq!(passed, whole);
            let (in_steps, drawn_in_steps) = self.drawn(&self.runs, 10_000);
            assert_eq!((in_steps, drawn_in_steps), (whole, drawn));
            drawn
        }
    }

    fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
        (0..count).fold(String::new(), |mut all, n| {
            let _ = write!(all, "{}\r\n", line(n));
            all
        })
    }

    #[test]
    // promise: output-2
    fn a_flood_is_drawn_from_its_last_rows_whatever_is_around_it() {
        let plain = lines(60_000, |n| format!("line {n}"));
        let coloured = lines(30_000, |n| format!("\x1b[3{}mline {n}\x1b[0m\x1b[K", n % 8));
        let once = format!("\x1b[0;35m{plain}");
        let menu = "\x1b[?1049h\x1b[2J\x1b[3;4Hmenu\x1b[?1049l\x1b[?2004h";
        for parts in [
            vec![plain.as_str()],
            vec![&coloured],
            vec![&once],
            vec!["\x1b[41m", &plain],
            vec![menu, &plain, menu, &coloured, "\x1b[5;5Hend"],
            vec!["\x1b[?1049h", &coloured, "\x1b[2;3H", &once],
            vec!["\x1b(0\x0eqqq", &plain],
        ] {
            let folder = Folder::of(parts.concat().as_bytes());
            let drawn = folder.checked();
            assert!(drawn < 200_000, "{drawn} bytes of {} were drawn: {:?}", folder.end, folder.runs);
        }
        let margins = Folder::of(format!("\x1b[2;9r{plain}\x1b[20;1Hend").as_bytes());
        assert_eq!(margins.checked(), margins.end, "rows outside of the margins stay");
        let endless = Folder::of(format!("\x1b[2;2H{}", "word ".repeat(50_000)).as_bytes());
        assert_eq!(endless.checked(), endless.end, "there is no line end");
    }
}
