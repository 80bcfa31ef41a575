//! The inspector's page and what it is made of.
//!
//! The page itself says nothing about anybody's history, so it is given to whoever can connect; what it shows it
//! asks for below `/api`, where the door is. It may talk to this gateway and to nobody else: its content
//! security policy says so to the browser.

use super::Ingress;
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use throughline_inspector::{Asset, asset};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the routes of the page.
pub fn routes() -> Router<Ingress> {
    Router::new()
        .route("/", get(|headers: HeaderMap| async move { given("index.html", &headers) }))
        .route("/inspector/{*path}", get(part))
}

async fn part(Path(path): Path<String>, headers: HeaderMap) -> Response {
    given(&path, &headers)
}

fn given(path: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = asset(path) else {
        return (StatusCode::NOT_FOUND, "there is no such part of the inspector\n").into_response();
    };
    let tag = format!("\"{:016x}\"", asset.digest);
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    (head(asset), [(header::ETAG, tag)], asset.bytes).into_response()
}

fn head(asset: &'static Asset) -> HeaderMap {
    let fixed = HeaderValue::from_static;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, fixed(asset.content_type));
    // Asked for anew each time, and sent only after an upgrade.
    headers.insert(header::CACHE_CONTROL, fixed("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, fixed(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
    headers.insert(header::REFERRER_POLICY, fixed("no-referrer"));
    headers
}
