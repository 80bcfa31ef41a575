//! Everything that is printed. A closed pipe is a reader who has seen enough, not an error.

use crate::exit::CommandError;
use anstyle::{AnsiColor, Style};
use std::io::{ErrorKind, Write};

/// Writes to standard output, all or nothing.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(CommandError::File { path: "standard output".into(), source }),
        Ok(()) => Ok(()),
    }
}

/// Writes a remark to standard error.
pub fn remark(text: &str) {
    // Nobody is left to tell if even this fails.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes an error and what to do about it to standard error.
pub fn report_error(error: &CommandError) {
    let label = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    remark(&format!("{label}error:{label:#} {error}"));
    if let Some(hint) = error.hint() {
        let label = Style::new().bold();
        remark(&format!("{label}hint:{label:#} {hint}"));
    }
}
