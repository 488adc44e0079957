//! Tests of the authentication: over TCP, over the Unix socket, by tokens, tickets and log-ins.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ptyd_core::config::NetworkConfig;

fn network() -> NetworkConfig {
    let public_url = "https://pty.example".parse().ok();
    NetworkConfig { public_url, ..NetworkConfig::of(([127, 0, 0, 1], 7893).into()) }
}

fn guard() -> Guard {
    let tokens = Tokens::open("/nowhere/tokens.json".as_ref(), false).expect("none yet");
    Guard {
        token: Token::given("right").expect("valid"),
        tokens: Arc::new(tokens),
        tickets: Arc::default(),
        logins: Arc::new(Logins::new("http://localhost:7893", "https://pty.example")),
        uid: 1_000,
        access: TcpAccess::new(&network()),
        nodes: Nodes::new(&network()),
        new_tokens: None,
        peers: None,
        peer_users: PeerUsers::here(),
        asked: Buckets::new(None),
        failed: Buckets::new(None),
        refused: Mutex::default(),
        bodies: RequestBodies::default(),
        refusals: RefusalRecorder::default(),
        waiting: Arc::new(Semaphore::new(1)),
    }
}

/// Without the log-in of a person.
fn admitted(guard: &Guard, headers: &HeaderMap, path: &str) -> Result<Option<Authenticated>, ProblemResponse> {
    let uri = path.parse().expect("a path");
    let locality = guard.access.check(Ends::default(), headers, &uri)?;
    guard.with_credential(locality, headers, &uri)
}

fn over_tcp(path: &str, headers: &[(header::HeaderName, &str)]) -> Result<bool, ErrorCode> {
    let map = headers.iter().map(|(n, v)| (n.clone(), HeaderValue::from_str(v).expect("a header"))).collect();
    admitted(&guard(), &map, path).map(|p| p.is_some()).map_err(|r| r.code)
}

#[test]
// promise: access-1
fn over_tcp_a_token_a_loopback_host_and_no_foreign_origin_are_needed() {
    let host = (header::HOST, "127.0.0.1:7893");
    let token = (header::AUTHORIZATION, "Bearer right");
    let of = |list: &[(header::HeaderName, &str)]| over_tcp("/terminals", list);
    assert_eq!(of(&[host.clone(), token.clone()]), Ok(true));
    assert_eq!(of(&[host.clone(), token.clone(), (header::ORIGIN, "http://localhost:5173")]), Ok(true));
    assert_eq!(of(std::slice::from_ref(&host)), Err(ErrorCode::Unauthorized));
    for wrong in ["Bearer wrong", "Basic right", "right", "Bearer "] {
        assert_eq!(of(&[host.clone(), (header::AUTHORIZATION, wrong)]), Err(ErrorCode::Unauthorized), "{wrong}");
    }
    assert_eq!(of(std::slice::from_ref(&token)), Err(ErrorCode::HostRefused));
    assert_eq!(of(&[(header::HOST, "evil.example"), token.clone()]), Err(ErrorCode::HostRefused));
    for origin in ["https://evil.example", "http://evil.example", "null", "file://", "http://localhost.evil.example"] {
        let refused = of(&[host.clone(), token.clone(), (header::ORIGIN, origin)]);
        assert_eq!(refused, Err(ErrorCode::OriginRefused), "{origin}");
    }
}

#[test]
fn a_wrong_token_reads_differently_from_none() {
    let host = (header::HOST, "127.0.0.1:7893");
    let detail = |headers: &[(header::HeaderName, &str)]| {
        let map = headers.iter().map(|(n, v)| (n.clone(), HeaderValue::from_str(v).expect("a header"))).collect();
        admitted(&guard(), &map, "/terminals").expect_err("no good token").detail
    };
    assert!(detail(std::slice::from_ref(&host)).starts_with("send `Authorization"));
    let wrong = detail(&[host, (header::AUTHORIZATION, "Bearer wrong")]);
    assert_eq!(wrong, "the bearer token is not valid here (unknown, revoked or expired)");
}

#[test]
// promise: access-14
fn the_servers_own_token_is_for_its_machine_only() {
    let token = (header::AUTHORIZATION, "Bearer right");
    let of = |host, more: &[_]| over_tcp("/terminals", &[&[(header::HOST, host), token.clone()], more].concat());
    assert_eq!(of("localhost", &[]), Ok(true));
    assert_eq!(of("pty.example", &[]), Err(ErrorCode::Unauthorized));
    assert_eq!(of("localhost", &[(header::VIA, "1.1 proxy")]), Err(ErrorCode::Unauthorized));
    let detail = |token| {
        let map = HeaderMap::from_iter([
            (header::HOST, HeaderValue::from_static("pty.example")),
            (header::AUTHORIZATION, HeaderValue::from_static(token)),
        ]);
        admitted(&guard(), &map, "/terminals").expect_err("not from there").detail
    };
    assert!(detail("Bearer right").starts_with("the server's own token is valid only on its machine"));
    assert!(detail("Bearer wrong").starts_with("the bearer token is not valid here"));
    assert!(detail("").contains("`ptyd token new NAME` makes one"));
}

#[tokio::test]
// promise: access-14
async fn a_person_elsewhere_logs_in_with_a_named_token_only() {
    let of = async |host: &'static str, words: &str| {
        let words = format!("Basic {}", STANDARD.encode(words)).parse().expect("a header");
        let headers = [(header::HOST, HeaderValue::from_static(host)), (header::AUTHORIZATION, words)];
        let headers = HeaderMap::from_iter(headers);
        let page = "/ask/x".parse().expect("a path");
        guard().over_tcp(Ends::default(), &headers, &page).await.map(|known| known.is_some()).map_err(|r| r.code)
    };
    assert_eq!(of("localhost", ":right").await, Ok(true));
    assert_eq!(of("pty.example", ":right").await, Err(ErrorCode::Unauthorized));
}

#[test]
fn of_those_who_try_tokens_the_log_names_one_at_a_time_and_counts_the_others() {
    let mut refused = RefusalCount::default();
    let start = Instant::now();
    let at = |refused: &mut RefusalCount, ms| refused.count(start + std::time::Duration::from_millis(ms));
    assert_eq!([0, 1, 2].map(|ms| at(&mut refused, ms)), [Some(0), None, None]);
    let later = u64::try_from(limits::REFUSED_LOGGED_EVERY.as_millis()).expect("a while");
    assert_eq!([at(&mut refused, later), at(&mut refused, later + 1)], [Some(2), None]);
}

#[test]
// promise: access-7
fn a_ticket_opens_the_socket_of_its_session_once_and_nothing_else() {
    let guard = guard();
    let session = ptyd_core::ids::SessionId::parse("s0-aaaaaaaaaa").expect("an id");
    let principal = Principal::named("me", Scope::Write);
    let grant = Grant { principal: principal.clone(), place: TicketTarget::Socket(session), may_write: false };
    let fresh = || guard.tickets.issue(grant.clone()).expect("room");
    let of = |path: String, names: &str, origin: &str| {
        let mut map = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
        map.insert(header::SEC_WEBSOCKET_PROTOCOL, names.parse().expect("a header"));
        map.insert(header::ORIGIN, origin.parse().expect("a header"));
        admitted(&guard, &map, &path).map_err(|r| r.code)
    };
    let (own, page) = ("/terminals/s0-aaaaaaaaaa/socket", "http://localhost:5173");
    let expected = Ok(Some(Authenticated { principal, grant: Some(grant.clone()) }));
    let ticket = fresh();
    let by_query = || of(format!("{own}?since=0&ticket={ticket}"), "ptyd.v1", page);
    assert_eq!([by_query(), by_query()], [expected.clone(), Err(ErrorCode::Unauthorized)]);
    let ticket = format!("ptyd.v1, ptyd.ticket.{}", fresh());
    let by_name = || of(own.to_owned(), &ticket, page);
    assert_eq!([by_name(), by_name()], [expected, Err(ErrorCode::Unauthorized)]);
    let ticket = fresh();
    let foreign = of(format!("{own}?ticket={ticket}"), "ptyd.v1", "http://evil.example");
    assert_eq!(foreign, Err(ErrorCode::OriginRefused));
    let other = of(format!("/terminals/s0-bbbbbbbbbb/socket?ticket={ticket}"), "ptyd.v1", page);
    assert_eq!(other, Err(ErrorCode::Forbidden));
    assert_eq!(of(format!("{own}?ticket={ticket}"), "ptyd.v1", page), Err(ErrorCode::Unauthorized));
    let rest = of(format!("/terminals?ticket={}", fresh()), "ptyd.v1", page);
    assert_eq!(rest, Err(ErrorCode::Unauthorized));
    let docs = of(format!("/docs?ticket={}", fresh()), "", page);
    assert_eq!(docs, Err(ErrorCode::Forbidden));
}

#[test]
// promise: access-7
fn a_ticket_for_the_docs_opens_them_once_and_no_socket() {
    let guard = guard();
    let principal = Principal::named("me", Scope::Write);
    let grant = Grant { principal: principal.clone(), place: TicketTarget::Docs, may_write: true };
    let fresh = || guard.tickets.issue(grant.clone()).expect("room");
    let of = |path: String| {
        let map = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
        admitted(&guard, &map, &path).map_err(|r| r.code)
    };
    let docs = format!("/docs?ticket={}", fresh());
    let admitted = Authenticated { principal, grant: Some(grant.clone()) };
    assert_eq!([of(docs.clone()), of(docs)], [Ok(Some(admitted)), Err(ErrorCode::Unauthorized)]);
    let socket = of(format!("/terminals/s0-aaaaaaaaaa/socket?ticket={}", fresh()));
    assert_eq!(socket, Err(ErrorCode::Forbidden));
    for other in ["/docs/", "/openapi.json", "/terminals"] {
        assert_eq!(of(format!("{other}?ticket={}", fresh())), Err(ErrorCode::Unauthorized), "{other}");
    }
}

#[test]
fn the_open_routes_need_no_token_but_a_loopback_host() {
    assert_eq!(over_tcp("/livez", &[(header::HOST, "localhost")]), Ok(false));
    assert_eq!(over_tcp("/livez", &[(header::HOST, "evil.example")]), Err(ErrorCode::HostRefused));
    assert_eq!(over_tcp("/livez/", &[(header::HOST, "localhost")]), Err(ErrorCode::Unauthorized));
}

#[test]
// promise: access-2
fn over_unix_the_same_user_and_root_are_admitted() {
    let plain = HeaderMap::new();
    let of = |peer: Option<UnixPeer>| guard().over_unix(peer.as_ref(), &plain).map_err(|r| r.code);
    let is_local = |peer| of(peer).map(|known| known.is_some_and(|known| known.principal == Principal::local()));
    let session = ptyd_core::ids::SessionId::parse("s0-aaaaaaaaaa").expect("an id");
    let owned_by =
        |owner: String| Some(UnixPeer { uid: 1_000, session: PeerSession::Of { session: session.clone(), owner } });
    let outside = |uid| Some(UnixPeer { uid, session: PeerSession::None });
    assert_eq!([is_local(outside(1_000)), is_local(outside(0))], [Ok(true), Ok(true)]);
    assert_eq!(is_local(owned_by(Principal::local().name)), Ok(true));
    let forwarded = HeaderMap::from_iter([(header::FORWARDED, HeaderValue::from_static("for=10.0.0.9"))]);
    let through_a_proxy = guard().over_unix(outside(1_000).as_ref(), &forwarded).map_err(|r| r.code);
    assert_eq!(through_a_proxy, Err(ErrorCode::Forbidden));
    let unknown = Some(UnixPeer { uid: 0, session: PeerSession::Unknown });
    for refused in [outside(1_001), None, unknown, owned_by("revoked".to_owned()), owned_by(String::new())] {
        assert_eq!(is_local(refused.clone()), Err(ErrorCode::Forbidden), "{refused:?}");
    }
}
