//! A write buffer: bytes are taken from its front without moving the rest each time.

/// Bytes in order.
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

    /// The unwritten bytes.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Removes written bytes. Memory is freed when half of it was written, so each byte moves only once or twice.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent * 2 >= self.bytes.len() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// The number of unwritten bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether everything is written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all bytes.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
