//! Hands each request to the method that answers it: `ask_run` in `command_request.rs`, `ask_input` in `input_request.rs`,
//! `ask_signal` in `signal_request.rs`, `asked` in `waits/steps.rs`.

use wire::{NO_KEY, ToHolder};

use crate::action::{ActionError, ConfinementTier, InputBytes, SecretRefusal, TargetShell};
use crate::sessions::session::machine::command_request::may_leave;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::input_request::ask_input;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::machine::signal_request::ask_signal;
use crate::sessions::session::machine::take_over::state::NewTake;
use crate::sessions::session::machine::take_over::steps::{ask_give_back, ask_take, freed_requests, pass_keyboard};
use crate::sessions::session::machine::{snapshot, waits};
use crate::sessions::session::requests::{NewInput, Request, Snapshot};
use crate::sessions::views;

impl Session {
    pub(super) fn on_request(&mut self, request: Request) {
        self.check_take_over();
        if let Some(request) = pass_keyboard(&mut self.cx, request) {
            self.perform_request(request);
        }
    }

    /// Ends a take-over that is over, and performs the requests that waited for it.
    pub(super) fn check_take_over(&mut self) {
        for request in freed_requests(&mut self.cx) {
            if let Some(request) = self.cx.link.refuse(request) {
                self.perform_request(request);
            }
        }
    }

    fn perform_request(&mut self, request: Request) {
        if matches!(request, Request::Run { .. } | Request::Input(_) | Request::Secret { .. }) {
            self.cx.last_activity_us = self.cx.now.us;
            self.expiry.touch(self.cx.now.at);
        }
        match request {
            Request::Look(reply) => {
                let newest = self.cx.timeline.log().newest_running();
                let _ = reply.send(snapshot::take(&mut self.cx, &self.foreground, newest));
            }
            Request::Commands(reply) => {
                let all = views::command_views(&self.cx.shared, &self.cx.timeline);
                let (newest, handovers) =
                    (self.cx.timeline.log().newest_running(), self.cx.timeline.log().handovers(0));
                let snapshot = Snapshot { handovers, ..snapshot::take(&mut self.cx, &self.foreground, newest) };
                let _ = reply.send((snapshot, all));
            }
            Request::KeyUse(key, reply) => drop(reply.send(self.cx.key_use(&key))),
            Request::Run { text, key, patience_ms, wait, shell, allowed_in, typing: _, started } => {
                if let Some(why) =
                    allowed_in.and_then(|folder| may_leave(&self.cx, &self.foreground, &self.inside, &folder, &key))
                {
                    return drop(started.send(Err(why)));
                }
                let is_nested = match shell {
                    TargetShell::Own | TargetShell::Proven(_) => false,
                    TargetShell::Foremost => self.inside.is_inside_a_shell(&self.cx, &self.foreground),
                    TargetShell::Nested => true,
                };
                match is_nested {
                    true => self.ask_run_inside(text, key, patience_ms, wait, shell, started),
                    false => self.ask_run(text, key, shell, patience_ms, wait, started),
                }
            }
            Request::Input(input) => ask_input(&mut self.cx, &mut self.foreground, &mut self.inside, input),
            Request::SecretPrompt(reply) => drop(reply.send(self.secret_prompts.secret_prompt(&self.cx))),
            Request::SecretOver(number, reply) => self.secret_prompts.ask_secret_over(number, reply),
            Request::Secret { prompt, typed, .. }
                if self.secret_prompts.secret_prompt(&self.cx).as_ref() != Some(&prompt) =>
            {
                let _ = typed.send(Err(ActionError::SecretRefused(SecretRefusal::Over)));
            }
            // The holder types it only while the terminal does not echo.
            Request::Secret { line, typing, typed, .. } => {
                let (bytes, key) = (InputBytes::Raw(line), NO_KEY);
                let input = NewInput { bytes, key, is_secret: true, meant_for: None, typing, wait: None, typed };
                ask_input(&mut self.cx, &mut self.foreground, &mut self.inside, input);
            }
            Request::Wait { wait, command, from, reply } => {
                let waiter = waits::steps::asked(&self.cx, wait, command, from, reply);
                self.waits.begin(&mut self.cx, &mut self.foreground, &self.inside, &mut self.drawing, waiter);
            }
            Request::Take { by, lasts, forces, hold, reply } => {
                let _ = reply.send(ask_take(&mut self.cx, NewTake { typist: by, lasts, forces, hold }));
            }
            Request::GiveBack { by, forces, reply } => {
                let _ = reply.send(ask_give_back(&mut self.cx, &by, forces));
                self.check_take_over();
            }
            Request::Resize { cols, rows, reply } => {
                self.cx.link.call(self.cx.now.at, Call::Plain(reply), |seq| ToHolder::Resize { seq, cols, rows });
            }
            Request::Signal { target, signo, reply } => {
                ask_signal(&mut self.cx, &mut self.foreground, &mut self.inside, target, signo, reply)
            }
            Request::Terminate { signo, grace_ms, reply } => {
                self.cx.link.call(self.cx.now.at, Call::Terminate(reply), |seq| ToHolder::Terminate {
                    seq,
                    signo,
                    grace_ms,
                });
            }
            Request::Picture(reply) => self.waits.pictures.push(reply),
            Request::ViewerLimit(reply) => drop(reply.send(snapshot::viewer_limit(&self.cx))),
            Request::At(when, reply) => {
                let end = self.cx.timeline.output().scanner.position();
                let _ = reply.send(self.cx.timeline.clock().offset_at(when, end));
            }
            Request::Times(reply) => drop(reply.send(self.cx.timeline.clock().times.clone())),
            Request::Processes(reply) => {
                let _ = reply.send(self.meter.list(
                    &*self.cx.shared.backends.host,
                    self.cx.timeline.holder_pid(),
                    self.cx.timeline.shell().pid,
                    self.cx.shared.meta.confinement.tier.is_some_and(ConfinementTier::has_namespaces),
                    self.cx.shared.folder.masks(),
                ));
            }
            Request::Signals(reply) => drop(reply.send(views::signal_views(self.cx.host(), &self.cx.timeline))),
            Request::Prompt(reply) => self.waits.ask_prompt(&self.cx, &self.foreground, reply),
        }
    }
}
