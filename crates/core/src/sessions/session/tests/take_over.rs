//! Take-overs: who passes the gate, and that each ends.

use std::time::Duration;

use foreground::{Activity, Modes};
use proptest::prelude::*;
use tokio::sync::oneshot;
use wire::{FromHolder, HandoverMethod, ShownBy, Status, ToHolder};

use super::{NO_PROCESS, Rig, StepInput, sample, settle};
use crate::action::{ActionError, Hold, InputBytes, SessionEvent, TakeOverEnd, TargetShell};
use crate::principal::Typist;
use crate::sessions::session::requests::{NewInput, Request, Started, Typed, Typing};

/// Three clients; the last two differ only in their doors.
const CLIENTS: [(&str, bool); 3] = [("ann", false), ("bob", false), ("bob", true)];

fn typist(client: usize) -> Typist {
    let (name, is_tool) = CLIENTS[client];
    Typist { name: "me".to_owned(), client: Some(name.to_owned()), is_tool }
}

#[derive(Debug, Clone)]
enum Happening {
    Take {
        client: usize,
        seconds: u64,
        forces: bool,
        is_held: bool,
    },
    GiveBack {
        client: usize,
        forces: bool,
    },
    /// A connection of an earlier take ends.
    Drop(prop::sample::Index),
    Types {
        client: usize,
        patience: u64,
    },
    Runs {
        client: usize,
        patience: u64,
    },
    /// A waiting caller goes away.
    Leaves(prop::sample::Index),
    Later(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let client = || 0..CLIENTS.len();
    prop_oneof![
        3 => (client(), 1..20u64, any::<bool>(), any::<bool>())
            .prop_map(|(client, seconds, forces, is_held)| Happening::Take { client, seconds, forces, is_held }),
        1 => (client(), any::<bool>()).prop_map(|(client, forces)| Happening::GiveBack { client, forces }),
        1 => any::<prop::sample::Index>().prop_map(Happening::Drop),
        3 => (client(), prop_oneof![Just(0), 1..10u64]).prop_map(|(client, patience)| Happening::Types { client, patience }),
        2 => (client(), prop_oneof![Just(0), 1..10u64]).prop_map(|(client, patience)| Happening::Runs { client, patience }),
        1 => any::<prop::sample::Index>().prop_map(Happening::Leaves),
        2 => (1..8u64).prop_map(Happening::Later),
    ]
}

/// A caller that has no answer yet.
enum Caller {
    Types(oneshot::Receiver<Result<Typed, ActionError>>),
    Runs(oneshot::Receiver<Result<Started, ActionError>>),
}

impl Caller {
    /// The refusal, if it has come.
    fn refusal(&mut self) -> Option<ActionError> {
        match self {
            Self::Types(typed) => typed.try_recv().ok()?.err(),
            Self::Runs(started) => started.try_recv().ok()?.err(),
        }
    }
}

/// A request that waits, as the model knows it.
struct Waiting {
    client: usize,
    key: u8,
    until: u64,
    caller: Caller,
}

/// The model: seconds, the driver, until when, and the holds of a take-over that ends with them.
#[derive(Default)]
struct Model {
    now: u64,
    driver: Option<(usize, u64, Option<Vec<usize>>)>,
    holds: Vec<Option<Hold>>,
    waiting: Vec<Waiting>,
    keys: u8,
}

impl Model {
    fn is_driven_by_other(&self, client: usize) -> bool {
        self.driver.as_ref().is_some_and(|(driver, ..)| *driver != client)
    }

    /// Ends a take-over whose time is up, or whose holds have gone.
    fn settle(&mut self) {
        if let Some((_, until, holds)) = &mut self.driver {
            let is_left = holds.as_mut().is_some_and(|holds| {
                holds.retain(|hold| self.holds[*hold].is_some());
                holds.is_empty()
            });
            if is_left || self.now >= *until {
                self.driver = None;
            }
        }
    }
}

fn a_rig() -> Rig {
    let mut rig = Rig::new(HandoverMethod::Keys);
    rig.prompt(0, "first", 0);
    rig.publish();
    rig.receive(sample(Activity::Editor, Modes::default(), NO_PROCESS));
    rig.sent.clear();
    rig
}

/// A turn that the end of a connection or of a caller brings about.
fn turn(rig: &mut Rig) {
    let sent = settle(&mut rig.session, rig.now);
    rig.sent.extend(sent);
}

/// The keys of the requests that the holder was asked to perform, and has answered.
fn performed(rig: &mut Rig) -> Vec<u8> {
    let asked = |frame: ToHolder| match frame {
        ToHolder::Run { seq, key, .. } => Some((seq, key[0], Status::NotReady)),
        ToHolder::Input { seq, key, .. } => Some((seq, key[0], Status::Ok)),
        _ => None,
    };
    let asked: Vec<_> = rig.sent.drain(..).filter_map(asked).collect();
    for (seq, _, status) in &asked {
        rig.receive(FromHolder::Done { seq: *seq, status: *status, value: 1, shown_by: ShownBy::Unknown });
    }
    asked.into_iter().map(|(_, key, _)| key).collect()
}

/// The session has performed these requests now, and those that the end of a take-over has freed, and nothing else.
fn agree(rig: &mut Rig, model: &mut Model, mut expected: Vec<u8>) {
    model.settle();
    let driver = model.driver.as_ref().map(|(driver, ..)| *driver);
    let is_overdue = |waiting: &mut Waiting| driver.is_some() && model.now >= waiting.until;
    let overdue: Vec<_> = model.waiting.extract_if(.., is_overdue).collect();
    let is_free = |waiting: &mut Waiting| driver.is_none_or(|driver| driver == waiting.client);
    expected.extend(model.waiting.extract_if(.., is_free).map(|waiting| waiting.key));
    assert_eq!(performed(rig), expected);
    for mut waiting in overdue {
        assert!(matches!(waiting.caller.refusal(), Some(ActionError::Driven { .. })), "{}", waiting.client);
    }
    let shown = rig.session.cx.take_over.driver().map(|driver| driver.client.clone());
    assert_eq!(shown, model.driver.as_ref().map(|(driver, ..)| typist(*driver).client));
}

fn plays(happenings: &[Happening]) {
    let (mut rig, mut model) = (a_rig(), Model::default());
    for happening in happenings {
        let mut expected: Vec<u8> = Vec::new();
        match happening {
            Happening::Take { client, seconds, forces, is_held } => {
                let (hold, dropped) = is_held.then(Hold::new).unzip();
                let (reply, mut taken) = oneshot::channel();
                let (by, lasts) = (typist(*client), Duration::from_secs(*seconds));
                rig.request(Request::Take { by, lasts, forces: *forces, hold: dropped, reply });
                let is_taken = taken.try_recv().expect("an answer").is_ok();
                assert_eq!(is_taken, *forces || !model.is_driven_by_other(*client));
                if is_taken {
                    let number = model.holds.len();
                    let new = hold.is_some().then_some(number);
                    model.holds.push(hold);
                    let own = model.driver.take().filter(|(driver, ..)| driver == client);
                    let holds = match own.and_then(|(.., holds)| holds) {
                        Some(mut holds) => {
                            holds.extend(new);
                            Some(holds)
                        }
                        None => new.map(|new| vec![new]),
                    };
                    model.driver = Some((*client, model.now + seconds, holds));
                }
            }
            Happening::GiveBack { client, forces } => {
                let (reply, mut returned) = oneshot::channel();
                rig.request(Request::GiveBack { by: typist(*client), forces: *forces, reply });
                let is_returned = returned.try_recv().expect("an answer").is_ok();
                assert_eq!(is_returned, *forces || !model.is_driven_by_other(*client));
                if is_returned {
                    model.driver = None;
                }
            }
            Happening::Drop(which) => {
                if !model.holds.is_empty() {
                    let which = which.index(model.holds.len());
                    model.holds[which] = None;
                }
                turn(&mut rig);
            }
            Happening::Types { client, patience } | Happening::Runs { client, patience } => {
                model.keys += 1;
                let key = model.keys;
                let typing = Typing { by: typist(*client), patience: Duration::from_secs(*patience), caller: None };
                let mut caller = if matches!(happening, Happening::Types { .. }) {
                    let (typed, answer) = oneshot::channel();
                    let bytes = InputBytes::Raw(b"x".to_vec());
                    let (is_secret, meant_for, wait) = (false, None, None);
                    let input = NewInput { bytes, key: [key; 16], is_secret, meant_for, typing, wait, typed };
                    rig.request(Request::Input(input));
                    Caller::Types(answer)
                } else {
                    let (started, answer) = oneshot::channel();
                    rig.request(Request::Run {
                        text: b"true".to_vec(),
                        key: [key; 16],
                        patience_ms: 0,
                        wait: None,
                        shell: TargetShell::Own,
                        allowed_in: None,
                        typing,
                        started,
                    });
                    Caller::Runs(answer)
                };
                match (model.is_driven_by_other(*client), *patience) {
                    (false, _) => expected.push(key),
                    (true, 0) => assert!(matches!(caller.refusal(), Some(ActionError::Driven { .. }))),
                    (true, patience) => {
                        model.waiting.push(Waiting { client: *client, key, until: model.now + patience, caller });
                    }
                }
            }
            Happening::Leaves(which) => {
                if !model.waiting.is_empty() {
                    let which = which.index(model.waiting.len());
                    drop(model.waiting.remove(which));
                }
                turn(&mut rig);
            }
            Happening::Later(seconds) => {
                for _ in 0..*seconds {
                    model.now += 1;
                    rig.later(Duration::from_secs(1));
                    agree(&mut rig, &mut model, Vec::new());
                }
            }
        }
        agree(&mut rig, &mut model, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::cases(), ..ProptestConfig::default() })]

    #[test]
    // promise: view-7
    fn nothing_of_another_client_passes_while_somebody_drives(happenings in prop::collection::vec(happening(), 1..40)) {
        plays(&happenings);
    }
}

#[test]
// promise: view-7
fn viewers_are_told_once_who_drives_and_how_it_ends() {
    let mut rig = a_rig();
    let told = |rig: &mut Rig, input| {
        rig.session.step(rig.now, input);
        let told = |event: &SessionEvent| match event {
            SessionEvent::Taken(driver) => Some((driver.client.clone()?, None)),
            SessionEvent::Returned(driver, end) => Some((driver.client.clone()?, Some(*end))),
            _ => None,
        };
        rig.session.take_effects().notes.iter().filter_map(|noted| told(&noted.event)).collect::<Vec<_>>()
    };
    let take = |client, forces| {
        let (by, lasts, reply) = (typist(client), Duration::from_secs(10), oneshot::channel().0);
        StepInput::Request(Box::new(Request::Take { by, lasts, forces, hold: None, reply }))
    };
    let (ann, bob) = (|| "ann".to_owned(), || "bob".to_owned());
    assert_eq!(told(&mut rig, take(0, false)), [(ann(), None)]);
    assert_eq!(told(&mut rig, take(0, false)), [], "for longer");
    assert_eq!(told(&mut rig, take(1, false)), [], "refused");
    assert_eq!(told(&mut rig, take(1, true)), [(ann(), Some(TakeOverEnd::Forced)), (bob(), None)]);
    rig.now = rig.now.plus(Duration::from_secs(10));
    assert_eq!(told(&mut rig, StepInput::Time), [(bob(), Some(TakeOverEnd::TimedOut))]);
    assert_eq!(told(&mut rig, StepInput::Time), []);
}
