//! Privacy: what is taken out of everything before it is written into the history.
//!
//! Rules are patterns; what they find becomes `[redacted:NAME]`, in entries, requests as sent, events, answers and
//! failures alike, and so in the index of words. The backend is sent what the client said. A resent history is
//! recognised by what it says *after* redaction, always: a conversation whose rules change is recognised up to where
//! they made no difference.
//!
//! Reasoning that is signed, and whatever is sealed, is left alone: a changed byte makes it worthless. See
//! docs/decisions/0019.

mod entries;
mod events;
pub(crate) mod json;
mod secrets;

use regex::{Captures, Regex, RegexSet};
use std::borrow::Cow;
use throughline_core::Text;
use throughline_store::{Batch, DocumentKind, Exchange, Write};

pub use secrets::SECRETS;

/// What is taken out.
#[derive(Clone, Debug, Default)]
pub struct Privacy {
    rules: Vec<Rule>,
    /// All patterns at once: most texts hold nothing.
    any: RegexSet,
}

#[derive(Clone, Debug)]
struct Rule {
    mark: String,
    pattern: Regex,
    /// Whether only the group called `secret` goes.
    has_group: bool,
}

/// What of a match goes, if not all of it.
const GROUP: &str = "secret";

impl Privacy {
    /// Makes rules of names and patterns.
    ///
    /// # Errors
    /// When a pattern is none, or matches nothing at all: its number, and why.
    pub fn new<'r>(rules: impl IntoIterator<Item = (&'r str, &'r str)>) -> Result<Self, (usize, String)> {
        let mut made = Self::default();
        let mut patterns = Vec::new();
        for (number, (name, pattern)) in rules.into_iter().enumerate() {
            let compiled = Regex::new(pattern).map_err(|error| (number, error.to_string()))?;
            if compiled.is_match("") {
                return Err((number, "it matches where there is nothing".to_owned()));
            }
            let has_group = compiled.capture_names().any(|name| name == Some(GROUP));
            made.rules.push(Rule { mark: format!("[redacted:{name}]"), pattern: compiled, has_group });
            patterns.push(pattern);
        }
        made.any = RegexSet::new(&patterns).map_err(|error| (patterns.len(), error.to_string()))?;
        Ok(made)
    }

    /// Says whether there is anything to take out at all.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Returns a text without what the rules find; a text that is JSON stays JSON.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.is_active() {
            return Cow::Borrowed(text);
        }
        match text.trim_start().as_bytes().first() {
            Some(b'{' | b'[') => self.json(text),
            _ => self.plain(text),
        }
    }

    /// Returns bytes without what the rules find in those of them that are text.
    #[must_use]
    pub fn bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if !self.is_active() {
            return Cow::Borrowed(bytes);
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            return match self.text(text) {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(redacted) => Cow::Owned(redacted.into_bytes()),
            };
        }
        let pieces = bytes.utf8_chunks();
        let redacted = pieces.map(|piece| [self.plain(piece.valid()).as_bytes(), piece.invalid()].concat());
        Cow::Owned(redacted.flatten().collect())
    }

    /// Returns a batch without what the rules find. Its entries were redacted when it was made.
    #[must_use]
    pub fn batch(&self, mut batch: Batch) -> Batch {
        if self.is_active() {
            batch.writes = batch.writes.into_iter().map(|write| self.write(write)).collect();
        }
        batch
    }

    fn write(&self, write: Write) -> Write {
        match write {
            // Where something comes from is told by numbers, in which nothing is to be found.
            provenance @ Write::Document { kind: DocumentKind::Provenance, .. } => provenance,
            Write::Document { exchange, attempt, kind, body } => {
                let redacted = match std::str::from_utf8(&body) {
                    Ok(text) => match self.text(text) {
                        Cow::Owned(redacted) => Some(redacted),
                        Cow::Borrowed(_) => None,
                    },
                    Err(_) => None,
                };
                Write::Document { exchange, attempt, kind, body: redacted.map_or(body, Into::into) }
            }
            Write::Events { exchange, attempt, events } => {
                Write::Events { exchange, attempt, events: self.events(events) }
            }
            Write::Answer { exchange, json } => Write::Answer { exchange, json: self.kept(&json) },
            Write::Exchange(exchange) => Write::Exchange(Box::new(self.exchange(*exchange))),
            Write::Compaction(mut step) => {
                // The words of the digest were looked at before anybody was shown them.
                step.summary = step.summary.take().map(|summary| self.kept(&summary));
                Write::Compaction(step)
            }
            other => other,
        }
    }

    fn exchange(&self, mut exchange: Exchange) -> Exchange {
        exchange.client = exchange.client.take().map(|client| self.kept(&client));
        exchange.asked_model = exchange.asked_model.take().map(|model| self.kept(&model));
        for attempt in &mut exchange.attempts {
            attempt.model = attempt.model.take().map(|model| self.kept(&model));
            attempt.failure = attempt.failure.take().map(|failure| self.kept(&failure));
        }
        exchange
    }

    /// Returns a text as it is kept.
    fn kept(&self, text: &Text) -> Text {
        match self.text(text) {
            Cow::Borrowed(_) => text.clone(),
            Cow::Owned(redacted) => redacted.into(),
        }
    }

    /// Takes out what the rules find in a text that is no JSON.
    fn plain<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.any.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut redacted = Cow::Borrowed(text);
        for rule in &self.rules {
            let replaced =
                rule.pattern.replace_all(&redacted, |found: &Captures<'_>| rule.replacement(found));
            if let Cow::Owned(replaced) = replaced {
                redacted = Cow::Owned(replaced);
            }
        }
        redacted
    }

    /// Returns where in a text the rules find something, in order and apart from each other, with its mark.
    fn found(&self, text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
        if !self.any.is_match(text) {
            return Vec::new();
        }
        let mut all: Vec<(std::ops::Range<usize>, &str)> = Vec::new();
        for rule in &self.rules {
            for captures in rule.pattern.captures_iter(text) {
                let found = captures.name(GROUP).or_else(|| captures.get(0));
                let Some(range) = found.map(|found| found.range()) else { continue };
                if all.iter().all(|(other, _)| other.end <= range.start || range.end <= other.start) {
                    all.push((range, &rule.mark));
                }
            }
        }
        all.sort_by_key(|(range, _)| range.start);
        all
    }
}

impl Rule {
    fn replacement(&self, found: &Captures<'_>) -> String {
        let whole = found.get(0).map_or("", |whole| whole.as_str());
        match found.name(GROUP).filter(|_| self.has_group) {
            None => self.mark.clone(),
            Some(secret) => {
                let from = found.get(0).map_or(0, |whole| whole.start());
                let (start, end) = (secret.start() - from, secret.end() - from);
                format!("{}{}{}", &whole[..start], self.mark, &whole[end..])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{ConversationId, Dialect};
    use throughline_store::{ExchangeId, Moment};

    fn secrets() -> Privacy {
        Privacy::new(SECRETS).unwrap()
    }

    #[test]
    fn what_a_client_calls_itself_and_its_model_is_looked_at_too() {
        let mut exchange =
            Exchange::begun(ExchangeId::new("x"), ConversationId::new("c"), Dialect::Chat, Moment(1));
        exchange.client = Some("agent/1 AKIAIOSFODNN7EXAMPLE".into());
        exchange.asked_model = Some("AKIAIOSFODNN7EXAMPLE".into());
        let kept = secrets().batch(Batch::durable(vec![Write::Exchange(Box::new(exchange))]));
        let [Write::Exchange(kept)] = kept.writes.as_slice() else { panic!("{kept:?}") };
        assert_eq!(kept.client.as_deref(), Some("agent/1 [redacted:aws-key]"));
        assert_eq!(kept.asked_model.as_deref(), Some("[redacted:aws-key]"));
    }

    #[test]
    fn every_secret_goes_and_what_is_around_it_stays() {
        let all = [
            ("id AKIAIOSFODNN7EXAMPLE.", "id [redacted:aws-key]."),
            (
                "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                "aws_secret_access_key = [redacted:aws-secret]",
            ),
            ("x ghp_0123456789abcdefghijABCDEFGHIJ012345 y", "x [redacted:github] y"),
            ("sk-ant-api03-abcdefghijklmnopqrst-12", "[redacted:anthropic]"),
            ("key=sk-proj-abcdefghijklmnopqrst1234", "key=[redacted:openai]"),
            ("AIzaSyA0123456789abcdefghijklmnopqrstuv", "[redacted:google]"),
            ("xoxb-123456789012-abcdefghijkl", "[redacted:slack]"),
            ("sk_live_0123456789abcdef", "[redacted:stripe]"),
            ("Authorization: Bearer abcdefghijklmnopqrstuvwxyz=", "Authorization: Bearer [redacted:bearer]"),
            ("t eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w", "t [redacted:jwt]"),
            ("postgres://me:hunter2@db/app", "postgres://me:[redacted:url-password]@db/app"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
                "[redacted:private-key]",
            ),
        ];
        let privacy = secrets();
        for (text, wanted) in all {
            assert_eq!(privacy.text(text), wanted);
            assert_eq!(privacy.text(wanted), wanted, "what is redacted stays as it is");
        }
    }

    #[test]
    fn what_is_no_secret_stays_to_the_byte() {
        let privacy = secrets();
        for text in [
            "let key = std::env::var(\"AWS_KEY\");",
            "https://example.com:8080/a@b",
            "sk-short",
            "Bearer of bad news",
            "risk-based-approach-to-everything-else",
            "{\"task\":\"ask-for-something-longer-than-twenty\"}",
        ] {
            assert!(matches!(privacy.text(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn secrets_go_from_what_is_no_text_as_well() {
        let privacy = secrets();
        let bytes = [b"\xff\0 AKIAIOSFODNN7EXAMPLE\xfe".as_slice(), "ä".as_bytes()].concat();
        let wanted = [b"\xff\0 [redacted:aws-key]\xfe".as_slice(), "ä".as_bytes()].concat();
        assert_eq!(*privacy.bytes(&bytes), wanted);
        assert_eq!(*privacy.bytes(b"AKIAIOSFODNN7EXAMPLE"), *b"[redacted:aws-key]");
        assert!(matches!(privacy.bytes(b"plain"), Cow::Borrowed(b"plain")));
    }

    #[test]
    fn a_rule_of_the_operator_is_a_pattern_with_a_name() {
        let privacy = Privacy::new([("staff", r"EMP-\d{6}"), ("ssn", r"SSN (?<secret>\d+)")]).unwrap();
        assert_eq!(privacy.text("EMP-123456 has SSN 42"), "[redacted:staff] has SSN [redacted:ssn]");
        assert_eq!(Privacy::new([("a", "x"), ("b", "(")]).unwrap_err().0, 1);
        assert_eq!(Privacy::new([("a", "x*")]).unwrap_err().0, 0);
        assert!(!Privacy::default().is_active());
    }
}
