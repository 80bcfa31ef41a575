//! Runs in the inspector: the list, the steps, the frames, a replay, and the first difference side by side.

use super::{CONFIG, Scene};
use crate::cli::scratch;
use std::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_replayed_and_its_first_difference_shown() {
    let Some(mut scene) = Scene::set("runs").await else { return };
    scene.show("#/runs").await;
    scene.browser.until("document.querySelector('.nothing')?.textContent.includes('No runs yet')").await;
    // Another process writes into the same history, with settings that are not those of the gateway.
    let folder = scratch("runs");
    std::fs::write(folder.join("notes.txt"), "twelve loaves\n").unwrap();
    let other =
        CONFIG.replace("default_model = \"claude-sonnet-4-5\"", "default_model = \"claude-opus-4-5\"");
    std::fs::write(folder.join("other.toml"), other).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["run", "--config", "other.toml", "--data", "data", "--approve", "none", "--json"])
        .arg("Read notes.txt and say what it holds")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    // It appears although nobody asked, and although it was another process.
    let over = "document.querySelector('.listed .outcome')?.textContent.includes('completed')";
    scene.browser.until(over).await;
    let listed = scene.text(".listed").await;
    assert!(listed.contains("notes.txt") && listed.contains("1 call") && listed.contains('$'), "{listed}");
    scene.browser.click(".listed").await;
    scene.browser.until("document.querySelectorAll('.step').length === 2").await;
    assert!(scene.text(".step .call").await.contains("read"));
    // Under the settings that it had, it is the same to the byte.
    scene.browser.click(".replay header button").await;
    scene.browser.until("document.querySelector('.verdict.good')?.textContent.includes('Identical')").await;
    scene.browser.until("!document.querySelectorAll('.replay header button')[1].disabled").await;
    // Under those of the gateway another model is asked; where, stands side by side.
    scene.browser.value("document.querySelectorAll('.replay header button')[1].click()").await;
    scene.browser.until("document.querySelector('.verdict.bad') !== null").await;
    assert!(scene.text(".difference").await.contains("request 1: the body of the request differs at model"));
    assert!(scene.text(".difference mark.del").await.contains("opus"));
    assert!(scene.text(".difference mark.add").await.contains("sonnet"));
    scene.picture("replay").await;
    // Both are kept: when, by whom, with what settings, and what came of it.
    scene.browser.until("document.querySelectorAll('.replay details tbody tr').length >= 2").await;
    let kept = scene.browser.value("fetch('/api/runs').then((it) => it.json())").await;
    let replays = kept["runs"][0]["replays"].as_array().unwrap();
    let told: Vec<_> = replays.iter().map(|it| (&it["verdict"]["identical"], &it["verdict"]["by"])).collect();
    assert_eq!(told, [(&true.into(), &"http".into()), (&false.into(), &"http".into())]);
    // Verdicts are no part of the run: replayed again, it is still the same.
    scene.browser.until("!document.querySelector('.replay header button').disabled").await;
    scene.browser.click(".replay header button").await;
    scene.browser.until("document.querySelector('.verdict.good') !== null").await;
    scene.browser.click("h2 button").await;
    scene.browser.until("document.querySelector('.frames')?.textContent.includes('throughline.turn')").await;
    // It is found again from its conversation, and by its address alone.
    scene.browser.press("r").await;
    scene
        .browser
        .until("document.querySelector('.listed .chip.same')?.textContent.includes('identical')")
        .await;
    scene.show("#/r/run_missing").await;
    scene.browser.until("document.querySelector('.nothing')?.textContent.includes('no such run')").await;
    scene.browser.faults.retain(|fault| !fault.contains("run_missing"));
    scene.assert_no_faults();
}
