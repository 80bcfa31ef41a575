//! A large step: from the gentlest measure to the last resort, down to the goal.
//!
//! Superseded rounds go first. Then what is old competes for the room that is left: excerpts of results and of
//! large arguments, and what gets nothing is masked. If even calls and masks take too much, the oldest of those that get
//! nothing become a summary, and then the oldest of all. The latest rounds stay as they are for as long as they fit.

use super::decision::Decision;
use super::digest::{self, Gone};
use super::draft::Draft;
use super::fill::{self, Pool};
use super::superseded::{Relations, relations};
use super::survey::{Round, Survey};
use super::{Budget, HandleRange, Policy, Tokens, ToolKind};
use crate::{Kind, Role};

/// How much of the room the latest rounds take verbatim, in hundredths, however many they are.
const RECENT_SHARE: u64 = 20;
/// How much they may take up to the number of calls that are to be kept.
const RECENT_SHARE_MAX: u64 = 35;
/// What calls and masks may take, in hundredths, before old rounds become a summary: the rest is for excerpts.
const FLOOR_SHARE: u64 = 60;
/// The same where there are no excerpts.
const FLOOR_SHARE_MASKED: u64 = 95;
/// What a masked result takes.
const MASK_TOKENS: u64 = 24;
/// How much of the goal a summary may take, in hundredths, and how much at most.
const SUMMARY_SHARE: u64 = 10;
const SUMMARY_TOKENS_MAX: u64 = 600;
/// How many characters of a digest make a token, roughly.
const CHARS_PER_TOKEN: u64 = 3;
/// How often the room is corrected by what the selection really took.
const ROUNDS_OF_FILLING: usize = 3;

pub(super) struct Step<'d, 'a> {
    pub draft: &'d mut Draft<'a>,
    pub budget: &'d Budget,
    /// What calls and results are to take.
    pub goal: Tokens,
    /// What of that are results which the model has not seen yet: they stay for as long as they fit.
    unseen: Tokens,
    relations: Relations,
    /// The first of the rounds that stay as they are.
    recent: usize,
    /// How many pairs the summary tells of as it stands.
    told: usize,
}

impl<'d, 'a> Step<'d, 'a> {
    pub fn new(draft: &'d mut Draft<'a>, budget: &'d Budget, goal: Tokens, unseen: Tokens) -> Self {
        let relations = relations(draft.survey);
        let recent = draft.survey.rounds.len();
        let mut step = Self { draft, budget, goal, unseen, relations, recent, told: 0 };
        step.recent = step.recent();
        step.told = if step.draft.span.is_some() { step.gone().pairs() } else { 0 };
        step
    }

    /// Frees as much as the goal demands.
    pub fn run(&mut self) {
        self.leave_out_superseded();
        if self.draft.tool_tokens() <= self.goal {
            return;
        }
        self.summarise_for_room();
        match self.budget.policy {
            Policy::Mask => self.mask(),
            _ => self.excerpt(),
        }
        let goal = self.goal;
        self.summarise_while(|draft| draft.tool_tokens().less(goal));
    }

    /// Frees more, beyond the goal, until the whole prompt fits; says whether it does.
    ///
    /// Once over the limit it goes down to `target`, or the next request would be over it again.
    pub fn squeeze(&mut self, limit: Tokens, target: Tokens) -> bool {
        let fits = |draft: &Draft<'_>| draft.total() <= limit;
        if fits(self.draft) {
            return true;
        }
        self.summarise_while(|draft| draft.total().less(target));
        if !fits(self.draft) {
            self.cut_recent(target);
        }
        if !fits(self.draft) {
            self.shorten_summary();
        }
        if !fits(self.draft) {
            self.leave_out_words(target);
        }
        fits(self.draft)
    }

    fn survey(&self) -> &'a Survey<'a> {
        self.draft.survey
    }

    fn round_tokens(&self, round: &Round) -> Tokens {
        let pairs = &self.survey().pairs[round.pairs.clone()];
        pairs.iter().flat_map(super::survey::Pair::entries).map(|entry| self.draft.size(entry)).sum()
    }

    fn whole_round_tokens(&self, round: &Round) -> Tokens {
        let thoughts = round.thoughts.iter().map(|entry| self.draft.size(*entry)).sum();
        self.round_tokens(round) + thoughts
    }

    /// Finds the first round that stays as it is.
    fn recent(&self) -> usize {
        let rounds = &self.survey().rounds;
        let (mut calls, mut tokens) = (0, Tokens(0));
        let room = self.goal.less(self.unseen);
        let mut spared = self.unseen;
        for (at, round) in rounds.iter().enumerate().rev() {
            let of_round = self.round_tokens(round);
            tokens += of_round.less(spared);
            spared = spared.less(of_round);
            let by_number =
                calls < self.budget.recent_calls_to_keep && tokens <= room.percent(RECENT_SHARE_MAX);
            if !by_number && tokens > room.percent(RECENT_SHARE) {
                return at + 1;
            }
            calls += round.pairs.len();
        }
        0
    }

    /// Leaves out what later rounds show anew, unless the line that says so takes more.
    fn leave_out_superseded(&mut self) {
        let before = (self.draft.taken.clone(), self.draft.span.clone(), self.told);
        let size = self.draft.total();
        self.leave_out_repeated();
        self.summarise();
        if self.draft.total() > size {
            (self.draft.taken, self.draft.span, self.told) = before;
        }
    }

    fn leave_out_repeated(&mut self) {
        let survey = self.survey();
        // Rounds that a later one supersedes are told apart by count, not by room: the latest are never touched.
        for at in 0..self.recent.min(survey.rounds.len()) {
            if self.draft.is_gone(at) {
                continue;
            }
            let round = &survey.rounds[at];
            let by = |pair: usize| self.relations.by[pair];
            if !round.is_pinned && round.pairs.clone().all(|pair| by(pair).is_some()) {
                self.draft.leave_out(at, &Decision::Dropped);
                continue;
            }
            for pair in round.pairs.clone() {
                let (Some(by), Some(result)) = (by(pair), survey.pairs[pair].result) else { continue };
                let by = survey.pairs[by].result.unwrap_or_default();
                let decision = Decision::Superseded { by: u32::try_from(by).unwrap_or(u32::MAX) };
                self.draft.shorten(result, survey.pairs[pair].handle, decision, false);
            }
        }
    }

    /// Returns what a round takes at least while it is shown.
    fn floor(&self, round: &Round) -> u64 {
        let pairs = &self.survey().pairs[round.pairs.clone()];
        let of_call = |call: usize| self.draft.size(call).0.min(self.least_of_call(call));
        let calls: u64 = pairs.iter().filter_map(|pair| pair.call).map(of_call).sum();
        let results: u64 = pairs
            .iter()
            .filter_map(|pair| pair.result)
            .map(|result| self.draft.size(result).0.min(MASK_TOKENS))
            .sum();
        calls + results
    }

    /// Returns what a call takes when its large strings are marks only.
    fn least_of_call(&self, call: usize) -> u64 {
        let size = self.survey().sizes[call].0;
        let Some(of) = self.survey().entries[call].as_call() else { return size };
        let text = of.input.text();
        let large =
            fill::large_strings(of).map_or(0, |strings| strings.iter().map(std::ops::Range::len).sum());
        if large == 0 {
            return size;
        }
        let share = u64::try_from(large * 100 / text.len().max(1)).unwrap_or(100);
        size - size * share / 100 + MASK_TOKENS
    }

    /// Returns the rounds up to `end` that are still shown, in the order in which they go: the oldest first, those
    /// that matter to what is being done last.
    fn order(&self, end: usize) -> Vec<usize> {
        let matters =
            |at: &usize| self.survey().rounds[*at].pairs.clone().any(|pair| self.relations.matters[pair]);
        let (last, mut order): (Vec<usize>, Vec<usize>) =
            (0..end).filter(|at| !self.draft.is_gone(*at)).partition(matters);
        order.extend(last);
        order
    }

    /// Makes old rounds a summary while calls and masks alone would leave too little room for anything else.
    fn summarise_for_room(&mut self) {
        let survey = self.survey();
        let old = self.recent.min(survey.rounds.len().saturating_sub(1));
        let mut shown = self.order(old);
        // The latest round stays, but as it is only if there is room for that.
        let least = |at: usize| {
            let round = &survey.rounds[at];
            if at < self.recent { self.floor(round) } else { self.round_tokens(round).0 }
        };
        let recent: u64 = (old..survey.rounds.len()).map(least).sum();
        let mut floor: u64 = shown.iter().map(|at| self.floor(&survey.rounds[*at])).sum::<u64>() + recent;
        let has_excerpts = self.budget.policy != Policy::Mask;
        let share = if has_excerpts { FLOOR_SHARE } else { FLOOR_SHARE_MASKED };
        let most = self.goal.percent(share).0.max(recent);
        if floor > most && has_excerpts {
            self.put_unheard_first(&mut shown);
        }
        let mut grown = false;
        for at in shown {
            if floor <= most {
                break;
            }
            floor = floor.saturating_sub(self.floor(&survey.rounds[at]));
            self.draft.leave_out(at, &Decision::Summarised);
            grown = true;
        }
        if grown {
            self.summarise();
        }
    }

    /// Puts the rounds first of which no line would be chosen anyway, in the order that they have.
    fn put_unheard_first(&self, rounds: &mut [usize]) {
        let pool = self.pool();
        let room = self.goal.percent(100 - FLOOR_SHARE).0;
        let heard = pool.heard(&pool.select(room), self.survey().pairs.len());
        let stays = |pair: usize| heard[pair] || self.relations.matters[pair];
        rounds.sort_by_key(|at| self.survey().rounds[*at].pairs.clone().any(stays));
    }

    /// Makes further rounds a summary, from the oldest on, while something is in excess; the latest always stays.
    fn summarise_while(&mut self, excess: impl Fn(&Draft<'_>) -> Tokens) {
        let order = self.order(self.survey().rounds.len().saturating_sub(1));
        let mut next = order.into_iter();
        loop {
            let over = excess(self.draft);
            let mut freed = Tokens(0);
            while freed < over {
                let Some(at) = next.next() else { break };
                let round = &self.survey().rounds[at];
                let before = self.whole_round_tokens(round);
                self.draft.leave_out(at, &Decision::Summarised);
                freed += before.less(self.whole_round_tokens(round));
            }
            if freed == Tokens(0) {
                return;
            }
            self.summarise();
        }
    }

    /// Returns what is left out, by pairs.
    fn gone(&self) -> Gone {
        let pairs = &self.survey().pairs;
        let (mut gone, mut ends) = (Gone::default(), None);
        for (at, pair) in pairs.iter().enumerate() {
            match pair.call.and_then(|call| self.draft.decision(call)) {
                Some(Decision::Summarised) => gone.summarised.push(at),
                Some(Decision::Dropped) => gone.repeated += 1,
                _ => continue,
            }
            let (first, _) = ends.unwrap_or((at, at));
            ends = Some((first, at));
        }
        let range = ends.filter(|_| self.draft.recall);
        gone.range =
            range.map(|(first, last)| HandleRange { first: pairs[first].handle, last: pairs[last].handle });
        gone
    }

    /// Writes the summary of all rounds that are left out, unless the one that there is tells of all of them: only
    /// with the room it would tell them in other words, and the prompt's prefix would change for nothing.
    fn summarise(&mut self) {
        let gone = self.gone();
        // What later rounds show anew needs no words where it cannot be had back.
        let is_silent = gone.summarised.is_empty() && gone.range.is_none();
        if is_silent || gone.pairs() == self.told {
            return;
        }
        self.told = gone.pairs();
        let tokens = self.goal.percent(SUMMARY_SHARE).0.min(SUMMARY_TOKENS_MAX);
        let chars = usize::try_from(tokens * CHARS_PER_TOKEN).unwrap_or(usize::MAX);
        let mut text = digest::digest(self.survey(), &gone, chars);
        // The words of a model stay; the digest of everything follows them.
        if let Some(told) = self.draft.span.as_ref().filter(|span| !span.text.starts_with(digest::HEADING)) {
            let words = told.text.split(digest::HEADING).next().unwrap_or_default();
            text = format!("{}\n{text}", words.trim_end());
        }
        self.draft.set_span(text);
    }

    /// Writes the summary anew for the room that there is now, if that makes it smaller.
    fn shorten_summary(&mut self) {
        let before = self.draft.span.clone();
        let size = self.draft.total();
        self.told = 0;
        self.summarise();
        if self.draft.total() > size {
            self.draft.span = before;
        }
    }

    /// Masks results, from the oldest on.
    fn mask(&mut self) {
        let survey = self.survey();
        let mut over = self.draft.tool_tokens().less(self.goal);
        for at in (0..self.recent).filter(|at| !self.draft.is_gone(*at)).collect::<Vec<_>>() {
            for pair in &survey.pairs[survey.rounds[at].pairs.clone()] {
                let Some(result) = pair.result.filter(|_| over > Tokens(0)) else { continue };
                let before = self.draft.size(result);
                self.draft.shorten(result, pair.handle, Decision::Masked, false);
                over = over.less(before.less(self.draft.size(result)));
            }
        }
    }

    /// Lets everything old compete for the room.
    fn excerpt(&mut self) {
        let pool = self.pool();
        let start = self.draft.taken.clone();
        // With nothing chosen, the rest is what is left to choose from.
        pool.decide(self.draft, &pool.select(0), &self.relations.stale);
        let mut room = self.goal.less(self.draft.tool_tokens()).0;
        for _ in 0..ROUNDS_OF_FILLING {
            self.draft.taken = start.clone();
            pool.decide(self.draft, &pool.select(room), &self.relations.stale);
            let taken = self.draft.tool_tokens();
            if taken > self.goal {
                room = room.saturating_sub((taken.less(self.goal).0) * 11 / 10 + 1);
            } else if taken < self.goal.percent(97) {
                room += self.goal.less(taken).0 * 9 / 10;
            } else {
                return;
            }
        }
        if self.draft.tool_tokens() > self.goal {
            self.draft.taken = start;
            pool.decide(self.draft, &pool.select(room * 9 / 10), &self.relations.stale);
        }
    }

    /// Gathers the candidates, and what the prompt shows anyway.
    fn pool(&self) -> Pool {
        let survey = self.survey();
        let mut pool = Pool::default();
        for (at, entry) in survey.entries.iter().enumerate() {
            if let Kind::Said(said) = &entry.kind
                && self.draft.decision(at).is_none()
            {
                pool.take_shown(&crate::joined_text(&said.parts), said.role != Role::Assistant);
            }
        }
        let count = self.recent;
        for (at, round) in survey.rounds.iter().enumerate() {
            if self.draft.is_gone(at) {
                continue;
            }
            for pair in round.pairs.clone() {
                let weight = self.weight(pair);
                for entry in survey.pairs[pair].entries() {
                    let small = self.draft.size(entry).0 <= MASK_TOKENS + 12;
                    let is_source = at < count && !small && pool.take_source(self.draft, pair, entry, weight);
                    if !is_source
                        && !matches!(
                            self.draft.decision(entry),
                            Some(Decision::Masked | Decision::Cleared | Decision::Superseded { .. })
                        )
                    {
                        let text = match &survey.entries[entry].kind {
                            Kind::Called(call) => call.input.text().clone(),
                            Kind::Returned(returned) => crate::joined_text(&returned.parts),
                            _ => continue,
                        };
                        pool.take_shown(&text, false);
                    }
                }
            }
        }
        pool
    }

    /// Returns by how many hundredths the lines of a pair are worth: what is out of date is worth less.
    fn weight(&self, pair: usize) -> u64 {
        let is_write = self.survey().pairs[pair].usage.kind == ToolKind::Write;
        if self.relations.stale[pair] || is_write { 50 } else { 100 }
    }

    /// Cuts what stayed as it is, the latest round included.
    fn cut_recent(&mut self, limit: Tokens) {
        let over = self.draft.total().less(limit);
        self.goal = self.draft.tool_tokens().less(over);
        self.recent = self.survey().rounds.len();
        self.excerpt();
    }

    /// Leaves out what the model said in rounds that are gone, from the oldest on.
    fn leave_out_words(&mut self, limit: Tokens) {
        let survey = self.survey();
        let mut over = self.draft.total().less(limit);
        for (at, round) in survey.rounds.iter().enumerate() {
            if !self.draft.is_gone(at) {
                continue;
            }
            for word in round
                .words
                .iter()
                .copied()
                .filter(|word| self.draft.decision(*word).is_none())
                .collect::<Vec<_>>()
            {
                if over == Tokens(0) {
                    return;
                }
                over = over.less(self.draft.size(word));
                self.draft.leave_out_entry(word, Decision::Summarised);
            }
        }
    }
}
