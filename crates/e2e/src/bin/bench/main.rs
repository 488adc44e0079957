//! `cargo xtask bench`: the cost of a terminal behind ptyd, compared with a bare one in the same rounds.
//!
//! Only ratios matter: a machine is fast or slow, and both sides of a ratio ran on it, in turns. Prints a table, writes
//! `target/bench.json`, and fails only with `--check`. `docs/performance.md` tells how to read it.

mod bare;
mod block;
mod committed;
mod compare;
mod creation;
mod figure;
mod flood;
mod idle;
mod load;
mod measures;
mod options;
mod plan;
mod processor;
mod rest;
mod round_trip;
mod rounds;
mod samples;
mod table;
mod unit;
mod viewers;

use std::process::ExitCode;

use anyhow::{Context, Result};
use e2e::Binary;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use committed::Committed;
use compare::{ALLOWANCE, ALLOWANCE_QUICK, FACTOR, Verdict, verdict};
use figure::Figure;
use measures::{MEASURES, Measure};
use options::Options;
use plan::Plan;

/// How often `--check` takes a measure before it believes that a figure is worse.
const TRIES: usize = 3;

fn main() -> ExitCode {
    // Thousands of connections are ours, too.
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum });
    match Options::parse(std::env::args().skip(1)).and_then(|options| bench(&options)) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            complaints.iter().for_each(|complaint| eprintln!("bench: {complaint}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, shows and writes; with `--check` what got worse or missed its limit.
fn bench(options: &Options) -> Result<Vec<String>> {
    let committed = Committed::read()?;
    let plan = Plan {
        ours: Binary::built_for_measuring()?,
        other: options.against.as_ref().map(std::path::absolute).transpose()?.map(Binary::at),
        is_quick: options.is_quick,
        sessions: options.sessions,
    };
    if let Some(committed) = &committed {
        println!("committed: {}, {}", committed.taken, committed.machine);
    }
    print!("{}", table::heading());
    let (mut figures, mut complaints) = (Vec::new(), Vec::new());
    for measure in MEASURES.iter().filter(|measure| options.measures.contains(&measure.name)) {
        let (measured, complained) = take(measure, &plan, options, committed.as_ref())?;
        figures.extend(measured);
        complaints.extend(complained);
    }
    write(&figures)?;
    if options.saves {
        Committed::of(&figures).save()?;
    }
    Ok(complaints)
}

/// Takes a measure; with `--check`, takes it again as long as something is worse and tries are left, and returns the last
/// try and what is worse in it.
fn take(
    measure: &Measure,
    plan: &Plan,
    options: &Options,
    committed: Option<&Committed>,
) -> Result<(Vec<Figure>, Vec<String>)> {
    let (mut tries, mut before) = (1, None::<Vec<(String, String)>>);
    loop {
        let figures = (measure.run)(plan).with_context(|| format!("measure {}", measure.name))?;
        figures.iter().for_each(|figure| print!("{}", table::lines(figure, committed)));
        let is_quick = plan.is_quick;
        let mut complaints = if options.is_check { complaints(&figures, committed, is_quick) } else { Vec::new() };
        // One figure must be worse in every try.
        if let Some(before) = &before {
            complaints.retain(|(name, _)| before.iter().any(|(known, _)| known == name));
        }
        if complaints.is_empty() || tries == TRIES {
            return Ok((figures, complaints.into_iter().map(|(_, complaint)| complaint).collect()));
        }
        complaints.iter().for_each(|(_, complaint)| println!("try {tries} of {TRIES}: {complaint}"));
        (tries, before) = (tries + 1, Some(complaints));
    }
}

/// All figures, for programs.
fn write(figures: &[Figure]) -> Result<()> {
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(2).context("a target directory")?;
    let all: Vec<_> = figures.iter().map(Figure::json).collect();
    let text = json!({ "taken": jiff::Timestamp::now().to_string(), "machine": committed::machine(), "figures": all });
    Ok(std::fs::write(target.join("bench.json"), text.to_string() + "\n")?)
}

/// The figures that missed their limits, and those that are worse than the committed ones beyond noise and allowance; of a
/// quick run only those that a busy machine changes little.
/// Each with the name of its figure.
fn complaints(figures: &[Figure], committed: Option<&Committed>, is_quick: bool) -> Vec<(String, String)> {
    let allowance = if is_quick { ALLOWANCE_QUICK } else { ALLOWANCE };
    let mut complaints = Vec::new();
    for figure in figures.iter().filter(|figure| figure.is_steady() || !is_quick) {
        let shown = figure.unit.shown_with_noise(figure.estimate.value, figure.estimate.noise);
        if !figure.is_within_limit() {
            complaints.push((figure.name.clone(), format!("{}: {shown} misses its limit", figure.name)));
        }
        let known = committed.and_then(|committed| committed.figure(&figure.name, figure.unit));
        let Some(known) = known.filter(|_| figure.is_compared) else { continue };
        if verdict(figure.estimate, known.estimate, figure.better, allowance) == Verdict::Worse {
            let before = figure.unit.shown_with_noise(known.estimate.value, known.estimate.noise);
            let by = format!("beyond {FACTOR} × noise and {:.0} %", allowance * 100.0);
            complaints.push((figure.name.clone(), format!("{}: {shown} is worse than {before} {by}", figure.name)));
        }
    }
    complaints
}
