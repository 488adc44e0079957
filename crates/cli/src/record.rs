//! `ptyd record`: an asciicast in a file, of a session that is there or of a command in a session of its own.
//!
//! The server makes the recording from the journal, so there is nothing here that listens while a program runs, and a
//! session can be recorded after it has ended.

use std::fs::{self, File};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use api::TerminalSession;
use clap::Args;
use client::Client;

use crate::exit::Failure;
use crate::follow::Patience;
use crate::paths::Paths;
use crate::run::{self, RunOptions};
use crate::say;
use crate::sessions::{self, StartOptions};

/// The options of `record`.
#[derive(Debug, Args)]
#[command(override_usage = "ptyd record [OPTIONS] SESSION\n       ptyd record [OPTIONS] -- COMMAND...")]
pub struct RecordOptions {
    /// Of this session, which goes on or has ended: an id, a unique part of its beginning, or a name
    #[arg(required_unless_present = "command", conflicts_with_all = ["command", "name", "size", "cwd", "shell", "env", "timeout"])]
    session: Option<String>,
    /// The file, which must not be there yet [default: the name or the id, and .cast]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The version of the format
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u64).range(2..=3))]
    format: u64,
    /// The recording's title
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    start: StartOptions,
    /// Give up after this long, with exit code 124 and a recording of what there is
    #[arg(long, value_name = "SECONDS", value_parser = run::seconds)]
    timeout: Option<Duration>,
    /// The command, which is run as by `ptyd run`
    #[arg(last = true)]
    command: Vec<String>,
}

/// Records it; the command's exit code is our own.
pub async fn record(paths: &Paths, options: RecordOptions) -> Result<ExitCode, Failure> {
    let RecordOptions { session, output, format, name, start, timeout, command } = options;
    if let Some(given) = session {
        let client = Client::unix(&paths.socket);
        let session = sessions::find(&client, &given).await?;
        Cast::begin(output, &session)?.write(&client, &session, format).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let client = crate::started(paths)?;
    let request = start.request(name)?;
    // Whether it can be written is better known before a long command than after it.
    let mut cast = output.map(Cast::at).transpose()?;
    let options = RunOptions::alone(command, start, timeout);
    let and = async |session: &TerminalSession| {
        let cast = cast.take().map_or_else(|| Cast::begin(None, session), Ok)?;
        cast.write(&client, session, format).await
    };
    run::run_and(&client, paths, &options, &request, and).await
}

/// The file. It holds a whole recording when this is dropped, or it is not there.
struct Cast {
    path: PathBuf,
    file: File,
    is_whole: bool,
}

impl Cast {
    fn begin(output: Option<PathBuf>, session: &TerminalSession) -> Result<Self, Failure> {
        Self::at(output.unwrap_or_else(|| {
            // A name may be a path; here it names a file.
            let name = session.name.as_deref().unwrap_or(&session.id).replace('/', "-");
            Path::new(".").join(format!("{name}.cast"))
        }))
    }

    fn at(path: PathBuf) -> Result<Self, Failure> {
        match File::create_new(&path) {
            Ok(file) => Ok(Self { path, file, is_whole: false }),
            Err(error) => Err(Failure::new(format!("{}: {error}; choose with --output", path.display()))),
        }
    }

    async fn write(mut self, client: &Client, session: &TerminalSession, format: u64) -> Result<(), Failure> {
        let mut patience = Patience::default();
        loop {
            // Each attempt begins anew.
            self.file.set_len(0)?;
            self.file.rewind()?;
            let mut file = BufWriter::new(&self.file);
            let mut written = Ok(());
            let piece = |piece: &[u8]| {
                if written.is_ok() {
                    written = file.write_all(piece);
                }
            };
            if let Err(error) = client.recording(&session.id, format, piece).await {
                drop(file.into_parts());
                patience.after(error).await?;
                continue;
            }
            written.and_then(|()| file.flush())?;
            drop(file);
            self.is_whole = true;
            say::note(format_args!("ptyd: recorded in {}", self.path.display()));
            return Ok(());
        }
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        if !self.is_whole {
            let _ = fs::remove_file(&self.path);
        }
    }
}
