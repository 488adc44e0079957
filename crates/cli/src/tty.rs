//! This process's terminal: its size, raw mode, and output on it; raw mode and output are undone on every exit path.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{self, BufRead, Read, Write};

use api::Dimensions;
use rustix::process::getpgrp;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use terminal::{Changes, ScreenOnly};

use crate::exit::Failure;
use crate::print;

/// Clears the terminal and puts the cursor at its top.
pub const CLEAR: &str = "\x1b[H\x1b[2J";

/// The size of the terminal behind stdout, if there is one.
pub fn size() -> Option<Dimensions> {
    let size = tcgetwinsize(stdout()).ok().filter(|s| s.ws_col > 0 && s.ws_row > 0)?;
    Some(Dimensions { cols: size.ws_col, rows: size.ws_row })
}

/// Whether output is shown on a terminal.
pub fn is_shown() -> bool {
    isatty(stdout())
}

/// Whether output has colours: on a terminal that knows some, unless the person wants none (no-color.org).
pub fn has_colours() -> bool {
    let is = |name, unwanted: &dyn Fn(&OsStr) -> bool| std::env::var_os(name).is_some_and(|value| unwanted(&value));
    is_shown() && !is("NO_COLOR", &|value| !value.is_empty()) && !is("TERM", &|value| value == "dumb")
}

/// Whether a person can type and read.
pub fn is_interactive() -> bool {
    isatty(stdin()) && isatty(stdout())
}

/// Whether this process may read the keyboard: a background job of a shell is stopped when it tries.
pub fn is_in_foreground() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

/// Raw mode; dropping it restores the terminal, also when a panic unwinds.
#[derive(Debug)]
pub struct Raw {
    before: Termios,
}

impl Raw {
    /// Switches it on.
    pub fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // For a closed terminal nothing can be done.
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.before);
    }
}

/// A terminal that does not show what is typed; dropping it restores the terminal.
#[derive(Debug)]
struct Hidden {
    before: Termios,
}

impl Hidden {
    /// C-c as a byte: it ends the line here, so that no signal leaves the terminal without echo.
    const INTERRUPT: u8 = 3;

    /// Stops the echo, if standard input is a terminal.
    fn enter() -> io::Result<Option<Self>> {
        if !isatty(stdin()) {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ISIG;
        hidden.local_modes |= LocalModes::ICANON;
        hidden.special_codes[SpecialCodeIndex::VEOL] = Self::INTERRUPT;
        tcsetattr(stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Some(Self { before }))
    }

    /// One line without its end; `None` after C-c, C-d or a hang-up.
    fn line(self) -> io::Result<Option<String>> {
        let mut typed = io::stdin().lock();
        // One read of a terminal is one line.
        let line = typed.fill_buf()?.to_vec();
        let Some(text) = line.strip_suffix(b"\n") else { return Ok(None) };
        String::from_utf8(text.to_vec()).map(Some).map_err(io::Error::other)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // For a closed terminal nothing can be done.
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.before);
    }
}

/// Output on this terminal. Dropping it undoes the output's changes: modes, colours, the alternate screen.
#[derive(Debug)]
pub struct Display {
    changes: RefCell<Changes>,
    /// Keeps output away from the person's clipboard, files and printer; `None` for raw output.
    screen_only: Option<RefCell<ScreenOnly>>,
    takes_screen: bool,
}

/// Enters the alternate screen: leaving it restores the earlier contents, with the cursor. The title is saved.
const TAKE_SCREEN: &[u8] = b"\x1b[22;2t\x1b[?1049h";
const GIVE_SCREEN_BACK: &[u8] = b"\x1b[?1049l\x1b[23;2t";

impl Display {
    /// At the cursor, like any program's output.
    pub fn inline(is_raw: bool) -> Self {
        Self { changes: RefCell::default(), screen_only: (!is_raw).then(RefCell::default), takes_screen: false }
    }

    /// On the alternate screen.
    pub fn whole(is_raw: bool) -> io::Result<Self> {
        write(TAKE_SCREEN)?;
        let mut whole = Self::inline(is_raw);
        whole.takes_screen = true;
        Ok(whole)
    }

    /// Shows the next bytes.
    pub fn show(&self, bytes: &[u8]) -> io::Result<()> {
        let filtered = self.screen_only.as_ref().map(|only| only.borrow_mut().feed(bytes));
        let shown = filtered.as_deref().unwrap_or(bytes);
        self.changes.borrow_mut().feed(shown);
        write(shown)
    }

    /// Replaces the whole screen.
    pub fn paint(&self, screen: &[u8]) -> io::Result<()> {
        let undone = self.changes.borrow_mut().undo();
        write(&undone)?;
        self.show(&[b"\x1b[0m\x1b[H\x1b[2J", screen].concat())
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let undone = self.changes.borrow_mut().undo();
        let give_back = if self.takes_screen { GIVE_SCREEN_BACK } else { b"" };
        let all = [undone.as_slice(), give_back].concat();
        if !all.is_empty() {
            let _ = write(&all);
        }
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// More is read of no value; the server says how long one may be.
const READ_BYTES_MAX: u64 = 64 << 10;

/// A line that a person types unseen behind `prompt`; `None` if no terminal is there.
pub fn unseen_line(prompt: &str) -> Result<Option<String>, Failure> {
    let Some(terminal) = Hidden::enter()? else { return Ok(None) };
    print::lines(prompt);
    let line = terminal.line();
    print::lines("\n");
    line?.map(Some).ok_or_else(|| Failure::new("nothing was typed"))
}

/// Standard input without its last newline, or a line that a person types unseen behind `prompt`.
pub fn value(prompt: &str) -> Result<String, Failure> {
    if let Some(line) = unseen_line(prompt)? {
        return Ok(line);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    let mut value = String::from_utf8(bytes).map_err(|_| Failure::new("the value is not text (UTF-8): encode it"))?;
    if value.ends_with('\n') {
        value.pop();
    }
    if value.ends_with('\r') {
        value.pop();
    }
    Ok(value)
}
