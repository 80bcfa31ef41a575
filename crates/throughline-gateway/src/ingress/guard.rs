//! Who is let in, by the head of a request alone.
//!
//! With keys, whoever presents one. Without keys only this machine, and on it no page of a browser but the
//! inspector: a browser lets every page send requests to this machine, and what they ask for costs money. A page
//! gives itself away by `Origin` and `Sec-Fetch-Site`, which scripts cannot change, and one that has its own name
//! resolved to this machine (DNS rebinding) by the host that it asks for.

use crate::egress::Presented;
use crate::failure::gateway_error;
use crate::secret::AccessKeys;
use crate::telemetry::Refusal;
use http::uri::Authority;
use http::{HeaderMap, Method, Uri, header};
use std::net::{IpAddr, SocketAddr};
use throughline_core::{Failure, FailureKind};

/// The head of a request, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Head<'r> {
    /// Who sent it.
    pub peer: SocketAddr,
    /// Its method.
    pub method: &'r Method,
    /// What it is for; with HTTP/2 that holds the host as well.
    pub uri: &'r Uri,
    /// Its headers.
    pub headers: &'r HeaderMap,
}

/// What a path gives away, which decides who is let in to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Whether the gateway works: everybody may know.
    Health,
    /// The inspector's own files: they hold nothing of anybody's history.
    Inspector,
    /// Everything else.
    Private,
}

/// Why a request is not let in.
#[derive(Debug)]
pub struct Denied {
    /// What is counted.
    pub reason: Refusal,
    /// What the client is told.
    pub failure: Failure,
}

impl Area {
    /// Returns the area of a path.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        match path {
            "/healthz" | "/readyz" => Self::Health,
            "/" => Self::Inspector,
            path if path.starts_with("/inspector/") => Self::Inspector,
            _ => Self::Private,
        }
    }
}

/// Says whether a request may come in.
///
/// # Errors
/// When the client presents no key or a wrong one, or while there are no keys when it comes from elsewhere or
/// from a page of another origin.
pub fn admit(keys: &AccessKeys, head: &Head<'_>) -> Result<(), Denied> {
    let area = Area::of_path(head.uri.path());
    if area == Area::Health {
        return Ok(());
    }
    if is_preflight(head) {
        return deny_page("pages of other origins may not use this gateway, so that there is no CORS here");
    }
    match (area, keys.is_empty()) {
        (Area::Health | Area::Inspector, false) => Ok(()),
        (Area::Health | Area::Inspector, true) => admit_local(head).map(drop),
        (Area::Private, false) => admit_key(keys, head.headers),
        (Area::Private, true) => {
            let authority = admit_local(head)?;
            admit_page(head, &authority)
        }
    }
}

fn admit_key(keys: &AccessKeys, headers: &HeaderMap) -> Result<(), Denied> {
    let deny = |code, message: &'static str| {
        Err(Denied {
            reason: Refusal::Key,
            failure: gateway_error(FailureKind::Authentication, code, message),
        })
    };
    match Presented::of(headers).key() {
        Some(key) if keys.admit(key) => Ok(()),
        Some(_) => deny("throughline_wrong_key", "the key is not known here"),
        None => deny(
            "throughline_no_key",
            "present a key of this gateway, as `Authorization: Bearer …` or as `x-api-key`",
        ),
    }
}

/// Lets in what comes from this machine and asks for this machine; returns the host that it asks for.
fn admit_local(head: &Head<'_>) -> Result<Authority, Denied> {
    let deny = |message: &'static str| {
        let failure = gateway_error(FailureKind::Permission, "throughline_not_local", message);
        Err(Denied { reason: Refusal::NotLocal, failure })
    };
    if !head.peer.ip().to_canonical().is_loopback() {
        return deny("without keys, only this machine may connect");
    }
    let in_headers = head.headers.get_all(header::HOST).iter();
    let in_headers =
        in_headers.map(|host| host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()));
    // A target that names the host goes before the header (RFC 9112), and a reader that does not know that would
    // go by the header: both have to be this machine.
    let mut asked = in_headers.chain(head.uri.authority().cloned().map(Some)).peekable();
    if asked.peek().is_none() {
        return deny("the request does not say which host it is for; send a Host header");
    }
    let mut last = None;
    for authority in asked {
        match authority.filter(is_local) {
            Some(authority) => last = Some(authority),
            None => return deny("the Host header names another machine"),
        }
    }
    last.map_or_else(|| deny("the request does not say which host it is for; send a Host header"), Ok)
}

/// Keeps out pages of browsers, unless they are of the same origin as what they ask for.
fn admit_page(head: &Head<'_>, authority: &Authority) -> Result<(), Denied> {
    let origin = head.headers.get(header::ORIGIN);
    let site = head.headers.get("sec-fetch-site");
    if origin.is_none() && site.is_none() {
        return Ok(());
    }
    let is_own = |origin: &http::HeaderValue| origin.to_str().is_ok_and(|origin| is_same(origin, authority));
    if origin.is_some_and(|origin| !is_own(origin)) {
        return deny_page("without keys, pages of other origins may not use this gateway");
    }
    // Without a page it is the user who typed the address.
    if site.is_some_and(|site| !["same-origin", "none"].iter().any(|own| site == own)) {
        return deny_page("without keys, pages of other sites may not use this gateway");
    }
    // What is not JSON can be sent across origins without a preflight.
    if brings_body(head.headers) && !is_json(head.headers) {
        let message = "a page has to send `content-type: application/json`";
        let failure = gateway_error(FailureKind::InvalidRequest, "throughline_content_type", message);
        return Err(Denied { reason: Refusal::Page, failure });
    }
    Ok(())
}

fn deny_page(message: &'static str) -> Result<(), Denied> {
    let failure = gateway_error(FailureKind::Permission, "throughline_cross_origin", message);
    Err(Denied { reason: Refusal::Page, failure })
}

fn is_preflight(head: &Head<'_>) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Says whether an origin is that of a host; who speaks TLS in front of the gateway is not known here.
fn is_same(origin: &str, host: &Authority) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Ok(origin) = rest.parse::<Authority>() else { return false };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default);
    origin.host().eq_ignore_ascii_case(host.host()) && port(&origin) == port(host)
}

fn brings_body(headers: &HeaderMap) -> bool {
    let is_empty = headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0");
    !is_empty
        || [header::CONTENT_TYPE, header::TRANSFER_ENCODING].iter().any(|name| headers.contains_key(name))
}

fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn is_local(authority: &Authority) -> bool {
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    !authority.as_str().contains('@')
        && (name.eq_ignore_ascii_case("localhost")
            || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn outcome(keys: &[&str], peer: &str, line: &str, headers: &[(&str, &str)]) -> &'static str {
        let keys: Vec<Secret> = keys.iter().map(|key| Secret::new(*key)).collect();
        let (method, uri) = line.split_once(' ').unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
        }
        let (method, uri) = (method.parse().unwrap(), uri.parse().unwrap());
        let head = Head { peer: peer.parse().unwrap(), method: &method, uri: &uri, headers: &map };
        match admit(&AccessKeys::new(&keys), &head) {
            Ok(()) => "in",
            Err(denied) => denied.reason.name(),
        }
    }

    const HOME: &str = "127.0.0.1:9";
    const HOST: (&str, &str) = ("host", "localhost:4141");
    const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
    const PLAIN: (&str, &str) = ("content-type", "text/plain");
    const ASK: &str = "POST /v1/responses";

    #[test]
    fn without_keys_only_this_machine_under_its_own_name_is_let_in() {
        for (peer, line, headers, expected) in [
            (HOME, ASK, vec![HOST], "in"),
            ("[::1]:9", ASK, vec![("host", "[::1]:4141")], "in"),
            ("[::ffff:127.0.0.1]:9", ASK, vec![("host", "127.0.0.1")], "in"),
            (HOME, "POST http://localhost:4141/v1/responses", vec![], "in"),
            (HOME, ASK, vec![("host", "evil.example:4141")], "not_local"),
            (HOME, ASK, vec![("host", "localhost.evil.example")], "not_local"),
            (HOME, ASK, vec![("host", "localhost@evil.example")], "not_local"),
            (HOME, ASK, vec![HOST, ("host", "evil.example")], "not_local"),
            (HOME, ASK, vec![], "not_local"),
            (HOME, ASK, vec![("host", "")], "not_local"),
            (HOME, "POST http://evil.example/v1/responses", vec![], "not_local"),
            (HOME, "POST http://evil.example/v1/responses", vec![HOST], "not_local"),
            (HOME, "POST http://localhost/v1/responses", vec![("host", "evil.example")], "not_local"),
            ("192.0.2.1:9", ASK, vec![HOST], "not_local"),
            (HOME, "GET /metrics", vec![("host", "evil.example")], "not_local"),
            (HOME, "GET /api/conversations", vec![("host", "evil.example")], "not_local"),
            (HOME, "GET /", vec![("host", "evil.example")], "not_local"),
            (HOME, "GET /nothing", vec![("host", "evil.example")], "not_local"),
            ("192.0.2.1:9", "GET /healthz", vec![("host", "evil.example")], "in"),
            (HOME, "GET /readyz", vec![], "in"),
        ] {
            assert_eq!(outcome(&[], peer, line, &headers), expected, "{peer} {line} {headers:?}");
        }
    }

    #[test]
    fn without_keys_no_page_but_our_own_is_let_in() {
        let from = |origin| ("origin", origin);
        let site = |site| ("sec-fetch-site", site);
        for (line, headers, expected) in [
            (ASK, vec![from("http://localhost:4141"), site("same-origin"), JSON], "in"),
            (ASK, vec![from("http://localhost:4141"), JSON], "in"),
            (ASK, vec![from("http://localhost:4141"), ("content-type", "application/vnd.x+json")], "in"),
            (ASK, vec![from("http://localhost:4141"), PLAIN], "page"),
            (ASK, vec![from("http://localhost:4141"), ("content-length", "2")], "page"),
            (ASK, vec![from("http://localhost:4141"), ("content-length", "0")], "in"),
            (ASK, vec![from("http://localhost:3000"), JSON], "page"),
            (ASK, vec![from("http://127.0.0.1:4141"), JSON], "page"),
            (ASK, vec![from("http://localhost"), JSON], "page"),
            (ASK, vec![from("https://evil.example"), JSON], "page"),
            (ASK, vec![from("null"), JSON], "page"),
            (ASK, vec![from("file://localhost:4141"), JSON], "page"),
            (ASK, vec![site("cross-site"), JSON], "page"),
            (ASK, vec![site("same-site"), JSON], "page"),
            (ASK, vec![site("none"), PLAIN], "page"),
            // Not browsers: curl says that a body is a form, others say nothing.
            (ASK, vec![PLAIN], "in"),
            (ASK, vec![("content-type", "application/x-www-form-urlencoded")], "in"),
            (ASK, vec![], "in"),
            ("GET /v1/models", vec![site("cross-site")], "page"),
            ("GET /api/events", vec![site("cross-site")], "page"),
            ("GET /v1/responses", vec![from("https://evil.example")], "page"),
            ("GET /api/conversations", vec![site("none")], "in"),
            ("GET /api/conversations", vec![site("same-origin")], "in"),
            // A link to the inspector may stand anywhere.
            ("GET /", vec![site("cross-site")], "in"),
            ("OPTIONS /v1/responses", vec![("access-control-request-method", "POST")], "page"),
        ] {
            let headers: Vec<_> = std::iter::once(HOST).chain(headers).collect();
            assert_eq!(outcome(&[], HOME, line, &headers), expected, "{line} {headers:?}");
        }
    }

    #[test]
    fn with_keys_everybody_who_has_one_is() {
        let abroad = "192.0.2.1:9";
        let bearer = ("authorization", "Bearer k2");
        for (keys, peer, line, headers, expected) in [
            (vec!["k1", "k2"], abroad, ASK, vec![bearer], "in"),
            (vec!["k1"], abroad, ASK, vec![("x-api-key", "k1")], "in"),
            (vec!["k1"], HOME, ASK, vec![HOST, bearer], "key"),
            (vec!["k1"], HOME, ASK, vec![HOST], "key"),
            (vec!["k1"], HOME, "GET /metrics", vec![HOST], "key"),
            (vec!["k1"], abroad, "GET /", vec![], "in"),
            // A page that knows a key was given it by the user; its browser still asks for a preflight first.
            (vec!["k2"], HOME, ASK, vec![HOST, ("origin", "https://app.example"), bearer], "in"),
            (
                vec!["k2"],
                HOME,
                "OPTIONS /v1/responses",
                vec![HOST, ("access-control-request-method", "POST")],
                "page",
            ),
        ] {
            assert_eq!(outcome(&keys, peer, line, &headers), expected, "{peer} {line} {headers:?}");
        }
    }

    #[test]
    fn behind_a_proxy_that_speaks_tls_the_port_is_left_out() {
        let is_same = |origin, host: &str| is_same(origin, &host.parse().unwrap());
        assert!(is_same("https://gateway.example", "gateway.example"));
        assert!(is_same("https://gateway.example", "Gateway.example:443"));
        assert!(!is_same("https://gateway.example", "gateway.example:4141"));
    }
}
