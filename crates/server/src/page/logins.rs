//! Log-ins of browsers: one-time links, and what their owners' browsers show from then on.
//!
//! A browser that is logged in shows two things: a cookie, which no script can read, and a key in a header, which the page keeps
//! for its own origin. Cookies go to every port of a host, so a program that serves a page on another port receives the cookie;
//! without the key it opens nothing. A page of another site can send no such header. Nothing in here is logged.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptyd_core::action::ActionError;
use ptyd_core::principal::{LogIn, Principal};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

/// The header with the key.
pub(crate) const KEY: &str = "ptyd-login";

/// A person copies a link to another window, or to a phone.
const LINK_LIFETIME: Duration = Duration::from_secs(5 * 60);
const LINKS_MAX: usize = 1_024;
/// Of one principal; a further one makes the oldest useless.
const LINKS_PER_PRINCIPAL_MAX: usize = 16;
/// A working day.
const LOGIN_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
const LOGINS_MAX: usize = 1_024;
/// Of one principal; a further one ends the oldest.
const LOGINS_PER_PRINCIPAL_MAX: usize = 32;
/// 256 bits, like a token.
const RANDOM_BYTES: usize = 32;

/// The open links and log-ins of a server, oldest first.
pub(crate) struct Logins {
    /// The cookie's name. Browsers do not tell the ports of a host apart, so it names the port.
    cookie: String,
    /// The address of the page on this machine.
    local_url: String,
    /// The address of the page from elsewhere.
    base_url: String,
    links: Mutex<VecDeque<Link>>,
    open: Mutex<VecDeque<Login>>,
}

struct Link {
    until: Instant,
    ticket: String,
    principal: Principal,
}

struct Login {
    cookie: String,
    key: String,
    principal: Principal,
    /// Dropped with the log-in, it ends the streams of the browser.
    _end: watch::Sender<()>,
}

/// A link that was just made.
pub(crate) struct NewLink {
    pub(crate) ticket: String,
    pub(crate) lifetime: Duration,
    pub(crate) url: String,
}

/// A log-in that was just made.
pub(crate) struct NewLogin {
    pub(crate) key: String,
    pub(crate) lifetime: Duration,
    pub(crate) set_cookie: String,
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logins(…)")
    }
}

impl Logins {
    /// None yet, of a server with these addresses.
    pub(crate) fn new(local_url: &str, base_url: &str) -> Self {
        let port = local_url.rsplit(':').next().unwrap_or_default();
        Self {
            cookie: format!("ptyd-{port}"),
            local_url: local_url.to_owned(),
            base_url: base_url.to_owned(),
            links: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// A link by which one browser logs in as this principal. The user that runs the server has nothing but this machine.
    pub(crate) fn link(&self, principal: &Principal) -> Result<NewLink, ActionError> {
        let now = Instant::now();
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| now < link.until);
        let is_own = |link: &Link| link.principal.name == principal.name;
        make_room(&mut links, is_own, LINKS_PER_PRINCIPAL_MAX);
        if links.len() == LINKS_MAX {
            let hint = "use them, or wait until they expire";
            return Err(ActionError::Limit { what: "the number of open log-in links", limit: LINKS_MAX as u64, hint });
        }
        let ticket = random();
        let base = if principal.pass.is_none() { &self.local_url } else { &self.base_url };
        let url = format!("{base}/#ticket={ticket}");
        links.push_back(Link { until: now + LINK_LIFETIME, ticket: ticket.clone(), principal: lasting(principal) });
        Ok(NewLink { ticket, lifetime: LINK_LIFETIME, url })
    }

    /// Uses up a link, whatever follows.
    pub(crate) fn redeem(&self, shown: &str) -> Option<Principal> {
        self.redeem_at(shown, Instant::now())
    }

    fn redeem_at(&self, shown: &str, now: Instant) -> Option<Principal> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| now < link.until);
        let at = links.iter().position(|link| is_same(&link.ticket, shown))?;
        links.remove(at).map(|link| link.principal)
    }

    /// Logs a browser in. Over an encrypted connection, the cookie is for such connections only.
    pub(crate) fn open(&self, principal: &Principal, is_encrypted: bool) -> Result<NewLogin, ActionError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|login| !login.principal.is_shut_out());
        let is_own = |login: &Login| login.principal.name == principal.name;
        make_room(&mut open, is_own, LOGINS_PER_PRINCIPAL_MAX);
        if open.len() == LOGINS_MAX {
            let hint = "wait until some expire";
            return Err(ActionError::Limit { what: "the number of log-ins", limit: LOGINS_MAX as u64, hint });
        }
        let (cookie, key) = (random(), random());
        let set_cookie = self.set_cookie(&cookie, LOGIN_LIFETIME, is_encrypted);
        let made = NewLogin { key: key.clone(), lifetime: LOGIN_LIFETIME, set_cookie };
        let (end, log_in) = LogIn::for_at_most(LOGIN_LIFETIME);
        let principal = Principal { log_in: Some(log_in), ..lasting(principal) };
        open.push_back(Login { cookie, key, principal, _end: end });
        Ok(made)
    }

    /// Ends the log-in of a request; the value of `Set-Cookie` that makes its browser forget it.
    pub(crate) fn close(&self, headers: &HeaderMap) -> String {
        if let Some((cookie, key)) = self.shown(headers) {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|login| !(is_same(&login.cookie, cookie) && is_same(&login.key, key)));
        }
        self.set_cookie("", Duration::ZERO, false)
    }

    /// The principal of a request with a cookie and its key; `None` inside if they are not valid here.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Option<Option<Principal>> {
        let (cookie, key) = self.shown(headers)?;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let login = open.iter().find(|login| is_same(&login.cookie, cookie) && is_same(&login.key, key));
        let is_open = |login: &&Login| !login.principal.log_in.as_ref().is_some_and(LogIn::is_over);
        Some(login.filter(is_open).map(|login| login.principal.clone()))
    }

    /// The cookie and the key of a request that has both.
    fn shown<'a>(&self, headers: &'a HeaderMap) -> Option<(&'a str, &'a str)> {
        let key = headers.get(KEY)?.to_str().ok()?;
        let mut cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let of_pair = |pair: &'a str| pair.trim().strip_prefix(&*self.cookie)?.strip_prefix('=');
        cookies.find_map(|value| value.split(';').find_map(of_pair)).map(|cookie| (cookie, key))
    }

    fn set_cookie(&self, value: &str, lifetime: Duration, is_encrypted: bool) -> String {
        let secure = if is_encrypted { "; Secure" } else { "" };
        let age = lifetime.as_secs();
        format!("{}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}", self.cookie)
    }
}

/// Drops the oldest of one principal, if there are as many of its own as it may have.
fn make_room<T>(all: &mut VecDeque<T>, is_own: impl Fn(&T) -> bool, own_max: usize) {
    if all.iter().filter(|one| is_own(one)).count() >= own_max
        && let Some(oldest) = all.iter().position(is_own)
    {
        all.remove(oldest);
    }
}

/// The principal without what belongs to one request of it.
fn lasting(principal: &Principal) -> Principal {
    let pass = principal.pass.clone();
    Principal { pass, ..Principal::named(principal.name.clone(), principal.scope) }
}

fn random() -> String {
    let mut bytes = [0u8; RANDOM_BYTES];
    getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// In constant time for texts of the same length.
fn is_same(known: &str, shown: &str) -> bool {
    known.as_bytes().ct_eq(shown.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use ptyd_core::principal::Scope;

    fn logins() -> Logins {
        Logins::new("http://127.0.0.1:7893", "https://pty.example")
    }

    fn me() -> Principal {
        Principal::named("me", Scope::Write)
    }

    fn headers(cookie: &str, key: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_str(cookie).expect("a header"));
        headers.insert(KEY, HeaderValue::from_str(key).expect("a header"));
        headers
    }

    #[test]
    // promise: access-17
    fn a_link_is_good_once_and_not_for_long() {
        let logins = logins();
        let (used, old) = (logins.link(&me()).expect("room"), logins.link(&me()).expect("room"));
        assert_eq!(used.url, format!("http://127.0.0.1:7893/#ticket={}", used.ticket));
        assert_eq!([logins.redeem(""), logins.redeem(&used.ticket[1..])], [None, None]);
        assert_eq!([logins.redeem(&used.ticket), logins.redeem(&used.ticket)], [Some(me()), None]);
        assert_eq!(logins.redeem_at(&old.ticket, Instant::now() + LINK_LIFETIME), None);
    }

    #[test]
    // promise: access-17
    fn a_log_in_needs_the_cookie_and_its_key_until_it_is_closed() {
        let logins = logins();
        let (one, other) = (logins.open(&me(), false).expect("room"), logins.open(&me(), true).expect("room"));
        assert!(one.set_cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"));
        assert!(other.set_cookie.ends_with("; SameSite=Strict; Secure"));
        let cookie = |login: &NewLogin| login.set_cookie.split(';').next().map(str::to_owned).expect("a pair");
        let shown = headers(&format!("a=b; {}", cookie(&one)), &one.key);
        let known = logins.of(&shown).flatten().expect("it is logged in");
        assert_eq!((&*known.name, known.scope, known.is_shut_out()), ("me", Scope::Write, false));
        assert_eq!(logins.of(&headers(&cookie(&one), &other.key)), Some(None));
        let mut without = shown.clone();
        without.remove(KEY);
        assert_eq!(logins.of(&without), None, "a cookie alone is shown to every port of the host");
        assert!(logins.close(&shown).starts_with("ptyd-7893=; Path=/; Max-Age=0;"));
        assert_eq!(logins.of(&shown), Some(None));
        assert!(known.is_shut_out());
        assert!(logins.of(&headers(&cookie(&other), &other.key)).flatten().is_some_and(|other| !other.is_shut_out()));
    }

    #[tokio::test]
    // promise: access-17
    async fn streams_and_waits_of_a_log_in_end_with_it() {
        let logins = logins();
        let opened = || {
            let made = logins.open(&me(), false).expect("room");
            let shown = headers(made.set_cookie.split(';').next().expect("a pair"), &made.key);
            let known = logins.of(&shown).flatten().expect("it is logged in");
            (shown, known)
        };
        let ((closed, by_close), (_, by_others), (_, last)) = (opened(), opened(), opened());
        logins.close(&closed);
        by_close.shut_out().await;
        assert_eq!([&by_close, &by_others, &last].map(|one| one.is_shut_out()), [true, false, false]);
        let more: Vec<_> = (0..LOGINS_PER_PRINCIPAL_MAX - 1).map(|_| opened()).collect();
        by_others.shut_out().await;
        assert!(more.iter().all(|(_, one)| !one.is_shut_out()));
        assert!(!last.is_shut_out());
    }

    #[test]
    // promise: access-17
    fn links_and_log_ins_are_bounded_and_never_shown() {
        let logins = logins();
        let first = logins.link(&me()).expect("room").ticket;
        (0..LINKS_PER_PRINCIPAL_MAX).for_each(|_| drop(logins.link(&me()).expect("room")));
        assert_eq!(logins.redeem(&first), None, "the oldest of many");
        let of = |name: usize| Principal::named(name.to_string(), Scope::Read);
        let links = (0..LINKS_MAX).filter(|name| logins.link(&of(*name)).is_ok()).count();
        assert_eq!(links, LINKS_MAX - LINKS_PER_PRINCIPAL_MAX);
        let opened = (0..=LOGINS_MAX).filter(|name| logins.open(&of(*name), false).is_ok()).count();
        assert_eq!(opened, LOGINS_MAX);
        assert_eq!(format!("{logins:?}"), "Logins(…)");
    }
}
