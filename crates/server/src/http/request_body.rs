//! Request bodies: limits on size, shape and time, checked before a body is parsed.
//!
//! A body costs its sender nothing, but its reader memory and time, so bodies being received are counted per principal:
//! one that fills its share is refused, without effect on the others. A body is read here before its handler runs; a
//! large one is checked and parsed in its principal's lane.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::timeout;

use ptyd_core::lane::{Lane, Lanes};
use ptyd_core::limits::{
    BODIES_ARRIVING_MAX, BODIES_BYTES_MAX, BODY_BYTES_MAX, BODY_DEPTH_MAX, BODY_PLAIN_BYTES_MAX, BODY_TIMEOUT,
    BODY_VALUES_MAX,
};
use ptyd_core::per_principal::PerPrincipal;

/// How much of a refused body is still read, how long its sender may fall silent meanwhile, and how long that takes in all. A
/// sender that is silent for a second, or slower than five, may lose its refusal.
const LINGER_BYTES: usize = 2 * BODY_BYTES_MAX;
const LINGER_SILENT: Duration = Duration::from_secs(1);
const LINGER: Duration = Duration::from_secs(5);

/// Why a body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotTaken {
    /// It has more bytes than allowed.
    #[error("the body of this request may have at most {0} bytes")]
    TooLong(usize),
    /// Parsed, it would take many times its size.
    #[error(
        "a body may have at most {BODY_VALUES_MAX} JSON values, in at most {BODY_DEPTH_MAX} levels; send a long text \
         as one string"
    )]
    TooMany,
    /// It did not arrive in time.
    #[error("the body did not arrive within {} s", BODY_TIMEOUT.as_secs())]
    Late,
    /// The principal sends too many at once.
    #[error(
        "too many request bodies at once: one principal may send at most {BODIES_ARRIVING_MAX}, with \
         {BODIES_BYTES_MAX} bytes in total; retry when one of the requests has been answered"
    )]
    Busy,
    /// Its sender disconnected.
    #[error("the body ended early")]
    Broken,
}

/// The shares of all principals.
#[derive(Debug, Default)]
pub(crate) struct RequestBodies {
    shares: PerPrincipal<Share>,
    lanes: Arc<Lanes>,
    /// That of the last request, whose principal has most often the next one, too: shares that nobody holds are made anew.
    last: Mutex<Option<(String, Arc<Share>)>>,
}

/// The share of one principal.
#[derive(Debug)]
struct Share {
    arriving: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    lane: Arc<Lane>,
    /// One refused body that is still being sent.
    lingering: Arc<Semaphore>,
}

/// Receives a request's body within its principal's share.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    share: Arc<Share>,
    most: usize,
    patience: Duration,
}

impl RequestBodies {
    /// The shares of principals with these lanes.
    pub(crate) fn in_lanes(lanes: Arc<Lanes>) -> Self {
        Self { lanes, ..Self::default() }
    }

    /// The inbox of this principal; one without the write scope has no long text to send.
    pub(crate) fn of(&self, name: &str, may_write: bool) -> Inbox {
        let most = if may_write { BODY_BYTES_MAX } else { BODY_PLAIN_BYTES_MAX };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let share = match &*last {
            Some((known, share)) if known == name => Arc::clone(share),
            _ => {
                let share = self.shares.of(name, || Share::in_lane(self.lanes.of(name)));
                *last = Some((name.to_owned(), Arc::clone(&share)));
                share
            }
        };
        Inbox { share, most, patience: BODY_TIMEOUT }
    }
}

impl Share {
    fn in_lane(lane: Arc<Lane>) -> Self {
        let of = |count| Arc::new(Semaphore::new(count));
        Self { arriving: of(BODIES_ARRIVING_MAX), bytes: of(BODIES_BYTES_MAX), lane, lingering: of(1) }
    }
}

impl Inbox {
    /// An inbox with a share of its own, for a body that is in memory already.
    pub(crate) fn alone() -> Self {
        Self { share: Arc::new(Share::in_lane(Arc::default())), most: BODY_BYTES_MAX, patience: BODY_TIMEOUT }
    }

    /// Reads the whole body, of at most `most` bytes. It counts against the principal's share until it is dropped.
    pub(crate) async fn take(&self, body: Body, most: usize) -> Result<Bytes, NotTaken> {
        let most = self.most.min(most);
        let mut body = body;
        let read = timeout(self.patience, self.read(&mut body, most)).await.unwrap_or(Err(NotTaken::Late));
        let held = read.inspect_err(|why| self.let_go(*why, body))?;
        Ok(Bytes::from_owner(held))
    }

    /// Processes a body of this size.
    pub(crate) async fn work<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        self.share.lane.work(bytes, work).await
    }

    /// The same for a future that works on its first poll and only waits afterwards.
    pub(crate) async fn work_at_first<T>(&self, bytes: usize, work: impl Future<Output = T>) -> T {
        self.share.lane.work_at_first(bytes, work).await
    }

    /// Reads a little more of a refused body and discards it: a client that is still sending reads the answer only
    /// afterwards, and not if its connection is reset. At most one body per principal at a time.
    fn let_go(&self, why: NotTaken, mut body: Body) {
        let place = Arc::clone(&self.share.lingering).try_acquire_owned();
        let (Ok(place), NotTaken::TooLong(_) | NotTaken::TooMany | NotTaken::Busy) = (place, why) else { return };
        tokio::spawn(async move {
            let rest = async {
                let mut taken = 0;
                while let Ok(Some(Ok(frame))) = timeout(LINGER_SILENT, body.frame()).await
                    && taken < LINGER_BYTES
                {
                    taken += frame.data_ref().map_or(0, Bytes::len);
                }
            };
            let _ = timeout(LINGER, rest).await;
            drop(place);
        });
    }

    async fn read(&self, body: &mut Body, most: usize) -> Result<Held, NotTaken> {
        let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if declared > most {
            return Err(NotTaken::TooLong(most));
        }
        let _place = permits(&self.share.arriving, 1)?;
        let mut held = Held { bytes: Vec::with_capacity(declared), room: permits(&self.share.bytes, declared)? };
        let (mut reserved, mut shape) = (declared, Shape::default());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| NotTaken::Broken)?.into_data() else { continue };
            let length = held.bytes.len() + data.len();
            if length > most {
                return Err(NotTaken::TooLong(most));
            }
            if length > reserved {
                held.room.merge(permits(&self.share.bytes, length - reserved)?);
                reserved = length;
            }
            let part = || {
                held.bytes.extend_from_slice(&data);
                shape.takes(&data)
            };
            if !self.work(data.len(), part).await {
                return Err(NotTaken::TooMany);
            }
        }
        Ok(held)
    }
}

fn permits(of: &Arc<Semaphore>, count: usize) -> Result<OwnedSemaphorePermit, NotTaken> {
    let count = u32::try_from(count).map_err(|_| NotTaken::Busy)?;
    Arc::clone(of).try_acquire_many_owned(count).map_err(|error| match error {
        TryAcquireError::NoPermits | TryAcquireError::Closed => NotTaken::Busy,
    })
}

/// A received body, and its part of the principal's share.
struct Held {
    bytes: Vec<u8>,
    room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts the values and the nesting of a JSON text before it is parsed: a parsed value takes some thirty times the two
/// bytes that its text may have. Invalid JSON is refused later, by the parser.
#[derive(Debug, Default)]
struct Shape {
    depth: usize,
    values: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Shape {
    /// Counts the next part of the text; false once it exceeds the limits.
    fn takes(&mut self, text: &[u8]) -> bool {
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            at += 1;
            if std::mem::take(&mut self.is_escaped) {
                continue;
            }
            if self.in_string {
                match byte {
                    b'"' => self.in_string = false,
                    b'\\' => self.is_escaped = true,
                    _ => at += memchr::memchr2(b'"', b'\\', &text[at..]).unwrap_or(text.len() - at),
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'[' | b'{' => {
                    self.depth += 1;
                    self.values += 1;
                }
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                b',' | b':' => self.values += 1,
                _ => {}
            }
            if self.depth > BODY_DEPTH_MAX || self.values > BODY_VALUES_MAX {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::sync::mpsc;

    /// A body whose parts come when they are sent, and whose length is unknown.
    struct Parts(mpsc::Receiver<Vec<u8>>);

    impl hyper::body::Body for Parts {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(cx).map(|part| part.map(|bytes| Ok(Frame::data(bytes.into()))))
        }
    }

    fn open() -> (mpsc::Sender<Vec<u8>>, Body) {
        let (sender, parts) = mpsc::channel(1);
        (sender, Body::new(Parts(parts)))
    }

    #[test]
    fn json_is_counted_before_it_is_made() {
        // The same wherever it is cut.
        let is_taken = |text: &[u8]| {
            let whole = Shape::default().takes(text);
            let mut shape = Shape::default();
            assert_eq!(text.chunks(7).all(|part| shape.takes(part)), whole);
            whole
        };
        let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
        assert!(is_taken(&nested(BODY_DEPTH_MAX)) && !is_taken(&nested(BODY_DEPTH_MAX + 1)));
        let list = |count: usize| [b"[0".to_vec(), b",0".repeat(count - 1), b"]".to_vec()].concat();
        assert!(is_taken(&list(BODY_VALUES_MAX)) && !is_taken(&list(BODY_VALUES_MAX + 1)));
        assert!(!is_taken(&[b"{".to_vec(), b"\"\":0,".repeat(BODY_VALUES_MAX), b"}".to_vec()].concat()));
        // Text is text, whatever it contains.
        let text = serde_json::to_vec(&"[{\"\\,:".repeat(BODY_VALUES_MAX)).expect("plain");
        assert!(is_taken(&text));
        let after = [text, b",0".repeat(BODY_VALUES_MAX + 1)].concat();
        assert!(!is_taken(&after));
        for open in [&b"\""[..], b"\"\\", b"\"\\\"", b"\\"] {
            assert!(is_taken(open), "{open:?}");
        }
    }

    #[tokio::test]
    async fn the_bound_of_a_body_depends_on_its_request_and_is_checked_before_the_body_arrives() {
        let bodies = RequestBodies::default();
        let long = || Body::from(vec![b' '; 11]);
        assert_eq!(bodies.of("ann", true).take(long(), 11).await, Ok(Bytes::from(vec![b' '; 11])));
        assert_eq!(bodies.of("ann", true).take(long(), 10).await, Err(NotTaken::TooLong(10)));
        let most = BODY_PLAIN_BYTES_MAX;
        let refused = bodies.of("eye", false).take(Body::from(vec![b' '; most + 1]), BODY_BYTES_MAX).await;
        assert_eq!(refused, Err(NotTaken::TooLong(most)));
        let (parts, body) = open();
        parts.send(vec![b' '; 11]).await.expect("room");
        assert_eq!(bodies.of("ann", true).take(body, 10).await, Err(NotTaken::TooLong(10)));
        assert_eq!(bodies.of("ann", true).take(Body::from("[".repeat(100)), 100).await, Err(NotTaken::TooMany));
    }

    #[tokio::test]
    async fn arriving_bodies_of_one_principal_are_bounded_and_count_only_for_it() {
        let bodies = RequestBodies::default();
        let ann = bodies.of("ann", true);
        let full = || Body::from(vec![b' '; BODY_BYTES_MAX]);
        let mut held = Vec::new();
        for _ in 0..BODIES_BYTES_MAX / BODY_BYTES_MAX {
            let Ok(body) = ann.read(&mut full(), BODY_BYTES_MAX).await else { panic!("there is room") };
            held.push(body);
        }
        assert_eq!(ann.take(Body::from("x"), 1).await, Err(NotTaken::Busy));
        assert_eq!(bodies.of("bob", true).take(Body::from("x"), 1).await, Ok(Bytes::from("x")));
        held.pop();
        assert_eq!(ann.take(Body::from("x"), 1).await, Ok(Bytes::from("x")));

        // The number of bodies that are on their way is bounded too, however few bytes have come of them.
        let (parts, arriving): (Vec<_>, Vec<_>) = (0..BODIES_ARRIVING_MAX).map(|_| open()).unzip();
        let carol = bodies.of("carol", true);
        let taking = |body| {
            let carol = carol.clone();
            tokio::spawn(async move { carol.take(body, 1).await })
        };
        let taking: Vec<_> = arriving.into_iter().map(taking).collect();
        while carol.share.arriving.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(carol.take(Body::from("x"), 1).await, Err(NotTaken::Busy));
        drop(parts);
        for taken in taking {
            assert_eq!(taken.await.expect("no panic"), Ok(Bytes::new()));
        }
        assert_eq!(carol.take(Body::from("x"), 1).await, Ok(Bytes::from("x")));
    }

    #[tokio::test]
    async fn a_body_that_never_arrives_is_abandoned() {
        let (_parts, body) = open();
        let inbox = Inbox { patience: Duration::from_millis(10), ..RequestBodies::default().of("ann", true) };
        assert_eq!(inbox.take(body, 1).await, Err(NotTaken::Late));
    }
}
