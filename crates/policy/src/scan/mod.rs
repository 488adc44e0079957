//! The scan: every command that can be found in a text before it runs, at any depth: in lists, loops, functions,
//! substitutions, here-documents, and in what other programs run.
//!
//! Its result only makes a verdict stricter, so where bash's grammar is subtle it finds too much rather than too little. It
//! takes bounded time and stack for any text: nesting and work have a limit, and what is beyond is not read.

mod words;

use crate::runners::{Inner, inner};
use crate::words::{Word, base_name};

/// The commands that were found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) commands: Vec<Vec<Word>>,
    /// Every quote and parenthesis was closed, and all was read.
    pub(crate) is_whole: bool,
}

/// How deep commands may be nested in each other.
const DEPTH_MAX: usize = 50;
/// How many characters are read altogether, also more than once.
const WORK_MAX: usize = 600_000;

/// Finds the commands of a text.
pub(crate) fn scan(text: &str) -> Scan {
    let mut all = All { found: Scan { commands: Vec::new(), is_whole: true }, work: WORK_MAX };
    script(text, 0, &mut all);
    all.found
}

struct All {
    found: Scan,
    work: usize,
}

fn script(text: &str, depth: usize, all: &mut All) {
    let mut scanner = Scanner::of(text.chars().collect(), depth, all);
    scanner.list(End::Text);
}

/// The end of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Parenthesis,
    /// `;;` or `esac`.
    CaseItem,
}

/// A here-document whose body has not come yet.
struct HereDocument {
    end: String,
    has_tabs: bool,
    is_quoted: bool,
    /// A shell reads it.
    is_script: bool,
}

struct Scanner<'a> {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    all: &'a mut All,
    here: Vec<HereDocument>,
    /// The last list ended with `esac`.
    has_esac: bool,
}

impl<'a> Scanner<'a> {
    fn of(chars: Vec<char>, depth: usize, all: &'a mut All) -> Self {
        let mut scanner = Self { chars, at: 0, depth, all, here: Vec::new(), has_esac: false };
        if depth > DEPTH_MAX {
            scanner.give_up();
        }
        scanner
    }

    // ---- characters ----

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        self.charge(1);
        Some(c)
    }

    fn pass(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    fn charge(&mut self, work: usize) {
        self.all.work = self.all.work.saturating_sub(work);
        if self.all.work == 0 {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.all.found.is_whole = false;
        self.at = self.chars.len();
    }

    fn broken(&mut self) {
        self.all.found.is_whole = false;
    }

    fn is_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(by, c)| self.ahead(by) == Some(c))
    }

    fn take(&mut self, text: &str) -> bool {
        let is_there = self.is_at(text);
        if is_there {
            self.pass(text.chars().count());
        }
        is_there
    }

    /// Passes blanks, broken lines and a comment.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.pass(1),
                Some('\\') if self.ahead(1) == Some('\n') => self.pass(2),
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                _ => return,
            }
        }
    }

    fn blanks_and_lines(&mut self) {
        self.blanks();
        while self.peek() == Some('\n') {
            self.bump();
            self.here_documents();
            self.blanks();
        }
    }

    /// The word that stands here, if it has nothing but plain characters.
    fn plain_word(&self) -> String {
        let is_plain = |c: &&char| !is_meta(**c) && !"'\"\\$`".contains(**c);
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let word: String = rest.iter().take_while(is_plain).take(64).collect();
        match self.ahead(word.chars().count()) {
            None => word,
            Some(c) if is_meta(c) => word,
            Some(_) => String::new(),
        }
    }

    // ---- lists ----

    fn list(&mut self, end: End) {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.give_up();
        }
        self.list_inside(end);
        self.depth -= 1;
    }

    fn list_inside(&mut self, end: End) {
        loop {
            self.blanks();
            let Some(c) = self.peek() else {
                if end != End::Text {
                    self.broken();
                }
                return;
            };
            match c {
                '\n' => {
                    self.bump();
                    self.here_documents();
                }
                ';' => {
                    self.bump();
                    let is_double = matches!(self.peek(), Some(';' | '&'));
                    if end == End::CaseItem && is_double {
                        while matches!(self.peek(), Some(';' | '&')) {
                            self.bump();
                        }
                        return;
                    }
                }
                '|' => self.pass(1),
                '&' if self.ahead(1) != Some('>') => self.pass(1),
                ')' => {
                    self.bump();
                    if end == End::Parenthesis {
                        return;
                    }
                    self.broken();
                }
                '(' => self.parenthesis(),
                _ => {
                    if self.keyword(end) {
                        return;
                    }
                }
            }
        }
    }

    /// `((…))` or a subshell.
    fn parenthesis(&mut self) {
        self.bump();
        if self.peek() == Some('(')
            && let Some(end) = self.arithmetic_end(self.at + 1)
        {
            self.at += 1;
            self.expansions_until(end);
            self.at = (end + 2).min(self.chars.len());
            return;
        }
        self.list(End::Parenthesis);
    }

    /// Reads what a keyword begins, or a simple command; whether the list has ended.
    fn keyword(&mut self, end: End) -> bool {
        let word = self.plain_word();
        match word.as_str() {
            "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "{" | "}" | "!" | "coproc" => {
                self.take(&word);
            }
            "time" => {
                self.take(&word);
                self.blanks();
                while matches!(self.plain_word().as_str(), "-p" | "--") {
                    self.take("-");
                    self.bump();
                    self.blanks();
                }
                // Without one it is a program.
                self.all.found.commands.push(vec![Word::Literal(word)]);
            }
            "for" | "select" => {
                self.take(&word);
                self.until_body();
            }
            "case" => {
                self.take(&word);
                self.case();
            }
            "esac" => {
                self.take(&word);
                self.has_esac = end == End::CaseItem;
                return self.has_esac;
            }
            "function" => {
                self.take(&word);
                self.blanks();
                self.word_or_bump();
                self.blanks();
                if self.take("(") {
                    self.blanks();
                    self.take(")");
                }
            }
            "[[" => {
                self.take(&word);
                self.condition();
            }
            _ => self.simple(),
        }
        false
    }

    /// The words between `for` and the end of its line.
    fn until_body(&mut self) {
        self.blanks();
        if self.is_at("((") {
            return self.parenthesis();
        }
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';') => return,
                _ if self.plain_word() == "do" => return,
                _ => self.word_or_bump(),
            }
        }
    }

    fn case(&mut self) {
        self.blanks();
        self.word_or_bump();
        self.blanks_and_lines();
        if !self.take("in") {
            return self.broken();
        }
        loop {
            self.blanks_and_lines();
            if self.plain_word() == "esac" {
                self.take("esac");
                return;
            }
            self.take("(");
            loop {
                self.blanks_and_lines();
                match self.peek() {
                    None => return self.broken(),
                    Some(')') => break,
                    _ => self.word_or_bump(),
                }
            }
            self.bump();
            self.list(End::CaseItem);
            if std::mem::take(&mut self.has_esac) {
                return;
            }
        }
    }

    fn condition(&mut self) {
        loop {
            self.blanks_and_lines();
            if self.peek().is_none() {
                return self.broken();
            }
            if self.plain_word() == "]]" {
                self.take("]]");
                return;
            }
            self.word_or_bump();
        }
    }

    // ---- simple commands ----

    fn simple(&mut self) {
        let mut words: Vec<Word> = Vec::new();
        let (documents, mut script_in) = (self.here.len(), Vec::new());
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')') => break,
                Some('&') if self.ahead(1) != Some('>') => break,
                Some('<' | '>' | '&') => self.redirection(&mut words, &mut script_in),
                Some('0'..='9') if self.is_descriptor() => self.redirection(&mut words, &mut script_in),
                Some('(') => {
                    let last = self.at.checked_sub(1).and_then(|at| self.chars.get(at)).copied();
                    if last.is_some_and(|c| "=?*+@!".contains(c)) {
                        self.group();
                    } else if words.len() == 1 {
                        // A function: its body comes next.
                        self.bump();
                        self.blanks();
                        if !self.take(")") {
                            self.broken();
                        }
                        return;
                    } else {
                        self.broken();
                        self.bump();
                    }
                }
                Some(_) if words.is_empty() && self.take_assignment() => {
                    if self.peek() == Some('(') {
                        self.group();
                    } else if self.peek().is_some_and(|c| !is_meta(c)) {
                        self.word(false);
                    }
                }
                Some(_) => {
                    let word = self.word(words.is_empty());
                    words.extend(braces(word));
                }
            }
        }
        if words.is_empty() {
            return;
        }
        let is_shell = words.first().and_then(Word::text).is_some_and(|program| {
            matches!(
                base_name(program),
                "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" | "mksh" | "rbash" | "sudo" | "env"
            )
        });
        for document in self.here.get_mut(documents..).unwrap_or_default() {
            document.is_script = is_shell;
        }
        if is_shell {
            for text in script_in {
                script(&text, self.depth + 1, self.all);
            }
        }
        record(words, self.depth, self.all);
    }

    /// `NAME=`, `NAME+=` or `NAME[…]=`.
    fn take_assignment(&mut self) -> bool {
        let mut at = self.at;
        let of = |at: usize| self.chars.get(at).copied();
        if !of(at).is_some_and(|c| c.is_ascii_alphabetic() || c == '_') {
            return false;
        }
        while of(at).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
            at += 1;
        }
        if of(at) == Some('[') {
            while of(at).is_some_and(|c| c != ']' && c != '\n') {
                at += 1;
            }
            at += 1;
        }
        at += usize::from(of(at) == Some('+'));
        if of(at) != Some('=') {
            return false;
        }
        // The brackets may hold a substitution.
        self.expansions_until(at);
        self.at = at + 1;
        true
    }

    /// The words between parentheses: of an array, or a pattern.
    fn group(&mut self) {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.give_up();
        }
        self.bump();
        loop {
            self.blanks_and_lines();
            match self.peek() {
                None => {
                    self.broken();
                    break;
                }
                Some(')') => {
                    self.bump();
                    break;
                }
                Some('(') => self.group(),
                _ => self.word_or_bump(),
            }
        }
        self.depth -= 1;
    }

    fn is_descriptor(&self) -> bool {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let behind = rest.iter().find(|c| !c.is_ascii_digit());
        matches!(behind, Some('<' | '>'))
    }

    fn redirection(&mut self, words: &mut Vec<Word>, script_in: &mut Vec<String>) {
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.bump();
        }
        if self.is_at("<(") || self.is_at(">(") {
            self.bump();
            self.bump();
            self.list(End::Parenthesis);
            words.push(Word::Unknown);
            return;
        }
        if self.take("<<<") {
            self.blanks();
            if let Word::Literal(text) = self.word(false) {
                script_in.push(text);
            }
            return;
        }
        if self.take("<<") {
            let has_tabs = self.take("-");
            self.blanks();
            let begin = self.at;
            let word = self.word(false);
            let written = self.chars.get(begin..self.at).unwrap_or_default();
            let is_quoted = written.iter().any(|c| "'\"\\".contains(*c));
            let end = word.text().map_or_else(|| written.iter().collect(), str::to_owned);
            self.here.push(HereDocument { end, has_tabs, is_quoted, is_script: false });
            return;
        }
        while matches!(self.peek(), Some('<' | '>' | '&' | '|')) {
            self.bump();
        }
        self.blanks();
        if self.is_at("<(") || self.is_at(">(") {
            return self.redirection(words, script_in);
        }
        if self.peek().is_some_and(|c| !is_meta(c)) {
            self.word(false);
        }
    }

    /// Reads the bodies of the here-documents that the line before has begun.
    fn here_documents(&mut self) {
        for document in std::mem::take(&mut self.here) {
            let mut body = String::new();
            loop {
                if self.peek().is_none() {
                    break;
                }
                let mut line = String::new();
                while let Some(c) = self.bump() {
                    if c == '\n' {
                        break;
                    }
                    line.push(c);
                }
                let shown = if document.has_tabs { line.trim_start_matches('\t') } else { line.as_str() };
                if shown == document.end {
                    break;
                }
                body.push_str(shown);
                body.push('\n');
            }
            if document.is_script {
                script(&body, self.depth + 1, self.all);
            }
            if !document.is_quoted {
                let chars: Vec<char> = body.chars().collect();
                let end = chars.len();
                Scanner::of(chars, self.depth + 1, self.all).expansions_until(end);
            }
        }
    }
}

/// Records a command, and what it runs.
fn record(words: Vec<Word>, depth: usize, all: &mut All) {
    all.work = all.work.saturating_sub(words.len());
    if depth > DEPTH_MAX || all.work == 0 {
        all.found.is_whole = false;
        return;
    }
    let inside = inner(&words);
    all.found.commands.push(words);
    for inner in inside {
        match inner {
            Inner::Command(words) if words.is_empty() => {}
            Inner::Command(words) => record(words, depth + 1, all),
            Inner::Script(text) => script(&text, depth + 1, all),
        }
    }
}

/// `{rm,-rf,x}` is several words.
fn braces(word: Word) -> Vec<Word> {
    let inside = word.text().and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
    match inside {
        Some(inside) if inside.contains(',') && !inside.contains(['{', '}']) => {
            inside.split(',').map(|part| Word::Literal(part.to_owned())).collect()
        }
        _ => vec![word],
    }
}

fn is_meta(c: char) -> bool {
    " \t\n;&|()<>".contains(c)
}

#[cfg(test)]
mod tests;
