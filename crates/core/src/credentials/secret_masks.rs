//! The masks of secrets: their values as they are, in base64 and in percent-encoding.
//!
//! Base64 has three forms of a text, by the number of bytes before it. Of each form only those characters are masked that
//! the bytes around do not change.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use journal::Masks;

/// The columns at which base64(1) and openssl(1) break lines: each line is masked where it is printed alone, too.
const BASE64_COLUMNS: [usize; 2] = [76, 64];

/// The characters besides letters and digits that an encoder does not escape: those of RFC 3986, of Python's `quote`, and
/// of JavaScript's `encodeURIComponent` and `encodeURI`.
const UNESCAPED: [&[u8]; 4] = [b"-_.~", b"-_.~/", b"-_.~!*'()", b"-_.~!*'();/?:@&=+$,#"];

/// The masks of these values.
pub(crate) fn of_values<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Masks {
    Masks::new(values.into_iter().flat_map(texts))
}

/// The texts in which a value is shown.
pub(crate) fn texts(value: &[u8]) -> BTreeSet<Vec<u8>> {
    // Each line is masked where it is printed alone.
    let mut texts: BTreeSet<Vec<u8>> = value.split(|b| matches!(b, b'\n' | b'\r')).map(<[u8]>::to_vec).collect();
    texts.insert(value.to_vec());
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for before in 0..3 {
            let encoded = engine.encode([&vec![0; before], value].concat()).into_bytes();
            let sure = (before * 8).div_ceil(6)..(before + value.len()) * 8 / 6;
            texts.insert(encoded.get(sure).unwrap_or_default().to_vec());
        }
        let encoded = engine.encode(value).into_bytes();
        let sure = encoded.get(..value.len() * 8 / 6).unwrap_or_default();
        for columns in BASE64_COLUMNS.into_iter().filter(|columns| sure.len() > *columns) {
            texts.extend(sure.chunks(columns).map(<[u8]>::to_vec));
        }
    }
    for unescaped in UNESCAPED {
        for (digits, blank) in [(UPPER, false), (UPPER, true), (LOWER, false), (LOWER, true)] {
            texts.insert(percent_encoded(value, unescaped, digits, blank));
        }
    }
    texts
}

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

/// `blank_is_plus`: as a form is sent.
fn percent_encoded(value: &[u8], unescaped: &[u8], digits: &[u8; 16], blank_is_plus: bool) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            b' ' if blank_is_plus => encoded.push(b'+'),
            byte if byte.is_ascii_alphanumeric() || unescaped.contains(byte) => encoded.push(*byte),
            byte => encoded.extend([b'%', digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(value: &str, shown: &str) -> String {
        let mut bytes = shown.as_bytes().to_vec();
        of_values([value.as_bytes()]).mask(&mut bytes);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    // promise: secret-1
    fn a_value_is_masked_in_base64_wherever_it_begins_and_whatever_is_around() {
        let value = "pass?word>with~all/kinds";
        for before in ["", "a", "user:", "abc", "xx"] {
            for behind in ["", "\n", "&b", "&bc"] {
                let whole = format!("{before}{value}{behind}");
                for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    let encoded = engine.encode(&whole);
                    let shown = masked(value, &format!("x {encoded} y"));
                    let open = shown.chars().filter(|c| *c != '*').count() - 4;
                    // One character at each edge has bits of the neighbour, too.
                    let around = (before.len() * 8).div_ceil(6) + (behind.len() * 8).div_ceil(6) + 2;
                    assert!(open <= around && shown.len() == encoded.len() + 4, "{whole:?}: {shown}");
                }
            }
        }
    }

    #[test]
    // promise: secret-1
    fn base64_is_masked_wherever_its_lines_are_broken_and_whatever_is_around() {
        let value: String = (0..40).map(|n| format!("line-{n};")).collect();
        for (before, columns, line_end) in
            [("", 76, "\r\n"), ("", 64, "\n"), ("user:", 76, "\r\n"), ("a", 64, "\r\n"), ("host = ", 19, "\n")]
        {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}{value}\n"));
            let lines: Vec<_> = encoded.as_bytes().chunks(columns).map(String::from_utf8_lossy).collect();
            let shown = masked(&value, &lines.join(line_end));
            let open = shown.chars().filter(|c| !matches!(c, '*' | '\r' | '\n')).count();
            assert!(open <= (before.len() * 8).div_ceil(6) + 3, "{before:?}, {columns}: {shown}");
            // A line that is printed alone.
            if before.is_empty() {
                assert_eq!(masked(&value, &lines[1]), "*".repeat(columns));
            }
        }
    }

    #[test]
    // promise: secret-1
    fn a_value_is_masked_as_urls_have_it() {
        let value = "p@ss w/rd!&é";
        for shown in [
            "p%40ss%20w%2Frd%21%26%C3%A9",
            "p%40ss%20w%2frd%21%26%c3%a9",
            "p%40ss+w%2Frd%21%26%C3%A9",
            "p%40ss%20w/rd%21%26%C3%A9",
            "p%40ss%20w%2Frd!%26%C3%A9",
            "p@ss%20w/rd!&%C3%A9",
        ] {
            assert_eq!(masked(value, &format!("x={shown}&")), format!("x={}&", "*".repeat(shown.len())));
        }
    }

    #[test]
    // promise: secret-1
    fn each_line_of_a_key_is_masked() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADAN\nx\n-----END KEY-----\n";
        let shown = "$ cat key\r\n-----BEGIN KEY-----\r\nMIIEvQIBADAN\r\nx\r\n-----END KEY-----\r\n";
        let stars = |n: usize| "*".repeat(n);
        let expected = format!("$ cat key\r\n{}\r\n{}\r\n*\r\n{}\r\n", stars(19), stars(12), stars(17));
        assert_eq!(masked(key, shown), expected);
        assert_eq!(masked(key, "MIIEvQIBADAN\r\nx\r\n"), format!("{}\r\nx\r\n", stars(12)), "printed alone");
    }

    #[test]
    fn a_usual_value_has_few_masked_forms() {
        // A token has three forms of base64, twice where the alphabets differ, and is in URLs as it is.
        assert_eq!(texts(b"ghp_0123456789abcdefghijklmnopqrstuvwxyz").len(), 4);
        assert!(texts(b"s3cr3t with ~ and / and \xc3\xa9").len() <= 20);
    }
}
