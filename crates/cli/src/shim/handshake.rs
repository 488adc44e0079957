//! The hello line to the server, with this client's directory and environment, so that its shells start there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::Mode;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::{Value, json};

use super::options::{Detach, Options, Tools};

/// Random bytes in a client's name, so that another's default session cannot be guessed.
const NAME_BYTES: usize = 16;

/// A name that no other process has or had.
pub fn random_name() -> io::Result<String> {
    Ok(random::<NAME_BYTES>()?.iter().map(|b| format!("{b:02x}")).collect())
}

/// A number from which no other process of the same client counts its requests.
pub(super) fn first_number() -> io::Result<u64> {
    // Numbers in JSON are exact up to 2^53.
    Ok(u64::from_le_bytes(random()?) >> 16)
}

fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut random = [0u8; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random)
}

/// The variable in which Claude Code names its conversation, which goes on in another process with `--continue`.
const CONVERSATION: &str = "CLAUDE_CODE_SESSION_ID";
/// The length of a conversation's id at most: the server takes names of 100 bytes.
const CONVERSATION_BYTES_MAX: usize = 64;

/// The name of this client, and the socket by which no other process takes the same one.
#[derive(Debug)]
pub(super) struct Name {
    text: String,
    _taken: Option<OwnedFd>,
}

impl Name {
    /// The name of the host's conversation if the host names one and no living process has that name; otherwise a random one.
    pub(super) fn of_host() -> io::Result<Self> {
        Self::of(std::env::var(CONVERSATION).ok().as_deref())
    }

    pub(super) fn of(conversation: Option<&str>) -> io::Result<Self> {
        let is_id = |id: &&str| {
            let is_plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            is_plain && (NAME_BYTES..=CONVERSATION_BYTES_MAX).contains(&id.len())
        };
        let taken = conversation.filter(is_id).and_then(|id| Some((id, take(id)?)));
        Ok(match taken {
            Some((id, socket)) => Self { text: format!("claude-code-{id}"), _taken: Some(socket) },
            None => Self { text: random_name()?, _taken: None },
        })
    }
}

/// An abstract socket of this user and conversation (unix(7)), which the kernel removes with its process; `None` if there is one.
fn take(id: &str) -> Option<OwnedFd> {
    let user = rustix::process::geteuid().as_raw();
    let address = SocketAddrUnix::new_abstract_name(format!("ptyd-mcp-{user}-{id}").as_bytes()).ok()?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    net::bind(&socket, &address).ok().map(|()| socket)
}

/// The hello line of this process.
pub(super) fn line(options: &Options, name: &Name) -> Vec<u8> {
    // A deleted directory has no path; the server then chooses one.
    let cwd = std::env::current_dir().unwrap_or_default();
    let env: Vec<[String; 2]> = std::env::vars_os().map(|(name, value)| [base64(&name), base64(&value)]).collect();
    let hello = json!({
        "v": 1,
        "client": name.text,
        "cwd": base64(cwd.as_os_str()),
        "env": env,
        "umask": umask(),
        "tools": match options.tools {
            Tools::All => "all",
            Tools::Terminal => "terminal",
            Tools::Sessions => "sessions",
            Tools::Coding => "coding",
        },
        "structured": options.structured,
        "detach": match options.detach { Detach::Keep => Value::from("keep"), Detach::After(seconds) => Value::from(seconds) },
    });
    format!("{hello}\n").into_bytes()
}

/// The hello line for the next server: how far the client has read in each session.
pub(super) fn with_read_positions(line: &[u8], read_to: &BTreeMap<&str, u64>) -> Vec<u8> {
    match line.strip_suffix(b"}\n") {
        Some(open) if !read_to.is_empty() => [open, format!(",\"readTo\":{}}}\n", json!(read_to)).as_bytes()].concat(),
        Some(_) | None => line.to_owned(),
    }
}

fn base64(text: &OsStr) -> String {
    STANDARD.encode(text.as_bytes())
}

/// umask(2) reads the mask only by setting another; no second thread runs yet that could create a file meanwhile.
fn umask() -> u32 {
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    mask.bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_has_the_name_of_a_conversation() {
        let id = random_name().expect("random");
        let first = Name::of(Some(&id)).expect("a name");
        assert_eq!(first.text, format!("claude-code-{id}"));
        let beside = Name::of(Some(&id)).expect("a name");
        assert_ne!(beside.text, first.text);
        drop(first);
        assert_eq!(Name::of(Some(&id)).expect("a name").text, format!("claude-code-{id}"));
        for no_id in [None, Some(""), Some("short"), Some("0123456789abcdef/../x"), Some(&*"a".repeat(65))] {
            let name = Name::of(no_id).expect("a name").text;
            assert_eq!(name.len(), 2 * NAME_BYTES, "{no_id:?}");
        }
    }
}
