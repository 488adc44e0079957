//! Masks: texts of which no reader of a session's output or events gets more than three bytes.
//!
//! A text is replaced by as many `*` as it has bytes, so every offset stays what it is. The bytes around a read decide, and
//! not where it begins or ends, with two exceptions where the bytes around are not there: at the end of the written output,
//! four or more bytes that may be the beginning of a text are masked, and at the beginning of the kept output, four or more that
//! may be the end of one.

use std::fmt;
use std::ops::Range;

/// Shorter texts are not masked: they would occur by chance.
pub const MASKED_BYTES_MIN: usize = 8;
/// A shorter part of a text at an edge is shown: masked, every other letter there would be.
const PART_BYTES_MIN: usize = 4;
/// The filter has 2 to the power of so many bits, 1 KiB: with the texts of five secrets it passes about one place in 400.
const FILTER_BITS: u32 = 13;

/// The texts that are masked in one session.
#[derive(PartialEq, Eq)]
pub struct Masks {
    /// Sorted, each once.
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
        let long = texts.into_iter().filter(|text| text.len() >= MASKED_BYTES_MIN);
        let mut texts: Vec<Box<[u8]>> = long.map(Vec::into_boxed_slice).collect();
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
        self.longest - 1
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
        for (at, first) in bytes.windows(PART_BYTES_MIN).enumerate() {
            let Some(first) = first.first_chunk() else { continue };
            let (word, bit) = place(*first);
            if self.filter.get(word).is_some_and(|bits| bits & bit != 0) {
                let length = self.length(bytes.get(at..).unwrap_or_default(), *first, open);
                if length > 0 {
                    found.push(at..at + length);
                }
            }
        }
        found
    }

    /// How long the longest text is that these bytes begin with; 0 if they begin with none.
    fn length(&self, bytes: &[u8], first: [u8; PART_BYTES_MIN], open: bool) -> usize {
        let from = self.texts.partition_point(|text| **text < first[..]);
        let texts = self.texts.get(from..).unwrap_or_default().iter();
        let begun = texts.take_while(|text| text.starts_with(&first)).map(|text| match bytes.get(..text.len()) {
            Some(whole) if *whole == **text => text.len(),
            None if open && text.starts_with(bytes) => bytes.len(),
            _ => 0,
        });
        begun.max().unwrap_or(0)
    }

    /// How long the longest part is that ends a text and begins these bytes.
    fn end_of_a_text(&self, bytes: &[u8]) -> usize {
        let parts =
            self.texts.iter().flat_map(|text| (1..=text.len() - PART_BYTES_MIN).filter_map(|from| text.get(from..)));
        parts.filter(|part| bytes.starts_with(part)).map(<[u8]>::len).max().unwrap_or(0)
    }
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
    masked.filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b'*');
}
