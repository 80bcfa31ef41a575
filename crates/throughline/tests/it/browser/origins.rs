//! Pages of other origins, in a real browser: whatever a page can have its browser do, no backend is asked and nothing
//! of the record is read.

use super::devtools::{Browser, chromium};
use crate::hostile_client::Gateway;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// Serves a page of nothing, under whatever name.
fn page() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // A browser opens connections that it may never use.
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 8192]);
                let html = "<!doctype html><title>elsewhere</title><body>elsewhere</body>";
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
                let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{html}", html.len());
            });
        }
    });
    port
}

/// Tries everything that a page can do with a gateway, and returns what it got hold of.
const ATTEMPTS: &str = r#"(async (gateway) => {
  const got = [];
  const ask = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Spend." }] });
  const chat = `${gateway}/v1/chat/completions`;
  const json = { "content-type": "application/json" };
  const tries = {
    simple: () => fetch(chat, { method: "POST", body: ask }),
    opaque: () => fetch(chat, { method: "POST", body: ask, mode: "no-cors" }),
    credentials: () => fetch(chat, { method: "POST", body: ask, credentials: "include" }),
    json: () => fetch(chat, { method: "POST", body: ask, headers: json }),
    keyed: () => fetch(chat, { method: "POST", body: ask, headers: { ...json, "x-api-key": "guess" } }),
    untyped: () => fetch(chat, { method: "POST", body: new Blob([ask]), mode: "no-cors" }),
    streamed: () => fetch(`${gateway}/v1/responses`, { method: "POST", body: ask, mode: "no-cors" }),
    messages: () => fetch(`${gateway}/v1/messages`, { method: "POST", body: ask, mode: "no-cors" }),
    list: () => fetch(`${gateway}/api/conversations`),
    hidden: () => fetch(`${gateway}/api/conversations`, { mode: "no-cors" }),
    metrics: () => fetch(`${gateway}/metrics`),
    models: () => fetch(`${gateway}/v1/models`, { mode: "no-cors" }),
    change: () => fetch(`${gateway}/api/active`, { method: "PUT", headers: json, body: '{"backend":"one"}' }),
    forget: () => fetch(`${gateway}/api/conversations/kept`, { method: "DELETE" }),
  };
  for (const [name, attempt] of Object.entries(tries)) {
    try {
      const text = await (await attempt()).text();
      if (text) got.push(`${name}: ${text}`);
    } catch { }
  }
  navigator.sendBeacon(chat, ask);
  navigator.sendBeacon(chat, new Blob([ask], { type: "text/plain" }));
  const settled = (name, element, good) => new Promise((done) => {
    element[good] = () => { got.push(name); done(); };
    element.onerror = element.onclose = done;
  });
  await settled("websocket", new WebSocket(`${gateway.replace("http", "ws")}/v1/responses`), "onopen");
  const events = new EventSource(`${gateway}/api/events`);
  await settled("events", events, "onopen");
  events.close();
  for (const [kind, path] of [["img", "/v1/models"], ["script", "/api/conversations"], ["img", "/api/conversations"], ["script", "/v1/models"]]) {
    const element = document.createElement(kind);
    element.src = gateway + path;
    const settling = settled(`${kind} ${path}`, element, "onload");
    document.body.append(element);
    await settling;
  }
  const frame = document.createElement("iframe");
  frame.name = "answer";
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, { action: chat, method: "POST", enctype: "text/plain", target: "answer" });
  const field = document.createElement("input");
  Object.assign(field, { name: ask.slice(0, -1) + ',"x":"', value: '"}' });
  form.append(field);
  document.body.append(form);
  const shown = new Promise((done) => { frame.onload = done; });
  form.submit();
  await shown;
  // The next attempts have a frame of that name, too.
  frame.remove();
  form.remove();
  return got;
})"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_spends_nothing_and_reads_nothing() {
    let Some(program) = chromium() else {
        assert!(std::env::var("CI").is_err(), "CI tests in a browser: apt-get install chromium");
        return;
    };
    let gateway = Gateway::start("pages", "");
    gateway.serve_the_honest();
    let asked = gateway.asked();
    let own = format!("http://{}", gateway.address);
    let port = gateway.address.rsplit(':').next().unwrap().to_owned();
    let elsewhere = page();
    let mut browser = Browser::start(&program, "pages", &own).await;
    for host in ["127.0.0.1", "localhost", "evil.localhost"] {
        browser.go(&format!("http://{host}:{elsewhere}/")).await;
        browser.until("document.body?.textContent === 'elsewhere'").await;
        // By its address, and by a name of the page's own that leads to it.
        for target in [&own, &format!("http://evil.localhost:{port}"), &format!("http://localhost:{port}")] {
            let got = browser.value(&format!("{ATTEMPTS}({target:?})")).await;
            assert_eq!(got, serde_json::json!([]), "a page of {host} got this from {target}");
            assert_eq!(gateway.asked(), asked, "a page of {host} had a backend asked through {target}");
        }
    }
    // A page whose own name leads to the gateway is of the same origin, and still is not let in.
    browser.go(&format!("http://evil.localhost:{port}/")).await;
    browser.until("document.body?.textContent.includes('throughline_not_local')").await;
    assert!(gateway.refused("page") > 0 && gateway.refused("not_local") > 0);
    let kept = gateway.get("/api/conversations").body;
    assert_eq!(kept.matches("\"title\"").count(), 1, "{kept}");
    // The inspector itself may do what it always did.
    browser.go(&format!("{own}/")).await;
    browser.until("document.querySelector('.live') !== null").await;
    let ask = "fetch('/v1/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' }, \
               body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello.' }] }) })\
               .then((answer) => answer.status)";
    assert_eq!(browser.value(ask).await, 200);
    assert_eq!(gateway.asked(), asked + 1);
    gateway.came_through();
}
