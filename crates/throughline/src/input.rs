//! What a command is given to read: a file, or standard input.

use crate::exit::CommandError;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Reads a file, or standard input if there is none or it is called `-`.
pub fn read(file: Option<&Path>) -> Result<Arc<str>, CommandError> {
    let mut bytes = Vec::new();
    let (name, read) = match file.filter(|file| *file != Path::new("-")) {
        Some(file) => (file.display().to_string(), std::fs::read(file).map(|read| bytes = read)),
        None => ("standard input".to_owned(), std::io::stdin().lock().read_to_end(&mut bytes).map(drop)),
    };
    read.map_err(|source| CommandError::file(&name, source))?;
    String::from_utf8(bytes).map(Arc::from).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        CommandError::bad_input(format!("{name}: not UTF-8 (at byte {offset})"))
    })
}
