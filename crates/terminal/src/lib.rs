//! Bytes to boundaries, screen and text. No IO, no clock, cannot fail.
