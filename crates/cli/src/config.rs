//! The configuration file on the command line: it provides defaults for the options of `serve`, and `ptyd config show`
//! prints the effective settings with their origins.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use ptyd_core::action::{Limit, Limits};
use ptyd_core::config::Config;
use ptyd_core::config_file::ConfigFile;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::paths::{PathOptions, Paths};
use crate::serve::{LISTEN, ServeOptions};
use crate::server_log::LogOptions;
use crate::table::table;
use crate::{print, shell_prefix, usage_error};

/// The options of `config`.
#[derive(Debug, Args)]
pub struct ConfigOptions {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every setting that a server started here would have, and where it comes from
    #[command(visible_aliases = ["list", "ls"])]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Options that are set only on the server's command line.
const NOT_IN_THE_FILE: [&str; 4] = ["detached", "background", "host", "port"];
/// Options of every command: a client must find the server without reading its file.
const OF_EVERY_COMMAND: [&str; 5] = ["state_dir", "socket", "url", "config", "runtime_dir"];

/// Parses the command line; for `serve`, the configuration file comes after the command line and the environment.
pub fn read(command: Command) -> Result<ArgMatches, Failure> {
    let command = without_empty_variables(command);
    let matches = command.clone().try_get_matches_from(shell_prefix::arguments());
    let matches = matches.unwrap_or_else(|e| usage_error::without_far_tips(e).exit());
    if matches.subcommand_name() != Some("serve") {
        return Ok(matches);
    }
    let given = PathOptions::from_arg_matches(&matches).map_err(Failure::usage)?;
    Ok(with_file(command, &given)?.0.get_matches())
}

/// The command with the file's settings as the defaults of its options, and the file.
fn with_file(command: Command, given: &PathOptions) -> Result<(Command, ConfigFile), Failure> {
    let Some(path) = given.config_file() else { return Ok((command, ConfigFile::default())) };
    if given.config.is_some() && !path.exists() {
        return Err(Failure::usage(format!("{}: there is no such file", path.display())));
    }
    let file = ConfigFile::read(&path).map_err(Failure::usage)?;
    let mut serve = command.find_subcommand("serve").cloned().unwrap_or_default();
    let known: Vec<String> = settings(&serve).into_iter().map(|(name, _)| name).collect();
    for (name, words) in file.settings() {
        let line = file.line(&name).unwrap_or(1);
        let wrong = |what: String| Failure::usage(format!("{}, line {line}: server.{name}: {what}", path.display()));
        if !known.contains(&name) {
            let meant = resembling(&serve, &name).map_or(".".to_owned(), |like| format!("; did you mean {like}?"));
            return Err(wrong(format!("is not a setting{meant} The settings are {}", known.join(", "))));
        }
        // Parsed alone, so that the error does not mention a command line that was not given.
        let id = name.clone();
        let alone = serve.clone().mut_arg(&id, |arg| arg.default_values(words.clone()).env(None::<&str>));
        alone.try_get_matches_from(["serve"]).map_err(|e| wrong(first_line(&e.to_string())))?;
        serve = serve.mut_arg(&id, |arg| arg.default_values(words));
    }
    Ok((command.mut_subcommand("serve", |_| serve), file))
}

/// The setting with a similar name, as clap suggests options.
fn resembling(serve: &Command, name: &str) -> Option<String> {
    let option = format!("--{}", name.replace('_', "-"));
    let error = serve.clone().try_get_matches_from(["serve", &option]).err()?;
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(like) => Some(like.trim_start_matches('-').replace('-', "_")),
        _ => None,
    }
}

/// Treats empty environment variables as unset, as `docker run -e NAME=` means it.
fn without_empty_variables(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_env().map(std::env::var_os) {
        Some(Some(value)) if value.is_empty() => arg.env(None::<&str>),
        _ => arg,
    });
    command.mut_subcommands(without_empty_variables)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The names of the settings in the file, with the environment variables that take precedence.
fn settings(serve: &Command) -> Vec<(String, Option<String>)> {
    let is_setting = |name: &str| !NOT_IN_THE_FILE.contains(&name) && !OF_EVERY_COMMAND.contains(&name);
    serve
        .get_arguments()
        .filter(|arg| arg.get_long().is_some_and(|long| !matches!(long, "help" | "version")))
        .map(|arg| (arg.get_id().to_string(), arg.get_env().map(|e| e.to_string_lossy().into_owned())))
        .filter(|(name, _)| is_setting(name))
        .collect()
}

/// `ptyd config show`.
pub fn config(
    command: Command,
    given: &PathOptions,
    paths: &Paths,
    options: &ConfigOptions,
) -> Result<ExitCode, Failure> {
    let ConfigCommand::Show { json } = &options.command;
    let path = given.config_file();
    let (command, file) = with_file(without_empty_variables(command), given)?;
    let variables = settings(command.find_subcommand("serve").unwrap_or(&command));
    let matches = command.try_get_matches_from(["ptyd", "serve"]).map_err(Failure::usage)?;
    let (_, serve) = matches.subcommand().ok_or_else(|| Failure::usage("there is no serve"))?;
    let options = ServeOptions::from_arg_matches(serve).map_err(Failure::usage)?;
    let config = options.config(given, paths.clone(), options.network.listen.unwrap_or(LISTEN))?;
    let values = values(&config, &options.log);
    let in_file = path.as_ref().map_or_else(|| "file".to_owned(), |path| path.display().to_string());
    let mut rows: Vec<(String, Value, String)> = Vec::new();
    for (name, variable) in variables {
        let source = match serve.value_source(&name) {
            Some(ValueSource::EnvVariable) => format!("environment ({})", variable.unwrap_or_default()),
            Some(ValueSource::CommandLine) => "command line".to_owned(),
            Some(ValueSource::DefaultValue) if file.settings().contains_key(&name) => in_file.clone(),
            _ => "default".to_owned(),
        };
        rows.push((name.clone(), values.get(name.as_str()).cloned().unwrap_or_default(), source));
    }
    let of = |option: bool, variable: &str| match (option, std::env::var_os(variable)) {
        (true, Some(_)) => format!("command line or environment ({variable})"),
        (true, None) => "command line".to_owned(),
        (false, _) => "default".to_owned(),
    };
    rows.push(("state_dir".to_owned(), json!(paths.state_dir), of(given.state_dir.is_some(), "PTYD_STATE_DIR")));
    let is_placed = given.socket.is_some() || given.runtime_dir.is_some();
    rows.push(("socket".to_owned(), json!(paths.socket), of(is_placed, "PTYD_RUNTIME_DIR")));
    // A secret: only its presence is shown.
    let token = if config.token.is_some() { ("***", "environment (PTYD_TOKEN)") } else { ("made and kept", "default") };
    rows.push(("token".to_owned(), json!(token.0), token.1.to_owned()));
    let profiles: Vec<&String> = file.profiles.keys().collect();
    rows.push((
        "profiles".to_owned(),
        json!(profiles),
        if profiles.is_empty() { "default".to_owned() } else { in_file },
    ));
    if *json {
        let rows = rows.into_iter().map(|(name, value, source)| (name, json!({ "value": value, "source": source })));
        print::json(&Value::Object(rows.collect()))?;
    } else {
        let rows =
            rows.into_iter().map(|(name, value, source)| vec![format!("{name} = {value}"), format!("# {source}")]);
        print::data(table(rows.collect()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The effective values, by the name of the setting.
fn values(config: &Config, log: &LogOptions) -> BTreeMap<&'static str, Value> {
    let figures = |limits: &Limits, named: &dyn Fn(&Limit) -> bool| {
        let named = Limit::ALL.into_iter().filter(named);
        let figures = named.filter_map(|limit| Some((limit.name().to_owned(), json!(limits.value(limit)?))));
        Value::Object(figures.collect())
    };
    let has_no_setting = |limit: &Limit| !matches!(limit, Limit::InactivityTimeout | Limit::MaxAge);
    let never = |limit| config.limits.value(limit).map_or_else(|| json!("never"), |seconds| json!(seconds));
    let network = &config.network;
    BTreeMap::from([
        ("listen", json!(network.listen)),
        ("public_url", json!(network.public_url.as_ref().map(ToString::to_string))),
        ("allow_origin", json!(network.allowed_origins.iter().map(ToString::to_string).collect::<Vec<_>>())),
        ("tls_cert", json!(network.tls.as_ref().map(|files| &files.certificate))),
        ("tls_key", json!(network.tls.as_ref().map(|files| &files.key))),
        ("trusted_proxy", json!(network.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>())),
        ("node", json!(network.node)),
        ("redis", json!(network.redis.as_deref().map(without_password))),
        ("fleet_key", json!(network.fleet_key)),
        ("peers", json!(network.peers)),
        ("journal_bytes", json!(config.journal_bytes_max)),
        ("soft_timeout", json!(config.soft_timeout.as_secs_f64())),
        ("task_grace", json!(config.task_grace.as_secs_f64())),
        ("task_quiet", json!(config.task_quiet.as_secs_f64())),
        ("secret_page", json!(config.secret_page)),
        ("inactivity_timeout", never(Limit::InactivityTimeout)),
        ("max_age", never(Limit::MaxAge)),
        ("limits", figures(&config.limits, &has_no_setting)),
        ("limits_max", figures(&config.limits_max, &|_| true)),
        ("retention_age", json!(config.retention_age.as_secs())),
        ("retention_bytes", json!(config.retention_bytes)),
        ("retention_free", json!(config.retention_free)),
        ("log_format", json!(log.log_format)),
        ("otlp_endpoint", json!(log.otlp_endpoint)),
        ("slow_call", json!(config.slow_call.as_secs_f64())),
        ("requests_per_second", json!(config.requests_per_second)),
        ("failures_per_second", json!(config.failures_per_second)),
        ("sessions_max", json!(config.sessions_max.in_total)),
        ("sessions_per_owner_max", json!(config.sessions_max.per_owner)),
        ("audit", json!(config.audit.mode.name())),
        ("audit_bytes", json!(config.audit.bytes)),
        ("audit_files", json!(config.audit.files)),
        ("audit_keep", json!(config.audit.keep.as_secs())),
        ("audit_share", json!(config.audit.share)),
        ("audit_syslog", json!(config.audit.syslog.as_ref().map(ToString::to_string))),
        ("policy", json!(config.files.policies)),
    ])
}

/// A URL without its user and password.
fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, place)) => format!("{scheme}://***@{place}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    // promise: profile-4
    fn every_setting_of_the_server_is_shown_with_its_value() {
        let command = crate::Cli::command();
        let names = settings(command.find_subcommand("serve").expect("there"));
        let config = Config::of(LISTEN, "/s".into(), "/d".into());
        let shown: Vec<_> = values(&config, &LogOptions::default()).into_keys().map(str::to_owned).collect();
        let mut names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert_eq!(names, shown);
    }
}
