//! The stage that makes text of what a terminal would show.

use terminal::{Text, Transcript};

/// The text of output, which begins with the paint of a program that uses the whole screen, or with none.
pub(super) fn plain(bytes: &[u8], cols: u16, in_paint: bool) -> Text {
    let mut transcript = Transcript::new(cols);
    if in_paint {
        transcript.feed(b"\x1b[?1049h");
    }
    transcript.feed(bytes);
    transcript.finish()
}
