//! The server's bearer token: given, or created at the first start and stored in the state directory, readable only by
//! its owner.
//!
//! No code in here puts it into a log or an error.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::limits::TOKEN_CHARS_MIN;
use crate::state_dir;

/// 256 bits, which cannot be guessed.
const RANDOM_BYTES: usize = 32;

/// A bearer token.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Accepts a given token; `None` if it cannot be sent in a header.
    pub fn given(text: &str) -> Option<Self> {
        (!text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    /// Whether it can be guessed.
    pub fn is_weak(&self) -> bool {
        self.0.len() < TOKEN_CHARS_MIN
    }

    /// Reads a key of the server from this file, or creates the file. No client shows the key, so that only its checksum can tell a
    /// damaged one.
    pub(crate) fn kept_key(path: &Path) -> io::Result<Self> {
        state_dir::remove_draft(path);
        if let Some(key) = state_dir::read_sealed(path)? {
            return Ok(Self(key));
        }
        let key = Self::random();
        unless_full(path, state_dir::replace_sealed(path, &key.0))?;
        Ok(key)
    }

    /// Reads the token from this file, or creates the file.
    pub fn kept(path: &Path) -> io::Result<Self> {
        match state_dir::read(path) {
            Ok(bytes) if bytes.trim_ascii().is_empty() => Self::make(path),
            Ok(bytes) => {
                let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, why);
                let text = std::str::from_utf8(bytes.trim_ascii()).ok();
                let token = text
                    .and_then(Self::given)
                    .ok_or_else(|| wrong("it contains characters other than visible ASCII"))?;
                if token.is_weak() {
                    return Err(wrong("it is so short that it can be guessed"));
                }
                Ok(token)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Self::make(path),
            Err(e) => Err(e),
        }
    }

    fn make(path: &Path) -> io::Result<Self> {
        let token = Self::random();
        unless_full(path, token.write(path))?;
        Ok(token)
    }

    fn random() -> Self {
        let mut bytes = [0u8; RANDOM_BYTES];
        getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The rename comes last, so a crash leaves either no token or a whole one.
    fn write(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("new");
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(self.0.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    }

    /// A permanent hash of these words; without the token they cannot be guessed from it.
    pub(crate) fn name_for(&self, words: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [&[self.0.as_bytes()], words].concat() {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// Whether this is the token; compared in constant time, so that the time reveals nothing about it.
    pub fn is(&self, shown: &str) -> bool {
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

/// A full disk does not prevent the start: then the token is valid until the server stops, and no client can read it.
fn unless_full(path: &Path, written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(e) if matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            tracing::warn!(file = %path.display(), error = %e, "not kept; the next server makes another one");
            Ok(())
        }
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    // promise: access-3
    fn a_token_is_made_once_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token");
        let first = Token::kept(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("loosened");
        let again = Token::kept(&path).expect("read");
        assert!(again.is(&first.0) && first.0.len() == 43);
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    // promise: access-3
    fn a_file_that_holds_no_token_of_ptyd_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token");
        for odd in ["hi", "fifteen-letters", "two words that are long enough", "l\u{e4}nger-als-sechzehn-zeichen"] {
            fs::write(&path, odd).expect("written");
            assert!(Token::kept(&path).is_err(), "{odd}");
        }
        fs::write(&path, "sixteen-letters!\n").expect("written");
        assert!(Token::kept(&path).expect("long enough").is("sixteen-letters!"));
        fs::write(&path, "\n").expect("written");
        assert_eq!(Token::kept(&path).expect("made").0.len(), 43);
    }

    #[test]
    // promise: damage-4
    fn a_damaged_key_of_the_server_is_refused_and_not_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("secret");
        let first = Token::kept_key(&path).expect("made");
        assert!(Token::kept_key(&path).expect("read").is(&first.0));
        let text = fs::read_to_string(&path).expect("there");
        let other = if first.0.starts_with('A') { "B" } else { "A" };
        for damaged in [String::new(), first.0.clone(), text.replacen(&first.0[..1], other, 1)] {
            fs::write(&path, &damaged).expect("written");
            assert!(Token::kept_key(&path).is_err(), "{damaged}");
            assert_eq!(fs::read_to_string(&path).expect("there"), damaged);
        }
    }

    #[test]
    // promise: once-2
    fn a_name_depends_on_every_part_and_on_the_token() {
        let (one, other) = (Token::given("one").expect("valid"), Token::given("other").expect("valid"));
        let name = one.name_for(&[b"a", b"bc"]);
        assert_eq!(name, one.name_for(&[b"a", b"bc"]));
        assert!(
            [one.name_for(&[b"ab", b"c"]), one.name_for(&[b"abc"]), other.name_for(&[b"a", b"bc"])]
                .iter()
                .all(|others| *others != name)
        );
    }

    #[test]
    fn only_the_whole_token_is_the_token_and_it_is_never_shown() {
        let token = Token::given("s3cret").expect("valid");
        assert!(token.is_weak() && !Token::given("0123456789abcdef").expect("valid").is_weak());
        assert_eq!(["s3cret", "s3cre", "s3crets", ""].map(|t| token.is(t)), [true, false, false, false]);
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert!(["", "a b", "a\n", "ä"].iter().all(|t| Token::given(t).is_none()));
    }
}
