//! `cargo xtask soak [seed] [rounds]`: repeats the long end-to-end tests, with a printed seed.
//!
//! It runs the tests themselves (crashes, leaks, floods, crowds) with `PTYD_TEST_FULL=1` against an optimised ptyd, so
//! that nothing here can promise anything else than the tests do.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use e2e::Binary;

/// The tests whose counts are worth the time.
const SUBJECTS: [&str; 7] =
    ["crash::", "leaks::", "isolation::", "output::huge", "signals::a_flood", "socket::", "waiting::a_long"];

fn main() -> ExitCode {
    match soak() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn soak() -> Result<()> {
    let mut numbers =
        std::env::args().skip(1).map(|arg| arg.parse::<u64>().context("cargo xtask soak [seed] [rounds]"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let seed = numbers.next().transpose()?.unwrap_or(u64::from(now.subsec_nanos()));
    let rounds = numbers.next().transpose()?.unwrap_or(1);
    let binary = Binary::built_for_measuring()?;
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        println!("round {} of {rounds}: cargo xtask soak {seed}", round + 1);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["test", "--release", "--package", "e2e", "--test", "it", "--"])
            .args(SUBJECTS)
            // They need the points at which a debug build can be killed, and count nothing.
            .args(["--skip", "dies_between_reading", "--skip", "dies_before_it_indexes"])
            // One after the other: each of them is a load of its own.
            .args(["--test-threads", "1"])
            .env("PTYD_BIN", binary.path())
            .env("PTYD_TEST_FULL", "1")
            .env("PTYD_TEST_SEED", seed.to_string())
            .status()?;
        ensure!(status.success(), "round {} failed; once more: cargo xtask soak {seed}", round + 1);
    }
    Ok(())
}
