//! The directories that a server accepts as its own, and its errors about unusable files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use e2e::{Home, Server};

/// The words of a server that refuses to start in this home.
fn refusal(server: &Server) -> String {
    let ended = server.ptyd(&["serve"]).output().expect("ptyd");
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    String::from_utf8(ended.stderr).expect("text")
}

#[test]
// promise: access-2
fn a_state_directory_that_others_can_write_is_refused_with_a_remedy() {
    let server = Server::start_in(Home::make(), e2e::Start::default());
    let state = server.home().state();
    server.stop();
    fs::set_permissions(&state, Permissions::from_mode(0o777)).expect("ours");
    let said = refusal(&server);
    assert!(said.contains(&format!("chmod 700 {}", state.display())), "{said}");
    let doctor = server.ptyd(&["doctor"]).output().expect("ptyd");
    let told = String::from_utf8(doctor.stdout).expect("text");
    assert!(!doctor.status.success() && told.contains("can be written by others (mode 777)"), "{told}");
    fs::set_permissions(&state, Permissions::from_mode(0o700)).expect("ours");
    server.again();
}

#[test]
// promise: access-2
fn a_directory_in_the_state_directory_that_others_own_or_can_write_is_refused_with_a_remedy() {
    let server = Server::start_in(Home::make(), e2e::Start::default());
    let state = server.home().state();
    server.stop();
    for name in ["sessions", "conversations", "shell-integration"] {
        let folder = state.join(name);
        fs::create_dir_all(&folder).expect("ours");
        // Only root gives files away.
        if std::os::unix::fs::chown(&folder, Some(65_534), None).is_ok() {
            let said = refusal(&server);
            let words = format!("{} belongs to uid 65534", folder.display());
            assert!(said.contains(&words) && said.contains("chown -R"), "{name}: {said}");
            std::os::unix::fs::chown(&folder, Some(rustix::process::geteuid().as_raw()), None).expect("root may");
        } else {
            e2e::in_part("only root gives a directory away");
        }
    }
    let sessions = state.join("sessions");
    fs::set_permissions(&sessions, Permissions::from_mode(0o777)).expect("ours");
    let said = refusal(&server);
    assert!(said.contains(&format!("chmod 700 {}", sessions.display())), "{said}");
    fs::set_permissions(&sessions, Permissions::from_mode(0o700)).expect("ours");
    server.again();
}

#[test]
fn a_damaged_file_of_the_server_is_named_with_a_remedy() {
    let server = Server::start();
    let state = server.home().state();
    server.stop();
    let damaged = [("tokens.json", "[{", "revoked"), ("secret", "\u{1}\u{2}", "remove it"), ("token", "hi", "guessed")];
    for (name, text, remedy) in damaged {
        let path = state.join(name);
        let before = fs::read(&path).ok();
        fs::write(&path, text).expect("written");
        let said = refusal(&server);
        assert!(said.contains(&path.display().to_string()) && said.contains(remedy), "{said}");
        assert!(!said.contains("session could not be started"), "{said}");
        match before {
            Some(bytes) => fs::write(&path, bytes).expect("written"),
            None => fs::remove_file(&path).expect("ours"),
        }
    }
    server.again();
}
