//! The mock backend: answers at once, in two dialects, whole or streamed.
//!
//! What it answers is in the path (`/burst/v1/messages`), so that it reads nothing of the request but the last
//! result, which it follows with the next call. Each event of a stream is a chunk of its own, as backends send
//! them.

use crate::agent::{SAID, call, last_result};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;

/// What can be asked for: a whole answer, deltas all at once, deltas at the pace of a model.
pub const ANSWERS: [&str; 3] = ["whole", "burst", "paced"];

/// How many deltas a stream has.
pub const DELTAS: usize = 200;

/// What stands before the time at which a delta was sent.
pub const TIME_MARK: &[u8] = b"t=";

/// How many digits that time has.
pub const TIME_DIGITS: usize = 19;

const PACE: Duration = Duration::from_millis(5);

pub type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// Serves until it is killed.
pub fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            connection.set_nodelay(true).unwrap();
            let service = service_fn(answer);
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(connection), service),
            );
        }
    });
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let is_chat = path.ends_with("/chat/completions");
    if path.starts_with("/whole") {
        let number = last_result(&body).map_or(0, |number| number + 1);
        let body = Full::new(Bytes::from(whole(is_chat, number))).map_err(never).boxed_unsync();
        return Ok(response("application/json", body));
    }
    let (opening, closing) = frame_of(is_chat);
    let deltas = stream::iter(0..DELTAS).map(move |_| delta(is_chat));
    let first = stream::iter([Bytes::from_static(opening.as_bytes())]);
    let last = stream::iter([Bytes::from_static(closing.as_bytes())]);
    let frames = |events: stream::BoxStream<'static, Bytes>| {
        StreamBody::new(events.map(|event| Ok::<_, hyper::Error>(Frame::data(event)))).boxed_unsync()
    };
    let body = if path.starts_with("/burst") {
        frames(first.chain(deltas).chain(last).boxed())
    } else {
        let paced = stream::unfold((tokio::time::interval(PACE), 0), move |(mut pace, sent)| async move {
            pace.tick().await;
            (sent < DELTAS).then(|| (delta(is_chat), (pace, sent + 1)))
        });
        frames(first.chain(paced).chain(last).boxed())
    };
    Ok(response("text/event-stream", body))
}

fn response(content_type: &'static str, body: Body) -> Response<Body> {
    Response::builder().header(header::CONTENT_TYPE, content_type).body(body).unwrap()
}

/// Turns the error of a body that has none into that of one that might.
pub fn never(never: Infallible) -> hyper::Error {
    match never {}
}

fn whole(is_chat: bool, number: usize) -> String {
    let (id, name, input) = call(number);
    if is_chat {
        let arguments = input.replace('\\', "\\\\").replace('"', "\\\"");
        return format!(
            "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"example-large\",\
             \"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{SAID}\",\
             \"tool_calls\":[{{\"id\":\"{id}\",\"type\":\"function\",\"function\":{{\"name\":\"{name}\",\
             \"arguments\":\"{arguments}\"}}}}]}},\"finish_reason\":\"tool_calls\"}}],\
             \"usage\":{{\"prompt_tokens\":9,\"completion_tokens\":9,\"total_tokens\":18}}}}"
        );
    }
    format!(
        "{{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"example-large\",\
         \"content\":[{{\"type\":\"text\",\"text\":\"{SAID}\"}},{{\"type\":\"tool_use\",\"id\":\"{id}\",\
         \"name\":\"{name}\",\"input\":{input}}}],\"stop_reason\":\"tool_use\",\"stop_sequence\":null,\
         \"usage\":{{\"input_tokens\":9,\"output_tokens\":9}}}}"
    )
}

fn delta(is_chat: bool) -> Bytes {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut event = String::with_capacity(256);
    let written = if is_chat {
        write!(
            event,
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\
             \"model\":\"example-large\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" t={now:019}\"}},\
             \"finish_reason\":null}}]}}\n\n"
        )
    } else {
        write!(
            event,
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
             {{\"type\":\"text_delta\",\"text\":\" t={now:019}\"}}}}\n\n"
        )
    };
    written.unwrap();
    Bytes::from(event)
}

const fn frame_of(is_chat: bool) -> (&'static str, &'static str) {
    if is_chat {
        (
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\
             \"model\":\"example-large\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\
             \"content\":\"\"},\"finish_reason\":null}]}\n\n",
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\
             \"model\":\"example-large\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
             data: [DONE]\n\n",
        )
    } else {
        (
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\
             \"message\",\"role\":\"assistant\",\"model\":\"example-large\",\"content\":[],\"stop_reason\":null,\
             \"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n\
             event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":\
             {\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
             event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\
             \"stop_sequence\":null},\"usage\":{\"output_tokens\":200}}\n\n\
             event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        )
    }
}
