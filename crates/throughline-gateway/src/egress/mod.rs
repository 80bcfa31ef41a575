//! Requests to backends: one connection pool for each, credentials of each to itself alone.
//!
//! A stream may last for hours, so there is no limit on the whole of an answer, only on connecting and on
//! silence. Connections are HTTP/1.1 unless the backend is configured otherwise: closing one stops the
//! backend's work on the answer that nobody wants any more.

mod credentials;
mod reel;

pub use credentials::Presented;
pub use reel::{Reel, Take};

use crate::config::{Backend, Choice, Credential};
use crate::secret::Secret;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;
use std::time::Duration;
use throughline_core::{Dialect, Text};

/// The way to one backend.
#[derive(Clone, Debug)]
pub struct Egress {
    line: Line,
    base_url: String,
    dialect: Dialect,
    credential: Credential,
    headers: HeaderMap,
}

/// Where answers come from.
#[derive(Clone, Debug)]
enum Line {
    Live(reqwest::Client),
    Recorded(Arc<Reel>),
}

/// A request to a backend.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The path below the base URL.
    pub path: &'a str,
    /// The body.
    pub body: Bytes,
    /// The credentials that the client presented, for a backend that is shown those.
    pub presented: &'a Presented,
    /// Headers of the client that are meant for the backend.
    pub forwarded: &'a HeaderMap,
}

/// A backend's answer, of which the head has come.
#[derive(Debug)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    body: Body,
}

/// The body of an answer.
#[derive(Debug)]
enum Body {
    Live(reqwest::Response),
    Recorded(reel::Playing),
}

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The way to the backend could not be set up.
    #[error("the connection to {base_url} cannot be set up: {source}")]
    Setup {
        /// Where.
        base_url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The backend could not be reached.
    #[error("no connection: {0}")]
    Connect(String),
    /// The backend was silent for too long.
    #[error("no answer within the time limit")]
    Silent,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broke(String),
}

/// Returns the path that a dialect's requests go to.
#[must_use]
pub const fn path_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "/chat/completions",
        Dialect::Messages => "/messages",
        Dialect::Responses => "/responses",
    }
}

impl Egress {
    /// Sets up the way to `backend`, which is at `base_url`; connects to nothing yet.
    ///
    /// # Errors
    /// When the system's certificates or the client itself cannot be set up.
    pub fn new(backend: &Backend, base_url: String) -> Result<Self, EgressError> {
        let builder = reqwest::Client::builder()
            .connect_timeout(backend.timeouts.connect)
            .read_timeout(backend.timeouts.idle)
            .pool_max_idle_per_host(256)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")));
        let client = with_protocol(builder, backend.http2).build();
        let client = client.map_err(|source| EgressError::Setup { base_url: base_url.clone(), source })?;
        let header = |(name, value): &(Text, Secret)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value.expose()).ok()?))
        };
        Ok(Self {
            line: Line::Live(client),
            base_url,
            dialect: backend.dialect,
            credential: backend.credential.clone(),
            headers: backend.headers.iter().filter_map(header).collect(),
        })
    }

    /// Returns a way that leads to no backend but to what the record has of one.
    #[must_use]
    pub fn recorded(dialect: Dialect, reel: Arc<Reel>) -> Self {
        let (base_url, headers) = (String::new(), HeaderMap::new());
        Self { line: Line::Recorded(reel), base_url, dialect, credential: Credential::None, headers }
    }

    /// Sends a request and waits for the head of the answer.
    ///
    /// # Errors
    /// When no head of an answer came. A status that says no is an answer.
    pub async fn post(&self, request: Request<'_>) -> Result<Answered, EgressError> {
        let client = match &self.line {
            Line::Live(client) => client,
            Line::Recorded(reel) => return reel.play(self.dialect),
        };
        let url = format!("{}{}", self.base_url, request.path);
        let mut headers = self.headers(&request);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = client.post(url).headers(headers).body(request.body).send().await;
        sent.map(Answered::from).map_err(|error| EgressError::of(&error))
    }

    /// Asks for something without a body.
    ///
    /// # Errors
    /// When no head of an answer came.
    pub async fn fetch(&self, path: &str, presented: &Presented) -> Result<Answered, EgressError> {
        let Line::Live(client) = &self.line else {
            return Err(EgressError::Connect("a replay asks nobody".to_owned()));
        };
        let forwarded = HeaderMap::new();
        let request = Request { path, body: Bytes::new(), presented, forwarded: &forwarded };
        let url = format!("{}{path}", self.base_url);
        let sent = client.get(url).headers(self.headers(&request)).send().await;
        sent.map(Answered::from).map_err(|error| EgressError::of(&error))
    }

    fn headers(&self, request: &Request<'_>) -> HeaderMap {
        let mut headers = request.forwarded.clone();
        if self.dialect == Dialect::Messages {
            let version = HeaderName::from_static("anthropic-version");
            headers.entry(version).or_insert(HeaderValue::from_static("2023-06-01"));
        }
        headers.extend(self.headers.clone());
        credentials::write(&self.credential, self.dialect, request.presented, &mut headers);
        headers
    }
}

fn with_protocol(builder: reqwest::ClientBuilder, http2: Choice) -> reqwest::ClientBuilder {
    if http2 == Choice::Never {
        return builder.http1_only();
    }
    // A fixed, large window: the small frames of a stream would otherwise exhaust an adaptive one.
    let builder = builder
        .http2_initial_connection_window_size(64 << 20)
        .http2_initial_stream_window_size(16 << 20)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .http2_keep_alive_timeout(Duration::from_secs(10));
    if http2 == Choice::Always { builder.http2_prior_knowledge() } else { builder }
}

impl From<reqwest::Response> for Answered {
    fn from(body: reqwest::Response) -> Self {
        Self { status: body.status().as_u16(), headers: body.headers().clone(), body: Body::Live(body) }
    }
}

impl Answered {
    /// Says whether the answer is a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let content_type = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        content_type.is_some_and(|value| value.starts_with("text/event-stream"))
    }

    /// Waits for the next bytes; none at the end.
    ///
    /// # Errors
    /// When the connection broke or was silent for too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        match &mut self.body {
            Body::Live(body) => body.chunk().await.map_err(|error| EgressError::of(&error)),
            Body::Recorded(playing) => Ok(playing.chunk().await),
        }
    }

    /// Waits for the whole body.
    ///
    /// # Errors
    /// When the connection broke or was silent for too long.
    pub async fn whole(self) -> Result<Bytes, EgressError> {
        match self.body {
            Body::Live(body) => body.bytes().await.map_err(|error| EgressError::of(&error)),
            Body::Recorded(playing) => Ok(playing.whole()),
        }
    }

    /// Returns how long the backend asks to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let value = self.headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        value.trim().parse().ok().map(Duration::from_secs)
    }
}

impl EgressError {
    fn of(error: &reqwest::Error) -> Self {
        // The error's own text names the URL, which may be none of the client's business.
        let cause = std::error::Error::source(error).map_or_else(|| "unknown cause".to_owned(), deepest);
        if error.is_timeout() && !error.is_connect() {
            Self::Silent
        } else if error.is_connect() {
            Self::Connect(cause)
        } else {
            Self::Broke(cause)
        }
    }
}

fn deepest(mut error: &(dyn std::error::Error + 'static)) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
