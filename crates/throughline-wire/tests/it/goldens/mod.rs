//! Goldens: what each recorded input becomes, beside the input.
//!
//! A snapshot shows the translation, what the report says of it, and what the provider's rules say of it, so
//! that a review of the diff is a review of the behaviour. Update with `just golden-update`, and read it.

#![expect(clippy::disallowed_methods, reason = "goldens are files")]
#![expect(clippy::unwrap_used, reason = "a golden that cannot be read has failed")]

mod answers;
mod requests;

use std::path::{Path, PathBuf};
use throughline_core::Dialect;

fn golden(kind: &str, dialect: Dialect) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(kind).join(dialect.name())
}

/// Returns the inputs of a kind and dialect, in the order of their names.
fn inputs(kind: &str, dialect: Dialect) -> Vec<PathBuf> {
    let folder = golden(kind, dialect);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    inputs.retain(|file| !file.to_string_lossy().contains(".snap"));
    inputs.sort();
    assert!(!inputs.is_empty(), "no inputs in {}", folder.display());
    inputs
}

fn name(input: &Path) -> String {
    input.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Compares with the snapshot beside the input.
fn check(input: &Path, name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(input.parent().unwrap());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}
