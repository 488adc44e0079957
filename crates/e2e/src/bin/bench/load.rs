//! `load`: commands that many sessions complete together in a second, as a part of what as many bare shells complete. Every
//! answer is compared.

use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::{Home, Mcp, Pid};
use serde_json::json;

use crate::bare::Bare;
use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::plan::{Plan, Subject};
use crate::processor::{Meter, Role};
use crate::rest::Rest;
use crate::rounds::Turns;
use crate::unit::Unit;

/// Sessions at once.
const SESSIONS: usize = 50;
/// Commands in each, one after the other, in a block.
const COMMANDS: usize = 10;
/// Rounds.
const ROUNDS: usize = 10;

/// Something that runs a command; its words are all that the command prints.
type Lane<'a> = Box<dyn FnMut(&str) -> Result<()> + Send + 'a>;

/// As many of them as there are sessions, and the processes that work for them.
type Lanes = (Vec<Lane<'static>>, Vec<(Role, Pid)>);

/// Measures.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let count = plan.sessions.unwrap_or(SESSIONS);
    let home = Home::make();
    let subjects = plan.subjects();
    let mut turns = Turns::default();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut shells = Vec::new();
    for _ in 0..count {
        let mut shell = Bare::on_terminal(&home)?;
        shells.push((Role::Shell, shell.pid()));
        lanes.push(Box::new(move |words| shell.run(&format!("echo {words}")).map(drop)));
    }
    turns.floor(move || together(&mut lanes, &shells));
    for subject in &subjects {
        let (mut lanes, watched) = over_rest(subject, count)?;
        turns.add(subject.who, "rest", move || together(&mut lanes, &watched));
        let (mut lanes, watched) = over_mcp(subject, count)?;
        turns.add(subject.who, "mcp", move || together(&mut lanes, &watched));
    }
    let rounds = turns.run(plan.rounds(ROUNDS))?;
    let mut figures = Vec::new();
    for (door, thing) in [("REST", "rest"), ("MCP stdio", "mcp")] {
        let name = format!("commands/s of {count} sessions over {door}");
        figures.push(rounds.ratio(&name, thing, Unit::PerSecond, Better::More).limit(0.03));
        figures.push(rounds.processor(&name, thing));
    }
    Ok(figures)
}

/// The server once, and what belongs to each session.
fn all(server: Pid, of_sessions: Vec<(Role, Pid)>) -> Vec<(Role, Pid)> {
    let others = of_sessions.into_iter().filter(|(role, _)| *role != Role::Server);
    std::iter::once((Role::Server, server)).chain(others).collect()
}

/// A session and a kept connection for each lane.
fn over_rest(subject: &Subject, count: usize) -> Result<Lanes> {
    let (mut lanes, mut watched): (Vec<Lane>, _) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut rest = Rest::connect(&subject.server)?;
        let session = rest.session()?;
        watched.extend(rest.processes(&session)?);
        lanes.push(Box::new(move |words| {
            let done = rest.run(&session, &format!("echo {words}"))?;
            ensure!(done["output"] == format!("{words}\n"), "{words}: {done}");
            Ok(())
        }));
    }
    Ok((lanes, all(subject.server.pid(), watched)))
}

/// A session and a client with a process of its own for each lane.
fn over_mcp(subject: &Subject, count: usize) -> Result<Lanes> {
    let mut rest = Rest::connect(&subject.server)?;
    let (mut lanes, mut watched): (Vec<Lane>, _) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut mcp = Mcp::start(&subject.server)?;
        let session = rest.session()?;
        watched.extend(rest.processes(&session)?);
        watched.push((Role::Shim, mcp.pid()));
        lanes.push(Box::new(move |words| {
            let call = json!({ "session_id": session, "command": format!("echo {words}") });
            let result = mcp.call("execute_in_terminal", call)?;
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            ensure!(text.contains("[exit 0") && text.contains(words), "{words}: {result}");
            Ok(())
        }));
    }
    Ok((lanes, all(subject.server.pid(), watched)))
}

/// All lanes at once, each with a thread; one sample, which is the rate of all. Each thread reads the clock itself: one that
/// only waits for them is woken up when some may already have run for long.
fn together(lanes: &mut [Lane], watched: &[(Role, Pid)]) -> Result<Block> {
    let commands = lanes.len() * COMMANDS;
    let begin = Barrier::new(lanes.len());
    let meter = Meter::begin(watched);
    let times = std::thread::scope(|scope| -> Result<Vec<(Instant, Instant)>> {
        let begin = &begin;
        let run = |(number, lane): (usize, &mut Lane)| -> Result<(Instant, Instant)> {
            begin.wait();
            let begun = Instant::now();
            (0..COMMANDS).try_for_each(|command| lane(&format!("s{number}c{command}e")))?;
            Ok((begun, Instant::now()))
        };
        let threads: Vec<_> = lanes.iter_mut().enumerate().map(|lane| scope.spawn(move || run(lane))).collect();
        threads.into_iter().map(|thread| thread.join().ok().context("a client panicked")?).collect()
    })?;
    let begun = times.iter().map(|(begun, _)| *begun).min().context("a lane")?;
    let ended = times.iter().map(|(_, ended)| *ended).max().context("a lane")?;
    let rate = commands as f64 / ended.duration_since(begun).as_secs_f64();
    Ok(Block { samples: vec![rate], processor: meter.spent(commands) })
}
