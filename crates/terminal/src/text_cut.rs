//! Says where text may be cut: neither inside a character nor inside a control sequence.

use crate::sequence::{Piece, Splitter};
use crate::utf8::unfinished_character;

/// How many bytes at the end begin a sequence or a character that is not complete. The bytes begin outside of both.
pub fn unfinished_text(bytes: &[u8]) -> usize {
    let mut splitter = Splitter::for_text();
    splitter.feed(bytes, &mut |_, _| {});
    match splitter.unfinished_len() {
        0 => unfinished_character(bytes),
        len => len,
    }
}

/// How many bytes of `after` complete the sequence or the character that `before` has begun; 0 if they complete none.
pub fn rest_of_unfinished(before: &[u8], after: &[u8]) -> usize {
    let mut splitter = Splitter::for_text();
    splitter.feed(before, &mut |_, _| {});
    if splitter.unfinished_len() == 0 {
        return after.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    }
    let mut to = None;
    splitter.feed(after, &mut |from, piece| match piece {
        Piece::Text(_) => _ = to.get_or_insert(from),
        Piece::Sequence(bytes) | Piece::Broken(bytes) => _ = to.get_or_insert(from + bytes.len() as u64),
        Piece::Overlong(_) => {}
    });
    to.map_or(0, |to| usize::try_from(to).unwrap_or(usize::MAX).saturating_sub(before.len()).min(after.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: output-4
    fn text_is_cut_neither_inside_a_sequence_nor_inside_a_character() {
        let parts: [&[u8]; 8] = [
            b"a",
            "😀".as_bytes(),
            b"\x1b[38;5;1m",
            "界".as_bytes(),
            b"\x1b]8;;http://x/\x1b\\",
            b"l",
            b"\x1b]0;t\x07",
            &[b"\x1bP".as_slice(), &[b'q'; 5000], b"\x1b\\"].concat(),
        ];
        let whole = [parts.concat(), b"end".to_vec()].concat();
        let mut ends = vec![0];
        parts.iter().for_each(|part| ends.push(ends.last().expect("the first") + part.len()));
        ends.extend(whole.len() - 2..=whole.len());
        for at in 0..=whole.len() {
            let before = ends.iter().rfind(|end| **end <= at);
            let after = ends.iter().find(|end| **end >= at);
            assert_eq!(Some(&(at - unfinished_text(&whole[..at]))), before, "cut at {at}");
            assert_eq!(Some(&(at + rest_of_unfinished(&whole[..at], &whole[at..]))), after, "cut at {at}");
        }
        assert_eq!(rest_of_unfinished(b"a\x1b[3", b"1"), 0);
        assert_eq!(rest_of_unfinished(b"a\x1b[3", b"1\x1b[m"), 1);
    }
}
