//! The session as a machine: steps without a holder, a shell or a clock.
//!
//! The files of the session are real; the test writes them as a holder does, and decides what time it is.

mod masks;
mod nested;
#[path = "../../../../../e2e/src/not_run.rs"]
#[allow(dead_code, reason = "it is for all tests")]
mod not_run;
mod pauses;
mod replay;
mod screens;
mod take_over;
mod waits;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use foreground::{Activity, Job, Modes, Observation, PollCall, Process as Observed, Shell, Wait};
use journal::{EventsWriter, Offset, Record, Retention, Writer};
use tokio::sync::watch;
use wire::{FromHolder, Handover, HandoverMethod, Hello, Spec, Tail, ToHolder};

use crate::action::{CommandStatus, Foreground, InputBytes};
use crate::host::Process;
use crate::host::containers::Containers;
use crate::host::fake::{self, FakeHost};
use crate::host::holders::{HolderBackend, SessionFolder};
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::principal::{Principal, Scope};
use crate::sessions::backends::Backends;
use crate::sessions::ended::session;
use crate::sessions::replay_order;
use crate::sessions::session::Typing;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::now::Now;
use crate::sessions::session::step_input::StepInput;
use crate::store::Store;

/// No process has such a number, so the kernel shows nothing of it.
const NO_PROCESS: u32 = u32::MAX - 1;

/// A shell in the session's shell, which the kernel shows.
const NESTED: u32 = u32::MAX - 3;

/// A program in the session's shell that passes the keys on to another terminal; the kernel shows it, too.
const CARRIER: u32 = u32::MAX - 4;

/// A program that reads the session's terminal beside its shell; the kernel shows it, too.
const RIVAL: u32 = u32::MAX - 5;

/// A machine with three processes, and a store that no test writes to.
static BACKENDS: LazyLock<Arc<Backends>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a directory").keep();
    let store = Arc::new(Store::open(&dir.join("store.db")).expect("a store"));
    let holders = HolderBackend::prepare(&dir).expect("a backend");
    // The store's thread may make a file in it meanwhile.
    while dir.exists() {
        let _ = std::fs::remove_dir_all(&dir);
    }
    let host = FakeHost::default();
    let runs = |pid, name: &str| Process { name: name.to_owned(), ..fake::process(pid, NO_PROCESS) };
    host.runs(&[runs(NESTED, "bash"), runs(CARRIER, "podman"), runs(RIVAL, "cat")], 0);
    Arc::new(Backends {
        containers: Containers::of(&dir),
        store,
        host: Arc::new(host),
        holders,
        toolchains: Default::default(),
        secrets: Default::default(),
        lanes: Arc::default(),
    })
});

/// A session, and the end of its files that a holder writes.
struct Rig {
    session: Session,
    now: Now,
    events: EventsWriter,
    journal: Writer,
    /// Frames that the session sent.
    sent: Vec<ToHolder>,
    /// The last published state.
    published: u64,
    _folder: tempfile::TempDir,
}

/// A client that types.
fn typing() -> Typing {
    Typing::of(&Principal::named("me", Scope::Write))
}

/// A session of this folder that knows nothing yet.
fn open(folder: &std::path::Path, now: Now) -> Session {
    let id = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
    let folder = SessionFolder::of_test(folder);
    let (shared, damage) = session::open(&id, &folder, &BACKENDS).expect("a session's files");
    assert_eq!(damage, None);
    let events = replay_order::events(&shared.folder).expect("events");
    Session::new(Arc::new(shared), events, watch::channel(Tail::default()).0, Vec::new(), now)
}

/// The greeting of a holder whose files may be read so far.
fn hello(tail: Tail) -> FromHolder {
    let (holder_pid, shell_pid) = (NO_PROCESS, NO_PROCESS);
    FromHolder::Hello(Hello { protocol: wire::PROTOCOL, holder_pid, shell_pid, cols: 80, rows: 24, command: 0, tail })
}

/// A holder's sample of this group, whose facts are this activity by the rules.
fn sample(activity: Activity, modes: Modes, group: u32) -> FromHolder {
    let of_shell = |takes_lines, first| {
        let process = Observed { pid: group, first, ..Observed::default() };
        Observation { shell: Some(Shell { takes_lines, is_stopped: false, process }), ..Observation::default() }
    };
    let of_job = |first, listens| {
        let processes = vec![Observed { pid: group, first, ..Observed::default() }];
        Observation { jobs: vec![Job { modes, processes, listens, ..Job::default() }], ..Observation::default() }
    };
    let polls = |limit_ms| Wait::Polls { call: PollCall::Poll, terminal: 1, others: 1, limit_ms };
    let facts = match activity {
        Activity::Unknown => of_job(Wait::Hidden, None),
        Activity::Editor => of_shell(true, Wait::Reads { bytes: 1024 }),
        Activity::ShellReads => of_shell(false, Wait::Reads { bytes: 1 }),
        Activity::Busy => Observation::default(),
        Activity::Reads => of_job(Wait::Reads { bytes: 1 }, None),
        Activity::Polls => of_job(polls(None), Some(false)),
        Activity::PollsAndListens => of_job(polls(None), Some(true)),
        Activity::Stopped => Observation { stopped: Some(group), ..Observation::default() },
        Activity::PollsForATime => of_job(polls(Some(100)), None),
    };
    let facts = Observation { group, modes, ..facts };
    assert_eq!(foreground::activity(&facts).activity, activity);
    FromHolder::Observed(wire::Observed { answered: Offset::ZERO, is_new: true, facts })
}

/// The same beside these rivals.
fn beside(rivals: &[u32], sample: FromHolder) -> FromHolder {
    let FromHolder::Observed(mut observed) = sample else { panic!("no sample: {sample:?}") };
    observed.facts.rivals = rivals.to_vec();
    FromHolder::Observed(observed)
}

/// Handles frames as the actor does: until everything is read and handled.
fn handle(session: &mut Session, now: Now, frames: Vec<FromHolder>) -> Vec<ToHolder> {
    session.step(now, StepInput::Received(frames));
    settle(session, now)
}

/// The turns of the actor until nothing is left to do without waiting: in each, what is due comes before what was received.
fn settle(session: &mut Session, now: Now) -> Vec<ToHolder> {
    for _ in 0..10_000 {
        session.step(now, StepInput::Time);
        session.step(now, StepInput::Frames);
        if session.cx.is_behind() {
            session.step(now, StepInput::Unread);
        }
        session.step(now, StepInput::Settled);
        session.step(now, StepInput::Published { count: 0 });
        if !session.cx.has_frames() && !session.has_work() {
            check(session);
            let effects = session.take_effects();
            if let Some(task) = effects.draw {
                task.run();
            }
            screens::poll_ahead(session);
            return effects.frames;
        }
    }
    panic!("the session has work for ever");
}

/// The invariant between two turns: no wait is open for the end of an ended command.
fn check(session: &Session) {
    let has_ended = |id: u32| session.cx.timeline.log().command(id).is_some_and(|command| command.end.is_some());
    assert!(!session.waits.open.iter().any(|wait| wait.command.is_some_and(has_ended)), "a wait for an ended command");
    assert!(!session.waits.at_start.iter().any(|(id, ..)| has_ended(*id)), "a wait for the start of an ended command");
    if session.cx.exit_told {
        let callers = [session.waits.open.len(), session.waits.at_start.len(), session.waits.at_prompt.len()];
        let commands = [session.pending.at_prompt.len(), session.pending.nested.len(), session.cx.take_over.waiting()];
        assert_eq!((callers, commands), ([0; 3], [0; 3]), "callers and commands of a session whose shell has exited");
    }
}

impl Rig {
    fn new(method: HandoverMethod) -> Self {
        Self::of(method, Vec::new())
    }

    /// A session with this metadata.
    fn of(method: HandoverMethod, meta: Vec<u8>) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let spec = Spec {
            session: "s0-aaaaaaaaaa".to_owned(),
            argv: vec![b"shell".to_vec()],
            cols: 80,
            rows: 24,
            handover: Handover { method, ..Handover::default() },
            meta,
            ..Spec::default()
        };
        spec.store(folder.path()).expect("written");
        let journal = Writer::create(folder.path(), Retention::UNLIMITED).expect("created");
        let events = EventsWriter::create(folder.path()).expect("created");
        let now = Now::read();
        let session = open(folder.path(), now);
        let mut rig = Self { session, now, events, journal, sent: Vec::new(), published: 0, _folder: folder };
        rig.record(&Record::Started { holder_pid: NO_PROCESS, shell_pid: NO_PROCESS, cols: 80, rows: 24 });
        let tail = rig.tail();
        rig.receive(hello(tail));
        rig
    }

    fn tail(&self) -> Tail {
        Tail { journal: self.journal.end(), events: self.events.end() }
    }

    fn record(&mut self, record: &Record<'_>) {
        self.events.record(self.now.us, self.journal.end(), record).expect("written");
    }

    /// Output of the terminal.
    fn write(&mut self, bytes: &[u8]) {
        assert_eq!(self.journal.append(bytes).expect("written"), bytes.len());
    }

    /// Publishes what was written, as a holder does at the end of a turn.
    fn publish(&mut self) {
        let tail = self.tail();
        if tail.events + tail.journal.0 != std::mem::replace(&mut self.published, tail.events + tail.journal.0) {
            self.receive(FromHolder::Tail(tail));
        }
    }

    fn receive(&mut self, frame: FromHolder) {
        let sent = handle(&mut self.session, self.now, vec![frame]);
        self.sent.extend(sent);
    }

    fn request(&mut self, request: super::Request) {
        self.session.step(self.now, StepInput::Request(Box::new(request)));
        let sent = settle(&mut self.session, self.now);
        self.sent.extend(sent);
    }

    /// Time passes, and whatever becomes due until then happens at its time: the session gets no other step.
    fn later(&mut self, time: Duration) {
        let end = self.now.plus(time);
        for _ in 0..10_000 {
            let Some(due) = self.session.next_wake().filter(|at| *at <= end.at) else {
                self.now = end;
                return;
            };
            self.now = self.now.plus(due.saturating_duration_since(self.now.at));
            let sent = settle(&mut self.session, self.now);
            self.sent.extend(sent);
        }
        panic!("the session wakes up for ever: {:?}", self.session.next_wake());
    }

    /// The machine is paused: time passes, and only then the session looks.
    fn pause(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        let sent = settle(&mut self.session, self.now);
        self.sent.extend(sent);
    }

    /// The shell is at its prompt for the first time, or again after a command that ended with this code.
    fn prompt(&mut self, command: u32, nonce: &str, code: i32) {
        self.record(&Record::Attested { report: format!("D;;{nonce};{command};{code};{code};;/").as_bytes() });
        self.write(format!("\x1b]7337;D;{nonce}\x07$ ").as_bytes());
    }

    /// The holder accepts a command, and the shell begins it.
    fn accept(&mut self, id: u32, nonce: u64, key: wire::Key, text: &[u8]) {
        self.record(&Record::Accepted { id, nonce, key, text });
    }

    fn begin(&mut self, nonce: u64) {
        self.write(format!("\x1b]7337;C;{nonce}\x07").as_bytes());
    }

    fn end_of_journal(&self) -> Offset {
        self.journal.end()
    }
}

/// How many cases a property is tried with: few in a usual run, more if the environment asks for it.
fn cases() -> u32 {
    if std::env::var_os("PTYD_TEST_FULL").is_some() { 20_000 } else { 300 }
}

/// The newest command as its session tells it: its status and its exit code.
fn newest(rig: &Rig) -> (CommandStatus, Option<i32>) {
    let end =
        rig.session.cx.timeline.log().commands.back().and_then(|command| command.end.as_ref()).expect("it has ended");
    (end.status, end.exit)
}

/// A prompt after a text that was cut short, which shows the code of what ran before.
fn cut_short(rig: &mut Rig, command: u32, nonce: &str) {
    rig.record(&Record::Attested { report: format!("D;;{nonce};{command};38;38;n;/").as_bytes() });
    rig.write(format!("\x1b]7337;D;{nonce}\x07$ ").as_bytes());
    rig.publish();
}

#[test]
// promise: end-2
fn a_command_that_never_began_has_not_completed_with_the_code_of_the_one_before() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.accept(1, 1, [1; 16], b"sleep 60");
    cut_short(&mut rig, 1, "second");
    assert_eq!(newest(&rig), (CommandStatus::Failed, None));
    // Of one that began, the shell tells its own code.
    rig.accept(2, 2, [2; 16], b"sleep 60");
    rig.begin(2);
    cut_short(&mut rig, 2, "third");
    assert_eq!(newest(&rig), (CommandStatus::Completed, Some(38)));
}

#[test]
// promise: end-2
fn a_shell_that_hides_the_beginnings_of_commands_keeps_their_exit_codes() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    // Something keeps the shell from printing its marker, and the command runs to its end.
    rig.accept(1, 1, [1; 16], b"true");
    rig.prompt(1, "second", 0);
    rig.accept(2, 2, [2; 16], b"sleep 60");
    cut_short(&mut rig, 2, "third");
    assert_eq!(newest(&rig), (CommandStatus::Completed, Some(38)));
}

#[test]
// promise: end-2
fn a_command_that_its_shell_did_not_begin_after_an_interrupt_was_not_run() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.accept(1, 1, [1; 16], b"sleep 60");
    rig.record(&Record::Attested { report: b"D;;second;1;130;130;nc;/" });
    rig.write(b"\x1b]7337;D;second\x07$ ");
    rig.publish();
    assert_eq!(newest(&rig), (CommandStatus::Failed, None));
    let end =
        rig.session.cx.timeline.log().commands.back().and_then(|command| command.end.clone()).expect("it has ended");
    assert_eq!(end.error.as_deref(), Some("interrupted before it began; it was not run"));
}

#[test]
// promise: shell-12
fn a_hook_that_asks_is_reported_wherever_its_report_stands_behind_the_end() {
    // The holder reads reports and output from two descriptors: reports may stand before output that was written earlier.
    let output: [&[u8]; 2] = [b"\x1b]7337;C;1\x07", b"\x1b]7337;D;second\x07"];
    for reported_at in 0..=2 {
        for ended_at in 0..=reported_at.min(1) {
            for is_at_once in [true, false] {
                let mut rig = Rig::new(HandoverMethod::Keys);
                rig.prompt(0, "first", 0);
                rig.publish();
                rig.accept(1, 1, [1; 16], b"true");
                for at in 0..=output.len() {
                    if at == ended_at {
                        rig.record(&Record::Attested { report: b"D;;second;1;0;0;;/" });
                    }
                    if at == reported_at {
                        rig.record(&Record::Attested { report: b"R;;third;0" });
                    }
                    if let Some(piece) = output.get(at) {
                        rig.write(piece);
                    }
                    if !is_at_once {
                        rig.publish();
                    }
                }
                rig.write(b"ask? ");
                rig.publish();
                let place = format!("end at {ended_at}, report at {reported_at}, at once: {is_at_once}");
                assert_eq!(newest(&rig), (CommandStatus::Completed, Some(0)), "{place}");
                assert!(rig.session.cx.timeline.shell().has_typed_line, "{place}");
                rig.record(&Record::Attested { report: b"D;;fourth;0;0;0;;/" });
                rig.write(b"\x1b]7337;D;fourth\x07$ ");
                rig.publish();
                assert!(!rig.session.cx.timeline.shell().has_typed_line, "{place}");
            }
        }
    }
}

#[test]
fn ptyd_asks_a_shell_that_waits_after_an_interrupt_how_its_command_ended() {
    for is_interrupted in [true, false] {
        let mut rig = Rig::new(HandoverMethod::Keys);
        rig.prompt(0, "first", 0);
        rig.publish();
        rig.accept(1, 1, [1; 16], b"sleep 60");
        if is_interrupted {
            rig.record(&Record::Signalled { target: 0, signo: sys::signal::INT, errno: 0 });
        }
        rig.publish();
        rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
        rig.later(limits::KEYS_READ / 2);
        let asked = rig.sent.iter().filter(|frame| matches!(frame, ToHolder::Report { .. })).count();
        assert_eq!(asked, usize::from(is_interrupted), "interrupted: {is_interrupted}");
    }
}

#[test]
// promise: end-2
fn a_command_that_a_silent_shell_did_not_begin_is_not_completed() {
    for (has_begun, status) in [(true, CommandStatus::Completed), (false, CommandStatus::Failed)] {
        let mut rig = Rig::new(HandoverMethod::Keys);
        rig.prompt(0, "first", 0);
        rig.publish();
        rig.accept(1, 1, [1; 16], b"sleep 60");
        if has_begun {
            rig.begin(1);
        }
        rig.publish();
        rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
        // Another process has read the keys, for example. The report key is not answered either.
        rig.later(limits::KEYS_READ + limits::EDITOR_SUSPICION);
        let pressed = |frame: &ToHolder| if let ToHolder::Report { seq } = frame { Some(*seq) } else { None };
        let seq = rig.sent.iter().find_map(pressed).expect("the shell is asked");
        rig.receive(FromHolder::Done { seq, status: wire::Status::Ok, value: 0, shown_by: wire::ShownBy::Unknown });
        rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
        rig.later(limits::REPORT_PATIENCE);
        assert_eq!(newest(&rig), (status, None), "begun: {has_begun}");
    }
}

/// The number of the request to press the report key, if there was one.
fn report_key(rig: &Rig) -> Option<u32> {
    rig.sent.iter().find_map(|frame| if let ToHolder::Report { seq } = frame { Some(*seq) } else { None })
}

#[test]
// promise: end-2
fn a_command_whose_keys_another_process_has_read_fails_and_names_it() {
    for activity in [Activity::Editor, Activity::ShellReads] {
        let mut rig = Rig::new(HandoverMethod::Keys);
        rig.prompt(0, "first", 0);
        rig.publish();
        rig.accept(1, 1, [1; 16], b"sleep 60");
        rig.publish();
        let rivals = [RIVAL, NO_PROCESS, RIVAL, RIVAL, RIVAL];
        rig.receive(beside(&rivals, sample(activity, Modes::default(), NO_PROCESS)));
        rig.later(limits::KEYS_READ - limits::EDITOR_SUSPICION);
        assert_eq!(
            rig.session.foreground.foreground(&rig.session.cx),
            Foreground::Running,
            "its shell asks nothing: {activity:?}"
        );
        rig.later(limits::EDITOR_SUSPICION);
        assert_eq!(newest(&rig), (CommandStatus::Failed, None), "{activity:?}");
        let end = rig.session.cx.timeline.log().commands.back().and_then(|command| command.end.clone());
        let why = end.and_then(|end| end.error).expect("a reason");
        let named = format!("cat (pid {RIVAL}), one that has ended (pid {NO_PROCESS}), cat (pid {RIVAL}), and 2 more;");
        assert!(why.starts_with("it is unknown whether it ran") && why.contains(&named), "{why}");
        assert_eq!(report_key(&rig), None, "it would be lost, too");
        // A C-c is sent, for a part of the keys may stand in the editor; and the hooks count as there.
        assert_eq!(
            (rig.session.foreground.foreground(&rig.session.cx), rig.session.foreground.is_heuristic),
            (Foreground::InputWanted, false)
        );
        rig.prompt(0, "second", 130);
        rig.publish();
        assert_eq!(rig.session.foreground.foreground(&rig.session.cx), Foreground::Idle);
    }
}

#[test]
// promise: end-2
fn a_command_that_uses_the_editor_does_not_end_by_a_report_key_that_a_rival_may_have_read() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.publish();
    rig.accept(1, 1, [1; 16], b"read -e x");
    rig.begin(1);
    rig.publish();
    let waits = || beside(&[RIVAL], sample(Activity::Editor, Modes::default(), NO_PROCESS));
    rig.receive(waits());
    rig.later(limits::EDITOR_SUSPICION);
    let seq = report_key(&rig).expect("the shell is asked");
    rig.receive(FromHolder::Done { seq, status: wire::Status::Ok, value: 0, shown_by: wire::ShownBy::Unknown });
    rig.receive(waits());
    rig.later(limits::REPORT_PATIENCE);
    assert!(rig.session.cx.timeline.log().current_command().is_some(), "it has not ended");
    assert_eq!(rig.session.foreground.foreground(&rig.session.cx), Foreground::InputWanted);
}

#[test]
fn a_shell_that_waited_for_input_before_its_command_began_asks_nothing() {
    // Another process may set a line editor's terminal to read lines.
    for canonical in [false, true] {
        let waits = || sample(Activity::ShellReads, Modes { canonical, ..Modes::default() }, NO_PROCESS);
        let mut rig = Rig::new(HandoverMethod::Keys);
        rig.prompt(0, "first", 0);
        rig.publish();
        rig.receive(waits());
        rig.accept(1, 1, [1; 16], b"read -n 1 x");
        rig.publish();
        assert_eq!(
            rig.session.foreground.foreground(&rig.session.cx),
            Foreground::Running,
            "its keys are on their way: {canonical}"
        );
        rig.later(limits::KEYS_READ);
        let asks = rig.session.foreground.foreground(&rig.session.cx);
        assert_ne!(asks, Foreground::Running, "something asks before the command begins: {canonical}");
        rig.begin(1);
        rig.publish();
        assert_eq!(
            rig.session.foreground.foreground(&rig.session.cx),
            Foreground::Running,
            "that was before: {canonical}"
        );
        rig.receive(waits());
        assert_eq!(rig.session.foreground.foreground(&rig.session.cx), asks, "{canonical}");
    }
}

#[test]
// promise: end-2
fn a_line_that_a_rival_may_have_read_has_not_completed() {
    for rivals in [&[][..], &[RIVAL]] {
        let mut rig = Rig::new(HandoverMethod::Typed);
        let reads = || beside(rivals, sample(Activity::Editor, Modes::default(), NO_PROCESS));
        rig.receive(reads());
        rig.record(&Record::Typed { id: 1, is_inside: false, nonce: 0, key: [1; 16], text: b"touch ran" });
        rig.publish();
        rig.receive(reads());
        rig.later(limits::TYPED_AGE_MIN);
        let status = if rivals.is_empty() { CommandStatus::Completed } else { CommandStatus::Failed };
        assert_eq!(newest(&rig), (status, None));
    }
}

#[test]
fn a_request_for_which_the_holders_disk_has_no_room_says_so() {
    use crate::action::TargetShell;
    use tokio::sync::oneshot::channel;

    /// ENOSPC of errno(3), and EIO.
    const ERRORS: [(u64, &str); 2] = [(28, "resources_exhausted"), (5, "internal")];
    for (value, code) in ERRORS {
        let mut rig = Rig::new(HandoverMethod::Keys);
        rig.prompt(0, "first", 0);
        rig.publish();
        rig.sent.clear();
        let fails = |rig: &mut Rig| {
            let seq = match rig.sent.drain(..).next_back().expect("the holder is asked") {
                ToHolder::Run { seq, .. } | ToHolder::Input { seq, .. } | ToHolder::Resize { seq, .. } => seq,
                other => panic!("asked for {other:?}"),
            };
            let status = wire::Status::Failed;
            rig.receive(FromHolder::Done { seq, status, value, shown_by: wire::ShownBy::Unknown });
        };
        let (started, mut run) = channel();
        let (text, key, shell) = (b"true".to_vec(), [1; 16], TargetShell::Own);
        rig.request(super::Request::Run {
            text,
            key,
            patience_ms: 0,
            wait: None,
            shell,
            allowed_in: None,
            typing: typing(),
            started,
        });
        fails(&mut rig);
        assert_eq!(run.try_recv().expect("an answer").expect_err("not done").code(), code);
        let (typed, mut input) = channel();
        let (bytes, key) = (InputBytes::Raw(b"x".to_vec()), [2; 16]);
        rig.request(super::Request::Input(super::NewInput {
            bytes,
            key,
            is_secret: false,
            meant_for: None,
            typing: typing(),
            wait: None,
            typed,
        }));
        fails(&mut rig);
        assert_eq!(input.try_recv().expect("an answer").expect_err("not done").code(), code);
        let (reply, mut resize) = channel();
        rig.request(super::Request::Resize { cols: 90, rows: 30, reply });
        fails(&mut rig);
        assert_eq!(resize.try_recv().expect("an answer").expect_err("not done").code(), code);
    }
}

#[test]
// promise: send-4
fn input_for_a_command_that_has_ended_is_not_typed_at_the_prompt() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.accept(1, 1, [1; 16], b"less x");
    rig.begin(1);
    rig.publish();
    let asks = |rig: &mut Rig, key: u8, bytes: &[u8], meant_for| {
        let (typed, mut answer) = tokio::sync::oneshot::channel();
        let (bytes, key) = (InputBytes::Raw(bytes.to_vec()), [key; 16]);
        rig.request(super::Request::Input(super::NewInput {
            bytes,
            key,
            is_secret: false,
            meant_for,
            typing: typing(),
            wait: None,
            typed,
        }));
        let is_typed =
            rig.sent.drain(..).any(|frame| matches!(frame, ToHolder::Input { .. } | ToHolder::Signal { .. }));
        (is_typed, answer.try_recv().ok().and_then(Result::err).map(|why| why.to_string()))
    };
    let less = Some(CommandId(1));
    assert_eq!(asks(&mut rig, 2, b"q", less), (true, None), "it runs");
    rig.record(&Record::Input { key: [2; 16], len: 1, ends: 0, is_secret: false, bytes: b"q" });
    rig.prompt(1, "second", 0);
    rig.publish();
    let why = "nothing was typed: command c1 (less x) has ended, and the shell of session s0-aaaaaaaaaa is at its \
        prompt; if you send the input again, ptyd types it there";
    assert_eq!(asks(&mut rig, 3, b"\r", less), (false, Some(why.to_owned())));
    assert_eq!(asks(&mut rig, 2, b"q", less), (true, None), "the holder answers what was typed before");
    assert_eq!(asks(&mut rig, 4, b"\x03", less), (true, None), "an interrupt runs nothing");
    assert_eq!(asks(&mut rig, 5, b"\r", None), (true, None), "it is meant for the shell");
}
