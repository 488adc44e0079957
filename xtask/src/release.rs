//! `cargo xtask release`: the binary as it is given away, without a path of this machine in it, its bill of materials, and its packages.

use crate::elf::Binary;
use crate::package;
use crate::tool;
use crate::workspace;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first writes the list of dependencies into the binary, and the second reads it from there as CycloneDX.
const TOOLS: [(&str, &str); 2] = [("cargo-auditable", "0.7.7"), ("auditable2cdx", "0.1.0")];

/// The oldest C library that the binary starts with: the one of the wheels that are called manylinux2014.
const GLIBC: (u32, u32) = (2, 17);

/// Builds the binary, its bill of materials and its packages, and prints where they are.
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
    let host = workspace::host(root)?;
    // cargo looks for `cargo zigbuild` in PATH, and that for a Python which has Zig.
    let zig = tool::ZIGBUILD.find(&target)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beside = zig.parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_path_buf);
    let path = beside.into_iter().chain(std::env::split_paths(&path));
    let mut build = workspace::command(root, program(TOOLS[0].0));
    build.env("PATH", std::env::join_paths(path)?).env("PTYD_HOLDER_CC", "cc");
    build.env("CARGO_ENCODED_RUSTFLAGS", rust).env("CFLAGS", c);
    build.args(["auditable", "zigbuild", "--release", "--locked", "--package", "ptyd", "--target"]);
    workspace::succeed(build.arg(format!("{host}.{}.{}", GLIBC.0, GLIBC.1)))?;

    let binary = target.join(&host).join("release/ptyd");
    let built = Binary::read(&binary)?;
    if built.glibc > GLIBC {
        bail!("{} needs glibc {}.{}", binary.display(), built.glibc.0, built.glibc.1);
    }
    let packages = target.join("release-packages");
    if packages.exists() {
        fs::remove_dir_all(&packages)?;
    }
    fs::create_dir_all(&packages)?;
    let listed = workspace::printed(Command::new(program(TOOLS[1].0)).arg(&binary))?;
    let name = format!("ptyd-{}-{}-linux.cdx.json", package::version(root)?, built.processor.machine());
    fs::write(packages.join(name), listed)?;
    package::of_binary(root, &binary, &packages, false)?;
    println!("release: {} and {}", binary.display(), packages.display());
    Ok(())
}
