//! Temporary refusals of the kernel end no session.

use crate::rig::Held;

#[test]
// promise: crash-6
fn a_poll_that_fails_for_lack_of_memory_ends_no_session() {
    for errno in ["ENOMEM", "EAGAIN"] {
        let log = tempfile::NamedTempFile::new().unwrap();
        let log = log.path().to_str().unwrap();
        let refuses = format!("inject=poll,ppoll:error={errno}:when=3+2");
        let behind = ["strace", "-o", log, "-e", "trace=poll,ppoll", "-e", &refuses];
        let mut held = Held::behind(&behind, "for i in 1 2 3 4 5 6 7 8 9; do echo $i; done; echo END; read rest");
        held.shows("END");
        held.call().greets(false);
        assert!(std::fs::read_to_string(log).unwrap().contains("(INJECTED)"), "nothing was refused");
    }
}
