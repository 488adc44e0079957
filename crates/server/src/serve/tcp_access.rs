//! Access over TCP, before any credential: who may speak plain HTTP, by which names the server is asked, which web pages may
//! use it, and whether a request is local to this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use api::ErrorCode;
use axum::http::{HeaderMap, Uri, header};

use crate::http::problem::ProblemResponse;
use crate::secret_page;
use ptyd_core::config::{IpNet, NetworkConfig};
use ptyd_core::web_origin::WebOrigin;

/// The headers of requests that a proxy passes on (RFC 7239, RFC 9110 §7.6.3, and those before them).
const FORWARDING: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Routes without authentication: they only show that the server lives.
pub(super) const OPEN: [&str; 2] = ["/livez", "/readyz"];

/// Where a request comes from, as far as the server can know. A program of this machine can look remote; nothing remote can
/// look local, unless a proxy of this machine hides that it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locality {
    /// From this machine.
    Local,
    /// From elsewhere, or through a proxy.
    Remote,
}

/// The ends of a TCP connection, where the kernel reported them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) peer: Option<SocketAddr>,
    pub(super) server: Option<SocketAddr>,
}

/// The rules of the TCP listener.
#[derive(Debug)]
pub(super) struct TcpAccess {
    scheme: &'static str,
    listen: IpAddr,
    public_url: Option<WebOrigin>,
    allowed_origins: Vec<WebOrigin>,
    trusted_proxies: Vec<IpNet>,
}

impl TcpAccess {
    pub(super) fn new(network: &NetworkConfig) -> Self {
        Self {
            scheme: if network.tls.is_some() { "https" } else { "http" },
            listen: network.listen.ip(),
            public_url: network.public_url.clone(),
            allowed_origins: network.allowed_origins.clone(),
            trusted_proxies: network.trusted_proxies.clone(),
        }
    }

    /// Where a request comes from, or why it is refused.
    pub(super) fn check(&self, ends: Ends, headers: &HeaderMap, uri: &Uri) -> Result<Locality, ProblemResponse> {
        let server = ends.server.map_or(self.listen, |server| server.ip()).to_canonical();
        let is_reachable = !server.is_loopback();
        if is_reachable && !self.may_speak_plainly(ends.peer) && !OPEN.contains(&uri.path()) {
            let help =
                "plain HTTP at this address is for the proxies of --trusted-proxy only; use the server's public URL";
            return Err(ProblemResponse::new(ErrorCode::Forbidden, help));
        }
        let host = host(headers, uri)?.unwrap_or_default();
        let is_public = |host| self.public_url.as_ref().is_some_and(|url| url.is_host(host));
        let is_loopback = is_loopback_authority(host);
        if !(is_loopback || is_public(host) || is_reachable && is_address(host, server)) {
            let help = match &self.public_url {
                None => "use http://127.0.0.1 or http://localhost with the port".to_owned(),
                Some(url) => format!("use {url}; a proxy must pass this name on as the Host header"),
            };
            return Err(ProblemResponse::new(ErrorCode::HostRefused, help));
        }
        let is_local = is_loopback && !is_reachable && !is_forwarded(headers);
        let locality = if is_local { Locality::Local } else { Locality::Remote };
        self.check_origin(locality, host, headers, uri)?;
        Ok(locality)
    }

    /// Whether a request comes from a page of this server itself, as the browser says: not from another port of its host either.
    pub(super) fn is_of_own_page(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let host = host(headers, uri).ok().flatten().unwrap_or_default();
        let is_same = headers.get_all("sec-fetch-site").iter().all(|site| site == "same-origin");
        let mut origins = headers.get_all(header::ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default());
        is_same && origins.all(|origin| self.is_own(origin, host))
    }

    /// Whether this is the origin of the server's own pages, where it is asked by the name of this host.
    fn is_own(&self, origin: &str, host: &str) -> bool {
        let is_public = |origin: &str| self.public_url.as_ref().is_some_and(|url| url.is(origin));
        origin == format!("{}://{host}", self.scheme) || is_public(origin)
    }

    fn may_speak_plainly(&self, peer: Option<SocketAddr>) -> bool {
        let is_trusted = |peer: SocketAddr| {
            let peer = peer.ip().to_canonical();
            self.trusted_proxies.iter().any(|network| network.contains(&peer))
        };
        self.scheme == "https" || peer.is_some_and(is_trusted)
    }

    /// Refuses web pages of foreign origins, and at a page for people every page but itself.
    fn check_origin(
        &self,
        locality: Locality,
        host: &str,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<(), ProblemResponse> {
        let is_public = |origin: &str| self.public_url.as_ref().is_some_and(|url| url.is(origin));
        let is_accepted = |origin: &str| {
            let is_here = || {
                origin.split_once("://").is_some_and(|(scheme, authority)| {
                    matches!(scheme, "http" | "https") && is_loopback_authority(authority)
                })
            };
            locality == Locality::Local && is_here()
                || is_public(origin)
                || self.allowed_origins.iter().any(|allowed| allowed.is(origin))
        };
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if !is_accepted(origin) {
                let help = "web pages of other origins may not use this server (--allow-origin)";
                return Err(ProblemResponse::new(ErrorCode::OriginRefused, help));
            }
            if secret_page::is_here(uri.path()) && !self.is_own(origin, host) {
                let help = "only this page's own form may be sent to it";
                return Err(ProblemResponse::new(ErrorCode::OriginRefused, help));
            }
        }
        Ok(())
    }
}

/// Whether a proxy has passed this request on, and says so.
pub(super) fn is_forwarded(headers: &HeaderMap) -> bool {
    FORWARDING.iter().any(|name| headers.contains_key(*name))
}

/// The `host[:port]` that a request is for.
fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Result<Option<&'a str>, ProblemResponse> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match hosts.next() {
        // RFC 9112, 3.2: a proxy before us may have used the other one.
        Some(_) if hosts.next().is_some() => {
            Err(ProblemResponse::new(ErrorCode::MalformedHead, "a request must have exactly one Host header"))
        }
        // The target counts, where it names the host.
        host => Ok(uri.authority().map(|authority| authority.as_str()).or(host.and_then(|host| host.to_str().ok()))),
    }
}

/// Whether `host[:port]` names this machine by loopback.
fn is_loopback_authority(text: &str) -> bool {
    let host = host_of(text);
    host.is_some_and(|host| {
        host == "[::1]"
            || host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback())
    })
}

/// Whether `host[:port]` is this address.
fn is_address(text: &str, address: IpAddr) -> bool {
    host_of(text).is_some_and(|host| host.trim_matches(['[', ']']).parse() == Ok(address))
}

/// The host of `host[:port]`, with the brackets of an IPv6 address.
fn host_of(text: &str) -> Option<&str> {
    let end = match text.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, port) = text.split_at_checked(end)?;
    let is_port = |text: &str| text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok();
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn access(listen: &str, public_url: Option<&str>, trusted: &[&str]) -> TcpAccess {
        let mut network = NetworkConfig::of(listen.parse().expect("an address"));
        network.public_url = public_url.map(|url| url.parse().expect("an origin"));
        network.allowed_origins = vec!["https://web.example".parse().expect("an origin")];
        network.trusted_proxies = trusted.iter().map(|net| net.parse().expect("a network")).collect();
        TcpAccess::new(&network)
    }

    fn ends(peer: &str, server: &str) -> Ends {
        let of = |ip: &str| Some(SocketAddr::new(ip.parse().expect("an address"), 7893));
        Ends { peer: of(peer), server: of(server) }
    }

    fn checked(access: &TcpAccess, ends: Ends, path: &str, headers: &[(&str, &str)]) -> Result<Locality, ErrorCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().expect("a name");
            map.append(name, HeaderValue::from_str(value).expect("a header"));
        }
        access.check(ends, &map, &path.parse().expect("a path")).map_err(|refusal| refusal.code)
    }

    #[test]
    // promise: access-1
    fn only_loopback_names_are_hosts_of_this_server() {
        for good in ["localhost", "LOCALHOST:80", "127.0.0.1:7893", "127.1.2.3", "[::1]:7893", "[::1]"] {
            assert!(is_loopback_authority(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost:x",
            "127.0.0.1:",
            "[::1]x",
            "[::1",
            "[::2]",
            "localhost:99999",
            "user@localhost",
            "2130706433",
        ] {
            assert!(!is_loopback_authority(bad), "{bad}");
        }
    }

    #[test]
    // promise: access-1
    fn at_loopback_a_second_or_foreign_host_and_a_foreign_origin_are_refused() {
        let here = access("127.0.0.1:7893", None, &[]);
        let of = |headers: &[(&str, &str)]| checked(&here, ends("127.0.0.1", "127.0.0.1"), "/terminals", headers);
        let host = ("host", "127.0.0.1:7893");
        assert_eq!(of(&[host]), Ok(Locality::Local));
        for origin in ["http://localhost:5173", "https://127.0.0.1:8443"] {
            assert_eq!(of(&[host, ("origin", origin)]), Ok(Locality::Local));
        }
        assert_eq!(of(&[host, ("origin", "https://web.example")]), Ok(Locality::Local));
        assert_eq!(of(&[]), Err(ErrorCode::HostRefused));
        assert_eq!(of(&[("host", "evil.example")]), Err(ErrorCode::HostRefused));
        assert_eq!(of(&[("host", "10.0.0.5")]), Err(ErrorCode::HostRefused));
        assert_eq!(of(&[host, ("host", "evil.example")]), Err(ErrorCode::MalformedHead));
        let target = |path| checked(&here, ends("127.0.0.1", "127.0.0.1"), path, &[host]);
        assert_eq!(target("http://evil.example/livez"), Err(ErrorCode::HostRefused));
        assert_eq!(target("http://localhost:7893/livez"), Ok(Locality::Local));
        for origin in
            ["https://evil.example", "http://evil.example", "null", "file://", "http://localhost.evil.example"]
        {
            assert_eq!(of(&[host, ("origin", origin)]), Err(ErrorCode::OriginRefused), "{origin}");
            let two = [host, ("origin", "http://localhost"), ("origin", origin)];
            assert_eq!(of(&two), Err(ErrorCode::OriginRefused), "{origin}");
        }
        // A proxy of this machine says that the request came through it.
        for name in FORWARDING {
            assert_eq!(of(&[host, (name, "10.0.0.9")]), Ok(Locality::Remote), "{name}");
            let page = [host, (name, "10.0.0.9"), ("origin", "http://localhost:5173")];
            assert_eq!(of(&page), Err(ErrorCode::OriginRefused), "the visitor's machine is another one");
        }
    }

    #[test]
    // promise: access-14
    fn a_public_url_is_a_host_and_an_origin_and_makes_a_request_remote() {
        let behind = access("127.0.0.1:7893", Some("https://pty.example"), &[]);
        let of = |headers: &[(&str, &str)]| checked(&behind, ends("127.0.0.1", "127.0.0.1"), "/terminals", headers);
        for origin in ["https://pty.example", "https://web.example"] {
            assert_eq!(of(&[("host", "pty.example"), ("origin", origin)]), Ok(Locality::Remote));
        }
        assert_eq!(of(&[("host", "PTY.example:443")]), Ok(Locality::Remote));
        assert_eq!(of(&[("host", "localhost:7893")]), Ok(Locality::Local));
        for host in ["evil.example", "pty.example:7893", "pty.example.evil.example", "127.0.0.1.pty.example"] {
            assert_eq!(of(&[("host", host)]), Err(ErrorCode::HostRefused), "{host}");
        }
        for origin in ["http://pty.example", "https://evil.example", "http://localhost:5173"] {
            let refused = of(&[("host", "pty.example"), ("origin", origin)]);
            assert_eq!(refused, Err(ErrorCode::OriginRefused), "{origin}");
        }
    }

    #[test]
    // promise: access-14
    fn an_address_that_others_reach_takes_plain_http_of_trusted_proxies_only() {
        let open = access("0.0.0.0:7893", Some("https://pty.example"), &["10.0.0.0/8", "::1/128", "fd00::/8"]);
        let host = [("host", "pty.example")];
        let of = |peer, server, path, headers: &[_]| checked(&open, ends(peer, server), path, headers);
        assert_eq!(of("10.1.2.3", "10.0.0.5", "/terminals", &host), Ok(Locality::Remote));
        assert_eq!(of("::ffff:10.1.2.3", "::ffff:10.0.0.5", "/terminals", &host), Ok(Locality::Remote));
        assert_eq!(of("fd00::9", "fd00::5", "/terminals", &[("host", "[fd00::5]:7893")]), Ok(Locality::Remote));
        assert_eq!(of("192.168.0.9", "10.0.0.5", "/terminals", &host), Err(ErrorCode::Forbidden));
        assert_eq!(of("192.168.0.9", "10.0.0.5", "/terminals", &[("host", "localhost")]), Err(ErrorCode::Forbidden));
        let unknown = checked(&open, Ends::default(), "/terminals", &host);
        assert_eq!(unknown, Err(ErrorCode::Forbidden), "the kernel does not say who it is");
        // Probes name the address.
        assert_eq!(of("192.168.0.9", "10.0.0.5", "/livez", &[("host", "10.0.0.5:7893")]), Ok(Locality::Remote));
        assert_eq!(of("10.1.2.3", "10.0.0.5", "/livez", &[("host", "10.0.0.6")]), Err(ErrorCode::HostRefused));
        // A name of loopback there makes nothing local.
        assert_eq!(of("10.1.2.3", "10.0.0.5", "/terminals", &[("host", "localhost")]), Ok(Locality::Remote));
        assert_eq!(of("127.0.0.1", "127.0.0.1", "/terminals", &[("host", "localhost")]), Ok(Locality::Local));
        assert_eq!(of("::ffff:127.0.0.1", "::ffff:127.0.0.1", "/x", &[("host", "localhost")]), Ok(Locality::Local));
    }

    #[test]
    // promise: access-12
    fn a_page_takes_the_form_of_its_own_origin_only() {
        let here = access("127.0.0.1:7893", Some("https://pty.example"), &[]);
        let of = |path, host, origin| {
            checked(&here, ends("127.0.0.1", "127.0.0.1"), path, &[("host", host), ("origin", origin)])
        };
        assert_eq!(of("/ask/x", "127.0.0.1:7893", "http://127.0.0.1:7893"), Ok(Locality::Local));
        assert_eq!(of("/ask/x", "pty.example", "https://pty.example"), Ok(Locality::Remote));
        for other in
            ["http://127.0.0.1:5173", "http://localhost:7893", "http://evil.example", "null", "https://web.example"]
        {
            assert_eq!(of("/ask/x", "127.0.0.1:7893", other), Err(ErrorCode::OriginRefused), "{other}");
        }
        assert_eq!(of("/terminals", "127.0.0.1:7893", "http://127.0.0.1:5173"), Ok(Locality::Local));
    }

    #[test]
    // promise: access-17
    fn the_log_in_of_a_browser_is_for_the_page_of_the_same_origin() {
        let here = access("127.0.0.1:7893", Some("https://pty.example"), &[]);
        let of = |more: &[(&str, &str)]| {
            let mut map = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("127.0.0.1:7893"))]);
            for (name, value) in more {
                let name: header::HeaderName = name.parse().expect("a name");
                map.append(name, HeaderValue::from_str(value).expect("a header"));
            }
            here.is_of_own_page(&map, &"/terminals".parse().expect("a path"))
        };
        let own = ("origin", "http://127.0.0.1:7893");
        assert!(of(&[]) && of(&[own]) && of(&[own, ("sec-fetch-site", "same-origin")]));
        for site in ["same-site", "cross-site", "none"] {
            assert!(!of(&[own, ("sec-fetch-site", site)]), "{site}");
        }
        for origin in ["http://127.0.0.1:5173", "http://localhost:7893", "https://web.example", "null"] {
            assert!(!of(&[("origin", origin)]), "{origin}");
        }
    }
}
