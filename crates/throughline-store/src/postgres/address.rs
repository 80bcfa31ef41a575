//! Where the database is, and how far its server is trusted: a URL as `libpq` reads it.
//!
//! The driver reads most of it. What it does not know is taken out first: the modes of TLS in which the
//! server's certificate is verified, and the file of the authority that vouches for it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::StoreError;

/// Where the database is. Shown without its password.
pub(super) struct Address {
    pub config: Config,
    pub trust: Trust,
    /// The certificate of the authority that vouches for the server; those of the system if it is not given.
    pub root_certificate: Option<PathBuf>,
    /// Whether the certificate is verified although the URL says nothing about it.
    pub by_default: bool,
}

/// Whether only a server will do that takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// No other will do.
    Needed,
    /// One that is only read from will do as well, such as a standby.
    IfPossible,
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
    pub fn parse(url: &str, limit: Duration, writes: Writes) -> Result<Self, StoreError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut rest = Vec::new();
        let (mut asked, mut root_certificate, mut system_roots) = (None, None, false);
        let mut names_session = false;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => asked = Some(modes(value)?),
                Some(("sslrootcert", "system")) => system_roots = true,
                Some(("sslrootcert", path)) => root_certificate = Some(PathBuf::from(decoded(path))),
                Some(("target_session_attrs", _)) => {
                    names_session = true;
                    rest.push(pair);
                }
                _ => rest.push(pair),
            }
        }
        let has_roots = root_certificate.is_some() || system_roots;
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = plain.parse().map_err(|error| invalid(&reason(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid("it names no host"));
        }
        let (mode, trust) = match asked {
            // As libpq has it: who names an authority wants it to vouch for the server.
            Some((SslMode::Require, Trust::Anybody)) if has_roots => (SslMode::Require, Trust::Vouched),
            Some((_, Trust::Anybody)) if has_roots => {
                return Err(invalid(
                    "sslrootcert is only read with sslmode=require, verify-ca or verify-full",
                ));
            }
            Some(asked) => asked,
            None if !has_roots && is_local(&config) => (SslMode::Prefer, Trust::Anybody),
            None => (SslMode::Require, Trust::Named),
        };
        config.ssl_mode(mode);
        if config.get_hosts().iter().all(is_socket_file) && config.get_hostaddrs().is_empty() {
            config.ssl_mode(SslMode::Disable);
        }
        if writes == Writes::Needed && !names_session {
            // Of several hosts, the one that takes writes; and none that has handed over to another.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("throughline");
        }
        config.tcp_user_timeout(limit).keepalives_idle(limit.max(Duration::from_secs(1)));
        let by_default = asked.is_none() && trust == Trust::Named;
        Ok(Self { config, trust, root_certificate, by_default })
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

fn modes(value: &str) -> Result<(SslMode, Trust), StoreError> {
    match value {
        "disable" => Ok((SslMode::Disable, Trust::Anybody)),
        // The driver cannot begin in the clear and change its mind; it begins with TLS.
        "allow" | "prefer" => Ok((SslMode::Prefer, Trust::Anybody)),
        "require" => Ok((SslMode::Require, Trust::Anybody)),
        "verify-ca" => Ok((SslMode::Require, Trust::Vouched)),
        "verify-full" => Ok((SslMode::Require, Trust::Named)),
        _ => Err(invalid("sslmode is one of disable, allow, prefer, require, verify-ca, verify-full")),
    }
}

/// Says whether what is sent stays on this machine.
fn is_local(config: &Config) -> bool {
    let is_loopback = |name: &str| {
        let is_name = name.eq_ignore_ascii_case("localhost");
        is_name || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    let mut hosts = config.get_hosts().iter();
    hosts.all(|host| match host {
        Host::Tcp(name) => is_loopback(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
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
        Address::parse(url, Duration::from_secs(1), Writes::Needed)
    }

    #[test]
    fn the_mode_of_tls_is_that_of_the_url() {
        for (query, mode, trust) in [
            ("", SslMode::Require, Trust::Named),
            ("?sslrootcert=%2Fca.pem", SslMode::Require, Trust::Named),
            ("?sslmode=require&sslrootcert=%2Fca.pem", SslMode::Require, Trust::Vouched),
            ("?sslmode=prefer", SslMode::Prefer, Trust::Anybody),
            ("?sslmode=allow", SslMode::Prefer, Trust::Anybody),
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
        for (hosts, mode) in [
            ("127.0.0.1", SslMode::Prefer),
            ("localhost:5433", SslMode::Prefer),
            ("[::1]", SslMode::Prefer),
            ("127.0.0.1,db.example", SslMode::Require),
            ("10.0.0.7", SslMode::Require),
            ("localhost.example", SslMode::Require),
        ] {
            let address = parse(&format!("postgres://u@{hosts}/d")).unwrap();
            assert_eq!(address.config.get_ssl_mode(), mode, "{hosts}");
            assert_eq!(address.by_default, mode == SslMode::Require, "{hosts}");
        }
        let tunnel = parse("postgres://u@db.example/d?hostaddr=127.0.0.1").unwrap();
        assert_eq!(tunnel.trust, Trust::Named, "the name is what is verified");
        let elsewhere = parse("postgres://u@localhost/d?hostaddr=10.0.0.7").unwrap();
        assert_eq!(elsewhere.trust, Trust::Named, "the address is where it goes");
    }

    #[test]
    fn a_server_that_takes_writes_is_looked_for_unless_the_url_says_otherwise() {
        for (query, writes, wanted) in [
            ("", Writes::Needed, TargetSessionAttrs::ReadWrite),
            ("", Writes::IfPossible, TargetSessionAttrs::Any),
            ("?target_session_attrs=any", Writes::Needed, TargetSessionAttrs::Any),
        ] {
            let url = format!("postgres://u@one.example,two.example/d{query}");
            let address = Address::parse(&url, Duration::from_secs(1), writes).unwrap();
            assert_eq!(address.config.get_target_session_attrs(), wanted, "{query} {writes:?}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_says_why_and_shows_no_password() {
        for (url, why) in [
            ("postgres://u:secret@h/d?sslmode=maybe", "sslmode is one of"),
            ("postgres://u:secret@h/d?sslmode=prefer&sslrootcert=/ca.pem", "verify-ca or verify-full"),
            ("postgres://u:secret@h/d?unheard_of=1", "unheard_of"),
            ("postgres://u:secret@h:port/d", "port"),
            ("postgres:///d", "no host"),
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
