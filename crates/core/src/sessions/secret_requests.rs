//! The open requests for secrets, by name. They are in memory only: the next server makes others.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::handle::Handle;
use super::session::{Request, SecretPrompt};
use crate::action::{ActionError, SecretReader, SecretRefusal, SecretRequest};
use crate::ids::{IdKind, SessionId};
use crate::limits::{SECRET_REQUEST_LIFETIME, SECRET_REQUESTS_MAX};
use crate::mutex::locked;

const NAME_BYTES: usize = 16;

/// The most characters of a command that a person is shown.
const COMMAND_CHARS_MAX: usize = 200;

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) name: String,
    pub(super) asked: Asked,
    /// The principal whose call made it.
    principal: String,
    pub(super) until: Instant,
    is_answered: bool,
}

/// The subject of a request: this prompt of this session, by this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) session: SessionId,
    pub(super) prompt: SecretPrompt,
    pub(super) reader: SecretReader,
}

/// The requests, one for each session at most.
#[derive(Debug, Default)]
pub(super) struct SecretRequests {
    /// The number of this server, for the names.
    node: u16,
    all: Mutex<Vec<Open>>,
}

impl Open {
    /// The view of it for a person.
    pub(super) fn shown(self, handle: &Handle) -> SecretRequest {
        let Self { name, asked: Asked { session, prompt, reader }, until, .. } = self;
        let command = prompt.command.map(|text| {
            let mut short: String = text.chars().take(COMMAND_CHARS_MAX).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            short
        });
        SecretRequest {
            name,
            session,
            session_name: handle.shared.meta.name.get(),
            command,
            reader,
            prompt: prompt.text,
            left: until.saturating_duration_since(Instant::now()),
        }
    }
}

impl Asked {
    /// The prompt at which a program of the session reads a secret now, and the program.
    pub(super) async fn of(handle: &Handle) -> Result<Option<Self>, ActionError> {
        let Some(prompt) = handle.ask(Request::SecretPrompt).await? else { return Ok(None) };
        let (host, pid) = (Arc::clone(&handle.shared.backends.host), prompt.pid);
        let reader = tokio::task::spawn_blocking(move || {
            let (process, users) = (host.process(pid)?, host.users(pid)?);
            Some(SecretReader {
                pid,
                start_ticks: process.identity.1,
                executable: host.executable(pid),
                process_name: process.name,
                uid: users.effective,
                user: host.user_name(users.effective),
                is_set_user_id: users.is_set_user_id || users.real != users.effective,
            })
        });
        // A process that has ended reads no more.
        let Some(reader) = reader.await.ok().flatten() else { return Ok(None) };
        Ok(Some(Self { session: handle.shared.id.clone(), prompt, reader }))
    }
}

impl SecretRequests {
    /// None yet, on this node.
    pub(super) fn on(node: u16) -> Self {
        Self { node, all: Mutex::default() }
    }

    /// The request for the secret that the session's program reads now, with the number of the prompt.
    pub(super) async fn of_reader(
        &self,
        handle: &Handle,
        principal: &str,
    ) -> Result<Option<(u64, SecretRequest)>, ActionError> {
        let Some(asked) = Asked::of(handle).await? else { return Ok(None) };
        let number = asked.prompt.number;
        let open = self.open(asked, principal, Instant::now());
        Ok(open.map(|open| (number, open.shown(handle))))
    }

    /// The request for this prompt. None if it was answered and the program has not read on, or if there are too many.
    pub(super) fn open(&self, asked: Asked, principal: &str, now: Instant) -> Option<Open> {
        let mut all = locked(&self.all);
        all.retain(|open| now < open.until);
        if let Some(open) = all.iter().find(|open| open.asked == asked) {
            return (!open.is_answered).then(|| open.clone());
        }
        // A later prompt of the session.
        all.retain(|open| open.asked.session != asked.session);
        if all.iter().filter(|open| open.principal == principal).count() >= SECRET_REQUESTS_MAX {
            return None;
        }
        let name = IdKind::SecretPage.id(self.node, &random_name());
        let (until, principal) = (now + SECRET_REQUEST_LIFETIME, principal.to_owned());
        let open = Open { name, asked, principal, until, is_answered: false };
        all.push(open.clone());
        Some(open)
    }

    /// The request of this name, answered or not; the comparison takes constant time.
    pub(super) fn find(&self, name: &str, now: Instant) -> Result<Open, SecretRefusal> {
        let mut all = locked(&self.all);
        all.retain(|open| now < open.until);
        let open = all.iter().find(|open| is_name(open, name)).ok_or(SecretRefusal::Unknown)?;
        if open.is_answered { Err(SecretRefusal::Answered) } else { Ok(open.clone()) }
    }

    /// The session of this name's request, to see whether a caller may use it.
    pub(super) fn session(&self, name: &str) -> Result<SessionId, SecretRefusal> {
        let all = locked(&self.all);
        let open = all.iter().find(|open| is_name(open, name)).ok_or(SecretRefusal::Unknown)?;
        Ok(open.asked.session.clone())
    }

    /// Takes the request: it is answered by whoever does this first.
    pub(super) fn take(&self, name: &str, now: Instant) -> Result<Open, SecretRefusal> {
        let found = self.find(name, now)?;
        let mut all = locked(&self.all);
        let open = all.iter_mut().find(|open| is_name(open, name)).ok_or(SecretRefusal::Unknown)?;
        if std::mem::replace(&mut open.is_answered, true) { Err(SecretRefusal::Answered) } else { Ok(found) }
    }
}

fn is_name(open: &Open, name: &str) -> bool {
    open.name.as_bytes().ct_eq(name.as_bytes()).into()
}

pub(super) fn random_name() -> String {
    let mut bytes = [0u8; NAME_BYTES];
    getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn asked(session: &str, number: u64) -> Asked {
        let reader = SecretReader {
            pid: 7,
            start_ticks: 1,
            executable: Some("/usr/bin/sudo".into()),
            process_name: "sudo".to_owned(),
            uid: 0,
            user: Some("root".to_owned()),
            is_set_user_id: true,
        };
        let prompt = SecretPrompt { number, pid: 7, text: "Password:".to_owned(), command: None };
        Asked { session: SessionId::parse(session).expect("an id"), prompt, reader }
    }

    #[test]
    // promise: access-12
    fn a_request_is_for_one_prompt_is_good_once_and_not_for_long() {
        let (requests, now) = (SecretRequests::default(), Instant::now());
        let one = requests.open(asked("s0-aaaaaaaaaa", 1), "me", now).expect("room");
        assert_eq!(one.name.len(), "p0-".len() + 22);
        let same = requests.open(asked("s0-aaaaaaaaaa", 1), "other", now).expect("the same");
        assert_eq!(same.name, one.name);
        let refusal = |name: &str, now| requests.take(name, now).expect_err("refused");
        assert_eq!([refusal("", now), refusal(&one.name[1..], now)], [SecretRefusal::Unknown; 2]);
        assert_eq!(requests.take(&one.name, now).expect("the first").asked, one.asked);
        assert_eq!(refusal(&one.name, now), SecretRefusal::Answered);
        assert!(requests.open(asked("s0-aaaaaaaaaa", 1), "me", now).is_none(), "it is being typed");
        let next = requests.open(asked("s0-aaaaaaaaaa", 2), "me", now).expect("another prompt");
        assert_ne!(next.name, one.name);
        assert_eq!(refusal(&one.name, now), SecretRefusal::Unknown);
        let late = now + SECRET_REQUEST_LIFETIME;
        assert!(requests.find(&next.name, late - Duration::from_millis(1)).is_ok());
        assert_eq!(refusal(&next.name, late), SecretRefusal::Unknown);
    }

    #[test]
    fn the_requests_of_one_principal_are_bounded_and_of_one_session_there_is_one() {
        let (requests, now) = (SecretRequests::default(), Instant::now());
        for number in 0..3 {
            assert!(requests.open(asked("s0-aaaaaaaaaa", number), "me", now).is_some());
        }
        let session = |i: usize| format!("s0-aaaaaaaa{}{}", char::from(b'a' + (i / 8) as u8), i % 8 + 2);
        let opened = (0..SECRET_REQUESTS_MAX).filter(|i| requests.open(asked(&session(*i), 1), "me", now).is_some());
        assert_eq!(opened.count(), SECRET_REQUESTS_MAX - 1);
        assert!(requests.open(asked("s0-bbbbbbbbbb", 1), "me", now).is_none());
        assert!(requests.open(asked("s0-bbbbbbbbbb", 1), "other", now).is_some());
    }
}
