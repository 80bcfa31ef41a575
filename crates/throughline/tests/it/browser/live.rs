//! What changes while somebody looks: an answer that comes, a gateway that goes and comes back, a key that is asked for.

use super::{CONFIG, Scene};
use crate::cli::scratch;
use crate::ways::serve_at;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::{Duration, interval};

/// A backend that says a word again and again until it is told to come to an end.
async fn talkative(listener: TcpListener, end: oneshot::Receiver<()>) {
    let mut end = end;
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 65536];
        let read = stream.read(&mut head).await.unwrap();
        let is_asked = String::from_utf8_lossy(&head[..read]).starts_with("POST");
        if !is_asked {
            let _ = stream
                .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .await;
            continue;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut often = interval(Duration::from_millis(100));
        loop {
            let piece = "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\
                         \"choices\":[{\"index\":0,\"delta\":{\"content\":\"still \"},\"finish_reason\":null}]}\n\n";
            stream.write_all(piece.as_bytes()).await.unwrap();
            tokio::select! {
                _ = often.tick() => {}
                _ = &mut end => break,
            }
        }
        let last = "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\
                    \"choices\":[{\"index\":0,\"delta\":{\"content\":\"over.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        stream.write_all(last.as_bytes()).await.unwrap();
        return;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_shown_while_it_comes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let slow = format!(
        "{CONFIG}\n[[backends]]\nname = \"slow\"\ndialect = \"chat\"\nbase_url = \"http://{address}/v1\"\napi_key = \"none\"\n"
    );
    let (over, end) = oneshot::channel();
    tokio::spawn(talkative(listener, end));
    let Some(mut scene) = Scene::set_with("arriving", &slow).await else { return };
    let ask = r#"(() => { window.asked = say({ model: "slow/m", stream: true, messages: [{ role: "user", content: "Talk." }] }, { "x-throughline-conversation": "talk" }); })()"#;
    scene.browser.value(ask).await;
    scene.browser.until("document.querySelector('.listed .state.answering') !== null").await;
    scene.show("#/c/talk").await;
    scene
        .browser
        .until("document.querySelector('.arriving .talk')?.textContent.includes('still still')")
        .await;
    scene.picture("arriving").await;
    over.send(()).unwrap();
    scene.browser.value("window.asked").await;
    scene
        .browser
        .until("document.querySelector('.said.assistant .talk')?.textContent.endsWith('over.')")
        .await;
    scene.browser.until("document.querySelector('.arriving') === null").await;
    scene.assert_no_faults();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_gone_is_told_and_found_again() {
    let Some(mut scene) = Scene::set("gone").await else { return };
    scene.browser.value(r#"say({ model: "alpha/sim", messages: [{ role: "user", content: "Hello" }] }, { "x-throughline-conversation": "before" })"#).await;
    scene.browser.until("document.querySelector('.listed') !== null").await;
    let Scene { mut browser, url, served } = scene;
    drop(served);
    browser.until("document.querySelector('.banner.gone')?.textContent.includes('does not answer')").await;
    assert_eq!(browser.value("document.querySelectorAll('.listed').length").await, 1, "what was shown stays");
    let _served = serve_at(&scratch("gone"), url.trim_start_matches("http://"));
    browser.until("document.querySelector('.banner.gone') === null && document.querySelector('.live.live') !== null").await;
    browser.value(r#"say({ model: "alpha/sim", messages: [{ role: "user", content: "Hello again" }] }, { "x-throughline-conversation": "after" })"#).await;
    browser.until("document.querySelectorAll('.listed').length === 2").await;
    // The browser itself notes each connection that was refused or cut.
    browser.faults.retain(|fault| !fault.contains("net::ERR_"));
    assert!(browser.faults.is_empty(), "{:#?}", browser.faults);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_asked_for_where_one_is_needed() {
    let config = format!("{CONFIG}\n[auth]\nkeys = [\"open sesame\"]\n");
    let Some(mut scene) = Scene::set_with("key", &config).await else { return };
    scene.browser.until("document.querySelector('form.key')?.textContent.includes('asks for a key')").await;
    let present = |key: &str| {
        format!(
            "(() => {{ document.querySelector('form.key input').value = {key:?}; \
             document.querySelector('form.key').requestSubmit(); }})()"
        )
    };
    scene.browser.value(&present("open barley")).await;
    scene.browser.until("document.querySelector('form.key')?.textContent.includes('not known here')").await;
    scene.browser.value(&present("open sesame")).await;
    scene.browser.until("document.querySelector('form.key') === null").await;
    scene.browser.until("document.querySelector('.live.live') !== null").await;
    scene.browser.until("document.querySelector('main')?.textContent.includes('Nothing yet')").await;
    scene.browser.press("b").await;
    scene.browser.until("document.querySelectorAll('.card').length === 4").await;
    let kept = scene.browser.value("[Object.keys(localStorage).join(), document.cookie]").await;
    assert_eq!(
        kept,
        serde_json::json!(["throughline.theme", ""]),
        "it is kept no longer than the tab is open"
    );
    scene.browser.faults.retain(|fault| !fault.contains("401"));
    scene.assert_no_faults();
}
