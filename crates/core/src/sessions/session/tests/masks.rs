//! The masks of a session after rendering: a program paints its secret in pieces.

use tokio::sync::oneshot;
use wire::HandoverMethod;

use super::Rig;
use crate::action::pattern::tests::compiled;
use crate::action::{EndedBy, Wait};
use crate::sessions::session::requests::Request;
use crate::sessions::session_metadata::{GivenSecrets, SessionMetadata};

#[test]
// promise: secret-1
fn a_secret_painted_in_pieces_is_masked_in_rows_spans_title_and_matches() {
    let variables = vec![("TOKEN".to_owned(), "hunter2-the-secret".to_owned())];
    let secrets = GivenSecrets { variables, ..GivenSecrets::default() };
    let meta = SessionMetadata { owner: "ada".to_owned(), secrets, ..SessionMetadata::default() };
    let mut rig = Rig::of(HandoverMethod::Keys, meta.encode());
    rig.write("\x1b]2;of hunter2\x01-the-secret\x07é \x1b[7mit: hunter2-\x1b[1mthe-secret\x1b[0m!\r\n".as_bytes());
    rig.publish();

    let (reply, mut picture) = oneshot::channel();
    rig.request(Request::Picture(reply));
    let screen = picture.try_recv().expect("drawn").screen;
    let stars = "*".repeat(18);
    assert_eq!(screen.rows[0], *format!("é it: {stars}!"));
    assert_eq!(screen.inverse.iter().map(|span| screen.text_of(span)).collect::<Vec<_>>(), [format!("it: {stars}")]);
    assert_eq!(screen.title, *format!("of {stars}"));
    let ansi = String::from_utf8(screen.ansi).expect("text");
    assert!(
        ansi.starts_with(&format!(
            "\x1bc\x1b]2;of {stars}\x1b\\\x1b[1;1Hé \x1b[0;7mit: ********\x1b[0;1;7m**********\x1b[0m!"
        )),
        "{ansi:?}"
    );

    let (reply, mut wait) = oneshot::channel();
    let pattern = Some(compiled("it: .*!").expect("valid"));
    let wait_for = Wait { pattern, ..Wait::at_most(std::time::Duration::from_secs(9)) };
    rig.request(Request::Wait { wait: wait_for, command: None, from: Some(0), reply });
    let finished = wait.try_recv().expect("it has matched");
    assert_eq!((finished.ended_by, finished.matched.as_deref()), (EndedBy::Matched, Some(&*format!("it: {stars}!"))));
}
