//! Claims, and whether they held.

use crate::exit::CommandError;
use crate::output::{self, Ink};

/// What was claimed so far.
#[derive(Debug, Default)]
pub struct Checks {
    held: u32,
    failed: u32,
}

impl Checks {
    /// Makes a claim, and says whether it holds.
    pub fn claim(&mut self, ink: &Ink, claim: &str, holds: bool) -> Result<(), CommandError> {
        let sign = if holds { ink.good("✓") } else { ink.bad("✗") };
        if holds {
            self.held += 1;
        } else {
            self.failed += 1;
        }
        output::print(&format!("  {sign} {claim}\n"))
    }

    /// Returns how many held.
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Returns how many did not.
    pub const fn failed(&self) -> u32 {
        self.failed
    }

    /// Returns how many there were.
    pub const fn made(&self) -> u32 {
        self.held + self.failed
    }
}
