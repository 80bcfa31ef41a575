//! What the page promises: it is all here, it is small, and it asks nobody else.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test")]

use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use throughline_inspector::{ASSETS, asset};

/// How large all of the page's own code may be, compressed.
const BYTES_MAX: usize = 200 * 1024;

fn text(path: &str) -> &'static str {
    std::str::from_utf8(asset(path).unwrap().bytes).unwrap()
}

#[test]
fn every_file_of_the_page_is_carried() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.clone()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(inside).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let is_served = |path: &String| !path.ends_with(".md") && !path.contains("LICENSE");
    let files: BTreeSet<String> = files.into_iter().filter(is_served).collect();
    let carried: BTreeSet<String> = ASSETS.iter().map(|asset| asset.path.to_owned()).collect();
    assert_eq!(files, carried);
}

#[test]
fn modules_import_only_what_is_carried() {
    for asset in
        ASSETS.iter().filter(|asset| asset.path.ends_with(".js") && !asset.path.starts_with("vendor/"))
    {
        let text = std::str::from_utf8(asset.bytes).unwrap();
        let imports = text.lines().filter_map(|line| line.split_once(" from \"./")?.1.split('"').next());
        for import in imports {
            assert!(throughline_inspector::asset(import).is_some(), "{}: {import}", asset.path);
        }
    }
    for part in text("index.html").split("/inspector/").skip(1) {
        let path = part.split('"').next().unwrap();
        assert!(asset(path).is_some(), "{path}");
    }
}

#[test]
fn the_page_names_no_other_host() {
    for asset in ASSETS {
        let text = std::str::from_utf8(asset.bytes).unwrap();
        for scheme in ["http://", "https://"] {
            let others = text
                .match_indices(scheme)
                .map(|(at, _)| text[at..].split(['"', '\'', '`', ' ']).next().unwrap());
            // Names of XML languages are no addresses: nothing is fetched there.
            let others: Vec<&str> = others.filter(|other| !other.starts_with("http://www.w3.org/")).collect();
            assert!(others.is_empty(), "{}: {others:?}", asset.path);
        }
    }
}

#[test]
fn the_page_is_small() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    ASSETS.iter().for_each(|asset| packed.write_all(asset.bytes).unwrap());
    let bytes = packed.finish().unwrap().len();
    assert!(bytes < BYTES_MAX, "{bytes} bytes compressed");
}

#[test]
fn another_content_has_another_digest() {
    let digests: BTreeSet<u64> = ASSETS.iter().map(|asset| asset.digest).collect();
    assert_eq!(digests.len(), ASSETS.len());
}
