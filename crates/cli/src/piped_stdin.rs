//! Standard input for a command: a named pipe, which the shell opens for the command.
//!
//! It is a kernel pipe from here to the program, so any bytes pass unchanged, a program that does not read blocks the
//! writer, and the end of the input is the end of the pipe. The program's output stays on the terminal.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::stdio::stdin;

use crate::exit::Failure;
use crate::serve::quoted;
use crate::{shim, tty};

/// The kinds of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A terminal, with a person who types and reads.
    Person,
    /// Data: a pipe, a file, a socket.
    Data,
    /// Unreadable: closed, `/dev/null`, or a terminal that this process may not read.
    None,
}

/// The null device (Documentation/admin-guide/devices.txt).
const NULL: (u32, u32) = (1, 3);

impl Input {
    /// That of this process.
    pub fn find() -> Self {
        if rustix::termios::isatty(stdin()) {
            return if tty::is_interactive() && tty::is_in_foreground() { Self::Person } else { Self::None };
        }
        let Ok(about) = rustix::fs::fstat(stdin()) else { return Self::None };
        let device = (rustix::fs::major(about.st_rdev), rustix::fs::minor(about.st_rdev));
        let is_null = FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice && device == NULL;
        if is_null { Self::None } else { Self::Data }
    }
}

/// The shell syntax for redirecting a command's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// `{ …; } <file`
    Braces,
    /// `begin; …; end <file`
    Begin,
}

impl Syntax {
    fn of(shell: &str) -> Option<Self> {
        match shell.rsplit('/').next().unwrap_or(shell) {
            "bash" | "rbash" | "zsh" | "zsh5" | "sh" | "dash" | "ash" | "busybox" | "mksh" | "lksh" => {
                Some(Self::Braces)
            }
            "fish" => Some(Self::Begin),
            _ => None,
        }
    }
}

/// The named pipe. Its name is removed once it was opened, or when this is dropped.
#[derive(Debug)]
pub struct StdinPipe {
    path: PathBuf,
    syntax: Syntax,
}

impl StdinPipe {
    /// A pipe for a command of this shell, beside the server's socket, which both sides can reach unless the session is confined.
    pub fn make(socket: &Path, shell: &str) -> Result<Self, Failure> {
        let syntax = Syntax::of(shell).ok_or_else(|| {
            Failure::usage(format!(
                "standard input cannot be passed to a command of {shell}; run it with </dev/null, and type with \
                 `ptyd send` or `ptyd attach`"
            ))
        })?;
        let path = socket.with_file_name(format!("stdin-{}", shim::random_name()?));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        Ok(Self { path, syntax })
    }

    /// The command with its input redirected from this pipe.
    pub fn given_to(&self, command: &str) -> String {
        let path = quoted(&self.path.display().to_string());
        match self.syntax {
            Syntax::Braces => format!("{{ {command}\n}} <{path}"),
            Syntax::Begin => format!("begin\n{command}\nend <{path}"),
        }
    }

    /// Copies standard input in a thread of its own, which blocks until the shell opens the pipe, and whenever the
    /// program does not read. It ends with the process.
    pub fn begin(&self) {
        let path = self.path.clone();
        std::thread::spawn(move || {
            let Ok(mut pipe) = OpenOptions::new().write(true).open(&path) else { return };
            let _ = std::fs::remove_file(&path);
            // The program may close its input early.
            let _ = copy(&mut io::stdin().lock(), &mut pipe);
        });
    }
}

/// Copies by reading and writing. [`io::copy`] splices: while it waits for a socket to give something, it holds the pipe's
/// lock, and the shell cannot close its end.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Drop for StdinPipe {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
