//! `service`: writes the units of systemd for this user's server or the machine's, and removes them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::{Args, Subcommand};
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;

use crate::exit::Failure;
use crate::paths::Paths;
use crate::{print, stop};

/// The first line of our units. A file without it is not ours.
const MARK: &str = "# Written by ptyd service install, and removed by ptyd service uninstall.";
const UNITS: [&str; 2] = ["ptyd.service", "ptyd.socket"];
/// The first version that starts a service in a subgroup of its own group (DelegateSubgroup=).
const DIVIDES_GROUPS: u32 = 254;

const AFTER_HELP: &str = "The units are ptyd.service and ptyd.socket. The socket stays open while the server restarts, \
 so clients can connect. The units start the server with the --state-dir and --config of this command.";

/// The options of `service`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ServiceOptions {
    #[command(subcommand)]
    what: ServiceCommand,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// Write the units that fit this machine's systemd, and start them if it runs
    Install {
        #[command(flatten)]
        manager: Manager,
        /// Print the units, and write nothing
        #[arg(long)]
        print: bool,
    },
    /// Stop the server of the units, and remove them; its sessions keep running
    Uninstall {
        #[command(flatten)]
        manager: Manager,
    },
}

#[derive(Debug, Clone, Copy, Args)]
struct Manager {
    /// Use this user's systemd [default]
    #[arg(long, conflicts_with = "system")]
    user: bool,
    /// Use the machine's systemd, as root
    #[arg(long)]
    system: bool,
}

impl Manager {
    fn is_system(self) -> bool {
        self.system
    }

    /// The folder of the units (systemd.unit(5)).
    fn folder(self) -> Result<PathBuf, Failure> {
        if self.is_system() {
            return Ok("/etc/systemd/system".into());
        }
        let xdg = Xdg::new().map_err(|_| Failure::new("there is no home directory: set HOME"))?;
        Ok(xdg.config_dir().join("systemd/user"))
    }

    /// The command with these arguments, as a person would type it.
    fn shown(self, arguments: &[&str]) -> String {
        let user = if self.is_system() { "" } else { " --user" };
        format!("systemctl{user} {}", arguments.join(" "))
    }

    fn systemctl(self, arguments: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new("systemctl");
        command.args((!self.is_system()).then_some("--user")).args(arguments).stdin(Stdio::null());
        let shown = self.shown(arguments);
        print::note(format_args!("{shown}"));
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::new(format!("{shown}: {status}"))),
            Err(error) => Err(Failure::new(format!("{shown}: {error}"))),
        }
    }
}

/// Runs the subcommand.
pub fn service(paths: &Paths, options: &ServiceOptions) -> Result<ExitCode, Failure> {
    match options.what {
        ServiceCommand::Install { manager, print: true } => {
            let program = std::env::current_exe()?;
            let texts = units(paths, &program, manager.is_system(), version().unwrap_or(0));
            for (name, text) in UNITS.iter().zip(texts) {
                print::data(format!("# {}\n{text}\n", manager.folder()?.join(name).display()))?;
            }
        }
        ServiceCommand::Install { manager, print: false } => install(paths, manager)?,
        ServiceCommand::Uninstall { manager } => uninstall(manager)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn install(paths: &Paths, manager: Manager) -> Result<(), Failure> {
    let version =
        version().ok_or_else(|| Failure::new("systemctl --version names no version: is systemd installed?"))?;
    let folder = manager.folder()?;
    if let Some(file) = UNITS.map(|name| folder.join(name)).iter().find(|file| is_foreign(file)) {
        return Err(Failure::new(format!("{}: ptyd has not written this file; move it away first", file.display())));
    }
    fs::create_dir_all(&folder)?;
    let texts = units(paths, &std::env::current_exe()?, manager.is_system(), version);
    for (name, text) in UNITS.iter().zip(texts) {
        let file = folder.join(name);
        fs::write(&file, text).map_err(|e| Failure::new(format!("{}: {e}", file.display())))?;
        print::note(format_args!("wrote {}", file.display()));
    }
    let enable: Vec<&str> = std::iter::once("enable").chain(UNITS).collect();
    if !is_running() {
        let first = manager.shown(&["daemon-reload"]);
        let (second, third) = (manager.shown(&enable), manager.shown(&["start", "ptyd.socket", "ptyd.service"]));
        print::note(format_args!("systemd does not run here; once it does: {first} && {second} && {third}"));
        return Ok(());
    }
    manager.systemctl(&["daemon-reload"])?;
    manager.systemctl(&enable)?;
    // In this order, clients that lose the server of before find the socket, and start no server of their own.
    manager.systemctl(&["start", "ptyd.socket"])?;
    stop::end_server(&paths.state_dir)?;
    manager.systemctl(&["start", "ptyd.service"])
}

fn uninstall(manager: Manager) -> Result<(), Failure> {
    let folder = manager.folder()?;
    let files = UNITS.map(|name| folder.join(name));
    if let Some(file) = files.iter().find(|file| is_foreign(file)) {
        return Err(Failure::new(format!("{}: ptyd has not written this file; nothing was removed", file.display())));
    }
    if !files.iter().any(|file| file.exists()) {
        return Err(Failure::new(format!("{}: no unit of ptyd is installed", folder.display())));
    }
    if is_running() {
        // The socket first, so that no client starts the service again.
        manager.systemctl(&["disable", "--now", "ptyd.socket", "ptyd.service"])?;
    }
    files.into_iter().chain(links(&folder)).filter(|file| fs::symlink_metadata(file).is_ok()).try_for_each(|file| {
        fs::remove_file(&file).map_err(|e| Failure::new(format!("{}: {e}", file.display())))?;
        print::note(format_args!("removed {}", file.display()));
        Ok::<_, Failure>(())
    })?;
    // Those that are empty now; others stay.
    let wants =
        ["default.target.wants", "multi-user.target.wants", "sockets.target.wants"].map(|name| folder.join(name));
    let emptied = wants.iter().map(PathBuf::as_path).chain(folder.ancestors().take(2));
    emptied.for_each(|folder| drop(fs::remove_dir(folder)));
    if is_running() {
        manager.systemctl(&["daemon-reload"])?;
    }
    Ok(())
}

/// The links by which the units are enabled.
fn links(folder: &Path) -> Vec<PathBuf> {
    let wanted = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let wanted = wanted.filter(|path| path.extension().is_some_and(|extension| extension == "wants"));
    wanted.flat_map(|path| UNITS.map(|name| path.join(name))).collect()
}

/// Whether a file is in the place of one of our units that we have not written.
fn is_foreign(file: &Path) -> bool {
    match fs::read(file) {
        Ok(text) => !text.starts_with(MARK.as_bytes()),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether systemd is process 1 (sd_booted(3)).
fn is_running() -> bool {
    Path::new("/run/systemd/system").exists()
}

/// The version of the installed systemd.
fn version() -> Option<u32> {
    let output = Command::new("systemctl").arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The texts of the units.
fn units(paths: &Paths, program: &Path, is_system: bool, version: u32) -> [String; 2] {
    let mut command = format!("{} serve --state-dir {}", word(program), word(&paths.state_dir));
    if let Some(config) = &paths.config {
        command.push_str(&format!(" --config {}", word(config)));
    }
    let groups = if version >= DIVIDES_GROUPS {
        "# The unit's group is the server's to divide, so that sessions can be limited.\nDelegate=yes\nDelegateSubgroup=ptyd-server\n"
    } else {
        "# This systemd could not start the unit again if the server divided the unit's group (Delegate=).\n"
    };
    let target = if is_system { "multi-user.target" } else { "default.target" };
    let service = format!(
        "{MARK}
[Unit]
Description=ptyd, terminals for agents

[Service]
Type=notify
ExecStart={command}
# Holders and their shells are in this unit's group and must outlive the server.
KillMode=process
{groups}# For 4,000 sessions.
LimitNOFILE=24576
TasksMax=infinity
# A program in a session that runs out of memory must not stop the unit.
OOMPolicy=continue
WatchdogSec=1min
Restart=on-failure
RestartSec=1

[Install]
WantedBy={target}
Also=ptyd.socket
"
    );
    let socket = format!(
        "{MARK}
[Unit]
Description=The socket of ptyd

[Socket]
ListenStream={}
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
",
        specified(&paths.socket)
    );
    [service, socket]
}

/// A path without specifiers (systemd.unit(5)).
fn specified(path: &Path) -> String {
    path.display().to_string().replace('%', "%%")
}

/// A path as a word of a command (systemd.service(5)).
fn word(path: &Path) -> String {
    let text = specified(path).replace('\\', r"\\").replace('"', r#"\""#).replace('$', "$$");
    let is_plain = |c: char| c.is_alphanumeric() || "/_-.+@:%".contains(c);
    if text.chars().all(is_plain) { text } else { format!("\"{text}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: service-3
    fn a_unit_keeps_a_path_as_it_is_and_divides_its_group_only_where_systemd_can() {
        let paths = Paths {
            state_dir: "/a b/50%".into(),
            socket: "/a b/50%/ptyd.sock".into(),
            config: Some("/c$d/\"e\".toml".into()),
            url: None,
        };
        let [service, socket] = units(&paths, Path::new("/opt/ptyd"), false, DIVIDES_GROUPS);
        let line = r#"ExecStart=/opt/ptyd serve --state-dir "/a b/50%%" --config "/c$$d/\"e\".toml""#;
        assert!(service.lines().any(|it| it == line), "{service}");
        assert!(socket.lines().any(|it| it == "ListenStream=/a b/50%%/ptyd.sock"), "{socket}");
        assert!(service.contains("\nDelegate=yes\nDelegateSubgroup=ptyd-server\n"), "{service}");
        assert!(service.contains("\nWantedBy=default.target\n"), "{service}");
        let [older, _] = units(&paths, Path::new("/opt/ptyd"), true, DIVIDES_GROUPS - 1);
        assert!(!older.contains("\nDelegate"), "{older}");
        assert!(older.contains("\nWantedBy=multi-user.target\n"), "{older}");
    }
}
