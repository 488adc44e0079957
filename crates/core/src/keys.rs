//! Key names and the bytes that a terminal sends for them: tmux's names, vim's `<Esc>` form, xterm's sequences.
//!
//! This module parses only names: the bytes of an arrow key depend on the program's cursor mode, so a [`Key`] is
//! translated when it is typed and not when the request is parsed.

use std::fmt;

use terminal::Modes;

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Key {
    code: Code,
    ctrl: bool,
    meta: bool,
    shift: bool,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (has, prefix) in [(self.ctrl, "C-"), (self.meta, "M-"), (self.shift, "S-")] {
            f.write_str(if has { prefix } else { "" })?;
        }
        match (self.code, NAMES.iter().find(|(_, code)| *code == self.code)) {
            (_, Some((name, _))) => f.write_str(name),
            (Code::Char(letter), None) => write!(f, "{letter}"),
            (Code::Mouse(button, row, column), None) => write!(f, "Mouse{button}:{row},{column}"),
            (code, None) => write!(f, "{code:?}"),
        }
    }
}

/// The key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
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
    /// A mouse button (xterm's number) at a row and a column, from 1.
    Mouse(u8, u16, u16),
}

/// Every name with its key; errors suggest the first name of a key.
const NAMES: [(&str, Code); 52] = [
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
    ("KP_Enter", Code::Enter),
    ("Up", Code::Cursor(b'A')),
    ("ArrowUp", Code::Cursor(b'A')),
    ("Down", Code::Cursor(b'B')),
    ("ArrowDown", Code::Cursor(b'B')),
    ("Right", Code::Cursor(b'C')),
    ("ArrowRight", Code::Cursor(b'C')),
    ("Left", Code::Cursor(b'D')),
    ("ArrowLeft", Code::Cursor(b'D')),
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
    ("Page_Up", Code::Tilde(5)),
    ("Prior", Code::Tilde(5)),
    ("PageDown", Code::Tilde(6)),
    ("PgDn", Code::Tilde(6)),
    ("NPage", Code::Tilde(6)),
    ("Page_Down", Code::Tilde(6)),
    ("Next", Code::Tilde(6)),
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
                         Home, End, PageUp, PageDown, Insert, Delete, F1 to F12, or one character; Down*3 repeats; \
                         Click:ROW,COLUMN, WheelUp:ROW,COLUMN and WheelDown:ROW,COLUMN are the mouse";

/// Mouse buttons by name, with xterm's numbers.
const BUTTONS: [(&str, u8); 5] =
    [("Click", 0), ("MiddleClick", 1), ("RightClick", 2), ("WheelUp", 64), ("WheelDown", 65)];
/// How often one key may be repeated.
const REPEATS_MAX: usize = 1_000;

/// Parses one name (`C-c`, `Enter`, `x`, `Down*3`), or text with names in angle brackets (`<Esc>:wq<Enter>`).
pub fn parse(name: &str) -> Result<Vec<Key>, String> {
    match repeated(name) {
        Some(keys) => Ok(keys),
        None if name.contains('<') && name.contains('>') => sequence(name),
        None => Err(unknown(name)),
    }
}

/// These names in one, where those that are not keys are text: `hello`, `Enter` is `hello<Enter>`. `None` without text or without
/// keys.
pub fn with_text(names: &[String]) -> Option<String> {
    let (mut texts, mut keys, mut all) = (0, 0, String::new());
    for name in names {
        let is_one = repeated(name).is_some();
        if is_one && name.chars().count() > 1 {
            keys += 1;
            let bare = name.strip_prefix('<').and_then(|n| n.strip_suffix('>')).unwrap_or(name);
            all.extend(["<", bare, ">"]);
        } else if !is_one && name.contains('<') && name.contains('>') {
            // A sequence already, or one with a key that nobody knows.
            sequence(name).ok()?;
            keys += 1;
            all.push_str(name);
        } else {
            texts += usize::from(!is_one);
            all.push_str(&name.replace('<', "<lt>"));
        }
    }
    (texts > 0 && keys > 0).then_some(all)
}

/// Text with names in brackets; text outside of brackets is typed unchanged.
fn sequence(text: &str) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let bracketed = rest.strip_prefix('<').and_then(|r| r.split_once('>')).filter(|(inner, _)| !inner.is_empty());
        if let Some((inner, after)) = bracketed {
            keys.extend(repeated(inner).ok_or_else(|| format!("{} (a plain < is <lt>)", unknown(inner)))?);
            rest = after;
        } else {
            keys.push(Key::from(Code::Char(c)));
            rest = &rest[c.len_utf8()..];
        }
    }
    Ok(keys)
}

/// A name, once or as often as the number after its star.
fn repeated(name: &str) -> Option<Vec<Key>> {
    if let Some(key) = one(name) {
        return Some(vec![key]);
    }
    let bare = name.strip_prefix('<').and_then(|n| n.strip_suffix('>')).unwrap_or(name);
    let (name, count) = bare.rsplit_once('*')?;
    let count = count.parse().ok().filter(|count| (1..=REPEATS_MAX).contains(count))?;
    one(name).map(|key| vec![key; count])
}

/// A mouse button with its position.
fn mouse(name: &str) -> Option<Code> {
    let (button, place) = name.split_once(':')?;
    let (row, column) = place.split_once(',')?;
    let (row, column) = (row.trim().parse().ok()?, column.trim().parse().ok()?);
    let (_, number) = BUTTONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(button))?;
    (row > 0 && column > 0).then_some(Code::Mouse(*number, row, column))
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
        _ => {
            let known = NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(rest)).map(|(_, code)| *code);
            known.or_else(|| mouse(rest))?
        }
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
        [] => format!("unknown key {shown:?}; valid: {VALID}; pass text as input"),
        some => {
            format!("unknown key {shown:?}; did you mean {}? valid: {VALID}; pass text as input", some.join(", "))
        }
    }
}

/// The number of letters to add, remove or change.
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

/// The control character of a key.
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
    /// The bytes that a terminal sends in these modes; an error says why there are none.
    pub fn bytes(&self, modes: Modes) -> Result<Vec<u8>, String> {
        // xterm's number for the modifiers; 1 is none.
        let modifiers = 1 + u8::from(self.shift) + 2 * u8::from(self.meta) + 4 * u8::from(self.ctrl);
        if let Some(bytes) = self.kitty(modes.kitty, modifiers) {
            return Ok(bytes);
        }
        Ok(match self.code {
            Code::Cursor(end) if modifiers > 1 => format!("\x1b[1;{modifiers}{}", char::from(end)).into_bytes(),
            Code::Cursor(end) => vec![0x1b, if modes.application_cursor { b'O' } else { b'[' }, end],
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
            Code::Mouse(button, row, column) => return press(button + 4 * (modifiers - 1), (row, column), modes),
        })
    }

    /// The bytes for a program that has enabled the kitty keyboard protocol's disambiguation (flag 1) or reporting of
    /// all keys (flag 8): <https://sw.kovidgoyal.net/kitty/keyboard-protocol/>. `None` if they are the same as without
    /// it.
    fn kitty(&self, flags: u8, modifiers: u8) -> Option<Vec<u8>> {
        let (tells_apart, reports_all) = (flags & 1 != 0, flags & 8 != 0);
        if !tells_apart && !reports_all {
            return None;
        }
        let number = match self.code {
            Code::Escape => 27,
            Code::Enter if reports_all || modifiers > 1 => 13,
            Code::Tab if reports_all || modifiers > 1 => 9,
            Code::Backspace if reports_all || modifiers > 1 => 127,
            Code::Char(c) if reports_all || self.ctrl || self.meta => u32::from(c.to_ascii_lowercase()),
            _ => return None,
        };
        let is_upper = matches!(self.code, Code::Char(c) if c.is_ascii_uppercase() && !self.shift);
        let modifiers = modifiers + u8::from(is_upper);
        let bytes = if modifiers > 1 { format!("\x1b[{number};{modifiers}u") } else { format!("\x1b[{number}u") };
        Some(bytes.into_bytes())
    }

    /// Alt puts an escape character before the key.
    fn with_meta(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.meta {
            bytes.insert(0, 0x1b);
        }
        bytes
    }
}

/// A button's press, and its release; the wheel has no release.
fn press(button: u8, (row, column): (u16, u16), modes: Modes) -> Result<Vec<u8>, String> {
    if !modes.mouse {
        return Err("the program does not use the mouse; use other keys".to_owned());
    }
    let is_wheel = button & 64 != 0;
    if modes.sgr_mouse {
        let release = if is_wheel { String::new() } else { format!("\x1b[<{button};{column};{row}m") };
        return Ok(format!("\x1b[<{button};{column};{row}M{release}").into_bytes());
    }
    // X10's form: each number in one byte, from 32.
    let byte = |number: u16| {
        let byte = u8::try_from(number).ok().and_then(|number| number.checked_add(32));
        byte.ok_or_else(|| "the program's mouse protocol ends at row and column 223".to_owned())
    };
    let (x, y) = (byte(column)?, byte(row)?);
    let mut bytes = vec![0x1b, b'[', b'M', button + 32, x, y];
    if !is_wheel {
        // This form does not say which button was released.
        bytes.extend([0x1b, b'[', b'M', (button & !3 | 3) + 32, x, y]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str) -> Vec<u8> {
        typed_in(name, Modes::default())
    }

    fn typed_in(name: &str, modes: Modes) -> Vec<u8> {
        let keys = parse(name).expect("a valid name");
        keys.iter().flat_map(|k| k.bytes(modes).expect("typed")).collect()
    }

    #[test]
    // promise: screen-4
    fn names_of_keys_become_the_bytes_that_xterm_sends() {
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
            ("Down*3", "\x1b[B\x1b[B\x1b[B"),
            ("<C-x*2>y", "\x18\x18y"),
            ("**2", "**"),
            ("*", "*"),
            ("Control+Page_Up", "\x1b[5;5~"),
            ("arrowleft", "\x1b[D"),
        ] {
            assert_eq!(typed(name), bytes.as_bytes(), "{name}");
        }
    }

    #[test]
    fn only_unmodified_cursor_keys_depend_on_the_cursor_mode() {
        let modes = Modes { application_cursor: true, ..Modes::default() };
        let in_application_mode = |name: &str| typed_in(name, modes);
        assert_eq!(in_application_mode("Up"), b"\x1bOA");
        assert_eq!(in_application_mode("Home"), b"\x1bOH");
        assert_eq!(in_application_mode("S-Up"), b"\x1b[1;2A");
        assert_eq!(in_application_mode("PageUp"), b"\x1b[5~");
    }

    #[test]
    // promise: screen-4
    fn a_program_with_the_kitty_protocol_can_distinguish_keys() {
        let apart = Modes { kitty: 1, ..Modes::default() };
        for (name, bytes) in [
            ("Escape", "\x1b[27u"),
            ("C-i", "\x1b[105;5u"),
            ("Tab", "\t"),
            ("S-Tab", "\x1b[9;2u"),
            ("M-X", "\x1b[120;4u"),
            ("Enter", "\r"),
            ("x", "x"),
            ("Up", "\x1b[A"),
        ] {
            assert_eq!(typed_in(name, apart), bytes.as_bytes(), "{name}");
        }
        let all = Modes { kitty: 8, ..Modes::default() };
        assert_eq!(typed_in("xX<Enter>".replace("xX", "x<S-x>").as_str(), all), b"\x1b[120u\x1b[120;2u\x1b[13u");
    }

    #[test]
    // promise: screen-4
    fn the_mouse_is_pressed_and_released_in_the_form_that_the_program_asked_for() {
        let sgr = Modes { mouse: true, sgr_mouse: true, ..Modes::default() };
        assert_eq!(typed_in("Click:5,10", sgr), b"\x1b[<0;10;5M\x1b[<0;10;5m");
        assert_eq!(typed_in("C-WheelDown:1,300", sgr), b"\x1b[<81;300;1M");
        let old = Modes { mouse: true, ..Modes::default() };
        assert_eq!(typed_in("RightClick:5,10", old), b"\x1b[M\"*%\x1b[M#*%");
        let key = parse("Click:5,300").expect("valid")[0];
        let too_far = Err("the program's mouse protocol ends at row and column 223".to_owned());
        assert_eq!([key.bytes(old), parse("Click:65530,1").expect("valid")[0].bytes(old)], [too_far.clone(), too_far]);
        assert_eq!(typed_in("Click:223,223", old), b"\x1b[M \xff\xff\x1b[M#\xff\xff");
        let none = Err("the program does not use the mouse; use other keys".to_owned());
        assert_eq!(key.bytes(Modes::default()), none);
    }

    #[test]
    fn a_list_with_text_in_it_is_written_as_one_name() {
        let joined = |names: &[&str]| with_text(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        for (names, one, bytes) in [
            (&["hello", "Enter"][..], "hello<Enter>", "hello\r"),
            (&["dd", "x", "a<b>", "Down*2"], "ddxa<b><Down*2>", "ddxab\x1b[B\x1b[B"),
            (&["dd", "<Esc>:wq<CR>"], "dd<Esc>:wq<CR>", "dd\x1b:wq\r"),
            (&["if a<b", "<C-w>", "<"], "if a<lt>b<C-w><lt>", "if a<b\x17<"),
        ] {
            assert_eq!(joined(names).unwrap_or_default(), one, "{names:?}");
            assert_eq!(typed(one), bytes.as_bytes(), "{names:?}");
        }
        for names in [&["hello"][..], &["Up", "x"], &["dd", "<nokey>"], &[]] {
            assert_eq!(joined(names), None, "{names:?}");
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_the_nearest() {
        let error = parse("Entr").expect_err("no such key");
        assert_eq!(error, format!("unknown key \"Entr\"; did you mean Enter? valid: {VALID}; pass text as input"));
        let far = parse("hello world").expect_err("text is not a key");
        assert_eq!(far, format!("unknown key \"hello world\"; valid: {VALID}; pass text as input"));
        for bad in ["", "C-", "X-c", "C-é", "<nokey>", "F13", "Up*0", "Up*1001", "Click:0,1", "Click:5"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
