//! The hello line to the server, with this client's directory and environment, so that its shells start there.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::Mode;
use serde_json::{Value, json};

use super::options::{Detach, Options, Tools};

/// Random bytes in a client's name, so that another's default session cannot be guessed.
const NAME_BYTES: usize = 16;

/// A name that no other process has or had.
pub fn random_name() -> io::Result<String> {
    let mut random = [0u8; NAME_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|b| format!("{b:02x}")).collect())
}

/// The hello line of this process; the same line introduces it to the next server.
pub(super) fn line(options: &Options) -> io::Result<Vec<u8>> {
    let client = random_name()?;
    // A deleted directory has no path; the server then chooses one.
    let cwd = std::env::current_dir().unwrap_or_default();
    let env: Vec<[String; 2]> = std::env::vars_os().map(|(name, value)| [base64(&name), base64(&value)]).collect();
    let hello = json!({
        "v": 1,
        "client": client,
        "cwd": base64(cwd.as_os_str()),
        "env": env,
        "umask": umask(),
        "tools": match options.tools { Tools::All => "all", Tools::Terminal => "terminal", Tools::Sessions => "sessions" },
        "structured": options.structured,
        "detach": match options.detach { Detach::Keep => Value::from("keep"), Detach::After(seconds) => Value::from(seconds) },
    });
    Ok(format!("{hello}\n").into_bytes())
}

fn base64(text: &OsStr) -> String {
    STANDARD.encode(text.as_bytes())
}

/// umask(2) reads the mask only by setting another; no second thread runs yet that could create a file meanwhile.
fn umask() -> u32 {
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    mask.bits()
}
