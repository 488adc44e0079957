//! Attacks on the confinement of a session, and the checks that each confined session has to pass.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use api::{
    Boundary, ConfinementTier, Dimensions, EndedBy, NumberOrName, Process, ProcessState, SignalRequest, WaitRequest,
};

use crate::shells::Dialect;
use crate::{Pid, Server, Session, eventually, lacks};

/// A file and shared memory that all programs of the machine may use.
pub struct Shared {
    file: tempfile::NamedTempFile,
    memory: fs::File,
    segment: String,
}

impl Shared {
    /// In the machine's folders; the segment by ipcmk(1).
    pub fn make() -> Self {
        let file = tempfile::Builder::new().prefix("ptyd-e2e-").tempfile_in("/tmp").expect("made");
        let name = file.path().file_name().expect("it has one");
        let memory = fs::File::create(Path::new("/dev/shm").join(name)).expect("made");
        for shared in [file.as_file(), &memory] {
            shared.set_permissions(fs::Permissions::from_mode(0o666)).expect("ours");
        }
        let made = Command::new("ipcmk").args(["-M", "4096", "-p", "0666"]).output().expect("util-linux has it");
        let said = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let segment = said.rsplit(' ').next().expect("a number").to_owned();
        Self { file, memory, segment }
    }

    /// The variables that name them to the attacks.
    pub fn variables(&self) -> String {
        format!("OUTSIDE={} SEGMENT={}", self.file.path().display(), self.segment)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let name = self.file.path().file_name().expect("it has one");
        let _ = fs::remove_file(Path::new("/dev/shm").join(name));
        let _ = Command::new("ipcrm").args(["-m", &self.segment]).status();
        assert_eq!(self.memory.metadata().map(|m| m.len()).ok(), Some(0), "nobody has written");
    }
}

/// The attacks' output in this session, with these variables.
pub async fn attacks_of(
    server: &Server,
    shell: &Session,
    other: &Session,
    tier: ConfinementTier,
    variables: &str,
) -> String {
    let terminal = other.gives("tty").await.1;
    fs::write(server.home().file("work").join("attacks.py"), ATTACKS).expect("written");
    let places = [server.home().path().to_owned(), server.home().state(), server.home().socket()];
    let [home, state, socket] = places.map(|path| path.display().to_string());
    let shell_pid = Pid::new(shell.look().await.pid.expect("it lives"));
    let holder = shell_pid.parent().expect("its holder").number();
    let pids = format!("{} {holder}", server.pid().number());
    let tier = serde_json::to_value(tier).expect("a name");
    let attacks = format!(
        "{variables} {PYTHON} attacks.py {home} {state} {socket} {pids} {} {} {}",
        other.id,
        terminal.trim(),
        tier.as_str().expect("a name"),
    );
    shell.gives(&attacks).await.1
}

/// Settings of a project by which programs outside run something, in this folder.
pub fn make_settings(project: &Path) {
    for folder in [".git/hooks", ".git/refs", ".vscode"] {
        fs::create_dir_all(project.join(folder)).expect("made");
    }
    for file in SETTINGS {
        fs::write(project.join(file), "its user's\n").expect("written");
    }
}

/// The commands that change those settings, in this session of a container or a sandbox, are refused, and all others in the
/// project are not.
pub async fn keeps_settings(shell: &Session, project: &Path) {
    for setting in SETTINGS {
        for change in [
            format!("echo mine >{setting}"),
            format!("rm -f {setting}"),
            format!("echo mine >new && mv -f new {setting}"),
            format!("mv {setting} aside"),
            format!("ln -sf new {setting}"),
            format!("chmod 777 {setting}"),
        ] {
            assert_ne!(shell.gives(&change).await.0, 0, "{change}");
        }
        assert_eq!(fs::read_to_string(project.join(setting)).expect("there"), "its user's\n", "{setting}");
    }
    for change in
        ["mv .git aside", "rm -rf .git", "rm -rf .git/hooks", "echo mine >.git/hooks/post-commit", "mv .vscode aside"]
    {
        assert_ne!(shell.gives(change).await.0, 0, "{change}");
    }
    let works = "echo its >file && mkdir -p folder && echo its >.git/index.lock && mv .git/index.lock .git/index && cat .git/index";
    assert_eq!(shell.gives(works).await, (0, "its\n".to_owned()));
}

/// A confined session has questions, jobs, signals and waits as any other.
pub async fn is_used(server: &Server, shell: &Session, dialect: Dialect) {
    let name = dialect.name();
    assert_eq!(shell.run("true").await.boundary, Boundary::Attested, "{name}");
    server.client().resize(&shell.id, Dimensions { cols: 101, rows: 33 }).await.expect("it lives");
    assert_eq!(shell.gives("stty size").await.1, "33 101\n", "{name}");
    // A program in a terminal of its own asks, too.
    if !lacks(&["script"]) {
        let asked = shell.run("script -qec 'head -n 1' /dev/null").await;
        assert_eq!(asked.ended_by, Some(EndedBy::InputWanted), "{name}");
        assert!(shell.types("nested").await.output.contains("nested"), "{name}");
    }
    let asked = shell.run("sh -c 'stty -echo; read line; stty echo; echo got $line'").await;
    assert_eq!(asked.ended_by, Some(EndedBy::InputWanted), "{name}");
    assert!(shell.types("secret").await.output.ends_with("got secret\n"), "{name}");
    // Jobs.
    let begun = shell.begin("sleep 812").await;
    let sleeping = eventually("it runs", async || one(server, shell, "sleep 812").await).await;
    let inside = sleeping.sandbox_pid.expect("in a sandbox");
    assert!(inside != sleeping.pid && inside < 1_000, "{sleeping:?}");
    shell.signal("TSTP").await;
    shell.end_of(&begun).await;
    let is_stopped = |it: &Process| it.state == ProcessState::Stopped;
    eventually("it is stopped", async || one(server, shell, "sleep 812").await.filter(is_stopped)).await;
    shell.run("bg").await;
    // By the number that programs of the sandbox know, and by the machine's.
    assert_eq!(shell.gives(&format!("kill -0 {inside}")).await.0, 0, "{name}");
    let (signal, target) = (NumberOrName::Name("KILL".to_owned()), Some(NumberOrName::Number(sleeping.pid)));
    server.client().signal(&shell.id, &SignalRequest { signal, target }).await.expect("sent");
    eventually("it is gone", async || one(server, shell, "sleep 812").await.is_none().then_some(())).await;
    let files = vec!["file:/tmp/ready".to_owned()];
    let begun = shell.begin("sh -c 'sleep 0.3; echo >/tmp/ready; exec sleep 60'").await;
    let waited = shell.wait(&WaitRequest { until: files, timeout: Some(20.0), ..WaitRequest::default() }).await;
    assert_eq!(waited.ended_by, EndedBy::Matched, "{name}");
    shell.signal("INT").await;
    assert_eq!(shell.end_of(&begun).await.signal.as_deref(), Some("INT"), "{name}");
}

/// The process with this command line.
pub async fn one(server: &Server, shell: &Session, line: &str) -> Option<Process> {
    let all = server.client().processes(&shell.id).await.expect("known").processes;
    assert!(all.iter().all(|it| !it.name.starts_with("ptyd")), "{all:?}");
    all.into_iter().find(|it| it.command_line == line)
}

/// Programs that try to get out.
pub const ATTACKS: &str = include_str!("attacks.py");

/// The system's own: one in a home would be hidden.
pub const PYTHON: &str = "/usr/bin/python3";

/// Files of a project that programs outside of a session obey.
pub const SETTINGS: [&str; 5] =
    [".git/config", ".git/hooks/pre-commit", ".envrc", ".vscode/settings.json", ".mcp.json"];
