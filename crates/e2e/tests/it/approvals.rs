//! The server asks a person where a policy says `ask`: a request that waits for the decision runs once with it, and leaves
//! nothing behind without one.

use std::process::Stdio;
use std::sync::Arc;

use api::{
    Approval, CreateRequest, Decision, ErrorCode, EventKind, ExecuteRequest, Foreground, InputRequest, TokenRequest,
    TokenScope,
};
use client::Client;
use e2e::approvals::{asked, begun, bot, session_of, token, waiting};
use e2e::policy::{POLICY, ask, by, start};
use e2e::{Follower, Home, Server, Session, Start, audit_lines, configure, eventually};
use serde_json::Value;

#[tokio::test]
// promise: policy-8
async fn a_request_waits_for_the_decision_and_runs_once_with_it() {
    let server = start();
    let bot = bot(&server).await;
    let shell = session_of(&bot).await;
    let mut follower = Follower::open(&server, &server.token(), None);
    let running = begun(&bot, &shell, waiting("echo ran >> made; cat made"));
    let pending = asked(&server).await;
    // It is in nobody's way meanwhile.
    assert_eq!(shell.gives("echo other").await, (0, "other\n".to_owned()));
    server.client().decide(&pending.id, Decision::Allow).await.expect("decided");
    let done = running.await.expect("no panic").expect("allowed");
    assert_eq!(done.output.as_deref(), Some("ran\n"), "{done:?}");
    assert_eq!(follower.next_event().event, EventKind::ApprovalRequested);
    while follower.next_event().event != EventKind::ApprovalDecided {}
    let denied = begun(&bot, &shell, waiting("touch denied"));
    let pending = asked(&server).await;
    server.client().decide(&pending.id, Decision::Deny).await.expect("decided");
    let code = denied.await.expect("no panic").expect_err("denied").code();
    assert_eq!(code, Some(ErrorCode::PolicyDenied));
    let line = audit_lines(&server.home().state())
        .into_iter()
        .find(|line| line["event"] == "request" && line["approval"].is_string() && line["action"] == "execute");
    assert_eq!(line.expect("recorded")["text"], "echo ran >> made; cat made");
}

#[tokio::test]
// promise: policy-8
async fn a_wait_that_ends_without_a_decision_has_changed_nothing() {
    let server = start();
    let bot = bot(&server).await;
    let shell = session_of(&bot).await;
    let briefly = ExecuteRequest { approval_timeout: Some(0.05), ..ask("touch made; ls made") };
    let refusal = shell.try_run(&briefly).await.expect_err("nobody decides");
    assert_eq!(refusal.code(), Some(ErrorCode::ApprovalNeeded));
    let [pending] = &server.client().approvals().await.expect("a list").approvals[..] else {
        panic!("one is asked for")
    };
    assert!(refusal.to_string().contains(&format!("waiting for approval {}", pending.id)), "{refusal}");
    // A client that goes away while it waits leaves nothing that runs later.
    server.client().decide(&pending.id, Decision::Allow).await.expect("decided");
    let gone = begun(&bot, &shell, waiting("touch gone; ls gone"));
    let left = asked(&server).await;
    gone.abort();
    assert!(gone.await.is_err_and(|error| error.is_cancelled()));
    eventually("the server has noticed it", async || {
        shell.run("true").await;
        let is_it = |line: &Value| line["outcome"] == "unanswered" && line["text"] == "touch gone; ls gone";
        audit_lines(&server.home().state()).iter().any(is_it).then_some(())
    })
    .await;
    server.client().decide(&left.id, Decision::Allow).await.expect("decided");
    assert_eq!(shell.gives("ls gone 2>/dev/null || echo none").await, (0, "none\n".to_owned()));
    assert_eq!(shell.gives("ls made 2>/dev/null || echo none").await, (0, "none\n".to_owned()));
    // The same request runs with it, as ever, and with no second one.
    assert_eq!(shell.run("touch made; ls made").await.output.as_deref(), Some("made\n"));
    assert_eq!(
        shell.try_run(&ask("touch made; ls made")).await.expect_err("used").code(),
        Some(ErrorCode::ApprovalNeeded)
    );
    for wrong in [601.0, -1.0] {
        let request = ExecuteRequest { approval_timeout: Some(wrong), ..ask("ls") };
        assert_eq!(shell.try_run(&request).await.expect_err("refused").code(), Some(ErrorCode::InvalidField));
    }
}

#[tokio::test]
// promise: policy-8, once-1
async fn requests_with_one_key_share_the_command_of_one_approval() {
    let server = start();
    let bot = bot(&server).await;
    let shell = session_of(&bot).await;
    let asking = || {
        let (bot, id) = (Arc::clone(&bot), shell.id.clone());
        tokio::spawn(async move { bot.execute(&id, &waiting("echo ran >> made; cat made"), Some("one")).await })
    };
    let all = [asking(), asking(), asking()];
    let pending = asked(&server).await;
    server.client().decide(&pending.id, Decision::Allow).await.expect("decided");
    for one in all {
        let done = one.await.expect("no panic").expect("it has run");
        assert_eq!((done.id.as_str(), done.output.as_deref()), ("c1", Some("ran\n")), "{done:?}");
    }
    // Nor is a person asked later, though nothing of the session is proven any more.
    let again = bot.execute(&shell.id, &waiting("echo ran >> made; cat made"), Some("one")).await.expect("it has run");
    assert_eq!(again.output.as_deref(), Some("ran\n"));
    assert_eq!(server.client().approvals().await.expect("a list").approvals.len(), 0);
    // The gate refuses it before it asks a person.
    let other = bot.execute(&shell.id, &waiting("touch other"), Some("one")).await.expect_err("another request");
    assert_eq!(other.code(), Some(ErrorCode::KeyReused));
    let typed = InputRequest { input: Some("x".into()), ..InputRequest::default() };
    let typed = bot.input(&shell.id, &typed, Some("one")).await.expect_err("another request");
    assert_eq!(typed.code(), Some(ErrorCode::KeyReused));
    assert!(typed.to_string().contains("\"one\""), "{typed}");
    assert_eq!(server.client().approvals().await.expect("a list").approvals.len(), 0);
}

#[tokio::test]
// promise: policy-8
async fn the_end_of_a_session_ends_its_approvals_and_their_waits() {
    let server = start();
    let bot = bot(&server).await;
    let shell = session_of(&bot).await;
    // As many as a principal can have.
    for number in 0..16 {
        let refused = shell.try_run(&ask(&format!("touch {number}"))).await.expect_err("a person is asked");
        assert_eq!(refused.code(), Some(ErrorCode::ApprovalNeeded));
    }
    let refused = shell.try_run(&ask("touch x")).await.expect_err("there is no room");
    assert_eq!(refused.code(), Some(ErrorCode::LimitReached));
    assert!(refused.to_string().contains("at its limit of 16; nothing was done"), "{refused}");
    let waits = begun(&bot, &shell, waiting("touch 0"));
    asked(&server).await;
    server.client().terminate(&shell.id, true, None).await.expect("it ends");
    let ended = waits.await.expect("no panic").expect_err("the session has ended");
    assert_eq!(ended.code(), Some(ErrorCode::SessionEnded));
    assert!(server.client().approvals().await.expect("a list").approvals.is_empty());
    let refused = session_of(&bot).await.try_run(&ask("touch x")).await.expect_err("a person is asked again");
    assert_eq!(refused.code(), Some(ErrorCode::ApprovalNeeded));
}

#[tokio::test]
// promise: policy-7
async fn a_requester_makes_no_token_that_decides() {
    let server = start();
    let owner = server.client();
    let admin = |name: &str| TokenRequest { scope: TokenScope::Admin, ..token(name) };
    // Neither a program in the user's own session, nor the server's own token over TCP, which such a program can read.
    let shell = server.session_with(by("free")).await;
    let ptyd = format!("{:?} --socket {:?}", server.ptyd(&[]).get_program(), server.home().socket());
    let (code, said) = shell.gives(&format!("{ptyd} token new p2 --scope admin 2>&1")).await;
    assert!(code != 0 && said.contains("no program in a session"), "{said}");
    let by_file = Client::tcp(server.address(), server.token());
    for request in [admin("p3"), token("p4")] {
        let refused = by_file.make_token(&request).await.err().expect("refused");
        assert!(refused.to_string().contains("own token cannot do this over TCP"), "{refused}");
    }
    assert!(owner.tokens().await.expect("listed").tokens.is_empty());
    // A token of scope admin makes others, and all of them are one where a request is decided on.
    let of = |token: api::NewToken| Arc::new(Client::tcp(server.address(), token.token));
    let ada = of(owner.make_token(&admin("ada")).await.expect("made"));
    let puppet = of(ada.make_token(&admin("puppet")).await.expect("an admin makes tokens"));
    let next = of(puppet.make_token(&admin("next")).await.expect("an admin makes tokens"));
    let listed = owner.tokens().await.expect("listed").tokens;
    let first_makers: Vec<_> = listed.iter().map(|token| (token.name.as_str(), token.first_maker.as_deref())).collect();
    assert_eq!(first_makers, [("ada", None), ("next", Some("ada")), ("puppet", Some("ada"))]);
    for asker in [&ada, &next] {
        let shell = session_of(asker).await;
        assert!(shell.try_run(&ask("touch x")).await.is_err());
        let pending = asked(&server).await;
        for decider in [&ada, &puppet, &next] {
            let refused = decider.decide(&pending.id, Decision::Allow).await.expect_err("its own");
            assert!(refused.to_string().contains("cannot approve your own request"), "{refused}");
        }
        owner.decide(&pending.id, Decision::Allow).await.expect("only the user can decide");
    }
}

/// The approval of this input, which is refused until it is decided on.
async fn asked_for(server: &Server, shell: &Session, input: &InputRequest) -> Approval {
    assert_eq!(shell.input_refusal(input).await, Some(ErrorCode::ApprovalNeeded));
    asked(server).await
}

#[tokio::test]
// promise: policy-7
async fn input_that_a_person_has_not_seen_is_typed_where_a_program_asks_for_a_password_alone() {
    let server = start();
    let shell = session_of(&bot(&server).await).await;
    let line = InputRequest { input: Some("echo stolen\n".into()), ..InputRequest::default() };
    let reading = "bash -c 'read -rs reply; echo got:$reply'";
    let reads = shell.run(reading).await;
    assert_eq!(reads.foreground, Some(Foreground::PasswordWanted), "{reads:?}");
    let unseen = asked_for(&server, &shell, &line).await;
    assert_eq!((&unseen.input, unseen.input_length), (&None, Some(12)));
    server.client().decide(&unseen.id, Decision::Allow).await.expect("decided");
    // The program is gone, and the shell would read it.
    shell.signal("INT").await;
    shell.end_of(&reads).await;
    let seen = asked_for(&server, &shell, &line).await;
    assert_eq!(seen.input.as_deref(), Some("echo stolen\n"));
    assert_ne!(seen.id, unseen.id);
    // The decision is good where it was given.
    let reads = shell.run(reading).await;
    shell.input(&line).await;
    assert_eq!(shell.end_of(&reads).await.output.as_deref(), Some("got:echo stolen\n"));
    assert!(!String::from_utf8_lossy(&shell.journal().await).contains("\nstolen"));
}

#[tokio::test]
// promise: policy-7
async fn a_person_sees_the_enter_of_a_paste_and_a_revoked_token_leaves_nothing_to_decide() {
    let server = start();
    let shell = session_of(&bot(&server).await).await;
    let paste = |end_with_newline| InputRequest {
        input: Some("ls".into()),
        paste: true,
        end_with_newline,
        ..InputRequest::default()
    };
    let mut seen = Vec::new();
    for enters in [false, true] {
        let pending = asked_for(&server, &shell, &paste(enters)).await;
        server.client().decide(&pending.id, Decision::Deny).await.expect("decided");
        seen.push(pending.input.expect("shown"));
    }
    assert_eq!(seen, ["ls", "ls\r"]);
    assert!(shell.try_run(&ask("touch x")).await.is_err());
    server.client().revoke_token("bot").await.expect("revoked");
    assert!(server.client().approvals().await.expect("a list").approvals.is_empty());
}

#[tokio::test]
// promise: policy-7
async fn only_the_user_decides_on_requests_of_programs_in_sessions() {
    let server = start();
    let owner = server.client();
    let request = TokenRequest { scope: TokenScope::Admin, ..token("ada") };
    let ada = Arc::new(Client::tcp(server.address(), owner.make_token(&request).await.expect("made").token));
    let strict = server.session().await;
    // An admin starts a session for another owner, as whom its programs ask.
    let name = strict.look().await.owner;
    let free = ada.create(&CreateRequest { owner: Some(name), ..by("free") }, None).await.expect("started");
    let free = Session::new(Arc::clone(&ada), free.id);
    let ptyd = format!("{:?} --socket {:?}", server.ptyd(&[]).get_program(), server.home().socket());
    let (code, said) = free.gives(&format!("{ptyd} run --session {} 'touch laundered' 2>&1", strict.id)).await;
    assert!(code != 0 && said.contains("approval"), "{said}");
    let pending = asked(&server).await;
    let refused = ada.decide(&pending.id, Decision::Allow).await.expect_err("it may be its own");
    assert!(refused.to_string().contains("a program in a session asked"), "{refused}");
    owner.decide(&pending.id, Decision::Allow).await.expect("only the user can decide");
}

#[tokio::test]
// promise: policy-8
async fn the_command_line_says_that_it_waits_for_approval_and_continues_after_the_decision() {
    let server = start();
    let shell = session_of(&bot(&server).await).await;
    let run = server.ptyd(&["run", "--session", &shell.id, "--approval-timeout", "5m", "--", "echo ran > made"]);
    let mut run = tokio::process::Command::from(run);
    let run = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let pending = asked(&server).await;
    // The user's own request needs another principal.
    let admin = TokenRequest { scope: TokenScope::Admin, ..token("ada") };
    let ada = Client::tcp(server.address(), server.client().make_token(&admin).await.expect("made").token);
    ada.decide(&pending.id, Decision::Allow).await.expect("decided");
    let done = run.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("waiting for approval {}", pending.id)), "{said}");
    // One decision; the same again changes nothing and is told to nobody, another one is refused.
    let shell = server.session().await;
    assert!(shell.try_run(&ask("touch x")).await.is_err());
    let pending = asked(&server).await;
    let mut follower = Follower::open(&server, &server.token(), None);
    let first = ada.decide(&pending.id, Decision::Deny).await.expect("decided");
    assert_eq!(ada.decide(&pending.id, Decision::Deny).await.expect("the same").decided_by, first.decided_by);
    let refused = ada.decide(&pending.id, Decision::Allow).await.expect_err("decided before");
    assert_eq!(refused.code(), Some(ErrorCode::AlreadyDecided));
    assert!(refused.to_string().contains("ada has denied"), "{refused}");
    assert!(shell.try_run(&ask("touch y")).await.is_err());
    let told = [follower.next_event().event, follower.next_event().event];
    assert_eq!(told, [EventKind::ApprovalDecided, EventKind::ApprovalRequested]);
}

#[tokio::test]
// promise: policy-9
async fn a_tokens_policy_counts_besides_the_sessions_and_the_stricter_decides() {
    let server = start();
    let owner = server.client();
    let with = |name: &str, policy: &str| TokenRequest { policy: Some(policy.to_owned()), ..token(name) };
    let unknown = owner.make_token(&with("bot", "nowhere")).await.err().expect("refused");
    assert!(unknown.to_string().contains("there is no policy \"nowhere\""), "{unknown}");
    let admin = TokenRequest { scope: TokenScope::Admin, ..with("bot", "open") };
    assert_eq!(owner.make_token(&admin).await.err().expect("refused").code(), Some(ErrorCode::InvalidField));
    let made = owner.make_token(&with("bot", "open")).await.expect("made");
    let audit = std::fs::read_to_string(server.home().state().join("audit.jsonl")).expect("there");
    assert!(audit.lines().any(|line| line.contains("\"make token\"") && line.contains("\"tokenPolicy\":\"open\"")));
    let bot = Arc::new(Client::tcp(server.address(), made.token));
    let listed = server.ptyd(&["token", "ls"]).output().expect("it runs").stdout;
    assert!(String::from_utf8_lossy(&listed).lines().any(|line| line.starts_with("bot ") && line.contains(" open ")));
    // The session's own is `strict`, and of two verdicts the stricter one counts: `ls` is allowed there and not here.
    let shell = session_of(&bot).await;
    assert_eq!(shell.gives("echo a").await, (0, "a\n".to_owned()));
    let refused = shell.try_run(&ask("ls")).await.expect_err("the token's policy has no rule for it");
    assert!(refused.to_string().contains("rule default of policy open"), "{refused}");
    let refused = shell.try_run(&ask("rm x")).await.expect_err("the session's denies it");
    assert!(refused.to_string().contains("rule no-rm of policy strict"), "{refused}");
    // Typed input is allowed by the token's and asked about by the session's.
    let reading = shell.run("cat").await;
    let typed = shell.input_refusal(&InputRequest { input: Some("x".into()), ..InputRequest::default() }).await;
    assert_eq!(typed, Some(ErrorCode::ApprovalNeeded));
    shell.signal("INT").await;
    shell.end_of(&reading).await;
    // A start is judged by both.
    let env = CreateRequest { env: [("A".to_owned(), "b".to_owned())].into(), ..by("free") };
    let refused = bot.create(&env, None).await.expect_err("its profile's policy allows it, the token's does not");
    assert!(
        refused.to_string().contains("policy open") && refused.code() == Some(ErrorCode::ApprovalNeeded),
        "{refused}"
    );
    // Without a policy of its own, the token's sessions have the token's, and prove with it.
    let file = server.home().path().join("config/ptyd/policy.toml");
    std::fs::write(&file, POLICY.replace("default = \"strict\"\n", "")).expect("written");
    let own = session_of(&bot).await;
    assert_eq!(own.look().await.policy.map(|policy| policy.name).as_deref(), Some("open"));
    assert_eq!(own.gives("echo a").await, (0, "a\n".to_owned()));
    // One that was started before the token had a policy proves nothing.
    let free = Arc::new(Client::tcp(server.address(), owner.make_token(&token("late")).await.expect("made").token));
    let unruled = session_of(&free).await;
    owner.revoke_token("late").await.expect("revoked");
    let late = owner.make_token(&with("late", "open")).await.expect("made").token;
    let unruled = Session::new(Arc::new(Client::tcp(server.address(), late)), unruled.id);
    let refused = unruled.try_run(&ask("echo a")).await.expect_err("it may mean something else there");
    assert!(refused.to_string().contains("started without a policy"), "{refused}");
    // One that is gone refuses, and a session of before is not proven for it.
    std::fs::write(&file, POLICY.replace("policies.open", "policies.shut")).expect("written");
    let refused = own.try_run(&ask("echo a")).await.expect_err("refused");
    assert!(refused.to_string().contains("no policy \"open\" any more"), "{refused}");
    let refused = bot.create(&CreateRequest::default(), None).await.expect_err("refused");
    assert!(refused.to_string().contains("the token's policy: there is no policy \"open\""), "{refused}");
    owner.revoke_token("bot").await.expect("revoked");
    let next = owner.make_token(&token("bot")).await.expect("made");
    let own = Session::new(Arc::new(Client::tcp(server.address(), next.token)), shell.id.clone());
    assert_eq!(own.gives("ls /nowhere 2>/dev/null || echo b").await, (0, "b\n".to_owned()));
}

/// The files of the page's example.
fn pages_example() -> [&'static str; 2] {
    let page = include_str!("../../../../docs/policy.md");
    let mut blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("it ends"));
    [blocks.next().expect("the profile"), blocks.next().expect("the policy")]
}

#[tokio::test]
// promise: policy-1, policy-8
async fn the_pages_example_allows_ls_and_a_command_of_one_session_waits_for_its_approval() {
    let [profile, policy] = pages_example();
    let home = Home::make();
    configure(&home, profile);
    std::fs::write(home.path().join("config/ptyd/policy.toml"), policy).expect("written");
    let server = Server::start_in(home, Start::default());
    let ptyd = async |words: &[&str]| {
        let mut ptyd = tokio::process::Command::from(server.ptyd(words));
        let done = ptyd.stdin(Stdio::null()).output().await.expect("it runs");
        let said = [done.stdout, done.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        (done.status.code(), said[0].clone(), said[1].clone())
    };
    let (code, listed, said) = ptyd(&["run", "ls /"]).await;
    assert_eq!((code, listed.contains("etc")), (Some(0), true), "{said}");
    let (_, told, note) = ptyd(&["policy", "test", "ls -la"]).await;
    assert!(told.starts_with("allow: rule look") && note.contains("sessions of profile \"default\""), "{told}{note}");
    // In a session whose shell reads the user's files, nothing is proven, and the verdict is the session's.
    configure(server.home(), "[profiles.default]\npolicy = \"dev\"");
    let (code, told, _) = ptyd(&["policy", "test", "ls -la"]).await;
    assert!(code == Some(4) && told.starts_with("ask: ") && told.contains("no rc = \"clean\""), "{told}");
    configure(server.home(), profile);
    let (code, _, said) = ptyd(&["run", "base64 --version"]).await;
    let advice = "wait for it with --approval-timeout 5m, or use a session (ptyd run -s)";
    assert_eq!((code, said.contains(advice), said.contains("waiting for")), (Some(4), true, false), "{said}");
    let (code, _, said) = ptyd(&["run", "--approval-timeout", "0.1", "base64 --version"]).await;
    let lines: Vec<_> = said.lines().collect();
    let is_told =
        lines[0].ends_with("; this command waits for it") && lines[1].contains("; nobody decided in this time");
    assert_eq!((code, lines.len(), is_told), (Some(4), 2, true), "{said}");
    let admin = TokenRequest { scope: TokenScope::Admin, ..token("ada") };
    let ada = Client::tcp(server.address(), server.client().make_token(&admin).await.expect("made").token);
    let decide = async {
        let pending = asked(&server).await;
        ada.decide(&pending.id, Decision::Allow).await.expect("decided");
    };
    let (done, ()) = tokio::join!(ptyd(&["run", "--approval-timeout", "5m", "base64 --version"]), decide);
    assert_eq!((done.0, done.1.contains("base64")), (Some(0), true), "{}", done.2);
}
