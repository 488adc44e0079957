//! Commands for a shell that runs in the session's shell: which one takes them, and when.

use journal::{Offset, Record};
use tokio::sync::oneshot;
use wire::{Activity, FromHolder, HandoverMethod, State, Status, ToHolder};

use super::{NESTED, Rig};
use crate::action::{ActionError, TargetShell};
use crate::sessions::session::requests::{Request, Started};

type Answer = oneshot::Receiver<Result<Started, ActionError>>;

/// A session in whose shell another one runs, at its prompt.
struct Nested {
    rig: Rig,
    last_key: u8,
}

impl Nested {
    fn new() -> Self {
        let mut rig = Rig::new(HandoverMethod::Keys);
        rig.prompt(0, "first", 0);
        rig.accept(1, 1, [1; 16], b"bash");
        rig.begin(1);
        rig.write(b"\r\nin$ ");
        rig.publish();
        let mut nested = Self { rig, last_key: 1 };
        nested.reads();
        nested
    }

    fn key(&mut self) -> wire::Key {
        self.last_key += 1;
        [self.last_key; 16]
    }

    /// The kernel shows that the nested shell waits for a key.
    fn reads(&mut self) {
        let (canonical, echo, isig, answered) = (false, false, true, Offset(0));
        let state = State { foreground: Activity::Reads, canonical, echo, isig, group: NESTED, pid: NESTED, answered };
        self.rig.receive(FromHolder::State(state));
    }

    fn runs(&mut self) -> Answer {
        let (started, answer) = oneshot::channel();
        let (key, shell) = (self.key(), TargetShell::Foremost);
        self.rig.request(Request::Run { text: b"true".to_vec(), key, patience_ms: 5_000, wait: None, shell, started });
        answer
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
            other => panic!("asked for {other:?}"),
        };
        self.rig.publish();
        self.rig.receive(FromHolder::Done { seq, status: Status::Ok, value });
        frame
    }

    fn asks_for_line(&self) -> bool {
        self.rig.sent.iter().any(|frame| matches!(frame, ToHolder::Type { .. }))
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
fn the_next_command_is_typed_in_the_turn_in_which_the_nested_shell_is_seen_to_read() {
    let mut nested = ran_one();
    let _answer = nested.runs();
    assert!(!nested.asks_for_line());
    nested.reads();
    assert!(nested.asks_for_line());
}
