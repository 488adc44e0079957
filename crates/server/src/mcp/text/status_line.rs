//! The status line, and the quoting that makes foreign text safe in it.
//!
//! Names, titles and directories come from programs: none of them may end the line or look like another fact.
//! [`terminal::quote`] does the quoting.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use terminal::quote;

use super::context::AnswerContext;
use ptyd_core::action::{ConfinementTier, SessionView};

/// Characters of foreign text in one fact; a title or a match may have a megabyte.
const FOREIGN_CHARS_MAX: usize = 80;

/// The facts in order.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Facts(Vec<String>);

impl Facts {
    /// Adds a fact.
    pub fn add(&mut self, fact: impl Into<String>) {
        self.0.push(fact.into());
    }

    /// Puts another fact in the place of this one.
    pub fn replace(&mut self, fact: &str, by: &str) {
        self.0.iter_mut().filter(|known| *known == fact).for_each(|known| *known = by.to_owned());
    }

    /// `[fact · fact]`.
    pub fn line(&self) -> String {
        format!("[{}]", self.0.join(" · "))
    }

    /// The facts within one fact of another line: `fact, fact`.
    pub fn within(&self) -> String {
        self.0.join(", ")
    }
}

/// The metadata of terminal-mcp.md: all of it at first, later only changes.
pub(in crate::mcp) fn metadata(facts: &mut Facts, session: &SessionView, context: &AnswerContext<'_>) {
    drives(facts, session);
    let Some(shown) = context.shown else {
        facts.add(format!("session {}", session.id));
        // Programs of a sandbox know its processes by other numbers.
        if let Some(pid) = session.pid.filter(|_| !session.confinement.is_some_and(ConfinementTier::has_namespaces)) {
            facts.add(format!("pid {pid}"));
        }
        facts.add(format!("user {}", plain(&context.host.user)));
        facts.add(format!("host {}", plain(&context.host.name)));
        facts.add(format!("cwd {}", path(&session.cwd)));
        gone(facts, session);
        if let Some(python) = &session.tools.python {
            facts.add(format!("python {}", path(python)));
        }
        return;
    };
    if shown.cwd != session.cwd {
        facts.add(format!("cwd {}", path(&session.cwd)));
    }
    gone(facts, session);
    for ((name, before), (_, now)) in shown.tools.named().into_iter().zip(session.tools.named()) {
        if before != now {
            facts.add(now.map_or_else(|| format!("{name} none"), |p| format!("{name} {}", path(p))));
        }
    }
}

/// Each answer says it: a list of such a directory is empty, and looks like any other.
fn gone(facts: &mut Facts, session: &SessionView) {
    if session.is_cwd_gone {
        facts.add("cwd is gone");
    }
}

/// Each answer says it: a command of the caller would wait or be refused.
fn drives(facts: &mut Facts, session: &SessionView) {
    if let Some(driver) = &session.driver {
        facts.add(format!("{} drives until {}", plain(&driver.to_string()), driver.until_in_words()));
    }
}

/// Start-up commands of a profile that failed, with the reason.
pub(in crate::mcp) fn startup(facts: &mut Facts, session: &SessionView) {
    for failure in &session.startup_failed {
        facts.add(format!("startup failed: {}: {}", quoted(&failure.command), plain(&failure.reason)));
    }
}

/// A path as part of a fact.
pub(in crate::mcp) fn path(path: &Path) -> String {
    quote::fact(path.as_os_str().as_bytes())
}

/// A path for a shell: quoted if necessary.
pub(in crate::mcp) fn shell_words(file: &Path) -> String {
    let text = quote::bytes(file.as_os_str().as_bytes());
    let is_bare = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@".contains(c));
    if is_bare { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Foreign text as part of a fact.
pub(in crate::mcp) fn plain(text: &str) -> String {
    quote::fact(text)
}

/// Foreign text in quotes, so that its end is visible; bounded.
pub(in crate::mcp) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(FOREIGN_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    quote::in_quotes(short)
}
