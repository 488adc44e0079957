//! Parses output: bytes to boundaries, screen and text. No I/O, no clock, cannot fail.
//!
//! A session's output is one long run of bytes in its journal; this crate interprets them. Every part is fed
//! consecutive chunks, cut anywhere, and gives the same result for any cuts.
//!
//! ```text
//!  bytes ─► Scanner ──► markers ─► Boundaries ◄─ records     where commands start and end
//!              │  └───► queries, modes, title                what the server must answer and know
//!              └──────► strip                                what a viewer may see
//!  bytes ─► Screen                                           the contents of the screen now, and a snapshot of it
//!  bytes ─► Transcript ─► Text                               what a person would have read
//! ```
//!
//! * [`scan`] is the only part that reads every byte of every live session, so it is the cheap one.
//! * [`plain_runs`] says of which output a screen keeps only the last rows.
//! * [`boundary`] trusts a marker only together with its record, which came over a socket that output cannot reach.
//! * [`viewer_terminal`] is for output shown in a person's own terminal: its changes there are undone afterwards;
//!   [`line_text`] is for output written to a pipe as text, line by line.
//! * [`quote`] makes foreign text safe to print in a line.
//! * [`screen`] and [`transcript`] hide the emulators they wrap (`alacritty_terminal`, `avt`): no type of theirs is in
//!   this crate's interface.
//!
//! Positions are journal offsets as plain `u64`: the journal has a newtype of its own, and this crate does not know it.
//! All three parsers agree on control sequences because one module, `sequence`, splits them off.

pub mod boundary;
mod hidden_text;
pub mod line_text;
pub mod painted;
pub mod plain_runs;
mod query;
pub mod quote;
pub mod scan;
pub mod screen;
mod sequence;
mod text_cut;
pub mod transcript;
mod utf8;
pub mod viewer_terminal;

pub use boundary::{Boundaries, Boundary, Flags, Record, parse_record};
pub use hidden_text::{HiddenText, unseen};
pub use line_text::LineText;
pub use painted::PaintedText;
pub use plain_runs::PlainRun;
pub use query::{Colour, ModeState, Query, Terminator};
pub use scan::{MarkerKind, Modes, Nonce, Part, ScanEvent, Scanner, strip};
pub use screen::{Cursor, Screen, Span};
pub use sequence::SEQUENCE_BYTES_MAX;
pub use text_cut::{rest_of_unfinished, unfinished_text};
pub use transcript::{Text, Transcript, render};
pub use utf8::unfinished_character;
pub use viewer_terminal::{Changes, OneScreen, ScreenOnly};

// An actor owns these and may move between threads.
const _: fn() = || {
    fn can_move<T: Send + 'static>() {}
    can_move::<(Scanner, Boundaries, Screen, Transcript)>();
};
