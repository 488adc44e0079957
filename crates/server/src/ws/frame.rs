//! The binary frames of `ptyd.v1`, both directions in one file; numbers are little-endian. docs/websocket.md describes
//! them, and the layout never changes under this name.

/// A frame from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromServer<'a> {
    /// Output.
    Data { from: u64, to: u64, bytes: &'a [u8] },
    /// The screen.
    Snapshot { at: u64, cols: u16, rows: u16, bytes: &'a [u8] },
    /// Output that is not sent.
    Gap { from: u64, to: u64 },
    /// Input up to this number was typed.
    Typed { seq: u64 },
}

const DATA: u8 = 0x01;
const SNAPSHOT: u8 = 0x02;
const GAP: u8 = 0x03;
const TYPED: u8 = 0x04;
const INPUT: u8 = 0x11;
const PARSED: u8 = 0x12;

impl FromServer<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        match *self {
            Self::Data { from, to, bytes } => {
                let parts: [&[u8]; 4] = [&[DATA], &from.to_le_bytes(), &to.to_le_bytes(), bytes];
                parts.concat()
            }
            Self::Snapshot { at, cols, rows, bytes } => {
                let parts: [&[u8]; 5] =
                    [&[SNAPSHOT], &at.to_le_bytes(), &cols.to_le_bytes(), &rows.to_le_bytes(), bytes];
                parts.concat()
            }
            Self::Gap { from, to } => {
                let parts: [&[u8]; 3] = [&[GAP], &from.to_le_bytes(), &to.to_le_bytes()];
                parts.concat()
            }
            Self::Typed { seq } => {
                let parts: [&[u8]; 2] = [&[TYPED], &seq.to_le_bytes()];
                parts.concat()
            }
        }
    }
}

/// A frame from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromClient<'a> {
    /// Type these bytes; the number increases with each input of this client.
    Input { seq: u64, bytes: &'a [u8] },
    /// The client has parsed everything up to this offset.
    Parsed { to: u64 },
}

impl<'a> FromClient<'a> {
    /// Decodes a frame; `None` for an unknown one.
    pub(super) fn decode(frame: &'a [u8]) -> Option<Self> {
        let (kind, rest) = frame.split_first()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*number);
        match *kind {
            INPUT => Some(Self::Input { seq: number, bytes: rest }),
            PARSED if rest.is_empty() => Some(Self::Parsed { to: number }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: view-4
    fn the_layout_never_changes() {
        let data = FromServer::Data { from: 1, to: 0x0203, bytes: b"ab" };
        assert_eq!(data.encode(), b"\x01\x01\0\0\0\0\0\0\0\x03\x02\0\0\0\0\0\0ab");
        let snapshot = FromServer::Snapshot { at: 5, cols: 0x0102, rows: 3, bytes: b"c" };
        assert_eq!(snapshot.encode(), b"\x02\x05\0\0\0\0\0\0\0\x02\x01\x03\0c");
        assert_eq!(FromServer::Gap { from: 1, to: 2 }.encode(), b"\x03\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0");
        assert_eq!(FromServer::Typed { seq: 9 }.encode(), b"\x04\x09\0\0\0\0\0\0\0");
        let input = FromClient::decode(b"\x11\x07\0\0\0\0\0\0\0ls\r");
        assert_eq!(input, Some(FromClient::Input { seq: 7, bytes: b"ls\r" }));
        assert_eq!(FromClient::decode(b"\x12\x07\0\0\0\0\0\0\0"), Some(FromClient::Parsed { to: 7 }));
    }

    #[test]
    // promise: view-4
    fn a_malformed_frame_is_refused() {
        for bad in [b"".as_slice(), b"\x11", b"\x11\0\0\0\0\0\0\0", b"\x12\0\0\0\0\0\0\0\0x", b"\x13\0\0\0\0\0\0\0\0"] {
            assert_eq!(FromClient::decode(bad), None, "{bad:?}");
        }
    }
}
