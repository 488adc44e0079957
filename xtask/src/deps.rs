//! `cargo xtask deps`: checks dependencies. Licences, banned crates and sources (`deny.toml`), known advisories, the minimum
//! version of Rust, and unused dependencies.
//!
//! It needs no second toolchain: a dependency says itself which Rust it needs, and clippy (`incompatible_msrv`) looks at what
//! our own code takes from the standard library. That shows neither that a dependency is right about itself nor that nothing
//! of the language is newer; only a build with the old compiler does.

use crate::tool;
use crate::tree::{self, TextFile};
use crate::workspace;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The platforms that `deny.toml` is about; what others would pull in need not even be downloaded.
const PLATFORMS: [&str; 4] = [
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
];

/// How long the list of advisories may take to be fetched.
const FETCH_SECONDS: &str = "120";
/// The list is on another host than the crates, so a build may do without it.
const NOT_FETCHED: &str = "; known advisories were not checked, because their list cannot be fetched";

/// Dependencies that no code names, and why they are there.
const UNNAMED: [(&str, &str); 0] = [];

/// Looks at everything, and fails when anything is wrong.
pub fn check(root: &Path) -> Result<()> {
    let mut cargo = workspace::cargo(root);
    cargo.args(["metadata", "--format-version", "1", "--all-features"]);
    cargo.args(PLATFORMS.iter().flat_map(|platform| ["--filter-platform", *platform]));
    let text = workspace::printed(&mut cargo)?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata printed something that is not JSON")?;
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;

    let mut problems = too_new(&metadata)?;
    problems.extend(unused(&metadata, &tree::text_files(root)?, &manifest)?);
    for problem in &problems {
        println!("{problem}");
    }
    let target = workspace::target_dir(root)?;
    let file = target.join("deps-metadata.json");
    fs::create_dir_all(&target)?;
    fs::write(&file, text)?;
    let program = tool::DENY.find(&target)?;
    let deny = |says: &str| {
        let mut deny = Command::new(&program);
        // No crates of other platforms are fetched: this needs no network.
        deny.current_dir(root).args(["--log-level", says, "--offline", "--metadata-path"]).arg(&file);
        deny.args(["check", "--hide-inclusion-graph", "--allow", "duplicate", "bans", "licenses", "sources"]);
        workspace::succeed(&mut deny)
    };
    // Its errors begin with crates that it could not fetch, so it prints nothing unless a check fails.
    deny("off").or_else(|_| deny("error"))?;
    if !problems.is_empty() {
        bail!("deps: {} to put right", problems.len());
    }
    let advisories = if known_advisories(root, &program, &file)? { "" } else { NOT_FETCHED };
    println!("deps: ok{advisories}");
    Ok(())
}

/// Fails for a dependency that an advisory is about. Returns false where the list of advisories cannot be fetched.
fn known_advisories(root: &Path, deny: &Path, metadata: &Path) -> Result<bool> {
    let mut fetch = Command::new("timeout");
    fetch.current_dir(root).arg(FETCH_SECONDS).arg(deny).args(["--log-level", "off", "fetch", "db"]);
    if !fetch.status().is_ok_and(|status| status.success()) {
        return Ok(false);
    }
    let mut check = Command::new(deny);
    check.current_dir(root).args(["--log-level", "error", "--offline", "--metadata-path"]).arg(metadata);
    workspace::succeed(check.args(["check", "--hide-inclusion-graph", "advisories"]))?;
    Ok(true)
}

/// A version as numbers that can be compared.
fn version(text: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = text.split('.').map_while(|part| part.parse().ok()).collect();
    numbers.resize(3, 0);
    numbers
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn is_ours(package: &Value) -> bool {
    package["source"].is_null()
}

/// Dependencies that need a newer Rust than we promise.
fn too_new(metadata: &Value) -> Result<Vec<String>> {
    let ours =
        packages(metadata).filter(|package| is_ours(package)).find_map(|package| package["rust_version"].as_str());
    let ours = ours.context("no crate of ours names a rust-version")?;
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata resolves nothing")?;
    let is_used = |package: &Value| nodes.iter().any(|node| node["id"] == package["id"]);
    let newer = packages(metadata).filter(|package| is_used(package)).filter_map(|package| {
        let theirs = package["rust_version"].as_str()?;
        let name = package["name"].as_str()?;
        (version(theirs) > version(ours))
            .then(|| format!("{name} needs Rust {theirs}, and we promise {ours} (rust-version in Cargo.toml)"))
    });
    Ok(newer.collect())
}

/// Dependencies of our crates, and lines of the workspace's table, that no code names.
fn unused(metadata: &Value, files: &[TextFile], manifest: &str) -> Result<Vec<String>> {
    let root = metadata["workspace_root"].as_str().context("cargo metadata names no workspace")?;
    let mut problems = Vec::new();
    for package in packages(metadata).filter(|package| is_ours(package)) {
        let name = package["name"].as_str().unwrap_or_default();
        let folder = package["manifest_path"].as_str().and_then(|path| path.strip_prefix(root)).unwrap_or_default();
        let folder = folder.trim_start_matches('/').trim_end_matches("Cargo.toml");
        let code: Vec<&str> = files
            .iter()
            .filter(|file| file.extension() == "rs" && file.path.starts_with(folder))
            .map(|file| file.text.as_str())
            .collect();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let wanted = dependency["rename"].as_str().or(dependency["name"].as_str()).unwrap_or_default();
            let is_named = code.iter().any(|text| names(text, &wanted.replace('-', "_")));
            if !is_named && !UNNAMED.iter().any(|(unnamed, _)| *unnamed == wanted) {
                problems.push(format!("{folder}Cargo.toml: {name} names {wanted} nowhere"));
            }
        }
    }
    let is_wanted = |name: &str| {
        let by = |d: &Value| d["rename"].as_str().or(d["name"].as_str()) == Some(name);
        packages(metadata).filter(|p| is_ours(p)).any(|p| p["dependencies"].as_array().into_iter().flatten().any(by))
    };
    let table = manifest.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let table = table.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    let lines = table.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    problems.extend(
        lines.filter(|name| !is_wanted(name)).map(|name| format!("Cargo.toml: no crate of ours depends on {name}")),
    );
    Ok(problems)
}

/// Whether a text has this word.
fn names(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let behind = &text[at + word.len()..];
        !text[..at].ends_with(is_part) && !behind.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    // promise: check-2
    fn a_dependency_that_needs_a_newer_rust_is_reported() {
        let package = |name: &str, rust: &str, source: Value| json!({ "id": name, "name": name, "rust_version": rust, "source": source });
        let metadata = json!({
            "packages": [package("ours", "1.89", Value::Null), package("old", "1.89.0", json!("r")), package("new", "1.90", json!("r")),
                package("elsewhere", "1.99", json!("r"))],
            "resolve": { "nodes": [{ "id": "ours" }, { "id": "old" }, { "id": "new" }] },
        });
        assert_eq!(
            too_new(&metadata).unwrap(),
            ["new needs Rust 1.90, and we promise 1.89 (rust-version in Cargo.toml)"]
        );
    }

    #[test]
    // promise: check-2
    fn a_dependency_that_no_code_names_is_reported() {
        let metadata = json!({
            "workspace_root": "/w",
            "packages": [{ "name": "a", "source": null, "manifest_path": "/w/crates/a/Cargo.toml",
                "dependencies": [{ "name": "serde-json" }, { "name": "tower" }, { "name": "regex" }] }],
        });
        let text = "use serde_json::Value;\n// towers are regexes\n".to_owned();
        let files = [TextFile { path: "crates/a/src/lib.rs".to_owned(), text }];
        let manifest =
            "[workspace.dependencies]\n# why\nregex = \"1\"\nvte = { version = \"1\" }\n\n[profile.dev]\nx = 1\n";
        assert_eq!(
            unused(&metadata, &files, manifest).unwrap(),
            [
                "crates/a/Cargo.toml: a names tower nowhere",
                "crates/a/Cargo.toml: a names regex nowhere",
                "Cargo.toml: no crate of ours depends on vte"
            ]
        );
    }
}
