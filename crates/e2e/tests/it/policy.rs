//! Sessions under a policy: what it refuses has not happened, and what it allows means what it says.

use std::collections::BTreeMap;
use std::process::Command;

use api::{
    ApprovalState, CreateRequest, Decision, ErrorCode, EventKind, ExecuteRequest, InputRequest, NumberOrName,
    SessionAction, SessionPolicy, TokenRequest, TokenScope,
};
use client::{Client, ClientError};
use e2e::policy::{CONFIGURATION, POLICY, ask, by, home, policy_of, refused, start};
use e2e::{Binary, Follower, Session, Socket, audit_lines, configure, not_run};
use serde_json::Value;

#[tokio::test]
// promise: policy-1
async fn a_refused_request_has_not_happened_and_is_on_record() {
    let server = start();
    let shell = server.session().await;
    assert_eq!(policy_of(&shell).await, SessionPolicy { name: "strict".into(), advisory: true, unprovable: None });
    let first = shell.run("echo one; ls /nowhere 2>/dev/null || echo two").await;
    assert_eq!((first.id.as_str(), first.output.as_deref()), ("c1", Some("one\ntwo\n")));
    let (code, words) = refused(&shell, ask("cd / && rm a")).await;
    assert_eq!(code, Some(ErrorCode::PolicyDenied));
    assert_eq!(
        words,
        "not run: rule no-rm of policy strict denies it: remove nothing: `rm a` (advisory: the session is not confined)"
    );
    for (command, rule) in
        [("ls > x", "unproven"), ("touch x", "default"), ("echo $(ls)", "unproven"), ("x=1", "unproven")]
    {
        let (code, words) = refused(&shell, ask(command)).await;
        assert_eq!(code, Some(ErrorCode::ApprovalNeeded), "{command}");
        assert!(
            words.starts_with(&format!("not run: needs approval by a person: rule {rule} of policy strict: ")),
            "{words}"
        );
        assert!(words.contains("; waiting for approval a0-"), "{words}");
    }
    let (code, words) = refused(&shell, ask("ls \u{202e}a")).await;
    assert_eq!((code, words.contains("U+202E")), (Some(ErrorCode::PolicyDenied), true), "{words}");
    // A key that was refused is unused, and so is an id.
    let client = server.client();
    assert!(client.execute(&shell.id, &ask("touch x"), Some("k")).await.is_err());
    let second = client.execute(&shell.id, &ask("echo three"), Some("k")).await.expect("allowed");
    assert_eq!((second.id.as_str(), second.output.as_deref()), ("c2", Some("three\n")));
    assert!(!std::path::Path::new(&shell.look().await.cwd).join("x").exists());
    assert_eq!(policy_of(&shell).await.unprovable, None);
    let journal = String::from_utf8_lossy(&shell.journal().await).into_owned();
    assert!(!journal.contains("touch") && !journal.contains("rm a"), "{journal:?}");
    let lines = audit_lines(&server.home().state());
    let of = |text: &str| lines.iter().find(|line| line["text"] == text).unwrap_or_else(|| panic!("{text}"));
    let facts =
        |line: &Value| ["event", "outcome", "verdict", "rule"].map(|name| line[name].as_str().map(str::to_owned));
    let some = |all: [&str; 4]| all.map(|fact| Some(fact.to_owned()));
    assert_eq!(facts(of("cd / && rm a")), some(["action", "policy_denied", "deny", "no-rm"]));
    assert_eq!(facts(of("ls > x")), some(["action", "approval_needed", "ask", "unproven"]));
    let request = of("echo three");
    let answer = lines.iter().find(|line| line["event"] == "answer" && line["id"] == request["id"]).expect("answered");
    assert_eq!(facts(answer), some(["answer", "ok", "allow", "look"]));
    assert_eq!((request["verdict"].as_str(), request["rule"].as_str()), (Some("allow"), Some("look")));
}

#[tokio::test]
// promise: policy-7
async fn a_request_runs_once_after_another_person_has_allowed_it() {
    let server = start();
    let owner = server.client();
    let token = TokenRequest {
        name: "bot".to_owned(),
        scope: TokenScope::Write,
        expires_in: None,
        profiles: Vec::new(),
        confinement: None,
        ..TokenRequest::default()
    };
    let bot = Client::tcp(server.address(), owner.make_token(&token).await.expect("made").token);
    let session = bot.create(&CreateRequest::default(), None).await.expect("started").id;
    let runs = async |command: &str, key| match bot.execute(&session, &ask(command), key).await {
        Ok(done) => Ok(done.exit_code),
        Err(ClientError::Refused(problem)) => Err((problem.code, problem.detail)),
        Err(other) => panic!("{other}"),
    };
    let mut follower = Follower::open(&server, &server.token(), None);
    let (code, words) = runs("touch made; echo $?", Some("k")).await.expect_err("a person is asked");
    assert_eq!(code, ErrorCode::ApprovalNeeded);
    let waiting = owner.approvals().await.expect("an admin sees it").approvals;
    let [asked] = &waiting[..] else { panic!("{waiting:?}") };
    assert_eq!(asked.command.as_deref(), Some("touch made; echo $?"));
    assert_eq!(
        (asked.principal.as_str(), asked.state, asked.rule.as_str()),
        ("bot", ApprovalState::Pending, "unproven")
    );
    assert!(words.contains(&format!("waiting for approval {} (ptyd approvals)", asked.id)), "{words}");
    assert_eq!(bot.approvals().await.expect("its own").approvals, waiting);
    let by_bot = bot.decide(&asked.id, Decision::Allow).await.err().and_then(|error| error.code());
    assert_eq!(by_bot, Some(ErrorCode::Forbidden), "nobody approves their own");
    assert!(runs("touch made; echo $?", Some("k")).await.is_err());
    let decided = owner.decide(&asked.id, Decision::Allow).await.expect("decided");
    assert_eq!((decided.state, decided.decided_by.is_some()), (ApprovalState::Allowed, true));
    // A follower of the events reads of the two requests once, and of the decision.
    for (event, decision) in [(EventKind::ApprovalRequested, None), (EventKind::ApprovalDecided, Some(Decision::Allow))]
    {
        let told = follower.next_event();
        let facts = (told.event, told.approval_id, told.decision, told.session_id);
        assert_eq!(facts, (event, Some(asked.id.clone()), decision, Some(session.clone())));
    }
    // Exactly this text, in this session, once.
    assert!(runs("touch made; echo $? ", None).await.is_err());
    assert_eq!(runs("touch made; echo $?", Some("k")).await, Ok(Some(0)));
    let (_, words) = runs("touch made; echo $?", None).await.expect_err("it is used up");
    let next = owner.approvals().await.expect("a list").approvals.pop().expect("another");
    assert!(next.id != asked.id && words.contains(&next.id), "{words}");
    owner.decide(&next.id, Decision::Deny).await.expect("decided");
    let (code, words) = runs("touch made; echo $?", None).await.expect_err("denied");
    assert_eq!(code, ErrorCode::PolicyDenied);
    assert!(words.contains(&format!("has denied approval {}", next.id)), "{words}");
    // The owner's own request needs somebody else.
    let shell = server.session().await;
    assert_eq!(refused(&shell, ask("touch x")).await.0, Some(ErrorCode::ApprovalNeeded));
    let own = owner.approvals().await.expect("a list").approvals.pop().expect("the owner's");
    let by_owner = owner.decide(&own.id, Decision::Allow).await.err().and_then(|error| error.code());
    assert_eq!((own.session_id, by_owner), (shell.id.clone(), Some(ErrorCode::Forbidden)));
    let unknown = owner.decide("a0-aaaaaaaaaa", Decision::Allow).await.err().and_then(|error| error.code());
    assert_eq!(unknown, Some(ErrorCode::InvalidField));
    let lines = audit_lines(&server.home().state());
    let decision = lines.iter().find(|line| line["action"] == "decide approval" && line["approval"] == *asked.id);
    assert_eq!(decision.expect("recorded")["decision"], "allow");
    let ran = lines.iter().find(|line| line["action"] == "execute" && line["approval"] == *asked.id).expect("recorded");
    assert_eq!((&ran["text"], ran["verdict"].as_str()), (&Value::from("touch made; echo $?"), Some("ask")));
    assert_eq!(ran["approvedBy"].as_str(), decided.decided_by.as_deref());
}

#[tokio::test]
// promise: policy-5
async fn typed_input_is_a_permission_of_its_own_and_an_interrupt_needs_none() {
    let server = start();
    let shell = server.session().await;
    let reading = shell.run("cat").await;
    let typed = async |request: InputRequest| shell.input_refusal(&request).await;
    let text = InputRequest { input: Some("x".into()), ..InputRequest::default() };
    let keys = InputRequest { keys: Some(vec!["Enter".into()]), ..InputRequest::default() };
    let paste = InputRequest { input: Some("x".into()), paste: true, ..InputRequest::default() };
    for request in [text, keys, paste] {
        assert_eq!(typed(request).await, Some(ErrorCode::ApprovalNeeded));
    }
    // A viewer's keys are typed input, and its connection goes on.
    let mut viewer = Socket::visit(&server, &shell.id, "").await;
    viewer.types(1, b"x").await;
    assert_eq!(viewer.event("error").await["code"], "approval_needed");
    viewer.types(2, b"\x03").await;
    assert_eq!(shell.end_of(&reading).await.exit_code, Some(130));
    let second = shell.run("cat").await;
    shell.presses(&["C-c"], None).await;
    assert_eq!(shell.end_of(&second).await.exit_code, Some(130));
    let third = shell.run("cat").await;
    shell.signal("INT").await;
    assert_eq!(shell.end_of(&third).await.exit_code, Some(130));
    assert_eq!(policy_of(&shell).await.unprovable, None);
}

#[tokio::test]
// promise: policy-6
async fn after_typed_input_or_an_alias_nothing_is_proven_until_a_fresh_session_and_the_next_server_knows() {
    let server = start();
    let open = server.session_with(by("open")).await;
    // Its shell has read its user's files.
    let (code, words) = refused(&open, ask("echo a")).await;
    assert_eq!((code, words.contains("start-up files")), (Some(ErrorCode::ApprovalNeeded), true), "{words}");
    configure(server.home(), &CONFIGURATION.replace("policy = \"open\"", "rc = \"clean\"\npolicy = \"open\""));
    let open = server.session_with(by("open")).await;
    let reading = open.run("cat").await;
    open.types("typed").await;
    open.presses(&["C-c"], None).await;
    open.end_of(&reading).await;
    let strict = server.session().await;
    assert_eq!(strict.run("alias echo=ls").await.exit_code, Some(0));
    let both = [(&open, "input was typed"), (&strict, "alias echo=ls")];
    for again in [false, true] {
        if again {
            server.kill9();
            server.again();
        }
        for (session, reason) in both {
            let (code, words) = refused(session, ask("echo a")).await;
            assert_eq!((code, words.contains(reason)), (Some(ErrorCode::ApprovalNeeded), true), "{words}");
            assert!(policy_of(session).await.unprovable.is_some_and(|why| why.contains(reason)));
        }
    }
    let fresh = server.session().await;
    assert_eq!(fresh.gives("echo a").await, (0, "a\n".to_owned()));
    server.kill9();
    server.again();
    assert_eq!(fresh.gives("echo b").await, (0, "b\n".to_owned()));
}

#[tokio::test]
// promise: policy-6
async fn a_nested_shell_an_action_and_a_start_up_command_pass_the_same_gate() {
    let server = start();
    let action = |keys: Option<&[&str]>, command: Option<&str>, signal: Option<&str>| SessionAction {
        keys: keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()),
        command: command.map(str::to_owned),
        signal: signal.map(|name| NumberOrName::Name(name.to_owned())),
    };
    let actions = BTreeMap::from([
        ("greet".to_owned(), action(None, Some("echo hello"), None)),
        ("harm".to_owned(), action(None, Some("rm x"), None)),
        ("press".to_owned(), action(Some(&["y"]), None, None)),
        ("calm".to_owned(), action(None, None, Some("INT"))),
    ]);
    let shell = server.session_with(CreateRequest { actions, ..CreateRequest::default() }).await;
    let act = async |name: &str| server.client().act(&shell.id, name).await;
    let greeted = act("greet").await.expect("allowed").command.expect("it runs one");
    assert_eq!(shell.end_of(&greeted).await.output.as_deref(), Some("hello\n"));
    assert_eq!(act("harm").await.expect_err("denied").code(), Some(ErrorCode::PolicyDenied));
    assert_eq!(act("press").await.expect_err("asked").code(), Some(ErrorCode::ApprovalNeeded));
    let nested = shell.run_until("bash --norc", r"[$#] $").await;
    let inside = ExecuteRequest { inside: true, ..ask("echo a") };
    let (code, words) = refused(&shell, inside).await;
    assert_eq!((code, words.contains("nested shell")), (Some(ErrorCode::ApprovalNeeded), true), "{words}");
    // A proven command is the session's own shell's and never goes to another one.
    assert_eq!(shell.refusal("echo a").await, Some(ErrorCode::SessionBusy));
    server.client().terminate(&shell.id, true, None).await.expect("ended");
    drop(nested);
    let starts = server.session_with(by("starts")).await;
    let failed = starts.look().await.startup_failed;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].command == "rm a" && failed[0].reason.contains("rule no-rm"), "{failed:?}");
}

#[tokio::test]
// promise: policy-6
async fn settings_of_a_request_at_the_start_make_a_session_unprovable() {
    let server = start();
    let env = |name: &str| BTreeMap::from([(name.to_owned(), "/usr/bin:/bin".to_owned())]);
    let own = server.home().path().join("bash");
    std::os::unix::fs::symlink("/bin/bash", &own).expect("made");
    for (request, said) in [
        (CreateRequest { env: env("BASH_ENV"), ..CreateRequest::default() }, "the request sets the variable BASH_ENV"),
        (CreateRequest { env: env("PATH"), ..CreateRequest::default() }, "sets the variable PATH"),
        (CreateRequest { shell: Some(own.display().to_string()), ..CreateRequest::default() }, "names the shell /"),
    ] {
        let error = server.client().create(&request, None).await.expect_err("refused");
        assert_eq!(error.code(), Some(ErrorCode::ApprovalNeeded));
        assert!(error.to_string().contains(said) && error.to_string().contains("not started"), "{error}");
    }
    let start = audit_lines(&server.home().state())
        .into_iter()
        .find(|line| line["event"] == "answer" && line["action"] == "start");
    let start = start.expect("it has a line");
    assert_eq!((start["verdict"].as_str(), start["rule"].as_str()), (Some("ask"), Some("unproven")), "{start}");
    let harmless = server.session_with(CreateRequest { env: env("TZ"), ..CreateRequest::default() }).await;
    assert_eq!(harmless.gives("echo a").await.0, 0);
    let dash = server.session_with(CreateRequest { shell: Some("sh".into()), ..CreateRequest::default() }).await;
    assert!(refused(&dash, ask("echo a")).await.1.contains("ptyd can read only bash's commands"));
    // A policy that allows the unproven does, and its sessions say that nothing is proven.
    let free = server.session_with(CreateRequest { env: env("A"), ..by("free") }).await;
    assert_eq!(free.gives("for i in 1 2; do echo $i; done").await, (0, "1\n2\n".to_owned()));
    assert_eq!(free.refusal("for i in 1 2; do sudo rm $i; done").await, Some(ErrorCode::PolicyDenied));
    assert!(policy_of(&free).await.unprovable.is_some_and(|why| why.contains("sets the variable A")));
}

#[tokio::test]
async fn in_a_confined_session_a_policy_is_not_advisory_and_its_file_cannot_be_read() {
    let server = start();
    let work = server.home().file("work");
    std::fs::create_dir_all(&work).expect("made");
    std::fs::write(server.home().path().join("open"), "open\n").expect("written");
    let remembered = server.home().path().join("config/ptyd/policy.remembered.toml");
    std::fs::write(&remembered, "# by a person\n").expect("written");
    let request = CreateRequest { cwd: Some(work.display().to_string()), ..by("confined") };
    let session = match server.client().create(&request, None).await {
        Ok(session) => Session::new(server.client().clone(), session.id),
        Err(ClientError::Refused(problem)) if problem.detail.contains("its confinement needs") => {
            return not_run(problem.detail);
        }
        Err(other) => panic!("{other}"),
    };
    assert!(!policy_of(&session).await.advisory);
    assert!(!refused(&session, ask("rm a")).await.1.contains("advisory"));
    let open = server.home().path().join("open");
    assert_eq!(session.gives(&format!("cat {}", open.display())).await, (0, "open\n".to_owned()));
    let file = server.home().path().join("config/ptyd/policy.toml");
    let reads = async |file: &std::path::Path| session.gives(&format!("cat {} 2>/dev/null", file.display())).await;
    assert_eq!([reads(&file).await, reads(&remembered).await], [(1, String::new()), (1, String::new())]);
    // Nor one that is written after its start.
    let next = remembered.with_extension("next");
    std::fs::write(&next, "# by a person, too\n").expect("written");
    std::fs::rename(next, &remembered).expect("renamed");
    assert_eq!(reads(&remembered).await, (1, String::new()));
}

#[tokio::test]
// promise: policy-1
async fn a_changed_file_counts_at_once_and_one_with_a_mistake_refuses_everything() {
    let server = start();
    let (shell, file) = (server.session().await, server.home().path().join("config/ptyd/policy.toml"));
    assert_eq!(shell.refusal("touch x").await, Some(ErrorCode::ApprovalNeeded));
    std::fs::write(&file, POLICY.replace("\"true\"", "\"true\", \"touch\"")).expect("written");
    assert_eq!(shell.gives("touch x").await.0, 0);
    std::fs::write(&file, POLICY.replace("match = [\"sudo rm x\"]", "match = [\"sudo ls\"]")).expect("written");
    let (code, words) = refused(&shell, ask("ls")).await;
    assert_eq!(code, Some(ErrorCode::PolicyDenied));
    assert!(words.contains("policy.toml, line 16: rule no-rm: \"sudo ls\" is an example of match"), "{words}");
    let error = server.client().create(&CreateRequest::default(), None).await.expect_err("refused");
    assert_eq!(error.code(), Some(ErrorCode::StartFailed));
    std::fs::remove_file(&file).expect("removed");
    assert!(refused(&shell, ask("ls")).await.1.contains("no policy \"strict\" any more"));
    // A session that is started without a policy has none.
    assert_eq!(server.session().await.look().await.policy, None);
}

#[tokio::test]
// promise: policy-1
async fn the_command_line_checks_a_file_and_judges_a_command() {
    let home = home();
    let file = home.path().join("config/ptyd/policy.toml");
    let policy = |arguments: &[&str]| {
        let mut command = Command::new(Binary::find().path());
        command
            .arg("policy")
            .args(arguments)
            .env("XDG_CONFIG_HOME", home.path().join("config"))
            .env("HOME", home.path());
        let done = command.env_remove("PTYD_CONFIG").output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    let (code, out, _) = policy(&["check"]);
    assert_eq!((code, out.lines().count()), (Some(0), 3), "{out}");
    let (code, out, note) = policy(&["test", "ls; echo a"]);
    assert_eq!((code, out.as_str()), (Some(0), "allow: rule look of policy strict: `ls`\n"));
    assert!(note.contains("advisory"), "{note}");
    assert_eq!(policy(&["test", "ls", "--tainted"]).0, Some(4));
    let (code, out, _) = policy(&["test", "for i in a; do rm $i; done", "--policy", "free"]);
    assert_eq!((code, out.as_str()), (Some(4), "deny: rule no-rm of policy free: `rm …`\n"));
    std::fs::write(&file, POLICY.replace("reason", "raeson")).expect("written");
    let (code, _, note) = policy(&["check", file.to_str().expect("a path")]);
    assert_eq!((code, note.contains("policy.toml, line 15: unknown field `raeson`")), (Some(2), true), "{note}");
}
