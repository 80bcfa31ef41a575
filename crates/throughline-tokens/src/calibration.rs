//! What a backend's reports of usage teach about how its models count.
//!
//! Each answer gives a ratio: the tokens that the backend says the prompt took, to those that we had counted.
//! The factor is the median of the latest ratios and of the factor that one starts with: an answer that is
//! far off (a prompt that the provider pads, a count that leaves out what was cached) moves it by one place
//! at most. All figures are in thousandths, so that what is kept as text is what was known.

use std::fmt;

/// How many ratios are remembered.
const REMEMBERED_MAX: usize = 15;

/// For how many ratios the factor counts that one starts with: three answers that agree overrule it.
const START_WEIGHT: usize = 2;

/// Below this many tokens, what providers add to a prompt is more than what we misjudge.
const COUNTED_MIN: u64 = 200;

/// Ratios outside of these say that something else was counted, and are not taken.
const RATIO_MIN: u64 = 400;
const RATIO_MAX: u64 = 4_000;

/// What is added to be safe: at least, at most, and as long as nothing is known.
const MARGIN_MIN: u32 = 20;
const MARGIN_MAX: u32 = 250;
const MARGIN_UNKNOWN: u32 = 100;

/// The latest ratios of reported to counted tokens, for one family of models of one backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calibration {
    /// In thousandths, oldest first.
    ratios: Vec<u32>,
    /// How many answers were taken in all.
    answers: u32,
}

impl Calibration {
    /// Takes what was counted, and what a backend reported for it. Says whether it was of use.
    pub fn observe(&mut self, counted: u64, reported: u64) -> bool {
        if counted < COUNTED_MIN {
            return false;
        }
        let ratio = reported.saturating_mul(1000) / counted;
        if !(RATIO_MIN..=RATIO_MAX).contains(&ratio) {
            return false;
        }
        if self.ratios.len() == REMEMBERED_MAX {
            self.ratios.remove(0);
        }
        self.ratios.extend(u32::try_from(ratio));
        self.answers = self.answers.saturating_add(1);
        true
    }

    /// Returns the factor in thousandths, for models for which one starts with `start`.
    #[must_use]
    pub fn factor(&self, start: u32) -> u32 {
        let mut ratios = self.ratios.clone();
        ratios.extend([start; START_WEIGHT]);
        median(ratios)
    }

    /// Returns what to add to an estimate to be safe, in thousandths of it: twice the usual distance from the
    /// factor.
    #[must_use]
    pub fn margin(&self) -> u32 {
        if self.ratios.len() <= START_WEIGHT {
            return MARGIN_UNKNOWN;
        }
        let middle = median(self.ratios.clone());
        let distance = median(self.ratios.iter().map(|ratio| ratio.abs_diff(middle)).collect());
        (distance.saturating_mul(2000) / middle.max(1)).clamp(MARGIN_MIN, MARGIN_MAX)
    }

    /// Returns how many answers were taken in all.
    #[must_use]
    pub const fn answers(&self) -> u32 {
        self.answers
    }

    /// Reads what [`Calibration::to_string`](ToString::to_string) has written; none if it is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (answers, ratios) = text.split_once(" answers:").or_else(|| text.split_once(" answer:"))?;
        let answers = answers.parse().ok()?;
        let ratios = ratios.split_whitespace().map(thousandths).collect::<Option<Vec<u32>>>()?;
        let is_sound = ratios.len() <= REMEMBERED_MAX
            && ratios.iter().all(|ratio| (RATIO_MIN..=RATIO_MAX).contains(&u64::from(*ratio)));
        is_sound.then_some(Self { ratios, answers })
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:", self.answers, if self.answers == 1 { "answer" } else { "answers" })?;
        self.ratios.iter().try_for_each(|ratio| write!(f, " {}.{:03}", ratio / 1000, ratio % 1000))
    }
}

fn thousandths(text: &str) -> Option<u32> {
    let (whole, rest) = text.split_once('.')?;
    (rest.len() == 3).then_some(())?;
    whole.parse::<u32>().ok()?.checked_mul(1000)?.checked_add(rest.parse().ok()?)
}

/// Returns the middle value, or what lies between the middle two.
fn median(mut values: Vec<u32>) -> u32 {
    values.sort_unstable();
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    at(values.len().saturating_sub(1) / 2).midpoint(at(values.len() / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_answers_that_agree_overrule_the_start() {
        let mut calibration = Calibration::default();
        for expected in [1200, 1350, 1500] {
            assert!(calibration.observe(1000, 1500));
            assert_eq!(calibration.factor(1200), expected);
        }
    }

    #[test]
    fn one_answer_is_one_and_what_was_written_before_is_read() {
        let mut calibration = Calibration::default();
        assert!(calibration.observe(1000, 1500));
        assert_eq!(calibration.to_string(), "1 answer: 1.500");
        for text in ["1 answer: 1.500", "1 answers: 1.500"] {
            assert_eq!(Calibration::parse(text).as_ref(), Some(&calibration), "{text}");
        }
    }

    #[test]
    fn what_is_too_small_or_absurd_is_not_taken() {
        let mut calibration = Calibration::default();
        for (counted, reported) in
            [(199, 250), (0, 0), (1000, 0), (1000, 399), (1000, 4001), (1000, u64::MAX)]
        {
            assert!(!calibration.observe(counted, reported), "{counted} {reported}");
        }
        assert_eq!(calibration, Calibration::default());
    }

    #[test]
    fn agreement_narrows_the_margin_and_disagreement_widens_it() {
        let of = |reported: &[u64]| {
            let mut calibration = Calibration::default();
            reported.iter().for_each(|reported| {
                calibration.observe(1000, *reported);
            });
            calibration.margin()
        };
        assert_eq!(of(&[]), MARGIN_UNKNOWN);
        assert_eq!(of(&[1200; 5]), MARGIN_MIN);
        assert!(of(&[1000, 1100, 1200, 1300, 1400]) > MARGIN_MIN);
    }

    #[test]
    fn other_texts_are_no_calibration() {
        for text in ["", "5", "x answers: 1.000", "2 answers: 1.0", "1 answers: 9.000", "1 answers: 1.x00"] {
            assert_eq!(Calibration::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_is_read_as_it_was_written(seen in prop::collection::vec((200_u64..100_000, 1_u64..300_000), 0..40)) {
            let mut calibration = Calibration::default();
            seen.iter().for_each(|(counted, reported)| { calibration.observe(*counted, *reported); });
            prop_assert_eq!(Calibration::parse(&calibration.to_string()), Some(calibration));
        }

        #[test]
        fn a_steady_ratio_is_found_whatever_came_before(
            noise in prop::collection::vec((200_u64..100_000, 1_u64..300_000), 0..40),
            ratio in 500_u64..3_000,
        ) {
            let mut calibration = Calibration::default();
            noise.iter().for_each(|(counted, reported)| { calibration.observe(*counted, *reported); });
            (0..REMEMBERED_MAX).for_each(|_| { calibration.observe(1000, ratio); });
            prop_assert_eq!(u64::from(calibration.factor(1200)), ratio);
        }

        #[test]
        fn one_stray_answer_moves_a_settled_factor_by_no_more_than_its_neighbours(
            steady in prop::collection::vec(1_100_u64..1_300, 9..15),
            stray in 1_u64..4_000,
        ) {
            let mut calibration = Calibration::default();
            steady.iter().for_each(|reported| { calibration.observe(1000, *reported); });
            calibration.observe(1000, stray);
            prop_assert!((1_100..1_300).contains(&calibration.factor(1200)));
        }
    }
}
