//! Input that callers type: the bytes that the terminal sends for it, and the answer of the holder, which types
//! them (`type_input.rs` of its event loop).

use tokio::sync::oneshot;
use wire::{Key, ShownBy, Status, Target, ToHolder};

use super::errors::{holder_failed, key_reused};
use crate::action::{ActionError, InputBytes, Wait};
use crate::limits;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::machine::holder_link::{Call, SentInput};
use crate::sessions::session::machine::nested_command::state::NestedShell;
use crate::sessions::session::machine::signal_request::key_is_ignored_by;
use crate::sessions::session::machine::waits::matcher::Echo;
use crate::sessions::session::machine::waits::state::OpenWait;
use crate::sessions::session::requests::{NewInput, Typed};
use crate::sessions::timeline::Command;

/// C-u, with which a line editor removes what stands before the cursor.
const KILL_LINE: u8 = 0x15;

/// Has the holder type it, unless its program has ended.
pub(super) fn ask_input(cx: &mut Context, foreground: &mut ForegroundState, inside: &mut NestedShell, input: NewInput) {
    let NewInput { bytes, key, is_secret, meant_for, typing: _, wait, typed } = input;
    let indents = matches!(bytes, InputBytes::Paste { .. }) && foreground.indents_what_is_typed(cx);
    let bytes = match typed_bytes(bytes, cx.timeline.output().scanner.modes(), indents) {
        Ok(bytes) => bytes,
        Err((field, problem)) => return drop(typed.send(Err(ActionError::Invalid { field, problem }))),
    };
    // A signal key works even when the program does not read, and costs it no output.
    let signo = match bytes.as_slice() {
        [0x03] => Some(sys::signal::INT),
        [0x1c] => Some(sys::signal::QUIT),
        [0x1a] => Some(sys::signal::TSTP),
        _ => None,
    };
    // The holder answers a repeated request without typing it again.
    let is_new = cx.timeline.log().typed_with(&key).is_none();
    let is_at_prompt = signo.is_none() && is_new && foreground.is_idle(cx);
    if let Some(id) = meant_for.filter(|_| is_at_prompt) {
        let (session, command) = (cx.shared.id.clone(), cx.command_in_words(id));
        return drop(typed.send(Err(ActionError::InputTooLate { session, command })));
    }
    cx.jobs.may_have_stopped |= bytes.contains(&0x1a);
    let (from, offered) = (cx.timeline.output().scanner.position(), bytes.len());
    let patience_ms = u32::try_from(limits::INPUT_PATIENCE.as_millis()).unwrap_or(u32::MAX);
    let echo = wait.as_ref().filter(|wait| wait.pattern.is_some()).map(|_| {
        let is_shown = |byte: &u8| !indents || *byte != KILL_LINE;
        let shown = bytes.iter().copied().filter(is_shown).collect::<Vec<_>>();
        let running = cx.timeline.log().newest_running().and_then(|id| cx.timeline.log().command(id));
        // The state is still the shell's, whose line editor has read the command.
        let echo = match running.is_some_and(Command::is_about_to_begin) {
            true => Echo::of(&shown, cx.unfinished_line(from), false),
            false => echo_of(cx, foreground, &shown, from),
        };
        echo.painted_again_by_new_editor(may_have_new_editor(cx, foreground))
    });
    let prompt = inside.is_at_nested_prompt(cx, foreground).then(|| cx.unfinished_line(from));
    // Of a foreground that works the kernel names no process.
    let waiting = foreground.state.filter(|state| state.foreground.waits());
    let reader = waiting.map(|state| state.pid).or(inside.known_reader());
    let is_read_here = foreground.is_read_here(cx);
    let ignored_by =
        signo.filter(|signo| *signo == sys::signal::INT).and_then(|signo| key_is_ignored_by(cx, foreground, signo));
    let wait = wait.map(|wait| wait.shortened_by(ignored_by.as_deref()));
    foreground.forget_state();
    // C-c, C-\ and C-z, also where they are plain bytes for a terminal on another machine.
    if bytes.iter().any(|b| [0x03, 0x1c, 0x1a].contains(b)) {
        inside.check_interrupt(cx);
    }
    if let Some(signo) = signo {
        cx.timeline.clear_begun_line();
        let (is_signal, echo) = (true, None);
        let sent = SentInput { from, offered, is_signal, is_at_prompt, echo, is_read_here, ignored_by };
        let call = Call::Input { key, wait, sent, typed };
        return cx.link.call(cx.now.at, call, |seq| ToHolder::Signal { seq, target: Target::Foreground, signo });
    }
    // Before the holder records it: a wait that begins with this input must not end at the prompt where it is
    // typed.
    cx.timeline.record_input(key, &bytes);
    inside.note_input(prompt);
    let mut rest = bytes.iter().skip_while(|byte| !wire::ENDS_LINE.contains(byte));
    let (ends_line, is_one_line) = (rest.next().is_some(), rest.next().is_none());
    inside.note_line_for(reader.filter(|_| ends_line && is_one_line));
    inside.await_reaction(cx.now.at, ends_line.then_some(from));
    let is_signal = false;
    let sent = SentInput { from, offered, is_signal, is_at_prompt, echo, is_read_here, ignored_by };
    let call = Call::Input { key, wait, sent, typed };
    cx.link.call(cx.now.at, call, |seq| ToHolder::Input { seq, key, is_secret, patience_ms, bytes });
}

/// The echo of what is typed when the output has come so far.
pub(super) fn echo_of(cx: &Context, foreground: &ForegroundState, bytes: &[u8], from: u64) -> Echo {
    let prompt = cx.unfinished_line(from);
    match foreground.state {
        Some(state) if state.canonical && !state.echo => return Echo::none(prompt),
        Some(state) if !state.canonical && state.foreground.waits() => return Echo::of(bytes, prompt, true),
        Some(_) | None => {}
    }
    // The program may work, and paint what it is given when its editor reads again.
    let waited = foreground.editor_waited_at;
    let editor_prompt = waited.map(|(at, _)| cx.unfinished_line(at)).unwrap_or_default();
    Echo::of(bytes, prompt, false).painted_again_behind(&editor_prompt)
}

/// Whether the foreground may begin an editor: it has not waited in one, and does not wait for a line without one.
pub(super) fn may_have_new_editor(cx: &Context, foreground: &ForegroundState) -> bool {
    if foreground.state.is_some_and(|state| state.canonical && state.foreground.waits()) {
        return false;
    }
    let shell = cx.shared.backends.host.process(cx.timeline.shell().pid);
    let group = shell.and_then(|shell| shell.foreground_group);
    let command = cx.timeline.log().newest_running().and_then(|id| cx.timeline.log().command(id));
    foreground
        .editor_waited_at
        .is_none_or(|(at, waited)| command.is_some_and(|command| at <= command.output_from()) || Some(waited) != group)
}

/// The holder's answer: how much of the input it has typed, and the wait that begins.
pub(super) fn on_input_done(
    cx: &mut Context,
    foreground: &mut ForegroundState,
    (status, value, shown_by): (Status, u64, ShownBy),
    key: Key,
    wait: Option<Wait>,
    sent: SentInput,
) -> (Result<Typed, ActionError>, Option<OpenWait>) {
    let SentInput { from, offered, is_signal, is_at_prompt, echo, is_read_here, ignored_by } = sent;
    // Behind a program that passes keys on, an echo and output look alike.
    let shown_by = if shown_by == ShownBy::Editor && !is_read_here { ShownBy::Unknown } else { shown_by };
    foreground.on_typed();
    if status != Status::Ok {
        cx.timeline.forget_input(&key);
    }
    let value = if is_signal && status == Status::Ok { offered as u64 } else { value };
    let from = cx.timeline.log().typed_from(&key).map_or(from, |at| at.min(from));
    let accepted = usize::try_from(value).unwrap_or(0);
    let mut begins = None;
    let result = match status {
        Status::Ok | Status::Duplicate => {
            // A repeated input was for the command that ran when it was typed.
            let command = match status {
                Status::Duplicate => cx.timeline.log().command_at(from),
                _ => cx.timeline.log().newest_running(),
            };
            // The command may have begun meanwhile.
            let from = cx.within_output_of(command, from);
            let finished = wait.map(|wait| {
                let (reply, finished) = oneshot::channel();
                let mut waiter = cx.new_wait(wait, command, from, Some(accepted), reply);
                // Only a line that the terminal has echoed is painted again.
                let echo = match shown_by {
                    ShownBy::Terminal => echo,
                    ShownBy::Editor | ShownBy::Unknown => echo.map(|it| it.painted_again_by_new_editor(false)),
                };
                waiter.leaves_out(echo);
                waiter.end_on_idle_screen();
                // A repeated input may already have been answered by the program.
                begins = Some(waiter);
                finished
            });
            Ok(Typed { accepted, is_at_prompt, from, shown_by, ignored_by, finished })
        }
        Status::Stalled => Err(ActionError::Stalled { accepted, offered }),
        Status::LineTooLong => Err(ActionError::Invalid {
            field: "input",
            problem: format!(
                "the program reads lines, and a line of more than {value} bytes with control characters in it cannot \
                 be handed over whole; nothing was sent; send shorter lines"
            ),
        }),
        Status::Ended => Err(cx.ended_error()),
        Status::KeyReused => Err(key_reused()),
        Status::WouldEcho => Err(ActionError::WouldEcho { session: cx.shared.id.clone() }),
        Status::Busy | Status::NotReady | Status::Typed | Status::Failed | Status::NoProcess => {
            Err(holder_failed("the input could not be typed", value))
        }
    };
    (result, begins)
}

/// The bytes that a terminal in these modes sends; an error names the field that cannot be sent. In an editor that indents what is
/// typed, each line behind the first begins with a key that removes the indentation.
fn typed_bytes(bytes: InputBytes, modes: terminal::Modes, indents: bool) -> Result<Vec<u8>, (&'static str, String)> {
    const ENDS: &str = "\x1b[201~";
    match bytes {
        InputBytes::Raw(bytes) => Ok(bytes),
        InputBytes::Keys(keys) => {
            let all = keys.iter().map(|key| key.bytes(modes)).collect::<Result<Vec<_>, String>>();
            all.map(|all| all.concat()).map_err(|problem| ("keys", problem))
        }
        InputBytes::Paste { text, .. } if text.contains(ENDS) => {
            Err(("paste", "the text holds ESC [201~, which would end the paste and type the rest".to_owned()))
        }
        InputBytes::Paste { text, enters } => {
            let (before, behind) = if modes.bracketed_paste { ("\x1b[200~", ENDS) } else { ("", "") };
            // As terminals do: a line end in a paste becomes Enter's byte.
            let lines = text.replace("\r\n", "\r").replace('\n', "\r");
            let lines = if indents { lines.replace('\r', "\r\u{15}") } else { lines };
            Ok([before, &lines, behind, if enters { "\r" } else { "" }].concat().into_bytes())
        }
    }
}
