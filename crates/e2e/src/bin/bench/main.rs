//! `cargo xtask bench`: the cost of a terminal behind ptyd, compared with a bare PTY in the same run.
//!
//! Only ratios matter: a machine is fast or slow, and both sides of a ratio ran on it, in turns. Prints a table, writes
//! `target/bench.json`, and fails only with `--check`. With `viewers` only WebSockets are measured, with `waits` only
//! the latency of waits, with `idle` only the cost of idle sessions, and with `load [sessions] [commands]` only many
//! busy sessions, which no other run includes.

mod bare;
mod figures;
mod load;
mod rest;
mod viewers;
mod waits;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{Binary, Footprint, Home, Mcp, Pid, Server, Start, footprint, with_descendants};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use bare::Bare;
use figures::{Figures, Goal, Samples};
use rest::Rest;

/// Both sides are measured in turns of this many, so that a drift of the machine meets both.
const BLOCK: usize = 25;
/// Turns of the round trip.
const BLOCKS: usize = 40;
/// Sessions and shells that are started.
const STARTS: usize = 40;
/// `seq 1 …`: 100 MB of lines that are short.
const FLOOD_LINES: u64 = 11_400_000;
/// The number of floods on each side.
const FLOODS: usize = 5;
/// Sessions that are idle at once.
const IDLE: u32 = 500;
/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(5);
/// Before that. Threads that had something to do stay for 10 s, and the time that one used goes with it: what is measured
/// while they end would be less than nothing.
const SETTLED: Duration = Duration::from_secs(12);
/// One read of the journal.
const CHUNK: u64 = 4 << 20;

fn main() -> ExitCode {
    // Thousands of connections are ours, too.
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum });
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("load", counts)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return match load::measure(counts) {
            Ok(is_whole) => {
                if is_whole {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                }
            }
            Err(error) => {
                eprintln!("bench load: {error:#}");
                ExitCode::FAILURE
            }
        };
    }
    match measure() {
        Ok(figures) => {
            println!("{figures}");
            let fails = std::env::args().any(|arg| arg == "--check") && !figures.are_met();
            if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<Figures> {
    let binary = Binary::built_for_measuring()?;
    let mut figures = Figures::default();
    if std::env::args().any(|arg| arg == "viewers") {
        viewers::measure(binary, &mut figures)?;
        return Ok(figures);
    }
    let only = |name: &str| std::env::args().any(|arg| arg == name);
    let server = Server::start_with(binary.clone(), Home::make(), Start::default());
    let mut rest = Rest::connect(&server)?;
    if only("waits") {
        waits::measure(&server, &mut rest, &mut figures)?;
        return Ok(figures);
    }
    if only("idle") {
        idleness(&server, &mut rest, &mut figures)?;
        return Ok(figures);
    }
    waits::measure(&server, &mut rest, &mut figures)?;
    round_trip(&server, &mut rest, &mut figures)?;
    creation(&server, &mut rest, &mut figures)?;
    flood(&server, &mut rest, &mut figures)?;
    drop(server);
    // Memory is that of a server which has done nothing else.
    let server = Server::start_with(binary.clone(), Home::make(), Start::default());
    let mut rest = Rest::connect(&server)?;
    idleness(&server, &mut rest, &mut figures)?;
    drop(server);
    viewers::measure(binary, &mut figures)?;
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(2).context("a target directory")?;
    std::fs::write(target.join("bench.json"), figures.json().to_string() + "\n")?;
    Ok(figures)
}

fn round_trip(server: &Server, rest: &mut Rest, figures: &mut Figures) -> Result<()> {
    let mut floor = Bare::on_terminal(server.home())?;
    let mut mcp = Mcp::start(server)?;
    let over_rest = rest.session()?;
    let over_mcp = rest.session()?;
    let call = json!({ "session_id": over_mcp, "command": "true" });
    let [mut bare, mut by_mcp, mut by_rest] = [(); 3].map(|()| Samples::default());
    for block in 0..=BLOCKS {
        // The first turn warms everything up.
        let is_counted = block > 0;
        for _ in 0..BLOCK {
            let took = floor.run("true")?.0;
            bare.note(took, is_counted);
        }
        for _ in 0..BLOCK {
            let begun = Instant::now();
            let result = mcp.call("execute_in_terminal", call.clone())?;
            by_mcp.note(begun.elapsed(), is_counted);
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            ensure!(text.contains("[exit 0"), "true over MCP: {result}");
        }
        for _ in 0..BLOCK {
            let begun = Instant::now();
            rest.run(&over_rest, "true")?;
            by_rest.note(begun.elapsed(), is_counted);
        }
    }
    rest.end(&over_rest)?;
    rest.end(&over_mcp)?;
    figures.ratio("true over MCP stdio", &by_mcp, &bare, Goal::AtMost(6.0));
    figures.ratio("true over REST", &by_rest, &bare, Goal::AtMost(6.0));
    Ok(())
}

fn creation(server: &Server, rest: &mut Rest, figures: &mut Figures) -> Result<()> {
    let [mut bare, mut created, mut answered] = [(); 3].map(|()| Samples::default());
    for round in 0..=STARTS {
        bare.note(Bare::start_time(server.home())?, round > 0);
        let begun = Instant::now();
        let session = rest.session()?;
        created.note(begun.elapsed(), round > 0);
        rest.run(&session, "true")?;
        answered.note(begun.elapsed(), round > 0);
        rest.end(&session)?;
    }
    figures.ratio("create", &created, &bare, Goal::AtMost(2.0));
    figures.ratio("create and first result", &answered, &bare, Goal::AtMost(2.0));
    Ok(())
}

fn flood(server: &Server, rest: &mut Rest, figures: &mut Figures) -> Result<()> {
    let command = format!("seq 1 {FLOOD_LINES}");
    let mut floor = Bare::on_terminal(server.home())?;
    let [mut bare, mut ours] = [(); 2].map(|()| Samples::default());
    let [mut server_growth, mut holder_growth] = [0; 2];
    for _ in 0..FLOODS {
        let (took, bytes) = floor.run(&command)?;
        bare.note(took, true);
        let session = rest.session()?;
        let shell = rest.ask("GET", &format!("/terminals/{session}"), &Value::Null)?["pid"].as_u64();
        let shell = Pid::new(u32::try_from(shell.context("a shell")?)?);
        let holder = shell.parent().context("a holder")?;
        let before = (footprint(server.pid()), footprint(holder));
        let begun = Instant::now();
        let done = rest.run(&session, &command)?;
        ours.note(begun.elapsed(), true);
        server_growth = server_growth.max(growth(before.0, footprint(server.pid())));
        holder_growth = holder_growth.max(growth(before.1, footprint(holder)));
        let exact = compare(rest, &session, &done)?;
        ensure!(bytes >= exact, "the bare terminal gave {bytes} bytes, and {exact} were printed");
        rest.end(&session)?;
    }
    figures.bytes("flood: growth of the server", server_growth, 32 << 20);
    figures.bytes("flood: growth of the holder", holder_growth, 32 << 20);
    figures.speed("100 MB of short lines", &ours, &bare, Goal::AtLeast(0.8));
    Ok(())
}

fn growth(before: Footprint, after: Footprint) -> u64 {
    after.peak_bytes.saturating_sub(before.resident_bytes)
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
        let path = format!("/terminals/{session}/output?view=raw&since=o:{next}&limit={limit}");
        let output = rest.ask("GET", &path, &Value::Null)?;
        let bytes = STANDARD.decode(output["dataBase64"].as_str().context("raw bytes")?)?;
        while expected.len() < bytes.len() && number < FLOOD_LINES {
            number += 1;
            expected.extend(format!("{number}\r\n").into_bytes());
        }
        ensure!(!bytes.is_empty() && expected.starts_with(&bytes), "the flood is not what was printed, at {next}");
        expected.drain(..bytes.len());
        next += bytes.len() as u64;
    }
    ensure!(expected.is_empty() && number == FLOOD_LINES, "the flood ends early, at line {number}");
    Ok(end - start)
}

fn idleness(server: &Server, rest: &mut Rest, figures: &mut Figures) -> Result<()> {
    for _ in 0..3 {
        let session = rest.session()?;
        rest.run(&session, "true")?;
        rest.end(&session)?;
    }
    let alone = footprint(server.pid()).share_bytes;
    for _ in 0..IDLE {
        let session = rest.session()?;
        rest.run(&session, "true")?;
    }
    let holders: Vec<Pid> =
        with_descendants(server.pid()).into_iter().filter(|pid| pid.parent() == Some(server.pid())).collect();
    ensure!(holders.len() == usize::try_from(IDLE)?, "{} holders for {IDLE} sessions", holders.len());
    let held: u64 = holders.iter().map(|pid| footprint(*pid).share_bytes).sum();
    let grown = footprint(server.pid()).share_bytes.saturating_sub(alone);
    figures.bytes("an idle session: holder", held / u64::from(IDLE), 88 << 10);
    figures.bytes("an idle session: holder and server", (held + grown) / u64::from(IDLE), 110 << 10);

    let spent = || with_descendants(server.pid()).into_iter().map(Pid::processor_time).sum::<Duration>();
    ensure!(!server.pid().ends_within(SETTLED), "the server ended");
    let before = spent();
    ensure!(!server.pid().ends_within(WATCHED), "the server ended");
    let used = spent().saturating_sub(before).as_secs_f64() / WATCHED.as_secs_f64();
    figures.percent("500 idle sessions, of one processor", used * 100.0, 1.0);
    Ok(())
}
