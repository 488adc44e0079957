//! Ids of sessions, of commands, and of everything else that a client names again. Clients treat them as opaque. An id
//! names the node that owns its subject, so a load balancer, or another node, can route a request by it.

use std::fmt;

/// A kind of ids that begin with a letter and the node's number, such as `s2-…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    /// A session: `s`.
    Session,
    /// An approval, and the page on which a person decides it: `a`.
    Approval,
    /// A page on which a person types a secret: `p`.
    SecretPage,
    /// An MCP session over HTTP: `m`.
    Conversation,
    /// A one-time ticket: `t`.
    Ticket,
}

impl IdKind {
    const ALL: [Self; 5] = [Self::Session, Self::Approval, Self::SecretPage, Self::Conversation, Self::Ticket];

    fn letter(self) -> char {
        match self {
            Self::Session => 's',
            Self::Approval => 'a',
            Self::SecretPage => 'p',
            Self::Conversation => 'm',
            Self::Ticket => 't',
        }
    }

    /// The id of this kind on this node, with this unique word.
    pub fn id(self, node: u16, word: &str) -> String {
        format!("{}{node}-{word}", self.letter())
    }

    /// A new id of this kind on this node, which nobody guesses.
    pub fn random(self, node: u16) -> String {
        self.id(node, &random_word())
    }

    /// The node that an id of this kind names; `None` for every other text.
    pub fn node_of(self, id: &str) -> Option<u16> {
        let (node, word) = id.strip_prefix(self.letter())?.split_once('-')?;
        let number = node.parse::<u16>().ok().filter(|number| number.to_string() == node)?;
        let is_word = match self {
            // People name sessions, too.
            Self::Session => word.len() == RANDOM_CHARS && word.bytes().all(|b| ALPHABET.contains(&b)),
            Self::Approval | Self::SecretPage | Self::Conversation | Self::Ticket => {
                !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
            }
        };
        is_word.then_some(number)
    }
}

/// The node that an id of any kind names; a task belongs to its session's node. `None` for a text that is not an id.
pub fn node_of(id: &str) -> Option<u16> {
    let (id, _) = id.split_once('.').unwrap_or((id, ""));
    IdKind::ALL.into_iter().find_map(|kind| kind.node_of(id))
}

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
        Self::of(&IdKind::Session.random(node))
    }

    fn of(text: &str) -> Self {
        let mut bytes = [0; TEXT_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self { text: bytes, length: text.len() as u8 }
    }

    /// Parses an id from a client; any other text names no session (and never reaches a path).
    pub fn parse(text: &str) -> Result<Self, NoSessionId> {
        let is_id = IdKind::Session.node_of(text).is_some();
        if is_id { Ok(Self::of(text)) } else { Err(NoSessionId(text.chars().take(SHOWN_CHARS).collect())) }
    }

    /// The node that owns the session.
    pub fn node(&self) -> u16 {
        IdKind::Session.node_of(self.as_str()).expect("invariant: an id of a session")
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
        Self::parse(&text).map_err(|no| serde::de::Error::custom(format_args!("not a session's id: {:?}", no.0)))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionId").field(&self.as_str()).finish()
    }
}

/// Ten characters that nobody guesses.
fn random_word() -> String {
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
    fn every_id_names_its_node_and_no_other_text_does() {
        for kind in IdKind::ALL {
            assert_eq!(node_of(&kind.random(7)), Some(7), "{kind:?}");
            assert_eq!(
                IdKind::ALL.map(|other| other.node_of(&kind.random(0)).is_some()),
                IdKind::ALL.map(|k| k == kind)
            );
        }
        assert_eq!(["s65535-aaaaaaaaaa.c7.2", "a2-aaaaaaaaaa"].map(node_of), [Some(65_535), Some(2)]);
        for other in
            ["", "s2", "s2-build", "s02-aaaaaaaaaa", "s65536-aaaaaaaaaa", "a2-", "a+2-x", "a-aaaaaaaaaa", "t2-a/b"]
        {
            assert_eq!(node_of(other), None, "{other}");
        }
    }

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
