//! What everybody must be able to read, and what nobody may slip in.

use super::{Scene, WORK};
use crate::cli::scratch;
use serde_json::Value;
use std::process::Command;

/// Text that would do something if it were taken for anything but text.
const NASTY: &str = r#"<script>window.slipped = 1</script><img src=x onerror="window.slipped = 2"><svg onload="window.slipped = 3"> <a href="javascript:window.slipped=4">a</a> [b](javascript:window.slipped=5) "><style>body{display:none}</style>"#;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_said_or_returned_is_taken_for_markup() {
    let Some(mut scene) = Scene::set("nasty").await else { return };
    let nasty = serde_json::to_string(NASTY).unwrap();
    let work = format!(
        r#"(async () => {{
          const text = {nasty};
          const picture = {{ type: "image_url", image_url: {{ url: "https://example.com/" + encodeURIComponent(text) }} }};
          const messages = [
            {{ role: "system", content: text }},
            {{ role: "user", content: text }},
            ...pair("n1", "Read", {{ file_path: text, [text]: text + "\n" + text }}, text),
            ...pair("n2", "Edit", {{ file_path: text, old_string: text, new_string: text + "!" }}, JSON.stringify({{ stdout: text + "\n" + text }})),
            {{ role: "user", content: [{{ type: "text", text: "```html\n" + text + "\n```\n`" + text + "`" }}, picture] }},
          ];
          await say({{ model: "beta/sim", messages, tool_choice: "none" }}, {{ "x-throughline-conversation": "nasty<img src=x>", "user-agent": text.slice(0, 40) }});
        }})()"#
    );
    scene.browser.value(&work).await;
    scene.browser.until("document.querySelector('.listed') !== null").await;
    let run = format!("#/r/{}", run_of("nasty", NASTY));
    let places = [
        ("#/runs", ".listed .outcome"),
        (&*run, ".step"),
        ("#/", ".listed"),
        ("#/c/nasty%3Cimg%20src%3Dx%3E", ".pair"),
        ("#/c/nasty%3Cimg%20src%3Dx%3E/seen/1", ".rows .row"),
        ("#/c/nasty%3Cimg%20src%3Dx%3E/frames", ".frame"),
        ("#/search?q=script&tool=%3Cimg%20src%3Dx%3E", ".nothing"),
        ("#/search?q=script", ".hit"),
        ("#/c/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", ".nothing"),
        ("#/r/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", ".nothing"),
        ("#/%E0%A4%A", ".nothing"),
    ];
    for (hash, shown) in places {
        scene.show(hash).await;
        scene.browser.until(&format!("document.querySelector({shown:?}) !== null")).await;
        // Everything that folds is unfolded.
        scene
            .browser
            .value("document.querySelectorAll('[aria-expanded=false], .stretch, details:not([open]) summary').forEach((each) => each.click())")
            .await;
        scene.browser.until("![...document.querySelectorAll('main')].some((each) => each.textContent.includes('reading…'))").await;
        let slipped: Value = scene
            .browser
            .value(
                "[window.slipped ?? null, document.querySelectorAll('main script, main style, main svg:not([role=img]), main iframe, \
                 main img:not([src^=\"data:image/\"]), main a[href^=\"javascript:\" i], main [onerror], main [onload]').length]",
            )
            .await;
        assert_eq!(slipped, serde_json::json!([null, 0]), "{hash}");
    }
    scene.browser.faults.retain(|fault| !fault.contains("404"));
    scene.assert_no_faults();
    let policy =
        scene.browser.value("fetch('/').then((it) => it.headers.get('content-security-policy'))").await;
    let policy = policy.as_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
}

/// Has another process do a run in the history of a scene; returns its id.
fn run_of(name: &str, task: &str) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["run", "--config", "throughline.toml", "--data", "data", "--backend", "beta", "--json", task])
        .current_dir(scratch(name))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let first = String::from_utf8(run.stdout).unwrap().lines().next().map(str::to_owned);
    let frame: Value = serde_json::from_str(&first.unwrap()).unwrap();
    frame["run"].as_str().unwrap().to_owned()
}

/// The least contrast between a text and what is behind it, by the text; below 4.5 many cannot read it.
const FAINT: &str = r#"(() => {
  const parse = (color) => { const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number); return color.startsWith("color(") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a]; };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility?.({ opacityProperty: true }) || element.closest("[disabled], [aria-disabled=true], option")) continue;
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const back = behind(element);
    const [r, g, b, a] = parse(getComputedStyle(element).color);
    const [one, other] = [light(over([r, g, b, a * opacity], back)), light(back)].sort((x, y) => y - x);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${element.tagName}.${element.className}: ${node.textContent.trim().slice(0, 40)}`);
  }
  return [...new Set(faint)];
})()"#;

/// Whatever can be pressed or filled in and has no name for those who do not see it.
const NAMELESS: &str = r#"[...document.querySelectorAll("button, a[href], input, select, img, [role=img]")].filter((each) =>
  !(each.textContent.trim() && !each.matches("select")) && !each.ariaLabel && each.getAttribute("alt") === null && !each.labels?.length && !each.title).map((each) => each.outerHTML.slice(0, 120))"#;

#[tokio::test(flavor = "multi_thread")]
async fn everything_can_be_read_in_both_themes_and_has_a_name() {
    let Some(mut scene) = Scene::set("looks").await else { return };
    scene.browser.value(WORK).await;
    // What is being answered breathes, and is faint while it does.
    scene.browser.until("document.querySelector('.listed')?.textContent.includes('6 exchanges')").await;
    scene.browser.until("!document.querySelector('.answering')").await;
    let places = [
        ("#/", ".listed"),
        ("#/c/bakery", ".pair"),
        ("#/c/bakery/seen/4", ".rows .row"),
        ("#/c/bakery/frames", ".frame"),
        ("#/runs", ".nothing"),
        ("#/backends", ".learned"),
        ("#/search?q=bakery", ".hit"),
    ];
    for theme in ["light", "dark"] {
        scene.browser.prefer(theme).await;
        for (hash, shown) in places {
            scene.show(hash).await;
            scene.browser.until(&format!("document.querySelector({shown:?}) !== null")).await;
            scene.browser.value("document.querySelectorAll('.pair [aria-expanded=false]').forEach((each) => each.click())").await;
            let faint = scene.browser.value(FAINT).await;
            assert_eq!(faint, serde_json::json!([]), "{theme} {hash}");
            let nameless = scene.browser.value(NAMELESS).await;
            assert_eq!(nameless, serde_json::json!([]), "{hash}");
            let name = hash.trim_matches(['#', '/']).replace(['/', '?', '='], "-");
            scene.picture(&format!("look-{theme}-{name}")).await;
        }
    }
    scene.assert_no_faults();
}
