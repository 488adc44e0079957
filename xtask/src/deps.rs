//! `cargo xtask deps`: checks dependencies. Licences, banned crates and sources (`deny.toml`), known advisories, the minimum
//! version of Rust, and unused dependencies.
//!
//! It needs no second toolchain: a dependency says itself which Rust it needs, and clippy (`incompatible_msrv`) looks at what
//! our own code takes from the standard library. That shows neither that a dependency is right about itself nor that nothing
//! of the language is newer; only a build with the old compiler does.

use crate::tool;
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

/// Looks at everything, and fails when anything is wrong.
pub fn check(root: &Path) -> Result<()> {
    let mut cargo = workspace::cargo(root);
    cargo.args(["metadata", "--format-version", "1", "--all-features"]);
    cargo.args(PLATFORMS.iter().flat_map(|platform| ["--filter-platform", *platform]));
    let text = workspace::printed(&mut cargo)?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata printed something that is not JSON")?;

    let problems = too_new(&metadata)?;
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
    // It prints the line of each dependency that no code uses, and fails.
    let mut shear = Command::new(tool::SHEAR.find(&target)?);
    workspace::succeed(shear.current_dir(root).args(["--locked", "--deny-warnings"]))?;
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
}
