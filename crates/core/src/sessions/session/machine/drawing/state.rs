//! The screen of a session, as far as it is drawn.

use tokio::sync::oneshot;

use crate::sessions::render::drawn_screen::DrawnScreen;

/// The screen, and the task that draws it ahead.
#[derive(Default)]
pub(crate) struct Drawing {
    pub(in crate::sessions::session) screen: Option<Box<DrawnScreen>>,
    /// Somebody has looked at the screen, and may know it.
    pub(super) was_seen: bool,
    /// The screen that a task draws.
    pub(in crate::sessions::session) ahead: Option<oneshot::Receiver<Box<DrawnScreen>>>,
    /// The last task has failed: there is no other one.
    pub(super) has_failed: bool,
}

impl Drawing {
    /// The output so far is no longer what will be drawn.
    pub(in crate::sessions::session) fn discard(&mut self) {
        *self = Self::default();
    }

    /// The terminal has another size. A screen that nobody has seen is drawn anew in this size.
    pub(in crate::sessions::session) fn resize(&mut self, cols: u16, rows: u16) {
        match &mut self.screen {
            Some(drawn) if self.was_seen => {
                drawn.screen.resize(cols, rows);
                self.ahead = None;
            }
            _ => self.discard(),
        }
    }

    /// Waits until the task has ended, and takes its screen if none is farther.
    pub(in crate::sessions::session) async fn is_ahead(&mut self) {
        let Some(ahead) = &mut self.ahead else { return std::future::pending().await };
        let ahead = ahead.await;
        self.take(ahead.ok());
    }

    /// Takes the screen of a task that has ended, if none is farther. A task that failed has none.
    fn take(&mut self, ahead: Option<Box<DrawnScreen>>) {
        (self.ahead, self.has_failed) = (None, ahead.is_none());
        if let Some(ahead) = ahead
            && self.screen.as_ref().is_none_or(|drawn| drawn.at < ahead.at)
        {
            self.screen = Some(ahead);
        }
    }
}
