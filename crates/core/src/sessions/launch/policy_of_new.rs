//! The policy of a new session, and why it could prove none of the session's commands.

use policy::Policies;

use crate::action::{ActionError, Create, MakeToken, PolicyRefusal, Variables};
use crate::policy_file::PolicyFile;
use crate::principal::Principal;
use crate::profile::Profile;

/// The shells that a request may name in a session under a policy: by their paths in the system's folders, or by name if it
/// has not set PATH.
const SHELLS: [&str; 5] = ["bash", "dash", "fish", "sh", "zsh"];

/// The policy of a new session, if it lets the request start one. Blocks.
pub(in crate::sessions) fn policy_of_new(
    policies: &PolicyFile,
    principal: &Principal,
    request: &Create,
    profile: &Profile,
) -> Result<Option<String>, ActionError> {
    let unreadable = |why| ActionError::Start { why: format!("the policy file: {why}") };
    let policies = policies.policies().map_err(unreadable)?;
    // The sessions of a token have its policy where they would have none.
    let of_session = profile.policy.as_deref().or(policies.default_policy());
    let Some(name) = of_session.or(principal.policy()) else { return Ok(None) };
    let of_token = principal.policy().filter(|of_token| *of_token != name);
    let set_by_request = set_by_request(principal, request);
    for (name, is_tokens) in [(Some(name), of_session.is_none()), (of_token, true)] {
        let Some(name) = name else { continue };
        let Some(policy) = policies.get(name) else {
            let (field, whose) = if is_tokens { ("token", "the token's policy: ") } else { ("profile", "policy: ") };
            let problem = format!("{whose}{}", no_policy(&policies, name));
            return Err(ActionError::Invalid { field, problem });
        };
        if let Some(why) = &set_by_request {
            let ruling = policy.unreadable(why.clone());
            let is_advisory = profile.confinement.is_none();
            if let Some(error) = PolicyRefusal::error("not started", name, &ruling, is_advisory, None) {
                return Err(error);
            }
        }
    }
    Ok(Some(name.to_owned()))
}

/// Refuses a token whose policy the file does not have. Blocks.
pub(in crate::sessions) fn check_policy_of_token(
    policies: &PolicyFile,
    request: &MakeToken,
) -> Result<(), ActionError> {
    let Some(name) = &request.bounds.policy else { return Ok(()) };
    let invalid = |problem| ActionError::Invalid { field: "policy", problem };
    let policies = policies.policies().map_err(|why| invalid(format!("the file: {why}")))?;
    match policies.get(name) {
        Some(_) => Ok(()),
        None => Err(invalid(no_policy(&policies, name))),
    }
}

/// Why none of the commands of a new session that has a policy could be proven.
pub(in crate::sessions) fn unprovable(
    principal: &Principal,
    request: &Create,
    profile: &Profile,
    shell: &str,
    env: &Variables,
) -> Option<String> {
    let environment =
        || policy::doubtful_environment(env.iter().map(|(name, value)| (name.as_slice(), value.as_slice())));
    set_by_request(principal, request).or_else(|| profile.unprovable(shell)).or_else(environment)
}

fn no_policy(policies: &Policies, name: &str) -> String {
    let there: Vec<_> = policies.all().map(policy::Policy::name).collect();
    if there.is_empty() {
        return format!(
            "there is no policy {name:?}: the policy file does not exist, or has no policy (`ptyd policy check` reads it)"
        );
    }
    format!("there is no policy {name:?} in the policy file; it has: {}", there.join(", "))
}

/// The field of a request that runs other code than the profile says, if there is one.
fn set_by_request(principal: &Principal, request: &Create) -> Option<String> {
    if let Some((name, _)) = request.env.iter().find(|(name, _)| !policy::harmless_variable(name)) {
        return Some(format!("the request sets the variable {name}"));
    }
    if request.base_env.is_some() && principal.origin.from_session.is_some() {
        return Some("the request comes from a program in a session, with that program's environment".to_owned());
    }
    let name = |shell: &str| {
        let of_system = ["/usr/bin/", "/bin/"].iter().find_map(|folder| shell.strip_prefix(folder));
        SHELLS.contains(&of_system.unwrap_or(shell))
    };
    let shell = request.shell.as_deref().filter(|shell| !name(shell));
    shell.map(|shell| format!("the request names the shell {shell}"))
}
