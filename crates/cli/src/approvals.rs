//! `approvals`: lists what policies leave to a person, and records decisions.

use std::process::ExitCode;

use api::{Approval, ApprovalState, Decision};
use clap::{Args, Subcommand};
use client::Client;

use crate::exit::Failure;
use crate::print;
use crate::sessions::wire_name;
use crate::table::table;

/// The options of `approvals`.
#[derive(Debug, Args)]
pub struct ApprovalsOptions {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    what: Option<ApprovalsCommand>,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// Allow requests: each may run once, when its client repeats it
    #[command(alias = "approve")]
    Allow {
        /// Also add a rule to the policy: from now on it allows the same command in the same directory, in sessions
        /// where ptyd can prove commands
        #[arg(long)]
        always: bool,
        /// The ids of the requests, as ptyd approvals lists them
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Deny requests
    Deny {
        /// The ids of the requests, as ptyd approvals lists them
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// The options of `approve`.
#[derive(Debug, Args)]
pub struct ApproveOptions {
    /// The ids of the requests [default: none; ptyd lists them]
    ids: Vec<String>,
    /// Also add a rule to the policy, as `ptyd approvals allow --always` does
    #[arg(long)]
    always: bool,
}

/// The options of `deny`.
#[derive(Debug, Args)]
pub struct DenyOptions {
    /// The ids of the requests [default: none; ptyd lists them]
    ids: Vec<String>,
}

impl From<ApproveOptions> for ApprovalsOptions {
    fn from(ApproveOptions { ids, always }: ApproveOptions) -> Self {
        let what = (!ids.is_empty()).then_some(ApprovalsCommand::Allow { always, ids });
        Self { json: false, what }
    }
}

impl From<DenyOptions> for ApprovalsOptions {
    fn from(DenyOptions { ids }: DenyOptions) -> Self {
        let what = (!ids.is_empty()).then_some(ApprovalsCommand::Deny { ids });
        Self { json: false, what }
    }
}

/// Lists the approvals, or decides.
pub async fn approvals(client: &Client, options: &ApprovalsOptions) -> Result<ExitCode, Failure> {
    let (decision, ids) = match &options.what {
        None => {
            let all = client.approvals().await?.approvals;
            if options.json {
                print::json(&all)?;
            } else if !all.is_empty() {
                print::data(listed(&all))?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        Some(ApprovalsCommand::Allow { ids, always: false }) => (Decision::Allow, ids),
        Some(ApprovalsCommand::Allow { ids, always: true }) => (Decision::Always, ids),
        Some(ApprovalsCommand::Deny { ids }) => (Decision::Deny, ids),
    };
    for id in ids {
        client.decide(id, decision).await?;
    }
    Ok(ExitCode::SUCCESS)
}

fn listed(all: &[Approval]) -> String {
    let head = ["ID", "STATE", "SESSION", "WHO", "RULE", "WHAT"].map(str::to_owned).to_vec();
    let row = |one: &Approval| {
        // In quotation marks, so that a text looks like no other one, nor like the words here.
        let what = match (&one.command, &one.input, &one.keys) {
            (Some(command), ..) if one.inside => format!("run {command:?} in a nested shell"),
            (Some(command), ..) => format!("run {command:?}"),
            (None, Some(input), _) => format!("type {input:?}"),
            (None, None, Some(keys)) => format!("press {}", keys.join(" ")),
            (None, None, None) => format!("type a secret ({})", one.input_length.unwrap_or_default()),
        };
        let what = match &one.cwd {
            Some(cwd) => format!("{what} in {cwd:?}"),
            None => what,
        };
        let state = match one.state {
            ApprovalState::Pending => format!("{} ({} s)", wire_name(&one.state), one.expires_in),
            ApprovalState::Allowed | ApprovalState::Denied => wire_name(&one.state),
        };
        let session = one.session_name.clone().unwrap_or_else(|| one.session_id.clone());
        vec![one.id.clone(), state, session, one.principal.clone(), one.rule.clone(), what]
    };
    table(std::iter::once(head).chain(all.iter().map(row)).collect())
}
