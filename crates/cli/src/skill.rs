//! `ptyd skill` and `ptyd agent-context`: what an agent reads to use this command line without any tool definition.

use std::process::ExitCode;

use clap::{Arg, Args, Command};
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use serde_json::{Value, json};

use crate::exit::{self, Failure};
use crate::print;

/// The skill, in the form that agents read.
pub const TEXT: &str = include_str!("../../../skills/ptyd/SKILL.md");

/// The options of `skill`.
#[derive(Debug, Args)]
pub struct SkillOptions {
    /// Write the skill to ~/.agents/skills, and to ~/.claude/skills if Claude Code is there, and do not print it
    #[arg(long)]
    add: bool,
}

/// Prints the skill, or writes it where agents look for skills.
pub fn skill(options: &SkillOptions) -> Result<ExitCode, Failure> {
    if !options.add {
        print::data(TEXT)?;
        return Ok(ExitCode::SUCCESS);
    }
    let home = Xdg::new().map_err(|_| Failure::new("there is no home directory: set HOME"))?.home_dir().to_owned();
    let agents = Some(home.join(".agents"));
    for folder in agents.into_iter().chain(Some(home.join(".claude")).filter(|folder| folder.is_dir())) {
        let folder = folder.join("skills/ptyd");
        std::fs::create_dir_all(&folder).map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
        let file = folder.join("SKILL.md");
        std::fs::write(&file, TEXT).map_err(|e| Failure::new(format!("{}: {e}", file.display())))?;
        print::line(file.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the whole command line as JSON.
pub fn agent_context(mut command: Command) -> Result<ExitCode, Failure> {
    command.build();
    let codes: Vec<Value> =
        exit::CODES.iter().map(|(code, meaning)| json!({"code": code, "meaning": meaning})).collect();
    let commands: Vec<Value> = command.get_subcommands().filter(|c| !c.is_hide_set()).map(described).collect();
    print::json(&json!({
        "name": "ptyd",
        "version": env!("CARGO_PKG_VERSION"),
        "about": text(command.get_about()),
        "exitCodes": codes,
        "commands": commands,
    }))?;
    Ok(ExitCode::SUCCESS)
}

fn described(command: &Command) -> Value {
    let own = |arg: &&Arg| !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help";
    let (places, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(own).partition(|arg| arg.is_positional());
    let below: Vec<Value> =
        command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help").map(described).collect();
    json!({
        "name": command.get_name(),
        "aliases": command.get_visible_aliases().collect::<Vec<_>>(),
        "about": text(command.get_about()),
        "usage": command.clone().render_usage().to_string().trim_start_matches("Usage: ").trim(),
        "arguments": places.iter().map(|arg| argument(arg)).collect::<Vec<_>>(),
        "options": options.iter().map(|arg| argument(arg)).collect::<Vec<_>>(),
        "commands": below,
    })
}

fn argument(arg: &Arg) -> Value {
    let takes_value = arg.is_positional() || arg.get_action().takes_values();
    let values: Vec<_> = if takes_value {
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
    } else {
        Vec::new()
    };
    let mut told = json!({
        "name": arg.get_long().map_or_else(|| arg.get_id().to_string(), |long| format!("--{long}")),
        "about": text(arg.get_help()),
        "required": arg.is_required_set(),
    });
    if let Some(short) = arg.get_short() {
        told["short"] = format!("-{short}").into();
    }
    if takes_value {
        let names = arg.get_value_names().unwrap_or_default();
        told["value"] = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").into();
    }
    if !values.is_empty() {
        told["values"] = values.into();
    }
    told
}

fn text(styled: Option<&clap::builder::StyledStr>) -> String {
    styled.map(ToString::to_string).unwrap_or_default()
}
