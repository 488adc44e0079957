//! `viewers`: a key and its echo over the WebSocket against a bare echo socket, and what a connection costs in memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::{Server, Session, Socket, SocketMessage, footprint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::plan::Plan;
use crate::rounds::Turns;
use crate::unit::Unit;

/// Keys in a block.
const BLOCK: usize = 25;
/// Rounds.
const ROUNDS: usize = 40;
/// Connections that look at one idle session, of two: a session has a bound for its viewers.
const VIEWERS: usize = 1_000;
/// All of them.
const IDLE: usize = 2 * VIEWERS;
/// The output that all of them receive then.
const LINES: usize = 20_000;

/// Measures with a runtime of one thread, so that the client is the same on both sides.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let subjects = plan.subjects();
    let mut figures = runtime.block_on(crowd(&subjects[0].server))?;
    let mut floor = runtime.block_on(TcpStream::connect(bare_echo()?))?;
    floor.set_nodelay(true)?;
    let mut turns = Turns::default();
    turns.floor(|| runtime.block_on(bare_keys(&mut floor)));
    for subject in &subjects {
        let mut socket = runtime.block_on(async {
            let shell = subject.server.session().await;
            // The kernel echoes for it, which is the shortest way that there is through a terminal.
            shell.begin("cat >/dev/null").await;
            Socket::visit(&subject.server, &shell.id, "").await
        });
        let mut seq = 0;
        let runtime = &runtime;
        turns.add(subject.who, "key", move || runtime.block_on(keys(&mut socket, &mut seq)));
    }
    let rounds = turns.run(plan.rounds(ROUNDS))?;
    let name = "a key and its echo over WebSocket";
    figures.insert(0, rounds.ratio(name, "key", Unit::Seconds, Better::Less).limit(100.0));
    Ok(figures)
}

/// An echo without anything behind it.
fn bare_echo() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let _ = stream.set_nodelay(true);
        let mut buffer = [0; 64];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
    });
    Ok(address)
}

async fn bare_keys(floor: &mut TcpStream) -> Result<Block> {
    let mut samples = Vec::new();
    for _ in 0..BLOCK {
        let begun = Instant::now();
        floor.write_all(b"x").await?;
        floor.read_exact(&mut [0]).await?;
        samples.push(begun.elapsed().as_secs_f64());
    }
    Ok(Block::of(samples))
}

async fn keys(socket: &mut Socket, seq: &mut u64) -> Result<Block> {
    let mut samples = Vec::new();
    for _ in 0..BLOCK {
        *seq += 1;
        let begun = Instant::now();
        socket.types(*seq, b"x").await;
        // That it was typed may be said before or after.
        let (mut parsed, mut is_typed) = (None, false);
        while parsed.is_none() || !is_typed {
            match socket.next().await {
                SocketMessage::Data(_, to, bytes) if bytes.contains(&b'x') => {
                    samples.push(begun.elapsed().as_secs_f64());
                    parsed = Some(to);
                }
                SocketMessage::Typed(number) => is_typed |= number == *seq,
                SocketMessage::Data(..)
                | SocketMessage::Event(_)
                | SocketMessage::Snapshot(..)
                | SocketMessage::Gap(..) => {}
                SocketMessage::Closed(code, why) => anyhow::bail!("closed with {code}: {why}"),
            }
        }
        if let Some(to) = parsed {
            socket.parsed(to).await;
        }
    }
    Ok(Block::of(samples))
}

async fn crowd(server: &Server) -> Result<Vec<Figure>> {
    let shell = server.session().await;
    shell.gives("true").await;
    // One-time allocations happen before the measurement.
    drop(visitors(server, &shell, 20).await);
    let before = footprint(server.pid());
    let other = server.session().await;
    other.gives("true").await;
    let _others = visitors(server, &other, VIEWERS).await;
    let mut all = visitors(server, &shell, VIEWERS).await;
    let grown = footprint(server.pid()).share_bytes.saturating_sub(before.share_bytes);
    let of_idle = grown as f64 / IDLE as f64;
    let idle = grown / 2;
    let done = shell.run(&format!("seq 1 {LINES}")).await;
    let end = done.end_offset.context("it ended")?;
    for (socket, at) in &mut all {
        while *at < end {
            match socket.next().await {
                SocketMessage::Data(from, to, _) => {
                    ensure!(from == *at, "a gap or a duplicate at {at}");
                    *at = to;
                }
                SocketMessage::Event(_) | SocketMessage::Typed(_) => {}
                other => anyhow::bail!("at {at}: {other:?}"),
            }
        }
    }
    let grown = footprint(server.pid()).share_bytes.saturating_sub(before.share_bytes + idle);
    let of_shown = grown as f64 / VIEWERS as f64;
    Ok(vec![
        Figure::bounded("an idle connection, of 2,000", Unit::Bytes, of_idle, 20.0 * 1024.0),
        Figure::bounded("a connection that was shown 16 KiB at once", Unit::Bytes, of_shown, 1024.0 * 1024.0),
    ])
}

/// Connections that have the screen, and where they stand.
async fn visitors(server: &Server, shell: &Session, count: usize) -> Vec<(Socket, u64)> {
    let mut all = Vec::new();
    for _ in 0..count {
        let mut socket = Socket::visit(server, &shell.id, "").await;
        let at = socket.until(|heard| if let SocketMessage::Snapshot(at, _) = heard { Some(*at) } else { None }).await;
        all.push((socket, at));
    }
    all
}
