//! The secrets that a profile and a token give a new session.

use crate::action::ActionError;
use crate::credentials::named_secrets::variable_problem;
use crate::host::holders::start_error_of;
use crate::limits::PROFILE_SECRETS_MAX;
use crate::principal::Principal;
use crate::profile::Profile;
use crate::sessions::backends::Backends;
use crate::sessions::session_metadata::GivenSecrets;
use crate::token_bounds::TokenSecret;

/// The secrets of a profile. A missing one is an error: no session starts differently from its profile.
pub(super) fn secrets_of(
    backends: &Backends,
    principal: &Principal,
    profile: &Profile,
) -> Result<GivenSecrets, ActionError> {
    if profile.secrets.len() + profile.secret_files.len() > PROFILE_SECRETS_MAX {
        let problem = format!("its secrets and secret_files are more than {PROFILE_SECRETS_MAX}");
        return Err(ActionError::Invalid { field: "profile", problem });
    }
    let values = |names: &[String]| {
        let value = |name: &String| match backends.secrets.value(name) {
            Some(value) => Ok((name.clone(), value)),
            None => Err(not_set("profile", name)),
        };
        names.iter().map(value).collect::<Result<Vec<_>, _>>()
    };
    if let Some(why) = profile.secrets.iter().find_map(|name| variable_problem(name)) {
        return Err(start_error_of(format!("its profile's secrets: {why}; give it as a file (secret_files)")));
    }
    let (mut variables, files) = (values(&profile.secrets)?, values(&profile.secret_files)?);
    for TokenSecret { name, variable } in principal.secrets() {
        let value = backends.secrets.value(name).ok_or_else(|| not_set("token", name))?;
        match variables.iter().find(|(given, _)| given == variable) {
            None => variables.push((variable.clone(), value)),
            Some((_, given)) if *given == value => {}
            Some(_) => {
                let why = format!("its profile and its token give it {variable} with different secrets");
                return Err(start_error_of(why));
            }
        }
    }
    Ok(GivenSecrets { variables, files })
}

fn not_set(whose: &str, name: &str) -> ActionError {
    start_error_of(format!("its {whose} gives it the secret {name:?}, which is not set; set it with ptyd secret set"))
}
