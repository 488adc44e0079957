//! Profiles: the configuration file's settings apply where a request has none, and all of them can be shown.

use std::collections::BTreeMap;
use std::process::Stdio;

use api::{Boundary, CreateRequest, Dimensions, InputRequest, SessionStatus};
use client::ClientError;
use e2e::{Home, Server, Start, configure, eventually, has_builtins};
use serde_json::{Value, json};

/// A server whose configuration file says this.
fn with_file(text: &str) -> Server {
    let home = Home::make();
    configure(&home, text);
    Server::start_in(home, Start::default())
}

fn by(profile: &str) -> CreateRequest {
    CreateRequest { profile: Some(profile.to_owned()), ..CreateRequest::default() }
}

fn environment(server: &Server, id: &str) -> Value {
    server.connect().ask("GET", &format!("/terminals/{id}/environment"), "").expect("an answer").json()
}

/// Why a session is not started, and the field that is wrong.
async fn refusal(server: &Server, request: &CreateRequest) -> (String, Option<String>) {
    match server.client().create(request, None).await {
        Err(ClientError::Refused(problem)) => (problem.detail, problem.field),
        other => panic!("not refused: {other:?}"),
    }
}

/// The text that ptyd prints, on stdout and on stderr.
fn ptyd(server: &Server, args: &[&str]) -> (String, String) {
    let output = server.ptyd(args).stdin(Stdio::null()).output().expect("it can be executed");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

const WEB: &str = r#"
[profiles.web]
cwd = "~/files"
env = { COLOUR = "blue", API_TOKEN = "hidden", BOTH = "profile" }
unset = ["GONE"]
path_prepend = ["~/bin"]
umask = "027"
locale = "C.UTF-8"
term = "vt100"
cols = 90
rows = 30
startup = ["export STARTED=yes; cd /usr"]
limits = { openFiles = 300 }

[profiles.plain]
login = true
"#;

#[tokio::test]
// promise: profile-1
async fn a_profile_starts_a_session_and_the_request_takes_precedence() {
    let server = with_file(WEB);
    let home = server.home().path().display().to_string();
    let shell = server.session_with(by("web")).await;
    let seen = shell.look().await;
    assert_eq!((seen.profile.as_deref(), seen.dimensions), (Some("web"), Dimensions { cols: 90, rows: 30 }));
    assert_eq!((seen.cwd.as_str(), seen.startup_failed), ("/usr", Vec::new()));
    let words = "echo $COLOUR $API_TOKEN $BOTH $STARTED $TERM $LANG $(umask) $(ulimit -n) ${PATH%%:*}";
    let expected = format!("blue hidden profile yes vt100 C.UTF-8 0027 300 {home}/bin\n");
    assert_eq!(shell.gives(words).await, (0, expected));

    let told = environment(&server, &shell.id);
    assert_eq!((&told["profile"], &told["login"], &told["umask"]), (&json!("web"), &json!(false), &json!("027")));
    let of = |name: &str| told["variables"][name].as_str();
    assert_eq!((of("COLOUR"), of("API_TOKEN"), of("TERM")), (Some("blue"), Some("***"), Some("vt100")));
    assert_eq!(of("PWD"), Some(format!("{home}/files").as_str()));

    // A login shell's own files may change the rest.
    let shell = server.session_with(by("plain")).await;
    assert_eq!(shell.gives("shopt -q login_shell").await, (0, String::new()));

    let request = CreateRequest {
        cwd: Some("/tmp".to_owned()),
        env: [("BOTH".to_owned(), "request".to_owned())].into(),
        dimensions: Some(Dimensions { cols: 70, rows: 20 }),
        ..by("web")
    };
    let shell = server.session_with(request).await;
    assert_eq!(shell.look().await.dimensions, Dimensions { cols: 70, rows: 20 });
    assert_eq!(shell.gives("echo $BOTH $OLDPWD").await, (0, "request /tmp\n".to_owned()));
}

#[tokio::test]
// promise: access-9
async fn names_of_ptyd_are_refused_and_not_shown_and_no_secret_is() {
    let server =
        with_file("[profiles.ours]\nenv = { PTYD_X = \"1\" }\n[profiles.clean]\nrc = \"clean\"\nlogin = true\n");
    let problem = "PTYD_X: names that begin with PTYD_ are ptyd's own and do not reach sessions";
    assert!(refusal(&server, &by("ours")).await.0.ends_with(problem));
    let asks = CreateRequest { env: [("PTYD_X".to_owned(), String::new())].into(), ..CreateRequest::default() };
    assert_eq!(refusal(&server, &asks).await, (format!("env: {problem}"), Some("env".to_owned())));

    let env = [("MYSQL_PWD", "secret"), ("DB", "postgres://me:secret@host/db"), ("TOX_TESTENV_PASSENV", "CI")];
    let env: BTreeMap<_, _> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let shell = server.session_with(CreateRequest { env: env.clone(), ..by("clean") }).await;
    let shown = json!({ "MYSQL_PWD": "***", "DB": "postgres://me:***@host/db", "TOX_TESTENV_PASSENV": "CI" });
    assert_eq!(serde_json::to_value(shell.look().await.env).ok(), Some(shown.clone()));
    let all = environment(&server, &shell.id)["variables"].clone();
    let variables = all.as_object().expect("an object");
    assert!(shown.as_object().expect("an object").iter().all(|(name, value)| variables[name] == *value), "{all}");
    let ours: Vec<_> = variables.keys().filter(|name| name.starts_with("PTYD_")).collect();
    assert_eq!(ours, ["PTYD_SESSION"]);
}

#[tokio::test]
// promise: profile-2
async fn the_profile_default_applies_to_requests_without_one_and_the_refusal_of_an_unknown_one_lists_the_existing_ones()
{
    let server = with_file(WEB);
    let shell = server.session().await;
    assert_eq!((shell.look().await.profile, shell.gives("echo $TERM").await.1), (None, "xterm-256color\n".to_owned()));
    let (why, field) = refusal(&server, &by("wed")).await;
    assert_eq!(
        (why.as_str(), field.as_deref()),
        ("profile: there is no profile \"wed\"; there are: plain, web", Some("profile"))
    );
    // It holds from now on, without a restart.
    configure(server.home(), "[profiles.default]\nterm = \"vt52\"\ncwd = \"/usr\"\n");
    let shell = server.session().await;
    assert_eq!(
        (shell.look().await.profile.as_deref(), shell.gives("echo $TERM").await.1),
        (Some("default"), "vt52\n".to_owned())
    );
    let (id, _) = ptyd(&server, &["new"]);
    assert_eq!(server.client().session(id.trim()).await.expect("there").cwd, "/usr");
    configure(server.home(), "[profiles.default]\ntrem = \"vt52\"\n");
    let (why, _) = refusal(&server, &CreateRequest::default()).await;
    assert!(why.contains("config.toml, line 2: unknown field `trem`"), "{why}");
}

#[tokio::test]
// promise: profile-3
async fn commands_at_the_start_that_fail_are_reported_and_the_session_can_be_used() {
    let server = with_file("[profiles.bad]\nstartup = [\"first=1\", \"(exit 3)\", \"if\", \"last=1\"]\n");
    let (id, errors) = ptyd(&server, &["new", "--profile", "bad"]);
    assert!(errors.contains("ptyd: startup failed: (exit 3): it exited with 3\n"), "{errors}");
    let shell = e2e::Session::new(server.client().clone(), id.trim().to_owned());
    let seen = shell.look().await;
    let failed: Vec<_> = seen.startup_failed.iter().map(|failure| failure.command.as_str()).collect();
    assert_eq!((seen.status, failed), (SessionStatus::Running, vec!["(exit 3)", "if"]));
    assert_eq!(shell.gives("echo $first $last").await, (0, "1 1\n".to_owned()));
}

#[tokio::test]
// promise: shell-3
async fn a_clean_bash_leaves_the_history_file_as_it_is() {
    let server = with_file("[profiles.clean]\nrc = \"clean\"\n[profiles.login]\nrc = \"clean\"\nlogin = true\n");
    let history = server.home().path().join(".bash_history");
    let lines: String = (0..5_000).map(|number| format!("echo {number}\n")).collect();
    std::fs::write(&history, &lines).expect("ours");
    for profile in ["clean", "login"] {
        let shell = server.session_with(by(profile)).await;
        assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()));
        shell.begin("exit").await;
        eventually("it ends", async || shell.look().await.exit).await;
        assert!(std::fs::read_to_string(&history).expect("ours") == lines, "{profile}");
    }
}

#[tokio::test]
// promise: profile-1
async fn a_session_has_a_locale_where_its_host_has_none() {
    let server = Server::start();
    for (given, expected) in [(&[][..], "C.UTF-8 "), (&[("LC_CTYPE", "C")], " C"), (&[("LANG", "C")], "C ")] {
        let none = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| (name.to_owned(), String::new()));
        let env = none.into_iter().chain(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let wish = CreateRequest { env: env.collect(), ..CreateRequest::default() };
        let shell = server.session_with(wish).await;
        assert_eq!(shell.gives("echo \"$LANG $LC_CTYPE\"").await, (0, format!("{expected}\n")));
    }
}

#[tokio::test]
// promise: shell-3
async fn a_clean_shell_reads_none_of_the_users_start_up_files() {
    let server = with_file("[profiles.clean]\nrc = \"clean\"\n[profiles.login]\nrc = \"clean\"\nlogin = true\n");
    for file in [".bashrc", ".bash_profile", ".zshenv", ".zshrc", ".zprofile", ".profile"] {
        std::fs::write(server.home().path().join(file), "READ=yes\n").expect("written");
    }
    assert_eq!(server.session().await.gives("echo \"<$READ>\"").await, (0, "<yes>\n".to_owned()));
    let config = server.home().path().join("config/fish");
    std::fs::create_dir_all(&config).expect("a folder");
    std::fs::write(config.join("config.fish"), "set READ yes\n").expect("written");
    std::fs::write(server.home().path().join("rc"), "READ=yes\n").expect("written");
    let env = [("ENV".to_owned(), server.home().path().join("rc").display().to_string())];
    for shell in ["bash", "zsh", "fish", "dash", "busybox", "mksh"] {
        for (profile, read) in [(None, "yes"), (Some("clean"), ""), (Some("login"), "")] {
            let profile = profile.map(str::to_owned);
            let request =
                CreateRequest { shell: Some(shell.to_owned()), env: env.clone().into(), profile, ..Default::default() };
            let session = server.session_with(request).await;
            let words = format!(
                "echo \"<$READ>\"; {}",
                if shell == "fish" { "true" } else { "echo ${PTYD_CLEAN-}${PTYD_ZSH_CLEAN-}" }
            );
            let rest = if shell == "fish" { "" } else { "\n" };
            let told = format!("{shell} {:?}", session.look().await.profile);
            assert_eq!(session.gives(&words).await, (0, format!("<{read}>\n{rest}")), "{told}");
            assert_eq!(session.look().await.boundary, Boundary::Attested, "{told}");
        }
    }
    let (why, _) = refusal(&server, &CreateRequest { shell: Some("python3".to_owned()), ..by("clean") }).await;
    assert_eq!(why, "profile: rc: python3 cannot be started clean, because ptyd has no script for it");
}

#[tokio::test]
// promise: shell-15
async fn only_a_server_of_root_starts_shells_of_other_users() {
    let is_root = rustix::process::geteuid().is_root();
    let user = if is_root { "nobody" } else { "root" };
    let server = with_file(&format!(
        "[profiles.other]\nuser = \"{user}\"\ncwd = \"/tmp\"\n[profiles.login]\nuser = \"{user}\"\ncwd = \"/tmp\"\nlogin = true\n[profiles.none]\nuser = \"no-such-user\"\n",
    ));
    let (why, field) = refusal(&server, &by("none")).await;
    assert_eq!(
        (why.as_str(), field.as_deref()),
        ("profile: none: user: there is no user \"no-such-user\" on this machine", Some("profile"))
    );
    if !is_root {
        let (why, _) = refusal(&server, &by("other")).await;
        assert!(why.contains("only a server that root has started can start shells of root"), "{why}");
        return e2e::in_part("only root can start shells of another user");
    }
    let told = "$(id -un) $USER $LOGNAME $(id -G) $(stat -c %U \"$(tty)\") $PWD";
    for shell in ["bash", "zsh", "fish", "dash", "busybox", "mksh"] {
        for profile in ["other", "login"] {
            let session = server.session_with(CreateRequest { shell: Some(shell.to_owned()), ..by(profile) }).await;
            assert_eq!(environment(&server, &session.id)["user"], "nobody");
            let told = if shell == "fish" { told.replace("$(", "(").replace('"', "") } else { told.to_owned() };
            let done = session.run(&format!("echo {told}")).await;
            let seen = (done.boundary, done.exit_code, done.output.unwrap_or_default());
            let right = "nobody nobody nobody 65534 nobody /tmp\n".to_owned();
            assert_eq!(seen, (Boundary::Attested, Some(0), right), "{shell} {profile}");
            assert_eq!(session.gives("sh -c 'exit 7'").await.0, 7, "{shell} {profile}");
            assert!(shell != "bash" || has_builtins(&session).await, "{profile}");
            // The shell may read the files that it is given and no other of ours, and may change none.
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", session.look().await.pid.expect("it runs")));
            let holder = stat.ok().and_then(|s| s.rsplit(") ").next()?.split(' ').nth(1).map(str::to_owned));
            let closed = [
                server.home().state().display().to_string(),
                "/proc/self/fd/95/..".to_owned(),
                "/proc/self/fd/95/../..".to_owned(),
                format!("/proc/{}/fd", holder.expect("its parent")),
            ];
            for place in &closed {
                let (code, output) = session.gives(&format!("sh -c 'ls {place}' 2>/dev/null")).await;
                assert!(code != 0 && output.is_empty(), "{shell} {profile}: {place}: {output}");
            }
            for writes in ["sh -c 'echo x >>/proc/self/fd/9?'", "python3 -c 'import os; os.write(9?, b\"x\")'"] {
                for fd in ["95", "96"] {
                    let (code, _) = session.gives(&writes.replace("9?", fd)).await;
                    assert_ne!(code, 0, "{shell} {profile}: {fd}: {writes}");
                }
            }
            assert_eq!(session.gives("echo still here").await, (0, "still here\n".to_owned()), "{shell} {profile}");
        }
    }
    let shell = server.session_with(by("other")).await;
    let shown = "echo \"who: $(id -un) $USER $LOGNAME $(id -G) $(stat -c %U \"$(tty)\") $PWD\"";
    let line = InputRequest { input: Some(shown.to_owned()), end_with_newline: true, ..InputRequest::default() };
    server.client().input(&shell.id, &line, None).await.expect("it is typed");
    eventually("it is nobody's", async || {
        let text = String::from_utf8_lossy(&shell.journal().await).into_owned();
        text.contains("who: nobody nobody nobody 65534 nobody /tmp").then_some(())
    })
    .await;
}

#[tokio::test]
// promise: shell-7
async fn toolchains_are_found_on_the_sessions_path_and_reported_when_it_changes() {
    let server = Server::start();
    let tools = server.home().file("tools");
    std::fs::create_dir(&tools).expect("a folder");
    for name in ["node", "cargo", "rustc"] {
        std::os::unix::fs::symlink("/bin/true", tools.join(name)).expect("a link");
    }
    let shell = server.session().await;
    shell.run(&format!("PATH={}", tools.display())).await;
    let seen = shell.look().await;
    let at = |name: &str| Some(tools.join(name).display().to_string());
    assert_eq!((seen.python, seen.node, seen.rustc, seen.cargo), (None, at("node"), at("rustc"), at("cargo")));
    assert_eq!(
        environment(&server, &shell.id)["toolchains"],
        json!({ "node": at("node"), "rustc": at("rustc"), "cargo": at("cargo") })
    );
}

#[test]
// promise: profile-4
fn each_setting_is_shown_with_its_origin_command_line_environment_or_file() {
    let server =
        with_file("[server]\nsoft_timeout = 7\nsessions_max = 9\nlimits = { openFiles = 512 }\n[profiles.web]\n");
    let file = server.home().path().join("config/ptyd/config.toml").display().to_string();
    let (shown, errors) = ptyd(&server, &["config", "show", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{e}: {errors}"));
    for (name, value, source) in [
        ("soft_timeout", json!(7.0), file.as_str()),
        ("sessions_max", json!(9), &file),
        ("limits", json!({ "openFiles": 512.0 }), &file),
        ("profiles", json!(["web"]), &file),
        ("listen", json!("127.0.0.1:0"), "environment (PTYD_LISTEN)"),
        ("max_age", json!("never"), "default"),
    ] {
        assert_eq!(shown[name], json!({ "value": value, "source": source }), "{name}");
    }
    let session = server.connect().ask("POST", "/terminals", "{}").expect("an answer").json();
    assert_eq!(session["limits"], json!({ "openFiles": 512 }));
    configure(server.home(), "[server]\nsoft_timeout = \"soon\"\n");
    let (_, errors) = ptyd(&server, &["config", "show"]);
    assert!(errors.contains("config.toml, line 2: server.soft_timeout: invalid value 'soon'"), "{errors}");
    configure(server.home(), "[server]\nsoft_timeot = 1\n");
    let (_, errors) = ptyd(&server, &["config", "show"]);
    assert!(
        errors.contains(
            "config.toml, line 2: server.soft_timeot: is not a setting; did you mean soft_timeout? The settings are \
             listen, public_url"
        ),
        "{errors}"
    );
}
