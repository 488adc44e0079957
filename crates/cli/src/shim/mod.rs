//! `ptyd mcp`: carries MCP lines between a host's pipes and this user's server, and survives the server.
//!
//! One thread, one poll loop, no runtime: it is started for every client, and every message passes through it. A second
//! thread looks for a server, so that the host is not kept waiting by one that hangs. stdout has only MCP. When the server dies,
//! the next one gets the handshake and the open requests again; they are numbered, so nothing is done twice, and the host only
//! sees a delay.

mod discovery;
mod handshake;
mod lines;
mod options;
mod pending_requests;
mod proxy_loop;
mod upgrade;
mod write_buffer;

use std::io;
use std::process::ExitCode;

use crate::paths::Paths;
use crate::print;
use crate::{daemon, exit};
use discovery::Discovery;
pub use handshake::random_name;
pub use options::Options;
use proxy_loop::Ending;

/// Carries lines until the host closes standard input.
pub fn run(options: &Options, paths: &Paths) -> ExitCode {
    if rustix::termios::isatty(io::stdin()) {
        print::note(
            "ptyd mcp: speaks MCP on stdin and stdout, for an MCP client to start; C-d ends it. See `ptyd mcp --help`",
        );
    }
    let (name, first_number) = match handshake::Name::of_host().and_then(|n| Ok((n, handshake::first_number()?))) {
        Ok(both) => both,
        Err(error) => return failed(&error),
    };
    let hello = handshake::line(options, &name);
    let paths = paths.clone();
    let connect = move || daemon::connect_or_start(&paths);
    let discovery = Discovery::of(server::mcp::discovery());
    match proxy_loop::carry(connect, &hello, first_number, &discovery, io::stdin(), io::stdout()) {
        Ok(Ending::HostClosed) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// stderr is for people: hosts show it in their logs.
fn failed(error: &io::Error) -> ExitCode {
    print::note(format_args!("ptyd mcp: {error}"));
    ExitCode::from(exit::of_unreached(error))
}

#[cfg(test)]
mod tests;
