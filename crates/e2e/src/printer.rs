//! A command that prints numbered lines, and the check that none of them is lost.

use api::{CommandExecution, CommandStatus, SessionStatus};

use crate::{Server, Session, seq};

/// Prints numbered lines at full speed until the file `stop` is there; ends with a code of its own. The last number
/// goes into a file, so that what must be in the journal is known without asking ptyd.
pub fn printer(number: usize) -> String {
    format!(
        "for ((i=1;;i++)); do echo $i; ((i%50)) || [[ ! -e stop ]] || break; done; echo $i > last{number}; (exit {number})"
    )
}

/// All properties of a printer that must hold once it was signalled to stop.
pub async fn check(server: &Server, number: usize, shell: &Session, printing: &CommandExecution) {
    let done = shell.end_of(printing).await;
    assert_eq!(
        (done.status, done.exit_code),
        (CommandStatus::Completed, i32::try_from(number).ok()),
        "session {number}"
    );
    let last = std::fs::read_to_string(server.home().file(&format!("last{number}"))).expect("written");
    let expected = seq(last.trim().parse().expect("a number"));
    let printed = shell.bytes_of(&done).await;
    assert!(printed == expected, "session {number}: {} bytes for {}", printed.len(), expected.len());
    assert_eq!(shell.look().await.status, SessionStatus::Running);
    assert_eq!(shell.gives("echo alive").await, (0, "alive\n".to_owned()));
}
