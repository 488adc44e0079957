//! An upgrade from the last tagged version: the present one adopts its sessions, and nothing of them is lost.
//!
//! The last version is built from its tag, or `PTYD_TEST_LAST_RELEASE` names its binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use api::{CreateRequest, ErrorCode, ExecuteRequest, SessionStatus};
use client::ClientError;
use e2e::printer::{check, printer};
use e2e::{Binary, Home, Server, Session, Start, configure, eventually, is_full, is_program, not_run};

/// The variable with the path of the last version's binary.
const LAST_RELEASE: &str = "PTYD_TEST_LAST_RELEASE";

const CONFIGURATION: &str = r#"
[profiles.coloured]
env = { COLOUR = "blue" }

[profiles.sandbox]
confinement = { tier = "sandbox" }
"#;

/// The last tagged version; `None` if this test has said why there is none here.
fn last_release() -> Option<Binary> {
    if let Some(given) = std::env::var_os(LAST_RELEASE).filter(|given| !given.is_empty()) {
        return Some(Binary::at(given));
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&repository).args(args).output();
        let output = output.ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let Some(tags) = git(&["tag", "--list", "v*", "--sort=-version:refname"]) else {
        not_run("git does not list the tags of this repository");
        return None;
    };
    let Some(tag) = tags.lines().next() else {
        match git(&["rev-parse", "--is-shallow-repository"]).as_deref() {
            Some("false\n") => not_run("there is no tagged version yet"),
            _ => not_run("this clone has no tags, because it is shallow"),
        }
        return None;
    };
    if !is_full() {
        not_run(format!("{tag} has to be built: PTYD_TEST_FULL=1"));
        return None;
    }
    Some(Binary::at(built(&repository, tag)))
}

/// The binary of this tag, in a folder of its own, where the next run finds it.
fn built(repository: &Path, tag: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("release-{tag}"));
    let source = folder.join("source");
    if !source.exists() {
        let draft = folder.join(format!("draft-{}", std::process::id()));
        std::fs::create_dir_all(&draft).expect("a folder");
        let mut git = Command::new("git")
            .arg("-C")
            .arg(repository)
            .args(["archive", tag])
            .stdout(Stdio::piped())
            .spawn()
            .expect("git");
        let archive = git.stdout.take().expect("a pipe");
        let unpacked = Command::new("tar").arg("-x").arg("-C").arg(&draft).stdin(archive).status().expect("tar");
        assert!(git.wait().expect("ours to wait for").success() && unpacked.success(), "{tag} is unpacked");
        std::fs::rename(&draft, &source).expect("a new name");
    }
    let target = folder.join("target");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--locked", "--package", "ptyd", "--bin", "ptyd"]).arg("--target-dir").arg(&target);
    assert!(build.current_dir(&source).status().expect("cargo").success(), "{tag} builds");
    target.join("debug/ptyd")
}

/// A session with this profile or shell, if this machine has what it needs.
async fn special(server: &Server, request: CreateRequest) -> Option<Session> {
    match server.client().create(&request, None).await {
        Ok(session) => Some(Session::new(std::sync::Arc::clone(server.client()), session.id)),
        Err(ClientError::Refused(problem)) if problem.detail.contains("its confinement needs") => {
            e2e::in_part(problem.detail);
            None
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
// promise: crash-3
async fn sessions_of_the_last_tagged_version_are_adopted() {
    let Some(last) = last_release() else { return };
    let home = Home::make();
    configure(&home, CONFIGURATION);
    let server = Server::start_with(last, home, Start::default());
    let files = server.home().file("");

    let idle = server.session().await;
    idle.gives("kept=yes; mkdir -p below; cd below; printf '%s\\n' one two").await;
    let (prints, ends_meanwhile, asks) = (server.session().await, server.session().await, server.session().await);
    let printing = prints.begin(&printer(5)).await;
    let ending = ends_meanwhile.begin("until [ -e go ]; do sleep 0.05; done; echo meanwhile; (exit 6)").await;
    let question = asks.run("read -p 'name? ' n; echo got $n; (exit 3)").await;
    let ended = server.session().await;
    ended.run("exit 7").await;
    let keyed = ExecuteRequest {
        wait_for_completion: Some(true),
        command: "echo once >> keyed; cat keyed".to_owned(),
        ..ExecuteRequest::default()
    };
    let with_key = server.session().await;
    let first = server.client().execute(&with_key.id, &keyed, Some("one")).await.expect("it runs");

    let by = |profile: &str| CreateRequest { profile: Some(profile.to_owned()), ..CreateRequest::default() };
    let mut specials = vec![special(&server, by("coloured")).await, special(&server, by("sandbox")).await];
    for shell in ["dash", "zsh", "fish"].into_iter().filter(|shell| is_program(shell)) {
        let request = CreateRequest { shell: Some(shell.to_owned()), ..CreateRequest::default() };
        specials.push(special(&server, request).await);
    }
    // A program without our hooks, whose commands are typed.
    let typed = CreateRequest { shell: Some("cat".to_owned()), ..CreateRequest::default() };
    let typed = server.session_with(typed).await;
    let specials: Vec<Session> = specials.into_iter().flatten().collect();
    for shell in &specials {
        assert_eq!(shell.gives("echo before").await.0, 0);
    }

    let quiet: Vec<&Session> = [&idle, &asks, &ended, &with_key, &typed].into_iter().chain(&specials).collect();
    let live: Vec<&Session> = quiet.iter().copied().filter(|shell| shell.id != ended.id).chain([&prints]).collect();
    let mut before = Vec::new();
    for shell in &quiet {
        before.push(shell.journal().await);
    }
    let mut pids = Vec::new();
    for shell in &live {
        pids.push(shell.look().await.pid);
    }
    assert!(server.stop().success());
    // One command ends without a server.
    std::fs::write(files.join("go"), "").expect("written");
    let journal = server.home().state().join("sessions").join(&ends_meanwhile.id).join("journal");
    eventually("it prints without a server", async || {
        let shown = std::fs::read(&journal).unwrap_or_default();
        shown.windows(9).any(|window| window == b"meanwhile").then_some(())
    })
    .await;
    server.again_as(Binary::find());

    for (shell, pid) in live.iter().zip(&pids) {
        let seen = shell.look().await;
        assert_eq!((seen.status, seen.unreachable, seen.trouble.as_deref()), (SessionStatus::Running, false, None));
        assert_eq!((seen.pid, pid.is_some()), (*pid, true), "the same shell");
    }
    for (shell, before) in quiet.iter().zip(&before) {
        assert!(shell.journal().await == *before, "every byte of {} is where it was", shell.id);
    }
    assert_eq!(idle.command("c1").await.output.as_deref(), Some("one\ntwo\n"));
    assert_eq!(idle.gives("echo $kept ${PWD##*/}").await, (0, "yes below\n".to_owned()));
    let done = ends_meanwhile.end_of(&ending).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(6), Some("meanwhile\n")));
    asks.types("Ada").await;
    let done = asks.end_of(&question).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(3), Some("name? Ada\ngot Ada\n")));
    let seen = ended.look().await;
    assert_eq!((seen.status, seen.exit.and_then(|exit| exit.exit_code)), (SessionStatus::Terminated, Some(7)));
    let again = server.client().execute(&with_key.id, &keyed, Some("one")).await.expect("known");
    assert_eq!((again.id, again.output.as_deref()), (first.id, Some("once\n")));
    let other = ExecuteRequest { command: "echo twice >> keyed".to_owned(), ..keyed };
    let reused = server.client().execute(&with_key.id, &other, Some("one")).await.expect_err("another request");
    assert_eq!(reused.code(), Some(ErrorCode::KeyReused));
    for shell in &specials {
        assert_eq!(shell.gives("echo after").await, (0, "after\n".to_owned()));
    }
    assert_eq!(specials[0].gives("echo $COLOUR").await, (0, "blue\n".to_owned()));
    typed.types("typed").await;
    assert!(String::from_utf8_lossy(&typed.journal().await).contains("typed\r\ntyped\r\n"));
    std::fs::write(files.join("stop"), "").expect("written");
    check(&server, 5, &prints, &printing).await;
}
