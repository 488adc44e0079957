//! Decodes UTF-8 text that may be cut inside a character.
//!
//! Only this module holds back parts of characters. Invalid UTF-8 is passed on as such, byte for byte: the caller
//! decides whether it is shown as U+FFFD (a screen) or as `\xNN` (a transcript).

/// Decodes consecutive chunks; at most three bytes wait for the rest of their character.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utf8 {
    carry: [u8; 4],
    carry_len: usize,
}

/// A piece of decoded text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded<'a> {
    Str(&'a str),
    /// One to three bytes that are not a character and never will be.
    Invalid(&'a [u8]),
}

/// How many bytes at the end are the beginning of a character that is not complete.
pub fn unfinished_character(bytes: &[u8]) -> usize {
    let begins = bytes.iter().rev().take(3).position(|byte| *byte >= 0xc0);
    let len = begins.map_or(0, |continued| continued + 1);
    if is_unfinished(&bytes[bytes.len() - len..]) { len } else { 0 }
}

impl Utf8 {
    /// The beginning of an incomplete character.
    pub(crate) fn unfinished(&self) -> &[u8] {
        &self.carry[..self.carry_len]
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(Decoded<'_>)) {
        let mut rest = bytes;
        while self.carry_len > 0 {
            let Some((&byte, after)) = rest.split_first() else {
                return;
            };
            self.carry[self.carry_len] = byte;
            match std::str::from_utf8(&self.carry[..=self.carry_len]) {
                Ok(character) => {
                    sink(Decoded::Str(character));
                    self.carry_len = 0;
                    rest = after;
                }
                Err(error) if error.error_len().is_none() => {
                    self.carry_len += 1;
                    rest = after;
                }
                // The new byte does not continue the character, which stays incomplete.
                Err(_) => self.flush(sink),
            }
        }
        for chunk in rest.utf8_chunks() {
            if !chunk.valid().is_empty() {
                sink(Decoded::Str(chunk.valid()));
            }
            let invalid = chunk.invalid();
            let is_at_end = invalid.as_ptr_range().end == rest.as_ptr_range().end;
            if !invalid.is_empty() && is_at_end && is_unfinished(invalid) {
                self.carry[..invalid.len()].copy_from_slice(invalid);
                self.carry_len = invalid.len();
            } else if !invalid.is_empty() {
                sink(Decoded::Invalid(invalid));
            }
        }
    }

    /// Gives up an incomplete character: the following bytes are not text.
    pub(crate) fn flush(&mut self, sink: &mut impl FnMut(Decoded<'_>)) {
        if self.carry_len > 0 {
            let carry_len = std::mem::take(&mut self.carry_len);
            sink(Decoded::Invalid(&self.carry[..carry_len]));
        }
    }
}

fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]]) -> String {
        let mut utf8 = Utf8::default();
        let mut text = String::new();
        let mut sink = |decoded: Decoded<'_>| match decoded {
            Decoded::Str(part) => text.push_str(part),
            Decoded::Invalid(bytes) => bytes.iter().for_each(|byte| text.push_str(&format!("<{byte:02x}>"))),
        };
        for chunk in chunks {
            utf8.feed(chunk, &mut sink);
        }
        utf8.flush(&mut sink);
        text
    }

    #[test]
    fn a_character_that_never_ends_is_abandoned_byte_by_byte() {
        assert_eq!(decode(&[b"a\xe2", b"\x82", b"b\xf0\x9f"]), "a<e2><82>b<f0><9f>");
    }

    proptest! {
        #[test]
        // promise: output-4
        fn cuts_change_nothing(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xe2), Just(0x82), Just(0xac), Just(0xf0), Just(0x9f)], 0..30),
            cut in any::<prop::sample::Index>(),
        ) {
            let at = cut.index(bytes.len() + 1);
            prop_assert_eq!(decode(&[&bytes[..at], &bytes[at..]]), decode(&[&bytes]));
        }
    }
}
