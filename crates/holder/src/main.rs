//! The holder's binary: `ptyd-holder <session folder>`, with a server's connection as standard input.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: ptyd-holder <session folder> (started by `ptyd serve`, not by hand)");
        return ExitCode::from(2);
    };
    match holder::run(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ptyd-holder: {}: {e}", folder.display());
            ExitCode::FAILURE
        }
    }
}
