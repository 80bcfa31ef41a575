//! What is not kept, checked.

use super::file::PrivacySection;
use super::resolve::{Resolver, list};
use crate::privacy::{Privacy, SECRETS};
use std::sync::Arc;

impl Resolver<'_> {
    /// Returns what is taken out of everything before it is kept.
    pub(super) fn privacy(&mut self, section: &PrivacySection) -> Arc<Privacy> {
        let secrets = section.secrets.unwrap_or(false);
        self.note("privacy.secrets", secrets);
        self.note("privacy.redact", list(section.redact.iter().map(|rule| rule.name.clone())));
        for (number, rule) in section.redact.iter().enumerate() {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if rule.name.is_empty() || !rule.name.chars().all(plain) {
                let what = format!("`{}` may hold letters, digits, `-`, `_` and `.` only", rule.name);
                self.problem(&format!("privacy.redact[{number}].name"), what);
            }
        }
        let built_in = SECRETS.iter().filter(|_| secrets).copied();
        let own = section.redact.iter().map(|rule| (rule.name.as_str(), rule.pattern.as_str()));
        // Those of the operator come first: they know more about what it is.
        match Privacy::new(own.chain(built_in)) {
            Ok(privacy) => Arc::new(privacy),
            Err((number, what)) => {
                self.problem(&format!("privacy.redact[{number}].pattern"), what);
                Arc::default()
            }
        }
    }
}
