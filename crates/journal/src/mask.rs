//! Masks: texts of which no reader of a session's output or events gets more than three bytes.
//!
//! A text is replaced by as many `*` as it has bytes, so every offset stays what it is. Line ends within it do not hide it:
//! base64(1) and many programs break lines where the terminal does not. The bytes around a read decide, and
//! not where it begins or ends, with two exceptions where the bytes around are not there: at the end of the written output,
//! four or more bytes that may be the beginning of a text are masked, and at the beginning of the kept output, four or more that
//! may be the end of one.

use std::fmt;
use std::ops::{Deref, Range, RangeBounds};
use std::slice::SliceIndex;
use std::sync::Arc;

/// Shorter texts are not masked: they would occur by chance.
pub const MASKED_BYTES_MIN: usize = 8;
/// A shorter part of a text at an edge is shown: masked, every other letter there would be.
const PART_BYTES_MIN: usize = 4;
/// A text is found over so many bytes for each of its own; the rest are line ends.
const SPAN_FACTOR: usize = 2;
/// The filter has 2 to the power of so many bits, 1 KiB: with the texts of five secrets it passes about one place in 400.
const FILTER_BITS: u32 = 13;

/// The masks of one session. Most sessions have none, because they were given no secret; that is the default.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Masks(Option<Arc<Texts>>);

/// The texts that are masked.
#[derive(PartialEq, Eq)]
struct Texts {
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

/// A text after a session's [`Masks`] were applied to it, or a part of one. Only masks make one of text that is not a
/// constant.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MaskedText(String);

impl MaskedText {
    /// A part of it.
    #[must_use]
    pub fn part(&self, range: impl RangeBounds<usize> + SliceIndex<str, Output = str>) -> Self {
        Self(self.0.get(range).unwrap_or_default().to_owned())
    }

    /// Shortens it to this length.
    pub fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// These lines as one text.
    #[must_use]
    pub fn joined(lines: &[Self]) -> Self {
        Self(lines.iter().map(|line| &**line).collect::<Vec<_>>().join("\n"))
    }
}

impl Deref for MaskedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MaskedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MaskedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&'static str> for MaskedText {
    fn from(constant: &'static str) -> Self {
        Self(constant.to_owned())
    }
}

impl From<MaskedText> for String {
    fn from(text: MaskedText) -> Self {
        text.0
    }
}

impl PartialEq<str> for MaskedText {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for MaskedText {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl Masks {
    /// Masks those of these texts that are long enough.
    pub fn new(texts: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(Texts::new(texts).map(Arc::new))
    }

    /// Masks the texts in a whole text, which has neither been begun before nor goes on behind.
    pub fn mask(&self, bytes: &mut [u8]) {
        let Some(texts) = &self.0 else { return };
        for range in texts.found(bytes, false) {
            fill(bytes, range);
        }
    }

    /// The same for a text. Without masks it is not copied.
    #[must_use]
    pub fn text(&self, text: String) -> MaskedText {
        if self.0.is_none() {
            return MaskedText(text);
        }
        let mut bytes = text.into_bytes();
        self.mask(&mut bytes);
        MaskedText(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// The same for the lines of a text, of which a full one goes on in the next.
    #[must_use]
    pub fn lines(&self, lines: Vec<String>) -> Vec<MaskedText> {
        match &self.0 {
            None => lines.into_iter().map(MaskedText).collect(),
            Some(_) => self.text(lines.join("\n")).split('\n').map(|line| MaskedText(line.to_owned())).collect(),
        }
    }

    /// Whether nothing is masked.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// So many bytes before and behind a read decide what is masked in it.
    #[must_use]
    pub fn margin(&self) -> usize {
        self.0.as_ref().map_or(0, |texts| texts.longest * SPAN_FACTOR - 1)
    }

    /// Masks a window of the output. It ends with what is written, or [`Self::margin`] behind the part that is read. It is
    /// headless if it begins with what is still kept, and not with the output.
    pub(crate) fn mask_window(&self, window: &mut [u8], is_headless: bool) {
        let Some(texts) = &self.0 else { return };
        let found = texts.found(window, true);
        let head = if is_headless { texts.end_of_a_text(window) } else { 0 };
        fill(window, 0..head);
        for range in found {
            fill(window, range);
        }
    }
}

impl Texts {
    /// `None` if none of these texts is long enough.
    fn new(texts: impl IntoIterator<Item = Vec<u8>>) -> Option<Self> {
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

    /// The ranges of all texts, also of overlapping ones, and if it is `open` at its end, of what may go on behind.
    fn found(&self, bytes: &[u8], open: bool) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut letters = None;
        // The last four bytes that are not line ends, the first of them lowest, and the number of all before the next.
        let (mut last, mut count) = (0u32, 0usize);
        for byte in bytes {
            let is_letter = !is_line_end(*byte);
            last = if is_letter { last >> 8 | u32::from(*byte) << 24 } else { last };
            count += usize::from(is_letter);
            let (word, bit) = place(last.to_le_bytes());
            if self.filter.get(word).is_some_and(|bits| bits & bit != 0) && is_letter {
                let first = last.to_le_bytes();
                if let (Some(_), Some(from)) = (self.texts_with(first).next(), count.checked_sub(PART_BYTES_MIN)) {
                    let letters = letters.get_or_insert_with(|| Letters::of(bytes, usize::MAX));
                    found.extend(self.texts_with(first).filter_map(|text| letters.range(from, text, open)));
                }
            }
        }
        found
    }

    /// The texts that begin with these bytes.
    fn texts_with(&self, first: [u8; PART_BYTES_MIN]) -> impl Iterator<Item = &[u8]> {
        let from = self.texts.partition_point(|text| **text < first[..]);
        let texts = self.texts.get(from..).unwrap_or_default().iter();
        texts.map(AsRef::as_ref).take_while(move |text: &&[u8]| text.starts_with(&first))
    }

    /// Over how many bytes the longest part goes that ends a text and begins these bytes.
    fn end_of_a_text(&self, bytes: &[u8]) -> usize {
        let letters = Letters::of(bytes, self.longest);
        let parts = self.texts.iter().flat_map(|text| {
            (1..=text.len() - PART_BYTES_MIN).filter_map(|from| text.get(from..)).map(|part| (part, span_max(text)))
        });
        let ends = parts.filter(|(part, _)| letters.bytes.starts_with(part)).filter_map(|(part, most)| {
            letters.places.get(part.len() - 1).map(|last| last + 1).filter(|length| *length <= most)
        });
        ends.max().unwrap_or(0)
    }
}

/// Bytes without the line ends among them, and where they were: a text is compared at once then.
struct Letters {
    bytes: Vec<u8>,
    places: Vec<usize>,
    end: usize,
}

impl Letters {
    /// The first ones of these bytes, so many at most.
    fn of(bytes: &[u8], most: usize) -> Self {
        let letters = bytes.iter().copied().enumerate().filter(|(_, byte)| !is_line_end(*byte)).take(most);
        let (places, letters) = letters.unzip();
        Self { bytes: letters, places, end: bytes.len() }
    }

    /// The place of this text from this letter on, and if all is `open` at its end, the place of a text that may go on behind.
    fn range(&self, from: usize, text: &[u8], open: bool) -> Option<Range<usize>> {
        let (rest, begun) = (self.bytes.get(from..)?, *self.places.get(from)?);
        if rest.starts_with(text) {
            let end = self.places.get(from + text.len() - 1)? + 1;
            (end - begun <= span_max(text)).then_some(begun..end)
        } else {
            (open && text.starts_with(rest) && self.end - begun < span_max(text)).then_some(begun..self.end)
        }
    }
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
