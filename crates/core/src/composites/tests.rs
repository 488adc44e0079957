//! Composite actions with real shells: the dispatcher records precisely the primitives that each expands into.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::sync::{Mutex, Notify, mpsc};

use crate::action::{
    Action, ActionError, AwaitOutput, AwaitedOutput, Boxed, Budget, ClientContext, Composite, Create, Dialogue,
    Dispatch, EndedBy, Execute, InputBytes, Locate, NamedAction, Outcome, PatternShare, Report, SessionView, Since,
    Step, TaskSupport, TerminalCall, TerminalView, Terminate, Wait,
};
use crate::config::{Config, OperatorFiles};
use crate::dispatch::{self, Completion, Dispatcher, Recorder};
use crate::ids::SessionId;
use crate::principal::{Detach, Principal, Scope};
use crate::sessions;

/// Primitives of one test.
const PRIMITIVES_MAX: usize = 64;

/// Records every primitive with its principal, and what it does with a session.
#[derive(Debug)]
struct Recorded(mpsc::Sender<String>);

impl Recorder for Recorded {
    fn begins(&self, principal: &Principal, action: &Action) {
        let what = match action {
            Action::Execute(execute) => format!("execute {}", execute.command),
            Action::Input(input) => match &input.bytes {
                InputBytes::Raw(bytes) => format!("input {:?}", String::from_utf8_lossy(bytes)),
                InputBytes::Keys(keys) => format!("{} keys", keys.len()),
                InputBytes::Paste { text, .. } => format!("paste {text}"),
            },
            Action::Signal { signo, .. } => format!("signal {signo}"),
            Action::FindNamedAction { name, .. } => format!("find named action {name}"),
            Action::Locate(Locate::Session(_)) => "locate a session".to_owned(),
            Action::StartupDone { failed, .. } => {
                let failed: Vec<&str> = failed.iter().map(|(command, _)| command.as_str()).collect();
                format!("start-up done, failed: {failed:?}")
            }
            action => action.facts().name.to_owned(),
        };
        self.0.try_send(format!("{}: {what}", principal.name)).expect("the test reads them");
    }

    fn ended(&self, _: &Principal, _: &Completion<'_>) {}
}

/// A dispatcher, its home, and the primitives that it records.
struct Scene {
    home: TempDir,
    dispatcher: Dispatcher,
    primitives: Mutex<mpsc::Receiver<String>>,
}

impl Scene {
    async fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let of = |dir: &Path| Config::of(([127, 0, 0, 1], 0).into(), dir.join("ptyd.sock"), dir.to_owned());
        let files = OperatorFiles { config: Some(home.path().join("config.toml")), policies: None };
        let config = Config { files, ..of(home.path()) };
        let (recorded, primitives) = mpsc::channel(PRIMITIVES_MAX);
        let services = sessions::start(&config).await.expect("services");
        let dispatcher = Dispatcher::recorded_by(services, Arc::new(Recorded(recorded)));
        Self { home, dispatcher, primitives: Mutex::new(primitives) }
    }

    async fn act(&self, action: Action) -> Result<Outcome, ActionError> {
        let me = Principal::named("me", Scope::Write);
        self.dispatcher.dispatch(&me, action).await
    }

    /// A client whose shells read no start-up files.
    fn client(&self) -> ClientContext {
        let home = self.home.path().as_os_str().to_owned();
        let variables = [("HOME", home), ("PATH", std::env::var_os("PATH").unwrap_or_default())];
        let env = variables.map(|(n, v)| (n.into(), std::os::unix::ffi::OsStringExt::into_vec(v)));
        let (client, cwd) = (Some("one".to_owned()), Some(self.home.path().to_owned()));
        ClientContext { client, cwd, env: Some(Arc::new(env.to_vec())), ..ClientContext::default() }
    }

    async fn create(&self, named_actions: BTreeMap<String, NamedAction>) -> SessionView {
        let ClientContext { client, cwd, env, .. } = self.client();
        let shell = Some("bash".to_owned());
        let request = Create { shell, cwd, base_env: env, client, named_actions, ..Create::default() };
        match self.act(Action::Composite(Composite::Create(Box::new(request)))).await.expect("a session") {
            Outcome::Session(session) => *session,
            other => panic!("another outcome: {other:?}"),
        }
    }

    async fn terminal(&self, command: &str, of: impl FnOnce(&mut TerminalCall)) -> TerminalView {
        let mut call = TerminalCall {
            session: None,
            command: command.to_owned(),
            is_input: false,
            is_inside: false,
            timeout: Some(Duration::from_secs(20)),
            time_limit: None,
            waited: Duration::ZERO,
            reset: false,
            pattern: None,
            client: self.client(),
            tasks: TaskSupport::None,
            key: None,
            budget: 1_000.into(),
        };
        of(&mut call);
        match self.act(Action::Composite(Composite::Terminal(Box::new(call)))).await.expect("an answer") {
            Outcome::Terminal(view) => *view,
            other => panic!("another outcome: {other:?}"),
        }
    }

    async fn named(&self, session: &SessionId, name: &str) -> Report {
        let named = Composite::NamedAction { session: session.clone(), name: name.to_owned(), key: None };
        match self.act(Action::Composite(named)).await.expect("performed") {
            Outcome::Report(report) => *report,
            other => panic!("another outcome: {other:?}"),
        }
    }

    /// The primitives since the last look.
    async fn primitives(&self) -> Vec<String> {
        let mut primitives = self.primitives.lock().await;
        std::iter::from_fn(|| primitives.try_recv().ok()).collect()
    }

    async fn end(&self, session: SessionId) {
        let end = Terminate { session, force: true, signo: None, grace: None, purges: false };
        self.act(Action::Terminate(end)).await.expect("it ends");
    }
}

fn mine(primitives: &[&str]) -> Vec<String> {
    primitives.iter().map(|primitive| format!("me: {primitive}")).collect()
}

#[tokio::test]
async fn a_call_of_the_terminal_tool_is_a_command_at_a_prompt_and_input_at_a_question() {
    let scene = Scene::new().await;
    scene.terminal("y() { echo called; }", |_| ()).await;
    assert_eq!(scene.primitives().await, mine(&["locate", "start", "execute y() { echo called; }", "missed"]));
    let called = scene.terminal("y", |_| ()).await;
    assert_eq!((&*called.report.output.head, called.look), ("called\n", None));
    assert_eq!(scene.primitives().await, mine(&["locate", "execute y", "missed"]));
    let asks = scene.terminal("read -rp 'sure? ' answer", |_| ()).await;
    assert_eq!(asks.report.ended_by, EndedBy::InputWanted);
    scene.primitives().await;
    let answered = scene.terminal("y", |call| call.is_input = true).await;
    assert_eq!(answered.report.command.and_then(|command| command.exit_code), Some(0));
    assert_eq!(scene.primitives().await, mine(&["locate", "input \"y\\r\"", "missed"]));
    // A key is a signal while a program runs, and nothing at a prompt.
    scene.terminal("C-c", |_| ()).await;
    assert_eq!(scene.primitives().await, mine(&["locate", "unread", "missed"]));
    let reads = scene.terminal("cat", |_| ()).await;
    assert_eq!(reads.report.ended_by, EndedBy::InputWanted);
    scene.primitives().await;
    scene.terminal("C-c", |_| ()).await;
    assert_eq!(scene.primitives().await, mine(&["locate", "signal 2", "wait", "missed"]));
    let first = answered.report.session.id;
    let named = scene.terminal("", |call| call.session = Some(first.clone())).await;
    assert_eq!(scene.primitives().await, mine(&["locate a session", "unread", "missed"]));
    assert_eq!(named.report.session.id, first);
    let reset = scene.terminal("", |call| call.reset = true).await;
    assert_eq!(scene.primitives().await, mine(&["locate", "restart", "unread", "missed"]));
    assert_ne!(reset.report.session.id, first);
    scene.end(reset.report.session.id).await;
}

#[tokio::test]
async fn a_named_action_performs_its_command_keys_or_signal() {
    let scene = Scene::new().await;
    let keys = ["t", "r", "u", "e", "Enter"].map(str::to_owned).to_vec();
    let named_actions = [
        ("build", NamedAction::Command("true".to_owned())),
        ("type", NamedAction::Keys(keys)),
        ("stop", NamedAction::Signal(sys::signal::INT)),
    ];
    let id = scene.create(named_actions.map(|(name, action)| (name.to_owned(), action)).into()).await.id;
    assert_eq!(scene.primitives().await, mine(&["start"]));
    for (name, expected) in [("build", &["execute true"][..]), ("type", &["5 keys"]), ("stop", &["signal 2", "wait"])] {
        let report = scene.named(&id, name).await;
        assert_eq!(report.session.id, id);
        let found = format!("find named action {name}");
        assert_eq!(scene.primitives().await, mine(&[&[found.as_str()], expected].concat()));
        let until_idle = Action::Wait {
            session: id.clone(),
            wait: Wait::at_most(Duration::from_secs(20)),
            command: None,
            budget: Budget::NONE,
            moves_cursor: true,
        };
        scene.act(until_idle).await.expect("alive");
        scene.primitives().await;
    }
    scene.end(id).await;
}

#[tokio::test]
async fn start_up_commands_are_commands_of_the_caller_and_their_failures_are_of_the_session() {
    let scene = Scene::new().await;
    let startup = "[profiles.default]\nstartup = [\"export A=1\", \"(exit 3)\"]\n";
    std::fs::write(scene.home.path().join("config.toml"), startup).expect("a write");
    let session = scene.create(BTreeMap::new()).await;
    let failed: Vec<_> = session.startup_failed.iter().map(|failed| &*failed.reason).collect();
    assert_eq!(failed, ["it exited with 3"]);
    let done = "start-up done, failed: [\"(exit 3)\"]";
    assert_eq!(scene.primitives().await, mine(&["start", "execute export A=1", "execute (exit 3)", done]));
    // The default session of a client has them, too, before the command that started it.
    let first = scene.terminal("echo $A", |_| ()).await;
    assert_eq!(first.report.output.head, "1\n");
    let expected = ["locate", "start", "execute export A=1", "execute (exit 3)", done, "execute echo $A", "missed"];
    assert_eq!(scene.primitives().await, mine(&expected));
    scene.end(session.id).await;
    scene.end(first.report.session.id).await;
}

#[tokio::test]
async fn the_sessions_of_a_client_that_has_gone_are_terminated_for_their_owner() {
    let scene = Scene::new().await;
    let id = scene.create(BTreeMap::new()).await.id;
    scene.primitives().await;
    let ends = tokio::spawn(scene.dispatcher.clone().end_sessions_of_gone_clients());
    scene.dispatcher.client_here("one");
    scene.dispatcher.client_gone("one", Detach::After(Duration::ZERO));
    let terminated = scene.primitives.lock().await.recv().await;
    assert_eq!(terminated.as_deref(), Some("me: terminate"));
    // A second request waits for the same end.
    scene.end(id).await;
    ends.abort();
}

#[tokio::test]
async fn a_dialogue_is_waits_and_input_and_awaited_output_is_a_wait() {
    let scene = Scene::new().await;
    let asks = scene.terminal("read -rp 'sure? ' answer; echo \"$answer!\"", |_| ()).await;
    let id = asks.report.session.id;
    scene.primitives().await;
    let patterns = Arc::<PatternShare>::default();
    let words = async |words: &str| Some(patterns.compile("wait_for", "", words).await.expect("a pattern"));
    let typed = Some(InputBytes::Raw(b"y\r".to_vec()));
    let steps =
        vec![Step { wait_for: words("sure").await, bytes: typed }, Step { wait_for: words("y!").await, bytes: None }];
    let limit = Duration::from_secs(20);
    let (session, finally, deadline) = (id.clone(), Wait::at_most(limit), Instant::now() + limit);
    let dialogue = Dialogue { session, steps, finally, deadline, key: None, meant_for: None };
    match scene.act(Action::Composite(Composite::Dialogue(Box::new(dialogue)))).await.expect("played") {
        Outcome::Dialogue(view) => assert_eq!((view.unmatched, view.report.accepted_bytes), (None, Some(2))),
        other => panic!("another outcome: {other:?}"),
    }
    // The question is already there: it is found beside the wait, which is given up.
    assert_eq!(scene.primitives().await, mine(&["wait", "show", "output", "wait", "input \"y\\r\"", "output"]));
    // Of a command that runs, its view is asked for too.
    let ended = Action::Wait {
        session: id.clone(),
        wait: Wait::at_most(limit),
        command: None,
        budget: Budget::NONE,
        moves_cursor: true,
    };
    scene.act(ended).await.expect("ended");
    scene.primitives().await;
    let wait = Wait { pattern: words("y!").await, ..Wait::at_most(limit) };
    let (session, since) = (id.clone(), Some(Since::First));
    let request = AwaitOutput { session, wait, since, command: None, on_screen: false };
    match scene.act(Action::Composite(Composite::AwaitOutput(Box::new(request)))).await.expect("there") {
        Outcome::Awaited(awaited) => assert_eq!(awaited.matched.as_deref(), Some("y!")),
        other => panic!("another outcome: {other:?}"),
    }
    assert_eq!(scene.primitives().await, mine(&["show", "wait", "show", "output"]));
    scene.end(id).await;
}

/// Performs a wait before output that was requested at the same time is read, and answers it after.
struct WaitFirst {
    dispatcher: Dispatcher,
    waited: Notify,
    read: Notify,
}

impl Dispatch for WaitFirst {
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>> {
        Box::pin(async move {
            let (waits, reads) = (matches!(action, Action::Wait { .. }), matches!(action, Action::Output(_)));
            if reads {
                self.waited.notified().await;
            }
            let result = self.dispatcher.dispatch(principal, action).await;
            if waits {
                self.waited.notify_one();
                self.read.notified().await;
            } else if reads {
                self.read.notify_one();
            }
            result
        })
    }

    fn patterns(&self, principal: &Principal) -> Arc<PatternShare> {
        self.dispatcher.patterns(principal)
    }

    fn detached(&self) -> Arc<dyn Dispatch> {
        Arc::new(self.dispatcher.clone())
    }
}

#[tokio::test]
async fn a_wait_that_matches_before_older_output_is_searched_omits_no_line() {
    let scene = Scene::new().await;
    let id = scene.create(BTreeMap::new()).await.id;
    let pattern = Arc::<PatternShare>::default().compile("wait_for", "", "here").await.expect("a pattern");
    let command = Execute {
        session: id.clone(),
        command: "echo here; read -r".to_owned(),
        shell: crate::action::TargetShell::Own,
        allowed_in: None,
        wait: None,
        time_limit: None,
        key: None,
        budget: Budget::NONE,
    };
    scene.act(Action::Execute(command)).await.expect("it runs");
    let dispatch =
        WaitFirst { dispatcher: scene.dispatcher.clone(), waited: Notify::default(), read: Notify::default() };
    let me = Principal::named("me", Scope::Write);
    let caller = dispatch::Caller {
        dispatch: &dispatch,
        principal: &me,
        soft_timeout: Duration::from_secs(20),
        time_limits: &Arc::default(),
    };
    let wait = Wait { pattern: Some(pattern), ..Wait::at_most(Duration::from_secs(20)) };
    let request = AwaitOutput { session: id.clone(), wait, since: Some(Since::Last), command: None, on_screen: false };
    let from = match dispatch::expand(caller, Composite::AwaitOutput(Box::new(request))).await.expect("it matches") {
        Outcome::Awaited(awaited) => {
            let AwaitedOutput { from, report, .. } = *awaited;
            let report = report.expect("the wait's");
            assert_eq!(report.ended_by, EndedBy::Matched);
            from.expect("its beginning")..report.output.to
        }
        other => panic!("another outcome: {other:?}"),
    };
    let journal = std::fs::read(scene.home.path().join("sessions").join(id.to_string()).join("journal"));
    let journal = journal.expect("what it printed");
    let [from, to] = [from.start, from.end].map(|at| usize::try_from(at).expect("small"));
    assert!(String::from_utf8_lossy(&journal[from..to]).contains("here"), "{from}..{to}");
    scene.end(id).await;
}
