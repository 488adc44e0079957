//! Bytes that wait to be written, taken from the front without moving the rest each time.

/// Bytes in their order.
#[derive(Debug, Default)]
pub(super) struct WriteBuffer {
    bytes: Vec<u8>,
    sent: usize,
}

impl WriteBuffer {
    /// Adds bytes that end with their newline.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a line.
    pub fn line(&mut self, line: &[u8]) {
        self.push(line);
        self.bytes.push(b'\n');
    }

    /// What is not yet written.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// So much of it was written. The memory is given back when half of it is, so no byte moves more than once or twice.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent * 2 >= self.bytes.len() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// How much is not yet written.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether all is written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets it.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
