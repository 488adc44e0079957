//! The checks of `ptyd doctor` on this machine: each returns ok, warn or fail, and a remedy.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use ptyd_core::action::ConfinementTier;
use ptyd_core::limits::{SESSIONS_MANY, SESSIONS_MAX, SOCKET_PATH_BYTES_MAX};
use ptyd_core::sessions::KernelLimit;
use serde::Serialize;

use crate::paths::Paths;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works.
    Ok,
    /// It works, with a risk.
    Warn,
    /// It does not work.
    Fail,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The subject of the check.
    pub name: &'static str,
    /// The result.
    pub state: State,
    /// The details.
    pub found: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), fix: None }
    }

    pub(crate) fn warn(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, state: State::Warn, found: found.into(), fix: Some(fix.into()) }
    }

    pub(crate) fn fail(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, state: State::Fail, found: found.into(), fix: Some(fix.into()) }
    }
}

/// All checks that need no server.
pub fn checks(paths: &Paths) -> Vec<Check> {
    let mut all = vec![
        pty(),
        splice(paths),
        of_holder(ptyd_core::sessions::holder_is_static()),
        of_confinement(ptyd_core::sessions::confinement_hindrance(ConfinementTier::Process)),
        of_sandbox(ptyd_core::sessions::confinement_hindrance(ConfinementTier::Sandbox)),
        of_container(ptyd_core::sessions::confinement_hindrance(ConfinementTier::Container)),
        syscall(),
        bash(),
        socket(&paths.socket),
        token(&paths.state_dir.join("token")),
    ];
    all.extend([state_dir(&paths.state_dir), space(&paths.state_dir)]);
    all.extend(survival());
    all.extend(ptyd_core::sessions::kernel_limits().iter().map(of_limit));
    all
}

/// How many sessions a limit of the kernel allows; a warning if they are fewer than a server allows by default.
fn of_limit(limit: &KernelLimit) -> Check {
    let found = format!("{limit}: room for {} sessions in all", limit.sessions());
    let remedy = |sessions: u64| limit.remedy(sessions).map(|remedy| format!("for {sessions} sessions: {remedy}"));
    let [usual, many] = [SESSIONS_MAX as u64, SESSIONS_MANY].map(remedy);
    let is_enough = usual.is_none();
    let fix: Vec<_> = usual.into_iter().chain(many).collect();
    Check {
        name: limit.name(),
        state: if is_enough { State::Ok } else { State::Warn },
        found,
        fix: Some(fix.join("; ")).filter(|fix| !fix.is_empty()),
    }
}

fn pty() -> Check {
    match sys::pty::Pty::open(80, 24) {
        Ok(_) => Check::ok("pty", "a terminal can be opened"),
        Err(e) => Check::fail(
            "pty",
            format!("no terminal can be opened: {e}"),
            "mount devpts on /dev/pts; check kernel.pty.max",
        ),
    }
}

fn splice(paths: &Paths) -> Check {
    let folder = existing(&paths.state_dir);
    if ptyd_core::sessions::splice_works(&folder) {
        return Check::ok("splice", "output goes from the terminal to the disk without a copy");
    }
    let found = format!("splice from a terminal into a file in {} does not work", folder.display());
    Check::warn("splice", found, "you can ignore this: ptyd copies output instead, which is slower")
}

/// Read from a child, because a process may always read itself, while the kernel decides about others (Yama).
fn of_holder(is_static: bool) -> Check {
    if is_static {
        return Check::ok("holder", "the holder is statically linked");
    }
    let fix = "build ptyd where a static C library is installed (libc6-dev, glibc-static) or Rust's musl target";
    Check::warn("holder", "the holder is dynamically linked: each session takes almost twice the memory", fix)
}

fn of_confinement(hindrance: Option<String>) -> Check {
    let Some(why) = hindrance else {
        return Check::ok("landlock", "profiles can confine sessions");
    };
    let fix = "you can ignore this unless a profile has `confinement`: its sessions do not start here";
    Check::warn("landlock", format!("confinement {why}"), fix)
}

fn of_sandbox(hindrance: Option<String>) -> Check {
    let Some(why) = hindrance else {
        return Check::ok("sandbox", "profiles can give sessions their own namespaces");
    };
    let fix = "you can ignore this unless a profile has the tier `sandbox`: its sessions do not start here";
    Check::warn("sandbox", format!("a sandbox {why}"), fix)
}

fn of_container(hindrance: Option<String>) -> Check {
    let Some(why) = hindrance else {
        return Check::ok("container", "profiles can run sessions in containers: the engine reports its version");
    };
    let fix =
        "you can ignore this unless a profile has the tier `container`: its sessions start only with another engine";
    Check::warn("container", format!("a container {why}"), fix)
}

fn syscall() -> Check {
    let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let read = child.and_then(|mut child| {
        let read = fs::read_to_string(format!("/proc/{}/syscall", child.id()));
        drop(child.stdin.take());
        child.wait().and(read)
    });
    match read {
        Ok(_) => Check::ok("proc", "/proc shows the system calls of other processes"),
        Err(e) => Check::warn(
            "proc",
            format!("/proc/<pid>/syscall of a child cannot be read: {e}"),
            "allow it (kernel with CONFIG_HAVE_ARCH_TRACEHOOK, kernel.yama.ptrace_scope 0 or 1, no hidepid, no seccomp rule); until then, only the modes of a terminal tell ptyd that a program wants input",
        ),
    }
}

/// The oldest bash whose hooks support the attestation.
const BASH_MIN: (u32, u32) = (5, 0);

fn bash() -> Check {
    let output =
        Command::new("bash").args(["--norc", "-c", "echo \"${BASH_VERSINFO[0]} ${BASH_VERSINFO[1]}\""]).output();
    let Ok(output) = output else {
        return Check::fail("bash", "there is no bash", "install it, or name another shell at each start");
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match text.trim().split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))) {
        Some(version @ (major, minor)) if version >= BASH_MIN => Check::ok("bash", format!("version {major}.{minor}")),
        Some((major, minor)) => {
            Check::warn("bash", format!("version {major}.{minor}"), "install 5.0 or newer for exact command ends")
        }
        None => Check::warn("bash", "its version is not known", "install 5.0 or newer for exact command ends"),
    }
}

fn socket(path: &Path) -> Check {
    let len = path.as_os_str().len();
    if len > SOCKET_PATH_BYTES_MAX {
        let found = format!("{} has {len} bytes, and at most {SOCKET_PATH_BYTES_MAX} fit", path.display());
        return Check::fail("socket", found, "set PTYD_RUNTIME_DIR or --socket to a shorter path");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let fix = "it belongs to another user: set PTYD_RUNTIME_DIR or --socket to a path of your own";
            Check::fail("socket", format!("{}: {error}", path.display()), fix)
        }
        Ok(stream) => match client::owner::check(&stream, path, None) {
            Ok(()) => {
                let server = rustix::net::sockopt::socket_peercred(&stream).map(|peer| peer.pid.as_raw_pid());
                let pid = server.map_or_else(|_| "unknown".to_owned(), |pid| pid.to_string());
                Check::ok("socket", format!("{}, where a server answers (pid {pid})", path.display()))
            }
            Err(error) => {
                let fix = "commands do not connect to it: set PTYD_RUNTIME_DIR or --socket to a path of your own";
                Check::fail("socket", error.to_string(), fix)
            }
        },
        Err(_) => Check::ok("socket", format!("{}, where no server runs", path.display())),
    }
}

fn token(path: &Path) -> Check {
    match fs::metadata(path) {
        Ok(meta) if meta.permissions().mode() & 0o077 == 0 => {
            Check::ok("token", format!("{} is private", path.display()))
        }
        Ok(meta) => Check::fail(
            "token",
            format!("{} can be read by others (mode {:o})", path.display(), meta.permissions().mode() & 0o777),
            format!("remove it and restart the server; others may know it: rm {}", path.display()),
        ),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Check::ok("token", "made at the first start"),
        Err(e) => Check::fail("token", format!("{}: {e}", path.display()), "make it readable for you, or remove it"),
    }
}

fn state_dir(path: &Path) -> Check {
    let there = existing(path);
    match rustix::fs::access(&there, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
        // A directory that does not exist yet will be created private.
        Ok(()) if there == path => match ptyd_core::state_dir::check_private(path) {
            Ok(()) => Check::ok("state", path.display().to_string()),
            Err(e) => Check::fail("state", e.to_string(), "ptyd serve refuses it"),
        },
        Ok(()) => Check::ok("state", path.display().to_string()),
        Err(e) => Check::fail(
            "state",
            format!("{} cannot be written: {e}", there.display()),
            "set PTYD_STATE_DIR to a directory of your own",
        ),
    }
}

/// Below this, sessions will soon wait for disk space.
const SPACE_LOW: u64 = 1 << 30;
/// Below this, they wait at once.
const SPACE_NONE: u64 = 64 << 20;

fn space(state_dir: &Path) -> Check {
    let folder = existing(state_dir);
    match rustix::fs::statvfs(&folder).map(|s| s.f_bavail.saturating_mul(s.f_frsize)) {
        Ok(free) => of_space(free),
        Err(e) => Check::warn("disk", format!("{}: {e}", folder.display()), "check the file system"),
    }
}

fn of_space(free: u64) -> Check {
    let found = format!("{} MiB are free", free >> 20);
    let fix = "free disk space, or move PTYD_STATE_DIR; programs wait while their output cannot be written";
    match free {
        ..SPACE_NONE => Check::fail("disk", found, fix),
        SPACE_NONE..SPACE_LOW => Check::warn("disk", found, fix),
        SPACE_LOW.. => Check::ok("disk", found),
    }
}

/// Conditions that end sessions although the server is meant to outlive its starter.
fn survival() -> Vec<Check> {
    let init = fs::read_to_string("/proc/1/comm").unwrap_or_default();
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut logind = fs::read_to_string("/etc/systemd/logind.conf").unwrap_or_default();
    for part in fs::read_dir("/etc/systemd/logind.conf.d").into_iter().flatten().flatten() {
        logind.push('\n');
        logind.push_str(&fs::read_to_string(part.path()).unwrap_or_default());
    }
    let has_systemd = Path::new("/run/systemd/system").exists();
    vec![of_init(init.trim(), has_systemd), of_cgroup(&cgroup), of_logind(has_systemd, &logind)]
}

fn of_init(init: &str, has_systemd: bool) -> Check {
    if has_systemd || init == "init" {
        return Check::ok("init", format!("process 1 is {init}"));
    }
    Check::warn(
        "init",
        format!("process 1 is {init}: this looks like a container, and everything ends with that process"),
        "if sessions must outlive the server, do not make `ptyd serve` process 1 of the container; keep the state \
         directory in a volume",
    )
}

fn of_cgroup(cgroup: &str) -> Check {
    let unit = cgroup.lines().filter_map(|l| l.rsplit('/').next()).find(|u| u.ends_with(".service"));
    match unit {
        Some(unit) if !unit.starts_with("user@") => Check::warn(
            "unit",
            format!(
                "this runs inside {unit}; stopping that unit ends everything in it unless it says KillMode=process"
            ),
            "run `ptyd service install`: its unit says KillMode=process",
        ),
        Some(_) | None => Check::ok("unit", "stopping a service does not end the sessions"),
    }
}

fn of_logind(has_systemd: bool, logind: &str) -> Check {
    let last = logind.lines().filter_map(|l| l.trim().strip_prefix("KillUserProcesses=")).next_back();
    let kills = last.is_some_and(|v| matches!(v.trim().to_ascii_lowercase().as_str(), "yes" | "true" | "1" | "on"));
    if has_systemd && kills {
        let fix = "loginctl enable-linger; ptyd then starts its server in a separate scope";
        return Check::warn("logout", "logind ends all of a user's processes at logout (KillUserProcesses=yes)", fix);
    }
    Check::ok("logout", "sessions stay when you log out")
}

/// The directory, or its nearest existing parent.
fn existing(path: &Path) -> PathBuf {
    path.ancestors().find(|p| p.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctor_warns_of_events_that_would_end_sessions() {
        let state = |check: Check| (check.state, check.fix.is_some());
        assert_eq!(state(of_init("tini", false)), (State::Warn, true));
        assert_eq!(state(of_init("systemd", true)), (State::Ok, false));
        assert_eq!(state(of_cgroup("0::/system.slice/agent.service\n")), (State::Warn, true));
        assert_eq!(
            state(of_cgroup("0::/user.slice/user-1.slice/user@1.service/app.slice/x.scope\n")),
            (State::Ok, false)
        );
        assert_eq!(state(of_logind(true, "#KillUserProcesses=no\nKillUserProcesses=yes\n")), (State::Warn, true));
        assert_eq!(state(of_logind(true, "KillUserProcesses=yes\nKillUserProcesses=no\n")), (State::Ok, false));
    }

    #[test]
    // promise: cli-8
    fn a_dynamic_holder_is_a_warning() {
        assert_eq!([of_holder(true).state, of_holder(false).state], [State::Ok, State::Warn]);
        let confined = [of_confinement(None), of_confinement(Some("needs Landlock".to_owned()))];
        assert_eq!(confined.map(|check| check.state), [State::Ok, State::Warn]);
        let sandboxed = [of_sandbox(None), of_sandbox(Some("needs namespaces".to_owned()))];
        assert_eq!(sandboxed.map(|check| check.state), [State::Ok, State::Warn]);
        let contained = [of_container(None), of_container(Some("needs podman or docker".to_owned()))];
        assert_eq!(contained.map(|check| check.state), [State::Ok, State::Warn]);
    }

    #[test]
    fn little_disk_space_is_a_warning_and_a_full_disk_is_a_failure() {
        assert_eq!(
            [10 << 20, 500 << 20, 5 << 30].map(|free| of_space(free).state),
            [State::Fail, State::Warn, State::Ok]
        );
    }

    #[test]
    fn a_token_that_others_can_read_and_a_socket_path_that_does_not_fit_are_failures() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token");
        assert_eq!(token(&path).state, State::Ok);
        fs::write(&path, "t").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("loosened");
        assert_eq!(token(&path).state, State::Fail);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("tightened");
        assert_eq!(token(&path).state, State::Ok);
        assert_eq!(socket(Path::new(&format!("/{}", "x".repeat(107)))).state, State::Fail);
    }
}
