//! The ptyd binary: the server, the stdio MCP shim, and the commands for people.
//!
//! stdout has only data; everything else goes to stderr. Commands other than `serve` use this user's server over its
//! Unix socket.

// These macros panic if the output cannot be written; the `print` module does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod approvals;
mod attach;
mod attached_terminal;
mod audit;
mod completion;
mod config;
mod daemon;
mod detach_key;
mod doctor;
mod doctor_checks;
mod drain;
mod events;
mod exit;
mod follow;
mod history;
mod input;
mod kill;
mod login;
mod logs;
mod ls;
mod open;
mod paths;
mod piped_stdin;
mod policy;
mod print;
mod record;
mod remove;
mod run;
mod screen;
mod search;
mod secret;
mod serve;
mod server_log;
mod service;
mod sessions;
mod setup;
mod shell_prefix;
mod shim;
mod skill;
mod status;
mod stop;
mod table;
mod token;
mod tty;
mod units;
mod usage_error;
mod wait;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use exit::Failure;
use paths::{PathOptions, Paths};

/// Real terminals for AI agents
#[derive(Debug, Parser)]
#[command(name = "ptyd", version, after_help = after_help())]
struct Cli {
    #[command(flatten)]
    paths: PathOptions,
    #[command(subcommand)]
    command: Command,
}

fn after_help() -> String {
    format!(
        "Exit codes:\n{}run, exec and record exit with the command's own code.\n\nVariables of a server that is started here: \
         PTYD_LOG is its log filter, such as debug; PTYD_TOKEN is its bearer token.\n\nExamples:\n  ptyd run 'make test'; \
         echo data | ptyd run cat\n  ptyd new --name work && ptyd attach work",
        exit::help()
    )
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve sessions over MCP and REST until a signal stops the server; sessions outlive it
    Serve(Box<serve::ServeOptions>),
    /// Speak MCP on stdin and stdout, for an MCP client to start
    Mcp(shim::Options),
    /// List sessions
    #[command(visible_aliases = ["ps", "list"])]
    Ls(ls::LsOptions),
    /// Start a session and print its id
    #[command(alias = "new-session")]
    New(sessions::NewOptions),
    /// Run a command, print its output and exit with its code
    ///
    /// The command reads its input from this terminal, or from the pipe or file on standard input; give it `</dev/null` in a
    /// loop that reads lines itself. C-\ C-\ detaches from a command that does not end.
    Run(run::RunOptions),
    /// Run a command in a session, print its output and exit with its code
    Exec(run::ExecOptions),
    /// Run a command of a host's own shell tool; without one, print the path of the prefix
    ShellPrefix(shell_prefix::ShellPrefixOptions),
    /// Record a session, or a command in a new session, as an asciicast
    Record(record::RecordOptions),
    /// Show a session in this terminal, and type into it
    #[command(visible_alias = "a", alias = "attach-session")]
    Attach(attach::AttachOptions),
    /// Send input to a session
    Send(input::SendOptions),
    /// Press keys in a session
    #[command(alias = "send-keys")]
    Keys(input::KeysOptions),
    /// Wait until a session's program ends or asks, or for text, a port or silence
    Wait(wait::WaitOptions),
    /// Print the screen of a session
    #[command(alias = "capture-pane")]
    Screen(screen::ScreenOptions),
    /// Print a session's output
    Logs(logs::LogsOptions),
    /// Print the commands of a session, with their exit codes and times
    History(history::HistoryOptions),
    /// Print the matching lines of a session's output, or of all sessions
    Search(search::SearchOptions),
    /// Print what happens in all sessions, as it happens
    #[command(alias = "watch")]
    Events(events::EventsOptions),
    /// Print a one-time link to the page of all sessions, and open it in a browser
    #[command(aliases = ["web", "ui", "dashboard"])]
    Open(open::OpenOptions),
    /// Show the server, its sessions, and what waits for a person
    #[command(alias = "info")]
    Status(status::StatusOptions),
    /// Show the resources that sessions use
    #[command(visible_alias = "stats")]
    Top(status::TopOptions),
    /// Print everything that the server knows about a session, as JSON
    Inspect(sessions::InspectOptions),
    /// Give a session another name
    Rename(sessions::RenameOptions),
    /// Change the size of a session's terminal
    Resize(sessions::ResizeOptions),
    /// End sessions
    #[command(visible_alias = "terminate", alias = "kill-session")]
    Kill(kill::KillOptions),
    /// Remove ended sessions and their output from the disk
    #[command(visible_alias = "delete")]
    Rm(remove::RmOptions),
    /// Remove all ended sessions, or old ones, and their output from the disk
    Prune(remove::PruneOptions),
    /// Refuse new sessions, and wait until the last one has ended
    Drain(drain::DrainOptions),
    /// Stop the server; its sessions keep running
    #[command(alias = "kill-server")]
    Stop(stop::StopOptions),
    /// Store a token for the server at a URL
    Login(login::LoginOptions),
    /// Remove the stored token of the server at a URL
    Logout(login::LoginOptions),
    /// Install the server as a service of systemd, or remove it
    Service(service::ServiceOptions),
    /// Make, list and revoke tokens for agents and programs that connect over HTTP
    Token(token::TokenOptions),
    /// Set, list and remove the secrets that profiles give to sessions
    Secret(secret::SecretOptions),
    /// List the requests that wait for a person's approval, and allow or deny them
    Approvals(approvals::ApprovalsOptions),
    /// Allow requests that wait for a person, once
    Approve(approvals::ApproveOptions),
    /// Deny requests that wait for a person
    Deny(approvals::DenyOptions),
    /// Print, filter and follow the audit log: who asked for what, and how it ended
    Audit(audit::AuditOptions),
    /// Check the policy file, and print the verdict on a command
    Policy(policy::PolicyOptions),
    /// Show the settings of the server and where each comes from
    Config(config::ConfigOptions),
    /// Check this machine and print a remedy for each problem
    Doctor(doctor::DoctorOptions),
    /// Add ptyd to the MCP clients of this user
    #[command(aliases = ["init", "install"])]
    Setup(setup::SetupOptions),
    /// Print the skill that teaches an agent this command line, or install it
    Skill(skill::SkillOptions),
    /// Print the whole command line as JSON, for an agent
    AgentContext,
    /// Print a script that completes this command line in bash, zsh, fish, elvish or PowerShell
    #[command(aliases = ["completions", "generate-completion", "gen-completions"])]
    Completion(completion::CompletionOptions),
    /// Print a manual page, for `man -l -`
    Man(completion::ManOptions),
    /// Print the version
    #[command(hide = true)]
    Version,
    /// Print a published interface description
    #[command(hide = true)]
    Schema {
        /// The interface
        #[arg(default_value = "tools")]
        of: Schema,
    },
}

impl Command {
    /// Whether the command works only on this machine.
    fn is_local(&self) -> bool {
        matches!(
            self,
            Self::Serve(_)
                | Self::Mcp(_)
                | Self::Stop(_)
                | Self::Service(_)
                | Self::Audit(_)
                | Self::Config(_)
                | Self::Doctor(_)
                | Self::Setup(_)
        )
    }
}

/// A published interface.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Schema {
    /// The MCP tools
    Tools,
    /// The MCP tools with their structured answers
    StructuredTools,
    /// The OpenAPI document of REST
    Openapi,
}

fn main() -> ExitCode {
    completion::answer(Cli::command);
    if std::env::args_os().len() <= 1 {
        print::lines(Cli::command().render_help());
        return ExitCode::from(exit::USAGE);
    }
    match config::read(Cli::command()).and_then(dispatch) {
        Ok(code) => code,
        Err(failure) => {
            print::note(format_args!("ptyd: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(matches: ArgMatches) -> Result<ExitCode, Failure> {
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let paths = Paths::resolve(&cli.paths)?;
    if paths.url.is_some() && cli.command.is_local() {
        let name = matches.subcommand_name().unwrap_or_default();
        return Err(Failure::usage(format!(
            "`ptyd {name}` works on this machine only; run it there, without --url and PTYD_URL"
        )));
    }
    let client = || login::client(&paths);
    match cli.command {
        Command::Serve(options) => serve::serve(&cli.paths, paths, &options),
        Command::Mcp(options) => Ok(shim::run(&options, &paths)),
        Command::Ls(options) => run_requests(ls::ls(&client()?, &options)),
        Command::New(options) => run_requests(sessions::new(&daemon::client(&paths)?, &options)),
        Command::Run(options) => {
            let its = daemon::client(&paths)?;
            // Without --detach, its session ends with it.
            let its = if options.stays() { its } else { its.calling_itself("ptyd-run") };
            run_requests(run::run(&its, &paths, &options))
        }
        Command::Exec(options) => run_requests(run::run(&client()?, &paths, &options.into_run())),
        Command::ShellPrefix(options) => run_requests(shell_prefix::shell_prefix(&paths, &options)),
        Command::Record(options) => run_requests(record::record(&paths, options)),
        Command::Attach(options) => run_requests(attach::attach(client()?, &options)),
        Command::Send(options) => run_requests(input::send(&client()?, &options)),
        Command::Keys(options) => run_requests(input::keys(&client()?, &options)),
        Command::Wait(options) => run_requests(wait::wait(&client()?, &options)),
        Command::Screen(options) => run_requests(screen::screen(&client()?, &options)),
        Command::History(options) => run_requests(history::history(&client()?, &options)),
        Command::Events(options) => run_requests(events::events(&client()?, &options)),
        Command::Open(options) => run_requests(open::open(&daemon::client(&paths)?, &options)),
        Command::Status(options) => run_requests(status::status(&client()?, &paths, &options)),
        Command::Top(options) => run_requests(status::top(&client()?, &options)),
        Command::Inspect(options) => run_requests(sessions::inspect(&client()?, &options)),
        Command::Rename(options) => run_requests(sessions::rename(&client()?, &options)),
        Command::Resize(options) => run_requests(sessions::resize(&client()?, &options)),
        Command::Logs(options) => run_requests(logs::logs(&client()?, &options)),
        Command::Search(options) => run_requests(search::search(&client()?, &options)),
        Command::Kill(options) => run_requests(kill::kill(&client()?, &options)),
        Command::Rm(options) => run_requests(remove::rm(&client()?, &options)),
        Command::Prune(options) => run_requests(remove::prune(&client()?, &options)),
        Command::Drain(options) => run_requests(drain::drain(&client()?, &options)),
        Command::Stop(options) => run_requests(stop::stop(&paths, &options)),
        Command::Login(options) => run_requests(login::login(&paths, &options)),
        Command::Logout(options) => login::logout(&paths, &options),
        Command::Service(options) => service::service(&paths, &options),
        Command::Token(options) if options.makes() => run_requests(token::token(&daemon::client(&paths)?, &options)),
        Command::Token(options) => run_requests(token::token(&client()?, &options)),
        Command::Secret(options) if options.sets() => run_requests(secret::secret(&daemon::client(&paths)?, &options)),
        Command::Secret(options) => run_requests(secret::secret(&client()?, &options)),
        Command::Approvals(options) => run_requests(approvals::approvals(&client()?, &options)),
        Command::Approve(options) => run_requests(approvals::approvals(&client()?, &options.into())),
        Command::Deny(options) => run_requests(approvals::approvals(&client()?, &options.into())),
        Command::Audit(options) => run_requests(audit::audit(&paths, &options)),
        Command::Policy(options) => policy::policy(&cli.paths, &options),
        Command::Config(options) => config::config(Cli::command(), &cli.paths, &paths, &options),
        Command::Doctor(options) => run_requests(doctor::doctor(&paths, &options)),
        Command::Setup(options) => setup::setup(&paths, &options),
        Command::Skill(options) => skill::skill(&options),
        Command::AgentContext => skill::agent_context(Cli::command()),
        Command::Completion(options) => completion::completion(&options),
        Command::Man(options) => completion::man(Cli::command(), &options),
        Command::Version => {
            print::line(format_args!("ptyd {}", env!("CARGO_PKG_VERSION")))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Schema { of } => {
            match of {
                Schema::Tools => print::line(format_args!("{:#}", server::mcp::tools_schema()))?,
                Schema::StructuredTools => print::line(format_args!("{:#}", server::mcp::structured_tools_schema()))?,
                Schema::Openapi => print::line(format_args!("{:#}", server::rest::document()))?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs one command's requests; one thread is enough for them.
fn run_requests(requests: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(requests);
    // The process does not wait for a server that is just being started.
    runtime.shutdown_background();
    result
}
