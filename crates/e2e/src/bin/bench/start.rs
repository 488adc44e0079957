//! `start`: a server until it listens, the same with sessions to adopt until the first answer of one, and the binary's size.
//! The floor is a bare shell until its prompt, which is also a process that starts.

use std::time::Instant;

use anyhow::{Context, Result};
use e2e::Home;

use crate::bare::Bare;
use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::plan::{Plan, Subject};
use crate::rest::Rest;
use crate::rounds::Turns;
use crate::unit::Unit;

/// Starts in a block.
const BLOCK: usize = 3;
/// Rounds.
const ROUNDS: usize = 10;
/// Sessions that a restart finds.
const SESSIONS: usize = 20;

/// Measures.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let count = plan.sessions.unwrap_or(SESSIONS);
    let home = Home::make();
    // A server without sessions, and one with, of each binary.
    let empty = plan.subjects();
    let full = plan.subjects();
    let mut turns = Turns::default();
    turns.floor(|| Block::timed(BLOCK, &[], || Bare::start(&home).map(drop)));
    for subject in &empty {
        turns.add(subject.who, "listens", move || restarts(subject, None));
    }
    for subject in &full {
        let mut rest = Rest::connect(&subject.server)?;
        let mut last = String::new();
        for _ in 0..count {
            last = rest.session()?;
        }
        turns.add(subject.who, "adopts", move || restarts(subject, Some(&last)));
    }
    let rounds = turns.run(plan.rounds(ROUNDS))?;
    let restarted = format!("restart with {count} sessions, to the first answer");
    let mut figures = vec![
        rounds.ratio("start, until it listens", "listens", Unit::Seconds, Better::Less).limit(40.0),
        rounds.ratio(&restarted, "adopts", Unit::Seconds, Better::Less).limit(100.0),
    ];
    let size = |binary: &e2e::Binary| -> Result<[Block; 1]> {
        let bytes = std::fs::metadata(binary.path()).context("the binary is there")?.len();
        Ok([Block::of(vec![bytes as f64])])
    };
    let other = plan.other.as_ref().map(size).transpose()?;
    let other: &[Block] = other.as_ref().map_or(&[], |blocks| blocks);
    figures.push(Figure::value("size of the binary", Unit::Bytes, [&size(&plan.ours)?, &[], other]));
    Ok(figures)
}

/// Starts the server again and again: until it listens, or until a session has run a command.
fn restarts(subject: &Subject, session: Option<&str>) -> Result<Block> {
    let mut samples = Vec::new();
    for _ in 0..BLOCK {
        subject.server.stop();
        let begun = Instant::now();
        subject.server.again();
        if let Some(session) = session {
            Rest::connect(&subject.server)?.run(session, "true")?;
        }
        samples.push(begun.elapsed().as_secs_f64());
    }
    Ok(Block::of(samples))
}
