//! Sends the requests of a section and measures what comes back.

use crate::cases::{Requests, Section};
use crate::mock::{DELTAS, TIME_DIGITS, TIME_MARK};
use crate::process::{Cast, Target};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

/// What one target did with a section.
pub struct Measured {
    pub requests_per_second: f64,
    pub cpu_per_thousand: f64,
    /// Milliseconds, sorted.
    pub latencies: Vec<f64>,
    pub first_deltas: Vec<f64>,
    pub lags: Vec<f64>,
    pub resident_mb: f64,
}

#[derive(Default)]
struct Times {
    latencies: Vec<f64>,
    first_deltas: Vec<f64>,
    lags: Vec<f64>,
}

/// How many connections are open when the memory of a target is looked at.
const CONNECTIONS_HELD: usize = 256;

/// Measures one target.
pub async fn measure(section: &Section, target: &Target) -> Measured {
    let barrier = Arc::new(Barrier::new(section.connections + 1));
    let mut tasks = Vec::new();
    for number in 0..section.connections {
        let requests = Requests::new(section, number);
        let connection = Connection::open(section, target, number).await;
        let (warm_up, counted) = (section.warm_up, section.requests);
        tasks.push(tokio::spawn(drive(connection, requests, warm_up, counted, Arc::clone(&barrier))));
    }
    barrier.wait().await;
    let (started, cpu) = (Instant::now(), target.cpu_seconds());
    barrier.wait().await;
    let mut all = Times::default();
    for task in tasks {
        let times = task.await.unwrap();
        all.latencies.extend(times.latencies);
        all.first_deltas.extend(times.first_deltas);
        all.lags.extend(times.lags);
    }
    let (took, cpu) = (started.elapsed(), target.cpu_seconds() - cpu);
    for times in [&mut all.latencies, &mut all.first_deltas, &mut all.lags] {
        times.sort_by(f64::total_cmp);
    }
    let requests = f64::from(u32::try_from(section.connections * section.requests).unwrap());
    Measured {
        requests_per_second: requests / took.as_secs_f64(),
        cpu_per_thousand: cpu / requests * 1000.0,
        latencies: all.latencies,
        first_deltas: all.first_deltas,
        lags: all.lags,
        resident_mb: target.resident_mb(),
    }
}

async fn drive(
    mut connection: Connection,
    mut requests: Requests,
    warm_up: usize,
    counted: usize,
    barrier: Arc<Barrier>,
) -> Times {
    let mut times = Times::default();
    for _ in 0..warm_up {
        connection.ask(requests.next(), &mut times).await;
    }
    times = Times::default();
    barrier.wait().await;
    barrier.wait().await;
    for _ in 0..counted {
        connection.ask(requests.next(), &mut times).await;
    }
    times
}

/// Opens many connections, makes a request over each at once, and says what memory is held then.
pub async fn hold_many(cast: &Cast) {
    for target in cast.targets.iter().filter(|target| target.name != "direct") {
        let sections = crate::cases::sections();
        let section = sections.iter().find(|section| section.answer == "paced").unwrap();
        let mut tasks = Vec::new();
        for number in 0..CONNECTIONS_HELD {
            let mut connection = Connection::open(section, target, number).await;
            let mut requests = Requests::new(section, number);
            tasks.push(tokio::spawn(async move {
                connection.ask(requests.next(), &mut Times::default()).await;
                connection
            }));
        }
        let mut held = Vec::new();
        let mut resident: f64 = 0.0;
        for task in tasks {
            held.push(task.await.unwrap());
            resident = resident.max(target.resident_mb());
        }
        println!("memory at {CONNECTIONS_HELD} connections, {}: {resident:.0} MB", target.name);
    }
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    path: String,
    backend: String,
    session: String,
}

impl Connection {
    async fn open(section: &Section, target: &Target, number: usize) -> Self {
        let stream = TcpStream::connect(&target.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        let answer = section.answer;
        let path = if target.is_gateway { "/v1/messages".into() } else { format!("/{answer}/v1/messages") };
        let session = format!("{}, {number}", section.name);
        Self { sender, path, backend: format!("{}-{answer}", section.backend), session }
    }

    async fn ask(&mut self, body: Bytes, times: &mut Times) {
        let is_stream = body.ends_with(b"true}");
        let request = Request::post(&self.path)
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .header("x-throughline-backend", &self.backend);
        // A small request is the first of a conversation; an agent names its session.
        let names_session = body.len() > 4096;
        let request = if names_session { request.header("x-session-id", &self.session) } else { request };
        let request = request.body(Full::new(body)).unwrap();
        self.sender.ready().await.unwrap();
        let started = Instant::now();
        let mut response = self.sender.send_request(request).await.unwrap();
        let status = response.status();
        let mut deltas = 0;
        // What is still to be looked at: a delta may come in two pieces.
        let mut text = Vec::new();
        while let Some(frame) = response.frame().await {
            text.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
            if !is_stream {
                continue;
            }
            let (now, since) = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap(), started.elapsed());
            for sent in take_times(&mut text) {
                if deltas == 0 {
                    times.first_deltas.push(millis(since));
                }
                deltas += 1;
                times.lags.push(millis(now.saturating_sub(sent)));
            }
        }
        times.latencies.push(millis(started.elapsed()));
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&text));
        assert_eq!(deltas, if is_stream { DELTAS } else { 0 }, "deltas that came");
    }
}

/// Returns the times at which the deltas in a piece of an answer were sent, and leaves what is not yet whole.
fn take_times(text: &mut Vec<u8>) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].windows(TIME_MARK.len()).position(|window| window == TIME_MARK) {
        let start = from + at + TIME_MARK.len();
        let Some(digits) = text.get(start..start + TIME_DIGITS) else { break };
        let nanos = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        times.extend(nanos.map(Duration::from_nanos));
        from = if nanos.is_some() { start + TIME_DIGITS } else { start };
    }
    let looked_at = from.max(text.len().saturating_sub(TIME_MARK.len() + TIME_DIGITS));
    text.drain(..looked_at);
    times
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
