//! The program under test: the one that `PTYD_BIN` names, or the one that was built beside this.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies a program, and its mode with it. Another process writes the copy: what another thread of ours starts just then
/// would inherit our descriptor, and a file that any process holds open for writing cannot be executed (execve(2), ETXTBSY).
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("--").args([from, to]).status();
    assert!(status.is_ok_and(|status| status.success()), "{} is copied to {}", from.display(), to.display());
}

/// A ptyd binary.
#[derive(Debug, Clone)]
pub struct Binary(PathBuf);

impl Binary {
    /// Finds it; panics with what to do when there is none.
    pub fn find() -> Self {
        if let Some(given) = std::env::var_os("PTYD_BIN").filter(|given| !given.is_empty()) {
            let path = PathBuf::from(given);
            assert!(path.is_file(), "PTYD_BIN names {}, which is no file", path.display());
            return Self(std::path::absolute(path).expect("the working directory is there"));
        }
        let own = std::env::current_exe().expect("the kernel knows our own file");
        // Tests are in `<profile>/deps`, programs in `<profile>`.
        let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join("ptyd")).find(|path| path.is_file());
        Self(beside.unwrap_or_else(|| {
            panic!("there is no ptyd beside {}: build it first (`cargo build`), or name one in PTYD_BIN", own.display())
        }))
    }

    /// This file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Built anew in the profile that measurements are about, unless `PTYD_BIN` names one.
    pub fn built_for_measuring() -> anyhow::Result<Self> {
        if std::env::var_os("PTYD_BIN").is_some() {
            return Ok(Self::find());
        }
        let own = std::env::current_exe()?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--release", "--package", "ptyd", "--manifest-path"]).arg(manifest);
        // Beside us, wherever that is.
        if let Some(target) = own.ancestors().nth(2) {
            command.arg("--target-dir").arg(target);
        }
        anyhow::ensure!(command.status()?.success(), "ptyd does not build");
        Ok(Self::at(own.with_file_name("ptyd")))
    }
}
