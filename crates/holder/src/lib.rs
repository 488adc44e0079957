//! One PTY, its shell and its journal; the wire that a server speaks to it.
