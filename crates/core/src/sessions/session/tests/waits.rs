//! No sequence of inputs leaves a wait open for ever: whatever a holder, a shell and callers do, every caller is
//! answered once its time is over.

use std::time::Duration;

use foreground::{Activity, Modes};
use journal::Record;
use proptest::prelude::*;
use tokio::sync::oneshot;
use wire::{FromHolder, HandoverMethod, ShownBy, Status, Target, ToHolder};

use super::{NO_PROCESS, Rig, StepInput, sample, typing};
use crate::action::{ActionError, EndedBy, InputBytes, TargetShell, Until, Wait};
use crate::limits;
use crate::sessions::session::requests::{Finished, NewInput, Request, Started, Typed};

#[test]
// promise: shell-13
fn a_wait_ends_with_the_lines_typed_before_it_and_not_with_later_ones() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.publish();
    let types = |rig: &mut Rig, key: u8| {
        let bytes = b"sleep 1\r";
        rig.record(&Record::Input { key: [key; 16], len: 8, ends: 1, is_secret: false, bytes });
        rig.publish();
    };
    let waits = |rig: &mut Rig| {
        let (reply, finished) = oneshot::channel();
        rig.request(Request::Wait { wait: Wait::at_most(WAIT_MAX), command: None, from: None, reply });
        finished
    };
    let mut ended: Vec<oneshot::Receiver<Finished>> = Vec::new();
    for key in 1..=3 {
        types(&mut rig, key);
        ended.push(waits(&mut rig));
    }
    rig.prompt(0, "second", 0);
    rig.publish();
    let has_ended = |it: &mut oneshot::Receiver<Finished>| it.try_recv().map(|finished| finished.ended_by).ok();
    let told: Vec<_> = ended.iter_mut().map(has_ended).collect();
    assert_eq!(told, [Some(EndedBy::Ended), None, None]);
    // A program has read the other two: the editor waits for a line.
    rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
    let told: Vec<_> = ended[1..].iter_mut().map(has_ended).collect();
    assert_eq!(told, [Some(EndedBy::Ended); 2]);
    assert!(!rig.session.cx.timeline.shell().has_typed_line);
}

#[test]
// promise: shell-13
fn the_prompt_of_an_interrupt_ends_no_line_and_a_withheld_line_counts() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.publish();
    rig.record(&Record::Signalled { target: 0, signo: sys::signal::INT, errno: 0 });
    rig.record(&Record::Input { key: [1; 16], len: 8, ends: 1, is_secret: true, bytes: b"" });
    rig.publish();
    let (reply, mut finished) = oneshot::channel();
    rig.request(Request::Wait { wait: Wait::at_most(WAIT_MAX), command: None, from: None, reply });
    rig.prompt(0, "interrupted", 130);
    rig.publish();
    assert!(finished.try_recv().is_err(), "that was the interrupt's prompt");
    rig.prompt(0, "ended", 3);
    rig.publish();
    let finished = finished.try_recv().expect("the line has ended");
    assert_eq!((finished.ended_by, finished.line_exit), (EndedBy::Ended, Some(3)));
}

#[test]
// promise: shell-13
fn a_wait_ends_where_the_editor_waits_although_an_interrupt_cost_the_report_of_the_line() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.publish();
    let (reply, mut finished) = oneshot::channel();
    for is_interrupted in [false, true] {
        if is_interrupted {
            rig.record(&Record::Signalled { target: 0, signo: sys::signal::INT, errno: 0 });
        }
        rig.record(&Record::Input { key: [1; 16], len: 8, ends: 1, is_secret: true, bytes: b"" });
        rig.publish();
        if !is_interrupted {
            // It may run the shell's editor.
            rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
            assert!(rig.session.cx.timeline.shell().has_typed_line);
            rig.prompt(0, "ended", 3);
            rig.publish();
        }
    }
    rig.request(Request::Wait { wait: Wait::at_most(WAIT_MAX), command: None, from: None, reply });
    assert!(finished.try_recv().is_err(), "no report and no editor");
    rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
    let finished = finished.try_recv().expect("the line has ended");
    assert_eq!((finished.ended_by, finished.line_exit), (EndedBy::Ended, None));
}

#[test]
// promise: crash-2
fn a_report_ends_only_a_line_that_was_typed_before_it_although_its_marker_is_read_later() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    let reports = |rig: &mut Rig, name: &str, code: i32| {
        rig.record(&Record::Attested { report: format!("D;;{name};0;{code};{code};;/").as_bytes() });
    };
    let marks = |rig: &mut Rig, name: &str| rig.write(format!("\x1b]7337;D;{name}\x07$ ").as_bytes());
    reports(&mut rig, "first", 0);
    rig.record(&Record::Input { key: [1; 16], len: 8, ends: 1, is_secret: true, bytes: b"" });
    marks(&mut rig, "first");
    rig.publish();
    let (reply, mut finished) = oneshot::channel();
    rig.request(Request::Wait { wait: Wait::at_most(WAIT_MAX), command: None, from: None, reply });
    assert!(finished.try_recv().is_err(), "the first prompt ends no line");
    reports(&mut rig, "second", 3);
    marks(&mut rig, "second");
    rig.publish();
    let finished = finished.try_recv().expect("the line has ended");
    assert_eq!((finished.ended_by, finished.line_exit), (EndedBy::Ended, Some(3)));
}

#[test]
// promise: shell-13
fn a_wait_tells_no_code_of_a_line_that_was_interrupted() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.publish();
    rig.record(&Record::Input { key: [1; 16], len: 8, ends: 1, is_secret: true, bytes: b"" });
    rig.record(&Record::Signalled { target: 0, signo: sys::signal::INT, errno: 0 });
    rig.publish();
    let (reply, mut finished) = oneshot::channel();
    rig.request(Request::Wait { wait: Wait::at_most(WAIT_MAX), command: None, from: None, reply });
    rig.prompt(0, "ended", 130);
    rig.publish();
    let finished = finished.try_recv().expect("the line has ended");
    assert_eq!((finished.ended_by, finished.line_exit), (EndedBy::Ended, None));
}

#[test]
// promise: shell-13
fn a_line_that_was_typed_while_a_command_ran_is_open_until_the_editor_waits() {
    for is_left in [true, false] {
        let mut rig = Rig::new(HandoverMethod::Keys);
        rig.prompt(0, "first", 0);
        rig.publish();
        rig.accept(1, 1, [1; 16], b"true");
        rig.begin(1);
        rig.publish();
        rig.record(&Record::Input { key: [2; 16], len: 8, ends: 1, is_secret: true, bytes: b"" });
        rig.prompt(1, "second", 4);
        rig.publish();
        let (reply, mut finished) = oneshot::channel();
        rig.request(Request::Wait { wait: Wait::at_most(WAIT_MAX), command: None, from: None, reply });
        assert!(finished.try_recv().is_err(), "the command may have left it to the prompt");
        assert!(!rig.session.cx.timeline.shell().has_typed_line);
        if is_left {
            rig.prompt(0, "third", 3);
            rig.publish();
        } else {
            rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
        }
        let finished = finished.try_recv().expect("the line has ended");
        assert_eq!((finished.ended_by, finished.line_exit), (EndedBy::Ended, is_left.then_some(3)));
    }
}

/// The longest time that a request of these tests may wait.
const WAIT_MAX: Duration = Duration::from_secs(40);

/// The next input.
#[derive(Debug, Clone)]
enum Happening {
    Run {
        key: u8,
        waits: Option<Waits>,
        is_inside: bool,
    },
    Input {
        bytes: &'static [u8],
        key: u8,
        waits: Option<Waits>,
    },
    Wait {
        waits: Waits,
        command: Option<u32>,
    },
    Resize,
    Signal(i32),
    Terminate,
    Picture,
    /// The holder answers its oldest request.
    Answer(Status),
    /// The same, having done what it was asked for.
    Do,
    /// The shell begins the command that was accepted last.
    Begin,
    /// The shell reports the end of the command that was accepted last, or a prompt of its own.
    End {
        code: i32,
        has_marker: bool,
    },
    Output(&'static [u8]),
    State {
        activity: Activity,
        canonical: bool,
        echo: bool,
        of_shell: bool,
    },
    Later(u16),
    /// Everybody who waits gives up.
    Leave,
    Exit,
}

#[derive(Debug, Clone)]
struct Waits {
    for_pattern: bool,
    until: u8,
    input_wanted: bool,
    quiet_ms: Option<u16>,
    timeout_ms: u16,
}

fn waits() -> impl Strategy<Value = Waits> {
    let quiet = proptest::option::of(0..3_000_u16);
    (any::<bool>(), 0..4_u8, any::<bool>(), quiet, 0..30_000_u16).prop_map(
        |(for_pattern, until, input_wanted, quiet_ms, timeout_ms)| Waits {
            for_pattern,
            until,
            input_wanted,
            quiet_ms,
            timeout_ms,
        },
    )
}

fn happening() -> impl Strategy<Value = Happening> {
    let output: Vec<&'static [u8]> = vec![
        b"ready\r\n",
        b"a line\r\nanother",
        b"\x07",
        b"\x1b[?1049h\x1b[2J\x1b[5;5Hfull",
        b"\x1b[?1049l",
        b"\x1b[6n",
        b"\x1b]7337;D;forged\x07",
        b"\x1b]0;half a ti",
        b"$ ",
    ];
    let input: Vec<&'static [u8]> = vec![b"y\n", b"half", b"\x03", b"\x1a", b"\x04"];
    let statuses = vec![
        Status::Ok,
        Status::Busy,
        Status::NotReady,
        Status::Duplicate,
        Status::Typed,
        Status::LineTooLong,
        Status::Ended,
        Status::Stalled,
        Status::Failed,
        Status::NoProcess,
        Status::KeyReused,
        Status::WouldEcho,
    ];
    let state = (proptest::sample::select(Activity::ALL.to_vec()), any::<bool>(), any::<bool>(), any::<bool>());
    let some_waits = || proptest::option::of(waits());
    prop_oneof![
        4 => (0..3_u8, some_waits(), any::<bool>())
            .prop_map(|(key, waits, is_inside)| Happening::Run { key, waits, is_inside }),
        3 => (proptest::sample::select(input), 0..3_u8, some_waits())
            .prop_map(|(bytes, key, waits)| Happening::Input { bytes, key, waits }),
        3 => (waits(), proptest::option::of(0..4_u32)).prop_map(|(waits, command)| Happening::Wait { waits, command }),
        1 => Just(Happening::Resize),
        2 => proptest::sample::select(vec![2, 3, 20]).prop_map(Happening::Signal),
        1 => Just(Happening::Terminate),
        1 => Just(Happening::Picture),
        2 => proptest::sample::select(statuses).prop_map(Happening::Answer),
        6 => Just(Happening::Do),
        3 => Just(Happening::Begin),
        3 => (0..130_i32, any::<bool>()).prop_map(|(code, has_marker)| Happening::End { code, has_marker }),
        3 => proptest::sample::select(output).prop_map(Happening::Output),
        4 => state.prop_map(|(activity, canonical, echo, of_shell)| Happening::State {
            activity,
            canonical,
            echo,
            of_shell
        }),
        3 => (0..5_000_u16).prop_map(Happening::Later),
        1 => Just(Happening::Leave),
        1 => Just(Happening::Exit),
    ]
}

/// How the story ends.
#[derive(Debug, Clone, Copy)]
enum Last {
    /// The holder does what it was asked for.
    Answers,
    /// The holder never says anything again.
    Silence,
    HolderGone,
    Adrift,
    Reconnected,
}

/// The callers that wait for an answer.
#[derive(Default)]
struct Callers {
    runs: Vec<oneshot::Receiver<Result<Started, ActionError>>>,
    inputs: Vec<oneshot::Receiver<Result<Typed, ActionError>>>,
    waits: Vec<oneshot::Receiver<Finished>>,
    plain: Vec<oneshot::Receiver<Result<(), ActionError>>>,
    signals: Vec<oneshot::Receiver<Result<Option<String>, ActionError>>>,
    ends: Vec<oneshot::Receiver<Result<super::super::Ended, ActionError>>>,
}

impl Callers {
    /// Takes the answers that came; an accepted command or input may go on waiting for its end.
    fn take_answers(&mut self) {
        use oneshot::error::TryRecvError::Empty;
        let waits = &mut self.waits;
        self.runs.retain_mut(|run| match run.try_recv() {
            Ok(started) => {
                waits.extend(started.ok().and_then(|started| started.finished));
                false
            }
            Err(e) => e == Empty,
        });
        self.inputs.retain_mut(|input| match input.try_recv() {
            Ok(typed) => {
                waits.extend(typed.ok().and_then(|typed| typed.finished));
                false
            }
            Err(e) => e == Empty,
        });
        self.waits.retain_mut(|wait| wait.try_recv() == Err(Empty));
        self.plain.retain_mut(|plain| plain.try_recv().is_err_and(|e| e == Empty));
        self.signals.retain_mut(|signal| signal.try_recv().is_err_and(|e| e == Empty));
        self.ends.retain_mut(|end| end.try_recv().is_err_and(|e| e == Empty));
    }

    fn open(&self) -> [usize; 6] {
        let (plain, signals) = (self.plain.len(), self.signals.len());
        [self.runs.len(), self.inputs.len(), self.waits.len(), plain, signals, self.ends.len()]
    }
}

impl PartialEq for Finished {
    fn eq(&self, _: &Self) -> bool {
        false
    }
}

struct Story {
    rig: Rig,
    callers: Callers,
    /// The newest command, and how many there were.
    command: u32,
    /// The shell runs a command that it took by its key.
    runs: bool,
    has_exited: bool,
}

fn pattern() -> crate::action::Pattern {
    crate::action::pattern::tests::compiled("ready").expect("valid")
}

fn to_wait(waits: &Waits) -> Wait {
    let until = match waits.until {
        1 => vec![Until::Bell],
        2 => vec![Until::Gone(pattern())],
        3 => vec![Until::Input],
        _ => Vec::new(),
    };
    Wait {
        pattern: waits.for_pattern.then(pattern),
        until,
        input_wanted: waits.input_wanted,
        listens: false,
        asks_person: false,
        quiet: waits.quiet_ms.map(|ms| Duration::from_millis(u64::from(ms))),
        waited: Duration::ZERO,
        task: None,
        timeout: Duration::from_millis(u64::from(waits.timeout_ms)),
    }
}

impl Story {
    fn new(method: HandoverMethod) -> Self {
        Self { rig: Rig::new(method), callers: Callers::default(), command: 0, runs: false, has_exited: false }
    }

    fn happens(&mut self, what: &Happening) {
        match what {
            Happening::Run { key, waits, is_inside } => {
                let (started, run) = oneshot::channel();
                self.callers.runs.push(run);
                self.rig.request(Request::Run {
                    text: b"true".to_vec(),
                    key: [*key; 16],
                    patience_ms: 5_000,
                    wait: waits.as_ref().map(to_wait),
                    shell: if *is_inside { TargetShell::Nested } else { TargetShell::Foremost },
                    allowed_in: None,
                    typing: typing(),
                    started,
                });
            }
            Happening::Input { bytes, key, waits } => {
                let (typed, input) = oneshot::channel();
                self.callers.inputs.push(input);
                self.rig.request(Request::Input(NewInput {
                    bytes: InputBytes::Raw(bytes.to_vec()),
                    key: [*key; 16],
                    is_secret: false,
                    meant_for: None,
                    typing: typing(),
                    wait: waits.as_ref().map(to_wait),
                    typed,
                }));
            }
            Happening::Wait { waits, command } => {
                let (reply, wait) = oneshot::channel();
                self.callers.waits.push(wait);
                self.rig.request(Request::Wait { wait: to_wait(waits), command: *command, from: None, reply });
            }
            Happening::Resize => {
                let (reply, plain) = oneshot::channel();
                self.callers.plain.push(plain);
                self.rig.request(Request::Resize { cols: 100, rows: 30, reply });
            }
            Happening::Signal(signo) => {
                let (reply, signal) = oneshot::channel();
                self.callers.signals.push(signal);
                self.rig.request(Request::Signal { target: Target::Foreground, signo: *signo, reply });
            }
            Happening::Terminate => {
                let (reply, end) = oneshot::channel();
                self.callers.ends.push(end);
                self.rig.request(Request::Terminate { signo: 1, grace_ms: 0, reply });
            }
            Happening::Picture => self.rig.request(Request::Picture(oneshot::channel().0)),
            Happening::Answer(status) => self.answer(|_| (*status, 7)),
            Happening::Do => self.do_one(),
            Happening::Begin => self.rig.begin(u64::from(self.command)),
            Happening::End { code, has_marker } if !self.has_exited => {
                self.runs = false;
                let report = format!("D;;e{};{};{code};{code};;/", self.command, self.command);
                self.rig.record(&Record::Attested { report: report.as_bytes() });
                if *has_marker {
                    self.rig.write(format!("\x1b]7337;D;e{}\x07$ ", self.command).as_bytes());
                }
            }
            Happening::End { .. } => {}
            Happening::Output(bytes) => self.rig.write(bytes),
            Happening::State { activity, canonical, echo, of_shell } => {
                let group = if *of_shell { NO_PROCESS } else { NO_PROCESS - 1 };
                let modes = Modes { canonical: *canonical, echo: *echo, isig: true, ..Modes::default() };
                self.rig.receive(sample(*activity, modes, group));
            }
            Happening::Later(ms) => self.rig.later(Duration::from_millis(u64::from(*ms))),
            Happening::Leave => self.callers = Callers::default(),
            Happening::Exit if !self.has_exited => {
                self.has_exited = true;
                let end = self.rig.end_of_journal();
                self.rig.record(&Record::Exited { wait_status: 0, end, dropped_records: 0, left: 0, names: b"" });
            }
            Happening::Exit => {}
        }
        self.rig.publish();
        self.callers.take_answers();
    }

    /// The holder answers its oldest request.
    fn answer(&mut self, with: impl FnOnce(&ToHolder) -> (Status, u64)) {
        let asks = |frame: &ToHolder| sequence(frame).is_some();
        if let Some(i) = self.rig.sent.iter().position(asks) {
            let frame = self.rig.sent.remove(i);
            let (status, value) = with(&frame);
            self.rig.publish();
            let seq = sequence(&frame).expect("looked at");
            self.rig.receive(FromHolder::Done { seq, status, value, shown_by: ShownBy::Unknown });
        }
    }

    /// The holder does what its oldest request asks for.
    fn do_one(&mut self) {
        let Some(frame) = self.rig.sent.iter().find(|frame| sequence(frame).is_some()).cloned() else { return };
        let value = match &frame {
            ToHolder::Run { .. } | ToHolder::Type { .. } | ToHolder::Input { .. } if self.has_exited => {
                return self.answer(|_| (Status::Ended, 0));
            }
            ToHolder::Run { .. } if self.runs => {
                let command = u64::from(self.command);
                return self.answer(|_| (Status::Busy, command));
            }
            ToHolder::Run { key, text, .. } => {
                self.runs = true;
                self.command += 1;
                self.rig.accept(self.command, u64::from(self.command), *key, text);
                u64::from(self.command)
            }
            ToHolder::Type { key, text, is_inside, nonce, .. } => {
                self.command += 1;
                let (id, is_inside, nonce) = (self.command, *is_inside, *nonce);
                self.rig.record(&Record::Typed { id, is_inside, nonce, key: *key, text });
                u64::from(self.command)
            }
            ToHolder::Input { key, bytes, .. } => {
                let len = u32::try_from(bytes.len()).expect("short");
                self.rig.record(&Record::Input {
                    key: *key,
                    len,
                    ends: wire::line_ends(bytes),
                    is_secret: false,
                    bytes,
                });
                u64::from(len)
            }
            _ => 0,
        };
        self.answer(|_| (Status::Ok, value));
    }

    fn ends(&mut self, last: Last) {
        match last {
            Last::Answers => {
                for _ in 0..10_000 {
                    if !self.rig.sent.iter().any(|frame| sequence(frame).is_some()) {
                        break;
                    }
                    self.do_one();
                    self.callers.take_answers();
                }
            }
            Last::Silence => {}
            Last::HolderGone => {
                self.rig.session.step(self.rig.now, StepInput::LastTail);
                while self.rig.session.cx.is_behind() {
                    self.rig.session.step(self.rig.now, StepInput::Unread);
                }
                let folder = self.rig.session.cx.shared.folder.clone();
                let traces =
                    self.rig.session.cx.timeline.end().exit.is_none().then(|| super::BACKENDS.holders.traces(&folder));
                self.rig.session.step(self.rig.now, StepInput::HolderGone(traces));
            }
            Last::Adrift => self.rig.session.step(self.rig.now, StepInput::Adrift),
            Last::Reconnected => self.rig.session.step(self.rig.now, StepInput::Reconnected),
        }
        // In pieces: an answer may open the next wait, whose time begins then.
        for _ in 0..4 {
            self.rig.later(WAIT_MAX);
            if matches!(last, Last::Answers) {
                self.do_one();
            }
            self.callers.take_answers();
        }
    }
}

/// The number under which a frame is answered.
fn sequence(frame: &ToHolder) -> Option<u32> {
    match frame {
        ToHolder::Run { seq, .. }
        | ToHolder::Input { seq, .. }
        | ToHolder::Resize { seq, .. }
        | ToHolder::Signal { seq, .. }
        | ToHolder::Terminate { seq, .. }
        | ToHolder::Report { seq }
        | ToHolder::Ping { seq }
        | ToHolder::Type { seq, .. } => Some(*seq),
        ToHolder::Kill
        | ToHolder::Hello { .. }
        | ToHolder::Answer { .. }
        | ToHolder::Limited { .. }
        | ToHolder::Judge { .. } => None,
    }
}

fn method() -> impl Strategy<Value = HandoverMethod> {
    proptest::sample::select(vec![
        HandoverMethod::Keys,
        HandoverMethod::Typed,
        HandoverMethod::InBand,
        HandoverMethod::Line(b"load {}\n".to_vec()),
    ])
}

fn last() -> impl Strategy<Value = Last> {
    let all = [Last::Answers, Last::Silence, Last::HolderGone, Last::Adrift, Last::Reconnected];
    proptest::sample::select(all.to_vec())
}

#[test]
// promise: wait-3
fn a_screen_before_the_first_prompt_is_reported_though_no_state_of_the_kernel_follows_it() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    let (reply, mut told) = oneshot::channel();
    rig.receive(sample(Activity::Busy, Modes { canonical: true, ..Modes::default() }, NO_PROCESS));
    rig.request(Request::Prompt(reply));
    rig.write(b"\x1b[?1049h\x1b[2J\x1b[5;5Hfull");
    rig.publish();
    assert!(told.try_recv().is_err(), "the screen may be gone in a moment");
    rig.later(limits::SCREEN_SETTLES);
    assert_eq!(told.try_recv(), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::sessions::session::tests::cases()))]

    #[test]
    // promise: wait-3
    fn no_sequence_of_inputs_makes_a_caller_wait_forever(
        method in method(),
        starts_at_prompt in any::<bool>(),
        happenings in proptest::collection::vec(happening(), 0..40),
        last in last(),
    ) {
        let mut story = Story::new(method);
        if starts_at_prompt {
            story.rig.prompt(0, "first", 0);
            story.rig.publish();
        }
        for happening in &happenings {
            story.happens(happening);
        }
        story.ends(last);
        prop_assert_eq!(story.callers.open(), [0; 6], "runs, inputs, waits, resizes, signals, ends");
    }
}
