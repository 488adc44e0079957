//! Finds a line in what a line editor painted of it: coloured, wrapped, or painted a second time.
//!
//! Blanks, control characters and sequences are passed over, because editors put them between any two characters of a
//! line: colours, the cursor's way to the next row, a blank that makes the terminal wrap.

use std::ops::Range;

use memchr::memmem;

use crate::sequence::{Piece, Splitter};

/// The visible characters of output, each with its place.
pub struct PaintedText {
    visible: Vec<u8>,
    places: Vec<usize>,
}

impl PaintedText {
    /// The visible characters of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let mut painted = Self { visible: Vec::new(), places: Vec::new() };
        Splitter::new(0).feed(bytes, &mut |at, piece| {
            if let Piece::Text(text) = piece {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                for (i, byte) in text.iter().enumerate().filter(|(_, byte)| is_visible(**byte)) {
                    painted.visible.push(*byte);
                    painted.places.push(at + i);
                }
            }
        });
        painted
    }

    /// The place at which these words were painted first.
    pub fn first(&self, words: &str) -> Option<Range<usize>> {
        let words = visible(words);
        memmem::find(&self.visible, &words).map(|at| self.place(at, words.len()))
    }

    /// The place at which these words were painted last, if it is behind this one.
    pub fn last(&self, words: &str, behind: usize) -> Option<Range<usize>> {
        let words = visible(words);
        let found = memmem::rfind(&self.visible, &words).map(|at| self.place(at, words.len()));
        found.filter(|range| range.start >= behind)
    }

    /// The place from which the bytes end with at least `least` characters of these words, of which the rest is missing.
    pub fn unfinished(&self, words: &str, least: usize) -> Option<usize> {
        let words = visible(words);
        let most = words.len().saturating_sub(1).min(self.visible.len());
        (least..=most).rev().find(|n| self.visible.ends_with(&words[..*n])).map(|n| self.places[self.places.len() - n])
    }

    fn place(&self, at: usize, len: usize) -> Range<usize> {
        self.places[at]..self.places[at + len - 1] + 1
    }
}

fn visible(words: &str) -> Vec<u8> {
    words.bytes().filter(|byte| is_visible(*byte)).collect()
}

fn is_visible(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// The settings of the terminal that output switches on or off (DEC private modes), without anything else.
pub fn mode_switches(bytes: &[u8]) -> Vec<u8> {
    let mut switches = Vec::new();
    Splitter::new(0).feed(bytes, &mut |_, piece| {
        if let Piece::Sequence(sequence @ [_, b'[', b'?', .., b'h' | b'l']) = piece {
            switches.extend_from_slice(sequence);
        }
    });
    switches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_however_an_editor_paints_them() {
        for between in ["", " ", " \r", "\r\n", "\x1b[0m\x1b[32m", "\x1b(B", "\x1b]0;eval\x07"] {
            let output = format!("$ eva{between}l \"$x\" eval\r\n");
            let painted = PaintedText::new(output.as_bytes());
            let from = 2;
            assert_eq!(painted.first("eval \"$x"), Some(from..output.find("$x").expect("there") + 2), "{between:?}");
            let last = output.rfind("eval\r").expect("there");
            assert_eq!(painted.last("eval", from), Some(last..last + 4), "{between:?}");
            assert_eq!((painted.last("eval", last + 1), painted.first("evil")), (None, None));
        }
    }

    #[test]
    fn the_beginning_of_words_is_found_at_the_end_only() {
        let painted = |output: &str| PaintedText::new(output.as_bytes()).unfinished("eval it", 3);
        assert_eq!(painted("$ ev\x1b[0ma"), Some(2));
        assert_eq!(painted("$ eval i"), Some(2));
        assert_eq!([painted("$ ev"), painted("$ eval it"), painted("eval $"), painted("")], [None; 4]);
    }

    #[test]
    fn only_switches_of_modes_are_kept() {
        let output = b"\x1b[?2004l\x1b[31mred\x1b[2J\x1b[?25h\r\n\x1b[4h";
        assert_eq!(mode_switches(output), b"\x1b[?2004l\x1b[?25h");
    }
}
