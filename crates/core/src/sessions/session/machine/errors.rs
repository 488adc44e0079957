//! The errors of the session's requests, with the reason and what to do.

use wire::Status;

use crate::action::{ActionError, EndReason, Foreground};
use crate::ids::CommandId;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::machine::nested_command::state::NestedShell;
use crate::sessions::views;

/// Added to a refusal while the running command is a shell that was started in a nested one.
const SHELL_IN_NESTED: &str = " - this command has started a shell inside a nested shell, and ptyd can send such a \
 shell only input (is_input, send_input_to_terminal); to run commands in it, start it by input instead, and run the \
 first command with inside -";

pub(super) fn busy_error(cx: &Context, foreground: &ForegroundState, inside: &NestedShell, id: u32) -> ActionError {
    let mut with = cx.command_in_words(CommandId(id));
    if inside.may_run_a_shell(cx, foreground) {
        with.push_str(SHELL_IN_NESTED);
    }
    busy_with(cx, foreground, with, Some(CommandId(id)))
}

pub(super) fn busy_with(
    cx: &Context,
    foreground: &ForegroundState,
    with: String,
    command: Option<CommandId>,
) -> ActionError {
    let (session, may_be_a_shell) = (cx.shared.id.clone(), foreground.may_be_a_shell(cx));
    ActionError::Busy { session, with, command, may_be_a_shell }
}

pub(super) fn typed_busy_error(cx: &Context, foreground: &ForegroundState) -> ActionError {
    let with = match program_of_the_prompt(cx, foreground) {
        Some(program) => {
            format!("{}, run by a line typed at its prompt or by the prompt", terminal::quote::line(&program))
        }
        None => "a line typed at its prompt".to_owned(),
    };
    busy_with(cx, foreground, with, None)
}

pub(super) fn why_not_ready(cx: &Context, foreground: &ForegroundState) -> String {
    if let Some(damage) = &cx.timeline.damage() {
        return format!("{damage}; end it and start another one");
    }
    if foreground.is_heuristic && !cx.shared.spec.handover.has_hooks() {
        return "it is not waiting for a command; use send_input_to_terminal to type into the running program"
            .to_owned();
    }
    if let Some(program) = program_of_the_prompt(cx, foreground) {
        let program = terminal::quote::line(&program);
        return format!(
            "{program} has the terminal, perhaps run by its prompt; wait longer (timeout), or interrupt it (C-c)"
        );
    }
    match (cx.timeline.shell().prompt_seen, foreground.foreground(cx)) {
        (false, Foreground::InputWanted | Foreground::PasswordWanted) => {
            "its start-up file waits for input; send some with send_input_to_terminal".to_owned()
        }
        (false, Foreground::Fullscreen) => {
            "its start-up file runs a program that has the whole screen; leave it with send_input_to_terminal, or \
             start the session with a profile that has rc = \"clean\""
                .to_owned()
        }
        (false, _) => "it is still starting; retry in a moment".to_owned(),
        // A zsh prompt without its line editor goes on reading after an interrupt.
        (true, _) if cx.shared.meta.shell == "zsh" => {
            "its line editor does not read; if its prompt is slow, wait longer (timeout); if a hook of the prompt asks \
             something, answer it with send_input_to_terminal; if `unsetopt zle` took the editor away, type \
             `setopt zle` with send_input_to_terminal; else send C-c, or reset the session"
                .to_owned()
        }
        (true, _) => {
            "its line editor does not read; if its prompt is slow, wait longer (timeout); if a hook of the prompt asks \
             something, answer it with send_input_to_terminal; if another process has changed the terminal's modes, \
             send C-c and then Enter, and if that does not help, reset the session"
                .to_owned()
        }
    }
}

/// The name of the program that has the terminal although the shell has been at its prompt and runs no command.
fn program_of_the_prompt(cx: &Context, foreground: &ForegroundState) -> Option<String> {
    if !cx.timeline.shell().prompt_seen || foreground.is_heuristic {
        return None;
    }
    let shell = cx.host().process(cx.timeline.shell().pid)?;
    let group = shell.foreground_group.filter(|group| *group != shell.group)?;
    Some(cx.host().process(group)?.name)
}

impl Context {
    /// The result of a request that has no other answer.
    pub(super) fn plain_result(&self, status: Status, value: u64) -> Result<(), ActionError> {
        match status {
            Status::Ok | Status::Duplicate => Ok(()),
            Status::Ended => Err(self.ended_error()),
            Status::NoProcess => Err(ActionError::Invalid {
                field: "target",
                problem: format!("{value} is not a process of this session"),
            }),
            Status::Failed => Err(holder_failed("the holder could not perform it", value)),
            Status::Busy
            | Status::NotReady
            | Status::Typed
            | Status::LineTooLong
            | Status::Stalled
            | Status::WouldEcho
            | Status::KeyReused => Err(ActionError::Internal { why: format!("unexpected answer {status:?}") }),
        }
    }

    /// A command with the beginning of its text.
    pub(super) fn command_in_words(&self, id: CommandId) -> String {
        let text = self.timeline.log().command(id.0).map_or("", |c| &c.text);
        let words: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
        format!("command {id} ({})", terminal::quote::line(&words))
    }

    pub(super) fn not_ready(&self, why: &str) -> ActionError {
        ActionError::NotReady { session: self.shared.id.clone(), why: why.to_owned() }
    }

    pub(super) fn ended_error(&self) -> ActionError {
        // The holder may know of the exit long before it can record it, on a full disk.
        let unrecorded = if self.link.is_gone { "its holder is gone" } else { "the shell has exited" };
        let reason = views::exit_of(&self.timeline).map_or_else(|| unrecorded.to_owned(), |e| e.reason);
        ActionError::Ended { session: self.shared.id.clone(), reason: EndReason::Recorded(reason) }
    }
}

pub(super) fn busy_inside_error(cx: &Context, foreground: &ForegroundState, inside: &NestedShell) -> ActionError {
    cx.timeline
        .log()
        .current
        .map_or_else(|| typed_busy_error(cx, foreground), |id| busy_error(cx, foreground, inside, id))
}

/// The caller fills in its key, of which only the hash is known here.
pub(super) fn key_reused() -> ActionError {
    ActionError::KeyReused { key: String::new() }
}

/// The error of a request that the holder could not perform, with the number that it sent. It records a command, an input
/// and a size before it performs them. So it does not perform one for which the disk has no room.
pub(super) fn holder_failed(what: &str, value: u64) -> ActionError {
    use rustix::io::Errno;
    let error = i32::try_from(value).ok().map(std::io::Error::from_raw_os_error);
    let why = error.as_ref().map_or_else(|| format!("{what}: error {value}"), |error| format!("{what}: {error}"));
    let lacks_room = |error: &std::io::Error| {
        [Errno::NOSPC, Errno::DQUOT].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
    };
    if error.as_ref().is_some_and(lacks_room) { ActionError::Exhausted { why } } else { ActionError::Internal { why } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_on_a_full_disk_has_its_own_error() {
        use rustix::io::Errno;
        let failed = |errno: Errno| holder_failed("it failed", errno.raw_os_error().unsigned_abs().into());
        for full in [Errno::NOSPC, Errno::DQUOT] {
            assert!(matches!(failed(full), ActionError::Exhausted { .. }), "{full}");
        }
        assert!(matches!(failed(Errno::IO), ActionError::Internal { .. }));
        let huge = holder_failed("it failed", u64::MAX);
        assert!(
            matches!(&huge, ActionError::Internal { why } if why.ends_with("error 18446744073709551615")),
            "{huge}"
        );
    }
}
