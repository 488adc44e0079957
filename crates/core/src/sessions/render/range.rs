//! Reads ranges of the journal.

use journal::{Offset, Read, Reader};

/// Bytes read at once while lines are counted.
const COUNT_CHUNK: usize = 256 << 10;

/// A range of the journal. It lacks the part at its front that retention has removed, or the part at its end that another
/// process has cut away.
pub(crate) struct Slice {
    pub(crate) from: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a range, never past `to`.
pub(crate) fn read(reader: &Reader, from: u64, to: u64) -> std::io::Result<Slice> {
    let mut at = from;
    let mut slice = Slice { from, bytes: Vec::new() };
    while at < to {
        let want = usize::try_from(to - at).unwrap_or(usize::MAX).min(1 << 20);
        let had = slice.bytes.len();
        slice.bytes.resize(had + want, 0);
        match reader.read(Offset(at), Offset(to), &mut slice.bytes[had..])? {
            Read::Bytes(n) => {
                slice.bytes.truncate(had + n);
                at += n as u64;
            }
            Read::Gap { to: next, .. } => {
                // Only the bytes behind the gap are contiguous.
                slice.bytes.clear();
                at = next.0;
                slice.from = at;
            }
            Read::Cut { .. } if had > 0 => {
                slice.bytes.truncate(had);
                break;
            }
            Read::Cut { to: next, .. } => {
                slice.bytes.clear();
                (at, slice.from) = (next.0, next.0);
            }
            Read::End => {
                slice.bytes.truncate(had);
                break;
            }
        }
    }
    Ok(slice)
}

/// The longest prefix that ends between two control sequences or characters. If that is empty, the prefix ends behind a
/// whole character.
pub(crate) fn whole_text(bytes: &[u8]) -> usize {
    let ends =
        [terminal::unfinished_text, terminal::unfinished_character].map(|unfinished| bytes.len() - unfinished(bytes));
    ends.into_iter().find(|end| *end > 0).unwrap_or(bytes.len())
}

/// The number of line ends in a range.
pub(super) fn lines(reader: &Reader, from: u64, to: u64) -> std::io::Result<u64> {
    let mut at = from;
    let mut count = 0;
    let mut buffer = vec![0; COUNT_CHUNK];
    while at < to {
        match reader.read(Offset(at), Offset(to), &mut buffer)? {
            Read::Bytes(n) => {
                count += memchr::memchr_iter(b'\n', &buffer[..n]).count() as u64;
                at += n as u64;
            }
            Read::Gap { to: next, .. } | Read::Cut { to: next, .. } => at = next.0,
            Read::End => break,
        }
    }
    Ok(count)
}
