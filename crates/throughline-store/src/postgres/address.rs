//! Where the database is, and how far its server is trusted: a URL as `libpq` reads it.
//!
//! The driver reads most of it. What it does not know is taken out first: the modes of TLS in which the
//! server's certificate is verified, and the file of the authority that vouches for it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::StoreError;

/// Where the database is. Shown without its password.
pub(super) struct Address {
    pub config: Config,
    pub trust: Trust,
    /// The certificate of the authority that vouches for the server; those of the system if it is not given.
    pub root_certificate: Option<PathBuf>,
}

/// What of the server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Nothing: who listens is kept out, and who pretends to be the server is not.
    Anybody,
    /// That an authority vouches for it.
    Vouched,
    /// That an authority vouches for it, for the name that the URL has.
    Named,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl Address {
    /// Reads a URL; `limit` is how long the network may leave something unacknowledged.
    pub fn parse(url: &str, limit: Duration) -> Result<Self, StoreError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut rest = Vec::new();
        let (mut mode, mut trust, mut root_certificate) = (None, Trust::Anybody, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => (mode, trust) = modes(value)?,
                Some(("sslrootcert", path)) => root_certificate = Some(PathBuf::from(decoded(path))),
                _ => rest.push(pair),
            }
        }
        if trust == Trust::Anybody && root_certificate.is_some() {
            return Err(invalid("sslrootcert is only read with sslmode=verify-ca or verify-full"));
        }
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = plain.parse().map_err(|error| invalid(&reason(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid("it names no host"));
        }
        config.ssl_mode(mode.unwrap_or(SslMode::Prefer));
        if config.get_hosts().iter().all(is_socket_file) {
            config.ssl_mode(SslMode::Disable);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("throughline");
        }
        config.tcp_user_timeout(limit).keepalives_idle(limit.max(Duration::from_secs(1)));
        Ok(Self { config, trust, root_certificate })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.config.get_hosts().iter().map(shown).collect();
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        write!(f, "{}:{port}", hosts.join(","))?;
        match self.config.get_dbname().or(self.config.get_user()) {
            Some(name) => write!(f, "/{name}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self}, {:?})", self.trust)
    }
}

fn modes(value: &str) -> Result<(Option<SslMode>, Trust), StoreError> {
    match value {
        "disable" => Ok((Some(SslMode::Disable), Trust::Anybody)),
        "prefer" => Ok((Some(SslMode::Prefer), Trust::Anybody)),
        "require" => Ok((Some(SslMode::Require), Trust::Anybody)),
        "verify-ca" => Ok((Some(SslMode::Require), Trust::Vouched)),
        "verify-full" => Ok((Some(SslMode::Require), Trust::Named)),
        _ => Err(invalid("sslmode is one of disable, prefer, require, verify-ca, verify-full")),
    }
}

fn is_socket_file(host: &Host) -> bool {
    !matches!(host, Host::Tcp(_))
}

fn shown(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

/// What is wrong, with its cause: the driver's own words name the key, and never a value.
fn reason(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

fn invalid(what: &str) -> StoreError {
    StoreError::Unsupported(format!("the URL of the database cannot be used: {what}"))
}

/// Undoes percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, StoreError> {
        Address::parse(url, Duration::from_secs(1))
    }

    #[test]
    fn the_mode_of_tls_is_that_of_the_url() {
        for (query, mode, trust) in [
            ("", SslMode::Prefer, Trust::Anybody),
            ("?sslmode=disable", SslMode::Disable, Trust::Anybody),
            ("?sslmode=require&connect_timeout=3", SslMode::Require, Trust::Anybody),
            ("?connect_timeout=3&sslmode=verify-ca", SslMode::Require, Trust::Vouched),
            ("?sslmode=verify-full&sslrootcert=%2Fca.pem", SslMode::Require, Trust::Named),
        ] {
            let address = parse(&format!("postgres://u:secret@db.example:6543/history{query}")).unwrap();
            assert_eq!((address.config.get_ssl_mode(), address.trust), (mode, trust), "{query}");
            assert_eq!(address.to_string(), "db.example:6543/history");
            assert_eq!(address.root_certificate.is_some(), query.contains("sslrootcert"));
            assert!(!format!("{address:?}").contains("secret"));
        }
        let local = parse("postgresql://u@%2Frun%2Fpostgresql/d").unwrap();
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable, "a file needs no TLS");
    }

    #[test]
    fn a_url_that_cannot_be_used_says_why_and_shows_no_password() {
        for (url, why) in [
            ("postgres://u:secret@h/d?sslmode=maybe", "sslmode is one of"),
            ("postgres://u:secret@h/d?sslrootcert=/ca.pem", "verify-ca or verify-full"),
            ("postgres://u:secret@h/d?unheard_of=1", "unheard_of"),
            ("postgres://u:secret@h:port/d", "port"),
            ("postgres:///d", "no host"),
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
