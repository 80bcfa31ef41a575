//! A way to the database that can be cut at the worst moment.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Passes everything on, until it is told to cut.
pub struct Proxy {
    pub port: u16,
    /// The next commit is passed on, and its answer is not: the connection is cut instead.
    pub swallows_commit: Arc<AtomicBool>,
    /// The next commit is not passed on: the connection is cut instead.
    pub loses_commit: Arc<AtomicBool>,
    /// Nobody gets through.
    pub is_cut: Arc<AtomicBool>,
}

impl Proxy {
    pub fn new(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let flag = || Arc::new(AtomicBool::new(false));
        let (swallows_commit, loses_commit, is_cut) = (flag(), flag(), flag());
        let server = server.to_owned();
        let (swallows, loses, cut) =
            (Arc::clone(&swallows_commit), Arc::clone(&loses_commit), Arc::clone(&is_cut));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if cut.load(SeqCst) {
                    continue;
                }
                let server = TcpStream::connect(&server).unwrap();
                join(client, server, [&swallows, &loses, &cut]);
            }
        });
        Self { port, swallows_commit, loses_commit, is_cut }
    }
}

fn join(client: TcpStream, server: TcpStream, [swallows, loses, cut]: [&Arc<AtomicBool>; 3]) {
    let deaf = Arc::new(AtomicBool::new(false));
    let (to_server, swallows, loses, deafened) =
        (server.try_clone().unwrap(), Arc::clone(swallows), Arc::clone(loses), Arc::clone(&deaf));
    let from_client = client.try_clone().unwrap();
    let is_cut = Arc::clone(cut);
    std::thread::spawn(move || {
        pass(from_client, to_server, |bytes| {
            let commits = bytes.windows(7).any(|window| window == b"COMMIT\0");
            if commits && swallows.swap(false, SeqCst) {
                deafened.store(true, SeqCst);
            }
            let is_lost = commits && loses.swap(false, SeqCst);
            !is_lost && !is_cut.load(SeqCst)
        });
    });
    let is_cut = Arc::clone(cut);
    // What the server answers to the commit shows that it is done; the client never hears of it.
    std::thread::spawn(move || pass(server, client, |_| !deaf.load(SeqCst) && !is_cut.load(SeqCst)));
}

/// Passes bytes on as long as they may pass; then both sides are cut off.
fn pass(mut from: TcpStream, mut to: TcpStream, mut may_pass: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if !may_pass(&buffer[..length]) || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
