//! `ptyd record`: an asciicast file of an existing session, or of a command in a session of its own.
//!
//! The server makes the recording from the journal, so nothing has to listen while a program runs, and a session can be
//! recorded after it has ended.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use api::TerminalSession;
use clap::Args;
use client::Client;
use rustix::fs::{Mode, OFlags};

use crate::completion;
use crate::exit::Failure;
use crate::follow::Patience;
use crate::paths::Paths;
use crate::run::{self, RunOptions};
use crate::sessions::{self, StartOptions};
use crate::{daemon, print, units};

/// The options of `record`.
#[derive(Debug, Args)]
#[command(override_usage = "ptyd record [OPTIONS] SESSION\n       ptyd record [OPTIONS] -- COMMAND...")]
pub struct RecordOptions {
    /// The session to record, live or ended: its id, a unique beginning of its id, or its name
    #[arg(required_unless_present = "command", conflicts_with_all = ["command", "name", "size", "cwd", "shell", "env", "timeout"])]
    #[arg(add = completion::sessions())]
    session: Option<String>,
    /// Write to this file, which must not exist yet; -: standard output [default: the session's name or id, with
    /// .cast]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write this version of the asciicast format, 2 or 3
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u64).range(2..=3))]
    format: u64,
    /// Give the recording this title
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    start: StartOptions,
    /// Give up after this long, such as 90s or 5m, with exit code 124 and a recording of the output so far
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    timeout: Option<Duration>,
    /// The command to record, as for ptyd run
    #[arg(last = true)]
    command: Vec<String>,
}

/// Records the session or command; returns the command's exit code.
pub async fn record(paths: &Paths, options: RecordOptions) -> Result<ExitCode, Failure> {
    let RecordOptions { session, output, format, name, start, timeout, command } = options;
    if let Some(given) = session {
        let client = Client::unix(&paths.socket).calling_itself("ptyd-record");
        let session = sessions::find(&client, &given).await?;
        Cast::begin(output, &session)?.write(&client, &session, format).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let client = daemon::client(paths)?;
    let request = start.request(&client, name)?;
    // An unwritable file should be reported before a long command, not after it.
    let mut cast = output.map(Cast::at).transpose()?;
    let options = RunOptions::alone(command, start, timeout, matches!(cast, Some(Cast::Stdout)));
    let and = async |session: &TerminalSession| {
        let cast = cast.take().map_or_else(|| Cast::begin(None, session), Ok)?;
        cast.write(&client, session, format).await
    };
    run::run_and(&client, paths, &options, &request, and).await
}

/// The destination.
enum Cast {
    File(CastFile),
    /// Written in one piece once complete, so that an attempt aborted by a server's end leaves nothing on stdout.
    Stdout,
}

/// The file. When this is dropped, the file is a complete recording or does not exist.
struct CastFile {
    path: PathBuf,
    file: File,
    is_whole: bool,
}

impl Cast {
    fn begin(output: Option<PathBuf>, session: &TerminalSession) -> Result<Self, Failure> {
        Self::at(output.unwrap_or_else(|| {
            // A session's name may look like a path; here it is one file name.
            let name = session.name.as_deref().unwrap_or(&session.id).replace('/', "-");
            Path::new(".").join(format!("{name}.cast"))
        }))
    }

    fn at(path: PathBuf) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        match File::create_new(&path) {
            Ok(file) => Ok(Self::File(CastFile { path, file, is_whole: false })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failure::new(format!(
                "{} already exists, and ptyd does not overwrite it; name another file with --output",
                path.display()
            ))),
            Err(error) => Err(Failure::new(format!("{}: {error}; name another file with --output", path.display()))),
        }
    }

    async fn write(self, client: &Client, session: &TerminalSession, format: u64) -> Result<(), Failure> {
        match self {
            Self::File(mut cast) => {
                fetch(client, session, format, &mut cast.file).await?;
                cast.is_whole = true;
                print::note(format_args!("ptyd: recorded in {}", cast.path.display()));
                Ok(())
            }
            Self::Stdout => {
                let mut spool = tempfile()?;
                fetch(client, session, format, &mut spool).await?;
                spool.rewind()?;
                let mut out = io::stdout().lock();
                io::copy(&mut spool, &mut out)?;
                Ok(out.flush()?)
            }
        }
    }
}

/// A file without a name.
fn tempfile() -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Fetches a whole recording into the file; each attempt starts over.
async fn fetch(client: &Client, session: &TerminalSession, format: u64, file: &mut File) -> Result<(), Failure> {
    let mut patience = Patience::default();
    loop {
        file.set_len(0)?;
        file.rewind()?;
        let mut buffer = BufWriter::new(&*file);
        let mut written = Ok(());
        let piece = |piece: &[u8]| {
            if written.is_ok() {
                written = buffer.write_all(piece);
            }
        };
        if let Err(error) = client.recording(&session.id, format, piece).await {
            drop(buffer.into_parts());
            patience.after(error).await?;
            continue;
        }
        written.and_then(|()| buffer.flush())?;
        return Ok(());
    }
}

impl Drop for CastFile {
    fn drop(&mut self) {
        if !self.is_whole {
            let _ = fs::remove_file(&self.path);
        }
    }
}
