//! `true`: the time from a call to its answer, over MCP on stdio and over REST, and the processor time of each process.

use anyhow::{Result, ensure};
use e2e::{Home, Mcp};
use serde_json::json;

use crate::bare::Bare;
use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::plan::Plan;
use crate::processor::Role;
use crate::rest::Rest;
use crate::rounds::Turns;
use crate::unit::Unit;

/// Commands in a block.
const BLOCK: usize = 25;
/// Rounds.
const ROUNDS: usize = 40;

/// Measures.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let home = Home::make();
    let mut floor = Bare::on_terminal(&home)?;
    let subjects = plan.subjects();
    let mut turns = Turns::default();
    let watched = [(Role::Shell, floor.pid())];
    turns.floor(move || Block::timed(BLOCK, &watched, || floor.run("true").map(drop)));
    for subject in &subjects {
        let mut rest = Rest::connect(&subject.server)?;
        let mut mcp = Mcp::start(&subject.server)?;
        let session = rest.session()?;
        let mut watched = rest.processes(&session)?;
        watched.push((Role::Shim, mcp.pid()));
        let call = json!({ "session_id": session, "command": "true" });
        turns.add(subject.who, "mcp", move || {
            Block::timed(BLOCK, &watched, || {
                let result = mcp.call("execute_in_terminal", call.clone())?;
                let text = result["content"][0]["text"].as_str().unwrap_or_default();
                ensure!(text.contains("[exit 0"), "true over MCP: {result}");
                Ok(())
            })
        });
        let session = rest.session()?;
        let watched = rest.processes(&session)?;
        turns.add(subject.who, "rest", move || Block::timed(BLOCK, &watched, || rest.run(&session, "true").map(drop)));
    }
    let rounds = turns.run(plan.rounds(ROUNDS))?;
    let mut figures = Vec::new();
    for (name, thing) in [("true over MCP stdio", "mcp"), ("true over REST", "rest")] {
        figures.push(rounds.ratio(name, thing, Unit::Seconds, Better::Less).limit(50.0));
        figures.push(rounds.processor(name, thing));
    }
    Ok(figures)
}
