//! A look at the screen costs what the screen costs: of much output, most is passed over or drawn ahead.

use std::fmt::Write as _;
use std::task::{Context, Waker};

use wire::{FromHolder, HandoverMethod};

use super::{Now, Record, Rig, Session, StepInput, handle, hello, open, settle};
use crate::sessions::render::drawn_screen::{DrawnOutput, DrawnScreen};
use crate::sessions::timeline::handover::RecentHandovers;

/// Output that nothing passes over.
fn painted(bytes: usize, last: &str) -> String {
    let mut all = String::with_capacity(bytes + 100);
    for n in 0.. {
        if all.len() >= bytes {
            break;
        }
        let _ = write!(all, "\x1b[{};{}H\x1b[3{}mpainted {n} and more of it", n % 24 + 1, n % 40 + 1, n % 8);
    }
    all + last
}

fn lines(bytes: usize, last: &str) -> String {
    (0..bytes / 32).fold(String::new(), |mut all, n| {
        let _ = write!(all, "line {n:023}\r\n");
        all
    }) + last
}

/// A holder prints this, and all is drawn ahead that will be.
fn prints(rig: &mut Rig, output: &str) {
    rig.write(output.as_bytes());
    rig.publish();
    draws_ahead(&mut rig.session, rig.now);
}

/// Tasks draw ahead as long as any begins.
fn draws_ahead(session: &mut Session, now: Now) {
    loop {
        let before = session.drawing.screen.as_ref().map(|drawn| drawn.at);
        settle(session, now);
        if session.drawing.screen.as_ref().map(|drawn| drawn.at) == before {
            return;
        }
    }
}

/// A look at the screen, which is that of all the output drawn in this size; and the bytes that it drew.
fn looks(session: &mut Session) -> u64 {
    let to = session.cx.timeline.output().scanner.position();
    let before = session.drawing.screen.as_ref().map_or(0, |drawn| drawn.drawn_bytes());
    let shown = session.drawing.screen_at(&session.cx, to).ansi();
    let after = session.drawing.screen.as_ref().map_or(0, |drawn| drawn.drawn_bytes());
    let (folder, reader) = (&session.cx.shared.folder, &session.cx.shared.reader);
    let mut whole = DrawnScreen::new(session.cx.timeline.cols(), session.cx.timeline.rows(), 0);
    let all = DrawnOutput { folder, reader, handovers: RecentHandovers::default(), runs: Vec::new() };
    whole.draw(&all, to, u64::MAX);
    assert!(shown == whole.screen.ansi(), "{}", String::from_utf8_lossy(&shown));
    after - before
}

const MIB: usize = 1 << 20;

#[test]
// promise: output-2
fn a_look_draws_a_bounded_part_of_any_output_after_a_restart_too() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    let mut drawn = Vec::new();
    for (printed, most) in [
        (lines(4 * MIB, "end"), MIB / 4),
        (painted(5 * MIB, "end"), 2 * MIB),
        (painted(MIB, "") + &lines(2 * MIB, "end"), 2 * MIB),
        (lines(MIB, "\x1b[?1049h") + &painted(5 * MIB, "end"), 2 * MIB),
        ("\x1b[?1049l".to_owned(), MIB / 4),
        // Nothing of this is passed over, which shows only when it is drawn.
        ("\x1b[2;9r".to_owned() + &lines(5 * MIB, "end"), 2 * MIB),
        ("\x1b[r\x1b[32m\r\n".to_owned() + &lines(5 * MIB, "end").replace("line", "\x1b[1mline"), 2 * MIB),
    ] {
        prints(&mut rig, &printed);
        let mut next = open(rig._folder.path(), rig.now);
        handle(&mut next, rig.now, vec![hello(rig.tail())]);
        draws_ahead(&mut next, rig.now);
        let counts = [looks(&mut rig.session), looks(&mut next)];
        drawn.push((counts, most as u64));
    }
    assert!(drawn.iter().all(|(counts, most)| counts.iter().all(|count| count <= most)), "{drawn:?}");
}

#[test]
fn a_screen_drawn_ahead_of_a_resize_is_drawn_anew_unless_it_was_seen() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    prints(&mut rig, &painted(3 * MIB, "end"));
    rig.record(&Record::Resized { cols: 60, rows: 20 });
    rig.publish();
    draws_ahead(&mut rig.session, rig.now);
    looks(&mut rig.session);
    let seen = rig.session.drawing.screen_now(&rig.session.cx).text();
    rig.record(&Record::Resized { cols: 60, rows: 22 });
    rig.publish();
    assert_eq!(
        rig.session.drawing.screen_now(&rig.session.cx).text()[..20],
        seen[..],
        "the one that was seen has only grown"
    );
}

#[test]
fn a_drawing_task_without_effect_is_not_repeated_and_a_look_draws_everything() {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.write(painted(3 * MIB, "end").as_bytes());
    let tail = rig.tail();
    let now = rig.now;
    let session = &mut rig.session;
    session.step(now, StepInput::Received(vec![FromHolder::Tail(tail)]));
    session.step(now, StepInput::Frames);
    while session.cx.is_behind() {
        session.step(now, StepInput::Unread);
    }
    session.step(now, StepInput::Settled);
    assert!(session.take_effects().draw.is_some(), "it is dropped, as if no thread could be started");
    poll_ahead(session);
    assert!(session.drawing.ahead.is_none());
    session.step(now, StepInput::Settled);
    assert!(session.take_effects().draw.is_none());
    assert!(looks(session) > 3 * MIB as u64 - 1);
}

/// The turn of the actor in which the task has ended.
pub(super) fn poll_ahead(session: &mut Session) {
    let mut ahead = std::pin::pin!(session.drawing.is_ahead());
    let _ = ahead.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}
