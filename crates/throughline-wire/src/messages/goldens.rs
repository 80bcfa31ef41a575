//! The recorded inputs of this dialect, for the tests beside it.

#![expect(clippy::disallowed_methods, reason = "goldens are files")]

use std::path::Path;

/// Returns the name and the bytes of each golden of that kind with that extension.
pub(super) fn goldens(kind: &str, extension: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(kind).join("messages");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut found: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    found.sort();
    assert!(!found.is_empty());
    let read = |path: &Path| {
        (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
    };
    found.iter().map(|path| read(path)).collect()
}

/// Returns the goldens that are JSON, as text.
pub(super) fn json_goldens(kind: &str) -> Vec<(String, String)> {
    goldens(kind, "json").into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect()
}
