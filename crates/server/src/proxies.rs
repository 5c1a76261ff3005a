//! Reverse proxies in front of the server: the address of the client, and the public address of the server.
//!
//! ```text
//! --trusted-proxy 10.0.0.0/8     connections from there forward requests of other clients
//! X-Forwarded-For, Forwarded     each proxy appends the address of its client. Read from the right: the first address
//!                                that is not a trusted proxy is the client. Entries further left may be forged
//! X-Forwarded-Proto, -Host       the public address of this server; or `--public-url`
//! ```
//!
//! Without a trusted proxy these headers are ignored, because any client can forge them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::{HeaderMap, Uri, header};

use crate::error::Error;
use crate::options::ServerOptions;

/// An address, or all addresses with the same prefix: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let first_bits = |address: IpAddr| match address {
            IpAddr::V4(address) => (32, u128::from(address.to_bits()).checked_shr(32 - self.bits.min(32))),
            IpAddr::V6(address) => (128, address.to_bits().checked_shr(128 - self.bits)),
        };
        first_bits(self.address) == first_bits(address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let invalid =
            || format!("{text:?} is not an address or network: give 10.0.0.7, 10.0.0.0/8 or fd00::/8");
        let (address, bits) = text.split_once('/').map_or((text, None), |(first, bits)| (first, Some(bits)));
        let address = address.parse::<IpAddr>().map_err(|_| invalid())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).ok().filter(|&bits| bits <= most).ok_or_else(invalid)?;
        Ok(Network { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The trusted proxies, and the public address of the server.
pub(crate) struct Proxies {
    trusted: Vec<Network>,
    /// Without a trailing slash.
    public_url: Option<String>,
}

impl Proxies {
    pub(crate) fn new(options: &ServerOptions) -> Result<Proxies, Error> {
        let public_url = options.public_url.as_deref().map(public_url).transpose()?;
        Ok(Proxies { trusted: options.trusted_proxies.clone(), public_url })
    }

    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }

    /// The client that sent a request over a connection from `peer`.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let hops = [values(headers, "x-forwarded-for"), forwarded(headers, "for")];
        match hops.each_ref().map(|hops| (!hops.is_empty()).then(|| self.client_behind(peer, hops))) {
            [Some(first), None] | [None, Some(first)] => first,
            // A proxy writes one of them and may pass the other on from its client unchanged.
            [Some(first), Some(second)] if first == second => first,
            _ => peer,
        }
    }

    /// The first address from the right that is not a trusted proxy; the last valid address if an entry is
    /// invalid.
    fn client_behind(&self, peer: IpAddr, hops: &[&str]) -> IpAddr {
        let mut nearest = peer;
        for hop in hops.iter().rev() {
            let Some(address) = address(hop) else { return nearest };
            nearest = address;
            if !self.trusts(address) {
                break;
            }
        }
        nearest
    }

    /// The base URL of this server for clients: `https://translate.example.org`.
    pub(crate) fn base_url(&self, peer: IpAddr, headers: &HeaderMap) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        // The last value was written by the connected proxy.
        let forwarded_value = |name: &str, parameter: &str| {
            let both = [values(headers, name), forwarded(headers, parameter)];
            both.iter().filter(|_| self.trusts(peer)).find_map(|values| values.last().copied())
        };
        let scheme = forwarded_value("x-forwarded-proto", "proto")
            .filter(|scheme| scheme.eq_ignore_ascii_case("https"));
        let host = forwarded_value("x-forwarded-host", "host").filter(|host| is_authority(host));
        let own = || headers.get(header::HOST).and_then(|host| host.to_str().ok());
        format!("{}://{}", scheme.map_or("http", |_| "https"), host.or_else(own).unwrap_or("localhost"))
    }
}

/// `https://name`, with a path if the proxy serves this server below one.
fn public_url(url: &str) -> Result<String, Error> {
    let invalid = || {
        Error::Limits(format!("--public-url {url:?} is not an address: give https://translate.example.org"))
    };
    let parsed: Uri = url.parse().map_err(|_| invalid())?;
    let is_whole = matches!(parsed.scheme_str(), Some("http" | "https")) && parsed.query().is_none();
    match parsed.authority() {
        Some(authority) if is_whole && is_authority(authority.as_str()) => {
            Ok(url.trim_end_matches('/').to_owned())
        }
        _ => Err(invalid()),
    }
}

/// Whether this is only a name or an address, with or without a port.
fn is_authority(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:[]".contains(c))
}

/// The comma-separated values of a header, which may be repeated.
fn values<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("?"));
    lines.flat_map(|line| line.split(',')).map(str::trim).collect()
}

/// The values of a parameter in `Forwarded` (RFC 7239), one for each proxy; empty if a proxy does not set it.
fn forwarded<'h>(headers: &'h HeaderMap, parameter: &str) -> Vec<&'h str> {
    let value = |element: &'h str| {
        let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
        let mut found = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case(parameter));
        found.next().map_or("", |(_, value)| value.trim().trim_matches('"'))
    };
    values(headers, "forwarded").into_iter().map(value).collect()
}

/// The address of `1.2.3.4`, `1.2.3.4:5`, `::1`, `[::1]` or `[::1]:5`.
fn address(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    bare.parse().ok().or_else(|| hop.parse().ok().map(|address: SocketAddr| address.ip()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn proxies(trusted: &[&str], public_url: Option<&str>) -> Result<Proxies, Error> {
        let trusted_proxies = trusted.iter().map(|network| network.parse().expect("a network")).collect();
        let public_url = public_url.map(str::to_owned);
        Proxies::new(&ServerOptions { trusted_proxies, public_url, ..ServerOptions::default() })
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().expect("a header"))
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn networks_are_addresses_and_prefixes() {
        for (network, inside, outside) in [
            ("10.0.0.7", "10.0.0.7", "10.0.0.8"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("0.0.0.0/0", "1.2.3.4", "::1"),
            ("::/0", "::1", "1.2.3.4"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
        ] {
            let parsed: Network = network.parse().expect("a network");
            assert!(parsed.contains(inside.parse().expect("an address")), "{network} {inside}");
            assert!(!parsed.contains(outside.parse().expect("an address")), "{network} {outside}");
        }
        for invalid in ["", "x", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129", "10.0.0/8"] {
            assert!(invalid.parse::<Network>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn the_client_is_the_first_address_from_the_right_that_is_not_a_trusted_proxy() {
        let proxies = proxies(&["10.0.0.0/8", "fd00::/8"], None).expect("good options");
        for (peer, lines, expected) in [
            ("10.0.0.1", &[("x-forwarded-for", "1.2.3.4")][..], "1.2.3.4"),
            // The headers of other peers are ignored.
            ("1.2.3.4", &[("x-forwarded-for", "5.6.7.8")], "1.2.3.4"),
            ("10.0.0.1", &[], "10.0.0.1"),
            // A client may start the list with forged entries.
            ("10.0.0.1", &[("x-forwarded-for", "9.9.9.9, 1.2.3.4, 10.0.0.2")], "1.2.3.4"),
            ("10.0.0.1", &[("x-forwarded-for", "9.9.9.9"), ("x-forwarded-for", "1.2.3.4:567")], "1.2.3.4"),
            ("10.0.0.1", &[("x-forwarded-for", "unknown, 10.0.0.2")], "10.0.0.2"),
            ("10.0.0.1", &[("x-forwarded-for", "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
            ("fd00::1", &[("forwarded", "for=\"[2001:db8::7]:4711\";proto=https")], "2001:db8::7"),
            ("10.0.0.1", &[("forwarded", "for=9.9.9.9, For=1.2.3.4")], "1.2.3.4"),
            ("10.0.0.1", &[("forwarded", "for=1.2.3.4, proto=https")], "10.0.0.1"),
            // Ambiguous: the proxy wrote only one of the two.
            ("10.0.0.1", &[("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=5.6.7.8")], "10.0.0.1"),
            ("10.0.0.1", &[("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=1.2.3.4")], "1.2.3.4"),
        ] {
            let found = proxies.client(peer.parse().expect("an address"), &headers(lines));
            assert_eq!(found.to_string(), expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn the_base_url_is_the_one_that_clients_use() {
        let (given, none) = (Some("https://a.example/mt/"), None);
        let lines =
            [("host", "inside:5000"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "a.example")];
        for (peer, public_url, lines, expected) in [
            ("10.0.0.1", none, &lines[..], "https://a.example"),
            ("10.0.0.1", none, &lines[..2], "https://inside:5000"),
            ("10.0.0.1", none, &lines[..1], "http://inside:5000"),
            ("1.2.3.4", none, &lines[..], "http://inside:5000"),
            ("1.2.3.4", given, &lines[..], "https://a.example/mt"),
            ("10.0.0.1", none, &[("x-forwarded-host", "a/b\"")], "http://localhost"),
            (
                "10.0.0.1",
                none,
                &[("forwarded", "host=\"b.example:8443\";proto=https")],
                "https://b.example:8443",
            ),
        ] {
            let proxies = proxies(&["10.0.0.1"], public_url).expect("good options");
            let found = proxies.base_url(peer.parse().expect("an address"), &headers(lines));
            assert_eq!(found, expected, "{peer} {lines:?}");
        }
        for invalid in ["a.example", "ftp://a.example", "https://", "https://a@b", "https://a.example/?q"] {
            assert!(proxies(&[], Some(invalid)).is_err(), "{invalid}");
        }
    }
}
