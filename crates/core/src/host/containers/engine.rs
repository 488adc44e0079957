//! The command line of a container engine: podman, docker, or another program that takes the same one.

use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wire::Rules;

use crate::ids::SessionId;
use crate::limits;

/// The engines that are looked for where none is named.
const ENGINES: [&str; 2] = ["podman", "docker"];
/// How much of what an engine says is quoted: its last lines have the reason.
const QUOTED_CHARS_MAX: usize = 600;
/// How much of it is read.
const SAID_BYTES_MAX: u64 = 64 << 10;

/// The container of a session, as its profile asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContainerSettings {
    /// A name or a path.
    pub(crate) engine: String,
    pub(crate) image: String,
    /// The OCI runtime; the engine's own choice without one.
    pub(crate) runtime: Option<String>,
    /// The user; the image's own without one.
    pub(crate) user: Option<String>,
}

impl ContainerSettings {
    /// The arguments that start the container of this session with these programs as its first process; `ours` is shown at a
    /// place.
    pub(super) fn run(
        &self,
        id: &SessionId,
        (ours, at): (&Path, &Path),
        rules: &Rules,
        first: &[&Path; 3],
    ) -> Result<Vec<String>, String> {
        let mut all: Vec<String> = ["run", "--detach", "--rm", "--pull", "never", "--name"].map(str::to_owned).into();
        all.push(name(id));
        all.extend(["--label".to_owned(), format!("ptyd.session={id}")]);
        // The first process ignores other signals, as the kernel has it for one of a pid namespace, and says nothing.
        all.extend(["--stop-signal", "KILL", "--log-driver", "none", "--workdir", "/"].map(str::to_owned));
        // A check of an image's would be run beside the session, without its rules.
        all.push("--no-healthcheck".to_owned());
        // It needs nothing, and the shell has its own rules. SELinux would not let it use the socket.
        all.extend(["--cap-drop", "ALL", "--security-opt", "label=disable"].map(str::to_owned));
        if !rules.network {
            all.extend(["--network", "none"].map(str::to_owned));
        }
        for (option, value) in [("--runtime", &self.runtime), ("--user", &self.user)] {
            all.extend(value.iter().flat_map(|value| [option.to_owned(), value.clone()]));
        }
        all.extend(["--mount".to_owned(), mount(ours, at, false)?]);
        let (readable, writable) =
            (rules.readable.iter().map(|it| (it, false)), rules.writable.iter().map(|it| (it, true)));
        for (path, can_change) in readable.chain(writable) {
            all.extend(["--mount".to_owned(), mount(path, path, can_change)?]);
        }
        let [program, arguments @ ..] = first.map(|word| word.display().to_string());
        all.extend(["--entrypoint".to_owned(), program, self.image.clone()]);
        all.extend(arguments);
        Ok(all)
    }
}

/// The name of a session's container.
fn name(id: &SessionId) -> String {
    format!("ptyd-{id}")
}

/// A bind mount in the form that both engines read, in which a comma separates the fields.
fn mount(source: &Path, target: &Path, can_change: bool) -> Result<String, String> {
    let checked = |path: &Path| match path.to_str().filter(|text| !text.contains([',', '"', '\n'])) {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("{} cannot be mounted: its name has a comma, a quote or no text", path.display())),
    };
    let only_read = if can_change { "" } else { ",readonly" };
    Ok(format!("type=bind,source={},target={}{only_read}", checked(source)?, checked(target)?))
}

/// Ends and removes a session's container; no error if there is none any more.
pub(super) fn remove(engine: &str, id: &SessionId, said: &Path) -> Result<(), String> {
    // Also the volumes that its image asks for, which have no name.
    let arguments = ["rm", "--force", "--volumes", &name(id)].map(str::to_owned);
    match run(engine, &arguments, said, limits::CONTAINER_ENDS) {
        Err(EngineError::Failed(why)) if is_gone(&why) => Ok(()),
        removed => removed.map_err(EngineError::reason),
    }
}

/// Whether an engine says that there is no such container, or that it is removing it, because `--rm` has asked for that before.
fn is_gone(said: &str) -> bool {
    let said = said.to_lowercase();
    ["no such container", "is already in progress"].iter().any(|words| said.contains(words))
}

/// Why an engine has not done what it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EngineError {
    /// It was not executed.
    NotExecuted(String),
    Failed(String),
}

impl EngineError {
    pub(super) fn reason(self) -> String {
        match self {
            Self::NotExecuted(why) | Self::Failed(why) => why,
        }
    }
}

/// Runs an engine to its end; what it says goes into this file, and is the error if it fails.
pub(super) fn run(engine: &str, arguments: &[String], said: &Path, longest: Duration) -> Result<(), EngineError> {
    use EngineError::{Failed, NotExecuted};
    let file = std::fs::File::create(said).map_err(|e| NotExecuted(format!("{}: {e}", said.display())))?;
    let mut command = Command::new(engine);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).current_dir("/");
    let child = match spawned(&mut command) {
        Ok(child) => child,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(NotExecuted(missing(engine))),
        Err(e) => return Err(NotExecuted(format!("{engine}: {e}"))),
    };
    match ends(child, longest) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failed(format!("{engine}: {}", quoted(said)))),
        Err(e) if e.kind() == io::ErrorKind::TimedOut => {
            Err(Failed(format!("{engine} does not end within {} s: {}", longest.as_secs(), quoted(said))))
        }
        Err(e) => Err(Failed(format!("{engine}: {e}"))),
    }
}

/// Starts it in a process group of its own, without the settings of this server.
fn spawned(command: &mut Command) -> io::Result<Child> {
    // The server's token is among its own settings, and an engine may pass its variables on to a container.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PTYD_")) {
        command.env_remove(name);
    }
    command.process_group(0).spawn()
}

/// Whether a program ends well; one that takes longer is killed with its process group.
fn ends(mut child: Child, longest: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
    let pid = Pid::from_child(&child);
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
    // It becomes readable at the end of the process (pidfd_open(2)).
    let ended = rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&longest)))?;
    if ended == 0 {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait()?;
    if ended == 0 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(status.success()) }
}

/// The end of what an engine has said, on one line.
fn quoted(said: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(said)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(SAID_BYTES_MAX)))?;
        let mut bytes = Vec::new();
        file.take(SAID_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    shown(&String::from_utf8_lossy(&read().unwrap_or_default()))
}

fn shown(said: &str) -> String {
    let words: Vec<_> =
        said.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.is_empty() {
        return "it gives no reason".to_owned();
    }
    let cut = line.chars().count().saturating_sub(QUOTED_CHARS_MAX);
    let end: String = line.chars().skip(cut).collect();
    if cut == 0 { end } else { format!("…{end}") }
}

/// The engine for a profile that names none: the first that is installed, else the first of all.
pub(crate) fn usual() -> String {
    ENGINES.into_iter().find(|name| is_installed(name)).unwrap_or(ENGINES[0]).to_owned()
}

/// Whether there is such a program, by its path or on the server's PATH.
pub(super) fn is_installed(engine: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match engine.contains('/') {
        true => is_executable(Path::new(engine)),
        false => std::env::split_paths(&path).any(|folder| is_executable(&folder.join(engine))),
    }
}

fn is_executable(program: &Path) -> bool {
    std::fs::metadata(program).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// The error of an engine that is not installed.
pub(super) fn missing(engine: &str) -> String {
    format!("there is no program {engine:?} here: install it, or name another one")
}

/// Why the usual engine cannot be used; `None` if it answers. docker asks its daemon for this.
pub(super) fn hindrance() -> Option<String> {
    let engine = usual();
    let mut command = Command::new(&engine);
    command.arg("version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    let why = match spawned(&mut command).and_then(|child| ends(child, limits::CONTAINER_ENGINE_ANSWERS)) {
        Ok(true) => return None,
        Ok(false) => format!("`{engine} version` fails"),
        Err(e) if e.kind() == io::ErrorKind::NotFound => "neither is installed".to_owned(),
        Err(e) => format!("`{engine} version`: {e}"),
    };
    Some(format!("needs podman or docker: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: access-16
    fn an_engine_gets_the_profiles_settings_and_no_network_by_default() {
        let settings = ContainerSettings {
            engine: "podman".to_owned(),
            image: "localhost/x:1".to_owned(),
            runtime: Some("runsc".to_owned()),
            user: Some("app".to_owned()),
        };
        let rules = Rules { readable: vec!["/data".into()], writable: vec!["/work".into()], ..Rules::default() };
        let (id, first) = (SessionId::random(0), [Path::new("/.p/i"), Path::new("--f"), Path::new("/.p/s")]);
        let asked = |rules: &Rules| settings.run(&id, (Path::new("/s"), Path::new("/.p")), rules, &first);
        let line = asked(&rules).expect("asked").join(" ");
        let end = "--network none --runtime runsc --user app --mount type=bind,source=/s,target=/.p,readonly --mount \
                   type=bind,source=/data,target=/data,readonly --mount type=bind,source=/work,target=/work --entrypoint /.p/i \
                   localhost/x:1 --f /.p/s";
        assert!(line.ends_with(end) && line.starts_with("run --detach --rm --pull never"), "{line}");
        assert!(line.contains(" --no-healthcheck "), "{line}");
        assert!(!asked(&Rules { network: true, ..rules }).expect("asked").contains(&"--network".to_owned()));
        let comma = Rules { readable: vec!["/a,readwrite".into()], ..Rules::default() };
        assert!(asked(&comma).is_err_and(|why| why.contains("/a,readwrite cannot be mounted")));
    }

    #[test]
    fn an_engines_message_is_one_bounded_line() {
        assert_eq!(shown(" Error:\n\u{1b}[31m no\timage \n"), "Error: [31m no image");
        assert_eq!(shown("\n"), "it gives no reason");
        let long = shown(&"word ".repeat(10_000));
        assert!(long.starts_with('…') && long.chars().count() == QUOTED_CHARS_MAX + 1);
    }

    #[test]
    // promise: access-16
    fn a_container_that_its_engine_has_removed_or_removes_is_gone() {
        for said in [
            "Error: no container with ID or name \"ptyd-x\" found: no such container",
            "Error response from daemon: No such container: ptyd-x",
            "Error response from daemon: removal of container ptyd-x is already in progress",
        ] {
            assert!(is_gone(said), "{said}");
        }
        assert!(!is_gone("Cannot connect to the Docker daemon at unix:///var/run/docker.sock"));
    }

    /// Waits for the end of a process; false if it does not come.
    fn has_ended(pid: i32) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
        let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { return true };
        let longest = Timespec { tv_sec: 5, tv_nsec: 0 };
        poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&longest)).expect("polled") > 0
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_and_a_missing_one_is_reported() {
        let said = tempfile::NamedTempFile::new().expect("a file");
        let run = |engine: &str, arguments: &[&str], longest| {
            let arguments: Vec<_> = arguments.iter().map(|one| (*one).to_owned()).collect();
            run(engine, &arguments, said.path(), longest).map_err(EngineError::reason)
        };
        assert_eq!(run("true", &[], limits::CONTAINER_ENDS), Ok(()));
        let said = run("sh", &["-c", "echo why >&2; exit 1"], limits::CONTAINER_ENDS);
        assert_eq!(said, Err("sh: why".to_owned()));
        let long = run("sh", &["-c", "seq 50000 >&2; echo the reason >&2; exit 1"], limits::CONTAINER_ENDS);
        assert!(long.is_err_and(|why| why.ends_with("49999 50000 the reason")));
        let hangs = run("sleep", &["600"], Duration::from_millis(1));
        assert!(hangs.is_err_and(|why| why.contains("does not end")));
        // Its own processes are killed with it.
        let hangs = run("sh", &["-c", "sleep 600 & echo $! >&2; wait"], Duration::from_secs(1));
        let said = hangs.expect_err("it hangs");
        let child = said.rsplit(' ').next().and_then(|pid| pid.parse().ok()).expect("its child's pid");
        assert!(has_ended(child), "{said}");
        assert!(run("/nonexistent", &[], limits::CONTAINER_ENDS).is_err_and(|why| why.contains("there is no program")));
    }
}
