//! `cargo xtask bench load [sessions] [commands]`: how many commands per second many sessions complete together.

use anyhow::{Context, Result};
use e2e::{Binary, Home, Load, Loaded, Server, Start};

/// Without counts: what a platform with many agents may ask of one machine.
const DEFAULT: Load = Load { sessions: 200, commands: 50 };

/// Measures both ways, each with a server that has done nothing else; whether every command had its exact answer.
pub fn measure(counts: &[String]) -> Result<bool> {
    let mut counts = counts.iter().map(|count| count.parse().context("cargo xtask bench load [sessions] [commands]"));
    let sessions = counts.next().transpose()?.unwrap_or(DEFAULT.sessions);
    let load = Load { sessions, commands: counts.next().transpose()?.unwrap_or(DEFAULT.commands) };
    let binary = Binary::built_for_measuring()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = || Server::start_with(binary.clone(), Home::make(), Start::default());
    println!("{} sessions × {} commands", load.sessions, load.commands);
    println!(
        "{:10} {:>11} {:>9} {:>9} {:>7} {:>21} {:>9}",
        "", "commands/s", "p50", "p99", "errors", "server (peak)", "holder"
    );
    let rest = runtime.block_on(async { load.over_rest(&server()).await })?;
    print("REST", &rest);
    let socket = runtime.block_on(async { load.over_socket(&server()).await });
    print("WebSocket", &socket);
    Ok(rest.errors.is_empty() && socket.errors.is_empty())
}

fn print(way: &str, loaded: &Loaded) {
    let millis = |permille| format!("{:.1} ms", loaded.below(permille).as_secs_f64() * 1000.0);
    let (now, peak) = loaded.server_bytes;
    let memory = format!("{} KiB ({} KiB)", now >> 10, peak >> 10);
    println!(
        "{way:10} {:>11.0} {:>9} {:>9} {:>7} {memory:>21} {:>5} KiB",
        loaded.rate(),
        millis(500),
        millis(990),
        loaded.errors.len(),
        loaded.holder_bytes >> 10,
    );
    for error in loaded.errors.iter().take(5) {
        println!("  {error}");
    }
}
