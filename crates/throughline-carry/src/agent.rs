//! The agents whose sessions can be read and written.

use std::fmt;
use throughline_core::Dialect;

/// An agent that keeps its sessions in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// The chat of VS Code, whose sessions can be read and not written.
    VsCode,
}

impl Agent {
    /// All whose sessions can be read, in a fixed order.
    pub const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Opencode, Self::VsCode];

    /// Those that go on with a session that was written for them.
    pub const WRITABLE: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::Opencode];

    /// Returns the name that users write.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::VsCode => "vscode",
        }
    }

    /// Returns the agent of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }

    /// Returns the dialect that its sessions are closest to, whose rules hold for what it is given.
    #[must_use]
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::ClaudeCode | Self::Opencode => Dialect::Messages,
            Self::Codex => Dialect::Responses,
            Self::VsCode => Dialect::Chat,
        }
    }

    /// Returns how many tokens of history it is given if nobody says otherwise: the window of its usual models,
    /// less a quarter for its instructions, its tools and the answer.
    #[must_use]
    pub const fn usual_budget(self) -> u64 {
        match self {
            Self::ClaudeCode | Self::Opencode => 150_000,
            Self::Codex => 200_000,
            Self::VsCode => 96_000,
        }
    }

    /// Returns the command that goes on with a session.
    #[must_use]
    pub fn resume_command(self, session: &str) -> [String; 3] {
        let (program, how) = match self {
            Self::ClaudeCode => ("claude", "--resume"),
            Self::Codex => ("codex", "resume"),
            Self::Opencode => ("opencode", "--session"),
            Self::VsCode => ("code", "chat"),
        };
        [program.to_owned(), how.to_owned(), session.to_owned()]
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
