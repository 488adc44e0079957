//! Commands for a shell that runs in the session's shell: which one takes them, and when.

use std::time::Duration;

use foreground::Modes;
use journal::Record;
use tokio::sync::oneshot;
use wire::{Activity, FromHolder, HandoverMethod, ShownBy, Status, ToHolder};

use super::{CARRIER, NESTED, Rig, sample, typing};
use crate::action::{ActionError, EndedBy, InputBytes, TargetShell, Wait};
use crate::limits;
use crate::sessions::session::requests::{NewInput, Request, Started};

type Answer = oneshot::Receiver<Result<Started, ActionError>>;

/// A session in whose shell another one runs.
struct Nested {
    rig: Rig,
    last_key: u8,
    /// The process that has the terminal.
    program: u32,
}

impl Nested {
    /// The nested shell is at its prompt.
    fn new() -> Self {
        let mut nested = Self::enters(NESTED, b"bash");
        nested.prompts();
        nested
    }

    fn enters(program: u32, command: &[u8]) -> Self {
        let mut rig = Rig::new(HandoverMethod::Keys);
        rig.prompt(0, "first", 0);
        rig.accept(1, 1, [1; 16], command);
        rig.begin(1);
        rig.publish();
        Self { rig, last_key: 1, program }
    }

    fn prompts(&mut self) {
        self.rig.write(b"\r\nin$ ");
        self.rig.publish();
        self.reads();
    }

    fn key(&mut self) -> wire::Key {
        self.last_key += 1;
        [self.last_key; 16]
    }

    /// The kernel shows that the nested shell waits for a key.
    fn reads(&mut self) {
        self.is(Activity::Reads);
    }

    fn is(&mut self, activity: Activity) {
        self.rig.receive(sample(activity, Modes { isig: true, ..Modes::default() }, self.program));
    }

    fn runs(&mut self) -> Answer {
        self.runs_in(TargetShell::Foremost, None)
    }

    fn runs_in(&mut self, shell: TargetShell, wait: Option<Wait>) -> Answer {
        let (started, answer) = oneshot::channel();
        let key = self.key();
        self.rig.request(Request::Run {
            text: b"true".to_vec(),
            key,
            patience_ms: 5_000,
            wait,
            shell,
            allowed_in: None,
            typing: typing(),
            started,
        });
        answer
    }

    fn types(&mut self, bytes: &[u8]) {
        let (typed, _) = oneshot::channel();
        let (key, bytes) = (self.key(), InputBytes::Raw(bytes.to_vec()));
        self.rig.request(Request::Input(NewInput {
            bytes,
            key,
            is_secret: false,
            meant_for: None,
            typing: typing(),
            wait: None,
            typed,
        }));
    }

    /// The holder does what it was asked for last, and the frame that asked.
    fn done(&mut self) -> ToHolder {
        let frame = self.rig.sent.pop().expect("the holder was asked");
        let (seq, value) = match &frame {
            ToHolder::Type { seq, key, text, is_inside, nonce, .. } => {
                let (id, is_inside, nonce) = (2, *is_inside, *nonce);
                self.rig.record(&Record::Typed { id, is_inside, nonce, key: *key, text });
                (*seq, 2)
            }
            ToHolder::Input { seq, key, bytes, .. } => {
                let len = u32::try_from(bytes.len()).expect("short");
                self.rig.record(&Record::Input {
                    key: *key,
                    len,
                    ends: wire::line_ends(bytes),
                    is_secret: false,
                    bytes,
                });
                (*seq, u64::from(len))
            }
            ToHolder::Signal { seq, .. } => (*seq, 0),
            other => panic!("asked for {other:?}"),
        };
        self.rig.publish();
        self.rig.receive(FromHolder::Done { seq, status: Status::Ok, value, shown_by: ShownBy::Unknown });
        frame
    }

    fn asks_for_line(&self) -> bool {
        self.rig.sent.iter().any(|frame| matches!(frame, ToHolder::Type { .. }))
    }

    fn asks_for_command(&self) -> bool {
        self.rig.sent.iter().any(|frame| matches!(frame, ToHolder::Run { .. }))
    }
}

/// Runs a command there, and ends it: its prompt is printed, but the kernel has not shown yet that the shell reads.
fn ran_one() -> Nested {
    let mut nested = Nested::new();
    let _answer = nested.runs();
    let ToHolder::Type { nonce, .. } = nested.done() else { panic!("not typed") };
    nested.rig.write(format!("a line\r\n\x1b]7337;C;{nonce:016x}\x07").as_bytes());
    nested.rig.publish();
    nested.rig.write(format!("\x1b]7337;D;{nonce:016x}.0\x07in$ ").as_bytes());
    nested.rig.publish();
    nested
}

#[test]
fn the_next_command_is_typed_as_soon_as_the_nested_shell_reads() {
    let mut nested = ran_one();
    let _answer = nested.runs();
    assert!(!nested.asks_for_line());
    nested.reads();
    assert!(nested.asks_for_line());
}

#[test]
// promise: inside-4
fn a_command_for_a_shell_behind_a_connection_waits_for_its_next_prompt() {
    for prompt_comes in [true, false] {
        let mut nested = Nested::enters(CARRIER, b"podman exec -it box bash");
        // The client waits for keys, and passes on the first bytes that come.
        nested.reads();
        nested.is(Activity::Busy);
        let mut answer = nested.runs_in(TargetShell::Nested, None);
        nested.rig.later(limits::INSIDE_SETTLES - Duration::from_millis(1));
        assert!(!nested.asks_for_line() && answer.try_recv().is_err());
        if prompt_comes {
            nested.prompts();
            assert!(nested.asks_for_line());
        } else {
            nested.rig.later(Duration::from_millis(1));
            let refused = answer.try_recv().expect("answered").err();
            assert!(!nested.asks_for_line() && matches!(refused, Some(ActionError::Busy { .. })), "{refused:?}");
        }
    }
}

#[test]
fn a_command_after_typed_input_runs_in_the_shell_that_then_reads() {
    let mut nested = ran_one();
    nested.reads();
    nested.types(b"exit\n");
    nested.done();
    let _answer = nested.runs();
    // Not even an echo has come: the nested shell, which seems to read, has not got it.
    nested.reads();
    nested.rig.write(b"exit\r\n");
    nested.rig.publish();
    assert!(!nested.asks_for_line() && !nested.asks_for_command());
    nested.rig.prompt(1, "second", 0);
    nested.rig.publish();
    assert!(!nested.asks_for_line() && nested.asks_for_command());
}

#[test]
fn it_runs_in_the_nested_shell_that_has_printed_its_prompt_again() {
    let mut nested = ran_one();
    nested.reads();
    nested.types(b"cd /\n");
    nested.done();
    let _answer = nested.runs();
    nested.rig.write(b"cd /\r\nin$ ");
    nested.rig.publish();
    nested.reads();
    assert!(nested.asks_for_line());
}

#[test]
fn a_state_from_before_a_command_begins_is_not_its_question() {
    let mut nested = Nested::new();
    let wait = Wait { input_wanted: true, ..Wait::at_most(Duration::from_secs(30)) };
    let mut answer = nested.runs_in(TargetShell::Foremost, Some(wait));
    let ToHolder::Type { nonce, .. } = nested.done() else { panic!("not typed") };
    // Its shell waits for the rest of the line, which a program between them passes on.
    nested.rig.write(b"a li");
    nested.rig.publish();
    nested.reads();
    nested.rig.write(format!("ne\r\n\x1b]7337;C;{nonce:016x}\x07").as_bytes());
    nested.rig.publish();
    let started = answer.try_recv().expect("answered").expect("it runs");
    let mut finished = started.finished.expect("a wait");
    assert!(finished.try_recv().is_err());
    // If no other state comes, it is the command's own.
    nested.rig.later(limits::INSIDE_BEGUN);
    assert_eq!(finished.try_recv().expect("it asks").ended_by, EndedBy::InputWanted);
}

#[test]
fn a_line_typed_while_the_shell_works_makes_no_nested_shell_known() {
    for works in [true, false] {
        let mut nested = ran_one();
        if works {
            // Of a process group that works the kernel names no process.
            nested.is(Activity::Busy);
        }
        nested.types(b"read -e -p 'really$ ' x\n");
        nested.done();
        nested.rig.write(b"read -e -p 'really$ ' x\r\nreally$ ");
        nested.rig.publish();
        nested.reads();
        let _answer = nested.runs();
        nested.rig.later(limits::INSIDE_SETTLES);
        // The holder refuses it, for the nested shell is a command that runs.
        assert!(!nested.asks_for_line() && nested.asks_for_command(), "{works}");
    }
}

#[test]
fn a_command_is_refused_if_no_reaction_shows_where_it_would_run() {
    let mut nested = ran_one();
    nested.reads();
    nested.types(b"exit\n");
    nested.done();
    let mut answer = nested.runs();
    nested.reads();
    nested.rig.later(limits::INSIDE_SETTLES - Duration::from_millis(1));
    assert!(!nested.asks_for_command() && answer.try_recv().is_err());
    nested.rig.later(Duration::from_millis(1));
    // The holder refuses it, for the nested shell is a command that runs.
    assert!(!nested.asks_for_line() && nested.asks_for_command());
}

#[test]
fn an_interrupted_command_has_ended_once_its_shell_is_back_at_the_prompt_where_it_was_typed() {
    let mut nested = Nested::new();
    let _answer = nested.runs();
    let ToHolder::Type { nonce, .. } = nested.done() else { panic!("not typed") };
    nested.rig.write(format!("a line\r\n\x1b]7337;C;{nonce:016x}\x07").as_bytes());
    nested.rig.publish();
    nested.types(b"\x03");
    nested.done();
    nested.reads();
    assert!(nested.rig.session.cx.timeline.log().inside.is_some(), "another line than its prompt");
    nested.rig.write(b"^C\r\nin$ ");
    nested.rig.publish();
    nested.reads();
    assert!(nested.rig.session.cx.timeline.log().inside.is_none());
}
