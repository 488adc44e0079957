//! Output in texts: a character that a read has split is held back until it is whole, or cannot become so any more.

/// A range of the journal with the bytes that are shown of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WholeText {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: Vec<u8>,
}

/// More than this is not held back: it is given as it is, exact in `dataBase64`.
const HELD_BYTES_MAX: usize = 64 << 10;

/// Holds a character back whose end has not come, until it has or cannot come any more.
#[derive(Debug, Default)]
pub(super) struct WholeCharacters {
    held: Option<WholeText>,
    /// How many bytes at the end of what is held are as the journal has them: bytes that are not shown have no place of
    /// their own, so a text can end exactly only there.
    literal: usize,
}

impl WholeCharacters {
    /// Adds output; returns what can be given now.
    pub(super) fn add(&mut self, from: u64, to: u64, bytes: Vec<u8>) -> Option<WholeText> {
        let is_literal = bytes.len() as u64 == to - from;
        self.literal = if is_literal { self.literal + bytes.len() } else { 0 };
        let mut held = self.held.take().unwrap_or(WholeText { from, to, bytes: Vec::new() });
        held.bytes.extend(bytes);
        held.to = to;
        let mut waits = terminal::unfinished_character(&held.bytes);
        if held.bytes.len() > HELD_BYTES_MAX && waits > self.literal {
            waits = 0;
        }
        if waits == held.bytes.len() || waits > self.literal {
            self.held = Some(held);
            return None;
        }
        self.literal = waits;
        if waits > 0 {
            let bytes = held.bytes.split_off(held.bytes.len() - waits);
            held.to = to - waits as u64;
            self.held = Some(WholeText { from: held.to, to, bytes });
        }
        Some(held)
    }

    /// The bytes that were held back: no more of that character will come.
    pub(super) fn rest(&mut self) -> Option<WholeText> {
        self.literal = 0;
        self.held.take().filter(|held| !held.bytes.is_empty())
    }

    /// Forgets what was held back; returns where it began.
    pub(super) fn forget(&mut self) -> Option<u64> {
        self.literal = 0;
        self.held.take().map(|held| held.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts that these pieces give; each piece stands for as many bytes of the journal as it has and some that are not shown.
    fn given(pieces: &[&[u8]], hidden: u64) -> Vec<(u64, u64, Vec<u8>)> {
        let (mut characters, mut at, mut all) = (WholeCharacters::default(), 100, Vec::new());
        for piece in pieces {
            let to = at + piece.len() as u64 + hidden;
            all.extend(characters.add(at, to, piece.to_vec()));
            at = to;
        }
        all.extend(characters.rest());
        all.into_iter().map(|text| (text.from, text.to, text.bytes)).collect()
    }

    #[test]
    // promise: view-6
    fn a_character_is_whole_wherever_it_was_cut_and_ranges_follow_each_other() {
        let text = "aé€😀\u{1b}[0m".as_bytes();
        for hidden in [0, 3] {
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let all = given(&[&text[..first], &text[first..second], &text[second..]], hidden);
                    assert_eq!(all.iter().flat_map(|(.., bytes)| bytes.clone()).collect::<Vec<_>>(), text);
                    assert!(all.iter().all(|(.., bytes)| std::str::from_utf8(bytes).is_ok()), "{all:?}");
                    assert!(all.windows(2).all(|two| two[0].1 == two[1].0), "{all:?}");
                }
            }
        }
    }

    #[test]
    // promise: view-6
    fn bytes_that_are_not_a_character_are_given_as_they_came() {
        let one = |from, to, bytes: &[u8]| (from, to, bytes.to_vec());
        assert_eq!(given(&[b"a\xe2", b"b"], 0), [one(100, 101, b"a"), one(101, 103, b"\xe2b")]);
        assert_eq!(given(&[b"a\xe2\x82"], 0), [one(100, 101, b"a"), one(101, 103, b"\xe2\x82")]);
        assert_eq!(given(&[b"\xff\x80"], 0), [one(100, 102, b"\xff\x80")]);
        // Also where no text can end exactly at the character before, in an endless stream of such pieces.
        let many = vec![[b"a".repeat(9_999).as_slice(), b"\xe2"].concat(); 20];
        let all = given(&many.iter().map(Vec::as_slice).collect::<Vec<_>>(), 1);
        assert!(
            all.iter().all(|(.., bytes)| bytes.len() <= HELD_BYTES_MAX + 10_000) && all.len() == 3,
            "{}",
            all.len()
        );
        // A range without bytes is part of the next one.
        assert_eq!(given(&[b"", b"x"], 2), [one(100, 105, b"x")]);
    }
}
