//! The output from which text is made, and the hand-overs in it.

use journal::Reader;
use terminal::HiddenText;

use super::handover::Handovers;
use super::paint::{Text, plain};
use crate::host::holders::MaskedFolder;

/// The output to render, with everything that rendering needs.
#[derive(Debug)]
pub(crate) struct TextSource<'a> {
    pub(crate) folder: &'a MaskedFolder,
    pub(crate) reader: &'a Reader,
    pub(crate) handovers: Handovers,
    pub(crate) cols: u16,
    /// The range begins while a program uses the whole screen.
    pub(crate) in_paint: bool,
}

impl TextSource<'_> {
    /// Renders bytes of the output: hand-overs, then paint, then hidden text.
    pub(super) fn side(&mut self, bytes: &[u8], from: u64) -> std::io::Result<TextSide> {
        let cuts = self.handovers.cuts(self.folder, self.reader, from, from + bytes.len() as u64)?;
        let bytes = cuts.apply(bytes, from);
        Ok(TextSide {
            text: plain(&bytes, self.cols, self.in_paint, self.folder.masks()),
            unseen: terminal::unseen(&bytes),
        })
    }
}

/// A side of the text, with the facts about it.
pub(super) struct TextSide {
    pub(super) text: Text,
    pub(super) unseen: HiddenText,
}
