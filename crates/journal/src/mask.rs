//! Masks: texts of which no reader of a session's output or events gets more than three bytes.
//!
//! A text is replaced by as many `*` as it has bytes, so every offset stays what it is. Line ends within it do not hide it:
//! base64(1) and many programs break lines where the terminal does not. The bytes around a read decide, and
//! not where it begins or ends, with two exceptions where the bytes around are not there: at the end of the written output,
//! four or more bytes that may be the beginning of a text are masked, and at the beginning of the kept output, four or more that
//! may be the end of one.

use std::fmt;
use std::ops::Range;

/// Shorter texts are not masked: they would occur by chance.
pub const MASKED_BYTES_MIN: usize = 8;
/// A shorter part of a text at an edge is shown: masked, every other letter there would be.
const PART_BYTES_MIN: usize = 4;
/// A text is found over so many bytes for each of its own; the rest are line ends.
const SPAN_FACTOR: usize = 2;
/// The filter has 2 to the power of so many bits, 1 KiB: with the texts of five secrets it passes about one place in 400.
const FILTER_BITS: u32 = 13;

/// The texts that are masked in one session.
#[derive(PartialEq, Eq)]
pub struct Masks {
    /// Sorted, each once, without line ends.
    texts: Vec<Box<[u8]>>,
    /// One bit for the hash of the first bytes of each.
    filter: Box<[u64]>,
    longest: usize,
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Masks(…)")
    }
}

impl Masks {
    /// Masks these texts; `None` if none of them is long enough.
    pub fn new(texts: impl IntoIterator<Item = Vec<u8>>) -> Option<Self> {
        let mut texts: Vec<Box<[u8]>> =
            texts.into_iter().map(|text| text.into_iter().filter(|byte| !is_line_end(*byte)).collect()).collect();
        texts.retain(|text| text.len() >= MASKED_BYTES_MIN);
        texts.sort();
        texts.dedup();
        let longest = texts.iter().map(|text| text.len()).max()?;
        let mut filter = vec![0u64; 1 << (FILTER_BITS - 6)].into_boxed_slice();
        for first in texts.iter().filter_map(|text| text.first_chunk()) {
            let (word, bit) = place(*first);
            if let Some(word) = filter.get_mut(word) {
                *word |= bit;
            }
        }
        Some(Self { texts, filter, longest })
    }

    /// Masks the texts in a whole text, which has neither been begun before nor goes on behind.
    pub fn mask(&self, bytes: &mut [u8]) {
        for range in self.found(bytes, false) {
            fill(bytes, range);
        }
    }

    /// The same for a text.
    #[must_use]
    pub fn masked_text(&self, text: String) -> String {
        let mut bytes = text.into_bytes();
        self.mask(&mut bytes);
        String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }

    /// So many bytes before and behind a read decide what is masked in it.
    pub(crate) fn margin(&self) -> usize {
        self.longest * SPAN_FACTOR - 1
    }

    /// Masks a window of the output. It ends with what is written, or [`Self::margin`] behind the part that is read. It is
    /// headless if it begins with what is still kept, and not with the output.
    pub(crate) fn mask_window(&self, window: &mut [u8], is_headless: bool) {
        let found = self.found(window, true);
        let head = if is_headless { self.end_of_a_text(window) } else { 0 };
        fill(window, 0..head);
        for range in found {
            fill(window, range);
        }
    }

    /// The ranges of all texts, also of overlapping ones, and if it is `open` at its end, of what may go on behind.
    fn found(&self, bytes: &[u8], open: bool) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        // The last four bytes that are no line ends, the first of them lowest.
        let mut last = 0u32;
        for (at, byte) in bytes.iter().enumerate() {
            last = if is_line_end(*byte) { last } else { last >> 8 | u32::from(*byte) << 24 };
            let (word, bit) = place(last.to_le_bytes());
            if self.filter.get(word).is_some_and(|bits| bits & bit != 0) && !is_line_end(*byte) {
                found.extend(self.text_at(bytes, at, last.to_le_bytes(), open));
            }
        }
        found
    }

    /// The range of the longest text whose first bytes are these and end here.
    #[cold]
    fn text_at(&self, bytes: &[u8], end: usize, first: [u8; PART_BYTES_MIN], open: bool) -> Option<Range<usize>> {
        let letters = bytes.get(..=end)?.iter().enumerate().rev().filter(|(_, byte)| !is_line_end(**byte));
        let (from, _) = letters.take(PART_BYTES_MIN).last()?;
        let length = self.length(bytes.get(from..)?, first, open);
        (length > 0).then_some(from..from + length)
    }

    /// Over how many bytes the longest text goes that these bytes begin with; 0 if they begin with none.
    fn length(&self, bytes: &[u8], first: [u8; PART_BYTES_MIN], open: bool) -> usize {
        let from = self.texts.partition_point(|text| **text < first[..]);
        let texts = self.texts.get(from..).unwrap_or_default().iter();
        let begun =
            texts.take_while(|text| text.starts_with(&first)).map(|text| match span(bytes, text, span_max(text)) {
                Span::Whole(length) => length,
                Span::Begun if open => bytes.len(),
                Span::Begun | Span::None => 0,
            });
        begun.max().unwrap_or(0)
    }

    /// Over how many bytes the longest part goes that ends a text and begins these bytes.
    fn end_of_a_text(&self, bytes: &[u8]) -> usize {
        let parts = self.texts.iter().flat_map(|text| {
            (1..=text.len() - PART_BYTES_MIN).filter_map(|from| text.get(from..)).map(|part| (part, span_max(text)))
        });
        let lengths = parts.filter_map(|(part, most)| match span(bytes, part, most) {
            Span::Whole(length) => Some(length),
            Span::Begun | Span::None => None,
        });
        lengths.max().unwrap_or(0)
    }
}

/// How these bytes begin with a text, if line ends are passed over.
enum Span {
    /// With all of it, over so many bytes.
    Whole(usize),
    /// They end within it.
    Begun,
    None,
}

fn span(bytes: &[u8], text: &[u8], most: usize) -> Span {
    let mut rest = text;
    for (at, byte) in bytes.iter().enumerate().take(most) {
        match rest {
            [next, behind @ ..] if next == byte => rest = behind,
            _ if is_line_end(*byte) => {}
            _ => return Span::None,
        }
        if rest.is_empty() {
            return Span::Whole(at + 1);
        }
    }
    if bytes.len() < most { Span::Begun } else { Span::None }
}

fn span_max(text: &[u8]) -> usize {
    text.len() * SPAN_FACTOR
}

/// The word and the bit of the filter for these first bytes.
fn place(first: [u8; PART_BYTES_MIN]) -> (usize, u64) {
    // Fibonacci hashing: the upper bits of a product with 2^32 divided by the golden ratio.
    let hash = u32::from_le_bytes(first).wrapping_mul(0x9e37_79b9) >> (32 - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Line ends stay, so that a mask changes no number of lines.
fn fill(bytes: &mut [u8], range: Range<usize>) {
    let masked = bytes.get_mut(range).unwrap_or_default().iter_mut();
    masked.filter(|byte| !is_line_end(**byte)).for_each(|byte| *byte = b'*');
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}
