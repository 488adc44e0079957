//! `ptyd ls`: the sessions, those that wait for a person first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{
    Approval, ApprovalState, CommandExecution, CommandListQuery, Exit, Foreground, SessionStatus, TerminalSession,
};
use clap::Args;
use client::Client;
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use terminal::quote;

use crate::exit::Failure;
use crate::sessions::{self, AT_ONCE_MAX, WATCH_EVERY, age};
use crate::table::{Table, shortened};
use crate::{print, tty};

/// The options of `ls`.
#[derive(Debug, Args)]
pub struct LsOptions {
    /// Also list ended sessions, and those of ptyd's own commands, such as `ptyd run`
    #[arg(long, short)]
    all: bool,
    /// Print only the ids
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the list every 2 s; `ptyd top` also shows the resources that sessions use
    #[arg(long, short, conflicts_with_all = ["json", "quiet"])]
    watch: bool,
    // The list is always long.
    #[arg(short = 'l', hide = true)]
    _long: bool,
    // The only other format there is.
    #[arg(long, hide = true, value_name = "FORMAT", value_parser = ["json"], conflicts_with_all = ["quiet", "watch"])]
    format: Option<String>,
}

/// Lists sessions.
pub async fn ls(client: &Client, options: &LsOptions) -> Result<ExitCode, Failure> {
    loop {
        let list = list(client, options).await?;
        if options.watch && tty::is_shown() {
            print::data(format_args!("{}{list}", tty::CLEAR))?;
        } else {
            print::data(list)?;
        }
        if !options.watch {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep_until(tokio::time::Instant::now() + WATCH_EVERY).await;
    }
}

async fn list(client: &Client, options: &LsOptions) -> Result<String, Failure> {
    let mut all = sessions::known(client, options.all).await?;
    let known = all.len();
    // A session of another command ends with that command, which is where somebody waits for it.
    all.retain(|session| options.all || !is_of_a_command(session));
    let hidden = known - all.len();
    if options.json || options.format.is_some() {
        return print::json_text(&all);
    }
    if options.quiet {
        return Ok(all.iter().map(|session| format!("{}\n", session.id)).collect());
    }
    let are = if hidden == 1 { "session of another command is" } else { "sessions of other commands are" };
    if hidden > 0 {
        print::note(format_args!("ptyd: {hidden} {are} not listed; `ptyd ls --all` lists everything"));
    }
    if all.is_empty() {
        let others = if options.all || hidden > 0 { "" } else { "; `ptyd ls --all` shows ended ones" };
        print::note(format_args!("ptyd: no sessions; `ptyd new` starts one{others}"));
        return Ok(String::new());
    }
    let mut rows = looked_at(client, all).await?;
    rows.sort_by_key(Row::order);
    for Row { session, .. } in &rows {
        if let Some(trouble) = &session.trouble {
            print::note(format_args!("ptyd: {}: {trouble}", session.id));
        }
    }
    let home = if client.is_elsewhere() { None } else { std::env::var_os("HOME").map(PathBuf::from) };
    Ok(shown(&rows, Timestamp::now(), home.as_deref(), tty::size().map(|size| size.cols.into()), tty::has_colours()))
}

/// Whether it is the own session of a command such as `ptyd run`, by that command's word.
pub fn is_of_a_command(session: &TerminalSession) -> bool {
    let its = session.client_name.as_deref().and_then(|name| name.strip_prefix("ptyd-"));
    session.name.is_none() && its.is_some_and(|command| ["run", "doctor", "record"].contains(&command))
}

/// A session, and what is asked for it.
struct Row {
    session: TerminalSession,
    /// The program or command that runs, or ran last.
    runs: Option<String>,
    /// The command that runs, or ran last, if ptyd ran it.
    command: Option<CommandExecution>,
    /// The request of it that waits for a person.
    asks: Option<Approval>,
}

/// Asks for what the sessions run, and for what waits for a person.
async fn looked_at(client: &Client, all: Vec<TerminalSession>) -> Result<Vec<Row>, Failure> {
    let pending = client.approvals().await?.approvals.into_iter().filter(|one| one.state == ApprovalState::Pending);
    let mut pending: BTreeMap<String, Approval> = pending.map(|one| (one.session_id.clone(), one)).collect();
    let asked: Vec<_> = all.into_iter().map(|session| (pending.remove(&session.id), session)).collect();
    let rows = stream::iter(asked).map(async |(asks, session)| {
        // Nobody answers for an unreachable one, and one that is not found has ended meanwhile.
        let is_reachable = !session.unreachable;
        let command = if is_reachable { command(client, &session).await } else { None };
        let typed = match &command {
            None if is_reachable && session.foreground != Foreground::Idle => program(client, &session).await,
            _ => None,
        };
        let runs = command.as_ref().map(|command| command.command.clone()).or(typed);
        Row { runs, session, command, asks }
    });
    Ok(rows.buffered(AT_ONCE_MAX).collect().await)
}

/// The command that runs; of an ended session, the last one.
async fn command(client: &Client, session: &TerminalSession) -> Option<CommandExecution> {
    if let Some(id) = session.current_command.as_deref() {
        return client.command(&session.id, id, 0).await.ok();
    }
    if session.status != SessionStatus::Terminated {
        return None;
    }
    let page = async |offset| {
        let query = CommandListQuery { limit: Some(1), offset: Some(offset) };
        client.commands_as(&session.id, &query).await.ok()
    };
    let first = page(0).await?;
    let last = if first.total > 1 { page(first.total as u64 - 1).await? } else { first };
    last.commands.into_iter().next()
}

/// The program in the foreground, which a person or `ptyd send` has started by typing.
async fn program(client: &Client, session: &TerminalSession) -> Option<String> {
    let processes = client.processes(&session.id).await.ok()?.processes;
    let mut started = processes.into_iter().filter(|it| it.is_foreground && Some(it.pid) != session.pid);
    started.next().map(|it| if it.command_line.is_empty() { it.name } else { it.command_line })
}

/// The part of the list that a session belongs to, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Waits,
    Works,
    Idle,
    Ended,
}

impl Row {
    fn stage(&self) -> Stage {
        use Foreground::{Fullscreen, Idle, InputWanted, PasswordWanted, Running, Stopped};
        match (self.session.status, self.session.foreground) {
            (SessionStatus::Terminated, _) => Stage::Ended,
            _ if self.asks.is_some() || self.session.trouble.is_some() => Stage::Waits,
            (SessionStatus::Creating, _) => Stage::Works,
            (_, InputWanted | PasswordWanted | Stopped) => Stage::Waits,
            (_, Running | Fullscreen) => Stage::Works,
            (_, Idle) => Stage::Idle,
        }
    }

    /// Those that wait longest come first, and those that ended last.
    fn order(&self) -> (Stage, i64) {
        let since = self.since().map_or(0, Timestamp::as_microsecond);
        (self.stage(), if self.stage() == Stage::Ended { -since } else { since })
    }

    /// Since when it is as its state says.
    fn since(&self) -> Option<Timestamp> {
        let Self { session, command, asks, .. } = self;
        let time = match (self.stage(), asks, command, &session.exit) {
            (Stage::Ended, .., Some(exit)) => &exit.at,
            (Stage::Waits, Some(asks), ..) => &asks.asked_at,
            (Stage::Works, _, Some(command), _) => &command.started_at,
            _ => &session.last_activity,
        };
        time.parse().ok()
    }

    fn state(&self) -> String {
        let Self { session, asks, command, .. } = self;
        if session.status == SessionStatus::Terminated {
            return ended(session.exit.as_ref(), command.as_ref());
        }
        let state = match session.foreground {
            _ if session.unreachable => "unreachable",
            _ if session.trouble.is_some() => "in trouble",
            _ if asks.is_some() => "needs approval",
            _ if session.status == SessionStatus::Creating => "starting",
            foreground => sessions::state(foreground),
        };
        match &session.driver {
            Some(driver) => format!("{state}, {} drives", quote::line(&driver.name)),
            None => state.to_owned(),
        }
    }
}

/// How a session has ended: with the code of its last command, or else of its shell.
fn ended(exit: Option<&Exit>, command: Option<&CommandExecution>) -> String {
    let code = command.and_then(|command| command.exit_code).or_else(|| exit.and_then(|exit| exit.exit_code));
    match (code, exit.and_then(|exit| exit.signal.as_ref())) {
        (Some(code), _) => format!("ended, code {code}"),
        (None, Some(signal)) => format!("ended by {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The visible columns of a command.
const COMMAND_COLS: usize = 60;
/// The column with the name, where a session without one has its id; the one with the state; and the one with the folder.
const HEAD: [&str; 8] = ["NAME", "OWNER", "CLIENT", "STATE", "RUNS", "SINCE", "ATTACHED", "FOLDER"];
const OWNER: usize = 1;

fn shown(rows: &[Row], now: Timestamp, home: Option<&Path>, cols: Option<usize>, has_colours: bool) -> String {
    let cells = |row: &Row| {
        let Row { session, asks, .. } = row;
        let or_dash = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
        let asked = asks.as_ref().and_then(|asks| asks.command.clone().or_else(|| asks.input.clone()));
        let runs = asked.or_else(|| row.runs.clone());
        vec![
            session.name.clone().unwrap_or_else(|| session.id.clone()),
            session.owner.clone(),
            or_dash(session.client_name.clone()),
            row.state(),
            or_dash(runs.map(|runs| shortened(&quote::line(&runs), COMMAND_COLS))),
            or_dash(row.since().map(|since| age(now.duration_since(since)))),
            or_dash(Some(session.viewers.join(", "))),
            beneath_home(&session.cwd, home),
        ]
    };
    let mut table: Vec<Vec<String>> =
        std::iter::once(HEAD.map(str::to_owned).to_vec()).chain(rows.iter().map(cells)).collect();
    if !rows.windows(2).any(|pair| pair[0].session.owner != pair[1].session.owner) {
        table.iter_mut().for_each(|row| drop(row.remove(OWNER)));
    }
    let folder = table[0].len() - 1;
    let mut table = Table::of(table);
    if let Some(cols) = cols {
        table.fit(cols, &[folder]);
    }
    let stages = std::iter::once(None).chain(rows.iter().map(|row| Some(row.stage())));
    let line = |(line, stage)| match stage {
        Some(Stage::Waits) if has_colours => format!("\x1b[1;33m{line}\x1b[0m\n"),
        _ => format!("{line}\n"),
    };
    table.lines().zip(stages).map(line).collect()
}

fn beneath_home(folder: &str, home: Option<&Path>) -> String {
    match home.filter(|home| *home != Path::new("/")).and_then(|home| Path::new(folder).strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.to_owned(),
    }
}
