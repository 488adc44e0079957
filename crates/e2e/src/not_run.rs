//! Tests that this machine cannot run, or only in part: they are counted as such, and do not pass as if they had run.
//!
//! `cargo xtask test` names a file in [`FILE`], counts each line of it, and fails where everything was to run. Other crates
//! take this file in by its path, for it needs nothing.

use std::fmt::Display;
use std::io::Write;

/// The variable with the path of the file in which each line is `not run` or `in part`, the test's name, and why.
const FILE: &str = "PTYD_TEST_NOT_RUN";

/// This test has not run; it returns after this.
pub fn not_run(why: impl Display) {
    note("not run", &why.to_string());
}

/// A part of this test has not run; the rest goes on.
pub fn in_part(why: impl Display) {
    note("in part", &why.to_string());
}

/// Whether one of these programs is not on PATH; then this test has not run.
pub fn lacks(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !is_program(program));
    if let Some(program) = missing {
        not_run(format!("there is no {program} on PATH"));
    }
    missing.is_some()
}

/// Whether a program is on PATH.
pub fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn note(how: &str, why: &str) {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    println!("{how}: {why}");
    let Some(file) = std::env::var_os(FILE) else { return };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test without a name");
    // One write, because tests of other processes write here, too.
    let line = format!("{how}\t{test}\t{why}\n");
    let file = std::fs::File::options().append(true).create(true).open(file);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("what has not run can be counted");
}
