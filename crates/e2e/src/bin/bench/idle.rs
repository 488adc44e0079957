//! `idle`: the memory of a session that does nothing, with its shell's beyond a bare one, and the processor time of many.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::{Home, Pid, footprint, with_descendants};

use crate::bare::Bare;
use crate::block::Block;
use crate::figure::Figure;
use crate::plan::Plan;
use crate::processor::{Meter, Role};
use crate::rest::Rest;
use crate::rounds::Turns;
use crate::unit::Unit;

/// Sessions that each round adds.
const SESSIONS: usize = 20;
/// Rounds; a quick run has as many, because the server's growth comes in steps.
const ROUNDS: usize = 5;
/// After this time without anything to do, a holder has given back the memory that its start needed.
const GIVEN_BACK: Duration = Duration::from_millis(2500);
/// Threads that had something to do stay for 10 s, and the time that one used goes with it: what is measured while they
/// end would be less than nothing.
const SETTLED: Duration = Duration::from_secs(12);
/// How long the idle sessions are watched.
const WATCHED: Duration = Duration::from_secs(5);

/// Measures.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let count = plan.sessions.unwrap_or(SESSIONS);
    let home = Home::make();
    let subjects = plan.subjects();
    let server = subjects[0].server.pid();
    let bare: RefCell<Vec<Bare>> = RefCell::default();
    let mut turns = Turns::default();
    turns.floor(|| {
        let mut bare = bare.borrow_mut();
        let before = bare.len();
        for _ in 0..count {
            let mut shell = Bare::on_terminal(&home)?;
            shell.run("true")?;
            bare.push(shell);
        }
        Ok(Block::of(bare[before..].iter().map(|shell| share(shell.pid())).collect()))
    });
    for subject in &subjects {
        let mut rest = Rest::connect(&subject.server)?;
        let shells = Rc::new(RefCell::new(Vec::new()));
        let newest = Rc::clone(&shells);
        turns.add(subject.who, "session", move || add(&mut rest, count, &mut newest.borrow_mut()));
        let bare = &bare;
        turns.add(subject.who, "shell", move || {
            let (bare, shells) = (bare.borrow(), shells.borrow());
            let floor = bare.iter().map(|shell| share(shell.pid())).sum::<f64>() / bare.len().max(1) as f64;
            let newest = shells.iter().rev().take(count);
            Ok(Block::of(newest.map(|shell| share(*shell) - floor).collect()))
        });
    }
    let rounds = turns.run(ROUNDS)?;
    let mut figures = vec![
        rounds.value("an idle session: server and holder", "session", Unit::Bytes).limit(220.0 * 1024.0),
        rounds.value("an idle session: its shell beyond a bare one", "shell", Unit::Bytes).limit(110.0 * 1024.0),
    ];
    if !plan.is_quick {
        let watched: Vec<(Role, Pid)> = with_descendants(server).into_iter().map(|pid| (Role::Holder, pid)).collect();
        ensure!(!server.ends_within(SETTLED), "the server ended");
        let meter = Meter::begin(&watched);
        ensure!(!server.ends_within(WATCHED), "the server ended");
        let spent: f64 = meter.spent(1).into_iter().map(|(_, time)| time).sum();
        figures.push(Figure::bounded(
            "idle sessions, all together",
            Unit::Processors,
            spent / WATCHED.as_secs_f64(),
            0.01,
        ));
    }
    Ok(figures)
}

fn share(pid: Pid) -> f64 {
    footprint(pid).share_bytes as f64
}

/// Adds sessions and their shells; for each of them the memory of its holder, and its part of the server's growth.
fn add(rest: &mut Rest, count: usize, shells: &mut Vec<Pid>) -> Result<Block> {
    let server = rest.server();
    ensure!(!server.ends_within(GIVEN_BACK), "the server ended");
    let before = share(server);
    let mut added = Vec::new();
    for _ in 0..count {
        let session = rest.session()?;
        rest.run(&session, "true")?;
        let processes = rest.processes(&session)?;
        let of = |wanted| processes.iter().filter(move |(role, _)| *role == wanted).map(|(_, pid)| *pid);
        added.extend(of(Role::Holder));
        shells.extend(of(Role::Shell));
    }
    ensure!(!server.ends_within(GIVEN_BACK), "the server ended");
    let growth = (share(server) - before).max(0.0) / count as f64;
    Ok(Block::of(added.into_iter().map(|holder| share(holder) + growth).collect()))
}
