//! A real browser, driven over its DevTools protocol.
//!
//! What the page does wrong is gathered on the way: errors in the console, exceptions, and requests to anybody
//! but the gateway.

use crate::cli::scratch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// A browser with one page.
pub struct Browser {
    child: Child,
    folder: PathBuf,
    socket: WebSocketStream<TcpStream>,
    session: String,
    number: u64,
    /// The only host that the page may ask.
    host: String,
    /// What the page did wrong.
    pub faults: Vec<String>,
}

/// Names the browser, if there is one to be had.
pub fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.exists())
}

impl Browser {
    /// Starts a browser for the pages of one gateway.
    pub async fn start(program: &Path, name: &str, url: &str) -> Self {
        let folder = scratch(&format!("browser-{name}-{}", std::process::id()));
        let mut child = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-dev-shm-usage",
            ])
            .args(["--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", folder.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_owned))
            .expect("the browser says where it listens");
        let host = address.trim_start_matches("ws://").split('/').next().unwrap().to_owned();
        let stream = TcpStream::connect(&host).await.unwrap();
        let (socket, _) = client_async(&address, stream).await.unwrap();
        let host = url.trim_start_matches("http://").to_owned();
        let mut browser =
            Self { child, folder, socket, session: String::new(), number: 0, host, faults: Vec::new() };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attached).await;
        session["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({})).await;
        }
        browser.size(1280, 900).await;
        browser
    }

    /// Goes to an address.
    pub async fn go(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url})).await;
    }

    /// Returns what an expression gives; it may be a promise.
    pub async fn value(&mut self, expression: &str) -> Value {
        let call = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", call).await;
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true, as the page changes.
    pub async fn until(&mut self, expression: &str) {
        let waiting = format!(
            "new Promise((done) => {{ const look = () => {{ let held = false; \
             try {{ held = {expression}; }} catch {{ }} \
             if (held) done(true); else requestAnimationFrame(look); }}; look(); \
             setTimeout(() => done(false), 60000); }})"
        );
        let held = self.value(&waiting).await;
        if held != true {
            let text = self.value("document.body.innerText.slice(0, 800)").await;
            panic!("never: {expression}\nthe page says:\n{text}\nfaults: {:?}", self.faults);
        }
    }

    /// Presses a key.
    pub async fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "text": if kind == "keyDown" { text } else { "" }});
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Clicks on what a selector finds.
    pub async fn click(&mut self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?})")).await;
        self.value(&format!("document.querySelector({selector:?}).click()")).await;
    }

    /// Makes the window so large.
    pub async fn size(&mut self, width: u32, height: u32) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// Sets what the system prefers: `light` or `dark`.
    pub async fn prefer(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }

    /// Takes a picture of the window.
    pub async fn picture(&mut self, path: &Path) {
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"})).await;
        let bytes = STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
        assert!(bytes.starts_with(b"\x89PNG"), "no picture");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if !self.session.is_empty() && !method.starts_with("Target.") {
            message["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(message.to_string())).await.unwrap();
        loop {
            let Message::Text(text) = self.socket.next().await.unwrap().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == self.number {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.notice(&message);
        }
    }

    fn notice(&mut self, event: &Value) {
        let parameters = &event["params"];
        let fault = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => Some(parameters["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if parameters["type"] == "error" => {
                Some(parameters["args"].to_string())
            }
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
                Some(parameters["entry"].to_string())
            }
            "Network.requestWillBeSent" => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                let is_own = url.starts_with(&format!("http://{}/", self.host));
                (!is_own && !url.starts_with("data:") && url != "about:blank").then(|| format!("asked {url}"))
            }
            _ => None,
        };
        self.faults.extend(fault);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
