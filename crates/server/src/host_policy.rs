//! Which web pages may use the server.
//!
//! A browser lets any page send requests to any address, also to this machine. Two headers identify the page:
//!
//! ```text
//! Host     the name that the browser requested. A foreign page whose own name resolves to this server (DNS
//!          rebinding) sends that name, so only known names are accepted.
//! Origin   the site of the requesting page. Without --allow-origin, only the server's own page is accepted.
//! ```

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, Uri, header};

use crate::error::{ApiError, Error};
use crate::options::ServerOptions;

/// The names that the server answers to, and the pages that may use it.
pub(crate) struct HostPolicy {
    listens_on: IpAddr,
    /// In lower case; `*` matches any. Includes the host of `--public-url`.
    hosts: Vec<String>,
    /// The allowed origin (CORS); `*` matches any.
    pub(crate) origin: Option<HeaderValue>,
}

impl HostPolicy {
    pub(crate) fn new(options: &ServerOptions) -> Result<HostPolicy, Error> {
        let odd_origin = |origin: &str| {
            Error::Limits(format!("{origin:?} is not an origin: give * or https://example.org"))
        };
        let origin = options.allow_origin.as_deref();
        let origin =
            origin.map(|origin| HeaderValue::from_str(origin).map_err(|_| odd_origin(origin))).transpose()?;
        let host = |host: &String| {
            let name = without_port(host).to_ascii_lowercase();
            if name.is_empty() || host.contains(['/', ' ', ',']) {
                return Err(Error::Limits(format!(
                    "--allow-host {host:?} is not a host: give * or a name such as translate.example.org"
                )));
            }
            Ok(name)
        };
        let public = options.public_url.as_deref().and_then(|url| url.parse::<Uri>().ok());
        let public =
            public.and_then(|url| Some(without_port(url.authority()?.as_str()).to_ascii_lowercase()));
        let hosts = options.allow_hosts.iter().map(host).chain(public.map(Ok)).collect::<Result<_, _>>()?;
        Ok(HostPolicy { listens_on: options.address.ip(), hosts, origin })
    }

    /// 403 for a request that another site's page may have sent.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let hosts = headers.get_all(header::HOST).iter();
        let hosts: Vec<&str> = match uri.authority() {
            Some(authority) => vec![authority.as_str()],
            None => hosts.map(|host| host.to_str().unwrap_or("?")).collect(),
        };
        if let Some(host) = hosts.iter().find(|host| !self.answers_to(without_port(host))) {
            let name = shortened(without_port(host));
            return Err(ApiError::forbidden(format!(
                "this server does not answer to the name `{name}`: use its address, or start it with --allow-host {name}"
            )));
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        if self.origin.as_ref().is_some_and(|allowed| allowed == "*" || allowed == origin) {
            return Ok(());
        }
        let origin = origin.to_str().unwrap_or("?");
        let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
        let is_own = hosts.first().is_some_and(|host| authority.eq_ignore_ascii_case(host));
        // Behind a proxy, the page has another name than the server.
        let is_named = self.hosts.iter().any(|known| without_port(authority).eq_ignore_ascii_case(known));
        if is_own || is_named {
            return Ok(());
        }
        let origin = shortened(origin);
        Err(ApiError::forbidden(format!(
            "pages of `{origin}` may not use this server; --allow-origin {origin} allows them"
        )))
    }

    fn answers_to(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        // An IP address needs no DNS lookup, so it cannot be redirected.
        if let Ok(address) = name.parse::<IpAddr>() {
            return address.is_loopback() || !self.listens_on.is_loopback() || self.is_listed(&name);
        }
        let name = name.strip_suffix('.').unwrap_or(&name);
        name == "localhost" || name.ends_with(".localhost") || self.is_listed(name)
    }

    fn is_listed(&self, name: &str) -> bool {
        self.hosts.iter().any(|known| known == "*" || known == name)
    }
}

/// The name or address of `name:port` or `[address]:port`.
fn without_port(authority: &str) -> &str {
    if let Some(inside) = authority.strip_prefix('[') {
        return inside.split(']').next().unwrap_or_default();
    }
    match authority.rsplit_once(':') {
        // Several colons: an IPv6 address without a port.
        Some((name, _)) if !name.contains(':') => name,
        _ => authority,
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(policy: &HostPolicy, host: &str, origin: Option<&str>) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("a header"));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().expect("a header"));
        }
        policy.check(&Uri::from_static("/translate"), &headers).map_err(|error| {
            assert_eq!(error.status, 403);
            error.message
        })
    }

    fn policy(listens_on: &str, hosts: &[&str], origin: Option<&str>) -> HostPolicy {
        HostPolicy::new(&ServerOptions {
            address: listens_on.parse().expect("an address"),
            allow_hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            allow_origin: origin.map(str::to_owned),
            ..ServerOptions::default()
        })
        .expect("good options")
    }

    #[test]
    fn only_known_host_names_are_accepted() {
        let local = policy("127.0.0.1:5000", &[], None);
        let open = policy("0.0.0.0:5000", &["Heedful.Example:443"], None);
        let any = policy("[::1]:5000", &["*"], None);
        for (host, at_local, at_open) in [
            ("localhost", true, true),
            ("LOCALHOST:5000", true, true),
            ("localhost.:5000", true, true),
            ("app.localhost:5000", true, true),
            ("127.0.0.1:5000", true, true),
            ("127.9.9.9", true, true),
            ("[::1]:5000", true, true),
            ("192.168.1.5:5000", false, true),
            ("evil.example:5000", false, false),
            ("localhost.evil.example", false, false),
            ("127.0.0.1.evil.example", false, false),
            ("heedful.example", false, true),
            ("heedful.example:8080", false, true),
            ("", false, false),
        ] {
            assert_eq!(status(&local, host, None).is_ok(), at_local, "{host}");
            assert_eq!(status(&open, host, None).is_ok(), at_open, "{host}");
            assert!(status(&any, host, None).is_ok(), "{host}");
        }
        let message = status(&local, "evil.example:5000", None).expect_err("a stranger");
        assert!(message.ends_with("--allow-host evil.example"), "{message}");
        let absolute = "http://evil.example/translate".parse().expect("an address");
        assert!(local.check(&absolute, &HeaderMap::new()).is_err());
        assert!(local.check(&Uri::from_static("/"), &HeaderMap::new()).is_ok(), "every browser sends Host");
    }

    #[test]
    fn only_pages_of_allowed_origins_are_accepted() {
        let closed = policy("127.0.0.1:5000", &["heedful.example"], None);
        let allowing = policy("127.0.0.1:5000", &[], Some("https://app.example"));
        for (host, origin, at_closed, at_allowing) in [
            ("127.0.0.1:5000", "http://127.0.0.1:5000", true, true),
            ("localhost:5000", "http://localhost:5000", true, true),
            ("localhost:5000", "http://localhost:3000", false, false),
            ("localhost:5000", "http://127.0.0.1:5000", false, false),
            ("127.0.0.1:5000", "https://heedful.example", true, false),
            ("127.0.0.1:5000", "https://evil.example", false, false),
            ("127.0.0.1:5000", "https://app.example", false, true),
            ("127.0.0.1:5000", "null", false, false),
            ("127.0.0.1:5000", "", false, false),
        ] {
            assert_eq!(status(&closed, host, Some(origin)).is_ok(), at_closed, "{host} {origin}");
            assert_eq!(status(&allowing, host, Some(origin)).is_ok(), at_allowing, "{host} {origin}");
            assert!(status(&policy("127.0.0.1:5000", &[], Some("*")), host, Some(origin)).is_ok());
        }
        let message = status(&closed, "localhost", Some("https://evil.example")).expect_err("a stranger");
        assert!(message.contains("pages of `https://evil.example` may not use this server"), "{message}");
    }
}
