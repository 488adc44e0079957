//! Real programs at a real terminal: the rule that decides about each is the one recorded in `crates/foreground/tests/programs.txt`.
//!
//! With RECORD=1 in the environment the facts are written to `crates/foreground/tests/programs`.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::spawn::{self, Program};

use super::*;

/// The programs, with what is expected of them.
const TABLE: &str = include_str!("../../../foreground/tests/programs.txt");
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../foreground/tests/programs");
/// How long a program may take until it is seen as expected, on a machine that is busy with others.
const PATIENCE: Duration = Duration::from_secs(60);

/// A bash at a terminal of its own.
struct Session {
    leader: OwnedFd,
    observer: Observer,
    shell: u32,
    wrote_at: Instant,
    output: Vec<u8>,
    _home: tempfile::TempDir,
}

impl Session {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".bashrc"), "PS1='$ '\n").unwrap();
        let pty = sys::pty::Pty::open(80, 24).unwrap();
        let path = std::env::var("PATH").unwrap();
        let at_home = home.path().display();
        let env = [format!("HOME={at_home}"), format!("PATH={path}"), "TERM=xterm".into(), "LANG=C.UTF-8".into()];
        let env: Vec<_> = env.map(String::into_bytes).to_vec();
        let argv: Vec<_> = ["bash", "--noprofile"].map(|word| word.as_bytes().to_vec()).to_vec();
        let program = Program::new(b"/bin/bash", &argv, &env, home.path().as_os_str().as_bytes(), 0o022).unwrap();
        let shell = spawn::on_terminal(&program, pty.follower.as_fd(), &[]).unwrap();
        let tty = PathBuf::from(std::ffi::OsStr::from_bytes(pty.path.to_bytes()));
        let observer = Observer::new(tty, false);
        Self { leader: pty.leader, observer, shell, wrote_at: Instant::now(), output: Vec::new(), _home: home }
    }

    /// Reads the output of a moment, and takes a sample.
    fn look(&mut self) -> Observation {
        let moment = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        poll(&mut [PollFd::new(&self.leader, PollFlags::IN)], Some(&moment)).unwrap();
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = rustix::io::read(&self.leader, &mut buffer[..]) {
            self.output.extend_from_slice(&buffer[..count]);
            self.wrote_at = Instant::now();
        }
        let quiet = u64::try_from(self.wrote_at.elapsed().as_micros()).unwrap();
        self.observer.observe(self.leader.as_fd(), self.shell, quiet).unwrap()
    }

    /// The first observation that this rule decides, and the next one too.
    fn seen_as(&mut self, rule: &str) -> Result<Observation, String> {
        let began = Instant::now();
        let (mut seen, mut times) = (self.look(), 0);
        while times < 2 {
            if began.elapsed() > PATIENCE {
                let reading = foreground::activity(&seen);
                let output = String::from_utf8_lossy(&self.output);
                return Err(format!("{reading:?}\n{seen}{output:?}"));
            }
            seen = self.look();
            let is_read = sys::pty::unread(self.leader.as_fd()) == 0;
            times = if is_read && foreground::activity(&seen).rule == rule { times + 1 } else { 0 };
        }
        Ok(seen)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for pid in process::descendants(self.shell, MEMBERS_MAX).into_iter().chain([self.shell]) {
            let _ = sys::signal::send(pid.cast_signed(), sys::signal::KILL);
        }
        let shell = rustix::process::Pid::from_raw(self.shell.cast_signed());
        let _ = rustix::process::waitpid(shell, rustix::process::WaitOptions::empty());
    }
}

/// The numbers of processes are others each time.
fn without_numbers(mut seen: Observation) -> Observation {
    seen.group = 1;
    seen.stopped = seen.stopped.map(|_| 1);
    seen.shell.iter_mut().for_each(|shell| shell.process.pid = 1);
    for (at, process) in seen.jobs.iter_mut().flat_map(|job| &mut job.processes).enumerate() {
        process.pid = 2 + u32::try_from(at).unwrap();
    }
    seen
}

fn is_there(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|folder| folder.join(program).exists())
}

/// Starts the programs of these rows of the table, all at once, and takes samples of each until its rule decides.
fn check(is_ours: fn(&str) -> bool, at_least: usize) {
    // An orphan of a program becomes a child of this process, as it becomes one of a holder.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let (wrong, count) = std::thread::scope(|scope| {
        let mut rows = Vec::new();
        for row in TABLE.lines().filter(|row| !row.starts_with('#')) {
            let columns: Vec<&str> = row.split(" | ").map(str::trim).collect();
            let (name, rule) = (columns[0], columns[3]);
            let line = columns[1].replace(" / ", " | ");
            if !is_ours(name) {
                continue;
            }
            if let Some(why) = hindrance(&line) {
                eprintln!("{name}: not run, because {why}");
                continue;
            }
            rows.push(scope.spawn(move || other_than_recorded(name, &line, rule)));
        }
        let count = rows.len();
        (rows.into_iter().filter_map(|row| row.join().unwrap()).collect::<Vec<_>>(), count)
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= at_least, "{count} programs: this part of the table is empty");
}

/// Runs one program; where it is not seen as recorded, this says how it is seen instead.
fn other_than_recorded(name: &str, line: &str, rule: &str) -> Option<String> {
    let mut session = Session::start();
    let result = session.seen_as("editor polls").and_then(|at_prompt| {
        if line.is_empty() {
            return Ok(at_prompt);
        }
        rustix::io::write(&session.leader, format!("{line}\n").as_bytes()).unwrap();
        session.seen_as(rule)
    });
    match result {
        Ok(seen) if std::env::var_os("RECORD").is_some() => {
            std::fs::write(format!("{FOLDER}/{name}.txt"), without_numbers(seen).to_string()).unwrap();
            None
        }
        Ok(_) => None,
        Err(other) => Some(format!("{name}: not {rule:?} but {other}")),
    }
}

/// Why this line cannot be run here.
fn hindrance(line: &str) -> Option<String> {
    if line.starts_with("su") && !rustix::process::geteuid().is_root() {
        return Some("only root may examine it".to_owned());
    }
    line.split(" | ").find_map(|part| {
        let program = part.split_whitespace().next()?;
        let is_builtin = ["read", "select", "set", "printf"].contains(&program);
        (!is_builtin && !is_there(program)).then(|| format!("{program} is not installed"))
    })
}

fn is_of_bash(name: &str) -> bool {
    name.starts_with("bash")
}

fn is_of_python(name: &str) -> bool {
    name.starts_with("python")
}

#[test]
// promise: ask-4
fn recorded_facts_of_bash_give_the_expected_verdicts() {
    check(is_of_bash, 6);
}

#[test]
// promise: ask-4
fn recorded_facts_of_python_programs_give_the_expected_verdicts() {
    check(is_of_python, 0);
}

#[test]
// promise: ask-4
fn recorded_facts_of_other_programs_give_the_expected_verdicts() {
    check(|name| !is_of_bash(name) && !is_of_python(name), 3);
}

/// It echoes while it works, and never while it reads. It prints a dot for each byte that it has read.
const HIDES_WHAT_IT_READS: &str = "import os, termios
on, off = termios.tcgetattr(0), termios.tcgetattr(0)
off[3] &= ~termios.ECHO
while True:
    termios.tcsetattr(0, termios.TCSANOW, on)
    for _ in range(2_000): pass
    termios.tcsetattr(0, termios.TCSANOW, off)
    os.read(0, 1)
    os.write(1, b'.')
";

#[test]
// promise: ask-4
fn a_process_that_reads_is_seen_with_the_modes_in_which_it_reads() {
    if !is_there("python3") {
        return eprintln!("not run, because python3 is not installed");
    }
    let mut session = Session::start();
    session.seen_as("editor polls").unwrap();
    let script = session._home.path().join("hides.py");
    std::fs::write(&script, HIDES_WHAT_IT_READS).unwrap();
    rustix::io::write(&session.leader, format!("python3 {}\n", script.display()).as_bytes()).unwrap();
    let reads = |seen: &Observation| {
        let job = seen.jobs.first().filter(|_| seen.shell.is_none())?;
        job.processes.iter().any(|process| matches!(process.first, Wait::Reads { .. })).then_some(job.modes.echo)
    };
    // One byte is underway at a time, so the modes change once during an observation at most.
    let (mut count, began) = (0, Instant::now());
    while count < 1_000 {
        rustix::io::write(&session.leader, b"\n").unwrap();
        let mut has_read = false;
        while !has_read {
            let seen = session.observer.observe(session.leader.as_fd(), session.shell, 0).unwrap();
            if let Some(echo) = reads(&seen) {
                assert!(!echo, "reading {count}\n{seen}");
                count += 1;
            }
            let mut printed = [0; 64];
            let length = rustix::io::read(&session.leader, &mut printed[..]).unwrap_or(0);
            has_read = printed[..length].contains(&b'.');
            assert!(began.elapsed() < PATIENCE, "{count} readings");
        }
    }
}
