//! Sessions with real shells and without a protocol in front: properties that are only visible inside.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use wire::{PROTOCOL, ToHolder};

use super::actions::{create, terminate, terminate_unreachable};
use super::approvals::gate;
use super::ended::{retention, store_rebuild};
use super::session::Request;
use super::timeline::micros;
use super::{Services, Target, lifecycle, start};
use crate::action::{
    Action, ActionError, Budget, ClientContext, Composite, Create, EndedBy, Execute, Fresh, Input, InputBytes, List,
    Outcome, Piece, SessionEvent, SessionPage, SessionStatus, TargetShell, TaskSupport, TerminalCall, Terminate, Wait,
};
use crate::config::Config;
use crate::dispatch::Dispatcher;
use crate::host::LocalHost;
use crate::host::holders::HolderBackend;
use crate::ids::SessionId;
use crate::limits;
use crate::principal::{Detach, Principal, Scope};
use crate::store::{SessionRow, Store};

pub(super) fn config(dir: &Path) -> Config {
    Config::of(([127, 0, 0, 1], 0).into(), dir.join("ptyd.sock"), dir.to_owned())
}

/// A session without start-up files.
pub(super) fn request(home: &Path) -> Create {
    let variables = [("HOME", home.as_os_str().to_owned()), ("PATH", std::env::var_os("PATH").unwrap_or_default())];
    let env = variables.map(|(n, v)| (n.into(), std::os::unix::ffi::OsStringExt::into_vec(v)));
    Create { base_env: Some(Arc::new(env.to_vec())), cwd: Some(home.to_owned()), ..Create::default() }
}

pub(super) fn me() -> Principal {
    Principal::named("me", Scope::Admin)
}

/// Performs an action as the dispatcher does that has admitted it.
pub(super) async fn perform(
    services: &Arc<Services>,
    principal: &Principal,
    action: &Action,
) -> Result<Outcome, ActionError> {
    let target = Target::of(services, principal, action).await?;
    super::perform(services, principal, action, target).await
}

/// The verdict of the session's policy, which it has.
async fn judged_by_policy(services: &Services, action: &Action) -> gate::Judged {
    let target = Target::of(services, &me(), action).await.expect("found").expect("it runs or types");
    gate::judged(services, &me(), action, &target).await.expect("judged").expect("it has a policy")
}

/// On one thread, so that a task that does not yield blocks all others.
#[tokio::test]
async fn the_output_before_an_exit_is_read_in_turns_and_others_get_theirs() {
    const BYTES: usize = 32 << 20;
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    let id = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    let handle = services.sessions.live(&me(), &id).await.expect("alive");
    let shell = handle.ask(Request::Look).await.expect("alive").view.pid.expect("a shell");
    let begun = Execute {
        session: handle.shared.id.clone(),
        command: format!("head -c {BYTES} /dev/zero; exit 3"),
        shell: TargetShell::Own,
        allowed_in: None,
        wait: None,
        time_limit: None,
        key: None,
        budget: Budget::NONE,
    };
    perform(&services, &me(), &Action::Execute(begun)).await.expect("accepted");
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    // No other task runs meanwhile, so the actor finds the exit and all the output at once.
    while sys::process::is_alive(shell) {
        std::thread::yield_now();
    }
    let before = turns.load(Ordering::Relaxed);
    tokio::time::timeout(Duration::from_secs(60), handle.gone()).await.expect("it ends");
    let turns = turns.load(Ordering::Relaxed) - before;
    assert!(turns >= BYTES / limits::SCAN_CHUNK / 2, "others got {turns} turns");
    let past = services.sessions.find(&me(), &handle.shared.id).await.expect("known");
    let super::known_sessions::SessionRef::EndedSession(past) = past else { panic!("it has ended") };
    let command = past.commands().pop().expect("on record");
    assert_eq!(command.output_size, BYTES as u64 + "exit\r\n".len() as u64);
}

/// Runs a command to its end.
async fn run(services: &Arc<Services>, session: &SessionId, command: &str) {
    let wait = Wait::at_most(Duration::from_secs(30));
    let execute = Execute {
        session: session.clone(),
        command: command.to_owned(),
        shell: TargetShell::Own,
        allowed_in: None,
        wait: Some(wait),
        time_limit: None,
        key: None,
        budget: Budget::NONE,
    };
    let Outcome::Report(report) = perform(services, &me(), &Action::Execute(execute)).await.expect("accepted") else {
        panic!("no report")
    };
    assert!(report.command.is_some_and(|c| c.end_offset.is_some()), "{command} has ended");
}

#[tokio::test]
// promise: crash-1
async fn a_session_that_ends_after_its_actor_lost_it_is_reported_as_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    let id = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    let handle = services.sessions.live(&me(), &id).await.expect("alive");
    // Another program attaches itself, as a second server would, and then the session ends.
    let folder = handle.shared.folder.clone();
    let (mut connection, _) = services.backends.holders.connect(&folder).expect("it listens");
    connection.send(&ToHolder::Hello { protocol: PROTOCOL, attaches: true });
    tokio::time::timeout(Duration::from_secs(60), handle.gone()).await.expect("the actor leaves");
    terminate_unreachable::kill_holder(&services.backends, &id, &folder, None).await.expect("killed");
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    let status = loop {
        match services.sessions.show(&me(), &id).await {
            Err(ActionError::Restarting) if tokio::time::Instant::now() < until => tokio::task::yield_now().await,
            shown => break shown.map(|session| session.status),
        }
    };
    assert_eq!(status.ok(), Some(SessionStatus::Terminated));
}

#[tokio::test]
async fn a_list_of_commands_is_paged_through_history_and_memory_as_one() {
    const COUNT: usize = limits::COMMANDS_IN_MEMORY + 6;
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    let session = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    for i in 1..=COUNT {
        run(&services, &session, &format!("(exit {i})")).await;
    }
    let mut told = Vec::new();
    for offset in (0..COUNT + 8).step_by(4) {
        let list = Action::Commands { session: session.clone(), limit: 4, offset };
        let Outcome::Commands(page, total) = perform(&services, &me(), &list).await.expect("known") else {
            panic!("another outcome")
        };
        assert_eq!((page.len(), total), (COUNT.saturating_sub(offset).min(4), COUNT));
        told.extend(page.into_iter().map(|c| c.exit_code));
    }
    assert_eq!(told, (1..=COUNT).map(|i| Some(i as i32)).collect::<Vec<_>>());
    let end = Terminate { session, force: true, signo: None, grace: None, purges: false };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
}

#[tokio::test]
async fn a_page_of_the_list_equals_its_part_of_the_whole_list() {
    const COUNT: usize = 5;
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    let mut made = Vec::new();
    for _ in 0..COUNT {
        made.push(create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id);
    }
    for is_newest_first in [false, true] {
        let mut whole = made.clone();
        if is_newest_first {
            whole.reverse();
        }
        for (offset, limit) in (0..COUNT + 2).flat_map(|offset| (1..COUNT + 2).map(move |limit| (offset, limit))) {
            let list = List { owner: None, status: None, name: None, is_newest_first, limit, offset };
            let Outcome::Sessions(SessionPage { sessions: page, total, .. }) =
                perform(&services, &me(), &Action::List(list)).await.expect("a list")
            else {
                panic!("another outcome")
            };
            let ids: Vec<_> = page.into_iter().map(|session| session.id).collect();
            let expected: Vec<_> = whole.iter().skip(offset).take(limit).cloned().collect();
            assert_eq!((ids, total), (expected, COUNT), "{limit} from {offset}");
        }
    }
    for id in made {
        let end = Terminate { session: id, force: true, signo: None, grace: None, purges: false };
        terminate::terminate(&services, &me(), &end).await.expect("it ends");
    }
}

#[tokio::test]
async fn a_holder_that_does_not_greet_is_ended_with_its_session() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let config = config(dir.path());
    let mut holders = HolderBackend::prepare(dir.path()).expect("a backend");
    // Says who it is, closes its connection and lives on.
    let mute = dir.path().join("mute");
    std::fs::write(&mute, "#!/bin/sh\necho $$ > \"$1/../../pid\"; exec <&-; exec sleep 1000\n").expect("a write");
    std::fs::set_permissions(&mute, PermissionsExt::from_mode(0o700)).expect("ours");
    holders.set_program(mute);
    let services = lifecycle::open(&config, LocalHost::default(), holders).expect("services");
    let failed = create::create(&services, &me(), &request(dir.path())).await;
    assert!(matches!(failed, Err(ActionError::Start { .. })), "{failed:?}");
    let pid = std::fs::read_to_string(dir.path().join("pid")).expect("it ran").trim().parse().expect("a number");
    assert!(!sys::process::is_alive(pid));
    assert_eq!(std::fs::read_dir(dir.path().join("sessions")).expect("there").count(), 0);
}

#[tokio::test]
async fn a_tilde_is_the_home_of_the_session() {
    let dir = tempfile::tempdir().expect("a directory");
    for home in ["a", "b"] {
        std::fs::create_dir_all(dir.path().join(home).join("src")).expect("ours");
    }
    let services = start(&config(dir.path())).await.expect("services");
    let b = vec![("HOME".to_owned(), dir.path().join("b").to_str().expect("UTF-8").to_owned())];
    for (home, env, cwd, expected) in
        [("a", vec![], "~", "a"), ("a", vec![], "~/src", "a/src"), ("a", b, "~/src", "b/src")]
    {
        let request = Create { cwd: Some(cwd.into()), env, ..request(&dir.path().join(home)) };
        let session = create::create(&services, &me(), &request).await.expect("a session").session;
        assert_eq!(session.cwd, dir.path().join(expected));
        let end = Terminate { session: session.id, force: true, signo: None, grace: None, purges: false };
        terminate::terminate(&services, &me(), &end).await.expect("it ends");
    }
    let homeless = Create { base_env: Some(Arc::default()), cwd: Some("~".into()), ..Create::default() };
    let refused = create::create(&services, &me(), &homeless).await;
    assert!(matches!(refused, Err(ActionError::Invalid { field: "cwd", .. })), "{refused:?}");
}

/// The viewer came while the session was being created, and its snapshot has the first prompt already.
#[tokio::test]
// promise: view-6
async fn a_viewer_learns_that_the_session_runs_although_no_output_follows() {
    let dir = tempfile::tempdir().expect("a directory");
    let gate = dir.path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().expect("mkfifo").success());
    std::fs::write(dir.path().join(".bashrc"), format!("read -r _ < {}\n", gate.display())).expect("written");
    let services = start(&config(dir.path())).await.expect("services");
    let session = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    let watch = Action::Watch { session: session.clone(), since: None };
    let Outcome::Watching(watching) = perform(&services, &me(), &watch).await.expect("alive") else {
        panic!("another outcome")
    };
    assert_eq!(watching.session.status, SessionStatus::Creating);
    let mut feed = watching.feed;
    tokio::task::spawn_blocking(move || std::fs::write(gate, "go\n")).await.expect("no panic").expect("it reads");
    let handle = services.sessions.live(&me(), &session).await.expect("alive");
    handle.ask(Request::Prompt).await.expect("alive");
    let snapshot = feed.snapshot().await.expect("alive").expect("a screen");
    let is_ready = |event: &SessionEvent| matches!(event, SessionEvent::Ready);
    if !snapshot.events.iter().any(|event| is_ready(event)) {
        let next = async { while !matches!(feed.next(1 << 20).await, Ok(Piece::Event(event)) if is_ready(&event)) {} };
        tokio::time::timeout(Duration::from_secs(30), next).await.expect("the event");
    }
    let end = Terminate { session, force: true, signo: None, grace: None, purges: false };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
}

#[tokio::test]
// promise: view-2
async fn a_viewer_learns_which_output_and_events_are_no_longer_kept() {
    const LINES: usize = 500_000;
    let dir = tempfile::tempdir().expect("a directory");
    let few = Config { journal_bytes_max: 1 << 20, ..config(dir.path()) };
    let services = start(&few).await.expect("services");
    let session = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    let watch = Action::Watch { session: session.clone(), since: Some(0) };
    let Outcome::Watching(watching) = perform(&services, &me(), &watch).await.expect("alive") else {
        panic!("another outcome")
    };
    let mut feed = watching.feed;
    for _ in 0..limits::EVENTS_KEPT {
        run(&services, &session, "true").await;
    }
    run(&services, &session, &format!("seq 1 {LINES}")).await;
    let view = services.sessions.show(&me(), &session).await.expect("alive");
    assert!(view.first_offset > 0);
    let (mut missed, mut gap, mut at, mut shown) = (0, None, 0, Vec::new());
    while at < view.end_offset {
        match feed.next(limits::FRAME_BYTES).await.expect("alive") {
            Piece::Event(event) => {
                if let SessionEvent::Missed(events) = *event {
                    missed += events;
                }
            }
            Piece::Gap { from, to } => {
                // Events within it are reported between its parts.
                assert_eq!((from, shown.len()), (at, 0), "in one stretch, before everything that is kept");
                (gap, at) = (Some(to), to);
            }
            Piece::Data { from, to, bytes } => {
                assert_eq!(from, at);
                at = to;
                shown.extend(bytes);
            }
            Piece::Over => panic!("it lives"),
        }
    }
    assert!(missed >= limits::EVENTS_KEPT as u64, "{missed} events");
    assert_eq!(gap, Some(view.first_offset));
    assert!(String::from_utf8_lossy(&shown).contains(&format!("\r\n{LINES}\r\n")));
    let end = Terminate { session, force: true, signo: None, grace: None, purges: false };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
    while !matches!(feed.next(limits::FRAME_BYTES).await.expect("it has ended"), Piece::Over) {}
}

/// The processor time of this process, which other processes do not lengthen.
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).expect("less than a second"))
}

#[tokio::test]
// promise: rest-5
async fn a_page_of_ended_sessions_costs_no_more_than_a_look_at_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    let list = async |known: usize| {
        let begun = processor_time();
        let list = List { status: Some(SessionStatus::Terminated), limit: 100, ..List::default() };
        let Outcome::Sessions(SessionPage { total, .. }) =
            perform(&services, &me(), &Action::List(list)).await.expect("a list")
        else {
            panic!("another outcome")
        };
        assert_eq!(total, known);
        processor_time() - begun
    };
    let mut known = 0;
    let mut costs = Vec::new();
    for upto in [500, 4_000] {
        for number in known..upto {
            services.history.store.put_session(SessionRow {
                id: SessionId::random(0).to_string(),
                owner: "me".to_owned(),
                name: None,
                created_us: number as u64,
                ended_us: Some(number as u64 + 1),
                key: None,
            });
        }
        services.history.store.flush().expect("written");
        known = upto;
        list(known).await;
        costs.push((list(known).await + list(known).await + list(known).await).max(Duration::from_millis(1)));
    }
    // Eight times as many; each looked for among all would be 64 times as much.
    assert!(costs[1] < costs[0] * 24, "{costs:?}");
}

/// Puts sessions on record that ended at these times, each with a folder.
fn put_ended(services: &Services, dir: &Path, ended: impl IntoIterator<Item = u64>) -> Vec<SessionId> {
    let put = |ended_us: u64| {
        let id = SessionId::random(0);
        std::fs::create_dir(dir.join("sessions").join(id.as_str())).expect("made");
        let row = SessionRow {
            id: id.to_string(),
            owner: "me".to_owned(),
            name: None,
            created_us: ended_us,
            ended_us: Some(ended_us),
            key: None,
        };
        services.history.store.put_session(row);
        id
    };
    ended.into_iter().map(put).collect()
}

#[tokio::test]
async fn sessions_that_ended_too_long_ago_are_removed_and_later_ones_stay() {
    let dir = tempfile::tempdir().expect("a directory");
    let age = Duration::from_secs(3600);
    let config = Config { retention_age: age, retention_free: 0, ..config(dir.path()) };
    let services = start(&config).await.expect("services");
    let ago = |seconds: u64| {
        let now = SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        u64::try_from((now - Duration::from_secs(seconds)).as_micros()).expect("not for long")
    };
    let ids = put_ended(&services, dir.path(), [ago(3_700), ago(3_500), ago(7_200), ago(0)]);
    retention::enforce_retention(&services);
    let is_there = |id: &SessionId| dir.path().join("sessions").join(id.as_str()).exists();
    assert_eq!(ids.iter().map(is_there).collect::<Vec<_>>(), [false, true, false, true]);
    let rows = services.history.store.sessions().expect("rows");
    assert_eq!(rows.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), [ids[1].as_str(), ids[3].as_str()]);
}

#[tokio::test]
// promise: stop-5
async fn a_session_that_has_just_ended_is_not_removed_yet() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config { retention_bytes: 0, retention_free: u64::MAX, ..config(dir.path()) };
    let services = start(&config).await.expect("services");
    let now = micros(SystemTime::now());
    let ids = put_ended(&services, dir.path(), [now, now - 60_000_000]);
    for id in &ids {
        std::fs::write(dir.path().join("sessions").join(id.as_str()).join("journal"), "output").expect("written");
    }
    assert_eq!(
        retention::enforce_retention(&services),
        limits::ENDED_SESSION_STAYS,
        "it looks again when the end is old enough"
    );
    let rows = services.history.store.sessions().expect("rows");
    assert_eq!(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), [ids[0].as_str()]);
}

#[tokio::test]
async fn beyond_a_number_of_ended_sessions_the_oldest_go() {
    const MORE: usize = 3;
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config { retention_age: Duration::MAX, retention_free: 0, ..config(dir.path()) };
    let services = start(&config).await.expect("services");
    let ids = put_ended(&services, dir.path(), 1..=(retention::PASTS_MAX + MORE) as u64);
    retention::enforce_retention(&services);
    let rows = services.history.store.sessions().expect("rows");
    assert_eq!((rows.len(), rows[0].id.as_str()), (retention::PASTS_MAX, ids[MORE].as_str()));
}

#[tokio::test]
// promise: damage-1
async fn a_flipped_byte_of_the_ground_state_is_the_truth_or_damage_and_never_another_story() {
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    // A file's time is that of the kernel's last tick.
    let begun_us = micros(SystemTime::now() - Duration::from_secs(1));
    let id = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    run(&services, &id, "cd /; echo one; (exit 3)").await;
    run(&services, &id, "false | true").await;
    let end = Terminate { session: id.clone(), force: false, signo: None, grace: None, purges: false };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
    let there = services.backends.holders.folder(&id);
    let folder = there.path();
    let load = || super::ended::session::EndedSession::load(&id, &there, &services.backends);
    let story = |past: &super::ended::session::EndedSession| format!("{:?} {:?}", past.view(), past.commands());
    let truth = story(&load().expect("whole"));
    let mut damaged = 0;
    for name in ["events", "spec"] {
        let path = folder.join(name);
        let whole = std::fs::read(&path).expect("there");
        // Every byte of the header and of the first records, and then every seventh.
        for at in (0..whole.len()).filter(|at| *at < 200 || at % 7 == 0) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, &flipped).expect("written");
            let past = load().expect("it can be shown");
            let is_said = past.view().trouble.is_some_and(|trouble| trouble.starts_with("damaged: "));
            assert!(is_said || story(&past) == truth, "{name} at {at}");
            assert!(past.ended_us() >= begun_us, "retention would remove it: {name} at {at}");
            damaged += usize::from(is_said);
        }
        std::fs::write(&path, &whole).expect("written");
    }
    assert!(damaged > 300, "{damaged}");
    assert_eq!(story(&load().expect("whole")), truth);
}

#[tokio::test]
// promise: damage-1
async fn records_that_were_cut_at_the_end_report_the_exit_as_unknown() {
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    let id = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    run(&services, &id, "echo one").await;
    let end = Terminate {
        session: id.clone(),
        force: false,
        signo: None,
        grace: Some(Duration::from_secs(60)),
        purges: false,
    };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
    let there = services.backends.holders.folder(&id);
    let folder = there.path();
    let events = folder.join(journal::EVENTS_FILE);
    let whole = std::fs::read(&events).expect("there");
    let mut reader = journal::EventsReader::open(folder, journal::Masks::default()).expect("events");
    let mut begins = Vec::new();
    while let Some(event) = reader.next(whole.len() as u64).expect("read") {
        begins.push((usize::try_from(event.at).expect("small"), event.kind));
    }
    let (exited, last) = begins[begins.len() - 1];
    assert!(last == journal::Kind::EXITED && begins[begins.len() - 2].1 == journal::Kind::ENDING, "{begins:?}");
    let cuts = begins[begins.len() - 3].0..whole.len();
    // Its holder leaves nothing behind; one that is killed leaves its socket.
    let socket = folder.join(wire::SOCKET_FILE);
    for is_killed in [false, true] {
        for to in cuts.clone() {
            std::fs::write(&events, &whole[..to]).expect("written");
            let past =
                super::ended::session::EndedSession::load(&id, &there, &services.backends).expect("it can be shown");
            let view = past.view();
            let exit = view.exit.expect("it has ended");
            assert_eq!((exit.code, exit.signal), (None, None), "cut at {to}");
            let is_torn = begins.iter().all(|(begin, _)| *begin != to);
            let damage = view.trouble.unwrap_or_default();
            assert_eq!(damage.starts_with("damaged: events"), is_torn || !is_killed, "cut at {to}: {damage:?}");
            let asked = if to >= exited { " while it ended the session (HUP)" } else { "" };
            let reason = if is_killed {
                format!("the session's holder process was killed{asked}")
            } else {
                "how it ended is not known".to_owned()
            };
            assert!(exit.reason.starts_with(&reason) && exit.reason.ends_with(&damage), "cut at {to}: {}", exit.reason);
        }
        if !is_killed {
            drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
        }
    }
    std::fs::remove_file(&socket).expect("there");
    std::fs::write(&events, &whole).expect("written");
    let past = super::ended::session::EndedSession::load(&id, &there, &services.backends).expect("it can be shown");
    assert!(past.view().trouble.is_none());
    assert_eq!(past.view().exit.expect("it has ended").reason, "terminated on request; the shell was killed by HUP");
}

/// A call of the one-tool shell, of a client that has sent it before.
async fn resent(services: &Arc<Services>, command: &str, is_input: bool, key: &str) -> crate::action::TerminalView {
    let client = ClientContext { client: Some("one".to_owned()), detach: Detach::Keep, ..ClientContext::default() };
    let call = TerminalCall {
        session: None,
        command: command.to_owned(),
        is_input,
        is_inside: false,
        timeout: Some(Duration::from_secs(20)),
        time_limit: None,
        waited: Duration::ZERO,
        reset: false,
        pattern: None,
        client,
        tasks: TaskSupport::None,
        key: Some(key.to_owned()),
        budget: 1_000.into(),
    };
    let dispatcher = Dispatcher::new(Arc::clone(services));
    match dispatcher.dispatch(&me(), Action::Composite(Composite::Terminal(Box::new(call)))).await.expect("an answer") {
        Outcome::Terminal(view) => *view,
        other => panic!("another outcome: {other:?}"),
    }
}

#[tokio::test]
// promise: once-3
async fn a_call_that_ended_the_default_session_is_answered_and_not_done_again_in_a_fresh_shell() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut services = start(&config(dir.path())).await.expect("services");
    let first = resent(&services, "echo last words; exit 5", false, "one").await;
    let told = |view: &crate::action::TerminalView| {
        let command = view.report.command.clone().map(|command| (command.id, command.status, command.exit_code));
        let exit = view.report.session.exit.clone().map(|exit| exit.reason);
        (view.report.session.id.clone(), command, exit, view.report.output.head.clone())
    };
    assert_eq!(told(&first).2.as_deref(), Some("the shell exited with 5"));
    // By the same server, by one that finds its end in the store, and by one whose predecessor was killed before it was there.
    for has_store in [None, Some(true), Some(false)] {
        if let Some(has_store) = has_store {
            lifecycle::stop(&services).await;
            drop(services);
            if !has_store {
                std::fs::remove_file(dir.path().join("store.db")).expect("there");
            }
            services = start(&config(dir.path())).await.expect("other services");
        }
        let again = resent(&services, "echo last words; exit 5", false, "one").await;
        assert_eq!((told(&again), again.fresh.is_none()), (told(&first), true), "{has_store:?}");
        assert_eq!(services.backends.holders.all().expect("folders").len(), 1, "{has_store:?}");
    }
    let next = resent(&services, "echo next", false, "two").await;
    assert!(matches!(&next.fresh, Some(Fresh::Ended { session, .. }) if *session == first.report.session.id));
    let end = Terminate { session: next.report.session.id, force: true, signo: None, grace: None, purges: false };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
}

#[tokio::test]
async fn a_line_that_another_caller_types_at_the_prompt_is_not_background_output() {
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    let session = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    run(&services, &session, "echo one").await;
    let unread = async || {
        let read = Action::Unread { session: session.clone(), budget: 1_000.into() };
        match perform(&services, &me(), &read).await.expect("read") {
            Outcome::Report(report) => report.output.head.to_string(),
            other => panic!("another outcome: {other:?}"),
        }
    };
    unread().await;
    let handle = services.sessions.live(&me(), &session).await.expect("alive");
    let background_from = async || handle.ask(Request::Look).await.expect("alive").background_from;
    let before = background_from().await;
    let typed = Action::Type { session: session.clone(), bytes: b"echo two\r".to_vec(), key: "one".to_owned() };
    perform(&services, &Principal::named("ann", Scope::Admin), &typed).await.expect("typed");
    while background_from().await == before {
        tokio::task::yield_now().await;
    }
    assert_eq!(unread().await, "");
    let end = Terminate { session, force: true, signo: None, grace: None, purges: false };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
}

#[tokio::test]
// promise: once-3
async fn repeated_input_gets_its_answer_although_its_command_has_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    let session = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    let report = async |action: Action| match perform(&services, &me(), &action).await.expect("answered") {
        Outcome::Report(report) => *report,
        other => panic!("another outcome: {other:?}"),
    };
    let wait = Wait { input_wanted: true, ..Wait::at_most(Duration::from_secs(30)) };
    let reads = Execute {
        session: session.clone(),
        command: "read -r name; (exit 3)".to_owned(),
        shell: TargetShell::Own,
        allowed_in: None,
        wait: Some(wait.clone()),
        time_limit: None,
        key: None,
        budget: Budget::NONE,
    };
    let asked = report(Action::Execute(reads)).await;
    assert_eq!(asked.ended_by, EndedBy::InputWanted);
    let input = Input {
        session: session.clone(),
        bytes: InputBytes::Raw(b"Ada\r".to_vec()),
        is_secret: false,
        is_hidden: false,
        wait: Some(wait),
        key: Some("one".to_owned()),
        budget: Budget::NONE,
        without_echo: false,
        meant_for: asked.command.map(|command| command.id),
    };
    for _ in 0..2 {
        let typed = report(Action::Input(input.clone())).await;
        assert_eq!((typed.command.and_then(|it| it.exit_code), typed.is_typed_at_prompt), (Some(3), false));
    }
    let end = Terminate { session, force: true, signo: None, grace: None, purges: false };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
}

#[tokio::test]
// promise: policy-10
async fn of_two_remembered_commands_judged_at_once_the_second_does_not_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        Some(path)
    };
    let profile = file("config.toml", "[profiles.default]\nshell = 'bash'\nrc = 'clean'\n");
    let policies = file("policy.toml", "default = 'dev'\n[policies.dev]\n");
    let cwd = dir.path().canonicalize().expect("a folder");
    let rule = "[[remembered]]\npolicy = 'dev'\ncommand = 'ls > x'\nby = 'ada'\nat = '2026-01-02'\n";
    file("policy.remembered.toml", &format!("{rule}cwd = '{}'\n", cwd.display()));
    let files = crate::config::OperatorFiles { config: profile, policies };
    let services = start(&Config { files, ..config(dir.path()) }).await.expect("services");
    let session = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
    let mut action = Action::Execute(Execute {
        session: session.clone(),
        command: "ls > x".to_owned(),
        shell: TargetShell::Foremost,
        allowed_in: None,
        wait: None,
        time_limit: None,
        key: None,
        budget: Budget::NONE,
    });
    let judged = async || judged_by_policy(&services, &action).await;
    let (first, second) = (judged().await, judged().await);
    for one in [&first, &second] {
        assert_eq!((one.verdict(), one.rule(), one.refusal().is_none()), ("allow", "remembered", true));
    }
    assert!(first.admit(&mut action).await.is_ok_and(|used| used.is_none()));
    assert!(matches!(&action, Action::Execute(Execute { shell: TargetShell::Proven(1), .. })), "{action:?}");
    let refused = second.admit(&mut action).await.expect_err("the session is not provable any more");
    assert!(
        matches!(refused, ActionError::PolicyDenied(_)) && refused.to_string().contains("send it again"),
        "{refused}"
    );
    let next = judged_by_policy(&services, &action).await;
    assert_eq!((next.verdict(), next.rule()), ("ask", "unproven"));
    let end = Terminate { session, force: true, signo: None, grace: None, purges: false };
    terminate::terminate(&services, &me(), &end).await.expect("it ends");
}

#[tokio::test]
// promise: policy-2
async fn a_proven_command_runs_only_where_nothing_unproven_came_before_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        Some(path)
    };
    let profile = file("config.toml", "[profiles.default]\nshell = 'bash'\nrc = 'clean'\n");
    let rule = |program: &str| {
        format!(
            "[[policies.dev.rules]]\nname = '{program}'\nverdict = 'allow'\nprogram = '{program}'\nmatch = ['{program}']\n"
        )
    };
    let text = format!("default = 'dev'\n[policies.dev]\n{}{}", rule("pwd"), rule("export"));
    let files = crate::config::OperatorFiles { config: profile, policies: file("policy.toml", &text) };
    let services = start(&Config { files, ..config(dir.path()) }).await.expect("services");
    for overtaken_at in ["its admission", "the hand-over", "no time"] {
        let session = create::create(&services, &me(), &request(dir.path())).await.expect("a session").session.id;
        let execute = |command: &str| {
            Action::Execute(Execute {
                session: session.clone(),
                command: command.to_owned(),
                shell: TargetShell::Foremost,
                allowed_in: None,
                wait: None,
                time_limit: None,
                key: None,
                budget: Budget::NONE,
            })
        };
        let judged = async |action: &Action| judged_by_policy(&services, action).await;
        let (mut looks, mut exports) = (execute("pwd"), execute("export PATH=/evil"));
        let (look, export) = (judged(&looks).await, judged(&exports).await);
        assert_eq!((look.verdict(), export.verdict()), ("allow", "allow"));
        let result = if overtaken_at == "its admission" {
            export.admit(&mut exports).await.expect("it is the first");
            look.admit(&mut looks).await.expect("the hand-over decides");
            perform(&services, &me(), &looks).await.map(drop)
        } else {
            look.admit(&mut looks).await.expect("it is the first");
            if overtaken_at == "the hand-over" {
                export.admit(&mut exports).await.expect("it is allowed");
            }
            perform(&services, &me(), &looks).await.map(drop)
        };
        let said = result.err().map(|refused| refused.to_string()).unwrap_or_default();
        assert_eq!(said.contains("send it again"), overtaken_at != "no time", "{overtaken_at}: {said}");
        let end = Terminate { session, force: true, signo: None, grace: None, purges: false };
        terminate::terminate(&services, &me(), &end).await.expect("it ends");
    }
}

#[tokio::test]
// promise: damage-2
async fn a_rebuild_of_the_store_that_failed_is_reported_at_once_and_tried_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let services = start(&config(dir.path())).await.expect("services");
    store_rebuild::keep_whole(&services);
    // The damaged file cannot be set aside.
    let in_the_way = dir.path().join("store.damaged");
    std::fs::create_dir_all(in_the_way.join("x")).expect("made");
    services.history.store.damage();
    while crate::mutex::locked(&services.history.next_rebuild_at).is_none() {
        tokio::task::yield_now().await;
    }
    assert!(services.history.store.is_damaged());
    let refused = services.history.query(Store::sessions).await.map(drop).expect_err("nothing can be read");
    assert!(refused.to_string().contains("the last rebuild failed; retry later"), "{refused}");
    std::fs::remove_dir_all(in_the_way).expect("removed");
    while services.history.store.whole().await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(services.history.query(Store::sessions).await.is_ok());
}
