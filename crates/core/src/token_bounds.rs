//! The bounds of a named token: the sessions that it starts and may use.

use serde::{Deserialize, Serialize};

use crate::confinement_tier::ConfinementTier;

/// The bounds of a named token: the sessions that it starts, the policy of its requests, the secrets of those sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBounds {
    /// The profiles with which it may start sessions, the first one by default; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// The least confinement of those sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementTier>,
    /// The policy that counts besides the sessions' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The secrets that those sessions get besides the profile's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<TokenSecret>,
}

impl TokenBounds {
    /// Whether a session of this profile and confinement is within them.
    pub(crate) fn hold(&self, profile: Option<&str>, confinement: Option<ConfinementTier>) -> bool {
        let is_named = || profile.is_some_and(|profile| self.profiles.iter().any(|named| named == profile));
        (self.profiles.is_empty() || is_named()) && confinement >= self.confinement
    }
}

/// A named secret that a token gives, and the variable that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSecret {
    /// The secret's name.
    pub name: String,
    /// The variable.
    pub variable: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(profiles: &[&str], confinement: Option<ConfinementTier>) -> TokenBounds {
        TokenBounds {
            profiles: profiles.iter().map(|it| (*it).to_owned()).collect(),
            confinement,
            ..TokenBounds::default()
        }
    }

    #[test]
    // promise: access-4
    fn a_tokens_bounds_include_sessions_of_its_profiles_with_at_least_its_confinement() {
        use ConfinementTier::{Container, Process, Sandbox};
        let all = [None, Some(Process), Some(Sandbox), Some(Container)];
        let held = |bounds: &TokenBounds, profile| all.map(|confinement| bounds.hold(profile, confinement));
        assert_eq!(held(&bound(&[], None), None), [true; 4]);
        assert_eq!(held(&bound(&[], Some(Sandbox)), Some("p")), [false, false, true, true]);
        assert_eq!(held(&bound(&["p"], Some(Process)), Some("p")), [false, true, true, true]);
        assert_eq!(held(&bound(&["p"], None), Some("q")), [false; 4]);
        assert_eq!(held(&bound(&["p"], None), None), [false; 4]);
    }
}
