//! Hands each request to the method that answers it: `ask_run` in `command_request.rs`, `ask_input` in `input_request.rs`,
//! `ask_signal` in `signal_request.rs`, `ask_wait` in `waits/steps.rs`.

use wire::ToHolder;

use crate::action::{ConfinementTier, TargetShell};
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::{Request, Snapshot};
use crate::sessions::views;

impl Session {
    pub(super) fn on_request(&mut self, request: Request) {
        if matches!(request, Request::Run { .. } | Request::Input { .. } | Request::Secret { .. }) {
            self.cx.last_activity_us = self.cx.now.us;
            self.expiry.touch(self.cx.now.at);
        }
        match request {
            Request::Look(reply) => drop(reply.send(self.snapshot(self.cx.timeline.log().newest_running()))),
            Request::Commands(reply) => {
                let all = views::command_views(&self.cx.shared, &self.cx.timeline);
                let handovers = self.cx.timeline.log().handovers(0);
                let snapshot = Snapshot { handovers, ..self.snapshot(self.cx.timeline.log().newest_running()) };
                let _ = reply.send((snapshot, all));
            }
            Request::KeyUse(key, reply) => drop(reply.send(self.cx.key_use(&key))),
            Request::Run { text, key, patience_ms, wait, shell, allowed_in, started } => {
                if let Some(why) = allowed_in.and_then(|folder| self.may_leave(&folder, &key)) {
                    return drop(started.send(Err(why)));
                }
                let is_nested = match shell {
                    TargetShell::Own | TargetShell::Proven(_) => false,
                    TargetShell::Foremost => self.is_inside_a_shell(),
                    TargetShell::Nested => true,
                };
                match is_nested {
                    true => self.ask_run_inside(text, key, patience_ms, wait, shell, started),
                    false => self.ask_run(text, key, shell, patience_ms, wait, started),
                }
            }
            Request::Input { bytes, key, is_secret, meant_for, wait, typed } => {
                self.ask_input(bytes, key, (is_secret, meant_for), wait, typed);
            }
            Request::SecretPrompt(reply) => drop(reply.send(self.secret_prompt())),
            Request::SecretOver(number, reply) => self.ask_secret_over(number, reply),
            Request::Secret { prompt, line, typed } => self.ask_secret(&prompt, line, typed),
            Request::Wait { wait, command, from, reply } => self.ask_wait(wait, command, from, reply),
            Request::Resize { cols, rows, reply } => {
                self.cx.link.call(self.cx.now.at, Call::Plain(reply), |seq| ToHolder::Resize { seq, cols, rows });
            }
            Request::Signal { target, signo, reply } => self.ask_signal(target, signo, reply),
            Request::Terminate { signo, grace_ms, reply } => {
                self.cx.link.call(self.cx.now.at, Call::Terminate(reply), |seq| ToHolder::Terminate {
                    seq,
                    signo,
                    grace_ms,
                });
            }
            Request::Picture(reply) => self.waits.pictures.push(reply),
            Request::ViewerLimit(reply) => drop(reply.send(self.cx.viewer_limit())),
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
            Request::Prompt(reply) => self.ask_prompt(reply),
        }
    }
}
