//! What a backend is shown to be let in; never what another backend is shown.

use crate::config::Credential;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use throughline_core::Dialect;

/// The credentials that a client presented.
#[derive(Clone, Debug, Default)]
pub struct Presented {
    bearer: Option<HeaderValue>,
    key: Option<HeaderValue>,
}

const KEY: HeaderName = HeaderName::from_static("x-api-key");

impl Presented {
    /// Takes the credentials from a client's headers.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        Self { bearer: headers.get(header::AUTHORIZATION).cloned(), key: headers.get(KEY).cloned() }
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
    use crate::secret::Secret;

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
    fn a_key_is_found_in_either_header() {
        assert_eq!(client().key(), Some("client-key"));
        let mut headers = HeaderMap::new();
        headers.insert(KEY, HeaderValue::from_static("other"));
        assert_eq!(Presented::of(&headers).key(), Some("other"));
    }
}
