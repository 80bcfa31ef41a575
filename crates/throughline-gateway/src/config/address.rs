//! Addresses: where clients connect, and where backends are.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Where a backend is: a URL up to and including the version, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    host_start: usize,
}

/// Where a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Behind a URL.
    Url(BaseUrl),
    /// In this process: the simulated backend.
    Simulated,
}

/// What stands for the simulated backend where a URL is expected.
pub const SIMULATED: &str = "sim:";

/// Reads an address to listen on: `HOST:PORT` with a number for a host, or `localhost`.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let numeric =
        text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    numeric.parse().map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:4141 or [::1]:4141"))
}

impl Endpoint {
    /// Reads a base URL.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == SIMULATED {
            return Ok(Self::Simulated);
        }
        BaseUrl::parse(text).map(Self::Url)
    }

    /// Returns the URL, unless the backend is simulated.
    #[must_use]
    pub const fn url(&self) -> Option<&BaseUrl> {
        match self {
            Self::Url(url) => Some(url),
            Self::Simulated => None,
        }
    }
}

impl BaseUrl {
    fn parse(text: &str) -> Result<Self, String> {
        let example = "expected a URL such as https://api.example.com/v1";
        let Some((scheme, rest)) = text.split_once("://") else { return Err(example.to_owned()) };
        if !matches!(scheme, "http" | "https") {
            return Err(format!("`{scheme}` is not spoken to backends; {example}"));
        }
        if rest.contains(['?', '#']) || rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(format!("a base URL has no query, fragment or white space; {example}"));
        }
        let host = rest.split('/').next().unwrap_or_default();
        if host.contains('@') {
            return Err("credentials do not belong into the URL; use `api_key` or `headers`".to_owned());
        }
        if host.is_empty() || host.starts_with(':') {
            return Err(format!("there is no host; {example}"));
        }
        let text = text.trim_end_matches('/').to_owned();
        Ok(Self { text, host_start: scheme.len() + "://".len() })
    }

    /// Returns the URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Says whether the connection is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.text.starts_with("https:")
    }

    /// Says whether the URL ends with its host, so that it has no version.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        !self.text[self.host_start..].contains('/')
    }

    /// Returns the host, without its port.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.text[self.host_start..].split('/').next().unwrap_or_default();
        match host.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        }
    }

    /// Returns the port, where it is written.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        let host = self.text[self.host_start..].split('/').next().unwrap_or_default();
        let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
        behind.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
    }

    /// Says whether the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let name = self.host();
        name == "localhost"
            || name.ends_with(".localhost")
            || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url().map_or(SIMULATED, BaseUrl::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_number_or_localhost() {
        assert_eq!(parse_listen("localhost:4141").unwrap(), "127.0.0.1:4141".parse().unwrap());
        assert_eq!(parse_listen("[::1]:0").unwrap(), "[::1]:0".parse().unwrap());
        for wrong in ["", "4141", ":4141", "127.0.0.1", "example.com:80", "127.0.0.1:99999"] {
            assert!(parse_listen(wrong).unwrap_err().contains("127.0.0.1:4141"), "{wrong}");
        }
    }

    #[test]
    fn a_base_url_loses_its_last_slash_and_nothing_else() {
        for (text, expected) in [
            ("https://api.example.com/v1/", "https://api.example.com/v1"),
            ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
            ("sim:", "sim:"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for wrong in [
            "",
            "api.example.com/v1",
            "ftp://example.com",
            "https://",
            "https:///v1",
            "https://:80/v1",
            "https://example.com/v1?key=1",
            "https://user:secret@example.com/v1",
            "https://exa mple.com",
        ] {
            let error = Endpoint::parse(wrong).expect_err(wrong);
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn loopback_is_told_from_what_only_begins_like_it() {
        for (text, expected) in [
            ("http://localhost:8000/v1", true),
            ("http://127.0.0.1/v1", true),
            ("http://[::1]:8000", true),
            ("http://sim.localhost/v1", true),
            ("http://127.0.0.1.example.com/v1", false),
            ("http://localhost.example.com", false),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.url().unwrap().is_loopback(), expected, "{text}");
        }
    }
}
