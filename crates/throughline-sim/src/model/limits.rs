//! Where an answer ends: at a stop sequence, or where its tokens run out.
//!
//! A token is four bytes of text, here and in every count of usage. A call that does not fit whole is not
//! made: half a call helps nobody.

use super::Draft;
use throughline_core::{Settings, Stop};

const BYTES_PER_TOKEN: u64 = 4;

/// Returns how many tokens so many bytes of text are.
pub(crate) const fn tokens_of(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// Ends the answer where the settings say.
pub(super) fn apply(draft: &mut Draft, settings: &Settings) {
    stop_at_sequence(draft, settings);
    let limit = settings.max_output_tokens.as_ref().and_then(|limit| limit.parse::<u64>().ok());
    if let Some(limit) = limit {
        stop_at_limit(draft, limit);
    }
}

fn stop_at_sequence(draft: &mut Draft, settings: &Settings) {
    let Some(text) = &mut draft.text else { return };
    let found = settings.stop.iter().filter(|sequence| !sequence.is_empty());
    let first = found
        .filter_map(|sequence| Some((text.find(sequence.as_str())?, sequence)))
        .min_by_key(|(at, _)| *at);
    if let Some((at, sequence)) = first {
        text.truncate(at);
        draft.calls.clear();
        draft.stop = Some(Stop::Sequence(Some(sequence.clone())));
    }
}

fn stop_at_limit(draft: &mut Draft, limit: u64) {
    let mut left = usize::try_from(limit.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
    let mut is_cut = false;
    let reasoning = draft.reasoning.as_ref().map_or(0, String::len);
    if reasoning > left {
        draft.reasoning = None;
        left = 0;
        is_cut = true;
    } else {
        left -= reasoning;
    }
    for text in [&mut draft.text, &mut draft.refusal].into_iter().flatten() {
        is_cut |= text.len() > left;
        cut(text, left);
        left -= text.len();
    }
    let before = draft.calls.len();
    draft.calls.retain(|call| {
        let fits = call.input.text().len() + call.name.len() <= left;
        left = if fits { left - call.input.text().len() - call.name.len() } else { 0 };
        fits
    });
    if is_cut || draft.calls.len() < before {
        draft.stop = Some(Stop::MaxTokens);
    }
}

/// Cuts a text to at most so many bytes, between two characters.
fn cut(text: &mut String, most: usize) {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(text: &str, settings: &Settings) -> Draft {
        let mut draft = Draft::saying(text);
        apply(&mut draft, settings);
        draft
    }

    #[test]
    fn an_answer_is_cut_between_characters() {
        let settings = Settings { max_output_tokens: Some("1".into()), ..Settings::default() };
        let draft = limited("aéé", &settings);
        assert_eq!((draft.text.as_deref(), draft.stop), (Some("aé"), Some(Stop::MaxTokens)));
        assert_eq!(limited("abcd", &settings).stop, None);
    }

    #[test]
    fn the_first_stop_sequence_counts() {
        let settings = Settings { stop: vec!["two".into(), "one".into()], ..Settings::default() };
        let draft = limited("zero one two", &settings);
        assert_eq!(draft.text.as_deref(), Some("zero "));
        assert_eq!(draft.stop, Some(Stop::Sequence(Some("one".into()))));
    }
}
