//! `ptyd serve`: the server in this process, and the lines that say how to use it.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Args};
use ptyd_core::action::{Limit, Limits};
use ptyd_core::config::{
    AuditConfig, AuditMode, Config, IpNet, NODE_IN_URL, NetworkConfig, OperatorFiles, SessionsMax, TlsFiles,
};
use ptyd_core::serve_error::ServeError;
use ptyd_core::syslog_address::SyslogAddress;
use ptyd_core::web_origin::WebOrigin;
use rustix::net::AddressFamily;
use server::{Listening, Sockets, Stage};

use crate::daemon;
use crate::exit::Failure;
use crate::paths::{PathOptions, Paths};
use crate::server_log::{self, LOGS, LogOptions};
use crate::{policy, print, units};

/// The default address.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7893);

/// How long, and in how much disk space, ended sessions are kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Ended sessions")]
struct RetentionOptions {
    /// Keep an ended session for at most this long [default: 7d]
    #[arg(long, env = "PTYD_RETENTION_AGE", value_name = "TIME", value_parser = units::time)]
    retention_age: Option<Duration>,
    /// Remove the oldest ended sessions when all of them together take more disk space than this [default: 10GiB]
    #[arg(long, env = "PTYD_RETENTION_BYTES", value_name = "SIZE", value_parser = units::bytes)]
    retention_bytes: Option<u64>,
    /// Remove the oldest ended sessions while the free space is below this and below a twentieth of the disk; 0: never
    /// [default: 1GiB]
    #[arg(long, env = "PTYD_RETENTION_FREE", value_name = "SIZE", value_parser = units::bytes)]
    retention_free: Option<u64>,
}

/// The headings of the options in the help.
/// How long a thread for work that blocks stays without any.
const THREAD_STAYS: Duration = Duration::from_secs(20);

const HTTP: &str = "HTTP";
const MCP: &str = "MCP";
const SESSIONS: &str = "Sessions";

const AFTER_HELP: &str = "TIME is a number of seconds, or a number with a unit: 250ms, 90s, 30m, 2h, 7d, 1w. SIZE is a \
 number of bytes, or a number with a unit: 256MiB, 10GB.\nThe table [server] of the configuration file can set each option under its name with underscores, except \
    those of \"Server\". An option takes precedence over its variable, and both take precedence over the file.";

/// The options of `serve`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ServeOptions {
    #[command(flatten)]
    pub network: NetworkOptions,
    /// Serve pages where people type the passwords that programs ask for; with false, people can type them only with ptyd send
    /// --secret [default: true]
    #[arg(long, help_heading = HTTP, env = "PTYD_SECRET_PAGE", value_name = "BOOL", action = ArgAction::Set)]
    secret_page: Option<bool>,
    /// Accept this many HTTP requests per second from one principal; 0: no limit [default: 5000]
    #[arg(long, help_heading = HTTP, env = "PTYD_REQUESTS_PER_SECOND", value_name = "COUNT")]
    requests_per_second: Option<u32>,
    /// Accept this many requests without a valid token per second, at each listener; 0: no limit [default: 20]
    #[arg(long, help_heading = HTTP, env = "PTYD_FAILURES_PER_SECOND", value_name = "COUNT")]
    failures_per_second: Option<u32>,
    /// If a call has no timeout, return from the terminal tool after this long without new output, and after 50s at
    /// most; 0.1 to 86400 seconds [default: 30]
    #[arg(long, help_heading = MCP, env = "PTYD_SOFT_TIMEOUT", value_name = "TIME", value_parser = soft_timeout)]
    soft_timeout: Option<Duration>,
    /// If an MCP client supports tasks, return a task if its call still runs after this long; 0.1 to 86400 seconds [default:
    /// 10]
    #[arg(long, help_heading = MCP, env = "PTYD_TASK_GRACE", value_name = "TIME", value_parser = soft_timeout)]
    task_grace: Option<Duration>,
    /// If a task's call has no timeout, end the task after this long without output, and after 30m at most; 0.1 to
    /// 86400 seconds [default: 5m]
    #[arg(long, help_heading = MCP, env = "PTYD_TASK_QUIET", value_name = "TIME", value_parser = soft_timeout)]
    task_quiet: Option<Duration>,
    /// Allow this many live sessions [default: 4000]
    #[arg(long, help_heading = SESSIONS, env = "PTYD_SESSIONS_MAX", value_name = "COUNT")]
    sessions_max: Option<usize>,
    /// Allow this many live sessions of one owner [default: 4000; 1000 for a named token]
    #[arg(long, help_heading = SESSIONS, env = "PTYD_SESSIONS_PER_OWNER_MAX", value_name = "COUNT")]
    sessions_per_owner_max: Option<usize>,
    /// End a session after this long without input, command or output, unless its create request says otherwise; 0.1
    /// seconds to 366d [default: never; 24h for sessions of named tokens]
    #[arg(long, help_heading = SESSIONS, env = "PTYD_INACTIVITY_TIMEOUT", value_name = "TIME", value_parser = lifetime)]
    inactivity_timeout: Option<Duration>,
    /// End a session at this age, unless its create request says otherwise; 0.1 seconds to 366d [default: never]
    #[arg(long, help_heading = SESSIONS, env = "PTYD_MAX_AGE", value_name = "TIME", value_parser = lifetime)]
    max_age: Option<Duration>,
    /// Set a limit of each session, unless its create request sets another: cpuSeconds, memoryMb, processes,
    /// openFiles, outputMb, outputMbPerSecond or commandSeconds; repeat the option, or separate several with commas
    /// [default: no limits]
    #[arg(long = "limit", help_heading = SESSIONS, env = "PTYD_LIMITS", value_name = "NAME=NUMBER", value_delimiter = ',', value_parser = limit)]
    limits: Vec<(Limit, f64)>,
    /// Set the maximum of a limit, or of inactivityTimeout or maxAge, for every session; repeat the option, or
    /// separate several with commas [default: no maximum]
    #[arg(long = "limit-max", help_heading = SESSIONS, env = "PTYD_LIMITS_MAX", value_name = "NAME=NUMBER", value_delimiter = ',', value_parser = limit_max)]
    limits_max: Vec<(Limit, f64)>,
    /// Keep this much of each session's output, at least 1MiB, and free older output [default: 256MiB]
    #[arg(long, help_heading = SESSIONS, env = "PTYD_JOURNAL_BYTES_MAX", value_name = "SIZE", value_parser = journal_bytes)]
    journal_bytes: Option<u64>,
    /// Read the policies for commands and input from this file [default: policy.toml beside the configuration file]
    #[arg(long, help_heading = SESSIONS, env = "PTYD_POLICY", value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    retention: RetentionOptions,
    #[command(flatten)]
    audit: AuditOptions,
    #[command(flatten)]
    pub log: LogOptions,
    /// Serve in the background: return once the server answers
    #[arg(long, short = 'd', alias = "daemon", conflicts_with = "detached")]
    background: bool,
    /// Detach from the starting terminal (set by other commands)
    #[arg(long, hide = true)]
    detached: bool,
}

/// The options of the HTTP listener.
#[derive(Debug, Args)]
#[command(next_help_heading = HTTP)]
pub struct NetworkOptions {
    /// Listen for HTTP on this address; port 0 takes a free port. An address that other machines reach needs
    /// --public-url, and --tls-cert or --trusted-proxy [default: 127.0.0.1:7893]
    #[arg(long, alias = "bind", env = "PTYD_LISTEN", value_name = "ADDRESS", value_parser = address)]
    pub listen: Option<SocketAddr>,
    // Other servers take the two parts of the address.
    #[arg(long, hide = true, conflicts_with = "listen")]
    host: Option<IpAddr>,
    #[arg(long, hide = true, conflicts_with = "listen")]
    port: Option<u16>,
    /// Accept clients on other machines; they reach the server at this URL, such as https://terminals.example.com
    #[arg(long, env = "PTYD_PUBLIC_URL", value_name = "URL")]
    public_url: Option<WebOrigin>,
    /// Let web pages of this origin use the server; repeat the option, or separate several with commas
    #[arg(long = "allow-origin", env = "PTYD_ALLOW_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    allow_origin: Vec<WebOrigin>,
    /// Use the TLS certificate in this PEM file, which also has the intermediate certificates; a changed file is read
    /// again
    #[arg(long, env = "PTYD_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Use the private key of the certificate in this PEM file
    #[arg(long, env = "PTYD_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Accept plain HTTP from this proxy or network of proxies, such as 10.0.0.0/8, on an address that other machines
    /// reach; repeat the option, or separate several with commas
    #[arg(long = "trusted-proxy", env = "PTYD_TRUSTED_PROXY", value_name = "NETWORK", value_delimiter = ',', value_parser = network)]
    trusted_proxy: Vec<IpNet>,
    /// Give this server a number among those behind one load balancer, from 0 to 65535; every session's id contains it. auto:
    /// the number at the end of the host's name, as in a StatefulSet [default: 0]
    #[arg(long, env = "PTYD_NODE", value_name = "NUMBER|auto", value_parser = node)]
    node: Option<u16>,
    /// Share one list of sessions with the other nodes, in the Redis (or Valkey) at this URL: redis://HOST:PORT, or rediss:// with TLS.
    /// If the URL has a password, set PTYD_REDIS instead, because every user of the machine can read arguments
    #[arg(long, env = "PTYD_REDIS", value_name = "URL", hide_env_values = true)]
    redis: Option<String>,
    /// Share tokens with the other nodes through Redis. The file holds a key of at least 32 bytes, the same on all nodes
    #[arg(long, env = "PTYD_FLEET_KEY", value_name = "FILE", requires = "redis")]
    fleet_key: Option<PathBuf>,
    /// Forward requests with another node's id to that node, at this address with its number in place of {node}, such as
    /// http://ptyd-{node}.ptyd:7893 [default: the answer is 421 other_node]
    #[arg(long, env = "PTYD_PEERS", value_name = "URL", value_parser = peers)]
    peers: Option<String>,
}

impl NetworkOptions {
    /// The address, if the command line or the configuration names one.
    pub fn given(&self) -> Option<SocketAddr> {
        let parts = (self.host.is_some() || self.port.is_some())
            .then(|| SocketAddr::new(self.host.unwrap_or(LISTEN.ip()), self.port.unwrap_or(LISTEN.port())));
        parts.or(self.listen)
    }

    fn config(&self, listen: SocketAddr) -> io::Result<NetworkConfig> {
        let files = self.tls_cert.as_ref().zip(self.tls_key.as_ref());
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err(io::Error::other("give both tls_cert and tls_key, or neither"));
        }
        // The server may change its directory.
        let tls = files.map(|(certificate, key)| {
            let absolute = std::path::absolute::<&PathBuf>;
            io::Result::Ok(TlsFiles { certificate: absolute(certificate)?, key: absolute(key)? })
        });
        let fleet_key = self.fleet_key.as_ref().map(std::path::absolute).transpose()?;
        Ok(NetworkConfig {
            listen,
            public_url: self.public_url.clone(),
            allowed_origins: self.allow_origin.clone(),
            tls: tls.transpose()?,
            trusted_proxies: self.trusted_proxy.clone(),
            node: self.node.unwrap_or(0),
            redis: self.redis.clone(),
            fleet_key,
            peers: self.peers.clone(),
        })
    }
}

/// A node's number.
fn node(text: &str) -> Result<u16, String> {
    if text != "auto" {
        return text.parse().map_err(|_| "must be a number from 0 to 65535, or auto".to_owned());
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let number = name.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
    number.ok_or_else(|| format!("the host's name {name:?} does not end with a dash and a number; give the number"))
}

/// The addresses of all nodes.
fn peers(text: &str) -> Result<String, String> {
    let one: Result<WebOrigin, String> = text.replace(NODE_IN_URL, "0").parse();
    match one {
        Ok(_) if text.starts_with("http://") && text.contains(NODE_IN_URL) => Ok(text.trim_end_matches('/').to_owned()),
        Ok(_) => Err("must be like http://ptyd-{node}.ptyd:7893: http, with {node} for the node's number".to_owned()),
        Err(why) => Err(why),
    }
}

/// A network, or a single address.
fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let network = text.parse().ok().or_else(address);
    let network: IpNet = network.ok_or_else(|| "must be an address or a network, like 10.0.0.0/8".to_owned())?;
    match network.prefix_len() {
        0 => Err("would trust every address as a proxy; give the proxy's own address, such as 10.0.0.7".to_owned()),
        _ => Ok(network),
    }
}

/// The options of the audit log.
#[derive(Debug, Args)]
#[command(next_help_heading = LOGS)]
struct AuditOptions {
    /// Record every action in audit.jsonl: required (refuse actions that cannot be recorded), best-effort (perform them
    /// unrecorded) or off [default: required]
    #[arg(long, env = "PTYD_AUDIT", value_name = "MODE", value_parser = audit_mode)]
    audit: Option<AuditMode>,
    /// Begin the next file of the audit log at this size, at least 1MiB [default: 64MiB]
    #[arg(long, env = "PTYD_AUDIT_BYTES", value_name = "SIZE", value_parser = audit_bytes)]
    audit_bytes: Option<u64>,
    /// Keep this many full files of the audit log, at most 1000 [default: 8]
    #[arg(long, env = "PTYD_AUDIT_FILES", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(..=i64::from(ptyd_core::limits::AUDIT_FILES_MAX)))]
    audit_files: Option<u32>,
    /// In mode required, keep every full file until its newest line is this old, even more files than --audit-files; at most 366d
    /// [default: 24h]
    #[arg(long, env = "PTYD_AUDIT_KEEP", value_name = "TIME", value_parser = audit_keep)]
    audit_keep: Option<Duration>,
    /// In mode required, let each named token fill this much of the audit log per hour, at least 1MiB [default: 64MiB]
    #[arg(long, env = "PTYD_AUDIT_SHARE", value_name = "SIZE", value_parser = audit_share)]
    audit_share: Option<u64>,
    /// Also forward the audit log to this syslog server: unix:/dev/log, udp:HOST:PORT or tcp:HOST:PORT
    #[arg(long, env = "PTYD_AUDIT_SYSLOG", value_name = "ADDRESS")]
    audit_syslog: Option<SyslogAddress>,
}

impl AuditOptions {
    fn config(&self) -> AuditConfig {
        let defaults = AuditConfig::default();
        AuditConfig {
            mode: self.audit.unwrap_or(defaults.mode),
            bytes: self.audit_bytes.unwrap_or(defaults.bytes),
            files: self.audit_files.unwrap_or(defaults.files),
            keep: self.audit_keep.unwrap_or(defaults.keep),
            share: self.audit_share.unwrap_or(defaults.share),
            syslog: self.audit_syslog.clone(),
        }
    }
}

fn soft_timeout(text: &str) -> Result<Duration, String> {
    units::seconds(text, ptyd_core::limits::SOFT_TIMEOUT_MIN, ptyd_core::limits::TIMEOUT_MAX)
}

fn lifetime(text: &str) -> Result<Duration, String> {
    units::seconds(text, ptyd_core::limits::LIFETIME_MIN, ptyd_core::limits::LIFETIME_MAX)
}

/// The smallest useful journal.
const JOURNAL_BYTES_MIN: u64 = 1 << 20;

fn journal_bytes(text: &str) -> Result<u64, String> {
    bytes(text, JOURNAL_BYTES_MIN)
}

fn audit_mode(text: &str) -> Result<AuditMode, String> {
    let named = AuditMode::ALL.into_iter().find(|mode| mode.name() == text);
    named.ok_or_else(|| format!("must be {}", AuditMode::ALL.map(AuditMode::name).join(", ")))
}

fn audit_bytes(text: &str) -> Result<u64, String> {
    bytes(text, ptyd_core::limits::AUDIT_BYTES_MIN)
}

fn audit_share(text: &str) -> Result<u64, String> {
    bytes(text, ptyd_core::limits::AUDIT_SHARE_MIN)
}

fn bytes(text: &str, least: u64) -> Result<u64, String> {
    Some(units::bytes(text)?)
        .filter(|bytes| *bytes >= least)
        .ok_or_else(|| format!("must be at least {}", units::format_size(least)))
}

fn audit_keep(text: &str) -> Result<Duration, String> {
    units::seconds(text, Duration::ZERO, ptyd_core::limits::AUDIT_KEEP_MAX)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("must be an address and a port, like {LISTEN}"))
}

/// A limit without an option of its own; its value is checked here, so that the error names the option.
fn limit(text: &str) -> Result<(Limit, f64), String> {
    let has_no_option = |limit: &Limit| !matches!(limit, Limit::InactivityTimeout | Limit::MaxAge);
    one_of(&Limit::ALL.into_iter().filter(has_no_option).collect::<Vec<_>>(), text)
}

fn limit_max(text: &str) -> Result<(Limit, f64), String> {
    one_of(&Limit::ALL, text)
}

fn one_of(named: &[Limit], text: &str) -> Result<(Limit, f64), String> {
    let names: Vec<_> = named.iter().map(|limit| limit.name()).collect();
    let (name, value) = text.split_once('=').ok_or("must be NAME=NUMBER")?;
    let limit = named
        .iter()
        .copied()
        .find(|limit| limit.name() == name)
        .ok_or_else(|| format!("must be one of {}", names.join(", ")))?;
    let value = value.parse().map_err(|_| format!("{value} is not a number"))?;
    Limits::default().set(limit, value).map(|()| (limit, value))
}

/// Sets these limits in `there`.
fn limits(there: Limits, figures: &[(Limit, f64)]) -> Limits {
    figures.iter().fold(there, |mut limits, (limit, value)| {
        // Checked when it was parsed.
        let _ = limits.set(*limit, *value);
        limits
    })
}

impl ServeOptions {
    /// The configuration for a server with this address.
    pub fn config(&self, given: &PathOptions, paths: Paths, listen: SocketAddr) -> io::Result<Config> {
        let options = self;
        let defaults = Config::of(listen, paths.socket, paths.state_dir);
        let lifetime = Limits { inactivity: options.inactivity_timeout, max_age: options.max_age, ..Limits::default() };
        // The server may change its directory.
        let config_file = given.config_file().map(std::path::absolute).transpose()?;
        let policies = policy::file(given, options.policy.clone()).map(std::path::absolute).transpose()?;
        Ok(Config {
            files: OperatorFiles { config: config_file, policies },
            // Only from the environment: every user of the machine can read arguments.
            token: std::env::var("PTYD_TOKEN").ok().filter(|t| !t.is_empty()),
            journal_bytes_max: options.journal_bytes.unwrap_or(defaults.journal_bytes_max),
            soft_timeout: options.soft_timeout.unwrap_or(defaults.soft_timeout),
            task_grace: options.task_grace.unwrap_or(defaults.task_grace),
            task_quiet: options.task_quiet.unwrap_or(defaults.task_quiet),
            secret_page: options.secret_page.unwrap_or(defaults.secret_page),
            limits: limits(lifetime, &options.limits),
            limits_max: limits(Limits::default(), &options.limits_max),
            retention_age: options.retention.retention_age.unwrap_or(defaults.retention_age),
            retention_bytes: options.retention.retention_bytes.unwrap_or(defaults.retention_bytes),
            retention_free: options.retention.retention_free.unwrap_or(defaults.retention_free),
            slow_call: options.log.slow_call.unwrap_or(defaults.slow_call),
            requests_per_second: options.requests_per_second.unwrap_or(defaults.requests_per_second),
            failures_per_second: options.failures_per_second.unwrap_or(defaults.failures_per_second),
            sessions_max: SessionsMax {
                in_total: options.sessions_max.unwrap_or(defaults.sessions_max.in_total),
                per_owner: options.sessions_per_owner_max.unwrap_or(defaults.sessions_max.per_owner),
                per_token: options.sessions_per_owner_max.unwrap_or(defaults.sessions_max.per_token),
            },
            network: options.network.config(listen)?,
            audit: options.audit.config(),
            ..defaults
        })
    }
}

/// Serves until a signal stops it.
pub fn serve(given: &PathOptions, paths: Paths, options: &ServeOptions) -> Result<ExitCode, Failure> {
    if options.background {
        daemon::serve_in_background(&paths)?;
        print::note(format_args!(
            "ptyd: the server runs; `ptyd status` shows it, and {} is its log",
            paths.log().display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    sys::process::keep_descriptors_to_ourselves();
    let sockets = inherited_sockets()?;
    if options.detached {
        // Fails for a process group leader, which then has no terminal to leave.
        let _ = rustix::process::setsid();
    }
    let listen = match &sockets.tcp {
        Some(tcp) => tcp.local_addr()?,
        None => options.network.given().unwrap_or_else(|| default_listen(options.detached)),
    };
    let paths = match &sockets.unix {
        Some(unix) => {
            let nameless = || Failure::usage("the Unix socket that the service manager passes has no path");
            let socket = unix.local_addr()?.as_pathname().ok_or_else(nameless)?.to_owned();
            Paths { socket, ..paths }
        }
        None => paths,
    };
    if let Some(file) = options.policy.as_ref().filter(|file| !file.exists()) {
        return Err(Failure::usage(format!("{}: there is no such file", file.display())));
    }
    let log_file = paths.log();
    let config = options.config(given, paths, listen)?;
    let tell = |stage: Stage<'_>| match stage {
        Stage::Listens(listening) => {
            let text = greeting(listening, given).join("\n") + "\n";
            // Written at once, and a failure is ignored: the starting process only waits for the first byte.
            let _ = io::stdout().write_all(text.as_bytes());
            notify(&format!("READY=1\nSTATUS=listens on {} and {}", listening.url, listening.socket.display()));
            if let Some(time) = sys::service_manager::watchdog() {
                tokio::spawn(feed_watchdog(time));
            }
        }
        Stage::Stops => notify("STOPPING=1\nSTATUS=stopping; the sessions keep running"),
    };
    // Before there are other threads.
    sys::memory::share_heaps();
    // While a disk keeps one worker waiting, another one answers.
    let workers = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .thread_keep_alive(THREAD_STAYS)
        .build()?;
    let log_file = options.detached.then_some(log_file);
    let traces = server_log::set_up(&options.log, log_file, options.network.node.unwrap_or(0), runtime.handle())?;
    runtime.spawn(keep_a_thread());
    let result = runtime.block_on(server::serve(config, sockets, tell));
    if let Some(traces) = traces {
        traces.stop();
    }
    // The remaining tasks are waits or connections; neither may delay the exit.
    runtime.shutdown_background();
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error @ ServeError::Taken { .. }) if options.detached => {
            print::note(format_args!("ptyd: {error}"));
            Ok(ExitCode::from(daemon::TAKEN))
        }
        Err(error) => Err(Failure::new(error)),
    }
}

/// The sockets that a service manager has opened for this server: at most one of each kind.
fn inherited_sockets() -> Result<Sockets, Failure> {
    let mut sockets = Sockets::default();
    for socket in sys::service_manager::inherited_sockets() {
        let kind = rustix::net::getsockname(&socket).map_err(io::Error::from)?.address_family();
        let is_first = match kind {
            AddressFamily::UNIX => sockets.unix.replace(socket.into()).is_none(),
            AddressFamily::INET | AddressFamily::INET6 => sockets.tcp.replace(socket.into()).is_none(),
            _ => false,
        };
        if !is_first {
            return Err(Failure::usage(
                "the service manager may pass one TCP socket and one Unix socket, and no other",
            ));
        }
    }
    Ok(sockets)
}

/// Tells the service manager; without it, the server serves as well.
fn notify(state: &str) {
    if let Err(error) = sys::service_manager::notify(state) {
        print::note(format_args!("ptyd: cannot tell the service manager {state:?}: {error}"));
    }
}

/// Tells the service manager again and again that the server's threads run.
async fn feed_watchdog(time: Duration) {
    let mut ticks = tokio::time::interval(time / 2);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        notify("WATCHDOG=1");
    }
}

/// Keeps one thread for work that blocks. Where the kernel gives no further thread, tokio panics for a request that finds none,
/// and queues it behind the others if there is one.
async fn keep_a_thread() {
    loop {
        // It fails where there is neither a thread nor one to be had, and the next time there may be.
        let _ = tokio::spawn(async { tokio::task::spawn_blocking(|| ()).await }).await;
        let next = tokio::time::Instant::now() + THREAD_STAYS / 2;
        tokio::time::sleep_until(next).await;
    }
}

/// A server on demand is reached over its socket, so a used port must not prevent its start.
fn default_listen(detached: bool) -> SocketAddr {
    if detached && TcpListener::bind(LISTEN).is_err() { SocketAddr::new(LISTEN.ip(), 0) } else { LISTEN }
}

fn greeting(listening: &Listening, given: &PathOptions) -> [String; 4] {
    let program = std::env::current_exe().map_or_else(|_| "ptyd".to_owned(), |p| p.display().to_string());
    let (place, token) = match &listening.token_file {
        Some(file) => {
            (format!("token: in {}", file.display()), format!("$(cat {})", quoted(&file.display().to_string())))
        }
        None => ("token: as given in PTYD_TOKEN".to_owned(), "$PTYD_TOKEN".to_owned()),
    };
    let mut mcp = format!("claude mcp add ptyd -- {} mcp", quoted(&program));
    // The state directory leads to the socket.
    for (option, value) in [("--state-dir", &given.state_dir), ("--config", &given.config)] {
        if let Some(value) = value {
            mcp.push_str(&format!(" {option} {}", quoted(&value.display().to_string())));
        }
    }
    let url = &listening.url;
    let (listens, place, request) = if listening.is_local {
        (
            url.clone(),
            place,
            format!("-H \"Authorization: Bearer {token}\" -H 'Content-Type: application/json' -d '{{}}' {url}"),
        )
    } else {
        let socket = quoted(&listening.socket.display().to_string());
        let local = format!("--unix-socket {socket} -H 'Content-Type: application/json' -d '{{}}' http://localhost");
        let place = format!("clients elsewhere need a named token: {} token new NAME", quoted(&program));
        (format!("{} for {url}", listening.address), place, local)
    };
    [
        format!("ptyd listens on {listens} and {}", listening.socket.display()),
        place,
        format!("add it to Claude Code: {mcp}"),
        format!("try it: curl -s {request}/terminals"),
    ]
}

/// A word for a shell, quoted if necessary.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_would_change_them() {
        assert_eq!(["a-b/c", "a b", "", "it's", "$x"].map(quoted), ["a-b/c", "'a b'", "''", r"'it'\''s'", "'$x'"]);
    }

    #[test]
    // promise: limit-1
    fn a_limit_has_its_rest_name_and_is_checked_on_the_command_line() {
        assert_eq!(limit("cpuSeconds=2.5"), Ok((Limit::CpuSeconds, 2.5)));
        let names = "must be one of cpuSeconds, memoryMb, processes, openFiles, outputMb, \
                     outputMbPerSecond, commandSeconds";
        for (wrong, why) in [
            ("cpuSeconds", "must be NAME=NUMBER"),
            ("cpu=1", names),
            ("maxAge=1", names),
            ("memoryMb=much", "much is not a number"),
            ("memoryMb=1", "1 is not between 8 and 16777216"),
        ] {
            assert_eq!(limit(wrong), Err(why.to_owned()), "{wrong}");
        }
    }

    #[test]
    // promise: wait-1
    fn a_soft_time_out_has_bounds() {
        let seconds = |text: &str| soft_timeout(text).ok().map(|t| t.as_secs_f64());
        assert_eq!(["0.1", "2.5", "1d"].map(seconds), [Some(0.1), Some(2.5), Some(86_400.0)]);
        for refused in ["0", "0.09", "86401", "2d"] {
            assert_eq!(soft_timeout(refused).expect_err(refused), "must be from 0.1 to 86400 seconds");
        }
    }

    #[test]
    // promise: access-14
    fn a_trusted_proxy_is_an_address_or_a_network_but_never_every_address() {
        let shown = |text: &str| network(text).map(|network| network.to_string());
        assert_eq!(["10.0.0.7", "10.0.0.0/8"].map(shown), [Ok("10.0.0.7/32".to_owned()), Ok("10.0.0.0/8".to_owned())]);
        for (wrong, why) in [("0.0.0.0/0", "every address"), ("::/0", "every address"), ("proxy", "must be an address")]
        {
            assert!(shown(wrong).is_err_and(|said| said.contains(why)), "{wrong}");
        }
    }

    #[test]
    fn the_greeting_can_be_pasted() {
        let listening = Listening {
            url: "http://127.0.0.1:4711".to_owned(),
            address: SocketAddr::from(([127, 0, 0, 1], 4711)),
            is_local: true,
            socket: "/s/ptyd.sock".into(),
            token_file: Some("/s p/token".into()),
        };
        let given = PathOptions { state_dir: Some("/s p".into()), ..PathOptions::default() };
        let [url, token, mcp, curl] = greeting(&listening, &given);
        assert_eq!(url, "ptyd listens on http://127.0.0.1:4711 and /s/ptyd.sock");
        assert_eq!(token, "token: in /s p/token");
        assert!(mcp.ends_with(" mcp --state-dir '/s p'"), "{mcp}");
        assert_eq!(
            curl,
            "try it: curl -s -H \"Authorization: Bearer $(cat '/s p/token')\" -H 'Content-Type: application/json' -d '{}' http://127.0.0.1:4711/terminals"
        );
    }
}
