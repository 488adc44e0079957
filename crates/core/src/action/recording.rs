//! Recordings of a session, which are read page by page.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A version of the asciicast format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastVersion {
    /// Times count from the beginning.
    V2,
    /// Times count from the previous event.
    V3,
}

/// A long text that is produced a page at a time, when the reader has taken the page before.
pub trait Pages: Send {
    /// The next page; `None` at the end. It blocks on files.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>>;
}

/// The pages of a recording, to be taken once.
#[derive(Clone)]
pub struct Recording(Arc<Mutex<Option<Box<dyn Pages>>>>);

impl Recording {
    /// Wraps these pages.
    pub fn new(pages: impl Pages + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(pages)))))
    }

    /// Gives the pages to the first caller.
    pub fn take(&self) -> Option<Box<dyn Pages>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recording")
    }
}
