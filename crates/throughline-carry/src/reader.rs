//! One door to the formats: whoever holds an [`Agent`] calls these and matches on nothing.

use crate::{Agent, Contents, Damage, Facts, Piece, claude_code, codex, mend, opencode, vscode};

/// Reads a session line by line.
#[derive(Debug)]
pub struct SessionReader {
    facts: Facts,
    format: Format,
}

#[derive(Debug)]
enum Format {
    ClaudeCode(Box<claude_code::Reader>),
    Codex(codex::Reader),
}

impl SessionReader {
    /// Begins to read a session; there is no such reader for an agent whose sessions are documents.
    #[must_use]
    pub fn new(agent: Agent) -> Option<Self> {
        let format = match agent {
            Agent::ClaudeCode => Format::ClaudeCode(Box::default()),
            Agent::Codex => Format::Codex(codex::Reader::default()),
            Agent::Opencode | Agent::VsCode => return None,
        };
        Some(Self { facts: Facts::default(), format })
    }

    /// Reads the next line. One that says nothing about the conversation brings nothing.
    ///
    /// # Errors
    /// When the line is not one that the agent writes; the lines behind it can be read all the same.
    pub fn line(&mut self, line: &str) -> Result<Option<Piece>, Damage> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        match &mut self.format {
            Format::ClaudeCode(reader) => reader.line(line, &mut self.facts),
            Format::Codex(reader) => reader.line(line, &mut self.facts),
        }
    }

    /// Returns what is known about the session by now.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// Reads a session that is one JSON document: opencode's, VS Code's, or the oldest of Codex. What of it is damaged is named, and
/// the rest is read.
///
/// # Errors
/// When it is no such document.
pub fn read_document(agent: Agent, text: &str) -> Result<Contents, Damage> {
    let (replayed, mut damaged) = match agent {
        Agent::VsCode => vscode::replay(text),
        _ => (text.to_owned(), Vec::new()),
    };
    let (document, mended) = mend::document(&replayed)?;
    damaged.extend(mended);
    let mut contents = Contents { damaged, ..Contents::default() };
    match agent {
        Agent::Opencode => opencode::read(&document, &mut contents)?,
        Agent::VsCode => vscode::read(&document, &mut contents)?,
        Agent::Codex => codex::read_document(&document, &mut contents)?,
        Agent::ClaudeCode => return Err(Damage("a session of claude-code is read line by line".to_owned())),
    }
    Ok(contents)
}
