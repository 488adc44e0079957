//! A server with a policy, and requests under it.

use api::{CreateRequest, ErrorCode, ExecuteRequest, SessionPolicy};
use client::ClientError;

use crate::{Home, Server, Session, Start, configure};

/// Profiles under the policies below.
pub const CONFIGURATION: &str = r#"
[profiles.default]
shell = "bash"
rc = "clean"

[profiles.user]
shell = "bash"

[profiles.open]
shell = "bash"
policy = "open"

[profiles.free]
shell = "bash"
policy = "free"

[profiles.confined]
shell = "bash"
rc = "clean"
confinement = { tier = "process" }

[profiles.starts]
shell = "bash"
rc = "clean"
startup = ["echo ready", "rm a", "echo not reached > x"]
"#;

/// Policies that allow, ask and deny.
pub const POLICY: &str = r#"
default = "strict"

[policies.strict]
[[policies.strict.rules]]
name = "look"
verdict = "allow"
program = ["ls", "cd", "echo", "cat", "sleep", "bash", "alias", "true"]
match = ["ls; echo x", "cat a | cat"]
not_match = ["ls > x"]
[[policies.strict.rules]]
name = "no-rm"
verdict = "deny"
program = "rm"
reason = "remove nothing"
match = ["sudo rm x"]

[policies.free]
default = "allow"
unproven = "allow"
typed_input = "allow"
[[policies.free.rules]]
name = "no-rm"
verdict = "deny"
program = "rm"

[policies.open]
typed_input = "allow"
[[policies.open.rules]]
name = "look"
verdict = "allow"
program = ["cat", "echo"]
"#;

/// A home with that configuration and those policies.
pub fn home() -> Home {
    let home = Home::make();
    configure(&home, CONFIGURATION);
    std::fs::write(home.path().join("config/ptyd/policy.toml"), POLICY).expect("written");
    home
}

/// A server in such a home.
pub fn start() -> Server {
    Server::start_in(home(), Start::default())
}

/// A request for a session of this profile.
pub fn by(profile: &str) -> CreateRequest {
    CreateRequest { profile: Some(profile.to_owned()), ..CreateRequest::default() }
}

/// The code and the words of a refused command.
pub async fn refused(session: &Session, request: ExecuteRequest) -> (Option<ErrorCode>, String) {
    let command = request.command.clone();
    let error = session.try_run(&request).await.err().unwrap_or_else(|| panic!("{command:?} was accepted"));
    let words = match &error {
        ClientError::Refused(problem) => problem.detail.clone(),
        other => other.to_string(),
    };
    (error.code(), words)
}

/// A command whose end the request waits for.
pub fn ask(command: &str) -> ExecuteRequest {
    ExecuteRequest { wait_for_completion: Some(true), command: command.to_owned(), ..ExecuteRequest::default() }
}

/// The policy of a session.
pub async fn policy_of(session: &Session) -> SessionPolicy {
    session.look().await.policy.expect("it has one")
}
