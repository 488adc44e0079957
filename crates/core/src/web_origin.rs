//! The origin of a web address (RFC 6454): scheme, host and port.

use std::fmt;
use std::str::FromStr;

/// An origin of http or https, in the form that browsers send: in lower case, without the scheme's own port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin {
    scheme: &'static str,
    authority: String,
}

impl WebOrigin {
    /// Its `host`, or `host:port` where the port is not the scheme's own.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Whether this `Host` header names it; the port may be the scheme's own.
    pub fn is_host(&self, host: &str) -> bool {
        authority_of(self.scheme, host).is_ok_and(|authority| authority == self.authority)
    }

    /// Whether this `Origin` header is it.
    pub fn is(&self, origin: &str) -> bool {
        origin.parse() == Ok(Self::clone(self))
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

impl FromStr for WebOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "must be like https://terminals.example.com or http://10.0.0.5:7893";
        let (scheme, rest) = text.split_once("://").ok_or(example)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => "http",
            "https" => "https",
            _ => return Err(example.to_owned()),
        };
        // The one path that adds nothing.
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(format!("{example}: it cannot have a path"));
        }
        let authority = authority_of(scheme, authority).map_err(|why| format!("{example}: {why}"))?;
        Ok(Self { scheme, authority })
    }
}

/// `host[:port]` in its one form.
fn authority_of(scheme: &str, text: &str) -> Result<String, &'static str> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, rest)) => {
            let address: std::net::Ipv6Addr = inside.parse().map_err(|_| "its host is not an IPv6 address")?;
            let port = rest.strip_prefix(':').map_or_else(|| rest.is_empty().then_some(None), |port| Some(Some(port)));
            (format!("[{address}]"), port.ok_or("only a port may follow the host")?)
        }
        None => {
            let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
            if host.is_empty() || !host.bytes().all(is_plain) {
                return Err("its host must be a name in ASCII (xn--… for others) or an address");
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    let own = if scheme == "https" { 443 } else { 80 };
    let Some(port) = port else { return Ok(host) };
    let is_number = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(port) if is_number && port == own => Ok(host),
        Ok(port) if is_number && port != 0 => Ok(format!("{host}:{port}")),
        _ => Err("its port must be a number from 1 to 65535"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: access-14
    fn an_origin_has_one_form() {
        for (given, form) in [
            ("https://Terminals.Example.com", "https://terminals.example.com"),
            ("HTTPS://a.example:443/", "https://a.example"),
            ("http://a.example:443", "http://a.example:443"),
            ("http://10.0.0.5:80", "http://10.0.0.5"),
            ("http://[FE80::0001]:7893", "http://[fe80::1]:7893"),
        ] {
            assert_eq!(given.parse::<WebOrigin>().expect(given).to_string(), form);
        }
        for wrong in [
            "",
            "a.example",
            "ftp://a.example",
            "https://",
            "https://a.example/ptyd",
            "https://a.example?x",
            "https://me@a.example",
            "https://a.example:0",
            "https://a.example:+1",
            "https://a.example:",
            "https://a.example:65536",
            "https://[::1]x",
            "https://[::g]",
            "https://ä.example",
            "https://*.example",
            "null",
        ] {
            let why = wrong.parse::<WebOrigin>().expect_err(wrong);
            assert!(why.starts_with("must be like https://"), "{wrong}: {why}");
        }
    }

    #[test]
    // promise: access-14
    fn headers_name_the_origin_in_any_case_with_or_without_its_default_port() {
        let origin: WebOrigin = "https://a.example".parse().expect("an origin");
        assert_eq!(["a.example", "A.Example:443"].map(|host| origin.is_host(host)), [true, true]);
        for other in ["a.example:80", "b.example", "a.example.evil.example", "", "a.example:443:1", "[a.example]"] {
            assert!(!origin.is_host(other), "{other}");
        }
        assert_eq!(["https://a.example", "https://A.example:443"].map(|text| origin.is(text)), [true, true]);
        assert_eq!(["http://a.example", "null", "https://a.example:8443"].map(|text| origin.is(text)), [false; 3]);
    }
}
