//! `ptyd status` and `ptyd top`: the server and its sessions at a glance.

use std::process::ExitCode;
use std::time::Duration;

use api::{ApprovalState, Foreground, SessionStatus, TerminalSession};
use clap::Args;
use client::Client;
use serde_json::json;
use terminal::quote;

use crate::exit::Failure;
use crate::paths::Paths;
use crate::sessions::{self, WATCH_EVERY};
use crate::table::fitted;
use crate::{print, tty, units};

/// The options of `status`.
#[derive(Debug, Args)]
pub struct StatusOptions {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints where the server is and what its sessions do, those that wait for a person first.
pub async fn status(client: &Client, paths: &Paths, options: &StatusOptions) -> Result<ExitCode, Failure> {
    let all = sessions::known(client, false).await?;
    let approvals = client.approvals().await?.approvals;
    let waiting: Vec<_> = approvals.iter().filter(|one| one.state == ApprovalState::Pending).collect();
    let asks = |session: &&TerminalSession| {
        matches!(session.foreground, Foreground::InputWanted | Foreground::PasswordWanted | Foreground::Stopped)
    };
    let count = |is: &dyn Fn(&TerminalSession) -> bool| all.iter().filter(|session| is(session)).count();
    let idle = count(&|session| session.foreground == Foreground::Idle && session.status == SessionStatus::Running);
    let asking: Vec<_> = all.iter().filter(asks).collect();
    // A server writes its process's id into its lock file.
    let lock = paths.url.is_none().then(|| paths.state_dir.join("lock"));
    let pid = lock.and_then(|lock| std::fs::read_to_string(lock).ok()?.trim().parse::<u32>().ok());
    if options.json {
        print::json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": pid,
            "url": paths.url,
            "socket": paths.socket,
            "stateDir": paths.state_dir,
            "sessions": all.len(),
            "idle": idle,
            "waiting": asking.iter().map(|session| &session.id).collect::<Vec<_>>(),
            "approvals": waiting.iter().map(|one| &one.id).collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let process = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    let place = paths.url.clone().unwrap_or_else(|| paths.socket.display().to_string());
    print::line(format_args!("server    runs at {}{process}", quote::line(&place)))?;
    let running = all.len() - idle - asking.len();
    print::line(format_args!(
        "sessions  {}: {idle} idle, {running} at work, {} waiting for a person",
        all.len(),
        asking.len()
    ))?;
    for session in asking {
        let name = session.name.as_deref().unwrap_or(&session.id);
        print::line(format_args!("          {}: {}", quote::line(name), sessions::state(session.foreground)))?;
    }
    for one in waiting {
        let session = one.session_name.as_deref().unwrap_or(&one.session_id);
        print::line(format_args!("approval  {} of {}: ptyd approve {}", one.id, quote::line(session), one.id))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The options of `top`.
#[derive(Debug, Args)]
pub struct TopOptions {
    /// Refresh the list at this interval; 0: print it once [default: 2s on a terminal, else 0]
    #[arg(long, short = 'd', value_name = "TIME", value_parser = units::time)]
    interval: Option<Duration>,
}

/// Prints what the sessions use, those that use most first; in a terminal again and again.
pub async fn top(client: &Client, options: &TopOptions) -> Result<ExitCode, Failure> {
    let default = if tty::is_shown() { WATCH_EVERY } else { Duration::ZERO };
    let interval = options.interval.unwrap_or(default);
    loop {
        let mut all = sessions::known(client, false).await?;
        all.sort_by(|a, b| b.resource_usage.cpu.total_cmp(&a.resource_usage.cpu));
        let head = ["ID", "NAME", "CPU %", "MEMORY MiB", "PROCESSES", "ACTIVITY", "CWD"].map(str::to_owned).to_vec();
        let rows = all.iter().map(|session| {
            let usage = session.resource_usage;
            vec![
                session.id.clone(),
                session.name.clone().unwrap_or_else(|| "-".to_owned()),
                format!("{:.1}", usage.cpu),
                format!("{:.1}", usage.memory),
                usage.processes.to_string(),
                sessions::state(session.foreground).to_owned(),
                session.cwd.clone(),
            ]
        });
        let list = fitted(std::iter::once(head).chain(rows).collect());
        if interval.is_zero() {
            print::data(list)?;
            return Ok(ExitCode::SUCCESS);
        }
        let clear = if tty::is_shown() { tty::CLEAR } else { "" };
        print::data(format_args!("{clear}{list}"))?;
        tokio::time::sleep_until(tokio::time::Instant::now() + interval).await;
    }
}
