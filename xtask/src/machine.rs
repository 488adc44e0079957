//! The requirements of the tests on a machine, and their installation on Debian and Ubuntu. Nothing is installed
//! without its reason being printed.

use crate::services;
use crate::workspace;
use anyhow::{Context as _, Result, bail};
use std::io::IsTerminal as _;
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

const NEEDS: [Need; 41] = [
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
    Need {
        probe: Probe::File("/usr/sbin/nginx"),
        package: "nginx",
        why: "a proxy in front of the server, on loopback",
    },
    Need {
        probe: Probe::File("/usr/sbin/haproxy"),
        package: "haproxy",
        why: "a load balancer of several nodes, on loopback",
    },
    Need { probe: Probe::Program("caddy"), package: "caddy", why: "a load balancer of several nodes, on loopback" },
    Need {
        probe: Probe::Program("promtool"),
        package: "prometheus",
        why: "it checks and tests the alerts, and collects metrics on loopback",
    },
    Need {
        probe: Probe::Program("redis-server"),
        package: "redis-server",
        why: "the directory of several nodes, on a socket of its own",
    },
    Need {
        probe: Probe::File("/bin/ip"),
        package: "iproute2",
        why: "each of several nodes in a network namespace of its own",
    },
    Need { probe: Probe::Program("openssl"), package: "openssl", why: "it makes certificates for tests of TLS" },
    Need {
        probe: Probe::Program("systemd-analyze"),
        package: "systemd",
        why: "it checks the units of the service; it does not run",
    },
    Need { probe: Probe::Program("sudo"), package: "sudo", why: "another user's shell" },
    Need {
        probe: Probe::Program("podman"),
        package: "podman",
        why: "shells and sessions in containers, without a registry",
    },
    Need {
        probe: Probe::Program("tini"),
        package: "tini",
        why: "process 1 of the image, which is built without a registry",
    },
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
    Need {
        probe: Probe::Program("pypy3"),
        package: "pypy3",
        why: "an editor of lines that indents and takes no pastes",
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
    Need { probe: Probe::Program("curl"), package: "curl", why: "requests over HTTP as the pages show them" },
    Need { probe: Probe::Program("jq"), package: "jq", why: "a page filters the audit log with it" },
    Need { probe: Probe::Program("chromium"), package: "chromium", why: "a real browser, for a page with a terminal" },
    Need { probe: Probe::Program("shellcheck"), package: "shellcheck", why: "the shell scripts are linted" },
];

/// The packages that a machine lacks, and why each is needed.
pub struct Missing(Vec<&'static Need>);

impl Missing {
    /// Looks for everything that the tests need.
    pub fn look() -> Self {
        Self(NEEDS.iter().filter(|need| !is_there(&need.probe)).collect())
    }

    /// Nothing, or nothing that matters.
    pub fn nothing() -> Self {
        Self(Vec::new())
    }

    /// A line for each package.
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(|need| format!("{} — {}", need.package, need.why)).collect()
    }

    /// The first of these packages that is missing.
    pub fn any_of(&self, packages: &[&str]) -> Option<&'static str> {
        self.0.iter().map(|need| need.package).find(|package| packages.contains(package))
    }

    fn packages(&self) -> Vec<&'static str> {
        self.0.iter().map(|need| need.package).collect()
    }

    /// Installs it all. No service that comes with a package is enabled or started; `quiet` is a folder for what sees to that.
    pub fn install(&self, quiet: &Path) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let packages = self.packages();
        let by_hand =
            format!("install these and try again, or leave out what needs them (--no-install): {}", packages.join(" "));
        if !is_program("apt-get") {
            bail!("this machine has no apt-get, so it is neither Debian nor Ubuntu; {by_hand}");
        }
        let path = services::keep_off(quiet)?;
        for step in [&["update", "-q"][..], &["install", "-q", "-y", "--no-install-recommends"]] {
            let packages = if step.contains(&"install") { packages.as_slice() } else { &[] };
            let mut command = as_root("env");
            // Not by the environment: apt gives dpkg a path of its own (apt.conf(5)).
            command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", &format!("DPkg::Path={path}")]);
            command.args(step).args(packages).stdin(Stdio::null());
            println!("installing: {}", workspace::shown(&command));
            workspace::succeed(&mut command).with_context(|| by_hand.clone())?;
        }
        match NEEDS.iter().find(|need| !is_there(&need.probe)) {
            Some(need) => bail!("{} is still missing after it was installed", need.package),
            None => Ok(()),
        }
    }
}

/// A program as root: sudo asks for a password on a terminal, and where there is none it either may or fails at once.
fn as_root(program: &str) -> Command {
    if is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    if !std::io::stdin().is_terminal() {
        command.arg("-n");
    }
    command.arg(program);
    command
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
        Probe::PythonModules(modules) => has_python_modules(modules),
    }
}

/// Whether the machine's Python has these modules.
pub fn has_python_modules(modules: &str) -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", &format!("import {modules}")]).stdin(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

/// Whether this is root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // A process's own folder in /proc belongs to the user it runs as.
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_of_the_tests_has_the_packages_of_the_list() {
        let file = include_str!("../../ci/Containerfile");
        let (_, install) = file.split_once("--no-install-recommends").unwrap();
        let (packages, _) = install.split_once("&&").unwrap();
        let listed: Vec<&str> = packages.split_whitespace().filter(|word| *word != "\\").collect();
        let mut needed: Vec<&str> = NEEDS.iter().map(|need| need.package).collect();
        needed.sort_unstable();
        assert_eq!(listed, needed);
    }
}
