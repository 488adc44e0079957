//! The terminal that a person sits at: its size, and raw mode that is undone on every way out.

use std::io::{self, Write};

use api::Dimensions;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// The size of the terminal behind stdout, if there is one.
pub fn size() -> Option<Dimensions> {
    let size = tcgetwinsize(stdout()).ok().filter(|s| s.ws_col > 0 && s.ws_row > 0)?;
    Some(Dimensions { cols: size.ws_col, rows: size.ws_row })
}

/// Whether a person can type and see.
pub fn is_interactive() -> bool {
    isatty(stdin()) && isatty(stdout())
}

/// What a program may have switched on and not off: the alternate screen, mouse reports, bracketed paste, application
/// keys, a hidden cursor, colours.
const RESET: &[u8] =
    b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[?25h\x1b[0m";

/// Raw mode; dropping it gives the terminal back as it was, also when a panic unwinds.
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
        let mut out = io::stdout().lock();
        // Nothing more can be done for a terminal that is gone.
        let _ = out.write_all(RESET).and_then(|()| out.flush());
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.before);
    }
}
