//! `ptyd doctor`: checks whether everything works here, with one line and a remedy for each check.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use api::{Boundary, CreateRequest, ExecuteRequest};
use clap::Args;
use client::Client;

use crate::doctor_checks::{self, Check, State};
use crate::exit::Failure;
use crate::paths::Paths;
use crate::print;

/// The options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs every check; fails if one fails.
pub async fn doctor(paths: &Paths, options: &DoctorOptions) -> Result<ExitCode, Failure> {
    let mut checks = doctor_checks::checks(paths);
    checks.push(session(paths).await);
    if options.json {
        print::json(&checks)?;
    } else {
        for check in &checks {
            let word = match check.state {
                State::Ok => "ok  ",
                State::Warn => "warn",
                State::Fail => "fail",
            };
            let fix = check.fix.as_ref().map(|f| format!(" → {}", terminal::quote::line(f))).unwrap_or_default();
            print::line(format_args!("{word}  {:8} {}{fix}", check.name, terminal::quote::line(&check.found)))?;
        }
    }
    let fails = checks.iter().any(|c| c.state == State::Fail);
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Checks a command in a real session, which uses all parts of ptyd.
async fn session(paths: &Paths) -> Check {
    const NAME: &str = "session";
    let running = Client::unix(&paths.socket).calling_itself("ptyd-doctor");
    let result = if running.is_ready().await {
        round_trip(&running).await
    } else {
        match Trial::start() {
            Ok(mut trial) => match trial.client().await {
                Ok(client) => round_trip(&client).await,
                Err(e) => Err(e),
            },
            Err(e) => Err(e.into()),
        }
    };
    match result {
        Ok((Boundary::Attested, took)) => {
            Check::ok(NAME, format!("a shell ran a command and attested its end in {} ms", took.as_millis()))
        }
        Ok((Boundary::Nonce | Boundary::Heuristic, _)) => {
            let fix = "check whether ~/.bashrc replaces PROMPT_COMMAND or starts another shell";
            Check::warn(NAME, "a command ran, but the shell did not attest its end", fix)
        }
        Err(failure) => {
            let fix = "repair what the message names; `PTYD_LOG=debug ptyd serve` logs more";
            Check::fail(NAME, failure.to_string(), fix)
        }
    }
}

async fn round_trip(client: &Client) -> Result<(Boundary, Duration), Failure> {
    /// An exit code that no failure of ours has.
    const CODE: i32 = 42;
    let session = client.create(&CreateRequest::default(), None).await?;
    let begun = Instant::now();
    let request =
        ExecuteRequest { command: format!("(exit {CODE})"), timeout: Some(10.0), ..ExecuteRequest::default() };
    let command = client.execute(&session.id, &request, None).await;
    let took = begun.elapsed();
    // The session was only for this check; whether it can be ended is not checked.
    let _ = client.terminate(&session.id, true, None).await;
    let command = command?;
    match command.exit_code {
        Some(CODE) => Ok((command.boundary, took)),
        Some(other) => Err(Failure::new(format!("`exit {CODE}` ended with {other}"))),
        None if command.boundary == Boundary::Heuristic => Ok((command.boundary, took)),
        None => Err(Failure::new("the command did not end within 10 s")),
    }
}

/// A temporary server for this check, in a directory of its own.
struct Trial {
    server: Child,
    dir: std::path::PathBuf,
}

impl Trial {
    fn start() -> std::io::Result<Self> {
        let dir = std::env::temp_dir().join(format!("ptyd-doctor-{}", std::process::id()));
        let server = Command::new(std::env::current_exe()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--state-dir"])
            .arg(&dir)
            .arg("--socket")
            .arg(dir.join("ptyd.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { server, dir })
    }

    /// The server's first line reports that it listens.
    async fn client(&mut self) -> Result<Client, Failure> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let client = Client::unix(self.dir.join("ptyd.sock"));
        let mut greeting = self.server.stdout.take().map(BufReader::new);
        let greeted = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            greeting.as_mut().map_or(Ok(0), |g| g.read_line(&mut line))
        });
        match tokio::time::timeout(PATIENCE, greeted).await {
            Ok(Ok(Ok(1..))) => Ok(client),
            _ => Err(Failure::new("a server was started and does not answer")),
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.server.id()) {
            let _ = sys::signal::send(pid, sys::signal::TERM);
        }
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
