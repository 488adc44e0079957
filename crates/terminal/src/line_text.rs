//! Converts output into text for a pipe or a file, line by line.
//!
//! A line that only prints is passed on byte for byte, but without the carriage return that the terminal put before its line
//! feed. Any other line becomes the text that a person would have read: colours are removed, overwritten text is replaced,
//! control characters are written as `\xNN`, and paint on the alternate screen leaves nothing.

use crate::scan::Scanner;
use crate::transcript::Transcript;

/// A line is held until it ends, because a carriage return may restart it; of a longer line the beginning is emitted.
const LINE_BYTES_MAX: usize = 64 << 10;
const TAKE_ALTERNATE: &[u8] = b"\x1b[?1049h";

/// Converts consecutive chunks of output into lines of text.
pub struct LineText {
    cols: u16,
    /// Tracks which screen is shown.
    scanner: Scanner,
    /// The unfinished line.
    line: Vec<u8>,
    /// The text of a line with control characters, once it is too long to be held.
    painted: Option<Transcript>,
    began_on_alternate: bool,
}

impl LineText {
    /// For a terminal with `cols` columns.
    pub fn new(cols: u16) -> Self {
        Self { cols, scanner: Scanner::new(0), line: Vec::new(), painted: None, began_on_alternate: false }
    }

    /// Feeds the next output bytes; returns the text that is ready.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.scanner.feed(part, &mut |_| {});
            match part.strip_suffix(b"\n") {
                Some(rest) => {
                    self.take(rest, &mut out);
                    // The terminal's own comes last.
                    let returns = returns(&self.line).saturating_sub(1);
                    self.text(&mut out);
                    self.end_line(returns, &mut out);
                }
                None => self.take(part, &mut out),
            }
        }
        out
    }

    /// The rest: an unfinished line.
    pub fn finish(mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.text(&mut out);
        out
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if let Some(painted) = &mut self.painted {
            // The carriage returns at the end may belong to the line end.
            self.line.extend_from_slice(bytes);
            let returns = returns(&self.line);
            painted.feed(&self.line[..self.line.len() - returns]);
            self.line.drain(..self.line.len() - returns);
            out.extend_from_slice(painted.take_finished().as_bytes());
            return;
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() <= LINE_BYTES_MAX {
            return;
        }
        if self.began_on_alternate || !is_plain(&self.line) {
            self.painted = Some(self.painted_line());
            self.line.drain(..self.line.len() - returns(&self.line));
        } else {
            let returns = returns(&self.line);
            out.extend(self.line.drain(..self.line.len() - returns));
        }
    }

    fn end_line(&mut self, returns: usize, out: &mut Vec<u8>) {
        let is_on_alternate = self.scanner.modes().alt_screen;
        if !is_on_alternate {
            out.extend(std::iter::repeat_n(b'\r', returns));
            out.push(b'\n');
        }
        self.began_on_alternate = is_on_alternate;
    }

    /// The text of the line so far, which is then cleared.
    fn text(&mut self, out: &mut Vec<u8>) {
        if let Some(painted) = self.painted.take() {
            out.extend_from_slice(painted.finish().text.as_bytes());
        } else if self.began_on_alternate || !is_plain(&self.line) {
            out.extend_from_slice(self.painted_line().finish().text.as_bytes());
        } else {
            out.extend_from_slice(without_returns(&self.line));
        }
        self.line.clear();
    }

    fn painted_line(&self) -> Transcript {
        let mut transcript = Transcript::new(self.cols);
        if self.began_on_alternate {
            transcript.feed(TAKE_ALTERNATE);
        }
        transcript.feed(without_returns(&self.line));
        transcript
    }
}

/// How many carriage returns the line ends with.
fn returns(line: &[u8]) -> usize {
    line.iter().rev().take_while(|byte| **byte == b'\r').count()
}

fn without_returns(line: &[u8]) -> &[u8] {
    &line[..line.len() - returns(line)]
}

/// Whether the line has no control character but tabs.
fn is_plain(line: &[u8]) -> bool {
    without_returns(line).iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piped(bytes: &[u8], cut: usize) -> Vec<u8> {
        let mut piped = LineText::new(80);
        let mut out = piped.feed(&bytes[..cut]);
        out.extend(piped.feed(&bytes[cut..]));
        out.extend(piped.finish());
        out
    }

    #[test]
    fn lines_are_their_text_wherever_the_output_is_cut() {
        for (bytes, text) in [
            (&b"hi\r\n"[..], &b"hi\n"[..]),
            (b"a\tb  \r\n\r\nno end", b"a\tb  \n\nno end"),
            (b"dos\r\r\n\xff\xfe\r\n", b"dos\r\n\xff\xfe\n"),
            (b"k\x01\x0c\x07v\x00\x7f\t \r\n", b"k\\x01\\x0cv\\x00\\x7f\t \n"),
            (b"k\x01\r\r\n", b"k\\x01\r\n"),
            (b"\x1b[1mc\td\x1b[0m\x01\r\r\n", b"c\td\\x01\r\n"),
            (b"\x1b[31mred\x1b[0m and \xc3\xa9\r\n", b"red and \xc3\xa9\n"),
            (b" 10%\r 50%\r100%\r\ndone\r\n", b"100%\ndone\n"),
            (b"ab\x08c\x07\r\n", b"ac\n"),
            (b"before\r\n\x1b[?1049h\x1b[2Jpaint\r\nmore\r\n\x1b[?1049lafter\r\n", b"before\nafter\n"),
            (b"\x1b]0;title\x07\x1b[?2004l", b""),
        ] {
            for cut in 0..=bytes.len() {
                let seen = piped(bytes, cut);
                assert!(
                    seen == text,
                    "{:?} cut at {cut}: {:?}",
                    bytes.escape_ascii().to_string(),
                    seen.escape_ascii().to_string()
                );
            }
        }
    }

    #[test]
    fn a_whole_line_is_passed_on_at_once() {
        let mut piped = LineText::new(80);
        assert_eq!(piped.feed(b"one\r\ntwo\r"), b"one\n");
        assert_eq!(piped.feed(b"\nthree"), b"two\n");
    }

    #[test]
    fn a_long_line_with_colour_keeps_its_last_blank_and_its_cr_lf() {
        let colours = "\x1b[1mab\x1b[m ".repeat(LINE_BYTES_MAX / 8);
        let line = format!("{colours}\r\r\n");
        let text = format!("{}\r\n", "ab ".repeat(LINE_BYTES_MAX / 8));
        for cut in [1, LINE_BYTES_MAX + 1, line.len() - 2, line.len() - 1] {
            assert!(piped(line.as_bytes(), cut) == text.as_bytes(), "cut at {cut}");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory_without_bound() {
        let mut plain = LineText::new(80);
        let mut passed = 0;
        for _ in 0..100 {
            passed += plain.feed(&[b'x'; 10_000]).len();
            assert!(plain.line.len() <= LINE_BYTES_MAX);
        }
        assert_eq!(passed + plain.finish().len(), 1_000_000);
        let mut painted = LineText::new(80);
        for percent in 0..20_000 {
            painted.feed(format!("\r{percent} of 20000").as_bytes());
            assert!(painted.line.len() <= LINE_BYTES_MAX);
        }
        assert_eq!(painted.feed(b"\r\n"), b"19999 of 20000\n");
    }
}
