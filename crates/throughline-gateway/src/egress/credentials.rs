//! What a backend is shown to be let in; never what another backend is shown.

use crate::config::Credential;
use crate::secret::{AccessKeys, Secret};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use throughline_core::Dialect;

/// The credentials that a client presented.
#[derive(Clone, Debug, Default)]
pub struct Presented {
    bearer: Option<HeaderValue>,
    key: Option<HeaderValue>,
    /// Whether a key of this gateway was taken out.
    had_ours: bool,
}

const KEY: HeaderName = HeaderName::from_static("x-api-key");

impl Presented {
    /// Takes the credentials from a client's headers.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let bearer = headers.get(header::AUTHORIZATION).cloned();
        Self { bearer, key: headers.get(KEY).cloned(), had_ours: false }
    }

    /// Takes from a client's headers the credentials that a backend may be shown: all but the keys of this gateway,
    /// which let the client in here and are nobody else's business.
    #[must_use]
    pub fn for_backends(headers: &HeaderMap, keys: &AccessKeys) -> Self {
        let mut presented = Self::of(headers);
        let is_ours = |value: &HeaderValue| bare(value).is_some_and(|key| keys.admit(key));
        for slot in [&mut presented.bearer, &mut presented.key] {
            presented.had_ours |= slot.take_if(|value| is_ours(value)).is_some();
        }
        presented
    }

    /// Says whether the client presented a key of this gateway and nothing else.
    #[must_use]
    pub const fn was_ours_alone(&self) -> bool {
        self.had_ours && self.bearer.is_none() && self.key.is_none()
    }

    /// Returns the credentials as secrets, to be taken out of what a backend says that was shown them.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        [&self.bearer, &self.key].into_iter().flatten().filter_map(bare).map(Secret::new).collect()
    }

    /// Returns the key that the client presented, whichever header it used.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        let bearer = self.bearer.as_ref().and_then(|value| value.to_str().ok());
        let bearer =
            bearer.and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")));
        bearer.or_else(|| self.key.as_ref().and_then(|value| value.to_str().ok())).map(str::trim)
    }
}

/// Returns the credential in a header, without the scheme that may stand before it.
fn bare(value: &HeaderValue) -> Option<&str> {
    let text = value.to_str().ok()?.trim();
    Some(text.split_once(' ').map_or(text, |(_, key)| key.trim()))
}

/// Writes credentials as the dialect's servers expect them.
pub(super) fn write(
    credential: &Credential,
    dialect: Dialect,
    presented: &Presented,
    headers: &mut HeaderMap,
) {
    headers.remove(header::AUTHORIZATION);
    headers.remove(KEY);
    match credential {
        Credential::Key(secret) => {
            let (name, text) = match dialect {
                Dialect::Messages => (KEY, secret.expose().to_owned()),
                Dialect::Chat | Dialect::Responses => {
                    (header::AUTHORIZATION, format!("Bearer {}", secret.expose()))
                }
            };
            if let Ok(mut value) = HeaderValue::from_str(&text) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        Credential::Passthrough => {
            headers.extend(presented.bearer.clone().map(|value| (header::AUTHORIZATION, value)));
            headers.extend(presented.key.clone().map(|value| (KEY, value)));
        }
        Credential::None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Presented {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer client-key"));
        Presented::of(&headers)
    }

    fn written(credential: &Credential, dialect: Dialect) -> HeaderMap {
        let mut headers = HeaderMap::new();
        write(credential, dialect, &client(), &mut headers);
        headers
    }

    #[test]
    fn our_own_key_goes_where_the_dialect_wants_it_and_the_clients_goes_nowhere() {
        let own = Credential::Key(Secret::new("ours"));
        let headers = written(&own, Dialect::Messages);
        assert_eq!(headers.get("x-api-key").unwrap(), "ours");
        assert!(headers.get(header::AUTHORIZATION).is_none());
        assert_eq!(written(&own, Dialect::Chat).get(header::AUTHORIZATION).unwrap(), "Bearer ours");
    }

    #[test]
    fn the_clients_key_is_passed_on_only_where_that_is_configured() {
        let passed = written(&Credential::Passthrough, Dialect::Messages);
        assert_eq!(passed.get(header::AUTHORIZATION).unwrap(), "Bearer client-key");
        assert!(written(&Credential::None, Dialect::Messages).is_empty());
    }

    #[test]
    fn a_key_of_the_gateway_is_passed_on_to_nobody() {
        let keys = AccessKeys::new(&[Secret::new("gateway-key")]);
        let of = |bearer: &'static str, key: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(bearer));
            headers.extend(key.map(|key| (KEY, HeaderValue::from_static(key))));
            let presented = Presented::for_backends(&headers, &keys);
            let mut written = HeaderMap::new();
            write(&Credential::Passthrough, Dialect::Chat, &presented, &mut written);
            let text = |name: &HeaderName| written.get(name).map(|it| it.to_str().unwrap().to_owned());
            (presented.was_ours_alone(), text(&header::AUTHORIZATION), text(&KEY))
        };
        for ours in ["Bearer gateway-key", "bearer  gateway-key ", "BEARER gateway-key", "gateway-key"] {
            assert_eq!(of(ours, None), (true, None, None), "{ours}");
            assert_eq!(of(ours, Some("theirs")), (false, None, Some("theirs".to_owned())), "{ours}");
            assert_eq!(of(ours, Some("gateway-key")), (true, None, None), "{ours}");
        }
        let theirs = Some("Bearer theirs".to_owned());
        assert_eq!(of("Bearer theirs", Some("gateway-key")), (false, theirs.clone(), None));
        assert_eq!(of("Bearer theirs", None), (false, theirs, None));
    }

    #[test]
    fn a_key_is_found_in_either_header() {
        assert_eq!(client().key(), Some("client-key"));
        let mut headers = HeaderMap::new();
        headers.insert(KEY, HeaderValue::from_static("other"));
        assert_eq!(Presented::of(&headers).key(), Some("other"));
    }
}
