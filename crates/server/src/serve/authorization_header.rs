//! The credential in an `Authorization` header.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The token of an `Authorization` value; the scheme is case-insensitive (RFC 9110 §11.1).
pub(super) fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The password of an `Authorization` value (RFC 7617).
pub(super) fn password(value: &str) -> Option<String> {
    let (scheme, words) = value.split_once(' ')?;
    let words = STANDARD.decode(words.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    String::from_utf8(words).ok()?.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: access-12
    fn a_log_in_of_a_browser_has_the_token_as_its_password() {
        let of = |words: &str| password(&format!("Basic {}", STANDARD.encode(words)));
        assert_eq!([of("me:to:ken"), of(":token"), of("token")], [Some("to:ken".into()), Some("token".into()), None]);
        assert_eq!(["Basic", "Basic !", "Bearer bWU6eA=="].map(password), [None, None, None]);
        assert_eq!(password("basic bWU6eA==").as_deref(), Some("x"));
    }
}
