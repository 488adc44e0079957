//! A nested shell (another user's, another machine's, or one in another terminal) is a program like any other. No
//! command is typed into it without a request; input drives it, and its end is the end of the command that started it.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use api::{CommandStatus, EndedBy, ErrorCode, Foreground, InputRequest};
use e2e::inside::{enters, is_a_program, runs_beside, runs_in};
use e2e::shells::{ALL, Dialect, each};
use e2e::{Pid, Server, Session, eventually};

#[tokio::test]
// promise: inside-1
async fn a_shell_in_a_shell_is_a_program_in_every_pair() {
    let server = Server::start();
    let inside = |outer: Dialect| {
        let server = &server;
        async move {
            let shell = outer.session(server).await;
            for enter in ["bash --norc", "zsh -f", "fish -N", "dash"] {
                is_a_program(&shell, enter).await;
            }
        }
    };
    e2e::join_all(ALL.map(inside)).await;
}

/// Whether this command succeeds here.
fn works(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[tokio::test]
// promise: inside-1, inside-2
async fn another_users_shell_is_a_program() {
    let server = Server::start();
    let shell = server.session().await;
    if works("sudo", &["-n", "true"]) {
        is_a_program(&shell, "sudo -n HOME=\"$HOME\" bash --norc").await;
        runs_in(&shell, "sudo -n HOME=\"$HOME\" -s --preserve-env=HOME").await;
        // A login shell, which begins in root's own folder all the same.
        is_a_program(&shell, "sudo -n HOME=\"$HOME\" -i").await;
        runs_in(&shell, "sudo -n HOME=\"$HOME\" -i").await;
    } else {
        e2e::in_part("sudo asks for a password here, or is not installed");
    }
    if rustix::process::geteuid().is_root() {
        is_a_program(&shell, "su -p -s /bin/bash -c 'exec bash --norc'").await;
        runs_in(&shell, "su -p -s /bin/dash nobody").await;
        runs_in(&shell, "su -p -s /bin/bash nobody -c 'exec bash --norc'").await;
        return;
    }
    // A user that is not root is asked for a password, and may leave.
    let asked = shell.run("su").await;
    assert_eq!(asked.foreground, Some(Foreground::PasswordWanted), "{asked:?}");
    shell.presses(&["C-c"], None).await;
    shell.end_of(&asked).await;
    assert_eq!(shell.gives("echo outer").await, (0, "outer\n".to_owned()));
}

/// An sshd of the test's own on loopback, and how to get in.
struct Sshd {
    child: Child,
    enter: String,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // It ends on TERM; its children end with its connection.
        let pid = Pid::new(self.child.id());
        pid.signal(rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Sshd {
    fn is_missing() -> bool {
        if !Path::new("/usr/sbin/sshd").is_file() {
            e2e::not_run("there is no /usr/sbin/sshd");
            return true;
        }
        e2e::lacks(&["ssh", "ssh-keygen"])
    }

    async fn start(server: &Server) -> Self {
        let home = server.home().file("ssh");
        std::fs::DirBuilder::new().mode(0o700).create(&home).expect("a folder of our own");
        let path = |name: &str| home.join(name).display().to_string();
        for key in ["host", "key"] {
            assert!(works("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]), "a key");
        }
        std::fs::copy(home.join("key.pub"), home.join("allowed")).expect("ours");
        // sshd needs a port; the kernel knows a free one.
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        // Where sshd wants an empty folder of the system's that only its service makes.
        if rustix::process::geteuid().is_root() {
            let _ = std::fs::DirBuilder::new().mode(0o755).create("/run/sshd");
        }
        let user_home = server.home().path().display();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PermitRootLogin yes\nPrintMotd no\nPrintLastLog no\nForceCommand HOME={user_home} exec bash --norc\n",
            path("host"),
            path("allowed"),
        );
        std::fs::write(home.join("config"), config).expect("written");
        let log = std::fs::File::create(home.join("log")).expect("a log");
        let child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &path("config")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("openssh-server is installed");
        let listens = async || std::net::TcpStream::connect(("127.0.0.1", port)).ok();
        eventually("sshd listens", listens).await;
        let options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -F none";
        Self { child, enter: format!("ssh -t {options} -i {} -p {port} 127.0.0.1", path("key")) }
    }
}

#[tokio::test]
// promise: inside-1
async fn a_shell_over_ssh_is_a_program() {
    if Sshd::is_missing() {
        return;
    }
    let server = Server::start();
    let sshd = Sshd::start(&server).await;
    is_a_program(&server.session().await, &sshd.enter).await;
}

#[tokio::test]
// promise: inside-2
async fn commands_run_in_a_shell_over_ssh_until_the_connection_breaks() {
    if Sshd::is_missing() {
        return;
    }
    let server = Server::start();
    let sshd = Sshd::start(&server).await;
    let shell = server.session().await;
    runs_in(&shell, &sshd.enter).await;
    // A shell inside the shell on the other machine, which is one that reads lines.
    let ssh = enters(&shell, &sshd.enter).await;
    let dash = api::ExecuteRequest { inside: true, timeout: Some(0.5), ..ask("exec dash") };
    let started = shell.run_as(dash).await;
    assert_ne!(started.status, CommandStatus::Completed, "{started:?}");
    shell.presses(&["C-c"], None).await;
    shell.end_of(&started).await;
    let inside = api::ExecuteRequest { inside: true, ..ask("echo $0; sh -c 'exit 6'") };
    let done = shell.run_as(inside).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(6), Some("dash\n")), "{done:?}");
    let sleeps = "sh -c 'echo begun; exec sleep 60'";
    let begun = shell.run_as(api::ExecuteRequest { inside: true, wait_for: Some("begun".into()), ..ask(sleeps) }).await;
    assert_eq!(begun.ended_by, Some(EndedBy::Matched), "{begun:?}");
    shell.signal("KILL").await;
    let (inner, outer) = (shell.end_of(&begun).await, shell.end_of(&ssh).await);
    let told = (inner.status, inner.exit_code, outer.exit_code);
    assert_eq!(told, (CommandStatus::Completed, None, Some(137)), "{inner:?}");
    assert!(inner.error.is_some_and(|why| why == "the inner shell has ended: exit 137"));
}

fn ask(command: &str) -> api::ExecuteRequest {
    api::ExecuteRequest { command: command.to_owned(), timeout: Some(20.0), ..Default::default() }
}

#[tokio::test]
// promise: inside-1
async fn a_terminal_in_the_terminal_is_a_screen() {
    if e2e::lacks(&["tmux"]) {
        return;
    }
    let server = Server::start();
    let shell = server.session().await;
    // Its server reads the terminal, and is not a child of what was started: that it waits for keys is not to be seen.
    let tmux = shell.run_until("TMUX_TMPDIR=$PWD tmux -L inside -f /dev/null new 'bash --norc'", "[$#] $|bash").await;
    assert_eq!((tmux.status, tmux.foreground), (CommandStatus::Running, Some(Foreground::Fullscreen)), "{tmux:?}");
    assert_eq!(shell.refusal("echo no").await, Some(ErrorCode::SessionBusy));
    let line = InputRequest {
        input: Some("echo inner-$(printf 4)2".to_owned()),
        end_with_newline: true,
        wait_for: Some("inner-42".to_owned()),
        timeout: Some(20.0),
        ..InputRequest::default()
    };
    assert_eq!(shell.input(&line).await.ended_by, EndedBy::Matched);
    shell.sends(b"exit\r").await;
    assert_eq!(shell.end_of(&tmux).await.exit_code, Some(0));
    assert_eq!(shell.gives("echo outer").await, (0, "outer\n".to_owned()));
}

/// Enters and leaves an environment, and checks the reported `python`.
async fn tells_the_python(shell: &Session, [enter, leave]: [&str; 2], folder: &Path) {
    let before = shell.look().await.python;
    assert_eq!(shell.gives(enter).await.0, 0, "{enter}");
    assert_eq!(shell.look().await.python, Some(format!("{}/bin/python", folder.display())), "{enter}");
    assert_eq!(shell.gives(leave).await.0, 0, "{leave}");
    assert_eq!(shell.look().await.python, before, "{leave}");
}

#[tokio::test]
// promise: shell-7
async fn an_environment_of_pythons_is_reported_when_it_is_entered_and_left() {
    let server = Server::start();
    let folder = server.home().file("venv");
    assert!(works("python3", &["-m", "venv", "--without-pip", folder.to_str().expect("text")]), "a venv");
    for dialect in ALL {
        let shell = dialect.session(&server).await;
        let file = if dialect.is_fish() { "activate.fish" } else { "activate" };
        let activate = format!(". {}/bin/{file}", folder.display());
        tells_the_python(&shell, [&activate, "deactivate"], &folder).await;
    }
}

#[tokio::test]
// promise: shell-7
async fn an_environment_of_condas_is_reported_when_it_is_entered_and_left() {
    let server = Server::start();
    let folder = server.home().file("conda env");
    for part in ["bin", "conda-meta"] {
        std::fs::create_dir_all(folder.join(part)).expect("a folder of our own");
    }
    std::fs::write(folder.join("conda-meta/history"), "").expect("written");
    std::os::unix::fs::symlink("/usr/bin/env", folder.join("bin/python")).expect("a link of our own");
    let conda = std::env::var("PTYD_TEST_CONDA").unwrap_or_else(|_| "conda".to_owned());
    let is_there = works(&conda, &["--version"]);
    if !is_there {
        e2e::in_part("conda is not on PATH, and PTYD_TEST_CONDA names none");
    }
    for dialect in ALL {
        let shell = dialect.session(&server).await;
        // The commands that conda has the shell run.
        let path = folder.display();
        let by_hand = if dialect.is_fish() {
            [format!("set -gx PATH '{path}/bin' $PATH; set -gx CONDA_PREFIX '{path}'"), "set -e PATH[1]".to_owned()]
        } else {
            let enter = format!("OLD=$PATH; export PATH='{path}'/bin:\"$PATH\" CONDA_PREFIX='{path}'; hash -r");
            [enter, "PATH=$OLD; unset CONDA_PREFIX; hash -r".to_owned()]
        };
        tells_the_python(&shell, by_hand.each_ref().map(String::as_str), &folder).await;
        if is_there {
            let hook = match dialect {
                Dialect::Fish => format!("{conda} shell.fish hook | source"),
                Dialect::Bash | Dialect::Zsh => format!("eval \"$({conda} shell.{} hook)\"", dialect.name()),
                Dialect::Dash => format!("eval \"$({conda} shell.posix hook)\""),
            };
            assert_eq!(shell.gives(&hook).await.0, 0, "{dialect:?}");
            tells_the_python(&shell, [&format!("conda activate '{path}'"), "conda deactivate"], &folder).await;
        }
    }
}

#[tokio::test]
// promise: inside-1, inside-2
async fn a_shell_of_nixs_is_a_program_in_which_commands_run() {
    if !works("nix-shell", &["--version"]) {
        return e2e::not_run("there is no nix-shell on PATH");
    }
    let server = Server::start();
    let home = server.home();
    let text = "derivation { name = \"inner\"; system = builtins.currentSystem; builder = \"/bin/sh\"; GREETING = \"hello\"; }";
    std::fs::write(home.file("shell.nix"), text).expect("written");
    // With a store of its own, and nothing from the net.
    let parts = ["STORE", "STATE", "LOG", "CONF"].map(|part| format!("NIX_{part}_DIR={}", home.file(part).display()));
    let nix = "NIX_REMOTE= NIX_BUILD_SHELL=bash nix-shell --option substitute false --option build-users-group ''";
    let enter = format!("env {} {nix} {}", parts.join(" "), home.file("shell.nix").display());
    let shell = server.session().await;
    let told = shell.gives(&format!("{enter} --run 'echo $IN_NIX_SHELL $GREETING; exit 7'")).await;
    assert_eq!(told, (7, "impure hello\n".to_owned()));
    is_a_program(&shell, &enter).await;
    runs_in(&shell, &enter).await;
    runs_beside(&shell, &enter).await;
}

#[tokio::test]
// promise: shell-5
async fn the_kernels_word_ends_the_lines_of_a_program_without_hooks() {
    if e2e::lacks(&["sqlite3"]) {
        return;
    }
    let server = Server::start();
    for (program, line, answer) in [("python3", "6 * 7", "42"), ("sqlite3", "select 6 * 7;", "42"), ("cat", "42", "42")]
    {
        let wish = api::CreateRequest { shell: Some(program.to_owned()), ..Default::default() };
        let shell = server.session_with(wish).await;
        let done = shell.run(line).await;
        let output = done.output.clone().unwrap_or_default();
        let told = (done.status, done.exit_code, done.boundary, output.contains(answer));
        assert_eq!(told, (CommandStatus::Completed, None, api::Boundary::Heuristic, true), "{program}: {done:?}");
        assert!(done.error.is_some_and(|why| why.contains("exit code is unknown")), "{program}");
    }
    let wish = api::CreateRequest { shell: Some("python3".to_owned()), ..Default::default() };
    let shell = server.session_with(wish).await;
    let slow = shell.run("import time; time.sleep(0.5); print('slept')").await;
    assert!(slow.output.clone().unwrap_or_default().contains("\nslept"), "{slow:?}");
    let died = shell.run("raise SystemExit(4)").await;
    assert_eq!((died.status, shell.look().await.exit.and_then(|e| e.exit_code)), (CommandStatus::Terminated, Some(4)));
}

#[tokio::test]
// promise: shell-4
async fn a_shell_that_does_not_exist_is_refused_with_a_remedy() {
    let server = Server::start();
    let wish = api::CreateRequest { shell: Some("no-such-shell".to_owned()), ..Default::default() };
    let error = server.client().create(&wish, None).await.expect_err("no such program");
    assert_eq!(error.code(), Some(ErrorCode::InvalidField));
    let text = error.to_string();
    assert!(text.contains("the installed shells are bash, ") && text.contains("install it"), "{text}");
}

#[tokio::test]
// promise: shell-3
async fn a_login_shell_of_every_kind_reads_its_profile_and_attests() {
    each("2 exit codes", async |t| {
        let home = t.server.home();
        let (file, text) = match t.dialect {
            Dialect::Bash | Dialect::Dash => (".profile", "export FROM_PROFILE=yes\n"),
            Dialect::Zsh => (".zprofile", "export FROM_PROFILE=yes\n"),
            Dialect::Fish => ("config/fish/config.fish", "status is-login; and set -gx FROM_PROFILE yes\n"),
        };
        let path = home.path().join(file);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        if !before.contains(text) {
            std::fs::write(&path, before + text).expect("written");
        }
        let shell = Some(t.dialect.name().to_owned());
        let wish = api::CreateRequest { shell, login: true, ..Default::default() };
        let shell = t.server.session_with(wish).await;
        let done = shell.run("sh -c 'echo profile:$FROM_PROFILE; exit 3'").await;
        let told = (done.exit_code, done.output.as_deref(), done.boundary);
        assert_eq!(told, (Some(3), Some("profile:yes\n"), api::Boundary::Attested), "{:?}", t.dialect);
    })
    .await;
}
