//! The session after a pause of the whole machine: its clock jumps, and its holder was paused, too.

use std::time::Duration;

use foreground::{Activity, Modes};
use tokio::sync::oneshot;
use wire::{FromHolder, HandoverMethod, ToHolder};

use super::{NO_PROCESS, Rig, sample};
use crate::action::{Limit, Limits};
use crate::sessions::session::requests::Request;
use crate::sessions::session_metadata::SessionMetadata;

const PAUSE: Duration = Duration::from_secs(3_600);

fn with_limits(limits: Limits) -> Rig {
    let meta = SessionMetadata { owner: "ada".to_owned(), limits, ..SessionMetadata::default() };
    let mut rig = Rig::of(HandoverMethod::Keys, meta.encode());
    rig.prompt(0, "x", 0);
    rig.publish();
    rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
    rig
}

fn hits(rig: &Rig) -> Vec<Limit> {
    rig.session.cx.timeline.hits().iter().map(|hit| hit.limit).collect()
}

fn terminations(rig: &Rig) -> usize {
    rig.sent.iter().filter(|frame| matches!(frame, ToHolder::Terminate { .. })).count()
}

fn pings(rig: &Rig) -> usize {
    rig.sent.iter().filter(|frame| matches!(frame, ToHolder::Ping { .. })).count()
}

#[test]
// promise: stop-4
fn a_session_is_not_inactive_while_the_machine_is_paused() {
    let timeout = Duration::from_secs(30);
    let mut rig = with_limits(Limits { inactivity: Some(timeout), ..Limits::default() });
    rig.later(timeout / 2);
    rig.pause(PAUSE);
    assert_eq!(terminations(&rig), 0, "nobody could use it");
    rig.later(timeout - Duration::from_secs(1));
    assert_eq!(terminations(&rig), 0);
    rig.later(Duration::from_secs(1));
    assert_eq!(terminations(&rig), 1);
}

#[test]
fn a_command_has_its_time_after_a_pause() {
    let time = Duration::from_secs(30);
    let mut rig = with_limits(Limits { command_time: Some(time), ..Limits::default() });
    rig.accept(1, 1, wire::Key::default(), b"make");
    rig.begin(1);
    rig.publish();
    rig.receive(sample(Activity::Busy, Modes::default(), 0));
    rig.later(time / 2);
    rig.pause(PAUSE);
    assert_eq!(hits(&rig), [], "it could not run");
    rig.later(time - Duration::from_secs(1));
    assert_eq!(hits(&rig), []);
    rig.later(Duration::from_secs(1));
    assert_eq!(hits(&rig), [Limit::CommandSeconds]);
}

#[test]
fn a_holder_that_was_paused_with_the_server_has_its_time_to_answer() {
    for pinged in [false, true] {
        let mut rig = with_limits(Limits::default());
        let (reply, mut resized) = oneshot::channel();
        rig.request(Request::Resize { cols: 90, rows: 30, reply });
        if pinged {
            rig.later(crate::limits::HOLDER_PROBE_AFTER);
        }
        rig.pause(PAUSE);
        assert_eq!(pings(&rig), 1 + usize::from(pinged), "it is asked once more");
        assert!(resized.try_recv().is_err(), "the request is not given up");
        let seq =
            rig.sent.iter().find_map(|frame| if let ToHolder::Resize { seq, .. } = frame { Some(*seq) } else { None });
        let seq = seq.expect("sent");
        rig.receive(FromHolder::Done { seq, status: wire::Status::Ok, value: 0, shown_by: wire::ShownBy::Unknown });
        assert!(matches!(resized.try_recv(), Ok(Ok(()))), "it is done");
    }
}
