//! Redacts environment variables: secrets by their names, passwords in URLs, and the values that masks know.

use journal::Masks;

/// Whether the value of this variable is hidden; docs/profiles.md documents these rules.
fn is_secret(name: &str) -> bool {
    /// Matched anywhere in a name.
    const PARTS: [&str; 10] =
        ["TOKEN", "SECRET", "PASSW", "PASSPHRASE", "PASSCODE", "KEY", "CRED", "AUTH", "BEARER", "COOKIE"];
    /// Matched at the end of a word of the name.
    const ENDS: [&str; 2] = ["PASS", "PWD"];
    let name = name.to_ascii_uppercase();
    let is_secret_word = |word: &str| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        word == "PAT" || ENDS.iter().any(|end| word.ends_with(end))
    };
    // These name directories.
    !matches!(name.as_str(), "PWD" | "OLDPWD")
        && (PARTS.iter().any(|part| name.contains(part)) || name.split('_').any(is_secret_word))
}

/// Stands for a value that is hidden.
pub(super) const HIDDEN: &[u8] = b"***";

/// The visible value of a variable: a secret and a password in a URL are hidden.
pub(super) fn shown_value(name: &str, value: &[u8], masks: &Masks) -> Vec<u8> {
    let mut shown = redacted(name, value);
    masks.mask(&mut shown);
    shown
}

/// The value of a variable without a password in it; hidden as a whole if the name looks like a secret.
pub(super) fn redacted(name: &str, value: &[u8]) -> Vec<u8> {
    if is_secret(name) {
        return HIDDEN.to_vec();
    }
    let (mut shown, mut rest) = (Vec::with_capacity(value.len()), value);
    while let Some(scheme) = memchr::memmem::find(rest, b"://") {
        let (before, behind) = rest.split_at(scheme + 3);
        shown.extend(before);
        // RFC 3986 3.2: the authority, up to the path. A password may contain characters that should be escaped, such
        // as `?`.
        let is_end = |b: &u8| matches!(b, b'/' | b'"') || b.is_ascii_whitespace();
        let authority = behind.iter().position(is_end).map_or(behind, |end| &behind[..end]);
        let principal = &authority[..memchr::memrchr(b'@', authority).unwrap_or(0)];
        match memchr::memchr(b':', principal) {
            Some(colon) if colon + 1 < principal.len() => {
                shown.extend([&principal[..=colon], HIDDEN].concat());
                rest = &behind[principal.len()..];
            }
            _ => rest = behind,
        }
    }
    shown.extend(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_and_names_that_are_like_them_are_not() {
        let secrets = "MYSQL_PWD PGPASSWORD GH_PAT BEARER COOKIE SESSION_COOKIE AWS_ACCESS_KEY_ID npm_config__auth SSHPASS \
                       DB_PASS DB_PASS2 REDIS_PASSWD GPG_PASSPHRASE OPENAI_API_KEY GITHUB_TOKEN CLIENT_SECRET DB_CREDS";
        let others = "PWD OLDPWD TOX_TESTENV_PASSENV PATH PATTERN PYTHONPATH BYPASSES LANG HOME PASSES";
        let unknown: Vec<_> = secrets.split_whitespace().filter(|name| !is_secret(name)).collect();
        let wrong: Vec<_> = others.split_whitespace().filter(|name| is_secret(name)).collect();
        assert_eq!((unknown, wrong), (vec![], vec![]));
    }

    #[test]
    fn passwords_in_urls_are_not_shown_and_nothing_else_of_them_is_changed() {
        for (value, shown) in [
            ("postgres://app:s3cr@t@db:5432/x?y=z#a", "postgres://app:***@db:5432/x?y=z#a"),
            ("redis://:s@h", "redis://:***@h"),
            ("a=http://u:p@h b=\"https://v:q@i\" c:d@e", "a=http://u:***@h b=\"https://v:***@i\" c:d@e"),
            ("http://a:80,http://u:p@b", "http://a:80,http://u:***@b"),
            ("mongodb+srv://u:p%40q@h1,h2/db", "mongodb+srv://u:***@h1,h2/db"),
            ("http://host:80/a@b", "http://host:80/a@b"),
            ("git@host:path ssh://git@host:22/x", "git@host:path ssh://git@host:22/x"),
            ("http://u:@h", "http://u:@h"),
            ("://", "://"),
        ] {
            assert_eq!(String::from_utf8_lossy(&redacted("DATABASE_URL", value.as_bytes())), shown);
        }
        assert_eq!(redacted("X", b"\xff://u:\xfe@h"), b"\xff://u:***@h");
    }
}
