//! The profile of a new session, and the start environment that it gives the shell: variables, secrets and user.
//!
//! A request's own fields take precedence over its profile, the profile over the client's context, and that over the
//! server's environment.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::directory::{from_home, full_directory};
use super::launcher::Launcher;
use super::profile_secrets::secrets_of;
use super::variables::{base_environment, check_variable, get, set};
use crate::action::{ActionError, Create, MakeToken, Variables};
use crate::agent_defaults::{AGENT_PROFILE, AGENT_SHELL, AGENT_VARIABLES};
use crate::config_file::ConfigFile;
use crate::confinement_tier::ConfinementTier;
use crate::host::holders::start_error_of;
use crate::host::{Host, User};
use crate::principal::Principal;
use crate::profile;
use crate::profile::{Profile, StartFiles};
use crate::sessions::session_metadata::GivenSecrets;

/// The variables that a confined shell or another user's inherits, besides `LC_*`. All others may hold keys and tokens, or
/// name services of the server's user.
const INHERITED_BY_ALL: [&[u8]; 10] =
    [b"PATH", b"HOME", b"USER", b"LOGNAME", b"SHELL", b"PWD", b"LANG", b"LANGUAGE", b"TZ", b"COLORTERM"];

/// The programs of another user's shell; the server's own PATH may have folders of the server's user.
const PATH_OF_ANOTHER_USER: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The profile of a new session, and its shell's user.
#[derive(Debug, Default)]
pub(super) struct EffectiveProfile {
    /// The profile's name, if one applies.
    pub(in crate::sessions) name: Option<String>,
    pub(in crate::sessions) profile: Profile,
    /// The user, if it is not the server's own.
    pub(in crate::sessions) user: Option<User>,
    /// Variables that neither the profile nor the request needs to set.
    pub(super) beneath: &'static [(&'static str, &'static str)],
    /// The secrets that the profile gives.
    pub(in crate::sessions) secrets: GivenSecrets,
}

impl EffectiveProfile {
    /// The directory in which the shell is to start, if the request, the profile or the client names one.
    pub(super) fn directory(&self, request: &Create, env: &Variables) -> Result<Option<PathBuf>, ActionError> {
        // Another user may have no access to the client's directory.
        let at_home = self.user.as_ref().map(|_| PathBuf::from("~"));
        let cwd = request.cwd.as_ref().or(self.profile.cwd.as_ref()).or(at_home.as_ref());
        full_directory(cwd.or(request.otherwise.cwd.as_ref()), get(env, b"HOME"))
    }

    /// Whether it is a container that mounts its own folders: only the container knows then whether a directory exists.
    pub(super) fn has_own_directory(&self) -> bool {
        let confinement = self.profile.confinement.as_ref();
        confinement.is_some_and(|it| it.tier == ConfinementTier::Container && !it.writable.is_empty())
    }

    /// The shell, if neither the request nor the profile names one.
    pub(super) fn default_shell(&self, request: &Create) -> Option<&'static str> {
        request.is_by_model.then_some(AGENT_SHELL)
    }

    /// Whether the shell of this request is a login shell.
    pub(super) fn is_login(&self, request: &Create) -> bool {
        request.login || self.profile.login
    }
}

/// Why nobody gets this profile.
fn no_profile(profiles: &BTreeMap<String, Profile>, name: &str) -> String {
    let there: Vec<_> = profiles.keys().map(String::as_str).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    format!("there is no profile {name:?}; there are: {there}")
}

/// The profiles of the configuration file. Blocks.
fn profiles(launcher: &Launcher) -> Result<BTreeMap<String, Profile>, String> {
    let file = launcher.config_file.as_deref().map(ConfigFile::read).transpose();
    Ok(file.map_err(|why| format!("the configuration file: {why}"))?.unwrap_or_default().profiles)
}

/// Refuses a token whose sessions could not start, for the file does not have its profile. Blocks.
pub(in crate::sessions) fn check_profiles_of_token(
    launcher: &Launcher,
    request: &MakeToken,
) -> Result<(), ActionError> {
    if request.bounds.profiles.is_empty() {
        return Ok(());
    }
    let invalid = |problem| ActionError::Invalid { field: "profiles", problem };
    let there = profiles(launcher).map_err(invalid)?;
    let missing = request.bounds.profiles.iter().find(|name| !there.contains_key(*name));
    missing.map_or(Ok(()), |name| Err(invalid(no_profile(&there, name))))
}

/// The requested profile, or else the first one of the caller's token, or else the default one. For a model, the profile
/// for agents precedes the default one.
pub(super) fn effective_profile(
    launcher: &Launcher,
    principal: &Principal,
    request: &Create,
) -> Result<EffectiveProfile, ActionError> {
    let bound = principal.profiles();
    if let (Some(bound), Some(asked)) = (bound, &request.profile)
        && !bound.contains(asked)
    {
        let there = bound.join(", ");
        return Err(ActionError::Denied {
            why: format!("this token starts sessions with these profiles only: {there}"),
        });
    }
    let asked = request.profile.as_deref().or_else(|| bound?.first().map(String::as_str));
    let mut profiles = profiles(launcher).map_err(start_error_of)?;
    let has_agent = profiles.contains_key(AGENT_PROFILE);
    let beneath: &[_] = if request.is_by_model && !has_agent { &AGENT_VARIABLES } else { &[] };
    let unnamed = if request.is_by_model && has_agent { AGENT_PROFILE } else { profile::DEFAULT };
    let name = asked.unwrap_or(unnamed);
    // The strongest tier counts, wherever it is asked for.
    let least = request.confinement.max(principal.confinement());
    let confined = |mut profile: Profile| {
        if let Some(tier) = least {
            let confinement = profile.confinement.get_or_insert_default();
            confinement.tier = confinement.tier.max(tier);
        }
        profile
    };
    let Some(profile) = profiles.remove(name) else {
        if asked.is_none() {
            let secrets = secrets_of(&launcher.backends, principal, &Profile::default())?;
            return Ok(EffectiveProfile {
                beneath,
                secrets,
                profile: confined(Profile::default()),
                ..EffectiveProfile::default()
            });
        }
        return Err(invalid(no_profile(&profiles, name)));
    };
    let user =
        profile.user.as_deref().map(|user| another_user(&*launcher.backends.host, name, user)).transpose()?.flatten();
    let secrets = secrets_of(&launcher.backends, principal, &profile)?;
    if user.is_some() && !profile.secret_files.is_empty() {
        return Err(invalid(format!(
            "{name}: secret_files: another user cannot open files in this server's folders; give them as variables (secrets)"
        )));
    }
    Ok(EffectiveProfile { name: Some(name.to_owned()), profile: confined(profile), user, beneath, secrets })
}

impl EffectiveProfile {
    /// The variables that the session inherits from the client, or else from the server.
    pub(super) fn inherited(&self, request: &Create) -> Variables {
        let mut env = base_environment(request);
        if self.profile.confinement.is_some() || self.user.is_some() {
            env.retain(|(name, _)| name.starts_with(b"LC_") || INHERITED_BY_ALL.contains(&name.as_slice()));
        }
        if self.user.is_some() {
            set(&mut env, b"PATH", PATH_OF_ANOTHER_USER);
        }
        env
    }

    /// All variables except the shell's own and the session's tag. `base`: the variables of the server, the client or an
    /// image.
    pub(super) fn variables(&self, base: Variables, request: &Create) -> Result<Variables, ActionError> {
        let (profile, mut env) = (&self.profile, base);
        for (name, value) in self.beneath {
            set(&mut env, name.as_bytes(), value.as_bytes());
        }
        env.retain(|(name, _)| !profile.unset.iter().any(|unset| unset.as_bytes() == name));
        if let Some(user) = &self.user {
            let name = user.name.as_bytes();
            for (variable, value) in [
                (b"HOME".as_slice(), user.home.as_slice()),
                (b"USER", name),
                (b"LOGNAME", name),
                (b"SHELL", &user.shell),
            ] {
                set(&mut env, variable, value);
            }
        }
        if let Some(locale) = &profile.locale {
            env.retain(|(name, _)| !name.starts_with(b"LC_"));
            set(&mut env, b"LANG", locale.as_bytes());
        }
        let wrong = |problem: String| invalid(format!("{}: {problem}", self.name.as_deref().unwrap_or_default()));
        for (name, value) in &profile.env {
            check_variable(name, value).map_err(|e| wrong(e.to_string()))?;
            set(&mut env, name.as_bytes(), value.as_bytes());
        }
        let home = get(&env, b"HOME").map(<[u8]>::to_vec);
        let mut path = Vec::new();
        for dir in &profile.path_prepend {
            let dir = from_home(dir, home.as_deref());
            if !dir.is_absolute() || dir.as_os_str().as_bytes().iter().any(|b| matches!(b, b':' | 0)) {
                let problem = "is not an absolute path, or cannot be part of PATH";
                return Err(wrong(format!("path_prepend: {} {problem}", dir.display())));
            }
            path.push(dir.into_os_string().into_encoded_bytes());
        }
        if !path.is_empty() {
            path.extend(get(&env, b"PATH").map(<[u8]>::to_vec));
            set(&mut env, b"PATH", &path.join(b":".as_slice()));
        }
        for (name, value) in &self.secrets.variables {
            set(&mut env, name.as_bytes(), value.as_bytes());
        }
        for (name, value) in &request.env {
            check_variable(name, value)?;
            set(&mut env, name.as_bytes(), value.as_bytes());
        }
        if profile.rc == StartFiles::Clean {
            // The start-up file of a POSIX shell.
            env.retain(|(name, _)| name != b"ENV");
        }
        Ok(env)
    }
}

/// `None` if the server runs as that user.
fn another_user(host: &dyn Host, profile: &str, name: &str) -> Result<Option<User>, ActionError> {
    let wrong = |problem: String| invalid(format!("{profile}: user: {problem}"));
    let user = host.user(name).map_err(|e| wrong(format!("{name} cannot be looked up: {e}")))?;
    let user = user.ok_or_else(|| wrong(format!("there is no user {name:?} on this machine")))?;
    let own = rustix::process::geteuid();
    if own.as_raw() == user.uid {
        return Ok(None);
    }
    if !own.is_root() {
        return Err(wrong(format!(
            "only a server that root has started can start shells of {name}, and this server is not one"
        )));
    }
    Ok(Some(user))
}

fn invalid(problem: String) -> ActionError {
    ActionError::Invalid { field: "profile", problem }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::profile::Confinement;

    fn of(profile: Profile) -> EffectiveProfile {
        EffectiveProfile { name: Some("web".to_owned()), profile, ..EffectiveProfile::default() }
    }

    fn request(base: &[(&str, &str)], env: &[(&str, &str)]) -> Create {
        let base = base.iter().map(|(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())).collect();
        let env = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Create { base_env: Some(Arc::new(base)), env, ..Create::default() }
    }

    fn shown(effective: &EffectiveProfile, request: &Create) -> Result<Vec<String>, String> {
        let text =
            |(n, v): (Vec<u8>, Vec<u8>)| format!("{}={}", String::from_utf8_lossy(&n), String::from_utf8_lossy(&v));
        let mut all: Vec<_> = effective
            .variables(effective.inherited(request), request)
            .map_err(|e| e.to_string())?
            .into_iter()
            .map(text)
            .collect();
        all.sort();
        Ok(all)
    }

    #[test]
    // promise: profile-1
    fn a_request_precedes_its_profile_and_a_profile_precedes_the_client() {
        let effective = of(Profile {
            env: [("A", "profile"), ("B", "profile")].map(|(n, v)| (n.to_owned(), v.to_owned())).into(),
            unset: vec!["GONE".to_owned()],
            path_prepend: vec!["~/bin".into(), "/opt/x".into()],
            locale: Some("C.UTF-8".to_owned()),
            ..Profile::default()
        });
        let base =
            [("HOME", "/h"), ("PATH", "/bin"), ("A", "client"), ("GONE", "1"), ("LC_ALL", "de_DE"), ("LANG", "de_DE")];
        let expected = ["A=profile", "B=request", "HOME=/h", "LANG=C.UTF-8", "PATH=/h/bin:/opt/x:/bin"];
        assert_eq!(shown(&effective, &request(&base, &[("B", "request")])), Ok(expected.map(str::to_owned).into()));
    }

    #[test]
    // promise: profile-1
    fn variables_for_models_go_before_the_inherited_ones_and_behind_the_profiles() {
        let env = [("GIT_PAGER".to_owned(), "delta".to_owned())].into();
        let profile = Profile { env, unset: vec!["MANPAGER".to_owned()], ..Profile::default() };
        let effective = EffectiveProfile { beneath: &AGENT_VARIABLES[..3], ..of(profile) };
        let expected = ["GIT_PAGER=delta", "PAGER=most"];
        let request = request(&[("PAGER", "less"), ("MANPAGER", "less")], &[("PAGER", "most")]);
        assert_eq!(shown(&effective, &request), Ok(expected.map(str::to_owned).into()));
    }

    #[test]
    // promise: shell-15
    fn a_shell_of_another_user_has_that_users_places_and_none_of_the_servers() {
        let user = User {
            name: "ann".to_owned(),
            uid: 1,
            gid: 1,
            groups: vec![1],
            home: b"/home/ann".to_vec(),
            shell: b"/bin/sh".to_vec(),
        };
        let effective = EffectiveProfile { user: Some(user), ..EffectiveProfile::default() };
        let base =
            [("HOME", "/root"), ("USER", "root"), ("PATH", "/root/bin"), ("GITHUB_TOKEN", "x"), ("LC_ALL", "C.UTF-8")];
        let path = format!("PATH={}", String::from_utf8_lossy(PATH_OF_ANOTHER_USER));
        let expected = ["HOME=/home/ann", "LC_ALL=C.UTF-8", "LOGNAME=ann", &path, "SHELL=/bin/sh", "USER=ann"];
        assert_eq!(shown(&effective, &request(&base, &[])), Ok(expected.map(str::to_owned).into()));
    }

    #[test]
    // promise: access-13
    fn a_confined_shell_inherits_no_keys_and_tokens() {
        let env = [("CI".to_owned(), "1".to_owned())].into();
        let effective = of(Profile { confinement: Some(Confinement::default()), env, ..Profile::default() });
        let base = [("PATH", "/opt/bin:/bin"), ("AWS_SECRET_ACCESS_KEY", "x"), ("TZ", "UTC"), ("SSH_AUTH_SOCK", "/s")];
        let expected = ["A=1", "CI=1", "PATH=/opt/bin:/bin", "TZ=UTC"];
        assert_eq!(shown(&effective, &request(&base, &[("A", "1")])), Ok(expected.map(str::to_owned).into()));
    }

    #[test]
    fn an_impossible_profile_is_refused_with_its_name() {
        let relative = of(Profile { path_prepend: vec!["bin".into()], ..Profile::default() });
        let told = shown(&relative, &request(&[], &[])).expect_err("relative");
        assert_eq!(told, "profile: web: path_prepend: bin is not an absolute path, or cannot be part of PATH");
    }
}
