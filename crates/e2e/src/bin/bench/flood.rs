//! `flood`: 100 MB of short lines, complete, as a part of the speed at which a bare terminal gives them; and the memory that it
//! costs.

use std::cell::Cell;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{Footprint, Home, Pid, footprint};
use serde_json::Value;

use crate::bare::Bare;
use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::plan::Plan;
use crate::processor::Role;
use crate::rest::Rest;
use crate::rounds::{Turns, Who};
use crate::unit::Unit;

/// `seq 1 …`: 100 MB of lines that are short.
const LINES: u64 = 11_400_000;
/// Rounds.
const ROUNDS: usize = 5;
/// One read of the journal.
const CHUNK: u64 = 4 << 20;
/// The most that either process may grow by.
const GROWTH: f64 = 33_554_432.0;

/// Measures.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let command = format!("seq 1 {LINES}");
    let home = Home::make();
    let subjects = plan.subjects();
    let mut floor = Bare::on_terminal(&home)?;
    let growths = [Role::Server, Role::Holder].map(|role| (role, Cell::new(0)));
    let mut turns = Turns::default();
    turns.floor(|| {
        let begun = Instant::now();
        let bytes = floor.run(&command)?;
        Ok(Block::of(vec![bytes as f64 / begun.elapsed().as_secs_f64()]))
    });
    for subject in &subjects {
        let mut rest = Rest::connect(&subject.server)?;
        let (command, growths, who) = (&command, &growths, subject.who);
        turns.add(who, "flood", move || {
            let session = rest.session()?;
            let processes = rest.processes(&session)?;
            let before: Vec<(Role, Pid, Footprint)> =
                processes.into_iter().map(|(role, pid)| (role, pid, footprint(pid))).collect();
            let begun = Instant::now();
            let done = rest.run(&session, command)?;
            let took = begun.elapsed().as_secs_f64();
            for (role, pid, before) in before.into_iter().filter(|_| who == Who::Ours) {
                let growth = footprint(pid).peak_bytes.saturating_sub(before.resident_bytes);
                let of_role = growths.iter().filter(|(known, _)| *known == role);
                of_role.for_each(|(_, most)| most.set(most.get().max(growth)));
            }
            let bytes = compare(&mut rest, &session, &done)?;
            rest.end(&session)?;
            Ok(Block::of(vec![bytes as f64 / took]))
        });
    }
    let rounds = turns.run(plan.rounds(ROUNDS))?;
    let mut figures = vec![rounds.ratio("100 MB of short lines", "flood", Unit::PerSecond, Better::More).limit(0.4)];
    for (role, most) in &growths {
        let name = format!("100 MB of short lines: growth of the {}", role.word());
        figures.push(Figure::bounded(&name, Unit::Bytes, most.get() as f64, GROWTH));
    }
    Ok(figures)
}

/// Reads every byte of the flood and compares it; how many there were.
fn compare(rest: &mut Rest, session: &str, done: &Value) -> Result<u64> {
    let offset = |name: &str| done[name].as_u64().context("an offset");
    let (start, end) = (offset("startOffset")?, offset("endOffset")?);
    let mut next = start;
    let mut number = 0;
    let mut expected: Vec<u8> = Vec::new();
    while next < end {
        let limit = CHUNK.min(end - next);
        let path = format!("/terminals/{session}/output?view=raw&since=o:{next}&maxBytes={limit}");
        let output = rest.ask("GET", &path, &Value::Null)?;
        let bytes = STANDARD.decode(output["dataBase64"].as_str().context("raw bytes")?)?;
        while expected.len() < bytes.len() && number < LINES {
            number += 1;
            expected.extend(format!("{number}\r\n").into_bytes());
        }
        ensure!(!bytes.is_empty() && expected.starts_with(&bytes), "the flood is not what was printed, at {next}");
        expected.drain(..bytes.len());
        next += bytes.len() as u64;
    }
    ensure!(expected.is_empty() && number == LINES, "the flood ends early, at line {number}");
    Ok(end - start)
}
