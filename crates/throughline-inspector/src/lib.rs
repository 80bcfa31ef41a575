//! The inspector: the files of a web page, as the binary carries them.
//!
//! The page is written in plain modules that a browser reads as they are: nothing is compiled, bundled or fetched
//! to build it. It needs nothing but the gateway's own HTTP interface. `page/vendor` has the one library that it
//! uses.

/// One file of the page.
#[derive(Debug)]
pub struct Asset {
    /// Where it is, below the page's own path.
    pub path: &'static str,
    /// Its MIME type.
    pub content_type: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
    /// Stands for its content: another content, another number.
    pub digest: u64,
}

macro_rules! assets {
    ($($path:literal as $content_type:expr),* $(,)?) => {
        &[$(Asset {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../page/", $path)),
            digest: digest(include_bytes!(concat!("../page/", $path))),
        }),*]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All files of the page; `index.html` is the page itself.
pub static ASSETS: &[Asset] = assets![
    "index.html" as "text/html; charset=utf-8",
    "inspector.css" as "text/css; charset=utf-8",
    "icon.svg" as "image/svg+xml",
    "main.js" as SCRIPT,
    "api.js" as SCRIPT,
    "backends.js" as SCRIPT,
    "blob.js" as SCRIPT,
    "chart.js" as SCRIPT,
    "conversation.js" as SCRIPT,
    "conversations.js" as SCRIPT,
    "diff.js" as SCRIPT,
    "entries.js" as SCRIPT,
    "frames.js" as SCRIPT,
    "highlight.js" as SCRIPT,
    "keys.js" as SCRIPT,
    "lazy.js" as SCRIPT,
    "runs.js" as SCRIPT,
    "search.js" as SCRIPT,
    "seen.js" as SCRIPT,
    "shared.js" as SCRIPT,
    "talk.js" as SCRIPT,
    "timeline.js" as SCRIPT,
    "words.js" as SCRIPT,
    "vendor/htm-preact.js" as SCRIPT,
];

/// Returns the file at a path.
#[must_use]
pub fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

/// FNV-1a: what is wanted is a number that changes with the content, and it is made when this is compiled.
const fn digest(bytes: &[u8]) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        digest = (digest ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    digest
}
