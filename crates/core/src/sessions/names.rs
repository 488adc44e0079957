//! The names of sessions: one owner's live sessions have different names.
//!
//! A name is claimed before its session is started or renamed, and the claim is held until the session has the name. So of
//! several requests at once only one gets it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use crate::action::ActionError;
use crate::ids::SessionId;
use crate::limits::NAME_CHARS_MAX;
use crate::mutex::locked;

/// The characters of a client's own part in the name of a session.
const CLIENT_CHARS_MAX: usize = 40;

/// The name that a new session is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WantedName {
    /// None.
    Nothing,
    /// This one; if it is taken, the request is refused.
    Exactly(String),
    /// This one; if it is taken, it gets a number.
    Like(String),
    /// The client's word for itself and the folder in which the session starts, with a number if necessary.
    OfClient(String),
}

impl WantedName {
    /// The name that a client's session gets: the client's usual name, without what says only that it is a client.
    pub(super) fn of_client(told: Option<&str>) -> Self {
        let told = told.unwrap_or_default().to_lowercase();
        let plain: String =
            told.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }).collect();
        let usual = match plain.trim_matches('-') {
            "" => "agent",
            "claude-code" | "claude-ai" => "claude",
            "visual-studio-code" => "vscode",
            "cursor-vscode" => "cursor",
            plain => ["-mcp-client", "-mcp", "-client"].iter().find_map(|end| plain.strip_suffix(end)).unwrap_or(plain),
        };
        Self::OfClient(usual.chars().take(CLIENT_CHARS_MAX).collect())
    }

    /// With the folder in which the session starts.
    pub(super) fn in_folder(self, cwd: &Path) -> Self {
        let Self::OfClient(client) = self else { return self };
        let Some(folder) = cwd.file_name() else {
            let is_id = SessionId::parse(&client).is_ok();
            return Self::Like(if is_id { "agent".to_owned() } else { client });
        };
        let folder = folder.to_string_lossy().replace(char::is_control, "?");
        let room = NAME_CHARS_MAX - client.chars().count() - 1;
        Self::Like(format!("{client}/{}", folder.chars().take(room).collect::<String>()))
    }
}

/// Checks a name that somebody has given.
pub(super) fn checked_name(name: Option<&str>) -> Result<Option<String>, ActionError> {
    let Some(name) = name.map(str::trim).filter(|n| !n.is_empty()) else { return Ok(None) };
    let invalid = |problem| ActionError::Invalid { field: "name", problem };
    if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(invalid(format!("at most {NAME_CHARS_MAX} characters and no control characters")));
    }
    if SessionId::parse(name).is_ok() {
        return Err(invalid("it has the form of a session's id".to_owned()));
    }
    Ok(Some(name.to_owned()))
}

/// The names that sessions are about to have.
#[derive(Debug, Default)]
pub(super) struct Names {
    claimed: Mutex<Claims>,
}

#[derive(Debug, Default)]
struct Claims {
    next: u64,
    all: HashMap<u64, Claimed>,
}

#[derive(Debug)]
struct Claimed {
    session: SessionId,
    owner: String,
    name: String,
}

/// A claimed name, until its session has it or its start has failed.
#[derive(Debug)]
pub(super) struct NameClaim<'a> {
    names: &'a Names,
    number: u64,
    pub(super) name: String,
}

impl Drop for NameClaim<'_> {
    fn drop(&mut self) {
        locked(&self.names.claimed).all.remove(&self.number);
    }
}

impl Names {
    /// Claims a name for a session of this owner; none for a session without one. `live` finds the live session of the owner, other than
    /// this one, that has a name.
    pub(super) fn claim(
        &self,
        live: impl Fn(&str) -> Option<SessionId>,
        (id, owner): (&SessionId, &str),
        wanted: &WantedName,
    ) -> Result<Option<NameClaim<'_>>, ActionError> {
        let (name, is_exact) = match wanted {
            WantedName::Nothing => return Ok(None),
            WantedName::Exactly(name) => (name, true),
            WantedName::Like(name) | WantedName::OfClient(name) => (name, false),
        };
        // With the lock: a session that has just got its claimed name has it before the claim goes.
        let mut claimed = locked(&self.claimed);
        let holder = |name: &str| {
            let claim = claimed.all.values().find(|it| it.session != *id && it.owner == owner && it.name == name);
            claim.map(|it| it.session.clone()).or_else(|| live(name))
        };
        let name = match (holder(name), is_exact) {
            (None, _) => name.clone(),
            (Some(of), true) => {
                return Err(ActionError::NameTaken { name: name.clone(), session: of });
            }
            (Some(_), false) => numbered(name, |name| holder(name).is_none()),
        };
        claimed.next += 1;
        let number = claimed.next;
        claimed.all.insert(number, Claimed { session: id.clone(), owner: owner.to_owned(), name: name.clone() });
        Ok(Some(NameClaim { names: self, number, name }))
    }
}

/// A free one of `name-2`, `name-3`…, in steps that grow: most often the first one, also behind thousands of others.
fn numbered(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let with = |number: usize| {
        let end = format!("-{number}");
        name.chars().take(NAME_CHARS_MAX - end.len()).chain(end.chars()).collect::<String>()
    };
    let (mut taken, mut free) = (1, 2);
    while !is_free(&with(free)) {
        (taken, free) = (free, free * 2);
    }
    while free - taken > 1 {
        let middle = taken.midpoint(free);
        if is_free(&with(middle)) { free = middle } else { taken = middle }
    }
    with(free)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn named(client: &str, cwd: &str) -> String {
        match WantedName::of_client(Some(client)).in_folder(Path::new(cwd)) {
            WantedName::Like(name) => name,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_clients_session_is_called_after_the_client_and_its_folder() {
        for (client, cwd, name) in [
            ("claude-code", "/home/ada/web", "claude/web"),
            ("codex-mcp-client", "/srv/api", "codex/api"),
            ("Visual Studio Code", "/w/a b", "vscode/a b"),
            ("mcp", "/", "mcp"),
            ("  My Agent/2 ", "/tmp/x\n", "my-agent-2/x?"),
            ("\u{1b}[2J", "/x", "2j/x"),
        ] {
            assert_eq!(named(client, cwd), name);
        }
        assert_eq!(WantedName::of_client(None), WantedName::OfClient("agent".to_owned()));
    }

    #[test]
    fn a_name_is_bounded_and_differs_from_every_id() {
        let checked = |name: &str| checked_name(Some(name)).map_err(|error| error.to_string());
        assert_eq!(checked(" claude/web "), Ok(Some("claude/web".to_owned())));
        assert_eq!(checked("  "), Ok(None));
        assert_eq!(checked(&"漢".repeat(NAME_CHARS_MAX)), Ok(Some("漢".repeat(NAME_CHARS_MAX))));
        for wrong in [&"x".repeat(NAME_CHARS_MAX + 1), "a\u{1b}b", "s0-aaaaaaaaaa"] {
            assert!(checked(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_first_free_number_is_found_in_few_steps_behind_thousands_of_sessions() {
        for count in [0, 1, 2, 3, 1_000, 4_000] {
            let steps = Cell::new(0);
            let taken: BTreeSet<_> = (2..2 + count).map(|number| format!("claude/web-{number}")).collect();
            let is_free = |name: &str| {
                steps.set(steps.get() + 1);
                !taken.contains(name)
            };
            assert_eq!(numbered("claude/web", is_free), format!("claude/web-{}", count + 2));
            assert!(steps.get() <= 25, "{} steps for {count}", steps.get());
        }
    }

    proptest! {
        #[test]
        fn every_default_name_is_one_that_somebody_could_have_given_and_numbers_never_repeat(
            client in any::<String>(), folder in "[^/\0]{1,300}", times in 1_usize..20
        ) {
            let name = named(&client, &format!("/x/{folder}"));
            let taken = RefCell::new(BTreeSet::from([name.clone()]));
            for _ in 0..times {
                let next = numbered(&name, |name| !taken.borrow().contains(name));
                prop_assert!(next.chars().count() <= NAME_CHARS_MAX);
                prop_assert!(taken.borrow_mut().insert(next));
            }
            prop_assert!(checked_name(Some(&name)).is_ok(), "{name:?}");
        }
    }
}
