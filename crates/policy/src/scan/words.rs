//! The words of a text: quotes, escapes, and what a dollar sign or a backquote begins.

use super::{DEPTH_MAX, End, Scanner, is_meta, script};
use crate::words::Word;

impl Scanner<'_> {
    /// Reads a word, or passes a character that begins none.
    pub(super) fn word_or_bump(&mut self) {
        match self.peek() {
            Some(c) if !is_meta(c) => drop(self.word(false)),
            Some('(') => self.group(),
            _ => self.pass(1),
        }
    }

    /// Reads a word. Of a program the file name is enough.
    pub(super) fn word(&mut self, is_program: bool) -> Word {
        let mut text = String::new();
        let (mut is_known, mut known_from) = (true, 0);
        while let Some(c) = self.peek() {
            let before = self.at;
            match c {
                c if is_meta(c) => break,
                '\\' => {
                    self.bump();
                    match self.bump() {
                        Some('\n') => {}
                        Some(c) => text.push(c),
                        None => self.broken(),
                    }
                }
                '\'' => {
                    self.bump();
                    loop {
                        match self.bump() {
                            Some('\'') => break,
                            Some(c) => text.push(c),
                            None => break self.broken(),
                        }
                    }
                }
                '"' => is_known &= self.double_quoted(&mut text),
                '$' => is_known &= self.dollar(&mut text, false),
                '`' => {
                    self.backquoted();
                    is_known = false;
                }
                '*' | '?' => {
                    self.bump();
                    is_known = false;
                }
                '[' => {
                    self.bump();
                    text.push(c);
                    is_known &= self.peek().is_none_or(is_meta);
                }
                _ => {
                    self.bump();
                    text.push(c);
                }
            }
            if !is_known && known_from == 0 {
                known_from = text.len().max(1);
            }
            debug_assert!(self.at > before, "a word goes on");
        }
        if is_known {
            return Word::Literal(text);
        }
        // Behind the last slash nothing of `$HOME/bin/rm` is unknown.
        match text.get(known_from.min(text.len())..).and_then(|known| known.rsplit_once('/')) {
            Some((_, name)) if is_program && !name.is_empty() => Word::Literal(name.to_owned()),
            _ => Word::Unknown,
        }
    }

    /// Reads what is between double quotes; whether it is known.
    pub(super) fn double_quoted(&mut self, text: &mut String) -> bool {
        self.bump();
        let mut is_known = true;
        loop {
            match self.peek() {
                None => {
                    self.broken();
                    return is_known;
                }
                Some('"') => {
                    self.bump();
                    return is_known;
                }
                Some('\\') => {
                    self.bump();
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(c) if "$`\"\\".contains(c) => text.push(c),
                        Some(c) => text.extend(['\\', c]),
                    }
                }
                Some('$') => is_known &= self.dollar(text, true),
                Some('`') => {
                    self.backquoted();
                    is_known = false;
                }
                Some(c) => {
                    self.bump();
                    text.push(c);
                }
            }
        }
    }

    /// Reads what a dollar sign begins; whether its text is known.
    pub(super) fn dollar(&mut self, text: &mut String, is_quoted: bool) -> bool {
        self.bump();
        match self.peek() {
            Some('(') => {
                if self.ahead(1) == Some('(')
                    && let Some(end) = self.arithmetic_end(self.at + 2)
                {
                    self.at += 2;
                    self.expansions_until(end);
                    self.at = (end + 2).min(self.chars.len());
                } else {
                    self.bump();
                    self.list(End::Parenthesis);
                }
                false
            }
            Some('{') => {
                self.braced();
                false
            }
            Some('\'') if !is_quoted => {
                self.bump();
                self.escaped(text);
                true
            }
            // A text to be translated.
            Some('"') if !is_quoted => true,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.bump();
                }
                false
            }
            Some(c) if "@*#?-$!0123456789".contains(c) => {
                self.bump();
                false
            }
            _ => {
                text.push('$');
                true
            }
        }
    }

    /// `${…}`
    fn braced(&mut self) {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.give_up();
        }
        self.bump();
        let mut unused = String::new();
        loop {
            match self.peek() {
                None => {
                    self.broken();
                    break;
                }
                Some('}') => {
                    self.bump();
                    break;
                }
                Some('\\') => self.pass(2),
                Some('\'') => {
                    self.bump();
                    while self.peek().is_some_and(|c| c != '\'') {
                        self.bump();
                    }
                    self.bump();
                }
                Some('"') => _ = self.double_quoted(&mut unused),
                Some('$') => _ = self.dollar(&mut unused, false),
                Some('`') => self.backquoted(),
                Some(_) => self.pass(1),
            }
        }
        self.depth -= 1;
    }

    /// `` `…` ``, whose text loses one level of backslashes.
    pub(super) fn backquoted(&mut self) {
        self.bump();
        let mut text = String::new();
        loop {
            match self.bump() {
                None => break self.broken(),
                Some('`') => break,
                Some('\\') => match self.bump() {
                    Some(c) if "$`\\".contains(c) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                    None => {}
                },
                Some(c) => text.push(c),
            }
        }
        script(&text, self.depth + 1, self.all);
    }

    /// `$'…'`, behind its quote.
    fn escaped(&mut self, text: &mut String) {
        loop {
            match self.bump() {
                None => break self.broken(),
                Some('\'') => break,
                Some('\\') => {
                    let Some(c) = self.bump() else { continue };
                    let (digits, radix) = match c {
                        'x' => (2, 16),
                        'u' => (4, 16),
                        'U' => (8, 16),
                        '0'..='7' => {
                            self.at -= 1;
                            (3, 8)
                        }
                        'n' | 't' | 'r' | 'a' | 'b' | 'e' | 'E' | 'f' | 'v' => {
                            text.push(' ');
                            continue;
                        }
                        other => {
                            text.push(other);
                            continue;
                        }
                    };
                    let mut code = 0u32;
                    for _ in 0..digits {
                        let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
                        code = code.wrapping_mul(radix).wrapping_add(digit);
                        self.bump();
                    }
                    text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                }
                Some(c) => text.push(c),
            }
        }
    }

    /// The place of the `))` that ends an arithmetic expression from here on; none if it is a subshell in one.
    pub(super) fn arithmetic_end(&mut self, from: usize) -> Option<usize> {
        let (mut at, mut open) = (from, 0usize);
        let mut found = None;
        while let Some(c) = self.chars.get(at).copied() {
            match c {
                '\\' => at += 1,
                '\'' | '"' => {
                    at += 1;
                    while self.chars.get(at).is_some_and(|inside| *inside != c) {
                        at += 1 + usize::from(self.chars.get(at) == Some(&'\\') && c == '"');
                    }
                }
                '(' => open += 1,
                ')' if open == 0 => {
                    found = (self.chars.get(at + 1) == Some(&')')).then_some(at);
                    break;
                }
                ')' => open -= 1,
                _ => {}
            }
            at += 1;
        }
        self.charge(at.saturating_sub(from));
        found
    }

    /// Reads text up to a place in which only substitutions are commands.
    pub(super) fn expansions_until(&mut self, end: usize) {
        let mut unused = String::new();
        while self.at < end {
            match self.peek() {
                None => return,
                Some('\\') => self.pass(2),
                Some('$') => _ = self.dollar(&mut unused, true),
                Some('`') => self.backquoted(),
                Some(_) => self.pass(1),
            }
        }
    }
}
