//! Who is let in.
//!
//! Without keys only this machine may connect, and only under a name of this machine: a page in a browser
//! that has its own name resolved to the loopback address still sends that name.

use super::reject::own;
use crate::egress::Presented;
use crate::secret::AccessKeys;
use http::{HeaderMap, header};
use std::net::SocketAddr;
use throughline_core::{Failure, FailureKind};

/// Says whether a request may come in.
///
/// # Errors
/// When the client presents no key or a wrong one, or comes from elsewhere while there are no keys.
pub fn admit(keys: &AccessKeys, peer: SocketAddr, headers: &HeaderMap) -> Result<(), Failure> {
    if keys.is_empty() {
        return admit_local(peer, headers);
    }
    let presented = Presented::of(headers);
    match presented.key() {
        Some(key) if keys.admit(key) => Ok(()),
        Some(_) => {
            Err(own(FailureKind::Authentication, "throughline_wrong_key", "the key is not known here"))
        }
        None => Err(own(
            FailureKind::Authentication,
            "throughline_no_key",
            "present a key of this gateway, as `Authorization: Bearer …` or as `x-api-key`",
        )),
    }
}

/// Says whether a WebSocket may be opened from where it is.
///
/// A browser lets every page open one to this machine and read what comes back, so the page counts too, as
/// long as no key is asked for, which a page cannot present.
///
/// # Errors
/// When a page of another machine opens it while there are no keys.
pub fn admit_page(keys: &AccessKeys, headers: &HeaderMap) -> Result<(), Failure> {
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("?"));
    let host = origin.map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    match host {
        Some(host) if keys.is_empty() && !is_local(host) => {
            let message = "without keys, only pages of this machine may connect";
            Err(own(FailureKind::Permission, "throughline_not_local", message))
        }
        _ => Ok(()),
    }
}

fn admit_local(peer: SocketAddr, headers: &HeaderMap) -> Result<(), Failure> {
    let refuse = |message: &'static str| Err(own(FailureKind::Permission, "throughline_not_local", message));
    if !peer.ip().to_canonical().is_loopback() {
        return refuse("without keys, only this machine may connect");
    }
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or("?"));
    match host {
        Some(host) if !is_local(host) => refuse("the Host header names another machine"),
        _ => Ok(()),
    }
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn admitted(keys: &[&str], peer: &str, headers: &[(&'static str, &str)]) -> bool {
        let keys: Vec<Secret> = keys.iter().map(|key| Secret::new(*key)).collect();
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        admit(&AccessKeys::new(&keys), peer.parse().unwrap(), &headers).is_ok()
    }

    #[test]
    fn without_keys_only_this_machine_under_its_own_name_is_let_in() {
        assert!(admitted(&[], "127.0.0.1:9", &[("host", "localhost:4141")]));
        assert!(admitted(&[], "[::1]:9", &[("host", "[::1]:4141")]));
        assert!(!admitted(&[], "127.0.0.1:9", &[("host", "evil.example:4141")]));
        assert!(!admitted(&[], "192.0.2.1:9", &[("host", "localhost:4141")]));
    }

    #[test]
    fn with_keys_everybody_who_has_one_is() {
        let bearer = [("authorization", "Bearer k2")];
        assert!(admitted(&["k1", "k2"], "192.0.2.1:9", &bearer));
        assert!(admitted(&["k1"], "192.0.2.1:9", &[("x-api-key", "k1")]));
        assert!(!admitted(&["k1"], "127.0.0.1:9", &bearer));
        assert!(!admitted(&["k1"], "127.0.0.1:9", &[]));
    }
}
