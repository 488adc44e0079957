//! Key names and the bytes that a terminal sends for them: tmux's names, vim's `<Esc>` form, xterm's sequences.
//!
//! Only names are understood here; which bytes an arrow key is depends on the program's cursor mode, so a [`Key`] is
//! translated at the moment of typing and not when the request is read.

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    code: Code,
    ctrl: bool,
    meta: bool,
    shift: bool,
}

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Char(char),
    Enter,
    Escape,
    Tab,
    Backspace,
    /// A cursor key, by the last letter of its sequence.
    Cursor(u8),
    /// F1 to F4, by the last letter of their sequences.
    Function(u8),
    /// An editing key or F5 to F12, by the number before the tilde.
    Tilde(u8),
}

/// Every name with its key; the first name of a key is the one that errors suggest.
const NAMES: [(&str, Code); 43] = [
    ("Enter", Code::Enter),
    ("Return", Code::Enter),
    ("CR", Code::Enter),
    ("Escape", Code::Escape),
    ("Esc", Code::Escape),
    ("Tab", Code::Tab),
    ("Space", Code::Char(' ')),
    ("BSpace", Code::Backspace),
    ("Backspace", Code::Backspace),
    ("BS", Code::Backspace),
    ("Up", Code::Cursor(b'A')),
    ("Down", Code::Cursor(b'B')),
    ("Right", Code::Cursor(b'C')),
    ("Left", Code::Cursor(b'D')),
    ("Home", Code::Cursor(b'H')),
    ("End", Code::Cursor(b'F')),
    ("Insert", Code::Tilde(2)),
    ("Ins", Code::Tilde(2)),
    ("IC", Code::Tilde(2)),
    ("Delete", Code::Tilde(3)),
    ("Del", Code::Tilde(3)),
    ("DC", Code::Tilde(3)),
    ("PageUp", Code::Tilde(5)),
    ("PgUp", Code::Tilde(5)),
    ("PPage", Code::Tilde(5)),
    ("PageDown", Code::Tilde(6)),
    ("PgDn", Code::Tilde(6)),
    ("NPage", Code::Tilde(6)),
    ("F1", Code::Function(b'P')),
    ("F2", Code::Function(b'Q')),
    ("F3", Code::Function(b'R')),
    ("F4", Code::Function(b'S')),
    ("F5", Code::Tilde(15)),
    ("F6", Code::Tilde(17)),
    ("F7", Code::Tilde(18)),
    ("F8", Code::Tilde(19)),
    ("F9", Code::Tilde(20)),
    ("F10", Code::Tilde(21)),
    ("F11", Code::Tilde(23)),
    ("F12", Code::Tilde(24)),
    ("lt", Code::Char('<')),
    ("gt", Code::Char('>')),
    ("Bar", Code::Char('|')),
];

/// The names in one sentence, for errors and descriptions.
pub const VALID: &str = "C-c (Ctrl), M-x (Alt), S-Tab (Shift), Enter, Escape, Tab, Space, BSpace, Up, Down, Left, Right, \
                         Home, End, PageUp, PageDown, Insert, Delete, F1 to F12, or one character";

/// Reads one name (`C-c`, `Enter`, `x`), or text with names in angle brackets (`<Esc>:wq<Enter>`).
pub fn parse(name: &str) -> Result<Vec<Key>, String> {
    match one(name) {
        Some(key) => Ok(vec![key]),
        None if name.contains('<') && name.contains('>') => sequence(name),
        None => Err(unknown(name)),
    }
}

/// Text with names in brackets; what is outside brackets is typed as it is.
fn sequence(text: &str) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let bracketed = rest.strip_prefix('<').and_then(|r| r.split_once('>')).filter(|(inner, _)| !inner.is_empty());
        if let Some((inner, after)) = bracketed {
            keys.push(one(inner).ok_or_else(|| format!("{} (a plain < is <lt>)", unknown(inner)))?);
            rest = after;
        } else {
            keys.push(Key::from(Code::Char(c)));
            rest = &rest[c.len_utf8()..];
        }
    }
    Ok(keys)
}

/// A name with its modifiers, with or without brackets.
fn one(name: &str) -> Option<Key> {
    let inner =
        name.strip_prefix('<').and_then(|n| n.strip_suffix('>')).filter(|n| !n.is_empty() && !n.contains(['<', '>']));
    let mut rest = inner.unwrap_or(name);
    let mut key = Key::from(Code::Escape);
    if let Some(letter) = rest.strip_prefix('^').filter(|l| l.chars().count() == 1) {
        rest = letter;
        key.ctrl = true;
    }
    while let Some((modifier, tail)) = rest.split_once(['-', '+']).filter(|(_, tail)| !tail.is_empty()) {
        match modifier.to_ascii_lowercase().as_str() {
            "c" | "ctrl" | "control" => key.ctrl = true,
            "m" | "alt" | "meta" => key.meta = true,
            "s" | "shift" => key.shift = true,
            _ => return None,
        }
        rest = tail;
    }
    if rest.eq_ignore_ascii_case("BTab") {
        key.shift = true;
        rest = "Tab";
    }
    let mut chars = rest.chars();
    key.code = match (chars.next(), chars.next()) {
        (Some(c), None) => Code::Char(c),
        _ => NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(rest)).map(|(_, code)| *code)?,
    };
    // A control character that does not exist (`C-é`) would otherwise be typed as the plain letter.
    (!key.ctrl || !matches!(key.code, Code::Char(c) if control(c).is_none())).then_some(key)
}

fn unknown(name: &str) -> String {
    let wanted = name.rsplit(['-', '+', '<']).next().unwrap_or(name).trim_end_matches('>').to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> =
        NAMES.iter().map(|(n, _)| (distance(&wanted, &n.to_ascii_lowercase()), *n)).collect();
    near.retain(|(d, n)| *d <= 2.min(n.len() - 1));
    near.sort_unstable();
    let best = near.first().map_or(0, |(d, _)| *d);
    near.retain(|(d, _)| *d == best);
    let names: Vec<&str> = near.iter().take(3).map(|(_, n)| *n).collect();
    let shown: String = name.chars().take(40).collect();
    match names.as_slice() {
        [] => format!("unknown key {shown:?}; valid: {VALID}; text goes into input"),
        some => format!("unknown key {shown:?}; did you mean {}? valid: {VALID}", some.join(", ")),
    }
}

/// How many letters have to be added, taken away or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(40).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let changed = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The control character of a key, as terminals have it.
fn control(c: char) -> Option<u8> {
    match c.to_ascii_lowercase() {
        c @ 'a'..='z' => Some(c as u8 & 0x1f),
        ' ' | '@' | '2' => Some(0),
        '[' | '3' => Some(0x1b),
        '\\' | '4' => Some(0x1c),
        ']' | '5' => Some(0x1d),
        '^' | '6' => Some(0x1e),
        '_' | '/' | '7' | '-' => Some(0x1f),
        '?' | '8' => Some(0x7f),
        _ => None,
    }
}

impl From<Code> for Key {
    fn from(code: Code) -> Self {
        Self { code, ctrl: false, meta: false, shift: false }
    }
}

impl Key {
    /// The bytes that a terminal sends, in the cursor mode that the program has chosen.
    pub fn bytes(&self, application_cursor: bool) -> Vec<u8> {
        // xterm's number for the modifiers; 1 is none.
        let modifiers = 1 + u8::from(self.shift) + 2 * u8::from(self.meta) + 4 * u8::from(self.ctrl);
        match self.code {
            Code::Cursor(end) if modifiers > 1 => format!("\x1b[1;{modifiers}{}", char::from(end)).into_bytes(),
            Code::Cursor(end) => vec![0x1b, if application_cursor { b'O' } else { b'[' }, end],
            Code::Function(end) if modifiers > 1 => format!("\x1b[1;{modifiers}{}", char::from(end)).into_bytes(),
            Code::Function(end) => vec![0x1b, b'O', end],
            Code::Tilde(number) if modifiers > 1 => format!("\x1b[{number};{modifiers}~").into_bytes(),
            Code::Tilde(number) => format!("\x1b[{number}~").into_bytes(),
            Code::Tab if self.shift => self.with_meta(b"\x1b[Z".to_vec()),
            Code::Tab => self.with_meta(vec![b'\t']),
            Code::Enter => self.with_meta(vec![b'\r']),
            Code::Escape => self.with_meta(vec![0x1b]),
            Code::Backspace => self.with_meta(vec![if self.ctrl { 0x08 } else { 0x7f }]),
            Code::Char(c) => self.with_meta(match control(c).filter(|_| self.ctrl) {
                Some(byte) => vec![byte],
                None if self.shift => c.to_uppercase().to_string().into_bytes(),
                None => c.to_string().into_bytes(),
            }),
        }
    }

    /// Alt is an escape character before the key.
    fn with_meta(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.meta {
            bytes.insert(0, 0x1b);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str) -> Vec<u8> {
        parse(name).expect("a valid name").iter().flat_map(|k| k.bytes(false)).collect()
    }

    #[test]
    fn names_become_what_xterm_sends() {
        for (name, bytes) in [
            ("C-c", "\x03"),
            ("^C", "\x03"),
            ("ctrl+c", "\x03"),
            ("C-Space", "\0"),
            ("C-\\", "\x1c"),
            ("C--", "\x1f"),
            ("M-x", "\x1bx"),
            ("M-X", "\x1bX"),
            ("C-M-d", "\x1b\x04"),
            ("S-Tab", "\x1b[Z"),
            ("BTab", "\x1b[Z"),
            ("enter", "\r"),
            ("ESCAPE", "\x1b"),
            ("Space", " "),
            ("BSpace", "\x7f"),
            ("Up", "\x1b[A"),
            ("C-Left", "\x1b[1;5D"),
            ("F1", "\x1bOP"),
            ("S-F1", "\x1b[1;2P"),
            ("F12", "\x1b[24~"),
            ("PageDown", "\x1b[6~"),
            ("M-Delete", "\x1b[3;3~"),
            ("<Esc>", "\x1b"),
            ("<C-w>", "\x17"),
            ("-", "-"),
            ("<", "<"),
            ("é", "é"),
            ("<Esc>:wq<Enter>", "\x1b:wq\r"),
            ("a <lt> b<CR>", "a < b\r"),
        ] {
            assert_eq!(typed(name), bytes.as_bytes(), "{name}");
        }
    }

    #[test]
    fn only_unmodified_cursor_keys_depend_on_the_cursor_mode() {
        let in_application_mode = |name: &str| parse(name).expect("valid")[0].bytes(true);
        assert_eq!(in_application_mode("Up"), b"\x1bOA");
        assert_eq!(in_application_mode("Home"), b"\x1bOH");
        assert_eq!(in_application_mode("S-Up"), b"\x1b[1;2A");
        assert_eq!(in_application_mode("PageUp"), b"\x1b[5~");
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_the_nearest() {
        let error = parse("Entr").expect_err("no such key");
        assert_eq!(error, format!("unknown key \"Entr\"; did you mean Enter? valid: {VALID}"));
        let far = parse("hello world").expect_err("text is not a key");
        assert_eq!(far, format!("unknown key \"hello world\"; valid: {VALID}; text goes into input"));
        for bad in ["", "C-", "X-c", "C-é", "<nokey>", "F13"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
