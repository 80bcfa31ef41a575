//! Verdicts about backends, as the history keeps them and as [`capability`](crate::capability) reads them.

use crate::capability::{Ability, Evidence, Learned, TOLD_HOLDS_MS, Verdict};
use std::collections::BTreeSet;
use throughline_core::Text;
use throughline_store::{Moment, Standing, Write};

/// Finds what is kept about an ability of a model; about all models of a backend if the name is empty.
#[must_use]
pub fn find<'s>(
    standing: &'s Standing,
    backend: &str,
    model: &str,
    ability: Ability,
) -> Option<&'s throughline_store::Learned> {
    standing.learned.iter().find(|learned| {
        learned.backend == *backend && learned.model == *model && learned.capability == ability.name()
    })
}

/// Reads a verdict; none if it is of a kind that this version does not know.
#[must_use]
pub fn recall(kept: &throughline_store::Learned) -> Option<Learned> {
    let (evidence, words) = Learned::parse_reason(&kept.reason);
    Some(Learned {
        ability: Ability::from_name(&kept.capability)?,
        verdict: Verdict::from_name(&kept.verdict)?,
        evidence,
        words,
        at: kept.at.0,
        expires: kept.expires.map_or(i64::MAX, |expires| expires.0),
    })
}

/// Returns what is to be written to keep a verdict.
#[must_use]
pub fn keep(backend: &Text, model: Text, learned: &Learned) -> Write {
    Write::Learned(throughline_store::Learned {
        backend: backend.clone(),
        model,
        capability: Text::from_static(learned.ability.name()),
        verdict: Text::from_static(learned.verdict.name()),
        reason: Text::from(learned.reason()),
        at: Moment(learned.at),
        expires: Some(Moment(learned.expires)),
    })
}

/// The name under which the history keeps the window of a model.
const WINDOW: &str = "context_window";

/// How long a window that was learned holds.
const WINDOW_HOLDS_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Returns what is to be written to remember how many tokens fit into a model's window.
#[must_use]
pub fn keep_window(backend: &Text, model: &Text, window: u64, evidence: Evidence, at: Moment) -> Write {
    let words = match evidence {
        Evidence::Tried => "it refused a longer prompt",
        Evidence::Header | Evidence::Listing => "the backend says so",
    };
    Write::Learned(throughline_store::Learned {
        backend: backend.clone(),
        model: model.clone(),
        capability: Text::from_static(WINDOW),
        verdict: Text::from(window.to_string()),
        reason: Text::from(format!("{}: {words}", evidence.name())),
        at,
        expires: Some(Moment(at.0.saturating_add(WINDOW_HOLDS_MS))),
    })
}

/// Returns the window of a model that was learned, and what told us, if it still holds.
#[must_use]
pub fn window(standing: &Standing, backend: &str, model: &str, at: Moment) -> Option<(u64, Evidence)> {
    let kept = standing.learned.iter().find(|learned| {
        learned.backend == *backend && learned.model == *model && learned.capability == WINDOW
    })?;
    let holds = kept.expires.is_none_or(|expires| expires > at);
    let (evidence, _) = Learned::parse_reason(&kept.reason);
    holds.then(|| Some((kept.verdict.parse().ok()?, evidence))).flatten()
}

/// Returns what is to be written to have what was learned of a backend forgotten: of one model, or of all.
///
/// It is not taken out but over, so that other gateways see it too.
#[must_use]
pub fn forget(standing: &Standing, backend: &str, model: Option<&str>, at: Moment) -> Vec<Write> {
    let is_meant = |learned: &&throughline_store::Learned| {
        learned.backend == *backend
            && model.is_none_or(|model| learned.model == *model)
            && learned.expires.is_none_or(|expires| expires > at)
    };
    let over = |learned: &throughline_store::Learned| {
        Write::Learned(throughline_store::Learned { expires: Some(at), ..learned.clone() })
    };
    standing.learned.iter().filter(is_meant).map(over).collect()
}

/// Returns what is to be written for people to see which models a backend lists.
///
/// It is no verdict: nothing is decided by it, so no ability goes by this name.
#[must_use]
pub fn keep_listed(backend: &Text, models: &BTreeSet<Text>, at: Moment) -> Write {
    const NAMED_MAX: usize = 8;
    let named: Vec<&str> = models.iter().take(NAMED_MAX).map(Text::as_str).collect();
    let more = if models.len() > NAMED_MAX { ", …" } else { "" };
    Write::Learned(throughline_store::Learned {
        backend: backend.clone(),
        model: Text::default(),
        capability: Text::from_static("models"),
        verdict: Text::from(models.len().to_string()),
        reason: Text::from(format!("listing: {}{more}", named.join(", "))),
        at,
        expires: Some(Moment(at.0.saturating_add(TOLD_HOLDS_MS))),
    })
}

/// Returns what is to be written for what a backend says about all its models in the headers of an answer.
///
/// A backend says it with every answer, so what is known and will hold for a while is not written again.
#[must_use]
pub fn keep_told(standing: &Standing, backend: &Text, said: &[(Ability, Verdict)], at: Moment) -> Vec<Write> {
    let lesson = |(ability, verdict): &(Ability, Verdict)| {
        let words = Text::from_static("the backend says so");
        let learned = Learned::new(*ability, *verdict, Evidence::Header, words, at.0);
        let known = find(standing, backend, "", *ability).and_then(recall);
        let is_known = known.as_ref().is_some_and(|known| {
            known.verdict == *verdict && known.expires > at.0.saturating_add(TOLD_HOLDS_MS / 2)
        });
        let is_news = !is_known && learned.supersedes(known.as_ref(), at.0);
        is_news.then(|| keep(backend, Text::default(), &learned))
    };
    said.iter().filter_map(lesson).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::Evidence;

    #[test]
    fn a_window_is_remembered_with_who_said_it() {
        let (one, model) = (Text::from_static("one"), Text::from_static("m"));
        let write = keep_window(&one, &model, 4096, Evidence::Tried, Moment(5));
        let Write::Learned(kept) = write else { panic!("{write:?}") };
        let standing = Standing { learned: vec![kept], ..Standing::default() };
        assert_eq!(window(&standing, "one", "m", Moment(6)), Some((4096, Evidence::Tried)));
        assert_eq!(window(&standing, "one", "other", Moment(6)), None);
        assert_eq!(window(&standing, "one", "m", Moment(i64::MAX)), None);
    }

    #[test]
    fn what_is_forgotten_is_over_at_once() {
        let verdict = |model: &'static str| {
            let words = Text::from_static("tried");
            let learned = Learned::new(Ability::ServerState, Verdict::No, Evidence::Tried, words, 7);
            match keep(&Text::from_static("one"), Text::from_static(model), &learned) {
                Write::Learned(kept) => kept,
                write => panic!("{write:?}"),
            }
        };
        let standing = Standing { learned: vec![verdict("m"), verdict("n")], ..Standing::default() };
        assert_eq!(forget(&standing, "two", None, Moment(9)).len(), 0);
        let writes = forget(&standing, "one", Some("m"), Moment(9));
        let [Write::Learned(over)] = &writes[..] else { panic!("{writes:?}") };
        assert!(!recall(over).unwrap().holds(9));
        assert_eq!(forget(&standing, "one", None, Moment(9)).len(), 2);
    }

    #[test]
    fn a_verdict_is_recalled_as_it_was_kept() {
        for evidence in [Evidence::Tried, Evidence::Header, Evidence::Listing] {
            let learned = Learned::new(
                Ability::ServerState,
                Verdict::No,
                evidence,
                Text::from_static("so: it says"),
                7,
            );
            let write = keep(&Text::from_static("one"), Text::from_static("m"), &learned);
            let Write::Learned(kept) = write else { panic!("{write:?}") };
            assert_eq!(recall(&kept), Some(learned));
            let standing = Standing { learned: vec![kept.clone()], ..Standing::default() };
            assert_eq!(find(&standing, "one", "m", Ability::ServerState), Some(&kept));
            assert_eq!(find(&standing, "one", "", Ability::ServerState), None);
        }
    }
}
