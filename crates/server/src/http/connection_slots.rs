//! The places of one listener's connections: how many are open in all and of one address, and which one goes when there is no room.
//!
//! A connection that has not asked for anything yet is silent. A silent one costs its client nothing, so the oldest silent one makes room
//! for a newcomer: of the newcomer's own address if that has used up its share, else of the address that has the most.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The client as connections are counted: a host of IPv4, a network of IPv6, or all of a listener without addresses.
type Origin = Option<IpAddr>;

/// The origin of connections from this address. A host with one address of IPv6 has a network of them.
pub(super) fn origin(peer: Option<SocketAddr>) -> Origin {
    peer.map(|peer| match peer.ip().to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        ip @ IpAddr::V4(_) => ip,
    })
}

/// The places of one listener.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// In all, and of one origin.
    most: (usize, usize),
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    open: usize,
    origins: HashMap<Origin, Connections>,
    next: u64,
}

/// The connections of one origin.
#[derive(Debug, Default)]
struct Connections {
    open: usize,
    /// Those that are silent, oldest first, and how each is told to make room.
    silent: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    origin: Origin,
    number: u64,
    is_silent: AtomicBool,
}

impl Places {
    pub(super) fn new(in_all: usize, of_one: usize) -> Self {
        Self { most: (in_all, of_one), taken: Arc::default() }
    }

    /// A place for a connection of this origin, and what says that it must make room for another; `None` if there is none.
    pub(super) fn take(&self, origin: Origin) -> Option<(Arc<Place>, oneshot::Receiver<()>)> {
        let mut taken = self.locked();
        let own = taken.origins.get(&origin).map_or(0, |of| of.open);
        if origin.is_some() && own >= self.most.1 {
            taken.shed(origin)?;
        } else if taken.open >= self.most.0 {
            let most = taken.origins.iter().filter(|(_, of)| !of.silent.is_empty()).max_by_key(|(_, of)| of.open)?;
            let most = *most.0;
            taken.shed(most)?;
        }
        let number = taken.next;
        let (stays, gone) = oneshot::channel();
        (taken.open, taken.next) = (taken.open + 1, number + 1);
        let of = taken.origins.entry(origin).or_default();
        of.open += 1;
        of.silent.insert(number, stays);
        drop(taken);
        let place = Place { places: self.clone(), origin, number, is_silent: AtomicBool::new(true) };
        Some((Arc::new(place), gone))
    }

    fn locked(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Ends the oldest silent connection of this origin, whose place is free from now on.
    fn shed(&mut self, origin: Origin) -> Option<()> {
        let of = self.origins.get_mut(&origin)?;
        let (_, gone) = of.silent.pop_first()?;
        let _ = gone.send(());
        self.gone(origin);
        Some(())
    }

    fn gone(&mut self, origin: Origin) {
        self.open -= 1;
        if let Some(of) = self.origins.get_mut(&origin) {
            of.open -= 1;
            if of.open == 0 {
                self.origins.remove(&origin);
            }
        }
    }
}

impl Place {
    /// The connection has asked for something, and makes room for nobody any more, unless it has been told to.
    pub(super) fn heard(&self) {
        if !self.is_silent.load(Ordering::Relaxed) {
            return;
        }
        let mut taken = self.places.locked();
        if taken.origins.get_mut(&self.origin).is_some_and(|of| of.silent.remove(&self.number).is_some()) {
            self.is_silent.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.locked();
        let mut is_listed =
            || taken.origins.get_mut(&self.origin).is_some_and(|of| of.silent.remove(&self.number).is_some());
        // One that has made room has no place to give back.
        if !*self.is_silent.get_mut() || is_listed() {
            taken.gone(self.origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ip: &str) -> Origin {
        origin(Some(SocketAddr::new(ip.parse().expect("an address"), 1)))
    }

    /// Whether it was told to make room.
    fn is_told(gone: &mut oneshot::Receiver<()>) -> bool {
        gone.try_recv().is_ok()
    }

    #[test]
    // promise: rest-9
    fn an_origin_stays_within_its_share_and_its_silent_connections_close_first() {
        let places = Places::new(6, 4);
        let (one, two) = (of("127.0.0.1"), of("127.0.0.2"));
        let mut held: Vec<_> = (0..4).map(|_| places.take(one).expect("a place")).collect();
        held[0].0.heard();
        held.push(places.take(one).expect("the place of a silent one"));
        assert_eq!(
            held.iter_mut().map(|(_, gone)| is_told(gone)).collect::<Vec<_>>(),
            [false, true, false, false, false]
        );
        // The one that was told frees no second place.
        drop(held.remove(1));
        assert_eq!(places.locked().open, 4);
        held.iter().for_each(|(place, _)| place.heard());
        assert!(places.take(one).is_none(), "none of them is silent");
        let others: Vec<_> = (0..2).map(|_| places.take(two).expect("the reserve")).collect();
        assert!(places.take(two).is_some(), "a silent one of its own goes");
        others.iter().for_each(|(place, _)| place.heard());
        drop(held);
        assert!((0..3).all(|_| places.take(one).is_some()));
        drop(others);
        let taken = places.locked();
        assert_eq!((taken.open, taken.origins.len()), (0, 0));
    }

    #[test]
    fn of_all_origins_the_one_with_the_most_makes_room() {
        let places = Places::new(5, 4);
        let mut many: Vec<_> = (0..3).map(|_| places.take(of("192.0.2.1")).expect("a place")).collect();
        let mut few: Vec<_> = (0..2).map(|_| places.take(of("192.0.2.2")).expect("a place")).collect();
        let _third = places.take(of("192.0.2.3")).expect("a place");
        assert!(is_told(&mut many[0].1) && !few.iter_mut().any(|(_, gone)| is_told(gone)));
        // A listener without addresses has no share for one.
        let unnamed = Places::new(3, 1);
        let _held: Vec<_> = (0..3).map(|_| unnamed.take(None).expect("a place")).collect();
        assert!(unnamed.take(None).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_origin_and_a_mapped_address_is_the_host_of_ipv4() {
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
