//! The dependency rules: which crates may depend on which, and which names belong to which crate.
//!
//! A crate exists because of a sentence about what it must not depend on; these are the sentences. Tests may cross a wall
//! of names (they forge journals and run servers), but not one of dependencies.

use crate::source;
use crate::tree::{TextFile, Violation, text_files};
use crate::workspace;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crates of ours that each crate of ours may depend on.
const WALLS: [(&str, &[&str]); 15] = [
    ("api", &[]),
    ("client", &["api"]),
    ("directory", &[]),
    ("e2e", &["api", "client"]),
    ("foreground", &[]),
    ("holder", &["foreground", "journal", "sys", "wire"]),
    ("journal", &[]),
    ("policy", &[]),
    ("ptyd", &["api", "client", "policy", "ptyd-core", "server", "sys", "terminal"]),
    ("ptyd-core", &["directory", "foreground", "journal", "policy", "sys", "terminal", "wire"]),
    ("server", &["api", "ptyd-core", "terminal"]),
    ("sys", &[]),
    ("terminal", &[]),
    ("wire", &["foreground", "journal", "sys"]),
    ("xtask", &[]),
];

/// The crates that must not be in a crate's dependency tree, at any depth. The holder is one of thousands of processes: no runtime, no
/// JSON, no terminal emulation. The core names no protocol.
const NEVER_IN: [(&str, &[&str]); 2] = [
    ("holder", &["tokio", "hyper", "axum", "serde_json", "vte", "alacritty_terminal", "avt"]),
    ("ptyd-core", &["axum", "http", "hyper", "rmcp", "schemars", "tokio-tungstenite", "tower"]),
];

/// The floors of a crate's top-level modules, lowest first. A module names modules of lower floors only, and none
/// beside it on its own floor; `lib.rs` names them all.
const FLOORS: [(&str, &[&[&str]]); 2] = [
    (
        "core",
        &[
            &[
                "block_in_place",
                "confinement_tier",
                "ids",
                "keys",
                "limits",
                "low_priority",
                "machine_pause",
                "mutex",
                "per_principal",
                "store",
                "unix_stream",
                "syslog_address",
                "web_origin",
            ],
            &["approval_wait", "delivery", "lane", "memory", "token_bounds"],
            &["principal"],
            &["action"],
            &["agent_defaults", "config", "host", "metrics", "profile", "serve_error", "traces"],
            &["config_file", "state_dir"],
            &["audit", "credentials", "instance_lock", "policy_file", "shell", "unix_socket"],
            &["composites", "sessions"],
            &["dispatch"],
        ],
    ),
    ("server", &[&["http", "traces"], &["secret_page"], &["page"], &["mcp", "rest", "ws"], &["serve"]]),
];

/// The protocols of the server, and its page for people: they parse and render.
const PROTOCOLS: [&str; 5] = ["mcp", "page", "rest", "secret_page", "ws"];

/// The modules that a protocol may use of the core: the interface and the dispatcher, the principal of a request, and the ids, names
/// of keys and bounds in which it speaks, with the lane of its work. Nothing that knows a credential or a session.
const OPEN_TO_PROTOCOLS: [&str; 10] =
    ["action", "approval_wait", "delivery", "dispatch", "ids", "keys", "lane", "limits", "principal", "token_bounds"];

/// The terminal is a function of bytes, the foreground's rules are functions of facts, a policy is one of text: no IO and no clock.
const PURE: [&str; 3] = ["foreground", "policy", "terminal"];

/// The modules of the standard library that a pure crate must not use.
const NEVER_IN_PURE: [&str; 4] = ["fs", "net", "process", "thread"];

/// A `Duration` is only a number, and foreign traits speak in it; these read a clock.
const CLOCKS: [&str; 3] = ["Instant", "SystemTime", "UNIX_EPOCH"];

/// How the core reaches a machine: processes, groups, users and sockets of the kernel.
const MACHINE: [&str; 7] = ["*", "as", "cgroup", "process", "socket", "spawn", "user"];

/// The files of a session's folder, and the way to its holder.
const GROUND: [(&str, &[&str]); 2] =
    [("journal", &["EVENTS_FILE", "JOURNAL_FILE"]), ("wire", &["Claim", "Holding", "SOCKET_FILE"])];

/// The module of the core that reaches the sessions' machine and their holders.
const HOST: &str = "host";

/// The state of a live session and its steps. It gets its time and its inputs by steps, so that tests can take every step.
const SESSION: &str = "crates/core/src/sessions/session/machine/";

/// The names that the state of a live session does not use.
const NEVER_IN_SESSION: [&str; 7] =
    ["Instant::now", "SystemTime::now", ".elapsed()", "HolderConnection", "std::fs", "tokio::spawn", "mpsc::"];

/// The names with which a journal is written.
const JOURNAL_WRITERS: [&str; 2] = ["Writer", "EventsWriter"];

/// Looks at the crates' manifests and at their source.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let graph = Graph::read(&workspace::metadata(root)?)?;
    let mut found = dependencies(&graph);
    found.extend(trees(&graph));
    for file in text_files(root)?.iter().filter(|file| file.extension() == "rs") {
        found.extend(names(file));
    }
    Ok(found)
}

/// The dependencies between packages, named by cargo's ids, because two versions of one name can be in one tree.
struct Graph {
    /// The crates of ours: each one's own manifest names these of ours, for whatever purpose.
    ours: BTreeMap<String, BTreeSet<String>>,
    names: BTreeMap<String, String>,
    /// The packages linked into each package.
    linked: BTreeMap<String, Vec<String>>,
}

impl Graph {
    fn read(metadata: &Value) -> Result<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo metadata lacks a name");
        let list = |value: &Value| value.as_array().cloned().context("cargo metadata lacks a list");
        let members: BTreeSet<String> =
            list(&metadata["workspace_members"])?.iter().map(text).collect::<Result<_>>()?;
        let packages = list(&metadata["packages"])?;

        let mut names = BTreeMap::new();
        for package in &packages {
            names.insert(text(&package["id"])?, text(&package["name"])?);
        }
        let our_names: BTreeSet<&String> = members.iter().filter_map(|id| names.get(id)).collect();
        let mut ours = BTreeMap::new();
        for package in packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| members.contains(id))) {
            let mut needed = BTreeSet::new();
            for dependency in list(&package["dependencies"])? {
                let name = text(&dependency["name"])?;
                // Ours are those with a path: a crate on the registry may be called `client` too.
                if our_names.contains(&name) && dependency["path"].is_string() {
                    needed.insert(name);
                }
            }
            ours.insert(text(&package["name"])?, needed);
        }
        let mut linked = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"])? {
            let mut needed = Vec::new();
            for dependency in list(&node["deps"])? {
                if list(&dependency["dep_kinds"])?.iter().any(|kind| kind["kind"].is_null()) {
                    needed.push(text(&dependency["pkg"])?);
                }
            }
            linked.insert(text(&node["id"])?, needed);
        }
        Ok(Self { ours, names, linked })
    }
}

/// The manifest of a crate of ours.
fn manifest(name: &str) -> String {
    match name {
        "xtask" => "xtask/Cargo.toml".to_owned(),
        _ => format!("crates/{}/Cargo.toml", name.trim_start_matches("ptyd-")),
    }
}

fn dependencies(graph: &Graph) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, needed) in &graph.ours {
        let manifest = manifest(name);
        let Some((_, allowed)) = WALLS.iter().find(|(crate_name, _)| crate_name == name) else {
            found.push(Violation::at(&manifest, 1, format!("`{name}` has no wall: say what it may depend on")));
            continue;
        };
        for other in needed.iter().filter(|other| !allowed.contains(&other.as_str())) {
            let what = format!("`{name}` must not depend on `{other}`; of ours it may use {allowed:?}");
            found.push(Violation::at(&manifest, 1, what));
        }
    }
    found
}

fn trees(graph: &Graph) -> Vec<Violation> {
    NEVER_IN.iter().flat_map(|(root, never)| tree(graph, root, never)).collect()
}

/// The forbidden packages below one crate, each with the way to it.
fn tree(graph: &Graph, root: &str, never: &[&str]) -> Vec<Violation> {
    let Some((start, _)) = graph.names.iter().find(|(_, name)| *name == root) else {
        return vec![Violation::at(&manifest(root), 1, format!("there is no {root}"))];
    };
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([start]);
    let mut open = vec![(start, root.to_owned())];
    while let Some((id, way)) = open.pop() {
        for next in graph.linked.get(id).into_iter().flatten() {
            if !seen.insert(next) {
                continue;
            }
            let name = graph.names.get(next).map_or("", String::as_str);
            let way = format!("{way} → {name}");
            if never.contains(&name) {
                found.push(Violation::at(&manifest(root), 1, format!("{root} must not contain `{name}`: {way}")));
            }
            open.push((next, way));
        }
    }
    found
}

fn names(file: &TextFile) -> Vec<Violation> {
    let mut parts = file.path.split('/');
    let ("crates", Some(crate_name), Some("src")) = (parts.next().unwrap_or_default(), parts.next(), parts.next())
    else {
        return Vec::new();
    };
    if file.path.ends_with("/tests.rs") || file.has_part("tests") {
        return Vec::new();
    }
    let inside: Vec<&str> = parts.collect();
    let code = source::shipped(&source::code(&file.text));
    let mut found = Vec::new();
    let mut complain = |line: usize, what: String| found.push(Violation::at(&file.path, line, what));

    if !["journal", "holder"].contains(&crate_name) {
        for (line, name) in source::names_from(&code, "journal") {
            if JOURNAL_WRITERS.contains(&name.as_str()) || ["*", "as"].contains(&name.as_str()) {
                complain(line, format!("`journal::{name}`: only the holder writes a journal, everybody else reads"));
            }
        }
    }
    if PURE.contains(&crate_name) {
        for clock in CLOCKS {
            for line in source::lines_with_word(&code, clock) {
                complain(line, format!("`{clock}`: the {crate_name} has no clock; the caller has"));
            }
        }
        for root in ["std", "core"] {
            for (line, name) in source::names_from(&code, root) {
                if NEVER_IN_PURE.contains(&name.as_str()) || ["*", "as"].contains(&name.as_str()) {
                    complain(
                        line,
                        format!("`{root}::{name}`: the {crate_name} has no IO and no clock; the caller has"),
                    );
                }
            }
        }
    }
    if crate_name == "core" && inside.first() != Some(&HOST) {
        for (line, name) in source::names_from(&code, "sys").into_iter().filter(|(_, n)| MACHINE.contains(&n.as_str()))
        {
            complain(
                line,
                format!("`sys::{name}`: the sessions' machine is reached through `{HOST}` only; ask its `Host`"),
            );
        }
        for (root, names) in GROUND {
            for (line, name) in source::names_from(&code, root).into_iter().filter(|(_, n)| names.contains(&n.as_str()))
            {
                complain(line, format!("`{root}::{name}`: holders and folders are reached through `{HOST}` only"));
            }
        }
        // A literal is blank in the code, but for its place. The files below `self` are the server's own.
        let is_of_others = |text: &str| text.starts_with("\"/proc") && !text.starts_with("\"/proc/self/");
        for (at, _) in file.text.match_indices("\"/proc").filter(|(at, _)| is_of_others(&file.text[*at..])) {
            if code[at..].starts_with('"') {
                let line = file.text[..at].matches('\n').count() + 1;
                complain(
                    line,
                    format!("`/proc`: the sessions' machine is reached through `{HOST}` only; ask its `Host`"),
                );
            }
        }
    }
    if file.path.starts_with(SESSION) {
        for (i, text) in code.lines().enumerate() {
            for name in NEVER_IN_SESSION.iter().filter(|name| text.contains(**name)) {
                complain(i + 1, format!("`{name}`: a session's state gets its time and its inputs by `Session::step`"));
            }
        }
    }
    let module = inside.first().map(|part| part.trim_end_matches(".rs")).filter(|part| *part != "lib");
    if let (Some(floors), Some(module)) = (floors(crate_name), module) {
        let floor = |module: &str| floors.iter().position(|floor| floor.contains(&module));
        if floor(module).is_none() {
            complain(1, format!("`{module}` is on no floor of `{crate_name}`: put it into FLOORS"));
        }
        for (line, name) in taken_from_crate(&code, depth(&inside)) {
            if name == module {
                continue;
            }
            if floor(&name).is_none() {
                complain(line, format!("`{name}` is on no floor of `{crate_name}`: name things by their module"));
            } else if floor(module) <= floor(&name) {
                complain(line, format!("`{module}` must not name `{name}`: it is on no lower floor of `{crate_name}`"));
            }
        }
        if PROTOCOLS.contains(&module) {
            for (line, name) in source::names_from(&code, "ptyd_core") {
                if !OPEN_TO_PROTOCOLS.contains(&name.as_str()) {
                    complain(line, format!("`{name}`: a protocol takes only {OPEN_TO_PROTOCOLS:?}; ask by an Action"));
                }
            }
        }
    }
    found
}

/// The floors of a crate, if it has some.
fn floors(crate_name: &str) -> Option<&'static [&'static [&'static str]]> {
    FLOORS.iter().find(|(name, _)| *name == crate_name).map(|(_, floors)| *floors)
}

/// How many `super` lead from a file's module to the crate's root.
fn depth(inside: &[&str]) -> usize {
    let is_own_folder = inside.last().is_some_and(|name| *name == "mod.rs");
    inside.len() - usize::from(is_own_folder)
}

/// The crate's top-level names that a file takes, by `crate::` or by as many `super::` as lead to the root.
fn taken_from_crate(code: &str, depth: usize) -> Vec<(usize, String)> {
    let mut names = source::names_from(code, "crate");
    let chain = vec!["super"; depth].join("::");
    // `pub(super)` and a shorter chain stay inside the door.
    names.extend(source::names_from(code, &chain).into_iter().filter(|(_, name)| name != "super"));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(edges: &[(&str, &str)]) -> Value {
        let ids = ["holder", "journal", "ptyd-core", "server", "client"];
        let packages: Vec<Value> = ids
            .iter()
            .map(|id| {
                let needed: Vec<Value> = edges
                    .iter()
                    .filter(|(from, _)| from == id)
                    .map(|(_, to)| json!({"name": to, "path": ids.contains(to).then_some("here")}))
                    .collect();
                json!({"id": id, "name": id, "dependencies": needed})
            })
            .chain(["tokio", "bytes", "tower"].map(|id| json!({"id": id, "name": id, "dependencies": []})))
            .collect();
        let nodes: Vec<Value> = ["holder", "journal", "ptyd-core", "server", "client", "tokio", "bytes", "tower"]
            .iter()
            .map(|id| {
                let linked = edges.iter().filter(|(from, _)| from == id);
                let deps: Vec<Value> =
                    linked.map(|(_, to)| json!({"pkg": to, "dep_kinds": [{"kind": null}]})).collect();
                json!({"id": id, "deps": deps})
            })
            .collect();
        json!({"workspace_members": ids, "packages": packages, "resolve": {"nodes": nodes}})
    }

    fn graph_complaints(edges: &[(&str, &str)]) -> Vec<String> {
        let graph = Graph::read(&metadata(edges)).unwrap();
        let found = dependencies(&graph).into_iter().chain(trees(&graph));
        found.map(|violation| violation.what).collect()
    }

    #[test]
    fn dependencies_along_the_walls_are_fine_and_across_them_are_found() {
        assert_eq!(graph_complaints(&[("holder", "journal"), ("server", "ptyd-core"), ("server", "tokio")]), [""; 0]);
        let expected = ["`client` must not depend on `server`; of ours it may use [\"api\"]"];
        assert_eq!(graph_complaints(&[("client", "server")]), expected);
    }

    #[test]
    fn a_runtime_in_the_holder_is_found_at_any_depth_with_the_way_to_it() {
        let expected = ["holder must not contain `tokio`: holder → journal → bytes → tokio"];
        assert_eq!(graph_complaints(&[("holder", "journal"), ("journal", "bytes"), ("bytes", "tokio")]), expected);
    }

    #[test]
    fn a_protocol_in_the_core_is_found_and_one_in_the_server_is_fine() {
        assert_eq!(graph_complaints(&[("server", "ptyd-core"), ("server", "tower"), ("ptyd-core", "bytes")]), [""; 0]);
        let expected = ["ptyd-core must not contain `tower`: ptyd-core → bytes → tower"];
        assert_eq!(graph_complaints(&[("ptyd-core", "bytes"), ("bytes", "tower")]), expected);
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        names(&file).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn only_the_holder_names_the_writers_of_a_journal() {
        let text = "use journal::{Reader, Writer};\nlet w = journal::EventsWriter::open();\nuse journal::Offset;\n\
                    use journal as j;\n// journal::Writer\n#[cfg(test)]\nmod tests { use journal::Writer; }\n";
        assert_eq!(lines("crates/core/src/sessions/replay.rs", text), [1, 2, 4]);
        assert_eq!(lines("crates/holder/src/output_pump.rs", text), [0; 0]);
        assert_eq!(lines("crates/core/tests/replay.rs", text), [0; 0]);
    }

    #[test]
    fn a_protocol_takes_only_the_interface_of_the_core() {
        let text = "use ptyd_core::action::Action;\nuse ptyd_core::sessions::Services;\nuse crate::http::problem;\n\
                    let x = crate::mcp::tools();\nuse super::super::serve;\nuse super::body;\npub(super) fn f() {}\n\
                    #[cfg(test)]\nmod tests { use ptyd_core::credentials::Tokens; }\n";
        assert_eq!(lines("crates/server/src/rest/terminals.rs", text), [4, 5, 2]);
        assert_eq!(lines("crates/server/src/mcp/mod.rs", "use super::{audit, http};\nuse self::tools;\n"), [1]);
        assert_eq!(lines("crates/server/src/serve/router.rs", "use ptyd_core::sessions::Services;\n"), [0; 0]);
    }

    #[test]
    fn a_module_names_modules_of_lower_floors_only() {
        let text = "use crate::action::Action;\nuse crate::credentials::tickets;\nuse crate::{ids, dispatch::Dispatcher};\n\
                    use crate::composites::expand;\nlet x = super::super::dispatch::name();\nuse super::wait;\n\
                    #[cfg(test)]\nmod tests { use crate::dispatch::Dispatcher; }\n";
        assert_eq!(lines("crates/core/src/sessions/wait.rs", text), [3, 4, 5]);
        assert_eq!(lines("crates/core/src/lib.rs", "pub use dispatch::Dispatcher;\n"), [0; 0]);
        assert_eq!(lines("crates/core/src/credentials/tickets.rs", "use crate::Config;\nuse crate::*;\n"), [1, 2]);
        assert_eq!(lines("crates/core/src/policy.rs", "use crate::action::Action;\n"), [1, 1]);
    }

    #[test]
    fn only_the_host_reaches_the_sessions_machine_and_their_holders() {
        let text = "use sys::{process, signal};\nlet x = sys::cgroup::Places::find();\nuse sys::signal;\nuse sys::*;\n\
                    let a = format!(\"/proc/{pid}/stat\");\nlet b = \"/proc/self/statm\"; // \"/proc/1\"\n\
                    let c = sys::time::now();\nlet d = folder.join(wire::SOCKET_FILE);\nuse wire::Spec;\nuse wire::{Claim, Key};\nlet e = journal::JOURNAL_FILE;\n\
                    #[cfg(test)]\nmod tests { use sys::process; }\n";
        assert_eq!(lines("crates/core/src/sessions/wait.rs", text), [1, 2, 4, 11, 8, 10, 5]);
        assert_eq!(lines("crates/core/src/host/local.rs", text), [0; 0]);
        assert_eq!(lines("crates/holder/src/signals.rs", text), [0; 0]);
    }

    #[test]
    fn the_state_of_a_session_reads_no_clock_and_sends_nothing() {
        let text = "let now = Instant::now();\nlet at = self.now.at;\nuse crate::host::holders::HolderConnection;\n\
                    // SystemTime::now\nlet waited = began.elapsed();\n";
        assert_eq!(lines("crates/core/src/sessions/session/machine/waits/state.rs", text), [1, 3, 5]);
        assert_eq!(lines("crates/core/src/sessions/session/actor.rs", text), [0; 0]);
        assert_eq!(lines("crates/core/src/sessions/wait.rs", text), [0; 0]);
    }

    #[test]
    fn a_pure_crate_has_no_io_and_no_clock() {
        let text = "use std::{fmt, time::Instant};\nlet f = std::fs::read();\nuse std::{collections::VecDeque, time::Duration};\n";
        assert_eq!(lines("crates/terminal/src/screen/mod.rs", text), [1, 2]);
        assert_eq!(lines("crates/foreground/src/verdict/mod.rs", text), [1, 2]);
        assert_eq!(lines("crates/holder/src/foreground_observer.rs", text), [0; 0]);
    }
}
