//! Requests to backends: one connection pool for each, credentials of each to itself alone.
//!
//! A stream may last for hours, so there is no limit on how long an answer takes, only on connecting, on silence, and
//! on going on without getting anywhere ([`bounds`]). Of what comes, no more is taken than the bounds say, and our own
//! secrets are taken out of it ([`crate::echo`]) before anybody sees it. Connections are HTTP/1.1 unless the backend is configured otherwise: closing one stops the
//! backend's work on the answer that nobody wants any more.

pub mod bounds;
mod credentials;
mod reel;

pub use bounds::AnswerBounds;
pub use credentials::Presented;
pub use reel::{REFUSED, Reel, Take};

use crate::capability::retry_after;
use crate::clock::now;
use crate::config::{Backend, Choice, Credential};
use crate::echo::EchoFilter;
use crate::secret::Secret;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;
use std::time::Duration;
use throughline_core::{Dialect, Text};
use tokio::time::Instant;

/// The way to one backend.
#[derive(Clone, Debug)]
pub struct Egress {
    line: Line,
    base_url: String,
    dialect: Dialect,
    credential: Credential,
    headers: HeaderMap,
    bounds: AnswerBounds,
    echoes: EchoFilter,
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
    /// How much of it is taken.
    pub bounds: AnswerBounds,
    /// What is taken out of it.
    pub echoes: EchoFilter,
    body: Body,
    /// How many bytes of the body have come.
    came: usize,
    /// When it last got further.
    progressed: Instant,
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
    /// The answer is larger than any that is taken.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// How large it may be.
        limit: usize,
    },
    /// Bytes came, and nothing came of them.
    #[error("the answer made no progress for {} s", .limit.as_secs())]
    Stalled {
        /// How long that may go on.
        limit: Duration,
    },
    /// The backend is shown what the client presents, and that was a key of this gateway alone.
    #[error(
        "the backend wants the client's own credentials, and the client presented only a key of this gateway"
    )]
    NoCredentials,
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
    pub fn new(
        backend: &Backend,
        base_url: String,
        bounds: AnswerBounds,
        echoes: EchoFilter,
    ) -> Result<Self, EgressError> {
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
            bounds,
            echoes,
        })
    }

    /// Returns a way that leads to no backend but to what the record has of one.
    #[must_use]
    pub fn recorded(dialect: Dialect, reel: Arc<Reel>) -> Self {
        let (base_url, headers) = (String::new(), HeaderMap::new());
        Self {
            line: Line::Recorded(reel),
            base_url,
            dialect,
            credential: Credential::None,
            headers,
            bounds: AnswerBounds::NONE,
            echoes: EchoFilter::default(),
        }
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
        if self.credential == Credential::Passthrough && request.presented.was_ours_alone() {
            return Err(EgressError::NoCredentials);
        }
        let url = format!("{}{}", self.base_url, request.path);
        let mut headers = self.headers(&request);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = client.post(url).headers(headers).body(request.body).send().await;
        self.answered(sent, request.presented)
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
        self.answered(sent, presented)
    }

    fn answered(
        &self,
        sent: Result<reqwest::Response, reqwest::Error>,
        presented: &Presented,
    ) -> Result<Answered, EgressError> {
        let body = sent.map_err(|error| EgressError::of(&error))?;
        let echoes = match self.credential {
            Credential::Passthrough => self.echoes.with(presented.secrets()),
            Credential::Key(_) | Credential::None => self.echoes.clone(),
        };
        Ok(Answered {
            status: body.status().as_u16(),
            headers: body.headers().clone(),
            bounds: self.bounds,
            echoes,
            body: Body::Live(body),
            came: 0,
            progressed: Instant::now(),
        })
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

impl Answered {
    /// Says whether the answer is a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let content_type = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        content_type.is_some_and(|value| value.starts_with("text/event-stream"))
    }

    /// Notes that what came said something, so that there is time again for what comes next.
    pub fn note_progress(&mut self) {
        self.progressed = Instant::now();
    }

    /// Waits for the next bytes of a stream; none at the end.
    ///
    /// # Errors
    /// When the connection broke or was silent for too long, or the stream is too large or gets nowhere.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        self.chunk_within(self.bounds.stream_bytes()).await
    }

    /// Waits for the whole body, which may have `limit` bytes, and takes our own secrets out of it.
    ///
    /// # Errors
    /// When the connection broke or was silent for too long, or the body is larger or takes too long.
    pub async fn whole(mut self, limit: usize) -> Result<Bytes, EgressError> {
        let announced = match self.body {
            Body::Recorded(playing) => return Ok(playing.whole()),
            Body::Live(ref body) => body.content_length(),
        };
        if announced.is_some_and(|length| usize::try_from(length).is_ok_and(|length| length > limit)) {
            return Err(EgressError::TooLarge { limit });
        }
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk_within(limit).await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(Bytes::from(self.echoes.clean(whole)))
    }

    /// Returns the beginning of the body, which is all of it unless it is too large, takes too long or breaks off, and
    /// takes our own secrets out of it: what is wrong is told at the beginning.
    pub async fn beginning(mut self, limit: usize, time: Duration) -> Bytes {
        if let Body::Recorded(playing) = self.body {
            return playing.whole();
        }
        let mut taken = Vec::new();
        let read = async {
            while taken.len() < limit
                && let Ok(Some(chunk)) = self.chunk_within(usize::MAX).await
            {
                taken.extend_from_slice(&chunk);
            }
        };
        // Either way, what has come is there.
        let _ = tokio::time::timeout(time, read).await;
        taken.truncate(limit);
        Bytes::from(self.echoes.clean(taken))
    }

    async fn chunk_within(&mut self, limit: usize) -> Result<Option<Bytes>, EgressError> {
        let deadline = self.bounds.deadline(self.progressed);
        let body = match &mut self.body {
            Body::Live(body) => body,
            Body::Recorded(playing) => return Ok(playing.chunk().await),
        };
        let chunk = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, body.chunk())
                .await
                .map_err(|_| EgressError::Stalled { limit: self.bounds.progress })?,
            None => body.chunk().await,
        };
        let chunk = chunk.map_err(|error| EgressError::of(&error))?;
        self.came = self.came.saturating_add(chunk.as_ref().map_or(0, Bytes::len));
        if self.came > limit { Err(EgressError::TooLarge { limit }) } else { Ok(chunk) }
    }

    /// Returns how long the backend asks to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let headers = self.headers.iter();
        let texts = headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        retry_after(texts, u64::try_from(now().0 / 1000).unwrap_or_default())
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
