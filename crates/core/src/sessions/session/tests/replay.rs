//! Live = replayed: a server that follows a session from its beginning, and one that takes it over at any moment, tell
//! the same story. The sessions are recorded from real shells, with commands of every channel.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use journal::{EventsReader, Offset};
use wire::{FromHolder, Tail};

use super::{handle, hello, open};
use crate::action::{Action, Budget, Create, Execute, Input, InputBytes, SignalTarget, Terminate, Wait};
use crate::host::holders::SessionFolder;
use crate::ids::{CommandId, SessionId};
use crate::sessions::actions::{create, terminate};
use crate::sessions::ended::session::EndedSession;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::machine::snapshot;
use crate::sessions::session::now::Now;
use crate::sessions::tests::{config, me, perform, request};
use crate::sessions::timeline::Timeline;
use crate::sessions::{Services, start, views};

/// Cuts of one session at which the stories are compared.
const CUTS_MAX: usize = 40;

/// A real session that does something of everything, and then ends.
struct Recorder {
    services: std::sync::Arc<Services>,
    session: SessionId,
}

impl Recorder {
    async fn execute(&self, command: &str, is_inside: bool, wait: Wait) {
        let execute = Execute {
            session: self.session.clone(),
            command: command.to_owned(),
            shell: crate::action::TargetShell::of(is_inside),
            allowed_in: None,
            wait: Some(wait),
            time_limit: None,
            key: None,
            budget: Budget::NONE,
        };
        let done = perform(&self.services, &me(), &Action::Execute(execute)).await;
        done.unwrap_or_else(|e| panic!("{command}: {e}"));
    }

    async fn runs(&self, command: &str) {
        self.execute(command, false, Wait::at_most(Duration::from_secs(30))).await;
    }

    /// Until the program asks for input.
    async fn runs_until_it_asks(&self, command: &str) {
        self.execute(command, false, asks()).await;
    }

    async fn types(&self, bytes: &[u8], wait: Wait) {
        let bytes = InputBytes::Raw(bytes.to_vec());
        let input = Input {
            session: self.session.clone(),
            bytes,
            is_secret: false,
            wait: Some(wait),
            key: None,
            budget: Budget::NONE,
            is_hidden: false,
            without_echo: false,
            meant_for: None,
        };
        perform(&self.services, &me(), &Action::Input(input)).await.expect("typed");
    }

    async fn acts(&self, action: Action) {
        perform(&self.services, &me(), &action).await.expect("done");
    }
}

/// A wait until the program asks for input.
fn asks() -> Wait {
    Wait { input_wanted: true, ..Wait::at_most(Duration::from_secs(30)) }
}

/// Records a session of this shell.
async fn record(shell: &str, dir: &Path) -> SessionId {
    let services = start(&config(dir)).await.expect("services");
    let create = Create { shell: Some(shell.to_owned()), ..request(dir) };
    let session = create::create(&services, &me(), &create).await.expect("a session").session.id;
    let recorder = Recorder { services, session };
    if shell == "python3" {
        recorder.runs("print('one')").await;
        recorder.runs("import sys; sys.stdout.write('no newline')").await;
        recorder.types(b"print('typed')\n", Wait::at_most(Duration::from_millis(200))).await;
        recorder.runs("x = 1").await;
    } else {
        recorder.runs("echo one; sh -c 'exit 3'").await;
        recorder.runs("printf 'no newline'").await;
        recorder.runs("echo a\necho b").await;
        recorder.runs("i=0; seq 1 300").await;
        recorder.types(b"echo typed\n", asks()).await;
        recorder.acts(Action::Resize { session: recorder.session.clone(), cols: 100, rows: 30 }).await;
        recorder.runs_until_it_asks("cat").await;
        recorder.types(b"a line\n", asks()).await;
        let (session, target) = (recorder.session.clone(), SignalTarget::Foreground);
        recorder.acts(Action::Signal { session, target, signo: sys::signal::INT }).await;
        recorder
            .acts(Action::Wait {
                session: recorder.session.clone(),
                wait: asks(),
                command: None,
                budget: Budget::NONE,
                moves_cursor: true,
            })
            .await;
        recorder.runs_until_it_asks("env PS1='in> ' sh -i").await;
        recorder.execute("echo nested; (exit 5)", true, Wait::at_most(Duration::from_secs(30))).await;
        recorder.types(b"exit\n", Wait::at_most(Duration::from_secs(30))).await;
        recorder.runs("echo last").await;
    }
    let end = Terminate { session: recorder.session.clone(), force: true, signo: None, grace: None, purges: false };
    terminate::terminate(&recorder.services, &me(), &end).await.expect("it ends");
    recorder.session
}

/// The tails that the holder may have published: after each turn that recorded something, and before it as far as there
/// is not a marker. A marker and its record are published in one turn.
fn tails(folder: &Path) -> Vec<Tail> {
    let output = std::fs::read(folder.join(journal::JOURNAL_FILE)).expect("the output");
    let mut events = EventsReader::open(folder, journal::Masks::default()).expect("events");
    let end = events.len().expect("a size");
    let mut tails = vec![Tail::default()];
    while let Some(event) = events.next(end).expect("readable") {
        let before = *tails.last().expect("there is one");
        if before.journal == event.offset {
            tails.pop();
        } else {
            let new = &output[before.journal.0 as usize..event.offset.0 as usize];
            let plain = memchr::memmem::find(new, b"\x1b]7337;").unwrap_or(new.len() / 2);
            tails.push(Tail { journal: Offset(before.journal.0 + plain as u64), ..before });
        }
        tails.push(Tail { journal: event.offset, events: events.at() });
    }
    tails
}

/// Everything that is told of a session, without the times at which this server read it.
fn story(session: &mut Session) -> String {
    let view = snapshot::take(&mut session.cx, &session.foreground, None).view;
    let mut story = format!(
        "{:?} {:?} {:?} running {:?} ended {:?} {}x{} exit {:?} trouble {:?} {:?}\n",
        view.status,
        view.foreground,
        view.cwd,
        view.current_command,
        view.last_ended,
        view.cols,
        view.rows,
        view.exit,
        view.trouble,
        view.boundary,
    );
    story += &commands(session.cx.shared.clone(), &session.cx.timeline);
    story
}

fn commands(shared: std::sync::Arc<crate::sessions::shared::Shared>, timeline: &Timeline) -> String {
    let mut story = String::new();
    for mut command in views::command_views(&shared, timeline) {
        if timeline.log().untimed.iter().any(|id| command.id == CommandId(*id)) {
            // Its end is a marker in the output, whose time no event tells yet.
            command.completed_at = command.completed_at.map(|_| command.started_at);
            command.lasted = None;
        }
        writeln!(story, "{command:?}").expect("into memory");
    }
    let shell = &timeline.shell();
    writeln!(
        story,
        "prompt {} typed line {} inside {} path {:?} markers {:?} signals {:?}",
        shell.prompt_seen,
        shell.has_typed_line,
        timeline.log().inside.is_some(),
        shell.path,
        timeline.output().markers,
        views::signal_views(&*super::BACKENDS.host, timeline),
    )
    .expect("into memory");
    story
}

/// Two stories are the same; otherwise the lines that differ are shown.
fn assert_alike(one: &str, other: &str, when: &str) {
    let differing: Vec<_> = one.lines().zip(other.lines()).filter(|(one, other)| one != other).collect();
    assert!(one == other, "{when}:\n{differing:#?}");
}

async fn every_cut_tells_the_same(shell: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let id = record(shell, dir.path()).await;
    let folder = dir.path().join("sessions").join(id.as_str());
    let now = Now::read();
    let tails = tails(&folder);
    assert!(tails.len() > 8, "{shell}: {tails:?}");
    let step = tails.len().div_ceil(CUTS_MAX);
    // A server that was there all the time, and one that read little at once.
    let (mut whole, mut coarse) = (open(&folder, now), open(&folder, now));
    for session in [&mut whole, &mut coarse] {
        handle(session, now, vec![hello(Tail::default())]);
    }
    for (i, tail) in tails.iter().enumerate() {
        handle(&mut whole, now, vec![FromHolder::Tail(*tail)]);
        if i % step != 0 && i + 1 < tails.len() {
            continue;
        }
        handle(&mut coarse, now, vec![FromHolder::Tail(*tail)]);
        let mut late = open(&folder, now);
        handle(&mut late, now, vec![hello(*tail)]);
        let told = story(&mut whole);
        assert_alike(&story(&mut late), &told, &format!("{shell}: taken over at {tail:?}"));
        assert_alike(&story(&mut coarse), &told, &format!("{shell}: in larger steps, at {tail:?}"));
    }
    // And a reader of the session that has ended.
    let past = EndedSession::load(&id, &SessionFolder::of_test(&folder), &super::BACKENDS).expect("a session");
    let told = commands(whole.cx.shared.clone(), &past.timeline);
    assert_alike(
        &told,
        &commands(whole.cx.shared.clone(), &whole.cx.timeline),
        &format!("{shell}: read after its end"),
    );
}

macro_rules! shells {
    ($($name:ident: $shell:literal,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        // promise: crash-2
        async fn $name() {
            if super::not_run::lacks(&[$shell]) {
                return;
            }
            every_cut_tells_the_same($shell).await;
        }
    )*};
}

shells! {
    a_session_of_bash_is_told_alike_live_and_replayed_at_every_cut: "bash",
    a_session_of_zsh_is_told_alike_live_and_replayed_at_every_cut: "zsh",
    a_session_of_fish_is_told_alike_live_and_replayed_at_every_cut: "fish",
    a_session_of_dash_is_told_alike_live_and_replayed_at_every_cut: "dash",
    a_session_of_python_is_told_alike_live_and_replayed_at_every_cut: "python3",
}
