//! The output log and the events of one session: append, read, retain, recover. No async, no VT.
