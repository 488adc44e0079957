//! The holder's binary: `ptyd-holder <session folder>`, with the server's connection as standard input; or `ptyd-holder
//! --self-test <folder>`, which tries splice(2) there.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (folder, is_test) = match arguments.next() {
        Some(first) if first == wire::SELF_TEST => (arguments.next(), true),
        folder => (folder, false),
    };
    let Some(folder) = folder.map(PathBuf::from) else {
        eprintln!("usage: ptyd-holder <session folder> (started by `ptyd serve`, not by hand)");
        return ExitCode::from(2);
    };
    if is_test {
        let code = if holder::splice_works(&folder) { wire::SPLICE_WORKS } else { wire::SPLICE_FAILS };
        return ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
    }
    // The server reads the log when its connection ends, so a failed start is logged before that.
    let mut connection = std::io::stdin().as_fd().try_clone_to_owned().ok();
    match holder::run(&folder, &mut connection) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ptyd-holder: {}: {e}", folder.display());
            ExitCode::FAILURE
        }
    }
}
