//! The stage that makes text of what a terminal would show.

use journal::{MaskedText, Masks};
use terminal::Transcript;

/// The text of output, and what it does not show as it was printed.
pub(super) struct Text {
    pub(super) text: MaskedText,
    pub(super) escaped: u64,
    pub(super) crlf_lines: u64,
}

/// The text of output, which begins with the paint of a program that uses the whole screen, or with none. A secret with
/// colours or cursor movements in it can be recognised only here.
pub(super) fn plain(bytes: &[u8], cols: u16, in_paint: bool, masks: &Masks) -> Text {
    let mut transcript = Transcript::new(cols);
    if in_paint {
        transcript.feed(b"\x1b[?1049h");
    }
    transcript.feed(bytes);
    let terminal::Text { text, escaped, crlf_lines } = transcript.finish();
    Text { text: masks.text(text), escaped, crlf_lines }
}
