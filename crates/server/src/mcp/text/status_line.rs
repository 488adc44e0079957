//! The line of facts, and what makes foreign text safe to stand in it.
//!
//! Names, titles and directories come from programs: none of them may end the line or look like another fact. How that is
//! kept from them is in [`api::quote`].

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use api::quote;

use super::AnswerContext;
use crate::action::SessionView;

/// Characters of foreign text in one fact; a title or a match may be a megabyte.
const FOREIGN_CHARS_MAX: usize = 80;

/// Facts in their order.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Facts(Vec<String>);

impl Facts {
    /// Adds one.
    pub fn add(&mut self, fact: impl Into<String>) {
        self.0.push(fact.into());
    }

    /// `[fact · fact]`.
    pub fn line(&self) -> String {
        format!("[{}]", self.0.join(" · "))
    }

    /// What belongs to one fact of another line: `fact, fact`.
    pub fn within(&self) -> String {
        self.0.join(", ")
    }
}

/// The requirement's metadata: all of it at first, afterwards what changed.
pub(in crate::mcp) fn metadata(facts: &mut Facts, session: &SessionView, context: &AnswerContext<'_>) {
    let Some(shown) = context.shown else {
        facts.add(format!("session {}", session.id));
        if let Some(pid) = session.pid {
            facts.add(format!("pid {pid}"));
        }
        facts.add(format!("user {}", plain(&context.host.user)));
        facts.add(format!("host {}", plain(&context.host.name)));
        facts.add(format!("cwd {}", path(&session.cwd)));
        if let Some(python) = &session.tools.python {
            facts.add(format!("python {}", path(python)));
        }
        return;
    };
    if shown.cwd != session.cwd {
        facts.add(format!("cwd {}", path(&session.cwd)));
    }
    for ((name, before), (_, now)) in shown.tools.named().into_iter().zip(session.tools.named()) {
        if before != now {
            facts.add(now.map_or_else(|| format!("{name} none"), |p| format!("{name} {}", path(p))));
        }
    }
}

/// What a profile wanted to be run first, and what became of it where that failed.
pub(in crate::mcp) fn startup(facts: &mut Facts, session: &SessionView) {
    for failure in &session.startup_failed {
        facts.add(format!("startup failed: {}: {}", quoted(&failure.command), plain(&failure.reason)));
    }
}

/// A path among other facts.
pub(in crate::mcp) fn path(path: &Path) -> String {
    quote::fact(path.as_os_str().as_bytes())
}

/// A path for a shell: quoted when it needs to be.
pub(in crate::mcp) fn shell_words(file: &Path) -> String {
    let text = quote::bytes(file.as_os_str().as_bytes());
    let is_bare = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@".contains(c));
    if is_bare { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Foreign words among other facts.
pub(in crate::mcp) fn plain(text: &str) -> String {
    quote::fact(text)
}

/// Foreign text in quotes, so that it is seen where it ends; bounded.
pub(in crate::mcp) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(FOREIGN_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    quote::in_quotes(short)
}
