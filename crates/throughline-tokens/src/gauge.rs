//! How the models of one backend count, and what entries and tools take by that.
//!
//! What is text is counted by a vocabulary; what is not (pictures, files, sealed reasoning) by rules. The two
//! are kept apart in a [`Size`], since only the count of text is scaled by what was learned.

use crate::media::{Pictures, file_tokens};
use crate::{Calibration, Counts, Vocabulary};
use std::iter::Sum;
use std::ops::Add;
use throughline_core::{Content, Entry, Format, Kind, Media, Part, Seal, Thought, Tool, ToolForm};

/// What a message, a call and a result take beside their text: their role, their id, and where they end.
const MESSAGE_TOKENS: u64 = 4;
const CALL_TOKENS: u64 = 8;
const RETURN_TOKENS: u64 = 5;

/// What the declaration of a tool takes beside its text.
const TOOL_TOKENS: u64 = 8;

/// What every prompt takes for the answer's beginning.
const PROMPT_TOKENS: u64 = 3;

/// The factors to start with, in thousandths: models with a vocabulary of their own need more tokens than
/// `o200k`, and those of Claude Opus 4.7 and later more still.
const FACTOR_EXACT: u32 = 1_000;
const FACTOR_OTHERS: u32 = 1_200;
const FACTOR_NEW_CLAUDE: u32 = 1_500;

/// How the models of one backend count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    vocabulary: Vocabulary,
    is_exact: bool,
    /// In thousandths.
    factor: u32,
    margin: u32,
    pictures: Pictures,
}

/// How a count was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By the model's own vocabulary.
    Exact,
    /// By another vocabulary, times a factor.
    Estimate,
    /// By the number of bytes, because the vocabulary was not loaded yet.
    Bytes,
}

/// What something takes, before it is scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Tokens of the vocabulary.
    pub text: u64,
    /// Tokens by rules: pictures, files, sealed reasoning.
    pub fixed: u64,
}

impl Gauge {
    /// Returns how a model counts, as far as its name tells.
    #[must_use]
    pub fn of_model(model: &str) -> Self {
        let own = Vocabulary::of_model(model);
        let factor = if own.is_some() { FACTOR_EXACT } else { start_factor(&family(model)) };
        Self {
            vocabulary: own.unwrap_or(Vocabulary::O200k),
            is_exact: own.is_some(),
            factor,
            margin: if own.is_some() { 0 } else { Calibration::default().margin() },
            pictures: Pictures::of_model(model),
        }
    }

    /// Returns the same gauge with what was learned; a vocabulary of its own needs no learning.
    #[must_use]
    pub fn calibrated(self, calibration: &Calibration) -> Self {
        if self.is_exact {
            return self;
        }
        Self { factor: calibration.factor(self.factor), margin: calibration.margin(), ..self }
    }

    /// Says whether the count can be improved by what the backend reports.
    #[must_use]
    pub const fn learns(&self) -> bool {
        !self.is_exact
    }

    /// Returns the factor in thousandths.
    #[must_use]
    pub const fn factor(&self) -> u32 {
        self.factor
    }

    /// Returns the vocabulary that it counts by.
    #[must_use]
    pub const fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }

    /// Says how counts are come by at this moment.
    #[must_use]
    pub fn method(&self) -> Method {
        match (self.vocabulary.is_loaded(), self.is_exact) {
            (false, _) => Method::Bytes,
            (true, true) => Method::Exact,
            (true, false) => Method::Estimate,
        }
    }

    /// Returns how many tokens a size is for these models.
    #[must_use]
    pub const fn tokens(&self, size: Size) -> u64 {
        scaled(size.text, self.factor).saturating_add(size.fixed)
    }

    /// Returns how many tokens a size is at most, as far as can be known: with what the estimate may be off by.
    #[must_use]
    pub const fn tokens_at_most(&self, size: Size) -> u64 {
        scaled(self.tokens(size), 1000 + self.margin)
    }

    /// Returns by how many thousandths [`Self::tokens_at_most`] is more than [`Self::tokens`].
    #[must_use]
    pub const fn margin(&self) -> u32 {
        self.margin
    }

    /// Teaches a calibration what a backend reported for a prompt of this size. Says whether it was of use.
    pub fn teach(&self, calibration: &mut Calibration, size: Size, reported: u64) -> bool {
        self.method() == Method::Estimate
            && calibration.observe(size.text, reported.saturating_sub(size.fixed))
    }

    /// Returns what a text takes.
    #[must_use]
    pub fn text(&self, counts: &Counts, text: &str) -> Size {
        let text =
            if self.vocabulary.is_loaded() { counts.count(self.vocabulary, text) } else { by_bytes(text) };
        Size { text, fixed: 0 }
    }

    /// Returns what a prompt takes: its entries, its tools, and the form that is asked for.
    #[must_use]
    pub fn prompt(
        &self,
        counts: &Counts,
        entries: &[Entry],
        tools: &[Tool],
        format: Option<&Format>,
    ) -> Size {
        let entries: Size = entries.iter().map(|entry| self.entry(counts, entry)).sum();
        let tools: Size = tools.iter().map(|tool| self.tool(counts, tool)).sum();
        let format = match format {
            Some(Format::JsonSchema { schema, .. }) => self.text(counts, schema),
            Some(Format::Text | Format::JsonObject) | None => Size::default(),
        };
        entries + tools + format + flat(PROMPT_TOKENS)
    }

    /// Returns what an entry takes.
    #[must_use]
    pub fn entry(&self, counts: &Counts, entry: &Entry) -> Size {
        match &entry.kind {
            Kind::Said(said) => self.parts(counts, &said.parts) + flat(MESSAGE_TOKENS),
            Kind::Thought(thought) => self.thought(counts, thought),
            Kind::Called(call) => {
                self.text(counts, &call.name) + self.text(counts, call.input.text()) + flat(CALL_TOKENS)
            }
            Kind::Returned(returned) => self.parts(counts, &returned.parts) + flat(RETURN_TOKENS),
            Kind::Summarised(summary) => self.text(counts, &summary.text) + flat(MESSAGE_TOKENS),
            Kind::HandedOver(_) | Kind::Reference { .. } => Size::default(),
            Kind::Opaque { .. } => {
                entry.wire.as_ref().map_or_else(Size::default, |wire| self.text(counts, &wire.text))
            }
        }
    }

    /// Returns what the declaration of a tool takes. Providers rewrite schemas before a model sees them, in
    /// ways of their own; as JSON it is rather more than less.
    #[must_use]
    pub fn tool(&self, counts: &Counts, tool: &Tool) -> Size {
        let described = tool.description.as_ref().map_or_else(Size::default, |text| self.text(counts, text));
        let form = match &tool.form {
            ToolForm::Function { schema: form, .. } | ToolForm::Custom { format: form } => form.as_ref(),
            ToolForm::Hosted { .. } => tool.wire.as_ref().map(|wire| &wire.text),
        };
        let form = form.map_or_else(Size::default, |text| self.text(counts, text));
        self.text(counts, &tool.name) + described + form + flat(TOOL_TOKENS)
    }

    fn parts(&self, counts: &Counts, parts: &[Part]) -> Size {
        parts.iter().map(|part| self.part(counts, part)).sum()
    }

    fn part(&self, counts: &Counts, part: &Part) -> Size {
        match &part.content {
            Content::Text(text) | Content::Refusal(text) => self.text(counts, text),
            Content::Image(image) => Size { text: 0, fixed: self.pictures.tokens(image) },
            Content::File(file) => {
                let text = match &file.media {
                    Media::Plain(text) => self.text(counts, text),
                    Media::Url(_) | Media::Inline { .. } | Media::Stored(_) => Size::default(),
                };
                text + Size { text: 0, fixed: file_tokens(file) }
            }
            Content::Opaque { .. } => {
                part.wire.as_ref().map_or_else(Size::default, |wire| self.text(counts, &wire.text))
            }
        }
    }

    fn thought(&self, counts: &Counts, thought: &Thought) -> Size {
        let texts = thought.content.iter().chain(&thought.summary);
        let shown: Size = texts.map(|text| self.text(counts, text)).sum();
        let sealed = match &thought.seal {
            // What is encrypted is base64 of about what was thought, at four bytes to the token.
            Some(Seal::Encrypted(text) | Seal::Redacted(text)) => text.len() as u64 * 3 / 16,
            Some(Seal::Signature(_)) | None => 0,
        };
        shown + Size { text: MESSAGE_TOKENS, fixed: sealed }
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { text: self.text.saturating_add(other.text), fixed: self.fixed.saturating_add(other.fixed) }
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Add::add)
    }
}

/// Returns the family of a model, which counts alike: its name without who serves it, a date, or a variant.
#[must_use]
pub fn family(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let name = name.split([':', '@']).next().unwrap_or_default();
    let name = name.strip_suffix("-latest").unwrap_or(name);
    let is_date = |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once('-') {
        Some((before, last)) if is_date(last) => before.to_owned(),
        _ => name.to_owned(),
    }
}

fn start_factor(family: &str) -> u32 {
    let Some((_, name)) = family.split_once("claude-") else { return FACTOR_OTHERS };
    let mut numbers = name.split(['-', '.']).filter_map(|word| word.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let since = if name.contains("opus") { (4, 7) } else { (5, 0) };
    if version >= since { FACTOR_NEW_CLAUDE } else { FACTOR_OTHERS }
}

const fn flat(tokens: u64) -> Size {
    Size { text: tokens, fixed: 0 }
}

/// Rounds up: too much is the safer mistake.
const fn scaled(tokens: u64, thousandths: u32) -> u64 {
    tokens.saturating_mul(thousandths as u64).div_ceil(1000)
}

/// JSON has about 2.7 bytes to a token, everything else 3.8.
fn by_bytes(text: &str) -> u64 {
    let tenths = if text.trim_start().starts_with(['{', '[']) { 27 } else { 38 };
    (text.len() as u64 * 10).div_ceil(tenths)
}
