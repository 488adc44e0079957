//! `cargo xtask test`: the one command that runs every suite, on any Debian or Ubuntu that has Rust's toolchain.
//!
//! It keeps four rules: everything is built once, by one command with one set of features; nothing is installed that was
//! not listed first; a test that did not run is counted and named, never silent; and no test sees the caller's HOME.

use crate::left_out;
use crate::load::BusyLoops;
use crate::machine::{self, Missing};
use crate::npm;
use crate::suite::{self, Count, LeftOut, Report};
use crate::tool;
use crate::tree;
use crate::workspace;
use anyhow::{Context as _, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::num::NonZeroUsize;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The folders of the tests in Python, which share one folder of packages and run as one suite.
const IN_PYTHON: [&str; 3] = ["crates/e2e/mcp", "crates/e2e/rest", "shell-integration/tests"];

/// Plugins that packages of one folder bring for themselves: each process would take seconds to load them.
const WITHOUT_PLUGINS: [&str; 6] = ["-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest"];

/// The tests of bash that run again without its builtins, as where it cannot load them.
const OF_BASH: [&str; 6] = ["delivery", "ends", "forgery", "hostile", "login", "traces"];

/// The tiers of confinement in which the tests below run again.
const TIERS: [(&str, &str); 3] =
    [("in a sandbox", "sandbox"), ("in the tier process", "process"), ("in a container", "container")];

/// The tests that a confined session passes like any other, but for those that say why not.
const IN_TIERS: [&str; 10] = [
    "behaviour_01_04_ends",
    "behaviour_05_06_11_control",
    "behaviour_07_08_delivery",
    "behaviour_09_10_output",
    "behaviour_13_15_programs",
    "behaviour_16_17_noise",
    "behaviour_18_19_waiting",
    "behaviour_20_hostile",
    "requirement",
    "requirement_client",
];

/// The tests with random read sizes: those of ends, text and screens.
const IN_PIECES: &str = "package(=e2e) and test(/^(boundaries|delivery|output|programs|shell_ends|shell_texts)::/)";

/// The tests that need nothing but Rust and a linker.
const QUICK: &str = "not package(=e2e)";

/// Tests that run at once for each processor: nearly all wait for shells and timers.
const PER_PROCESSOR: usize = 5;

/// The number of tests that the table of the slowest names.
const SLOWEST: usize = 10;

/// The cost of everything on two processors and an empty machine. Measured; existing parts are not fetched again.
const TAKES: &str =
    "In all that is up to 150 MB of Debian packages with what they need, 4 GB below target/ and about 15 minutes.";

const USAGE: &str =
    "cargo xtask test [--yes | --no-install] [--quick] [--full] [--complete] [--repeat N] [--load M] [filter]";

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
    /// Runs of all suites, one after the other.
    repeat: usize,
    /// Busy loops that compete with the tests for the processors.
    load: usize,
    filter: Option<String>,
}

impl Options {
    /// Reads the command's arguments.
    pub fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            install: Install::Ask,
            is_quick: false,
            is_full: false,
            is_complete: false,
            repeat: 1,
            load: 0,
            filter: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number =
                || args.next().and_then(|n| n.parse().ok()).with_context(|| format!("{arg} takes a number"));
            match *arg {
                "--yes" => options.install = Install::Yes,
                "--no-install" => options.install = Install::No,
                "--quick" => options.is_quick = true,
                "--full" => options.is_full = true,
                "--complete" => options.is_complete = true,
                "--repeat" => options.repeat = number()?,
                "--load" => options.load = number()?,
                flag if flag.starts_with('-') => bail!("there is no `{flag}`: {USAGE}"),
                _ if options.filter.is_some() => bail!("one filter only"),
                filter => options.filter = Some(filter.to_owned()),
            }
        }
        if options.repeat == 0 {
            bail!("--repeat takes 1 or more");
        }
        Ok(options)
    }
}

/// Runs every suite, and fails when anything did.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let target = workspace::target_dir(root)?;
    let missing = if options.is_quick { Missing::nothing() } else { Missing::look() };
    let binary = target.join("debug/ptyd");
    let rig = Rig { root, options, missing, binary, nextest: PathBuf::new(), target, home: Home::make()? };
    let rig = rig.set_up()?;
    let _load = BusyLoops::start(options.load)?;
    if options.repeat == 1 {
        return summarise(options, rig.suites()).1;
    }
    let (mut runs, mut failures) = (0, BTreeMap::<_, usize>::new());
    for run in 1..=options.repeat {
        println!("== run {run} of {}, beside {} busy loops", options.repeat, options.load);
        let (failed, result) = summarise(options, rig.suites());
        runs += usize::from(result.is_err());
        failed.into_iter().for_each(|test| *failures.entry(test).or_default() += 1);
    }
    println!("== {runs} of {} runs failed", options.repeat);
    for (test, times) in failures {
        println!("failed in {times} of {} runs: {test}", options.repeat);
    }
    if runs > 0 {
        bail!("test: failed");
    }
    Ok(())
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
    let files = IN_PYTHON.iter().map(|folder| root.join(folder).join("requirements.txt"));
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

/// A suite's name, its report, and the seconds that it took.
type Outcome<'a> = (&'a str, Result<Report>, f64);

/// Prints what came of the suites, and returns the tests that failed and whether all is well.
fn summarise(options: &Options, outcomes: Vec<Outcome<'_>>) -> (Vec<String>, Result<()>) {
    let (mut total, mut failed, mut left_out, mut slowest) = (Count::default(), Vec::new(), Vec::new(), Vec::new());
    println!("== summary");
    for (name, result, seconds) in outcomes {
        let mut report = result.unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Count::BROKEN.into()
        });
        let count = report.count;
        if count.passed + count.failed + count.not_run == 0 && options.filter.is_none() {
            println!("{name}: nothing was run, which no suite is for");
            report.count = Count::BROKEN;
        }
        println!("{name}: {} in {seconds:.0} s", report.count);
        total = total.plus(report.count);
        if report.count.failed > 0 && report.failed.is_empty() {
            failed.push(format!("{name}: the suite itself"));
        }
        for (test, message) in report.failed {
            println!("failed: {name}: {test}; again: cargo xtask test {}", filter_for(&test));
            message.lines().for_each(|line| println!("    {line}"));
            failed.push(format!("{name}: {test}"));
        }
        left_out.extend(report.left_out.into_iter().map(|test| (name, test)));
        slowest.extend(report.seconds.into_iter().map(|(seconds, test)| (seconds, name, test)));
    }
    println!("{total}");
    slowest.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("== the slowest tests");
    for (seconds, suite, test) in slowest.iter().take(SLOWEST) {
        println!("{seconds:6.1} s {suite}: {test}");
    }
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
    let result = match total {
        _ if was_to_run > 0 => Err(anyhow!("test: {was_to_run} tests were to run here and did not, or not wholly")),
        Count { failed: 0, passed: 1.., .. } => Ok(()),
        _ => Err(anyhow!("test: failed")),
    };
    (failed, result)
}

/// The filter that runs this test and little else.
fn filter_for(test: &str) -> String {
    let name = test.split('[').next().unwrap_or(test);
    let name = name.rsplit("::").next().unwrap_or(name);
    if name.contains(' ') { format!("'{name}'") } else { name.to_owned() }
}

/// The packages that go below target/.
#[derive(Default)]
struct Fetched {
    /// The folders of Python packages, and the requirements of each.
    venvs: Vec<(&'static str, String)>,
    has_npm: bool,
}

struct Rig<'a> {
    root: &'a Path,
    options: &'a Options,
    missing: Missing,
    binary: PathBuf,
    nextest: PathBuf,
    target: PathBuf,
    home: Home,
}

impl Rig<'_> {
    /// Lists the packages to install and fetch, asks if there is a terminal, installs them, and builds everything.
    fn set_up(mut self) -> Result<Self> {
        let fetched = if self.options.is_quick { Fetched::default() } else { self.install()? };
        self.nextest = tool::NEXTEST.find(&self.target)?;
        println!("== build, while packages are fetched");
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let fetching = scope.spawn(|| self.fetch(&fetched));
            workspace::build(self.root).context("nothing was tested")?;
            println!("built in {:.0} s", begun.elapsed().as_secs_f64());
            fetching.join().map_err(|_| anyhow!("fetching packages ended by a panic"))?
        })?;
        Ok(self)
    }

    /// Fetches the packages of Python and npm, which go below target/.
    fn fetch(&self, fetched: &Fetched) -> Result<()> {
        for (name, wanted) in fetched.venvs.iter().filter(|(name, wanted)| !self.is_venv_made(name, wanted)) {
            self.make_venv(name, wanted)?;
        }
        if fetched.has_npm { npm::make(self.root, &self.target) } else { Ok(()) }
    }

    /// Installs the packages that the suites need and the machine lacks, unless that is not wanted. Returns what is to be
    /// fetched besides.
    fn install(&mut self) -> Result<Fetched> {
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
        if has_npm && !npm::is_made(self.root, &self.target)? {
            let modules = "the page's libraries, a driver for browsers, other MCP clients, MCP's own suite, vite, a tokenizer, Node, nushell";
            plan.push(format!("to target/npm: {modules}"));
        }
        if has_python && !venvs.iter().all(|(name, wanted)| self.is_venv_made(name, wanted)) {
            plan.extend(tool::UV.plan(&self.target));
        }
        plan.extend(tool::NEXTEST.plan(&self.target));
        consent(&plan, self.options.install)?;
        if is_installed {
            self.missing.install(&self.target.join("without-services"))?;
            self.missing = Missing::nothing();
        }
        let venvs = if has_python { venvs.into() } else { Vec::new() };
        Ok(Fetched { venvs, has_npm })
    }

    /// Runs the suites, one after the other: in each, tests run at once. The browser's mostly waits, so it runs beside those of Python.
    fn suites(&self) -> Vec<Outcome<'_>> {
        let mut outcomes = Vec::new();
        let timed = |name, suite: &dyn Fn() -> Result<Report>| {
            let begun = Instant::now();
            (name, suite(), begun.elapsed().as_secs_f64())
        };
        let mut run = |name, suite: &dyn Fn() -> Result<Report>| {
            println!("== {name}");
            outcomes.push(timed(name, suite));
        };
        if self.options.is_quick {
            run("quick", &|| self.rust("quick", Some(QUICK), &[]));
            return outcomes;
        }
        // Pieces of any size are the harder case, so a run in small has these tests only so.
        let in_pieces = self.options.filter.is_none();
        let others = format!("not ({IN_PIECES})");
        let selected = (in_pieces && !self.options.is_full).then_some(&*others);
        run("rust", &|| self.rust("rust", selected, &[]));
        run("shell scripts", &|| self.shell_scripts());
        let browser = std::thread::scope(|scope| {
            let log = self.target.join("browser.log");
            let browser = scope.spawn({
                let log = log.clone();
                move || timed("browser", &|| self.browser(&log))
            });
            run("python", &|| self.python("python", &IN_PYTHON.map(str::to_owned), at_once(), &[]));
            if in_pieces {
                run("in random pieces", &|| self.in_random_pieces());
            }
            // Each process starts for a second or two, which a short suite does not earn back.
            let few = if self.options.is_full { at_once() } else { at_once().div_ceil(2) };
            let of_bash = OF_BASH.map(|subject| format!("shell-integration/tests/test_{subject}.py"));
            let name = "bash without builtins";
            run(name, &|| self.python(name, &of_bash, few, &[("PTYD_TEST_BUILTINS", "0")]));
            // One file in one tier shows in small that a confined session behaves like any other.
            let (tiers, files): (&[_], &[_]) =
                if self.options.is_full { (&TIERS, &IN_TIERS) } else { (&TIERS[..1], &IN_TIERS[..1]) };
            for (name, tier) in tiers {
                let paths: Vec<String> = files.iter().map(|file| format!("crates/e2e/mcp/test_{file}.py")).collect();
                run(name, &|| self.python(name, &paths, few, &[("PTYD_TEST_TIER", tier)]));
            }
            println!("== browser");
            let ended = browser.join().unwrap_or_else(|_| ("browser", Err(anyhow!("the suite ended by a panic")), 0.0));
            print!("{}", fs::read_to_string(log).unwrap_or_default());
            ended
        });
        outcomes.push(browser);
        outcomes
    }

    /// The report of a suite for which one of these packages is missing.
    fn without(&self, packages: &[&str]) -> Option<Report> {
        let package = self.missing.any_of(packages)?;
        let why = format!("{package} is not installed");
        println!("not run: {why}");
        let left_out = LeftOut { test: "the whole suite".to_owned(), why, in_part: false };
        Some(Report { count: Count { not_run: 1, ..Count::NOTHING }, left_out: [left_out].into(), ..Report::default() })
    }

    /// nextest for the whole workspace: whatever the filter is, everything is built with one set of features.
    fn nextest(&self) -> Command {
        let mut nextest = workspace::command(self.root, &self.nextest);
        self.home.apply(&mut nextest);
        nextest.args(["nextest", "run", "--workspace"]);
        nextest
    }

    /// The tests of Rust that this expression selects, and the filter besides.
    fn rust(&self, name: &str, selected: Option<&str>, env: &[(&str, &str)]) -> Result<Report> {
        let mut nextest = self.nextest();
        nextest.args(["--no-fail-fast", "--no-tests=pass", "--test-threads", &at_once().to_string()]);
        let profile = if self.options.is_full { "full" } else { "default" };
        nextest.args(["--profile", profile]);
        let is_crate = |name: &str| name == "xtask" || self.root.join("crates").join(name).join("Cargo.toml").exists();
        if let Some(expression) = expression(selected, self.options.filter.as_deref(), is_crate) {
            nextest.args(["-E", &expression]);
        }
        nextest.envs(env.iter().copied());
        self.suite(name, &mut nextest, &self.target.join("nextest").join(profile).join("junit.xml"))
    }

    /// The end-to-end tests about ends and output, while holders read their terminals in pieces of any size.
    fn in_random_pieces(&self) -> Result<Report> {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros()).to_string();
        // To repeat a failure: the same variable and the same command.
        println!("PTYD_TEST_READ_SIZES={seed}");
        self.rust("in random pieces", Some(IN_PIECES), &[("PTYD_TEST_READ_SIZES", &seed)])
    }

    fn shell_scripts(&self) -> Result<Report> {
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
                report.failed.insert(file.path, String::new());
            }
        }
        Ok(report)
    }

    fn python(&self, name: &str, paths: &[String], processes: usize, env: &[(&str, &str)]) -> Result<Report> {
        if let Some(report) = self.without(&["python3", "python3-venv"]) {
            return Ok(report);
        }
        let report = self.report(name);
        let mut python = Command::new(self.target.join("venv/bin/python"));
        python
            .args(["-m", "pytest", "--color=no", "-rfEsx", "--rootdir=.", "-c", "crates/e2e/mcp/pytest.ini"])
            .args(WITHOUT_PLUGINS)
            // One by one, so that the last ones do not wait behind a long one.
            .args(["-n", &processes.to_string(), "--maxschedchunk=1"])
            .arg(format!("--junitxml={}", report.display()))
            .args(paths)
            .current_dir(self.root);
        if self.options.is_full {
            // The long counts take longer than the bound of a hanging case.
            python.args(["-o", "faulthandler_timeout=3600"]);
        }
        if let Some(filter) = &self.options.filter {
            python.args(["-k", filter]);
        }
        self.home.apply(&mut python);
        // Without byte code each of some eighty processes would compile the SDK anew, for two seconds.
        python.env_remove("PYTHONDONTWRITEBYTECODE").env("PYTHONPYCACHEPREFIX", self.target.join("pycache"));
        python.envs(env.iter().copied());
        self.suite(name, &mut python, &report)
    }

    /// The place of a suite's JUnit report.
    fn report(&self, name: &str) -> PathBuf {
        self.target.join("junit").join(format!("{}.xml", name.replace(' ', "-")))
    }

    fn suite(&self, name: &str, command: &mut Command, report: &Path) -> Result<Report> {
        let notes = self.home.path.join(format!("not-run-{}", name.replace(' ', "-")));
        if notes.exists() {
            fs::remove_file(&notes)?;
        }
        self.mark(command);
        Ok(suite::run(command.env(left_out::FILE, &notes), report)?.with_notes(left_out::noted(&notes)))
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

    /// The page, and a page with a stock terminal, in a real browser.
    /// Its output goes into a log, because another suite runs at the same time.
    fn browser(&self, log: &Path) -> Result<Report> {
        let written = fs::File::create(log)?;
        if let Some(report) = self.without(&["npm", "chromium"]) {
            return Ok(report);
        }
        let report = self.report("browser");
        let mut node = Command::new(npm::node(&self.target)?);
        // A test that hangs there fails.
        node.args(["--test", "--test-timeout=300000", "--test-reporter=spec", "--test-reporter-destination=stdout"])
            .args(["--test-reporter=junit", "--test-reporter-destination"])
            .arg(&report)
            .current_dir(self.root);
        if let Some(filter) = &self.options.filter {
            node.arg(format!("--test-name-pattern={filter}"));
        }
        let files = ["page", "terminal"].map(|name| format!("crates/e2e/browser/{name}.test.cjs"));
        node.args(files).env("NODE_PATH", self.target.join("npm/node_modules"));
        node.stdout(written.try_clone()?).stderr(written);
        self.home.apply(&mut node);
        self.suite("browser", &mut node, &report)
    }

    /// Makes a folder of Python packages, once for each change of the requirements.
    fn make_venv(&self, name: &str, requirements: &str) -> Result<()> {
        println!("== python packages: {}", packages(requirements).collect::<Vec<_>>().join(" "));
        let venv = self.target.join(name);
        let stamp = venv.join("requirements.txt");
        let uv = tool::UV.find(&self.target)?;
        workspace::succeed(Command::new(&uv).args(["venv", "--quiet", "--clear", "--python", "python3"]).arg(&venv))?;
        let wanted = venv.join("wanted.txt");
        fs::write(&wanted, requirements)?;
        let mut install = Command::new(&uv);
        install.args(["pip", "install", "--quiet", "--python"]).arg(venv.join("bin/python"));
        // Beside the packages, so that they are linked and not copied.
        install.arg("--cache-dir").arg(self.target.join("uv-cache")).arg("-r").arg(&wanted);
        workspace::succeed(&mut install)?;
        // Only now, so that an installation that was cut short begins again.
        fs::rename(&wanted, &stamp)?;
        Ok(())
    }

    fn is_venv_made(&self, name: &str, requirements: &str) -> bool {
        let stamp = self.target.join(name).join("requirements.txt");
        fs::read_to_string(stamp).is_ok_and(|made| made == requirements)
    }
}

/// Tests that run at once.
fn at_once() -> usize {
    PER_PROCESSOR * std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The expression for nextest. It runs what any of several expressions selects, so this is one.
fn expression(selected: Option<&str>, filter: Option<&str>, is_crate: impl Fn(&str) -> bool) -> Option<String> {
    let named = filter.map(|filter| match filter {
        filter if is_crate(filter) => format!("package(={})", package_of(filter)),
        filter => format!("test(~{filter})"),
    });
    match (selected, named) {
        (Some(selected), Some(named)) => Some(format!("({selected}) and {named}")),
        (selected, named) => named.or_else(|| selected.map(str::to_owned)),
    }
}

/// The package of a folder below `crates`: they have the same name, with one exception.
fn package_of(folder: &str) -> &str {
    if folder == "core" { "ptyd-core" } else { folder }
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
            repeat: 3,
            load: 2,
            filter: Some("journal".to_owned()),
        };
        let words = ["journal", "--full", "--yes", "--complete", "--repeat", "3", "--load", "2"];
        assert_eq!(options(&words), expected);
        assert_eq!((options(&["--no-install"]).install, options(&[]).install), (Install::No, Install::Ask));
        assert!(options(&["--quick"]).is_quick);
        assert!(Options::parse(&["--fast"]).is_err());
        assert!(Options::parse(&["a", "b"]).is_err());
        assert!(Options::parse(&["--load"]).is_err());
        assert!(Options::parse(&["--repeat", "0"]).is_err());
    }

    #[test]
    fn a_suite_that_ran_no_test_fails_the_run_unless_a_filter_selected_none() {
        let three = Count { passed: 3, ..Count::NOTHING };
        let outcomes = |empty: Count| vec![("one", Ok(three.into()), 1.0), ("two", Ok(empty.into()), 0.0)];
        assert!(summarise(&options(&[]), outcomes(Count::default())).1.is_err());
        assert!(summarise(&options(&["x"]), outcomes(Count::default())).1.is_ok());
        let (failed, result) = summarise(&options(&["x"]), outcomes(Count::BROKEN));
        assert_eq!((failed, result.is_err()), (vec!["two: the suite itself".to_owned()], true));
    }

    #[test]
    // promise: check-1
    fn an_unexcused_omission_fails_a_complete_run() {
        let results = |why: &str| {
            let left_out = LeftOut { test: "nushell::a_code".to_owned(), why: why.to_owned(), in_part: false };
            let count = Count { passed: 3, not_run: 1, ..Count::NOTHING };
            vec![("one", Ok(Report { count, left_out: [left_out].into(), ..Report::default() }), 1.0)]
        };
        assert!(summarise(&options(&[]), results("there is no nu")).1.is_ok());
        assert!(summarise(&options(&["--complete"]), results("there is no nu")).1.is_err());
        assert!(summarise(&options(&["--complete"]), results("PTYD_TEST_FULL=1")).1.is_ok());
    }

    #[test]
    fn a_failed_test_is_run_again_by_its_own_name() {
        assert_eq!(filter_for("e2e::it life::a_session_ends"), "a_session_ends");
        assert_eq!(filter_for("crates.e2e.mcp.test_x::test_y[a::b-1]"), "test_y");
        assert_eq!(filter_for("a page shows it"), "'a page shows it'");
    }

    #[test]
    fn a_filter_narrows_what_a_suite_selects() {
        let of = |selected, filter| expression(selected, filter, |name| name == "core");
        assert_eq!(of(None, None), None);
        assert_eq!(of(Some("a"), None).as_deref(), Some("a"));
        assert_eq!(of(None, Some("core")).as_deref(), Some("package(=ptyd-core)"));
        assert_eq!(of(Some("a or b"), Some("x::y")).as_deref(), Some("(a or b) and test(~x::y)"));
    }

    #[test]
    fn comments_in_requirements_are_not_packages() {
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
