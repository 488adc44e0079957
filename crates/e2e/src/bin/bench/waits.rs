//! `waits`: the time from the moment at which a program meets a condition to the answer of the call that waits for it.
//!
//! The watched program reports when it met the condition, by the clock that is read when the answer arrives; both are
//! on one machine. So the figure includes the whole path through terminal, holder, server and loopback, and nothing
//! else. The floor is a program that reads the terminal itself.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use e2e::Home;
use serde_json::{Value, json};

use crate::bare::Bare;
use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::plan::Plan;
use crate::rest::Rest;
use crate::rounds::{Rounds, Turns, Who};
use crate::samples::quantile;
use crate::unit::Unit;

/// Answers in a block.
const BLOCK: usize = 20;
/// Rounds.
const ROUNDS: usize = 20;

/// After a random pause it prints a line with the time at which it was written.
const PRINTS: &str = r#"perl -MTime::HiRes=time,usleep -e '$| = 1; while (<STDIN>) { usleep(5000 + rand 20000); printf "ready %.6f\n", time }'"#;
/// The same, and then it reads; the time is that of the read's beginning but for the write before it.
const ASKS: &str = r#"perl -MTime::HiRes=time,usleep -e '$| = 1; do { usleep(5000 + rand 20000); printf "asks %.6f ", time } while (<STDIN>)'"#;

/// Measures.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let home = Home::make();
    let subjects = plan.subjects();
    let mut floor = Bare::on_terminal(&home)?;
    let script = home.file("prints");
    std::fs::write(&script, PRINTS)?;
    // The echo of the command has nothing of what is waited for.
    floor.types(&format!("sh {}\r", script.display()))?;
    let mut turns = Turns::default();
    turns.floor(move || {
        let next = || -> Result<f64> {
            floor.types("\r")?;
            since(&floor.word_after("ready ")?)
        };
        Ok(Block::of(std::iter::repeat_with(next).take(BLOCK).collect::<Result<_>>()?))
    });
    for subject in &subjects {
        let wait = json!({ "waitFor": r"ready \d+\.\d{6}" });
        for (thing, program, wait, word) in
            [("pattern", PRINTS, wait, "ready "), ("input", ASKS, json!({ "until": ["input"] }), "asks ")]
        {
            let mut rest = Rest::connect(&subject.server)?;
            let session = rest.session()?;
            let body = json!({ "command": program, "timeout": 1, "maxChars": 0 });
            rest.ask("POST", &format!("/terminals/{session}/execute"), &body)?;
            turns.add(subject.who, thing, move || {
                let next = || answer(&mut rest, &session, &wait, word);
                Ok(Block::of(std::iter::repeat_with(next).take(BLOCK).collect::<Result<_>>()?))
            });
        }
    }
    let rounds = turns.run(plan.rounds(ROUNDS))?;
    let (pattern, input) = ("a pattern's match, from its write", "input wanted, from the read");
    Ok(vec![
        rounds.ratio(pattern, "pattern", Unit::Seconds, Better::Less).limit(60.0),
        late(&rounds, pattern, "pattern", Duration::from_millis(25)),
        // No ratio: most of it are the server's own intervals between two looks, which no faster machine shortens.
        rounds.value(input, "input", Unit::Seconds),
        late(&rounds, input, "input", Duration::from_millis(50)),
    ])
}

/// The time that almost no answer exceeds. Too few samples decide it for a comparison, so it only has a bound.
fn late(rounds: &Rounds, name: &str, thing: &str, most: Duration) -> Figure {
    let all: Vec<f64> = rounds.of(Who::Ours, thing).iter().flat_map(|block| block.samples.clone()).collect();
    Figure::bounded(&format!("{name}: p99"), Unit::Seconds, quantile(&all, 0.99), most.as_secs_f64())
}

/// Lets the program go on, waits for what it does next, and returns how long ago that was.
fn answer(rest: &mut Rest, session: &str, wait: &Value, word: &str) -> Result<f64> {
    let mut ask = wait.clone();
    ask["input"] = "\n".into();
    ask["timeout"] = 20.into();
    let answer = rest.ask("POST", &format!("/terminals/{session}/input"), &ask)?;
    let text = answer["output"].as_str().context("output")?;
    let (_, told) = text.rsplit_once(word).with_context(|| format!("no {word}in {answer}"))?;
    since(told)
}

/// The time since this one, as a program prints it.
fn since(told: &str) -> Result<f64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let then = Duration::try_from_secs_f64(told.trim().parse().with_context(|| format!("no time: {told:?}"))?)?;
    Ok(now.saturating_sub(then).as_secs_f64())
}
