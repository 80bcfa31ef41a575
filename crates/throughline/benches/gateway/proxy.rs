//! The bare proxies: what any program pays that stands between a client and a backend.
//!
//! Both pass bodies on as they come, with one connection to the backend for each from a client. The durable one
//! also keeps both bodies of an exchange in a log, which one thread writes: all that wait are written together
//! and flushed once, and the last frame of an answer waits for that.

use crate::process::{LOG, UPSTREAM};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Arc, mpsc};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, oneshot};

type Body = UnsyncBoxBody<Bytes, hyper::Error>;
type Log = mpsc::Sender<(Vec<Bytes>, oneshot::Sender<()>)>;

/// Serves until it is killed.
pub fn run(durable: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let upstream = std::env::var(UPSTREAM).unwrap();
        let log = durable.then(|| start_log(&std::env::var(LOG).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            connection.set_nodelay(true).unwrap();
            tokio::spawn(serve(connection, upstream.clone(), log.clone()));
        }
    });
}

async fn serve(connection: TcpStream, upstream: String, log: Option<Log>) {
    let backend = TcpStream::connect(&upstream).await.unwrap();
    backend.set_nodelay(true).unwrap();
    let (sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(backend)).await.unwrap();
    tokio::spawn(driver);
    let sender = Arc::new(Mutex::new(sender));
    let service = service_fn(move |request| pass_on(Arc::clone(&sender), request, log.clone()));
    let server = hyper::server::conn::http1::Builder::new();
    let _ = server.serve_connection(TokioIo::new(connection), service).await;
}

async fn pass_on(
    sender: Arc<Mutex<SendRequest<Body>>>,
    request: Request<Incoming>,
    log: Option<Log>,
) -> Result<Response<Body>, hyper::Error> {
    let mut sender = sender.lock().await;
    let Some(log) = log else {
        sender.ready().await?;
        let answer = sender.send_request(request.map(BodyExt::boxed_unsync)).await?;
        return Ok(answer.map(BodyExt::boxed_unsync));
    };
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    sender.ready().await?;
    let whole = Full::new(body.clone()).map_err(crate::mock::never).boxed_unsync();
    let answer = sender.send_request(Request::from_parts(head, whole)).await?;
    Ok(answer.map(|answer| StreamBody::new(kept(answer, body, log)).boxed_unsync()))
}

/// Passes an answer on, all but its last frame, which waits until both bodies are on the disk.
fn kept(
    answer: Incoming,
    request: Bytes,
    log: Log,
) -> impl futures_util::Stream<Item = Result<Frame<Bytes>, hyper::Error>> {
    let state = (answer, None::<Bytes>, BytesMut::new(), Some((request, log)));
    stream::unfold(state, |(mut answer, mut held, mut whole, mut end)| async move {
        loop {
            match answer.frame().await {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    whole.extend_from_slice(&data);
                    if let Some(before) = held.replace(data) {
                        return Some((Ok(Frame::data(before)), (answer, held, whole, end)));
                    }
                }
                Some(Err(error)) => return Some((Err(error), (answer, None, whole, None))),
                None => {
                    let (request, log) = end.take()?;
                    let (done, flushed) = oneshot::channel();
                    log.send((vec![request, whole.split().freeze()], done)).unwrap();
                    flushed.await.unwrap();
                    return Some((Ok(Frame::data(held.take()?)), (answer, None, whole, None)));
                }
            }
        }
    })
}

fn start_log(path: &str) -> Log {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    let (sender, receiver) = mpsc::channel::<(Vec<Bytes>, oneshot::Sender<()>)>();
    std::thread::spawn(move || {
        while let Ok(first) = receiver.recv() {
            let group: Vec<_> = std::iter::once(first).chain(receiver.try_iter()).collect();
            for (bodies, _) in &group {
                bodies.iter().for_each(|body| file.write_all(body).unwrap());
            }
            file.sync_data().unwrap();
            for (_, done) in group {
                let _ = done.send(());
            }
        }
    });
    sender
}
