//! A shell in a container, with real podman: another program that has the terminal and passes bytes on. No registry and
//! no network are needed: the container's root is a folder with the machine's own /usr.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use api::CommandStatus;
use e2e::inside::{enters, is_a_program, is_interrupted, runs_beside, runs_in};
use e2e::{PATIENCE, Pid, Server};

/// A podman with everything of its own in a test's home.
struct Podman {
    /// The command that runs it, and the folder that is the root of its containers.
    program: String,
    root: String,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Drop for Podman {
    fn drop(&mut self) {
        self.does("rm -a -f -t 0");
    }
}

impl Podman {
    /// A machine without it, or where it cannot run, is reported.
    fn set_up(server: &Server) -> Option<Self> {
        let home = server.home();
        let (program, root) = (home.file("podman"), home.file("root"));
        for folder in ["usr", "etc", "tmp", "dev", "proc", "sys", "run"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder of our own");
        }
        for folder in ["bin", "sbin", "lib", "lib64"] {
            symlink(format!("usr/{folder}"), root.join(folder)).expect("a link of our own");
        }
        let files = home.file("");
        // No limits and no control groups: a machine that is itself a container may not give any.
        let containers = format!(
            "[containers]\ncgroups = \"disabled\"\nnetns = \"none\"\nlog_driver = \"none\"\n\
             default_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n\
             [engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\nlock_type = \"file\"\n\
             tmp_dir = \"{}tmp\"\n",
            files.display(),
        );
        let storage =
            format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{0}graph\"\nrunroot = \"{0}run\"\n", files.display());
        std::fs::write(home.file("containers.conf"), containers).expect("written");
        std::fs::write(home.file("storage.conf"), storage).expect("written");
        // podman's mounts end with the namespace, and the files that root's crun writes into /run stay here. That
        // takes no second hierarchy of control groups beside the first.
        let script = format!(
            "export CONTAINERS_CONF={0}containers.conf CONTAINERS_STORAGE_CONF={0}storage.conf\n\
             [ \"$(id -u)\" = 0 ] || exec podman \"$@\"\n\
             exec unshare -m sh -c 'mount --bind {0}root/run /run; umount /sys/fs/cgroup/unified 2>/dev/null\n\
             exec podman \"$@\"' podman \"$@\"\n",
            files.display(),
        );
        std::fs::write(&program, script).expect("written");
        let (program, root) = (format!("sh {}", program.display()), root.display().to_string());
        let podman = Self { program, root, environment: home.environment() };
        let tried = podman.does(&podman.in_new("", "sh -c 'exit 7'"));
        if tried.status.code() != Some(7) {
            let why = String::from_utf8_lossy(&tried.stderr);
            e2e::not_run(format!("podman is not there or cannot run here: {why}"));
            return None;
        }
        Some(podman)
    }

    /// The words that make it run something in a new container.
    fn in_new(&self, options: &str, what: &str) -> String {
        format!("run --rm {options} -v /usr:/usr:ro --rootfs {} {what}", self.root)
    }

    /// The command for a shell.
    fn command(&self, words: &str) -> String {
        format!("{} {words}", self.program)
    }

    /// Runs it outside of all sessions.
    fn does(&self, words: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.command(words)]).env_clear().envs(self.environment.iter().cloned());
        shell.stdin(Stdio::null()).output().expect("sh")
    }
}

#[tokio::test]
// promise: inside-1, inside-2
async fn a_shell_in_a_new_container_is_a_program_in_which_commands_run() {
    let server = Server::start();
    let Some(podman) = Podman::set_up(&server) else { return };
    let shell = server.session().await;
    for what in ["sh", "bash --norc"] {
        let enter = podman.command(&podman.in_new("-it", what));
        is_a_program(&shell, &enter).await;
        runs_in(&shell, &enter).await;
    }
}

#[tokio::test]
// promise: inside-1
async fn a_shell_in_a_container_that_runs_is_a_program_in_which_commands_run() {
    let server = Server::start();
    let Some(podman) = Podman::set_up(&server) else { return };
    let started = podman.does(&podman.in_new("-d --name box", "sleep 600"));
    assert!(started.status.success(), "{started:?}");
    let shell = server.session().await;
    let enter = |what: &str| podman.command(&format!("exec -it box {what}"));
    for what in ["sh", "bash --norc"] {
        is_a_program(&shell, &enter(what)).await;
        runs_in(&shell, &enter(what)).await;
    }
    runs_beside(&shell, &enter("bash --norc")).await;
    for what in ["sh", "bash --norc"] {
        is_interrupted(&shell, &enter(what)).await;
    }
    // Another process removes the container.
    let outer = enters(&shell, &enter("bash --norc")).await;
    let removed = podman.does("rm -f -t 0 box");
    assert!(removed.status.success(), "{removed:?}");
    // Of what podman says then, only that it has not succeeded is sure.
    let done = shell.end_of(&outer).await;
    assert!(done.status == CommandStatus::Completed && done.exit_code.is_some_and(|code| code != 0), "{done:?}");
}

#[tokio::test]
// promise: stop-1
async fn a_container_that_a_session_started_ends_with_it() {
    let server = Server::start();
    let Some(podman) = Podman::set_up(&server) else { return };
    let shell = server.session().await;
    assert_eq!(shell.gives(&podman.command(&podman.in_new("-d --name box", "sleep 600"))).await.0, 0);
    let shown = String::from_utf8(podman.does("inspect -f {{.State.Pid}} box").stdout).expect("text");
    let inner = Pid::new(shown.trim().parse().expect("a number"));
    assert!(inner.command_line().contains("sleep 600"), "{}", inner.command_line());
    shell.ends().await;
    assert!(inner.ends_within(PATIENCE), "{}", inner.command_line());
}
