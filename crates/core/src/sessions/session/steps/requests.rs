//! Handles requests to the session: run, type, wait, resize, signal, end.

use tokio::sync::oneshot;
use wire::{Key, Target, ToHolder};

use crate::action::{ActionError, InputBytes, Wait};
use crate::host::{Process, descendants};
use crate::limits;
use crate::sessions::session::requests::{Request, Snapshot, Typed, ViewerLimit};
use crate::sessions::session::state::holder_link::Call;
use crate::sessions::session::state::session::Session;
use crate::sessions::session::state::waiter::Waiter;
use crate::sessions::timeline::{Command, Sent};
use crate::sessions::views;

impl Session {
    pub(super) fn on_request(&mut self, request: Request) {
        if matches!(request, Request::Run { .. } | Request::Input { .. }) {
            self.last_activity_us = self.now.us;
            self.expiry.touch(self.now.at);
        }
        match request {
            Request::Look(reply) => drop(reply.send(self.snapshot(self.timeline.log().newest_running()))),
            Request::Commands(reply) => {
                let all = views::command_views(&self.shared, &self.timeline);
                let handovers = self.timeline.log().handovers(0);
                let snapshot = Snapshot { handovers, ..self.snapshot(self.timeline.log().newest_running()) };
                let _ = reply.send((snapshot, all));
            }
            Request::Run { text, key, patience_ms, wait, is_inside: true, started } => {
                self.ask_run_inside(text, key, patience_ms, wait, started)
            }
            Request::Run { text, key, patience_ms, wait, is_inside: false, started } => {
                self.ask_run(text, key, patience_ms, wait, started)
            }
            Request::Input { bytes, key, is_secret, wait, typed } => self.ask_input(bytes, key, is_secret, wait, typed),
            Request::Wait { wait, command, from, reply } => {
                let from = from.unwrap_or_else(|| self.timeline.output().scanner.position());
                let command = command.or(self.timeline.log().newest_running());
                let known = command.and_then(|id| self.timeline.log().command(id));
                // The prompt and the echo before a command's beginning are not part of its output.
                let from = known.map_or(from, |c| from.max(c.output_from()));
                let is_about_to_begin = known.is_some_and(Command::is_about_to_begin);
                let mut waiter = Waiter::new(self.now.at, wait, command, from, self.timeline.cols(), None, reply);
                waiter.count_current_state();
                if is_about_to_begin {
                    waiter.awaits_beginning();
                }
                let waiter = self.catch_up(waiter);
                if let Some(waiter) = waiter {
                    self.admit(waiter);
                }
            }
            Request::Resize { cols, rows, reply } => {
                self.link.call(self.now.at, Call::Plain(reply), |seq| ToHolder::Resize { seq, cols, rows });
            }
            Request::Signal { target, signo, reply } => {
                self.jobs.may_have_stopped |= signo == sys::signal::TSTP;
                let is_foreground = target == Target::Foreground;
                if is_foreground {
                    self.foreground.forget_state();
                }
                if [sys::signal::INT, sys::signal::QUIT, sys::signal::TSTP].contains(&signo) {
                    self.check_interrupt();
                }
                let sent = self.about_to_send(target, signo);
                self.timeline.expect_signal(sent);
                self.link.call(self.now.at, Call::Signal { is_foreground, reply }, |seq| ToHolder::Signal {
                    seq,
                    target,
                    signo,
                });
            }
            Request::Terminate { signo, grace_ms, reply } => {
                self.link.call(self.now.at, Call::Terminate(reply), |seq| ToHolder::Terminate { seq, signo, grace_ms });
            }
            Request::Picture(reply) => self.waits.pictures.push(reply),
            Request::ViewerLimit(reply) => {
                let markers = self.timeline.output().markers.iter().copied().collect();
                let has_exited = self.timeline.end().exit.is_some();
                let _ = reply.send(ViewerLimit {
                    to: self.timeline.output().scanner.held_from(),
                    stream_to: self.shown_to(),
                    markers,
                    handovers: self.timeline.log().handovers(0),
                    has_exited,
                });
            }
            Request::At(when, reply) => {
                let end = self.timeline.output().scanner.position();
                let _ = reply.send(self.timeline.clock().offset_at(when, end));
            }
            Request::Times(reply) => drop(reply.send(self.timeline.clock().times.clone())),
            Request::Processes(reply) => {
                let _ = reply.send(self.meter.list(
                    &*self.shared.backends.host,
                    self.timeline.holder_pid(),
                    self.timeline.shell().pid,
                ));
            }
            Request::Signals(reply) => drop(reply.send(views::signal_views(self.host(), &self.timeline))),
            Request::Prompt(reply) => {
                if self.timeline.shell().prompt_seen
                    || self.timeline.end().exit.is_some()
                    || self.foreground.is_heuristic
                {
                    let _ = reply.send(());
                } else {
                    self.waits.at_prompt.push(reply);
                }
            }
        }
    }

    /// The signal as the event log will record it, with the processes that will receive it.
    fn about_to_send(&self, target: Target, signo: i32) -> Sent {
        let all = descendants(self.host(), self.timeline.holder_pid());
        let foreground = all.iter().find(|s| s.pid() == self.timeline.shell().pid).and_then(|s| s.foreground_group);
        let gets = |it: &Process| match target {
            Target::Foreground => Some(it.group) == foreground,
            Target::Session => true,
            Target::Process(pid) => it.pid() == pid,
        };
        let receivers = all.into_iter().filter(gets).map(|it| (it.identity, it.name)).collect();
        let target = match target {
            Target::Foreground => 0,
            Target::Session => -1,
            Target::Process(pid) => pid.cast_signed(),
        };
        Sent { target, signo, errno: 0, at_us: 0, receivers }
    }

    pub(super) fn ask_input(
        &mut self,
        bytes: InputBytes,
        key: Key,
        is_secret: bool,
        wait: Option<Wait>,
        typed: oneshot::Sender<Result<Typed, ActionError>>,
    ) {
        let bytes = match typed_bytes(bytes, self.timeline.output().scanner.modes()) {
            Ok(bytes) => bytes,
            Err((field, problem)) => return drop(typed.send(Err(ActionError::Invalid { field, problem }))),
        };
        self.jobs.may_have_stopped |= bytes.contains(&0x1a);
        // A signal key works even when the program does not read, and costs it no output.
        let signo = match bytes.as_slice() {
            [0x03] => Some(sys::signal::INT),
            [0x1c] => Some(sys::signal::QUIT),
            [0x1a] => Some(sys::signal::TSTP),
            _ => None,
        };
        let (from, offered) = (self.timeline.output().scanner.position(), bytes.len());
        let patience_ms = u32::try_from(limits::INPUT_PATIENCE.as_millis()).unwrap_or(u32::MAX);
        self.foreground.forget_state();
        // C-c, C-\ and C-z, also where they are plain bytes for a terminal on another machine.
        if bytes.iter().any(|b| [0x03, 0x1c, 0x1a].contains(b)) {
            self.check_interrupt();
        }
        if let Some(signo) = signo {
            self.timeline.clear_begun_line();
            let call = Call::Input { key, wait, from, offered, is_signal: true, typed };
            return self.link.call(self.now.at, call, |seq| ToHolder::Signal {
                seq,
                target: Target::Foreground,
                signo,
            });
        }
        // Before the holder records it: a wait that begins with this input must not end at the prompt where it is
        // typed.
        self.timeline.record_input(&bytes);
        self.link.call(self.now.at, Call::Input { key, wait, from, offered, is_signal: false, typed }, |seq| {
            ToHolder::Input { seq, key, is_secret, patience_ms, bytes }
        });
    }
}

/// The bytes that a terminal in these modes sends; an error names the field that cannot be sent.
fn typed_bytes(bytes: InputBytes, modes: terminal::Modes) -> Result<Vec<u8>, (&'static str, String)> {
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
            Ok([before, &lines, behind, if enters { "\r" } else { "" }].concat().into_bytes())
        }
    }
}
