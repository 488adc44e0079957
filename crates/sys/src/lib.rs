//! The OS edge: PTY, spawn, signals, sockets with credentials, /proc. The only crate with unsafe code.
