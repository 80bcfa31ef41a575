//! `throughline open`: the inspector in the browser. And how a gateway is found that runs already.

use super::history;
use crate::args::Args;
use crate::exit::CommandError;
use crate::output;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use throughline_gateway::config::Config;

/// How long a gateway of this machine may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the inspector's page holds; nothing else on that port does.
const MARK: &str = "<title>Throughline";

/// Opens the inspector.
pub fn run(id: Option<&str>, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let Some(url) = running(&config) else {
        return Err(CommandError::no(format!("no gateway answers at {}", reached(config.listen)))
            .hint("`throughline serve --open` starts one"));
    };
    let url = match id {
        Some(typed) => {
            let history = history::open_to_read(&config)?;
            let id = history::wait(async { history::find(&*history, typed).await })?;
            format!("{url}/#/c/{id}")
        }
        None => format!("{url}/"),
    };
    output::print(&format!("{url}\n"))?;
    open_browser(&url);
    Ok(())
}

/// Returns the address of the gateway of this configuration, if one is running.
pub fn running(config: &Config) -> Option<String> {
    let address = reached(config.listen);
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").ok()?;
    let mut page = Vec::new();
    // Whatever else listens there may go on for ever; the page is short.
    let _ = stream.take(64 * 1024).read_to_end(&mut page);
    String::from_utf8_lossy(&page).contains(MARK).then(|| format!("http://{address}"))
}

/// Returns an address that is listened on as a client on this machine reaches it.
pub fn reached(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

/// Opens a page, where there is somebody to see it; its address is on the terminal anyway.
pub fn open_browser(url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let _ = Command::new(opener).arg(url).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
