//! The holder's binary: `ptyd-holder <session folder>`, with the server's connection as standard input, which also brings
//! the folder of a spare holder; `ptyd-holder --self-test <folder>`, which tries splice(2) there; or `ptyd-holder
//! --first-in-container <socket>`, the first process of a session's container.

#![no_main]

use std::ffi::OsString;
use std::path::PathBuf;

sys::begins_with!(run);

/// Runs the holder; the exit code.
fn run(arguments: Vec<OsString>) -> u8 {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    if arguments.next_if(|first| first == wire::FIRST_IN_CONTAINER).is_some() {
        return match arguments.next().map(|socket| holder::container_init::run(socket.as_ref())) {
            Some(Ok(())) => 0,
            Some(Err(e)) => {
                eprintln!("ptyd-holder: the connection to the server: {e}");
                1
            }
            None => 2,
        };
    }
    let (folder, is_test) = match arguments.next() {
        Some(first) if first == wire::SELF_TEST => (arguments.next(), true),
        folder => (folder, false),
    };
    let Some(folder) = folder.map(PathBuf::from) else {
        eprintln!("usage: ptyd-holder <session folder> (started by `ptyd serve`, not by hand)");
        return 2;
    };
    if is_test {
        let code = if holder::splice_works(&folder) { wire::SPLICE_WORKS } else { wire::SPLICE_FAILS };
        return u8::try_from(code).unwrap_or(u8::MAX);
    }
    let folder = match holder::spare::session_folder(folder) {
        Ok(Some(folder)) => folder,
        Ok(None) => return 0,
        Err(_) => return 1,
    };
    holder::log::panics_in(&folder);
    // The server reads the log when its connection ends, so a failed start is logged before that.
    // Not std::io::stdin(): that would make a buffer.
    let mut connection = rustix::stdio::stdin().try_clone_to_owned().ok();
    match holder::run(&folder, &mut connection) {
        Ok(()) => 0,
        Err(e) => {
            holder::log::add(&folder, &format!("ptyd-holder: {}: {e}", folder.display()));
            1
        }
    }
}
