//! The stage that makes text of what a terminal would show.

use journal::Masks;
use terminal::{Text, Transcript};

/// The text of output, which begins with the paint of a program that uses the whole screen, or with none. A secret that has colours or
/// movements of the cursor within it is one only here.
pub(super) fn plain(bytes: &[u8], cols: u16, in_paint: bool, masks: Option<&Masks>) -> Text {
    let mut transcript = Transcript::new(cols);
    if in_paint {
        transcript.feed(b"\x1b[?1049h");
    }
    transcript.feed(bytes);
    let mut text = transcript.finish();
    if let Some(masks) = masks {
        text.text = masks.masked_text(text.text);
    }
    text
}
