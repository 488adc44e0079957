//! `writer`: a holder beside a program that writes 500 times a second and waits for its terminal and for a socket at once.
//! The floor is the processor time of the program itself. Each write could mean that the program now wants something else, and looking at it each time costs more than the writes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{Pid, with_descendants};
use serde_json::json;

use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::plan::Plan;
use crate::processor::{Meter, Role};
use crate::rest::Rest;
use crate::rounds::{Turns, Who};
use crate::unit::Unit;

/// Rounds.
const ROUNDS: usize = 10;
/// How long a process is watched in each.
const WATCHED: Duration = Duration::from_millis(500);

/// The program.
const WRITES: &str = r#"perl -MIO::Socket::INET -e '
    $| = 1; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die; my $in = "";
    vec($in, 0, 1) = 1; vec($in, fileno($s), 1) = 1;
    while (1) { my $r = $in; select($r, undef, undef, 0.002) > 0 and sysread(STDIN, my $b, 100); syswrite(STDOUT, "tick\n") }'"#;

/// Measures.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let subjects = plan.subjects();
    let mut turns = Turns::default();
    for subject in &subjects {
        let mut rest = Rest::connect(&subject.server)?;
        let session = rest.session()?;
        let body = json!({ "command": WRITES, "waitForCompletion": false });
        rest.ask("POST", &format!("/terminals/{session}/execute"), &body)?;
        let body = json!({ "waitFor": "tick", "timeout": 20, "maxChars": 0 });
        let seen = rest.ask("POST", &format!("/terminals/{session}/wait"), &body)?;
        ensure!(seen["endedBy"] == "matched", "the program writes nothing: {seen}");
        let processes = rest.processes(&session)?;
        let process =
            |role| processes.iter().find(|(known, _)| *known == role).map(|(_, pid)| *pid).context("a process");
        let (holder, shell) = (process(Role::Holder)?, process(Role::Shell)?);
        let program = *with_descendants(shell).get(1).context("the program runs")?;
        if subject.who == Who::Ours {
            turns.floor(move || share(program));
        }
        turns.add(subject.who, "holder", move || share(holder));
    }
    let rounds = turns.run(plan.rounds(ROUNDS))?;
    let name = "a holder beside 500 writes a second";
    Ok(vec![rounds.ratio(name, "holder", Unit::Processors, Better::Less).limit(20.0)])
}

/// The part of a processor that a process takes.
fn share(pid: Pid) -> Result<Block> {
    let meter = Meter::begin(&[(Role::Holder, pid)]);
    ensure!(!pid.ends_within(WATCHED), "the process ended");
    let spent: f64 = meter.spent(1).into_iter().map(|(_, time)| time).sum();
    Ok(Block::of(vec![spent / WATCHED.as_secs_f64()]))
}
