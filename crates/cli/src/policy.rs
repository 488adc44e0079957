//! `policy`: checks a policy file, and tells what a policy says of a command. It reads the file itself, without a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use policy::{Policies, Policy, Remembered, Standing, Verdict};
use ptyd_core::config_file::ConfigFile;
use ptyd_core::policy_file;
use ptyd_core::profile::{self, Profile};
use terminal::quote;

use crate::exit::{Failure, NOT_ALLOWED};
use crate::paths::PathOptions;
use crate::print;

/// The options of `policy`.
#[derive(Debug, Args)]
pub struct PolicyOptions {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Check a policy file and its examples, and list the commands that a person has always allowed
    Check {
        /// The policy file [default: the one that a server would read]
        file: Option<PathBuf>,
    },
    /// Print the verdict of a policy on a command, with its rule and the reason
    ///
    /// The exit code is 0 if the policy allows the command, and 4 otherwise.
    Test {
        /// The command, as one word
        command: String,
        /// Judge the command as in a session of this profile [default: the profile `default`, if there is one]
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
        /// The name of the policy [default: the profile's, the one that the file names as its default, or its only one]
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
        /// The policy file [default: the one that a server would read]
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Judge the command as in a session that has already run an unproven command
        #[arg(long)]
        tainted: bool,
        /// Judge the command as in this directory [default: the current directory]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
}

/// The policy file of a server started here: the one that is named, or else `policy.toml` beside the configuration file.
pub fn file(given: &PathOptions, named: Option<PathBuf>) -> Option<PathBuf> {
    named.or_else(|| Some(given.config_file()?.with_file_name("policy.toml")))
}

fn chosen(given: &PathOptions, named: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let set = std::env::var_os("PTYD_POLICY").filter(|file| !file.is_empty()).map(PathBuf::from);
    let configured = || -> Result<Option<PathBuf>, Failure> {
        let Some(path) = given.config_file() else { return Ok(None) };
        let settings = ConfigFile::read(&path).map_err(Failure::usage)?.settings();
        Ok(settings.get("policy").and_then(|words| words.first()).map(PathBuf::from))
    };
    let named = match named.cloned().or(set) {
        Some(named) => Some(named),
        None => configured()?,
    };
    file(given, named).ok_or_else(|| Failure::usage("there is no home directory: name the policy file"))
}

fn read(path: &Path) -> Result<Policies, Failure> {
    policy_file::read(path).map_err(Failure::usage)
}

/// `ptyd policy`.
pub fn policy(given: &PathOptions, options: &PolicyOptions) -> Result<ExitCode, Failure> {
    match &options.command {
        PolicyCommand::Check { file } => {
            let path = chosen(given, file.as_ref())?;
            let policies = read(&path)?;
            for policy in policies.all() {
                let default = if policies.default_policy() == Some(policy.name()) { " (default)" } else { "" };
                print::line(format_args!("{}{default}: {} rules", policy.name(), policy.rules()))?;
                // In quotation marks, so that no text looks like another line.
                for Remembered { command, cwd, by, at } in policy.remembered() {
                    print::line(format_args!("  remembered {command:?} in {cwd:?} ({by:?}, {at:?})"))?;
                }
            }
            print::note(format_args!("{}: no mistake", path.display()));
            Ok(ExitCode::SUCCESS)
        }
        PolicyCommand::Test { command, profile, policy, file, tainted, cwd } => {
            let path = chosen(given, file.as_ref())?;
            let policies = read(&path)?;
            let (name, profile) = profile_of_test(given, profile.as_deref())?;
            let policy = one_of(&policies, policy.as_deref().or(profile.policy.as_deref()))?;
            let cwd = cwd.clone().or_else(|| std::env::current_dir().ok());
            let unprovable = profile.unprovable(&shell_name(&profile));
            let standing = if *tainted {
                Standing::Unprovable("something unproven has run in the session")
            } else {
                unprovable.as_deref().map_or(Standing::Provable(cwd.as_deref()), Standing::Unprovable)
            };
            let mut ruling = policy.command(command, standing);
            ruling.shorten();
            let (verdict, why) = (ruling.verdict.name(), quote::line(&ruling.why));
            print::line(format_args!("{verdict}: rule {} of policy {}: {why}", ruling.rule, policy.name()))?;
            let sessions = name.map_or("without a profile".to_owned(), |name| format!("of profile {name:?}"));
            print::note(format_args!("This is the verdict for sessions {sessions}; --profile names another one."));
            if profile.confinement.is_none() {
                print::note(
                    "A policy is advisory in a session without confinement: docs/policy.md says what it cannot do.",
                );
            }
            Ok(ExitCode::from(if ruling.verdict == Verdict::Allow { 0 } else { NOT_ALLOWED }))
        }
    }
}

/// The profile of this name, or the one that sessions have without a name, with its name.
fn profile_of_test(given: &PathOptions, name: Option<&str>) -> Result<(Option<String>, Profile), Failure> {
    let mut profiles = match given.config_file() {
        Some(path) => ConfigFile::read(&path).map_err(Failure::usage)?.profiles,
        None => BTreeMap::new(),
    };
    match (profiles.remove(name.unwrap_or(profile::DEFAULT)), name) {
        (Some(profile), _) => Ok((Some(name.unwrap_or(profile::DEFAULT).to_owned()), profile)),
        (None, None) => Ok((None, Profile::default())),
        (None, Some(name)) => {
            let there = profiles.into_keys().collect::<Vec<_>>().join(", ");
            Err(Failure::usage(format!("there is no profile {name:?}; the configuration file has: {there}")))
        }
    }
}

/// The name of the profile's shell; without one, sessions have the user's own if it is zsh or fish, and else bash.
fn shell_name(profile: &Profile) -> String {
    let name = |shell: &str| Path::new(shell).file_name().map(|name| name.to_string_lossy().into_owned());
    let own =
        || std::env::var("SHELL").ok().as_deref().and_then(name).filter(|own| ["zsh", "fish"].contains(&own.as_str()));
    profile.shell.as_deref().and_then(name).or_else(own).unwrap_or_else(|| "bash".to_owned())
}

fn one_of<'a>(policies: &'a Policies, name: Option<&str>) -> Result<&'a Policy, Failure> {
    let all: Vec<&Policy> = policies.all().collect();
    let only = || if let [only] = all.as_slice() { Some(only.name()) } else { None };
    let names = || all.iter().map(|policy| policy.name()).collect::<Vec<_>>().join(", ");
    let Some(name) = name.or(policies.default_policy()).or_else(only) else {
        return Err(Failure::usage(format!("name one with --policy; the file has: {}", names())));
    };
    policies.get(name).ok_or_else(|| Failure::usage(format!("there is no policy {name:?}; the file has: {}", names())))
}
