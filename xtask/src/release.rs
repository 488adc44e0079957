//! `cargo xtask release`: the binary as it is given away, without a path of this machine in it, and its bill of materials.

use crate::workspace;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first writes the list of dependencies into the binary, and the second reads it from there as CycloneDX.
const TOOLS: [(&str, &str); 2] = [("cargo-auditable", "0.7.7"), ("auditable2cdx", "0.1.0")];

/// Builds the binary and its bill of materials, and prints where they are.
pub fn make(root: &Path) -> Result<()> {
    let target = workspace::target_dir(root)?;
    let tools = target.join("release-tools");
    for (tool, version) in TOOLS {
        let mut install = workspace::cargo(root);
        install.args(["install", "--quiet", "--locked", "--version", version, "--root"]).arg(&tools).arg(tool);
        workspace::succeed(&mut install)?;
    }
    let program = |name: &str| tools.join("bin").join(name);

    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    // No path of this machine gets into the binary.
    let paths = [(root, "/ptyd"), (home.as_path(), "/cargo")];
    let rust = paths.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).join("\x1f");
    let c = paths.map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display())).join(" ");
    let mut build = workspace::command(root, program(TOOLS[0].0));
    build.env("CARGO_ENCODED_RUSTFLAGS", rust).env("CFLAGS", c);
    workspace::succeed(build.args(["auditable", "build", "--release", "--locked", "--package", "ptyd"]))?;

    let binary = target.join("release/ptyd");
    let materials = binary.with_extension("cdx.json");
    let listed = workspace::printed(Command::new(program(TOOLS[1].0)).arg(&binary))?;
    fs::write(&materials, listed)?;
    println!("release: {} and {}", binary.display(), materials.display());
    Ok(())
}
