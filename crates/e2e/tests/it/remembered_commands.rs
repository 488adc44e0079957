//! Commands that a person has allowed for always: they run without asking, exactly and in provable sessions, until the rule is gone.

use std::path::PathBuf;
use std::sync::Arc;

use api::{Approval, ApprovalState, Decision, ErrorCode, EventKind, ExecuteRequest, InputRequest, TokenRequest};
use client::Client;
use e2e::approvals::{asked, begun, bot, session_of, token, waiting};
use e2e::policy::{POLICY, ask, by, policy_of, refused, start};
use e2e::{Follower, Server, Session, audit_lines};

/// A command that no policy proves.
const COMMAND: &str = "echo \"ran\" >> made; cat made";

/// The approval for which a command waits.
async fn asked_for(server: &Server, session: &Session, request: ExecuteRequest) -> Approval {
    let (code, words) = refused(session, request).await;
    assert_eq!(code, Some(ErrorCode::ApprovalNeeded), "{words}");
    pending(server, &words).await
}

async fn pending(server: &Server, words: &str) -> Approval {
    let all = server.client().approvals().await.expect("a list").approvals;
    let is_it = |one: &Approval| one.state == ApprovalState::Pending && words.contains(&one.id);
    all.into_iter().find(is_it).unwrap_or_else(|| panic!("{words}"))
}

async fn allow_always(server: &Server, session: &Session, command: &str) {
    let asked = asked_for(server, session, ask(command)).await;
    server.client().decide(&asked.id, Decision::Always).await.expect("decided");
}

/// Whether it waits for a person.
async fn asks(session: &Session, command: &str) -> bool {
    session.refusal(command).await == Some(ErrorCode::ApprovalNeeded)
}

fn file(server: &Server, name: &str) -> PathBuf {
    server.home().path().join("config/ptyd").join(name)
}

fn ptyd(server: &Server, arguments: &[&str]) -> (Option<i32>, String) {
    let done = server.ptyd(arguments).output().expect("it runs");
    (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr))
}

#[tokio::test]
// promise: policy-10
async fn a_command_that_is_allowed_for_always_runs_without_asking_until_its_rule_is_gone() {
    let server = start();
    let granted = server.client().make_token(&token("bot")).await.expect("made").token;
    let bot = Arc::new(Client::tcp(server.address(), granted.clone()));
    let shell = session_of(&bot).await;
    let cwd = shell.look().await.cwd;
    let mut follower = Follower::open(&server, &server.token(), None);
    let asked = asked_for(&server, &shell, ask(COMMAND)).await;
    let own = bot.decide(&asked.id, Decision::Always).await.err().and_then(|error| error.code());
    assert_eq!((own, file(&server, "policy.remembered.toml").exists()), (Some(ErrorCode::Forbidden), false));
    assert_eq!(ptyd(&server, &["approvals", "allow", &asked.id, "--always"]), (Some(0), String::new()));
    assert_eq!(follower.next_event().event, EventKind::ApprovalRequested);
    let told = follower.next_event();
    assert_eq!((told.event, told.decision), (EventKind::ApprovalDecided, Some(Decision::Always)));
    let other = server.client().decide(&asked.id, Decision::Deny).await.expect_err("decided before");
    assert!(other.to_string().contains("has allowed it permanently"), "{other}");
    // Here it runs by the decision, which uses that up, and what follows is not proven, as ever.
    assert_eq!(shell.gives(COMMAND).await, (0, "ran\n".to_owned()));
    assert!(policy_of(&shell).await.unprovable.is_some());
    assert!(asks(&shell, COMMAND).await);
    // In a fresh session it runs by the rule, once: then that one is not provable either.
    for round in 0..2 {
        let fresh = session_of(&Arc::new(Client::tcp(server.address(), granted.clone()))).await;
        assert!(asks(&fresh, &format!("{COMMAND} ")).await, "not to the byte");
        let ran = fresh.run(COMMAND).await;
        assert_eq!((ran.exit_code, ran.output.is_some_and(|text| text.ends_with("ran\n"))), (Some(0), true));
        assert!(policy_of(&fresh).await.unprovable.is_some_and(|why| why.contains("always allows it")));
        assert!(asks(&fresh, COMMAND).await);
        if round == 0 {
            server.kill9();
            server.again();
        }
    }
    let all = audit_lines(&server.home().state());
    let decided = all.iter().find(|line| line["action"] == "decide approval" && line["outcome"].is_null());
    assert_eq!(decided.expect("recorded")["decision"], "always");
    let facts = |line: &serde_json::Value| ["verdict", "rule"].map(|key| line[key].as_str().unwrap_or("").to_owned());
    let ran: Vec<_> = all
        .iter()
        .filter(|line| line["event"] == "request" && line["action"] == "execute" && line["text"] == COMMAND)
        .map(|line| (facts(line), line["approval"].is_string()))
        .collect();
    let by_rule = (["allow".to_owned(), "remembered".to_owned()], false);
    assert_eq!(ran, [(by_rule.0.clone(), true), by_rule.clone(), by_rule], "{ran:?}");
    // The rule is seen, and what a file would say is what the gate says.
    let (code, listed) = ptyd(&server, &["policy", "check"]);
    let entry = format!("  remembered {COMMAND:?} in {cwd:?} (\"");
    assert_eq!((code, listed.contains(&entry)), (Some(0), true), "{listed}");
    let (code, said) = ptyd(&server, &["policy", "test", COMMAND, "--cwd", &cwd]);
    assert_eq!((code, said.starts_with("allow: rule remembered of policy strict: ")), (Some(0), true), "{said}");
    for not_allowed in [
        vec![COMMAND, "--cwd", &cwd, "--tainted"],
        vec!["echo ran >> made", "--cwd", &cwd],
        vec![COMMAND, "--cwd", "/"],
    ] {
        assert_eq!(ptyd(&server, &[vec!["policy", "test"], not_allowed].concat()).0, Some(4));
    }
    // A rule that denies goes before it, and a mistake in the file is not an empty file.
    let fresh = server.session().await;
    let denies = POLICY.replace("program = \"rm\"\nreason", "program = [\"rm\", \"cat\"]\nreason");
    std::fs::write(file(&server, "policy.toml"), denies).expect("written");
    assert_eq!(fresh.refusal(COMMAND).await, Some(ErrorCode::PolicyDenied));
    std::fs::write(file(&server, "policy.toml"), POLICY).expect("written");
    let remembered = file(&server, "policy.remembered.toml");
    let text = std::fs::read_to_string(&remembered).expect("there");
    std::fs::write(&remembered, text.replace("command", "comand")).expect("written");
    let (code, words) = refused(&fresh, ask("ls")).await;
    assert_eq!(
        (code, words.contains("policy.remembered.toml, line ")),
        (Some(ErrorCode::PolicyDenied), true),
        "{words}"
    );
    assert_eq!(ptyd(&server, &["policy", "check"]).0, Some(2));
    std::fs::write(&remembered, "").expect("written");
    assert!(asks(&fresh, COMMAND).await, "the rule is gone");
}

#[tokio::test]
// promise: policy-10
async fn a_decision_holds_in_the_directory_that_the_person_saw_and_in_no_other() {
    let server = start();
    let bot = bot(&server).await;
    let shell = session_of(&bot).await;
    let top = PathBuf::from(shell.look().await.cwd);
    for (name, script) in [("a", "echo good"), ("b", "echo other")] {
        std::fs::create_dir(top.join(name)).expect("made");
        std::fs::write(top.join(name).join("deploy.sh"), script).expect("written");
    }
    let goes_to = async |shell: &Session, name: &str| shell.gives(&format!("cd {}", top.join(name).display())).await;
    // `cd` is allowed by a rule, and leaves the session provable.
    assert_eq!(goes_to(&shell, "a").await.0, 0);
    let deploy = "sh ./deploy.sh";
    let in_a = asked_for(&server, &shell, ask(deploy)).await;
    let shown = ptyd(&server, &["approvals"]).1;
    let cwd = top.join("a").display().to_string();
    assert_eq!((in_a.cwd.as_ref(), shown.contains(&format!("in {cwd:?}"))), (Some(&cwd), true), "{shown}");
    server.client().decide(&in_a.id, Decision::Allow).await.expect("decided");
    assert_eq!(goes_to(&shell, "b").await.0, 0);
    let in_b = asked_for(&server, &shell, ask(deploy)).await;
    assert_ne!(in_b.id, in_a.id);
    assert_eq!(goes_to(&shell, "a").await.0, 0);
    assert_eq!(shell.gives(deploy).await, (0, "good\n".to_owned()), "the decision is still good here");
    // A name that the shell makes up for its directory is not where it is.
    let liar = session_of(&bot).await;
    goes_to(&liar, "b").await;
    let lie = asked_for(&server, &liar, ask(&format!("PWD={cwd}"))).await;
    server.client().decide(&lie.id, Decision::Allow).await.expect("decided");
    liar.gives(&format!("PWD={cwd}")).await;
    let asked = asked_for(&server, &liar, ask(deploy)).await;
    assert_eq!(asked.cwd, Some(top.join("b").display().to_string()));
    // A typed line may change the directory before the command's turn.
    let typing = session_of(&bot).await;
    goes_to(&typing, "a").await;
    let decided = asked_for(&server, &typing, ask(deploy)).await;
    server.client().decide(&decided.id, Decision::Allow).await.expect("decided");
    let line = format!("sleep 0.3; cd {}\n", top.join("b").display());
    let line = InputRequest { input: Some(line), ..InputRequest::default() };
    let words = bot.input(&typing.id, &line, None).await.expect_err("asked").to_string();
    let decided = pending(&server, &words).await;
    server.client().decide(&decided.id, Decision::Allow).await.expect("decided");
    bot.input(&typing.id, &line, None).await.expect("typed");
    let (code, words) = refused(&typing, ask(deploy)).await;
    assert_eq!((code, words.contains("send it again")), (Some(ErrorCode::PolicyDenied), true), "{words}");
    // For always, too.
    let always = session_of(&bot).await;
    goes_to(&always, "a").await;
    allow_always(&server, &always, "sh ./deploy.sh x").await;
    let fresh = session_of(&bot).await;
    goes_to(&fresh, "b").await;
    assert!(asks(&fresh, "sh ./deploy.sh x").await);
    goes_to(&fresh, "a").await;
    assert_eq!(fresh.gives("sh ./deploy.sh x").await, (0, "good\n".to_owned()));
}

#[tokio::test]
// promise: policy-10
async fn only_a_command_that_always_means_the_same_can_be_always_allowed() {
    let server = start();
    let bot = bot(&server).await;
    server.client().set_secret("KEY", "quite-a-secret".to_owned()).await.expect("set");
    let shell = session_of(&bot).await;
    let refusal = async |words: &str| {
        let id = pending(&server, words).await.id;
        let error = server.client().decide(&id, Decision::Always).await.expect_err("refused");
        assert_eq!(error.code(), Some(ErrorCode::InvalidField));
        // Nothing is decided, and a person can allow it once.
        server.client().decide(&id, Decision::Allow).await.expect("decided");
        error.to_string()
    };
    for (command, why) in
        [("echo quite-a-secret > x", "the value of a named secret"), ("echo 'a", "parse the command to its end")]
    {
        let said = refusal(&refused(&shell, ask(command)).await.1).await;
        assert!(said.contains(why) && said.contains("can be allowed only once"), "{said}");
    }
    let reading = shell.run("cat").await;
    for (request, why) in [
        (InputRequest { input: Some("y\n".into()), ..InputRequest::default() }, "the effect of typed input"),
        (
            InputRequest { input: Some("y".into()), secret: true, ..InputRequest::default() },
            "the effect of typed input",
        ),
        (InputRequest { keys: Some(vec!["Enter".into()]), ..InputRequest::default() }, "the effect of typed input"),
    ] {
        let words = bot.input(&shell.id, &request, None).await.expect_err("asked").to_string();
        assert!(refusal(&words).await.contains(why));
    }
    shell.signal("INT").await;
    shell.end_of(&reading).await;
    // Where nothing is ever proven a rule would never count.
    let open = bot.create(&by("open"), None).await.expect("started");
    let open = Session::new(Arc::clone(&bot), open.id);
    assert!(refusal(&refused(&open, ask("echo a")).await.1).await.contains("start-up files"));
    let inside = ExecuteRequest { inside: true, ..ask("echo b") };
    let nested = shell.run_until("bash --norc", r"[$#] $").await;
    assert!(refusal(&refused(&shell, inside).await.1).await.contains("nested shell"));
    drop(nested);
    assert!(!file(&server, "policy.remembered.toml").exists());
}

#[tokio::test]
// promise: policy-10
async fn a_rule_is_its_policys_and_holds_only_while_the_session_is_provable() {
    let server = start();
    let policy = TokenRequest { policy: Some("open".to_owned()), ..token("bot") };
    let made = server.client().make_token(&policy).await.expect("made");
    let bot = Arc::new(Client::tcp(server.address(), made.token));
    // Proven, but named by no rule: it leaves the session provable, and runs again and again.
    let shell = session_of(&bot).await;
    allow_always(&server, &shell, "touch x").await;
    assert_eq!(shell.gives("touch x").await.0, 0);
    assert!(asks(&shell, "touch x").await, "the session's policy has the rule now, the token's has not");
    allow_always(&server, &shell, "touch x").await;
    for _ in 0..3 {
        assert_eq!(shell.gives("touch x").await.0, 0);
    }
    assert_eq!(policy_of(&shell).await.unprovable, None);
    let text = std::fs::read_to_string(file(&server, "policy.remembered.toml")).expect("there");
    assert_eq!(
        ["strict", "open"].map(|name| text.matches(&format!("policy = \"{name}\"\n")).count()),
        [1, 1],
        "{text}"
    );
    // A request that waits for the decision runs with that, and uses it up.
    let running = begun(&bot, &shell, waiting("touch y"));
    let pending = asked(&server).await;
    server.client().decide(&pending.id, Decision::Always).await.expect("decided");
    assert_eq!(running.await.expect("no panic").expect("allowed").exit_code, Some(0));
    let left = server.client().approvals().await.expect("a list").approvals;
    assert!(left.iter().all(|one| one.id != pending.id), "{left:?}");
    // Of many at once, that no proof holds for afterwards, one runs.
    for _ in ["the session's policy", "the token's policy"] {
        allow_always(&server, &session_of(&bot).await, COMMAND).await;
    }
    let fresh = Arc::new(session_of(&bot).await);
    let all = (0..16).map(|_| {
        let fresh = Arc::clone(&fresh);
        tokio::spawn(async move { fresh.try_run(&ask(COMMAND)).await.is_ok() })
    });
    let mut ran = 0;
    for one in all.collect::<Vec<_>>() {
        ran += usize::from(one.await.expect("no panic"));
    }
    assert_eq!(ran, 1);
}
