//! Viewers over the WebSocket: a key and its echo against a bare echo socket, and what a connection costs in memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::{Binary, Home, Server, Session, Socket, SocketMessage, Start, footprint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::figures::{Figures, Goal, Samples};

/// Keys in a turn, and turns.
const BLOCK: usize = 25;
const BLOCKS: usize = 40;
/// Connections that look at one idle session, of two: a session has a bound for its viewers.
const VIEWERS: usize = 1_000;
/// All of them.
const IDLE: usize = 2 * VIEWERS;
/// The output that all of them receive then.
const LINES: usize = 20_000;

/// Measures with a runtime of one thread, so that the client is the same on both sides.
pub fn measure(binary: Binary, figures: &mut Figures) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = Server::start_with(binary, Home::make(), Start::default());
        crowd(&server, figures).await?;
        echo(&server, figures).await
    })
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

async fn echo(server: &Server, figures: &mut Figures) -> Result<()> {
    let shell = server.session().await;
    // The kernel echoes for it, which is the shortest way that there is through a terminal.
    shell.begin("cat >/dev/null").await;
    let mut socket = Socket::visit(server, &shell.id, "").await;
    let mut floor = TcpStream::connect(bare_echo()?).await?;
    floor.set_nodelay(true)?;
    let [mut bare, mut ours] = [(); 2].map(|()| Samples::default());
    let mut seq = 0;
    for block in 0..=BLOCKS {
        for _ in 0..BLOCK {
            let begun = Instant::now();
            floor.write_all(b"x").await?;
            floor.read_exact(&mut [0]).await?;
            bare.note(begun.elapsed(), block > 0);
        }
        for _ in 0..BLOCK {
            seq += 1;
            let begun = Instant::now();
            socket.types(seq, b"x").await;
            // That it was typed may be said before or after.
            let (mut parsed, mut is_typed) = (None, false);
            while parsed.is_none() || !is_typed {
                match socket.next().await {
                    SocketMessage::Data(_, to, bytes) if bytes.contains(&b'x') => {
                        ours.note(begun.elapsed(), block > 0);
                        parsed = Some(to);
                    }
                    SocketMessage::Typed(number) => is_typed |= number == seq,
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
    }
    shell.ends().await;
    figures.ratio("a key and its echo over WebSocket", &ours, &bare, Goal::AtMost(20.0));
    Ok(())
}

async fn crowd(server: &Server, figures: &mut Figures) -> Result<()> {
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
    figures.bytes("an idle connection, of 2,000", grown / IDLE as u64, 20 << 10);
    let idle = grown / 2;
    let begun = Instant::now();
    let done = shell.run(&format!("seq 1 {LINES}")).await;
    let ran = begun.elapsed();
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
    println!("{VIEWERS} viewers have {LINES} lines after {:?}; the command took {ran:?}", begun.elapsed());
    let grown = footprint(server.pid()).share_bytes.saturating_sub(before.share_bytes + idle);
    figures.bytes("a connection that was shown 16 KiB at once", grown / VIEWERS as u64, 1 << 20);
    Ok(())
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
