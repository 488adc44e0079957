//! Queries that programs send to the terminal, and our replies.
//!
//! The server answers each query once; a viewer's terminal must never see it, or the program would read two replies. A
//! reply never repeats a byte of the query's free text: it arrives as typed input, and printing a file must not be able
//! to type.

/// A query in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// DA1: the kind of terminal.
    PrimaryAttributes,
    /// DA2: the version of the terminal.
    SecondaryAttributes,
    /// DSR 5: the status.
    Status,
    /// CPR: the cursor's position.
    CursorPosition,
    /// DECXCPR: the cursor's position in DEC's form.
    ExtendedCursorPosition,
    /// XTVERSION: name and version of the terminal.
    Version,
    /// The kitty keyboard flags.
    KittyKeyboard,
    /// DECRQM: whether a mode is set.
    Mode {
        /// The mode's number.
        number: u16,
        /// Whether it is a DEC private mode (`CSI ? … $ p`), not an ANSI one.
        is_private: bool,
        /// The mode's state at the time of the query.
        state: ModeState,
    },
    /// OSC 4, 10, 11, 12: colours.
    Colours {
        /// The requested colours, in order.
        colours: Vec<Colour>,
        /// The terminator of the query, which the reply repeats.
        terminator: Terminator,
    },
    /// XTGETTCAP: a terminfo value.
    TerminfoValue,
    /// DECRQSS: the value of a setting.
    Setting,
    /// Size of the text area in pixels.
    SizeInPixels,
    /// Size of the text area in characters.
    SizeInCharacters,
}

/// The possible replies to DECRQM; the discriminant is the number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeState {
    /// A mode that the scanner does not track.
    Unknown = 0,
    /// The mode is set.
    Set = 1,
    /// The mode is reset.
    Reset = 2,
}

/// A colour that can be queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// OSC 10.
    Foreground,
    /// OSC 11.
    Background,
    /// OSC 12.
    Cursor,
    /// OSC 4 with an index.
    Palette(u8),
}

/// The end of a control string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminator {
    /// BEL.
    Bell,
    /// ESC \.
    St,
}

/// The assumed size of a cell, for programs that draw pictures.
const CELL_PIXELS: (u32, u32) = (8, 16);

impl Query {
    /// The bytes of the reply, possibly none.
    ///
    /// `cursor` is called only for cursor queries: (row, column), from 0. `size` is (columns, rows). The kitty keyboard
    /// query gets no reply: keys reach a program over several protocols, none of which supports kitty's, and programs
    /// conclude that from DA1 being answered first.
    pub fn answer(&self, cursor: impl FnOnce() -> (u16, u16), size: (u16, u16)) -> Vec<u8> {
        let (cols, rows) = (u32::from(size.0), u32::from(size.1));
        match self {
            // A VT220 with colours; vim and others read the second reply as "an xterm of 2012 or later".
            Self::PrimaryAttributes => b"\x1b[?62;22c".to_vec(),
            Self::SecondaryAttributes => b"\x1b[>0;276;0c".to_vec(),
            Self::Status => b"\x1b[0n".to_vec(),
            Self::CursorPosition => position("\x1b[", cursor()),
            Self::ExtendedCursorPosition => position("\x1b[?", cursor()),
            Self::Version => concat!("\x1bP>|ptyd(", env!("CARGO_PKG_VERSION"), ")\x1b\\").into(),
            Self::KittyKeyboard => Vec::new(),
            Self::Mode { number, is_private, state } => {
                let prefix = if *is_private { "?" } else { "" };
                format!("\x1b[{prefix}{number};{}$y", *state as u8).into_bytes()
            }
            Self::Colours { colours, terminator } => {
                colours.iter().flat_map(|colour| colour.answer(*terminator)).collect()
            }
            Self::TerminfoValue => b"\x1bP0+r\x1b\\".to_vec(),
            Self::Setting => b"\x1bP0$r\x1b\\".to_vec(),
            Self::SizeInPixels => {
                let (width, height) = (cols * CELL_PIXELS.0, rows * CELL_PIXELS.1);
                format!("\x1b[4;{height};{width}t").into_bytes()
            }
            Self::SizeInCharacters => format!("\x1b[8;{rows};{cols}t").into_bytes(),
        }
    }
}

fn position(introducer: &str, (row, col): (u16, u16)) -> Vec<u8> {
    let (row, col) = (u32::from(row) + 1, u32::from(col) + 1);
    format!("{introducer}{row};{col}R").into_bytes()
}

impl Colour {
    fn answer(self, terminator: Terminator) -> Vec<u8> {
        let (name, [red, green, blue]) = match self {
            Self::Foreground => ("10".to_owned(), [0xe5; 3]),
            Self::Background => ("11".to_owned(), [0x00; 3]),
            Self::Cursor => ("12".to_owned(), [0xe5; 3]),
            Self::Palette(index) => (format!("4;{index}"), palette(index)),
        };
        let end = match terminator {
            Terminator::Bell => "\x07",
            Terminator::St => "\x1b\\",
        };
        format!("\x1b]{name};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}{end}").into_bytes()
    }
}

/// The palette of an xterm: sixteen named colours, a cube of 6×6×6, and 24 greys.
fn palette(index: u8) -> [u8; 3] {
    match index {
        0..=15 => {
            let high = if index < 8 { 0xcd } else { 0xff };
            let channel = |bit: u8| if index & bit != 0 { high } else { 0x00 };
            match index {
                7 => [0xe5; 3],
                8 => [0x7f; 3],
                _ => [channel(1), channel(2), channel(4)],
            }
        }
        16..=231 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + step * 40 };
            let cube = index - 16;
            [level(cube / 36), level(cube / 6 % 6), level(cube % 6)]
        }
        232..=255 => [8 + (index - 232) * 10; 3],
    }
}
