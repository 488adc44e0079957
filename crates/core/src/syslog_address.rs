//! The address of a syslog server.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a syslog server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyslogAddress {
    /// A Unix socket for datagrams, such as `/dev/log`.
    Unix(PathBuf),
    /// UDP (RFC 5426).
    Udp(String),
    /// TCP with octet counting (RFC 6587).
    Tcp(String),
}

impl FromStr for SyslogAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let host = |address: &str| {
            let has_port = address
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
            has_port.then(|| address.to_owned())
        };
        let address = match text.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => Some(Self::Unix(PathBuf::from(path))),
            Some(("udp", address)) => host(address).map(Self::Udp),
            Some(("tcp", address)) => host(address).map(Self::Tcp),
            _ => None,
        };
        address.ok_or_else(|| "must be unix:/PATH, udp:HOST:PORT or tcp:HOST:PORT".to_owned())
    }
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_transport() {
        for address in ["unix:/dev/log", "udp:localhost:514", "tcp:[::1]:601"] {
            assert_eq!(address.parse::<SyslogAddress>().expect(address).to_string(), address);
        }
        for wrong in ["", "/dev/log", "unix:log", "udp:localhost", "tcp::514", "udp:localhost:0", "tls:host:6514"] {
            assert!(wrong.parse::<SyslogAddress>().is_err(), "{wrong:?}");
        }
    }
}
