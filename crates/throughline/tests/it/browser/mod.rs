//! The inspector in a real browser: each view with real data, the live list, the switch, the keyboard, long
//! histories and large results; in `runs` the runs and their replay, in `live` what comes, goes and asks for a key,
//! in `origins` what pages of others cannot do, in `looks` what everybody must be able to read and nobody may slip in.
//!
//! With THROUGHLINE_PICTURES set, the pictures of the documentation are taken anew.

mod devtools;
mod live;
mod looks;
mod origins;
mod runs;

use crate::cli::{root, scratch};
use crate::ways::{Served, serve_in};
use devtools::{Browser, chromium};
use serde_json::Value;
use std::path::PathBuf;

const CONFIG: &str = r#"
active = "alpha"

[[backends]]
name = "alpha"
dialect = "messages"
base_url = "sim:"
default_model = "claude-sonnet-4-5"
context_window = 6000
prices = { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }

[[backends]]
name = "beta"
dialect = "responses"
base_url = "sim:"
default_model = "gpt-5"
prices = { input = 1.25, output = 10.0, cache_read = 0.125 }

[[backends]]
name = "gamma"
dialect = "chat"
base_url = "sim:"

[[backends]]
name = "gone"
dialect = "chat"
base_url = "http://127.0.0.1:9/v1"
fallback = ["gamma"]
"#;

/// Makes requests as a client would, from the page, so that they come from its own host.
const CLIENT: &str = r#"
window.say = async (body, headers = {}) => {
  const tools = ["Read", "Edit", "Bash"].map((name) => ({ type: "function", function: { name, parameters: { type: "object" } } }));
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ tools, ...body }),
  });
  if (!response.ok) throw new Error(await response.text());
  await response.text();
  return response.headers.get("x-throughline-conversation");
};
window.pair = (id, name, input, result) => [
  { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(input) } }] },
  { role: "tool", tool_call_id: id, content: result },
];
"#;

/// A session of some work on a small project, sent turn by turn, with a change of backends in it.
const WORK: &str = r#"(async () => {
  const code = Array.from({ length: 420 }, (_, at) => `    let total_${at} = price(${at}) * amount; // line ${at}`).join("\n");
  const messages = [
    { role: "system", content: "You are a careful engineer." },
    { role: "user", content: "The bakery's totals are wrong. Find out why, and mend it." },
    ...pair("c1", "Read", { file_path: "src/bakery.rs" }, `fn totals() {\n${code}\n}`),
    ...pair("c2", "Bash", { command: "cargo test" }, "error[E0308]: mismatched types\n  --> src/bakery.rs:12:9"),
    ...pair("c3", "Edit", { file_path: "src/bakery.rs", old_string: "price(1) * amount\nkept", new_string: "price(1) * quantity\nkept" }, "The file has been updated."),
    ...pair("c4", "Read", { file_path: "src/prices.rs" }, `const PRICES: [u32; 420] = [];\n${code}`),
    ...pair("c5", "Bash", { command: "cargo test --workspace" }, "test result: ok. 42 passed; 0 failed"),
    { role: "user", content: "Good. What was it?" },
  ];
  const headers = { "x-throughline-conversation": "bakery" };
  for (const [end, model] of [[2, "alpha/sim"], [4, "alpha/sim"], [6, "alpha/sim"], [10, "alpha/sim"], [12, "beta/sim"], [13, "alpha/sim"]]) {
    await say({ model, messages: messages.slice(0, end), tool_choice: end === 13 ? "none" : "auto" }, headers);
  }
})()"#;

struct Scene {
    browser: Browser,
    url: String,
    served: Served,
}

impl Scene {
    /// Sets the scene; none where there is no browser, which `./test` says and CI installs.
    async fn set(name: &str) -> Option<Self> {
        Self::set_with(name, CONFIG).await
    }

    async fn set_with(name: &str, config: &str) -> Option<Self> {
        let Some(program) = chromium() else {
            assert!(std::env::var("CI").is_err(), "CI tests in a browser: apt-get install chromium");
            return None;
        };
        let (served, url) = serve_in(name, config);
        let mut browser = Browser::start(&program, name, &url).await;
        browser.go(&format!("{url}/")).await;
        browser.until("document.querySelector('.live') !== null").await;
        browser.value(CLIENT).await;
        Some(Self { browser, url, served })
    }

    /// Shows a view of the page.
    async fn show(&mut self, hash: &str) {
        self.browser.value(&format!("location.hash = {hash:?}")).await;
    }

    /// Takes a picture, for whoever looks at it, and for the documentation if that is wanted.
    async fn picture(&mut self, name: &str) {
        let is_documented =
            ["timeline", "timeline-dark", "seen", "narrow-timeline", "replay"].contains(&name);
        let folder: PathBuf = match std::env::var("THROUGHLINE_PICTURES") {
            Ok(_) if is_documented => root().join("docs/pictures"),
            _ => scratch("pictures"),
        };
        self.browser.picture(&folder.join(format!("{name}.png"))).await;
    }

    async fn text(&mut self, selector: &str) -> String {
        let expression = format!("document.querySelector({selector:?})?.textContent ?? ''");
        self.browser.value(&expression).await.as_str().unwrap_or_default().to_owned()
    }

    fn assert_no_faults(&self) {
        assert!(self.browser.faults.is_empty(), "{:#?}", self.browser.faults);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_shows_what_was_kept() {
    let Some(mut scene) = Scene::set("views").await else { return };
    scene.browser.until("document.querySelector('main')?.textContent.includes('Nothing yet')").await;
    // The list is live: what a client does appears without anybody asking.
    scene.browser.value(WORK).await;
    scene.browser.until("document.querySelector('.listed')?.textContent.includes('bakery')").await;
    scene.browser.until("document.querySelector('.listed').textContent.includes('6 exchanges')").await;
    assert_eq!(scene.browser.value("document.title").await, "Conversations · Throughline");
    scene.picture("conversations").await;

    scene.browser.click(".listed").await;
    scene.browser.until("document.querySelectorAll('.pair').length === 5").await;
    assert!(scene.text(".timeline").await.contains("Find out why"));
    scene.browser.until("document.querySelectorAll('.switch').length === 2").await;
    let switch = scene.text(".switch").await;
    assert!(switch.contains("alpha → beta") && switch.contains("the request asks for beta"), "{switch}");
    assert!(scene.browser.value("document.title").await.as_str().unwrap().starts_with("The bakery"));
    scene.picture("timeline").await;
    costs_are_added_up(&mut scene).await;
    // An edit is shown as what it changes, a result in its colours.
    scene.browser.value("[...document.querySelectorAll('.pair button.head')][2].click()").await;
    scene.browser.until("document.querySelector('.add')?.textContent.includes('quantity')").await;
    assert!(scene.text(".del").await.contains("price(1) * amount"));
    scene.browser.value("[...document.querySelectorAll('.pair button.head')][0].click()").await;
    scene.browser.until("document.querySelector('.kw')?.textContent === 'fn'").await;
    assert!(scene.text(".timeline").await.contains("total_7"));

    scene.show("#/c/bakery/seen/4").await;
    scene
        .browser
        .until("/excerpt is shown|line stands for it/.test(document.querySelector('.row.shortened .why')?.textContent)")
        .await;
    assert!(scene.text(".kinds").await.contains("results"));
    scene.picture("seen").await;
    // Every difference has its reason, and one kind of them can be looked at alone.
    let reasons =
        "[...document.querySelectorAll('.rows .row .why')].every((each) => each.children.length > 1)";
    assert_eq!(scene.browser.value(reasons).await, true);
    scene.browser.click(".marks .chip.shortened").await;
    scene
        .browser
        .until("[...document.querySelectorAll('.rows .row:not(.heads)')].every((each) => each.matches('.shortened'))")
        .await;
    scene.browser.click("details:last-of-type summary").await;
    scene
        .browser
        .until("document.querySelector('details .blob')?.textContent.includes('\"messages\"')")
        .await;

    scene.show("#/c/bakery/frames").await;
    scene.browser.until("document.querySelectorAll('.frame').length >= 6").await;
    scene.show("#/search?q=E0308").await;
    scene.browser.until("document.querySelector('.hit')?.textContent.includes('mismatched')").await;
    let result = "[...document.querySelectorAll('.hit')].find((each) => each.querySelector('.facts').textContent.includes('result'))";
    scene.browser.value(&format!("{result}.click()")).await;
    scene.browser.until("document.querySelector('.pair .body')?.textContent.includes('E0308')").await;
    assert!(scene.browser.value("location.hash").await.as_str().unwrap().contains("/at/"), "a link to it");
    // A search is narrowed in its address, so that it can be handed on.
    scene.show("#/search?q=cargo&tool=Bash&hours=1").await;
    scene.browser.until("document.querySelectorAll('.hit').length === 2").await;
    scene.browser.click("label input[type=checkbox]").await;
    scene
        .browser
        .until("document.querySelector('.nothing')?.textContent.includes('without the filters')")
        .await;
    assert!(scene.browser.value("location.hash").await.as_str().unwrap().contains("failed=true"));
    scene.browser.value("history.back()").await;
    scene.browser.until("document.querySelectorAll('.hit').length === 2").await;
    scene.assert_no_faults();
}

/// What the page says that it cost is what the tokens cost at the prices of the configuration; where a backend that
/// answered has none, it says nothing.
async fn costs_are_added_up(scene: &mut Scene) {
    let whole = scene.browser.value("fetch('/api/conversations/bakery').then((it) => it.json())").await;
    let mut expected = 0.0;
    for exchange in whole["exchanges"].as_array().unwrap() {
        let of = |name: &str| exchange["usage"][name].as_f64().unwrap();
        let last = exchange["attempts"].as_array().unwrap().last().unwrap();
        let (input, cached, written, output) =
            if last["backend"] == "alpha" { (3.0, 0.3, 3.75, 15.0) } else { (1.25, 0.125, 1.25, 10.0) };
        let plain = of("input") - of("cache_read") - of("cache_written");
        let cost = (plain * input
            + of("cache_read") * cached
            + of("cache_written") * written
            + of("output") * output)
            / 1e6;
        assert!((exchange["cost"].as_f64().unwrap() - cost).abs() < 1e-6, "{exchange}");
        expected += cost;
    }
    let cost = whole["conversation"]["cost"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-6, "{cost} {expected}");
    let shown = scene.text("header.conversation").await;
    assert!(shown.contains(&format!("${cost:.3}")), "{cost}: {shown}");
    let free = r#"say({ model: "gamma/sim", messages: [{ role: "user", content: "Hello" }] }, { "x-throughline-conversation": "free" })"#;
    scene.browser.value(free).await;
    let whole = scene.browser.value("fetch('/api/conversations/free').then((it) => it.json())").await;
    assert_eq!(
        (&whole["conversation"]["cost"], &whole["exchanges"][0]["cost"]),
        (&Value::Null, &Value::Null)
    );
    scene.show("#/c/free").await;
    scene
        .browser
        .until("document.querySelector('header.conversation')?.textContent.includes('tokens in')")
        .await;
    assert!(!scene.text("main").await.contains('$'));
    scene.show("#/c/bakery").await;
    scene.browser.until("document.querySelectorAll('.pair').length === 5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_and_branches_are_shown_where_they_happened() {
    let Some(mut scene) = Scene::set("failures").await else { return };
    let work = r#"(async () => {
      const headers = { "x-throughline-conversation": "trouble" };
      const asked = [{ role: "user", content: "Read the file." }];
      await say({ model: "gone/sim", messages: asked, tool_choice: "none" }, headers);
      const failed = pair("f1", "Bash", { command: "false" }, "");
      failed[1].content = "[error] exit code 1";
      await say({ model: "gamma/sim", messages: [...asked, ...failed, { role: "user", content: "Go on." }], tool_choice: "none" }, headers);
      await say({ model: "gamma/sim", messages: [...asked, { role: "user", content: "Something else." }], tool_choice: "none" }, headers);
    })()"#;
    scene.browser.value(work).await;
    scene.show("#/c/trouble").await;
    scene.browser.until("document.querySelectorAll('.branches option').length === 3").await;
    let choose = "((at) => { const list = document.querySelector('.branches select'); list.value = list.options[at].value; \
                  list.dispatchEvent(new Event('change', { bubbles: true })); })";
    scene.browser.value(&format!("{choose}(2)")).await;
    scene
        .browser
        .until("document.querySelector('.switch .why')?.textContent.startsWith('gone failed: ')")
        .await;
    assert!(scene.text(".switch").await.contains("gone → gamma"));
    scene.browser.value(&format!("{choose}(1)")).await;
    scene.browser.until("document.querySelector('.pair .tool')?.textContent === 'Bash'").await;
    scene.browser.value(&format!("{choose}(0)")).await;
    scene.browser.until("document.querySelector('.timeline').textContent.includes('Something else.')").await;
    scene.browser.until("document.querySelector('.pair') === null").await;
    // What the backend saw says how the answer came about.
    scene.show("#/c/trouble/seen/1").await;
    scene.browser.until("document.querySelectorAll('.attempts li').length >= 2").await;
    assert!(scene.text(".attempts").await.contains("gone"));
    scene.show("#/c/nobody").await;
    scene
        .browser
        .until("document.querySelector('.nothing')?.textContent.includes('no such conversation')")
        .await;
    scene.browser.faults.retain(|fault| !fault.contains("/api/conversations/nobody"));
    scene.assert_no_faults();
}

#[tokio::test(flavor = "multi_thread")]
async fn backends_are_switched_and_keys_and_themes_work() {
    let Some(mut scene) = Scene::set("switch").await else { return };
    scene.browser.value(WORK).await;
    scene.browser.press("b").await;
    scene.browser.until("document.querySelectorAll('.card').length === 4").await;
    for said in ["Native tool history", "tried: it took them", "not known yet", "$0.3 cached", "answers"] {
        scene.browser.until(&format!("document.querySelector('.card').textContent.includes({said:?})")).await;
    }
    scene.picture("backends").await;
    scene.browser.click(".card:not(.here) header button:not(.copy)").await;
    scene.browser.until("document.querySelector('.card.here h2')?.textContent === 'beta'").await;
    scene.browser.value("[...document.querySelectorAll('.bar-of-tools button')][0].click()").await;
    scene.browser.until("document.querySelector('.card.here h2')?.textContent === 'alpha'").await;
    // One conversation by itself.
    scene.show("#/c/bakery").await;
    scene.browser.until("document.querySelectorAll('.chooser option').length === 5").await;
    let choose = "(() => { const list = document.querySelector('.chooser select'); list.value = 'beta'; \
                  list.dispatchEvent(new Event('change', { bubbles: true })); })()";
    scene.browser.value(choose).await;
    // The switch is made when the gateway says so, which may be after the list shows it.
    let switched = "(async () => { for (;;) { const it = await fetch('/api/conversations/bakery').then((it) => it.json()); \
                    if (it.conversation.switched) return it.conversation.switched; } })()";
    assert_eq!(scene.browser.value(switched).await, "beta");
    // The keyboard alone: to the list, down, in, down, open, out.
    scene.browser.press("c").await;
    scene.browser.until("document.querySelector('.listed') !== null").await;
    scene.browser.press("j").await;
    scene.browser.until("document.activeElement.matches('.listed')").await;
    scene.browser.value("document.activeElement.click()").await;
    scene.browser.until("document.querySelector('.pair') !== null").await;
    for _ in 0..3 {
        scene.browser.press("j").await;
    }
    scene.browser.until("document.activeElement.matches('.pair')").await;
    scene.browser.press("Enter").await;
    scene.browser.until("document.querySelector('.pair .body') !== null").await;
    scene.browser.press("G").await;
    scene
        .browser
        .until("document.activeElement === [...document.querySelectorAll('[data-row]')].at(-1)")
        .await;
    scene.browser.press("g").await;
    scene.browser.until("document.activeElement === document.querySelector('[data-row]')").await;
    scene.browser.press("?").await;
    scene.browser.until("document.querySelector('dialog[open]') !== null").await;
    scene.browser.click("dialog button").await;
    scene.browser.until("document.querySelector('dialog') === null").await;
    // Both themes, and a narrow window in which nothing runs out of it.
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = scene.browser.value(paper).await;
    scene.browser.prefer("dark").await;
    assert_ne!(scene.browser.value(paper).await, light);
    scene.picture("timeline-dark").await;
    scene.browser.press("t").await;
    scene.browser.until("document.documentElement.dataset.theme === 'light'").await;
    assert_eq!(scene.browser.value(paper).await, light);
    fits_a_narrow_window(&mut scene).await;
    scene.assert_no_faults();
}

/// Shows each view on a phone; nothing sticks out of it.
async fn fits_a_narrow_window(scene: &mut Scene) {
    scene.browser.size(390, 800).await;
    for (hash, name, shown) in [
        ("#/", "narrow-list", ".listed"),
        ("#/c/bakery", "narrow-timeline", ".pair"),
        ("#/c/bakery/seen/4", "narrow-seen", ".rows .row"),
        ("#/backends", "narrow-backends", ".learned"),
    ] {
        scene.show(hash).await;
        scene.browser.until(&format!("document.querySelector({shown:?}) !== null")).await;
        let sticks_out = scene.browser.value("document.documentElement.scrollWidth - innerWidth").await;
        assert!(sticks_out.as_i64() <= Some(0), "{hash}: {sticks_out} pixels");
        scene.picture(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_histories_and_large_results_open() {
    let Some(mut scene) = Scene::set("long").await else { return };
    let long = r#"(async () => {
      const messages = [{ role: "user", content: "Read everything." }];
      for (let at = 0; at < 3000; at += 1) messages.push(...pair(`c${at}`, "Read", { file_path: `src/file_${at}.rs` }, `fn file_${at}() {}\n`.repeat(12)));
      messages.push(...pair("large", "Bash", { command: "cat log" }, "a line of a very long log\n".repeat(200000)));
      await say({ model: "beta/sim", messages, max_tokens: 16 }, { "x-throughline-conversation": "long" });
    })()"#;
    scene.browser.value(long).await;
    scene.browser.go(&format!("{}/?again#/c/long", scene.url)).await;
    scene.browser.until("document.querySelectorAll('.pair').length > 10").await;
    let shown: Value = scene.browser.value(PAINTED).await;
    // For whoever wants to know; time is not asserted on.
    std::fs::write(scratch("painted.json"), shown.to_string()).unwrap();
    // Rows are made as they come near, and the end is there when it is scrolled to.
    assert!(scene.browser.value("document.querySelectorAll('.pair').length").await.as_u64() < Some(600));
    scene.browser.value("scrollTo(0, document.body.scrollHeight)").await;
    let last = "[...document.querySelectorAll('.pair .gist')].some((each) => each.textContent === 'cat log')";
    scene.browser.until(&format!("(scrollTo(0, document.body.scrollHeight), {last})")).await;
    let open = "[...document.querySelectorAll('.pair')].find((each) => each.textContent.includes('cat log')).querySelector('button').click()";
    scene.browser.value(open).await;
    scene
        .browser
        .until(
            "document.querySelector('.pair .body .blob:last-of-type')?.textContent.includes('a very long log')",
        )
        .await;
    let lines = scene.browser.value("document.querySelectorAll('.blob .line').length").await;
    assert!(lines.as_u64() < Some(2000), "{lines} lines were made of 200,000");
    scene.assert_no_faults();
}

/// When the page first showed something, and how long the longest piece of work kept it from answering.
const PAINTED: &str = r#"new Promise((done) => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  requestAnimationFrame(() => done({ first_paint_ms: Math.round(paint), rows_ms: Math.round(performance.now()) }));
})"#;
