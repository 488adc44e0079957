//! Typed bytes in an attached terminal: passed on unchanged, except for the detach keys.

use std::fmt;
use std::str::FromStr;

/// The detach keys, such as `C-\ C-\`: control keys or single characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachKey(Vec<u8>);

impl DetachKey {
    /// The default.
    pub const USUAL: &str = r"C-\ C-\";
}

impl Default for DetachKey {
    fn default() -> Self {
        const CONTROL_BACKSLASH: u8 = 0x1c;
        Self(vec![CONTROL_BACKSLASH; 2])
    }
}

impl fmt::Display for DetachKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.0.iter().map(|byte| match byte {
            control @ ..0x20 => format!("C-{}", char::from(control | 0x40).to_ascii_lowercase()),
            other => char::from(*other).to_string(),
        });
        f.write_str(&named.collect::<Vec<_>>().join(" "))
    }
}

impl FromStr for DetachKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes: Result<Vec<u8>, String> = text.split_ascii_whitespace().map(key).collect();
        match bytes?.as_slice() {
            [] => Err("names no key; write keys such as C-a d".to_owned()),
            some => Ok(Self(some.to_vec())),
        }
    }
}

fn key(word: &str) -> Result<u8, String> {
    let control = word.strip_prefix("C-").or_else(|| word.strip_prefix("ctrl-")).or_else(|| word.strip_prefix('^'));
    match (word.as_bytes(), control.map(str::as_bytes)) {
        ([one @ 0x21..=0x7e], _) => Ok(*one),
        // A control key is its letter without the upper three bits (ASCII).
        (_, Some([letter @ (b'@'..=b'_' | b'a'..=b'z')])) => Ok(letter & 0x1f),
        _ => Err(format!("{word} is not a key; write one such as C-a, C-\\ or d")),
    }
}

/// The meaning of typed bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum DetachScan {
    /// These bytes are sent to the session.
    Bytes(Vec<u8>),
    /// These bytes are still sent to the session, then this terminal detaches.
    Detach(Vec<u8>),
}

/// Finds the detach keys in typed bytes. A partial match is held back until the next key.
#[derive(Debug)]
pub struct DetachScanner {
    detach: DetachKey,
    matched: usize,
}

impl DetachScanner {
    /// Looks for these keys.
    pub fn new(detach: DetachKey) -> Self {
        Self { detach, matched: 0 }
    }

    /// Processes typed bytes.
    pub fn take(&mut self, bytes: &[u8]) -> DetachScan {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            if *byte != self.detach.0[self.matched] {
                // The held-back keys were no match; the present key may begin one.
                out.extend_from_slice(&self.detach.0[..self.matched]);
                self.matched = 0;
            }
            if *byte == self.detach.0[self.matched] {
                self.matched += 1;
                if self.matched == self.detach.0.len() {
                    self.matched = 0;
                    return DetachScan::Detach(out);
                }
            } else {
                out.push(*byte);
            }
        }
        DetachScan::Bytes(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyboard(keys: &str) -> DetachScanner {
        DetachScanner::new(keys.parse().expect("keys"))
    }

    #[test]
    fn keys_are_named_like_in_tmux_and_docker() {
        assert_eq!("C-\\ C-\\".parse(), Ok(DetachKey(vec![0x1c, 0x1c])));
        assert_eq!("ctrl-a d".parse(), Ok(DetachKey(vec![1, b'd'])));
        assert_eq!("^]".parse(), Ok(DetachKey(vec![0x1d])));
        assert_eq!(DetachKey::USUAL.parse(), Ok(DetachKey::default()));
        assert_eq!(
            ["C-\\ C-\\", "ctrl-A d", "^]"].map(|keys| keyboard(keys).detach.to_string()),
            ["C-\\ C-\\", "C-a d", "C-]"]
        );
        assert!(["", "C-", "C-1", "Up", "é"].iter().all(|t| t.parse::<DetachKey>().is_err()));
    }

    #[test]
    fn bytes_pass_as_they_are_and_the_keys_detach_wherever_reads_are_cut() {
        let mut whole = keyboard("C-\\ C-\\");
        assert_eq!(whole.take(b"ls\r\x00\xff"), DetachScan::Bytes(b"ls\r\x00\xff".to_vec()));
        assert_eq!(whole.take(b"a\x1c\x1cb"), DetachScan::Detach(b"a".to_vec()));
        let mut cut = keyboard("C-\\ C-\\");
        assert_eq!(cut.take(b"a\x1c"), DetachScan::Bytes(b"a".to_vec()));
        assert_eq!(cut.take(b"\x1c"), DetachScan::Detach(Vec::new()));
    }

    #[test]
    fn one_detaching_key_alone_reaches_the_program() {
        let mut keyboard = keyboard("C-a d");
        assert_eq!(keyboard.take(b"\x01"), DetachScan::Bytes(Vec::new()));
        assert_eq!(keyboard.take(b"x"), DetachScan::Bytes(b"\x01x".to_vec()));
        assert_eq!(keyboard.take(b"\x01\x01d"), DetachScan::Detach(b"\x01".to_vec()));
    }
}
