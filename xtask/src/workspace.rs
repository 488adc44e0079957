//! The workspace's location, and how cargo is called in it.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the workspace's Cargo.toml.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A cargo for the workspace.
pub fn cargo(root: &Path) -> Command {
    command(root, "cargo")
}

/// A program that builds and knows nothing of the cargo that runs us: build scripts would otherwise see our package's
/// variables and build everything again.
pub fn command(root: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Builds everything there is. Any smaller selection has other features of shared dependencies, and builds them again.
pub fn build(root: &Path) -> Result<()> {
    succeed(cargo(root).args(["build", "--workspace", "--all-targets"]))
}

/// Runs a command and fails with its name when it fails.
pub fn succeed(command: &mut Command) -> Result<()> {
    let what = shown(command);
    let status = command.status().with_context(|| format!("cannot run `{what}`"))?;
    if !status.success() {
        bail!("`{what}` failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns what it printed.
pub fn printed(command: &mut Command) -> Result<String> {
    let what = shown(command);
    let output = command.output().with_context(|| format!("cannot run `{what}`"))?;
    if !output.status.success() {
        bail!("`{what}` failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{what}` printed something that is not text"))
}

/// A command as a person would type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The output of `cargo metadata`, for this machine's platform only: others' dependencies need not even be downloaded.
pub fn metadata(root: &Path) -> Result<Value> {
    let host = host(root)?;
    let text = printed(cargo(root).args(["metadata", "--format-version", "1", "--filter-platform", &host]))?;
    serde_json::from_str(&text).context("cargo metadata printed something that is not JSON")
}

/// The target of this machine, as Rust names it.
pub fn host(root: &Path) -> Result<String> {
    let version = printed(Command::new("rustc").arg("-vV").current_dir(root))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    Ok(host.to_owned())
}

/// Cargo's target directory.
pub fn target_dir(root: &Path) -> Result<PathBuf> {
    let text = printed(cargo(root).args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let dir = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(dir))
}

/// Builds and runs one of the measuring programs beside the end-to-end tests, optimised.
pub fn run_tool(root: &Path, tool: &str, args: &[&str]) -> Result<()> {
    let mut command = cargo(root);
    command.args(["run", "--release", "--package", "e2e", "--bin", tool, "--"]).args(args);
    succeed(&mut command)
}
