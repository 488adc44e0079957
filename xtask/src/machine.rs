//! What the tests need of a machine, and getting it on Debian and Ubuntu. Nothing is installed without a word why.

use crate::workspace;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

enum Probe {
    Program(&'static str),
    /// One that is on no user's path.
    File(&'static str),
    PythonModules(&'static str),
}

struct Need {
    probe: Probe,
    package: &'static str,
    why: &'static str,
}

const NEEDS: [Need; 29] = [
    Need { probe: Probe::Program("cc"), package: "gcc", why: "it links the programs and compiles the bundled SQLite" },
    Need { probe: Probe::Program("bash"), package: "bash", why: "the tests run real shells" },
    Need { probe: Probe::Program("zsh"), package: "zsh", why: "the tests run real shells, and its script is linted" },
    Need { probe: Probe::Program("fish"), package: "fish", why: "the tests run real shells, and its script is linted" },
    Need { probe: Probe::Program("dash"), package: "dash", why: "the tests run real shells" },
    Need { probe: Probe::Program("mksh"), package: "mksh", why: "the tests run real shells" },
    Need { probe: Probe::Program("busybox"), package: "busybox", why: "the tests run real shells" },
    Need { probe: Probe::Program("sqlite3"), package: "sqlite3", why: "a program that reads commands and is no shell" },
    Need { probe: Probe::Program("ssh"), package: "openssh-client", why: "a shell over ssh, on loopback" },
    Need { probe: Probe::File("/usr/sbin/sshd"), package: "openssh-server", why: "a shell over ssh, on loopback" },
    Need { probe: Probe::Program("sudo"), package: "sudo", why: "another user's shell" },
    Need { probe: Probe::Program("podman"), package: "podman", why: "a shell in a container, without a registry" },
    Need { probe: Probe::Program("nix-shell"), package: "nix-bin", why: "a shell of nix's, without its packages" },
    Need {
        probe: Probe::Program("python3"),
        package: "python3",
        why: "the MCP suite is written against the Python SDK",
    },
    Need {
        probe: Probe::PythonModules("ensurepip, venv"),
        package: "python3-venv",
        why: "the Python packages go into target/, not into the system",
    },
    Need { probe: Probe::Program("vim"), package: "vim", why: "a full-screen program that tests drive" },
    Need { probe: Probe::Program("less"), package: "less", why: "a full-screen program that tests drive" },
    Need { probe: Probe::Program("nano"), package: "nano", why: "a full-screen program that tests drive" },
    Need { probe: Probe::Program("htop"), package: "htop", why: "a full-screen program that tests drive" },
    Need { probe: Probe::Program("fzf"), package: "fzf", why: "a full-screen program that tests drive" },
    Need { probe: Probe::Program("dialog"), package: "dialog", why: "a menu that tests pick from" },
    Need { probe: Probe::Program("whiptail"), package: "whiptail", why: "a menu that tests pick from" },
    Need { probe: Probe::Program("git"), package: "git", why: "git add -p asks questions" },
    Need {
        probe: Probe::Program("tmux"),
        package: "tmux",
        why: "a terminal inside the terminal, and the one to compare with",
    },
    Need { probe: Probe::Program("strace"), package: "strace", why: "tests count system calls" },
    Need { probe: Probe::Program("ps"), package: "procps", why: "tests look for what was left, and drive top" },
    Need {
        probe: Probe::Program("npm"),
        package: "npm",
        why: "npm init asks questions; a generator of clients, other MCP clients and a dev server are npm packages",
    },
    Need { probe: Probe::Program("chromium"), package: "chromium", why: "a real browser, for a page with a terminal" },
    Need { probe: Probe::Program("shellcheck"), package: "shellcheck", why: "the shell scripts are linted" },
];

/// Installs what is missing.
pub fn provide() -> Result<()> {
    let mut missing = Vec::new();
    for need in NEEDS.iter().filter(|need| !is_there(&need.probe)) {
        println!("missing: {} — {}", need.package, need.why);
        missing.push(need.package);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("install these and try again: {}", missing.join(" "));
    if !is_program("apt-get") {
        bail!("this machine has no apt-get; {by_hand}");
    }
    for step in [&["update", "-q"][..], &["install", "-q", "-y", "--no-install-recommends"]] {
        let packages = if step.contains(&"install") { missing.as_slice() } else { &[] };
        let mut command = if is_root() { Command::new("apt-get") } else { Command::new("sudo") };
        if !is_root() {
            // Without a terminal to ask on, sudo either may or it fails at once.
            command.args(["-n", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        }
        command.args(step).args(packages).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        println!("installing: {}", workspace::shown(&command));
        workspace::succeed(&mut command).with_context(|| by_hand.clone())?;
    }
    match NEEDS.iter().find(|need| !is_there(&need.probe)) {
        Some(need) => bail!("{} is still missing after it was installed", need.package),
        None => Ok(()),
    }
}

/// Whether a program is on the path.
pub fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| is_executable(&dir.join(name)))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn is_there(probe: &Probe) -> bool {
    match probe {
        Probe::Program(name) => is_program(name),
        Probe::File(path) => Path::new(path).exists(),
        Probe::PythonModules(modules) => {
            let mut python = Command::new("python3");
            python.args(["-c", &format!("import {modules}")]).stdin(Stdio::null()).stderr(Stdio::null());
            python.status().is_ok_and(|status| status.success())
        }
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // A process's own folder in /proc belongs to the user it runs as.
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}
