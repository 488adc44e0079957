//! Descendants of a session: jobs that keep the terminal open, daemons, and leftover processes.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;

use api::{CommandStatus, CreateRequest, OnEnd, SessionStatus};
use e2e::{PATIENCE, Server, eventually, holder, passes, sleepers, spawned};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

#[tokio::test]
// promise: end-6
async fn a_job_that_holds_the_terminal_does_not_hold_the_command() {
    let server = Server::start();
    let shell = server.session().await;
    let (code, output) = shell.gives("mkfifo gate; (read -r line <gate; echo $line) & echo hi").await;
    assert_eq!((code, output.ends_with("hi\n")), (0, true), "{output:?}");
    // The job has waited for this: the command's answer came first.
    passes(server.home().file("gate"), "late\n").await;
    eventually("late is in the journal", async || {
        String::from_utf8_lossy(&shell.journal().await).contains("late").then_some(())
    })
    .await;
    // bash says at the next prompt that the job is done, which is not a command's output.
    assert_eq!(shell.gives("echo next").await, (0, "next\n".to_owned()));
    for command in server.client().commands(&shell.id).await.expect("known").commands {
        let output = shell.command(&command.id).await.output.unwrap_or_default();
        assert!(!output.contains("late"), "background output is no command's: {output:?}");
    }
}

#[tokio::test]
// promise: end-6
async fn background_output_is_returned_with_the_next_command_and_apart_from_its_own() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("mkfifo gate; (read line <gate; echo $line; touch done) &").await;
    passes(server.home().file("gate"), "CRASHED\n").await;
    let done = server.home().file("done");
    eventually("it has printed", async || done.exists().then_some(())).await;
    let following = shell.run("echo following").await;
    assert_eq!(following.output.as_deref(), Some("following\n"));
    assert!(following.background.as_deref().is_some_and(|text| text.contains("CRASHED\n")), "{following:?}");
    let after = shell.run("echo after").await;
    assert!(!after.background.is_some_and(|text| text.contains("CRASHED")), "shown once");
}

#[tokio::test]
// promise: stop-1
async fn nothing_is_left_when_a_session_ends() {
    let server = Server::start();
    let shell = server.session().await;
    spawned(&server, &shell).await;
    let ended = shell.ends().await;
    assert_eq!((ended.left, ended.session.status), (0, SessionStatus::Terminated), "{ended:?}");
    assert_eq!(sleepers(&server), []);
}

#[tokio::test]
// promise: stop-1
async fn nothing_is_left_of_a_program_whose_every_process_forks_and_exits() {
    const FORKS: &str = "perl -e 'while (1) { exit if fork }' 9>held & sleep 0.1";
    let server = Server::start();
    for round in 0..e2e::count(10, 200) {
        let shell = server.session().await;
        shell.gives("rm -f held; mkfifo held").await;
        // Every process of the program has it open for writing, so no list of processes is needed to find one.
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let held =
            File::options().read(true).custom_flags(nonblocking).open(server.home().file("held")).expect("a FIFO");
        shell.gives(FORKS).await;
        let ended = shell.ends().await;
        assert_eq!((ended.left, ended.session.status), (0, SessionStatus::Terminated), "round {round}: {ended:?}");
        let mut polled = [PollFd::new(&held, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).expect("one descriptor");
        assert_eq!(polled[0].revents(), PollFlags::HUP, "round {round}: a process is left");
    }
}

#[tokio::test]
// promise: stop-1
async fn nothing_is_left_when_the_shell_ends_by_itself() {
    let server = Server::start();
    let shell = server.session().await;
    let all = spawned(&server, &shell).await;
    shell.run("exit 0").await;
    assert_eq!(all.into_iter().filter(|pid| !pid.ends_within(PATIENCE)).count(), 0);
}

#[tokio::test]
// promise: crash-4
async fn nothing_is_left_when_a_holder_is_killed_and_others_do_not_notice() {
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    let all = spawned(&server, &shell).await;
    shell.gives("seq 1 20000").await;
    let before = shell.journal().await;
    let waits = other.begin("sleep 1; echo undisturbed").await;
    holder(&shell).await.kill();
    let session = eventually("it is seen", async || {
        Some(shell.look().await).filter(|session| session.status == SessionStatus::Terminated)
    })
    .await;
    let exit = session.exit.expect("how it ended");
    assert!(exit.reason.contains("holder"), "the reason is said: {exit:?}");
    assert_eq!(all.into_iter().filter(|pid| !pid.ends_within(PATIENCE)).count(), 0);
    assert!(shell.journal().await.starts_with(&before), "what was written can be read");
    let done = other.end_of(&waits).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("undisturbed\n")));
}

#[tokio::test]
// promise: stop-1
async fn a_daemon_survives_its_session_if_on_end_is_keep() {
    let server = Server::start();
    let shell = server.session_with(CreateRequest { on_end: OnEnd::Keep, ..CreateRequest::default() }).await;
    shell.gives("setsid -f sleep 790 >/dev/null 2>&1 </dev/null; sleep 0.1").await;
    let (_, daemon) = eventually("it runs", async || sleepers(&server).pop()).await;
    shell.ends().await;
    assert!(daemon.is_alive(), "it was meant to stay");
    daemon.kill();
    assert!(daemon.ends_within(PATIENCE));
}

#[tokio::test]
async fn a_session_that_is_being_cleared_up_is_among_those_that_have_ended() {
    let server = Server::start();
    let shell = server.session().await;
    // The holder needs a while for one that minds no polite signal.
    let done = shell.run("(trap '' HUP TERM; while :; do sleep 1; done) & exit 3").await;
    assert_eq!(done.status, CommandStatus::Terminated);
    let ids = async |status| {
        server.client().list(status).await.expect("a list").terminals.into_iter().map(|s| s.id).collect::<Vec<_>>()
    };
    assert_eq!((ids(None).await, ids(Some("terminated")).await), (vec![], vec![shell.id.clone()]));
    let ended = shell.ends().await;
    assert_eq!((ended.session.exit.expect("how").exit_code, ids(Some("terminated")).await), (Some(3), vec![shell.id]));
}

#[tokio::test]
// promise: stop-2
async fn nothing_is_left_when_a_sessions_folder_is_removed_or_the_whole_state_directory() {
    let server = Server::start();
    let (one, other) = (server.session().await, server.session().await);
    let (first, second) = (holder(&one).await, holder(&other).await);
    let sessions = server.home().state().join("sessions");
    // The waiting call is answered, and the other session continues.
    spawned(&server, &one).await;
    let remove = async {
        let has_begun = server.home().file("begun");
        eventually("it runs", async || has_begun.exists().then_some(())).await;
        std::fs::remove_dir_all(sessions.join(&one.id)).expect("ours");
    };
    let (ran, ()) = tokio::join!(one.run("touch begun; sleep 1000"), remove);
    assert_eq!(ran.status, CommandStatus::Terminated, "{ran:?}");
    assert!(ran.error.as_ref().is_some_and(|why| why.contains("the session's folder was removed")), "{ran:?}");
    assert!(first.ends_within(PATIENCE));
    assert_eq!(sleepers(&server), []);
    assert_eq!(other.gives("echo alive").await, (0, "alive\n".to_owned()));
    // No process would ever wait for this one.
    spawned(&server, &other).await;
    server.kill9();
    std::fs::remove_dir_all(server.home().state()).expect("ours");
    assert!(second.ends_within(PATIENCE));
    assert_eq!(sleepers(&server), []);
}
