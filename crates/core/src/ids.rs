//! Ids of sessions and commands. Clients treat them as opaque; a session's id names the node that owns it.

use std::fmt;

/// `s<node>-<10 characters>`, such as `s0-k3v9q2m7xa`: unique, unguessable, and with the node that owns the session.
///
/// Its text is in it and not on the heap, for most of what a command brings about has a copy of its session's id.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    /// Behind the text are zeros, so that ids are compared as their texts are.
    text: [u8; TEXT_BYTES_MAX],
    length: u8,
}

/// Letters and digits that cannot be confused with each other.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// How much of a text that is not an id is shown.
const SHOWN_CHARS: usize = 64;
/// 50 bits: unguessable within a rate limit, and few tokens for a model.
const RANDOM_CHARS: usize = 10;
/// The digits of a node: it is a 16-bit number.
const NODE_DIGITS_MAX: usize = 5;
/// The longest text of an id.
const TEXT_BYTES_MAX: usize = 1 + NODE_DIGITS_MAX + 1 + RANDOM_CHARS;

impl SessionId {
    /// A new id on this node.
    pub fn random(node: u16) -> Self {
        Self::of(&format!("s{node}-{}", random_word()))
    }

    fn of(text: &str) -> Self {
        let mut bytes = [0; TEXT_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self { text: bytes, length: text.len() as u8 }
    }

    /// Parses an id from a client; any other text names no session (and never reaches a path).
    pub fn parse(text: &str) -> Result<Self, NoSessionId> {
        let is_id = text.strip_prefix('s').and_then(|t| t.split_once('-')).is_some_and(|(node, tail)| {
            node.parse::<u16>().is_ok_and(|number| number.to_string() == node)
                && tail.len() == RANDOM_CHARS
                && tail.bytes().all(|b| ALPHABET.contains(&b))
        });
        if is_id { Ok(Self::of(text)) } else { Err(NoSessionId(text.chars().take(SHOWN_CHARS).collect())) }
    }

    /// The node that owns the session.
    pub fn node(&self) -> u16 {
        let node = self.as_str()[1..].split_once('-').and_then(|(node, _)| node.parse().ok());
        node.expect("invariant: a number stands before the dash")
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..usize::from(self.length)]).expect("invariant: letters, digits and a dash")
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for SessionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for SessionId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|no| serde::de::Error::custom(format_args!("no session's id: {:?}", no.0)))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionId").field(&self.as_str()).finish()
    }
}

/// Ten characters that nobody guesses.
pub(crate) fn random_word() -> String {
    let mut bytes = [0u8; RANDOM_CHARS];
    // Without the kernel's random numbers nothing in this program is secure.
    getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
    bytes.iter().map(|b| char::from(ALPHABET[usize::from(b & 31)])).collect()
}

/// A text that is not a session's id: its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSessionId(pub String);

/// A command's number in its session, from 1; shown as `c7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct CommandId(pub u32);

impl CommandId {
    /// Parses `c7`.
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix('c').filter(|n| !n.starts_with(['0', '+'])).and_then(|n| n.parse().ok()).map(Self)
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

/// A wait for a command that goes on after its request was answered: `s0-k3v9q2m7xa.c7`, and `….c7.2` for the second one
/// for that command. It can be guessed as little as the session's id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskId {
    /// The session.
    pub session: SessionId,
    /// The command.
    pub command: CommandId,
    /// The number of the wait among those for this command, from 1.
    pub wait: u32,
}

impl TaskId {
    /// Parses an id from a client.
    pub fn parse(text: &str) -> Option<Self> {
        let (session, rest) = text.split_once('.')?;
        let (command, wait) = match rest.split_once('.') {
            None => (rest, 1),
            Some((command, wait)) => (command, wait.parse().ok().filter(|n| *n > 1 && !wait.starts_with(['0', '+']))?),
        };
        Some(Self { session: SessionId::parse(session).ok()?, command: CommandId::parse(command)?, wait })
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.session, self.command)?;
        if self.wait > 1 { write!(f, ".{}", self.wait) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_back_and_paths_are_not_ids() {
        let id = SessionId::random(0);
        assert_eq!(SessionId::parse(id.as_str()).expect("just made"), id);
        for bad in ["", "s0", "s0-../../etc", "s-aaaaaaaaaa", "s0-aaaaaaaaa/", "x0-aaaaaaaaaa"] {
            assert!(SessionId::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(CommandId::parse("c7"), Some(CommandId(7)));
        for text in ["s0-aaaaaaaaaa.c7", "s0-aaaaaaaaaa.c7.2", "s12-aaaaaaaaaa.c70.10"] {
            assert_eq!(TaskId::parse(text).expect(text).to_string(), text);
        }
        for bad in ["", "s0-aaaaaaaaaa", "s0-aaaaaaaaaa.7", "s0-aaaaaaaaaa.c7.1", "s0-aaaaaaaaaa.c7.02", "s0-a.c7"] {
            assert_eq!(TaskId::parse(bad), None, "{bad}");
        }
        assert_eq!([CommandId::parse("7"), CommandId::parse("c"), CommandId::parse("c+7")], [None; 3]);
    }
}
