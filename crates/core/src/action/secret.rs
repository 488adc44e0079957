//! Secret requests: a program reads a secret, and a person types it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::ids::SessionId;

/// A request for a secret: one prompt of one session. Its name is known to the clients that were told, and proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRequest {
    /// 128 random bits, as they stand in an address.
    pub name: String,
    /// The session.
    pub session: SessionId,
    /// The session's name, for people.
    pub session_name: Option<String>,
    /// The text of the command that runs there.
    pub command: Option<String>,
    /// The program that reads, by the kernel's word.
    pub reader: SecretReader,
    /// The unfinished line behind which it reads. The program's own words: any program prints any prompt.
    pub prompt: String,
    /// How long the request is still good.
    pub left: Duration,
}

/// The program that reads a secret, by the kernel's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretReader {
    /// Its process.
    pub pid: u32,
    /// When that started, in clock ticks since boot: with the pid this names a process for ever.
    pub start_ticks: u64,
    /// The file that it executes; `None` if the server may not look at it, as at another user's.
    pub executable: Option<PathBuf>,
    /// The process's name, at most 15 bytes, which a process can change.
    pub process_name: String,
    /// The user whose rights it has.
    pub uid: u32,
    /// The same by name.
    pub user: Option<String>,
    /// It has another user's rights than the one who started it, by its file.
    pub is_set_user_id: bool,
}

/// A secret that a person has typed: no record and no message shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why a text is not a secret that can be typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSecret {
    /// A terminal would act on such a character instead of handing it over.
    #[error("a secret is one line without control characters")]
    Control,
    /// Longer than any password.
    #[error("a secret may have at most {} bytes", Secret::BYTES_MAX)]
    TooLong,
}

impl Secret {
    /// A terminal takes lines of 4,095 bytes.
    pub const BYTES_MAX: usize = 1_024;

    /// A line to type, without its end.
    pub fn new(text: String) -> Result<Self, NoSecret> {
        if text.len() > Self::BYTES_MAX {
            return Err(NoSecret::TooLong);
        }
        if text.chars().any(char::is_control) { Err(NoSecret::Control) } else { Ok(Self(text)) }
    }

    /// The bytes to type, with Enter.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = self.0.clone().into_bytes();
        line.push(b'\r');
        line
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a secret was not typed; nothing of it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretRefusal {
    /// No such request, or not for this caller.
    #[error("there is no such request for this caller: its address may be wrong, or its 10 minutes may have expired")]
    Unknown,
    /// It was answered.
    #[error("this request has already been answered; each one works once")]
    Answered,
    /// The program reads no more, another one reads, or it asks for something else.
    #[error("the program that asked no longer reads without echo, or now asks for something else")]
    Over,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: access-12
    fn a_secret_is_a_line_and_is_never_shown() {
        let secret = Secret::new("pä ss".to_owned()).expect("a line");
        assert_eq!((secret.line(), format!("{secret:?}")), ("pä ss\r".as_bytes().to_vec(), "Secret(…)".to_owned()));
        for text in ["a\rb", "a\n", "\x03", "\u{9b}", "\x7f", "a\0"] {
            assert_eq!(Secret::new(text.to_owned()), Err(NoSecret::Control), "{text:?}");
        }
        assert_eq!(Secret::new("x".repeat(Secret::BYTES_MAX + 1)), Err(NoSecret::TooLong));
        assert!(Secret::new("x".repeat(Secret::BYTES_MAX)).is_ok());
    }
}
