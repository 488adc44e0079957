//! A server of a user other than root.
//!
//! Where the tests run as root, the server is another user's, made of numbers alone: no account is needed or left.

use std::process::Command;

use rustix::process::geteuid;

use crate::{Binary, Home, Server, Start, copy_program};

/// The user that runs the server; its usual name is `nobody`.
pub const USER: &str = "65534";

/// The words before a program that make this user run it, in no group but one of the same number.
pub fn run_as(user: &str) -> [String; 5] {
    ["setpriv".into(), format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".into(), "--".into()]
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// A server of an ordinary user, whose home this is.
pub fn serve(home: Home) -> Server {
    if !is_root() {
        return Server::start_in(home, Start::default());
    }
    // The folders above the target folder may be closed to other users.
    let binary = home.file("ptyd");
    copy_program(Binary::find().path(), &binary);
    let status = Command::new("chown").args(["-R", &format!("{USER}:{USER}")]).arg(home.path()).status();
    assert!(status.is_ok_and(|status| status.success()), "root gives away what is root's");
    let behind = run_as(USER).map(Into::into).to_vec();
    Server::start_with(Binary::at(binary), home, Start { behind, ..Start::default() })
}
