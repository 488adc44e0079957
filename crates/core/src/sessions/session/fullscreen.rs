//! Distinguishes the output that a full-screen program paints from text.

use std::ops::Range;

/// The screen that is painted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Painted {
    /// The alternate screen, which disappears with its program.
    Alternate,
    /// The main screen, where the paint remains.
    Main {
        /// The process group that paints.
        painter: u32,
    },
}

/// The ranges of painted output in a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fullscreen {
    /// All output from this offset on is paint.
    now: Option<(u64, Painted)>,
    /// The newest finished range; its last bytes may not be paint.
    last: Option<(Range<u64>, Painted)>,
}

impl Fullscreen {
    /// Output up to `end` was read; `main_from` is where painting on the main screen began, if it did.
    pub(super) fn on_output(
        &mut self,
        end: u64,
        is_alternate: bool,
        main_from: Option<u64>,
        group: impl FnOnce() -> Option<u32>,
    ) {
        let canvas = match (main_from, self.now) {
            (Some(_), Some((_, Painted::Main { painter }))) => Some(Painted::Main { painter }),
            (Some(_), _) => Some(Painted::Main { painter: group().unwrap_or_default() }),
            (None, _) => is_alternate.then_some(Painted::Alternate),
        };
        let Some(canvas) = canvas else {
            if let Some((from, canvas)) = self.now.take() {
                self.last = Some((from..end, canvas));
            }
            return;
        };
        let from = self.now.map(|(from, _)| from).or(main_from).unwrap_or(end);
        self.now = Some((from, canvas));
    }

    /// Another process group has the terminal: painting on the main screen has ended. Output up to `end` was read; behind it
    /// may come what the program did as it left.
    pub(super) fn is_left_to(&mut self, group: u32, end: u64) -> bool {
        let left = self.now.take_if(|(_, canvas)| matches!(canvas, Painted::Main { painter } if *painter != group));
        let Some((from, canvas)) = left else { return false };
        self.last = Some((from..end + 1, canvas));
        true
    }

    pub(super) fn is_on(&self) -> bool {
        self.now.is_some()
    }

    /// Whether all output from this offset on is paint.
    pub(crate) fn covers(&self, from: u64) -> bool {
        self.now.is_some_and(|(begins, _)| from >= begins)
    }

    /// The offset at which the painting on the main screen begins.
    pub(crate) fn main_from(&self) -> Option<u64> {
        self.now.and_then(|(from, canvas)| matches!(canvas, Painted::Main { .. }).then_some(from))
    }

    /// The screen that was painted on at this offset, if that range is finished.
    pub(crate) fn was_at(&self, offset: u64) -> Option<Painted> {
        self.last.as_ref().filter(|(range, _)| range.contains(&offset)).map(|(_, canvas)| *canvas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: screen-3
    fn paint_is_remembered_whether_its_last_output_or_the_next_program_is_seen_first() {
        let painted = Painted::Main { painter: 7 };
        let begun = || {
            let mut paint = Fullscreen::default();
            paint.on_output(150, false, Some(100), || Some(7));
            assert!(paint.covers(100) && !paint.is_left_to(7, 150));
            paint
        };
        let mut by_output = begun();
        by_output.on_output(180, false, None, || None);
        assert_eq!((by_output.was_at(150), by_output.is_on()), (Some(painted), false));
        // The shell has the terminal before the program's last output was read.
        let mut by_group = begun();
        assert!(by_group.is_left_to(1, 150));
        by_group.on_output(180, false, None, || None);
        assert_eq!(
            (by_group.was_at(100), by_group.was_at(150), by_group.is_on()),
            (Some(painted), Some(painted), false)
        );
        assert_eq!((by_group.was_at(99), by_group.was_at(151)), (None, None));
    }
}
