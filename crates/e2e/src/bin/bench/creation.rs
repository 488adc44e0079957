//! `create`: a new session until it is answered, and one with its first result; the floor is a bare shell until its prompt.

use std::time::Instant;

use anyhow::Result;
use e2e::Home;

use crate::bare::Bare;
use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::plan::Plan;
use crate::processor::{Meter, Role};
use crate::rest::Rest;
use crate::rounds::Turns;
use crate::unit::Unit;

/// Sessions, and shells, in a block.
const BLOCK: usize = 3;
/// Rounds.
const ROUNDS: usize = 20;

/// Measures.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let home = Home::make();
    let subjects = plan.subjects();
    let mut turns = Turns::default();
    turns.floor(|| {
        let mut block = Block::default();
        let mut meter = Meter::begin(&[]);
        let mut shells = Vec::new();
        for _ in 0..BLOCK {
            let begun = Instant::now();
            let shell = Bare::start(&home)?;
            block.samples.push(begun.elapsed().as_secs_f64());
            meter.add(Role::Shell, shell.pid());
            shells.push(shell);
        }
        block.processor = meter.spent(BLOCK);
        Ok(block)
    });
    for subject in &subjects {
        for thing in ["create", "first result"] {
            let mut rest = Rest::connect(&subject.server)?;
            turns.add(subject.who, thing, move || sessions(&mut rest, thing == "first result"));
        }
    }
    let rounds = turns.run(plan.rounds(ROUNDS))?;
    let first = "create and first result";
    Ok(vec![
        rounds.ratio("create", "create", Unit::Seconds, Better::Less).limit(15.0),
        rounds.ratio(first, "first result", Unit::Seconds, Better::Less).limit(15.0),
        rounds.processor(first, "first result"),
    ])
}

/// The time of each, until the answer about it, or about its first command. Their ends are not counted.
fn sessions(rest: &mut Rest, with_result: bool) -> Result<Block> {
    let mut block = Block::default();
    let mut meter = Meter::begin(&[(Role::Server, rest.server())]);
    let mut ids = Vec::new();
    for _ in 0..BLOCK {
        let begun = Instant::now();
        let id = rest.session()?;
        if with_result {
            rest.run(&id, "true")?;
        }
        block.samples.push(begun.elapsed().as_secs_f64());
        ids.push(id);
    }
    if with_result {
        for id in &ids {
            let processes = rest.processes(id)?;
            processes
                .into_iter()
                .filter(|(role, _)| *role != Role::Server)
                .for_each(|(role, pid)| meter.add(role, pid));
        }
        block.processor = meter.spent(BLOCK);
    }
    for id in &ids {
        rest.end(id)?;
    }
    Ok(block)
}
