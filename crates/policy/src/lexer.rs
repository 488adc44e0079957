//! The strict lexer: the only reader of a command whose result can prove that it may run.
//!
//! It knows simple commands of plain words, joined by `;`, `&&`, `||`, `|` and line ends, and nothing else. Text that bash would
//! expand, redirect to a file, assign, define or take as a keyword is not an error but unproven. It is short so that it can be
//! read against bash's manual; every addition is a new way to be wrong.

use crate::words::Word;

/// The result of the lexer: the words of each command in order.
pub(crate) type Commands = Vec<Vec<Word>>;

/// Words that bash takes as its own at the beginning of a command.
const RESERVED: [&str; 20] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "function",
    "time", "select", "coproc", "!", "[[", "]]",
];

/// Where the lexer is between two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A command must begin: behind `&&`, `||` and `|`.
    Needed,
    /// A command may begin: at the start, and behind `;` and line ends.
    Possible,
    /// A word or a redirection of the command.
    Within,
}

/// Reads a command; otherwise why nothing can be proven of it.
pub(crate) fn prove(text: &str) -> Result<Commands, String> {
    let mut lexer = Lexer { rest: text, commands: Vec::new(), current: Vec::new(), has_redirection: false };
    let mut before = Before::Possible;
    loop {
        lexer.rest = lexer.rest.trim_start_matches([' ', '\t']);
        let Some(c) = lexer.rest.chars().next() else { break };
        before = match c {
            '\n' => {
                lexer.take("\n");
                if before == Before::Within {
                    lexer.end_command()?;
                }
                // A line can be broken behind an operator.
                if before == Before::Needed { Before::Needed } else { Before::Possible }
            }
            ';' if before == Before::Within => {
                lexer.take(";");
                lexer.end_command()?;
                Before::Possible
            }
            '&' | '|' if before == Before::Within && lexer.take_operator() => {
                lexer.end_command()?;
                Before::Needed
            }
            '&' | '<' | '>' | '0'..='9' if lexer.take_redirection()? => {
                lexer.has_redirection = true;
                Before::Within
            }
            ';' | '&' | '|' => return Err(format!("`{c}` is not the plain end of a command")),
            _ => {
                let word = lexer.word()?;
                lexer.push(word)?;
                Before::Within
            }
        };
    }
    match before {
        Before::Needed => return Err("it ends with an operator".to_owned()),
        Before::Within => lexer.end_command()?,
        Before::Possible => {}
    }
    Ok(lexer.commands)
}

struct Lexer<'a> {
    rest: &'a str,
    commands: Commands,
    current: Vec<Word>,
    has_redirection: bool,
}

impl Lexer<'_> {
    fn take(&mut self, prefix: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(prefix) else { return false };
        self.rest = rest;
        true
    }

    /// `&&`, `||` and `|`, but neither `|&` nor a `&` alone.
    fn take_operator(&mut self) -> bool {
        if self.rest.starts_with("|&") {
            return false;
        }
        self.take("&&") || self.take("||") || self.take("|")
    }

    /// A redirection that changes no file: to or from `/dev/null`, or to another descriptor. False if none begins here.
    fn take_redirection(&mut self) -> Result<bool, String> {
        let digits = self.rest.chars().take_while(char::is_ascii_digit).count();
        let (number, behind) = self.rest.split_at(digits);
        if !behind.starts_with(['<', '>']) && (digits > 0 || !behind.starts_with("&>")) {
            return Ok(false);
        }
        let refused = || format!("it redirects to a file: {behind}");
        if !matches!(number, "" | "0" | "1" | "2") {
            return Err(refused());
        }
        let place = ["&>>", "&>", ">>", ">|", "<", ">"].iter().find_map(|sign| behind.strip_prefix(sign));
        let place = place.ok_or_else(refused)?;
        // `>&2`, directly before the end of a word.
        let copied = ["&1", "&2"].iter().find_map(|copy| place.strip_prefix(copy));
        let is_of_descriptor = behind.starts_with('>') && !behind.starts_with(">>") && !behind.starts_with(">|");
        let rest = match copied {
            Some(rest) if is_of_descriptor => rest,
            _ => place.trim_start_matches([' ', '\t']).strip_prefix("/dev/null").ok_or_else(refused)?,
        };
        if !rest.is_empty() && !rest.starts_with([' ', '\t', '\n', ';', '|', '&']) {
            return Err(refused());
        }
        self.rest = rest;
        Ok(true)
    }

    /// A word of bare characters and quoted parts.
    fn word(&mut self) -> Result<Word, String> {
        let mut text = String::new();
        let mut is_quoted = false;
        // The text before the first `*` or `?`.
        let mut before_glob = None;
        while let Some(c) = self.rest.chars().next() {
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' => break,
                // Digits before it, which would be a descriptor, are read as a redirection before a word begins.
                '<' | '>' if is_quoted || !text.is_empty() => break,
                '\'' | '"' => {
                    is_quoted = true;
                    self.quoted(c, &mut text)?;
                    continue;
                }
                '*' | '?' => {
                    before_glob.get_or_insert_with(|| text.clone());
                    text.push(c);
                }
                c if is_bare(c) => text.push(c),
                other => return Err(format!("`{other}` has a special meaning in bash")),
            }
            self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        }
        if self.current.is_empty() {
            check_program(&text, is_quoted, before_glob.is_some())?;
        }
        Ok(match before_glob {
            Some(prefix) => Word::Glob(prefix),
            None => Word::Literal(text),
        })
    }

    /// Reads the text between quotes: in single ones anything, in double ones nothing that bash would expand.
    fn quoted(&mut self, quote: char, text: &mut String) -> Result<(), String> {
        let inside = self.rest.get(1..).unwrap_or_default();
        let (inside, behind) = inside.split_once(quote).ok_or_else(|| format!("a {quote} is not closed"))?;
        // Within quotes the history is expanded line by line, and so is what a terminal would type.
        let special: &[char] = if quote == '"' { &['$', '`', '\\', '!', '\n'] } else { &['\n'] };
        if let Some(found) = inside.chars().find(|c| special.contains(c)) {
            let shown = if found == '\n' { "a line end".to_owned() } else { format!("`{found}`") };
            return Err(format!("{shown} is inside {quote}…{quote}"));
        }
        text.push_str(inside);
        self.rest = behind;
        Ok(())
    }

    fn push(&mut self, word: Word) -> Result<(), String> {
        if self.current.is_empty() && self.has_redirection {
            return Err("a redirection precedes the program".to_owned());
        }
        self.current.push(word);
        Ok(())
    }

    fn end_command(&mut self) -> Result<(), String> {
        if self.current.is_empty() {
            return Err("a redirection has no program".to_owned());
        }
        self.has_redirection = false;
        self.commands.push(std::mem::take(&mut self.current));
        Ok(())
    }
}

/// The characters that mean nothing but themselves, wherever they stand in an argument.
fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c)
}

/// A program is named by a plain word: no quotes, no pattern, no assignment, no job, no keyword.
fn check_program(text: &str, is_quoted: bool, is_glob: bool) -> Result<(), String> {
    if is_quoted || is_glob {
        return Err("the program is not named plainly".to_owned());
    }
    if text.contains('=') {
        return Err("a variable is set".to_owned());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_+./-".contains(c);
    if text != ":" && !text.chars().all(is_plain) {
        return Err("the program is not named plainly".to_owned());
    }
    if RESERVED.contains(&text) {
        return Err(format!("`{text}` is a keyword of bash"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<Vec<String>>, String> {
        let said = |word: Word| match word {
            Word::Literal(text) => text,
            Word::Glob(prefix) => format!("{prefix}…"),
            Word::Unknown => "unknown".to_owned(),
        };
        Ok(prove(text)?.into_iter().map(|words| words.into_iter().map(said).collect()).collect())
    }

    #[test]
    // promise: policy-2
    fn plain_commands_are_read_word_by_word() {
        for (text, expected) in [
            ("ls -la", "ls -la"),
            ("  ls\t-l  ", "ls -l"),
            ("git commit -m 'a b'\"c d\"e", "git commit -m a bc de"),
            ("ls; pwd;", "ls / pwd"),
            ("cd a && make || echo 'no $x' | cat", "cd a / make / echo no $x / cat"),
            ("ls\n\npwd\n", "ls / pwd"),
            ("ls &&\n pwd", "ls / pwd"),
            ("make 2>&1 | tail -5", "make / tail -5"),
            ("grep -r x . 2>/dev/null", "grep -r x ."),
            ("ls >/dev/null 2>&1; pwd", "ls / pwd"),
            ("ls &>/dev/null && pwd > /dev/null", "ls / pwd"),
            ("cat </dev/null", "cat"),
            ("wc -l src/*.rs", "wc -l src/…"),
            ("find . -name '*.rs'", "find . -name *.rs"),
            ("head -1 2x", "head -1 2x"),
            ("echo a2>&1", "echo a2"),
            ("ls>/dev/null&&pwd", "ls / pwd"),
            ("ls&>/dev/null", "ls"),
            (": && true", ": / true"),
            ("", ""),
            ("g++ -o a a.c", "g++ -o a a.c"),
        ] {
            let read = words(text).expect(text);
            let read: Vec<_> = read.into_iter().map(|words| words.join(" ")).collect();
            assert_eq!(read.join(" / "), expected, "{text}");
        }
    }

    #[test]
    // promise: policy-2
    fn a_text_with_a_special_meaning_in_bash_is_not_proven() {
        let shapes = r#"ls $(rm x)|ls `rm x`|ls $x|ls "$x"|ls ${x}|ls $'a'|ls \
-l|tr\
m|true;\ true|ls > x|ls >> x|ls 2> x|ls >&x|ls >&2x|ls >& 2|ls > /dev/nullx|ls > /dev/null$(rm)|ls < x|cat << E|cat <<< x|ls <(rm)|ls 3>&1
|ls 1>&-|ls &|ls & rm|ls |& rm|ls && && rm|ls ;; rm|; ls|&& ls|| ls|ls &&|ls ||( ls )|{ ls; }|! ls|time ls|if true|PATH=x ls|x=1|ls;x=1|a+=1
|'ls'|"ls"|l's'|ls*|*|l?|[ -f x ]|~/x|ls ~|ls ~root|ls {a,b}|ls [ab]|ls #x|ls !!|ls "!x"|ls ^a^b|'a|"a|ls 'a|ls a\b|ls "a\b"|function f|select x
|coproc ls|[[ a ]]|ls a(b)|f() ls|>/dev/null|>/dev/null ls|2>&1 ls|%1|a,b|a:b|ls é|echo$|true$|ls 12>&1|ls 01>/dev/null|ls &>|ls <&1|ls <>/dev/null|ls 2>&1x"#;
        let mut refused = 0;
        // A shape may hold `|`: it is split where a new one begins in the list, so that parts are shapes, too.
        for shape in shapes.split('|').filter(|shape| !shape.trim().is_empty()) {
            let plain = ["ls ", " rm", " ls", "& rm", " rm "];
            if plain.contains(&shape) {
                continue;
            }
            refused += usize::from(prove(shape).is_err());
            assert!(prove(shape).is_err(), "{shape:?} {:?}", prove(shape));
        }
        assert!(refused > 80, "{refused}");
        for shape in
            ["ls |& rm", "ls ||", "ls || ", "| ls", "|| ls", "echo 'a\nb'", "echo \"a\nb\"", "ls\u{b}rm", "ls |\n| rm"]
        {
            assert!(prove(shape).is_err(), "{shape:?}");
        }
    }
}
