//! The latency of waits, for `cargo xtask bench waits`.
//!
//! The watched program reports when it met the condition, by the clock that is read when the answer arrives; both are
//! on one machine. So the figure includes the whole path through terminal, holder, server and loopback, and nothing
//! else.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use e2e::Server;
use serde_json::{Value, json};

use crate::figures::{Figures, Samples};
use crate::rest::Rest;

/// Answers that are measured.
const ANSWERS: u32 = 400;
/// Answers that warm everything up.
const WARM_UP: u32 = 20;

/// After a random pause it prints a line with the time at which it was written.
const PRINTS: &str = r#"perl -MTime::HiRes=time,usleep -e '$| = 1; while (<STDIN>) { usleep(5000 + rand 20000); printf "ready %.6f\n", time }'"#;
/// The same, and then it reads; the time is that of the read's beginning but for the write before it.
const ASKS: &str = r#"perl -MTime::HiRes=time,usleep -e '$| = 1; do { usleep(5000 + rand 20000); printf "asks %.6f ", time } while (<STDIN>)'"#;

/// A quiet machine's figures for both.
pub fn measure(server: &Server, rest: &mut Rest, figures: &mut Figures) -> Result<()> {
    let printed = answers(rest, PRINTS, &json!({ "waitFor": r"ready \d+\.\d{6}" }), "ready ")?;
    figures.late("a pattern's match, from its write", &printed, Duration::from_millis(5));
    let asked = answers(rest, ASKS, &json!({ "until": ["input"] }), "asks ")?;
    figures.late("input wanted, from the read", &asked, Duration::from_millis(50));
    ensure!(!server.pid().ends_within(Duration::ZERO), "the server ended");
    Ok(())
}

/// Lets the program go on and waits for what it does next, again and again.
fn answers(rest: &mut Rest, program: &str, wait: &Value, word: &str) -> Result<Samples> {
    let session = rest.session()?;
    let body = json!({ "command": program, "timeout": 1, "maxChars": 0 });
    rest.ask("POST", &format!("/terminals/{session}/execute"), &body)?;
    let mut ask = wait.clone();
    ask["input"] = "\n".into();
    ask["timeout"] = 20.into();
    let mut samples = Samples::default();
    for number in 0..WARM_UP + ANSWERS {
        let answer = rest.ask("POST", &format!("/terminals/{session}/input"), &ask)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let text = answer["output"].as_str().context("output")?;
        let (_, told) = text.rsplit_once(word).with_context(|| format!("no {word}in {answer}"))?;
        let then = Duration::try_from_secs_f64(told.trim().parse().with_context(|| format!("no time in {text:?}"))?)?;
        samples.note(now.saturating_sub(then), number >= WARM_UP);
    }
    rest.end(&session)?;
    Ok(samples)
}
