//! Confined sessions: what is not theirs is refused by the kernel, and all else is as in other sessions.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::{Boundary, ConfinementTier, CreateRequest, EndedBy, ErrorCode, Limits, TokenRequest, TokenScope};
use client::{Client, ClientError};
use e2e::confinement::{PYTHON, Shared, attacks_of};
use e2e::shells::{ALL, Dialect};
use e2e::user::{is_root, serve};
use e2e::{Home, Server, Session, Start, configure, eventually, has_builtins, join_all, lacks, not_run};

/// Sessions that are started in a folder while it is exchanged.
const EXCHANGED_STARTS: usize = 15;
/// How many attempts there are in each tier.
const ATTEMPTS: usize = 74;

const CONFIGURATION: &str = r#"
[profiles.confined]
confinement = { tier = "process" }
limits = { openFiles = 300 }

[profiles.sandbox]
confinement = { tier = "sandbox" }
limits = { openFiles = 300 }

[profiles.open]

[profiles.bound]
confinement = { tier = "process", workspaces = ["~/files/*"] }
limits = { openFiles = 300 }

[profiles.wide]
confinement = { tier = "sandbox", workspaces = ["~/src/*", "~/*"] }

[profiles.process_outer]
cwd = "~/files"
confinement = { tier = "process" }

[profiles.process_cwd]
cwd = "~/files/work"
confinement = { tier = "process" }

[profiles.process_writable]
confinement = { tier = "process", writable = ["~/files/work"] }

[profiles.process_readable]
confinement = { tier = "process", readable = ["~/files/work"], writable = ["~/more"] }

[profiles.sandbox_outer]
cwd = "~/files"
confinement = { tier = "sandbox" }

[profiles.sandbox_cwd]
cwd = "~/files/work"
confinement = { tier = "sandbox" }

[profiles.sandbox_writable]
confinement = { tier = "sandbox", writable = ["~/files/work"] }

[profiles.sandbox_readable]
confinement = { tier = "sandbox", readable = ["~/files/work"], writable = ["~/more"] }

[profiles.online]
confinement = { tier = "process", network = true, readable = ["~/.ssh/known_hosts"], writable = ["~/files", "~/more", "/dev/pts"], hidden = ["~/private"] }
"#;

/// A home with a secret, a private file, a folder for work, and the profiles.
fn home() -> Home {
    let home = Home::make();
    configure(&home, CONFIGURATION);
    for folder in [".ssh", "files/work", "more", "private"] {
        fs::create_dir_all(home.path().join(folder)).expect("made");
    }
    for file in [".ssh/id", ".ssh/known_hosts", "private/text", "open"] {
        fs::write(home.path().join(file), format!("{file}\n")).expect("written");
    }
    home
}

fn by(profile: &str, cwd: &std::path::Path) -> CreateRequest {
    CreateRequest {
        profile: Some(profile.to_owned()),
        cwd: Some(cwd.display().to_string()),
        shell: Some("bash".to_owned()),
        ..CreateRequest::default()
    }
}

/// The tiers, and the profiles that have them.
const TIERS: [(ConfinementTier, &str); 2] =
    [(ConfinementTier::Process, "confined"), (ConfinementTier::Sandbox, "sandbox")];

/// A server with these profiles; `None` if this machine cannot give a session every tier, which it has said then.
async fn confining(server: Server) -> Option<Server> {
    for (_, profile) in TIERS {
        match server.client().create(&by(profile, &server.home().file("work")), None).await {
            Ok(session) => drop(server.client().terminate(&session.id, true, None).await.expect("it lives")),
            Err(ClientError::Refused(problem)) if problem.detail.contains("its confinement needs") => {
                not_run(problem.detail);
                return None;
            }
            Err(other) => panic!("{other}"),
        }
    }
    Some(server)
}

async fn start() -> Option<Server> {
    confining(Server::start_in(home(), Start::default())).await
}

/// The attacks' output in a session of each tier of this server, and in one that is not confined of those that harm nobody.
async fn attacked(server: &Server) -> [String; 3] {
    let other = server.session().await;
    let work = server.home().file("work");
    let shared = Shared::make();
    let mut printed = Vec::new();
    let open = (ConfinementTier::Process, "");
    for (tier, profile) in TIERS.into_iter().chain([open]) {
        let request = by(profile, &work);
        let profile = request.profile.filter(|profile| !profile.is_empty());
        let before = if profile.is_none() { "HARMLESS=1" } else { "" };
        let shell = server.session_with(CreateRequest { profile, ..request }).await;
        printed.push(attacks_of(server, &shell, &other, tier, &format!("{} {before}", shared.variables())).await);
    }
    printed.try_into().expect("three")
}

/// Nothing has succeeded where it is confined.
fn are_kept(confined: &[String]) {
    for ((tier, _), printed) in TIERS.into_iter().zip(confined) {
        assert_eq!(*printed, format!("tried {ATTEMPTS}\n"), "{tier:?}");
    }
}

#[tokio::test]
// promise: access-13
async fn nothing_gets_out_of_a_confined_session() {
    if lacks(&[PYTHON, "ipcmk"]) {
        return;
    }
    let Some(server) = start().await else { return };
    let [confined @ .., open] = attacked(&server).await;
    are_kept(&confined);
    // The attempts are such that they could succeed.
    if is_root() {
        assert!(!open.contains("refused") && open.lines().count() > 20, "{open}");
    }
}

#[tokio::test]
// promise: access-13
async fn nothing_gets_out_of_a_confined_session_of_an_ordinary_user() {
    if lacks(&[PYTHON, "ipcmk"]) || !is_root() {
        return;
    }
    let Some(server) = confining(serve(home())).await else { return };
    let [confined @ .., open] = attacked(&server).await;
    are_kept(&confined);
    assert!(open.contains("succeeded: reads a secret\n") && open.contains("succeeded: reads the token\n"), "{open}");
}

#[tokio::test]
// promise: access-13
async fn a_confined_session_works_as_any_other() {
    let Some(server) = start().await else { return };
    let work = server.home().file("work");
    // The first fish of a home writes its settings, which a confined one cannot.
    if !lacks(&["fish"]) {
        Dialect::Fish.session(&server).await.gives("true").await;
    }
    for (tier, profile) in TIERS {
        join_all(ALL.into_iter().map(async |dialect| {
            let request = CreateRequest { shell: Some(dialect.name().to_owned()), ..by(profile, &work) };
            let shell = server.session_with(request).await;
            assert_eq!(shell.look().await.confinement, Some(tier));
            works(&server, &shell, dialect, tier).await;
        }))
        .await;
        assert!(has_builtins(&server.session_with(by(profile, &work)).await).await);
        assert_eq!(fs::read_to_string(work.join("bash")).expect("written"), "inside\n");
        fs::remove_file(work.join("bash")).expect("there");
        assert!(!server.home().path().join("outside").exists());
    }
}

async fn works(server: &Server, shell: &Session, dialect: Dialect, tier: ConfinementTier) {
    let name = dialect.name();
    let done = shell.run("sh -c 'exit 7'").await;
    assert_eq!((done.exit_code, done.boundary), (Some(7), Boundary::Attested), "{name}");
    assert_eq!(shell.gives(&format!("echo inside >{name}; cat {name} | tr a-z A-Z")).await, (0, "INSIDE\n".to_owned()));
    // All modes but those of set-user-id and set-group-id files.
    let modes = format!("chmod 1750 {name}; stat -c %a {name}; chmod 644 {name}; stat -c %a {name}");
    assert_eq!(shell.gives(&modes).await.1, "1750\n644\n", "{name}");
    let (code, refused) = shell.gives("cat ~/.ssh/id; cat ~/open; echo x >~/outside").await;
    let secret = if tier == ConfinementTier::Sandbox { "No such file or directory" } else { "Permission denied" };
    assert!(code != 0 && refused.contains(&format!("/.ssh/id: {secret}\nopen\n")), "{name}: {refused}");
    // Its temporary files are its own, and go with it.
    let temporary = shell.gives("echo $TMPDIR; echo text >$TMPDIR/file; cat $TMPDIR/file; tty").await.1;
    let lines: Vec<_> = temporary.lines().collect();
    let [folder, "text", terminal] = lines[..] else { panic!("{name}: {temporary}") };
    let outside = server.home().state().join(format!("sessions/{}/tmp", shell.id));
    let inside = if tier == ConfinementTier::Sandbox { "/tmp".into() } else { outside.canonicalize().expect("there") };
    assert!(std::path::Path::new(folder) == inside && terminal.starts_with("/dev/pts/"), "{temporary}");
    assert_eq!(fs::read_to_string(outside.join("file")).expect("written"), "text\n", "{name}");
    if !dialect.is_fish() {
        // More than a pipe takes, so that the shell writes a file.
        let document = "line of a here-document\n".repeat(5_000);
        assert_eq!(shell.gives(&format!("wc -l <<E\n{document}E")).await, (0, "5000\n".to_owned()), "{name}");
    }
    let asked = shell.run(&dialect.ask("name? ")).await;
    assert_eq!(asked.ended_by, Some(EndedBy::InputWanted), "{name}");
    assert!(shell.types("ann").await.output.ends_with("got:ann\n"), "{name}");
    let begun = shell.run_until("sh -c 'echo up; exec sleep 60'", "up").await;
    shell.signal("INT").await;
    assert_eq!(shell.end_of(&begun).await.signal.as_deref(), Some("INT"), "{name}");
    shell.ends().await;
    eventually("its temporary files are removed", async || (!outside.exists()).then_some(())).await;
}

#[tokio::test]
// promise: access-13
async fn a_profile_says_what_more_is_allowed_and_hidden() {
    let Some(server) = start().await else { return };
    let shell = server.session_with(by("online", &server.home().file("work"))).await;
    for (command, allowed) in [
        ("cat ~/.ssh/known_hosts", true),
        ("cat ~/.ssh/id", false),
        ("cat ~/private/text", false),
        ("echo x >~/.bashrc", false),
        ("echo x >~/files/there", true),
        ("echo x >~/more/there && mv ~/more/there ~/files/moved", true),
    ] {
        assert_eq!(shell.gives(command).await.0 == 0, allowed, "{command}");
    }
    if !lacks(&[PYTHON]) {
        // A terminal of its own, which a session has only by its profile.
        let opens = format!("{PYTHON} -c 'import os, pty; print(os.isatty(pty.openpty()[1]))'");
        assert_eq!(shell.gives(&opens).await, (0, "True\n".to_owned()));
        let confined = server.session_with(by("confined", &server.home().file("work"))).await;
        assert_eq!(confined.gives(&opens).await.0, 1);
        let ports = format!(
            "{PYTHON} -c 'import socket; socket.create_server((\"127.0.0.1\", 0)); print(socket.if_nameindex()[0][1])'"
        );
        assert_eq!(shell.gives(&ports).await, (0, "lo\n".to_owned()));
        let unix = shell.gives(&format!("{PYTHON} -c 'import socket; socket.socket(socket.AF_UNIX)'")).await;
        assert!(unix.0 == 1 && unix.1.contains("PermissionError"), "{}", unix.1);
    }
}

#[tokio::test]
// promise: access-13
async fn a_confined_session_that_could_reach_more_is_not_started() {
    let Some(server) = start().await else { return };
    let home = server.home().path().to_owned();
    // A folder of secrets that is a link.
    fs::create_dir_all(home.join("stored")).expect("made");
    fs::create_dir_all(home.join(".config/fish")).expect("made");
    std::os::unix::fs::symlink(home.join("stored"), home.join(".gnupg")).expect("made");
    for (folder, why) in [
        (home.clone(), "where secrets are kept"),
        (home.join(".ssh"), "cannot be the working directory"),
        (server.home().state(), "cannot be the working directory"),
        (home.join(".config/fish"), "cannot be the working directory"),
        (home.join("stored"), "cannot be the working directory"),
        ("/etc".into(), "cannot be the working directory"),
        ("/".into(), "where secrets are kept"),
    ] {
        match server.client().create(&by("confined", &folder), None).await {
            Err(ClientError::Refused(problem)) => {
                assert_eq!((problem.code, problem.field.as_deref()), (ErrorCode::InvalidField, Some("cwd")));
                assert!(problem.detail.contains(why), "{}", problem.detail);
            }
            other => panic!("{}: not refused: {other:?}", folder.display()),
        }
    }
}

#[tokio::test]
// promise: access-4
async fn a_token_that_is_bound_to_profiles_gets_no_other_session_and_no_more_by_a_request() {
    let Some(server) = start().await else { return };
    let work = server.home().file("work");
    let token = |name: &str, scope, profiles: &[&str]| TokenRequest {
        name: name.to_owned(),
        scope,
        expires_in: None,
        profiles: profiles.iter().map(|name| (*name).to_owned()).collect(),
        confinement: None,
        ..TokenRequest::default()
    };
    let of = async |request: TokenRequest| server.client().make_token(&request).await;
    for wrong in [
        token("a", TokenScope::Admin, &["confined"]),
        token("a", TokenScope::Write, &[""]),
        token("a", TokenScope::Write, &["confined"; 17]),
    ] {
        assert_eq!(of(wrong).await.err().and_then(|e| e.code()), Some(ErrorCode::InvalidField));
    }
    let made = of(token("bot", TokenScope::Write, &["bound", "online"])).await.expect("made");
    assert_eq!(made.profiles, ["bound", "online"]);
    server.kill9();
    server.again();
    let bot = Client::tcp(server.address(), made.token);
    let at = |profile: &str| CreateRequest { profile: Some(profile.to_owned()), ..by("", &work) };
    let unnamed = CreateRequest { profile: None, ..by("", &work) };
    let own = bot.create(&unnamed, None).await.expect("its first profile");
    assert_eq!((own.profile.as_deref(), own.confinement), (Some("bound"), Some(ConfinementTier::Process)));
    assert_eq!(bot.create(&at("online"), None).await.expect("its second one").profile.as_deref(), Some("online"));
    let limited = |most| {
        let limits = Limits { open_files: Some(most), ..Limits::default() };
        CreateRequest { limits: Some(limits), ..at("bound") }
    };
    assert!(bot.create(&limited(200), None).await.is_ok());
    for (request, code) in [
        (at("open"), ErrorCode::Forbidden),
        (at("default"), ErrorCode::Forbidden),
        (limited(301), ErrorCode::InvalidField),
        (CreateRequest { cwd: Some("/etc".to_owned()), ..unnamed.clone() }, ErrorCode::InvalidField),
        (CreateRequest { cwd: Some(server.home().file("").display().to_string()), ..unnamed }, ErrorCode::InvalidField),
    ] {
        assert_eq!(bot.create(&request, None).await.err().and_then(|e| e.code()), Some(code), "{request:?}");
    }
    assert_eq!(server.client().create(&at("open"), None).await.expect("the user's").confinement, None);
}

#[tokio::test]
// promise: access-13
async fn a_confined_session_of_an_ordinary_user_cannot_stop_the_server() {
    let Some(server) = confining(serve(home())).await else { return };
    let work = server.home().file("work");
    let (home, state) = (server.home().path().to_owned(), server.home().state());
    let places = ["", "sessions", "shell-integration", "store.db", "token"].map(|name| state.join(name));
    let more = [home.clone(), home.join(".bashrc"), home.join("config/ptyd/config.toml"), server.home().socket()];
    for (_, profile) in TIERS {
        let shell = server.session_with(by(profile, &work)).await;
        for place in places.iter().chain(&more) {
            let before = fs::metadata(place).expect("there").permissions();
            assert_ne!(shell.gives(&format!("chmod 0 {}", place.display())).await.0, 0, "{profile}: {place:?}");
            assert_eq!(fs::metadata(place).expect("there").permissions(), before, "{profile}: {place:?}");
        }
        assert_eq!(shell.gives("echo a >mode; chmod 700 mode; stat -c %a mode").await, (0, "700\n".to_owned()));
    }
}

/// Folders from which programs outside run something, or that belong to no project.
const NO_PROJECTS: [&str; 20] = [
    "bin",
    "go/bin",
    "dotfiles",
    ".cargo/bin",
    "snap",
    "Desktop",
    "Downloads",
    "other-project",
    "node_modules/.bin",
    "miniconda3/bin",
    ".config/autostart",
    "src/.git/hooks",
    "src/.git",
    "public_html",
    "/opt",
    "/srv",
    "/var/www",
    "/var/lib",
    "/usr/local/bin",
    "/etc/cron.d",
];

#[tokio::test]
// promise: access-13
async fn a_token_that_is_bound_to_profiles_chooses_no_folder_that_they_do_not_name() {
    let Some(server) = start().await else { return };
    let home = server.home().path();
    let token = |name: &str, profile: &str| TokenRequest {
        name: name.to_owned(),
        scope: TokenScope::Write,
        profiles: vec![profile.to_owned()],
        ..TokenRequest::default()
    };
    let of = async |name: &str, profile| {
        let made = server.client().make_token(&token(name, profile)).await.expect("made");
        Client::tcp(server.address(), made.token)
    };
    let (unnamed, wide) = (of("unnamed", "sandbox").await, of("wide", "wide").await);
    // A token without a profile has each request choose its folder.
    let confinement = Some(ConfinementTier::Sandbox);
    let request = TokenRequest { confinement, profiles: Vec::new(), ..token("choosing", "") };
    let choosing = Client::tcp(server.address(), server.client().make_token(&request).await.expect("made").token);
    for folder in NO_PROJECTS {
        let folder = home.join(folder);
        if folder.starts_with(home) {
            fs::create_dir_all(&folder).expect("made");
        }
        match unnamed.create(&by("sandbox", &folder), None).await {
            Err(ClientError::Refused(problem)) => {
                assert_eq!((problem.code, problem.field.as_deref()), (ErrorCode::InvalidField, Some("profile")));
                assert!(problem.detail.contains("give the profile a `cwd`"), "{}", problem.detail);
            }
            other => panic!("{}: not refused: {other:?}", folder.display()),
        }
        // One whose token is not bound chooses a project, and none of these.
        let is_a_projects = ["dotfiles", "snap", "Desktop", "Downloads", "other-project", "public_html"];
        if !is_a_projects.iter().any(|name| folder.ends_with(name)) {
            let plain = CreateRequest { profile: None, ..by("", &folder) };
            for (client, request) in [(&choosing, plain), (server.client(), by("sandbox", &folder))] {
                let refused = client.create(&request, None).await.err();
                assert_eq!(refused.and_then(|e| e.code()), Some(ErrorCode::InvalidField), "{}", folder.display());
            }
        }
    }
    for (folder, is_given) in [
        ("other-project", true),
        ("bin", false),
        (".cargo/bin", false),
        (".ssh", false),
        ("src/.git", false),
        ("src/.git/none", false),
        (".config/none", false),
    ] {
        let refused = wide.create(&by("wide", &home.join(folder)), None).await.err();
        let code = (!is_given).then_some(ErrorCode::InvalidField);
        assert_eq!(refused.and_then(|e| e.code()), code, "{folder}");
    }
}

#[tokio::test]
// promise: access-13
async fn a_request_and_a_token_can_ask_for_confinement_and_neither_for_less() {
    let Some(server) = start().await else { return };
    let (work, client) = (server.home().file("work"), server.client());
    let given = client.capabilities().await.expect("an answer").confinement;
    // Containers need more than a kernel.
    let shown: Vec<_> = given
        .iter()
        .filter(|it| it.tier != ConfinementTier::Container)
        .map(|tier| (tier.tier, tier.available, tier.reason.as_deref()))
        .collect();
    assert_eq!(shown, TIERS.map(|(tier, _)| (tier, true, None)));

    let asked = Some(ConfinementTier::Process);
    let plain = CreateRequest { profile: None, ..by("", &work) };
    let confined = CreateRequest { confinement: asked, ..plain.clone() };
    for (request, tier) in [(&plain, None), (&confined, asked), (&by("confined", &work), asked)] {
        assert_eq!(client.create(request, None).await.expect("started").confinement, tier, "{request:?}");
    }
    let shell = server.session_with(confined.clone()).await;
    let secret = server.home().state().join("token");
    assert_ne!(shell.gives(&format!("cat {}", secret.display())).await.0, 0, "the server's token");
    assert_ne!(shell.gives(": < /dev/tcp/127.0.0.1/1 2> refused; grep -q refused refused").await.0, 0, "no network");

    let token = |scope| TokenRequest {
        name: "bot".to_owned(),
        scope,
        expires_in: None,
        profiles: Vec::new(),
        confinement: asked,
        ..TokenRequest::default()
    };
    let refused = client.make_token(&token(TokenScope::Admin)).await.err().and_then(|e| e.code());
    assert_eq!(refused, Some(ErrorCode::InvalidField));
    let made = client.make_token(&token(TokenScope::Write)).await.expect("made");
    assert_eq!(made.confinement, asked);
    server.kill9();
    server.again();
    let bot = Client::tcp(server.address(), made.token);
    for request in [&plain, &confined, &by("confined", &work), &by("open", &work)] {
        let of_bot = bot.create(request, None).await.expect("started");
        assert_eq!(of_bot.confinement, asked, "{request:?}");
    }
    let online = bot.create(&by("online", &work), None).await.expect("its profile says how");
    assert_eq!(online.confinement, asked);
    assert_eq!(server.client().create(&plain, None).await.expect("the user's").confinement, None);
}

#[tokio::test]
// promise: access-13
async fn a_request_gets_no_more_by_the_home_that_it_names() {
    let Some(server) = start().await else { return };
    let (home, work) = (server.home().path().to_owned(), server.home().file("work"));
    for named in [home.join(".ssh"), server.home().state(), "/nonexistent".into()] {
        let env = [("HOME".to_owned(), named.display().to_string())].into();
        let shell = server.session_with(CreateRequest { env, ..by("confined", &work) }).await;
        for secret in [home.join(".ssh/id"), server.home().state().join("token")] {
            assert_ne!(shell.gives(&format!("cat {}", secret.display())).await.0, 0, "{named:?}: {secret:?}");
        }
    }
}

/// Exchanges two paths until it is dropped, as another session could.
struct Exchange(Arc<AtomicBool>);

impl Exchange {
    fn of(here: PathBuf, there: PathBuf) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let at = rustix::fs::CWD;
        let exchange = move || rustix::fs::renameat_with(at, &here, at, &there, rustix::fs::RenameFlags::EXCHANGE);
        std::thread::spawn(move || while !seen.load(Ordering::Relaxed) && exchange().is_ok() {});
        Self(is_over)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The profiles that name the folder which `process_outer` and `sandbox_outer` can exchange.
const OF_FOLDER: [&str; 3] = ["cwd", "writable", "readable"];

#[tokio::test]
// promise: access-13
async fn a_link_in_place_of_a_profiles_folder_is_not_followed() {
    let Some(server) = start().await else { return };
    let home = server.home().path().display().to_string();
    let config = format!("{home}/config/ptyd");
    let state = server.home().state().display().to_string();
    fs::create_dir_all(server.home().path().join(".local/bin")).expect("made");
    for (tier, _) in TIERS {
        let tier = serde_json::to_value(tier).expect("a name").as_str().expect("text").to_owned();
        let outer = server.session_with(by(&format!("{tier}_outer"), &server.home().file(""))).await;
        let inner = |of: &str| CreateRequest { cwd: Some(home.clone()), ..by(&format!("{tier}_{of}"), "".as_ref()) };
        for target in [&format!("{home}/.ssh"), &format!("{home}/.local/bin"), &state, &config, "/usr/local"] {
            let exchanges = format!("rm -rf ~/files/work; ln -s {target} ~/files/work");
            assert_eq!(outer.gives(&exchanges).await.0, 0);
            for of in OF_FOLDER {
                match server.client().create(&inner(of), None).await {
                    Err(ClientError::Refused(problem)) => {
                        let why = format!("leads through the link {home}/files/work, which a session could have made");
                        assert!(problem.detail.contains(&why), "{}", problem.detail);
                    }
                    other => panic!("{tier} {of} {target}: not refused: {other:?}"),
                }
            }
        }
        assert_eq!(outer.gives("rm ~/files/work; mkdir ~/files/work; echo its >~/files/work/file").await.0, 0);
        for of in OF_FOLDER {
            let shell = server.session_with(inner(of)).await;
            assert_eq!(shell.gives("cat ~/files/work/file").await, (0, "its\n".to_owned()), "{tier} {of}");
        }
    }
}

#[tokio::test]
// promise: access-13
async fn a_link_in_a_folder_that_every_user_can_change_is_not_followed() {
    let home = Home::make();
    let folder = home.file("files");
    fs::create_dir_all(&folder).expect("made");
    // The folder is root's, and the link of a server's user.
    let link = tempfile::Builder::new()
        .prefix("ptyd-e2e-")
        .make_in("/tmp", |path| std::os::unix::fs::symlink(&folder, path))
        .expect("made");
    let link = link.path().to_str().expect("text");
    configure(&home, &format!("[profiles.linked]\nconfinement = {{ tier = 'process', writable = ['{link}'] }}\n"));
    let server = serve(home);
    match server.client().create(&by("linked", &folder), None).await {
        Err(ClientError::Refused(problem)) if problem.detail.contains("its confinement needs") => {
            not_run(problem.detail)
        }
        Err(ClientError::Refused(problem)) => {
            let why = format!("leads through the link {link}, which a session could have made");
            assert!(problem.detail.contains(&why), "{}", problem.detail);
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
// promise: access-13
async fn a_folder_that_is_exchanged_for_a_link_during_the_start_gives_no_secret() {
    let Some(server) = start().await else { return };
    let [secrets, workspace, link] = [".ssh", "files/work", "files/link"].map(|name| server.home().path().join(name));
    std::os::unix::fs::symlink(&secrets, &link).expect("made");
    let _exchange = Exchange::of(workspace.clone(), link);
    let tries = format!("cat {0}/id; echo w >{0}/id; ls {0}", secrets.display());
    let of_folder = ["process", "sandbox"].map(|tier| OF_FOLDER.map(|of| format!("{tier}_{of}"))).concat();
    for profile in TIERS.map(|(_, profile)| profile.to_owned()).into_iter().chain(of_folder) {
        let cwd = if profile.contains('_') { server.home().path() } else { &workspace };
        let (mut started, mut refused) = (0, 0);
        while started < EXCHANGED_STARTS {
            match server.client().create(&by(&profile, cwd), None).await {
                Ok(session) => {
                    let shell = Session::new(Arc::clone(server.client()), session.id);
                    let shown = shell.gives(&tries).await.1;
                    assert!(!shown.contains("ssh/id\n") && !shown.contains("known_hosts\n"), "{profile}: {shown}");
                    shell.ends().await;
                    started += 1;
                }
                // It was the link.
                Err(ClientError::Refused(_)) => refused += 1,
                Err(other) => panic!("{other}"),
            }
            assert!(refused < 50 * EXCHANGED_STARTS, "{profile}: {started} started");
        }
    }
    assert_eq!(fs::read_to_string(secrets.join("id")).expect("it is there"), ".ssh/id\n");
}
