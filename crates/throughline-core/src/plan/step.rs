//! A large step: from the gentlest measure to the last resort, down to the goal.
//!
//! Superseded rounds go first. Then what is old competes for the room that is left: excerpts of results and of
//! large arguments. What gets nothing of a round that is shown is masked, and rounds that get nothing become a summary. The
//! latest rounds stay as they are for as long as they fit.
//!
//! What stands before the step's *place* keeps its bytes; everything behind it is decided anew.

use super::decision::{Decision, Span, Taken};
use super::digest::{self, Gone};
use super::draft::Draft;
use super::fill::{self, Candidate, Pool};
use super::superseded::Relations;
use super::survey::{Pair, Round, Survey};
use super::{Budget, HandleRange, Policy, Tokens, ToolKind};
use crate::{Kind, Role, joined_text};
use std::collections::BTreeMap;
use std::ops::Range;

/// How many of the latest calls stay whole where no number is set, as long as they fit into their share.
const RECENT_CALLS: usize = 6;
/// How much of the room the latest rounds take verbatim, in hundredths, however many they are.
const RECENT_SHARE: u64 = 20;
/// How much they may take up to the number of calls that are to be kept.
const RECENT_SHARE_MAX: u64 = 35;
/// How much of what the calls that are to be kept leave is filled, in hundredths.
const LEFT_TO_OLD: u64 = 40;
/// How much of the room is left to calls that are to be kept and alone exceed it.
const RECENT_SHARE_EXCEEDED: u64 = 80;
/// By how many hundredths the lines of such calls are worth more than those of older ones.
const RECENT_WEIGHT: u64 = 400;
/// What a masked result takes.
const MASK_TOKENS: u64 = 14;
/// How much of the goal a summary may take, in hundredths, and how much at most.
const SUMMARY_SHARE: u64 = 10;
const SUMMARY_TOKENS_MAX: u64 = 600;
/// How many characters of a digest make a token, roughly.
const CHARS_PER_TOKEN: u64 = 3;
/// How often the room is corrected by what the selection really took.
const ROUNDS_OF_FILLING: usize = 6;
/// What may be left of the goal, in hundredths, when nothing is corrected any more.
const FILLED_ENOUGH: u64 = 98;
/// How much of the prompt talk may take, in hundredths, and down to how much it goes if it takes more.
const TALK_SHARE_MAX: u64 = 45;
const TALK_SHARE: u64 = 30;
/// How many of the latest rounds keep their words when old talk goes.
const TALK_ROUNDS_KEPT: usize = 4;

/// What a step starts from.
pub(super) struct Setting<'s> {
    pub budget: &'s Budget,
    pub relations: &'s Relations,
    /// What calls and results are to take.
    pub goal: Tokens,
    /// What they may take at most.
    pub most: Tokens,
    /// What of that are results which the model has not seen yet: they stay for as long as they fit.
    pub unseen: Tokens,
    /// The first entry that is decided about; all before it stays as it is.
    pub place: usize,
    /// The words of a model about what was left out before.
    pub words: Option<&'s str>,
}

pub(super) struct Step<'d, 'a> {
    pub draft: &'d mut Draft<'a>,
    setting: Setting<'d>,
    goal: Tokens,
    /// The first of the rounds that are decided about.
    first: usize,
    /// The first of the rounds that stay as they are.
    recent: usize,
    /// Latest results above this size are cut all the same.
    cap: u64,
    /// The first of the rounds that hold calls which are to be kept: none of them is left out.
    kept: usize,
    /// How many pairs the summary tells of as it stands.
    told: usize,
    start: Start,
}

/// What a draft was before the step.
#[derive(Clone)]
struct Start {
    taken: BTreeMap<usize, Taken>,
    span: Option<Span>,
    told: usize,
}

impl<'d, 'a> Step<'d, 'a> {
    pub fn new(draft: &'d mut Draft<'a>, setting: Setting<'d>) -> Self {
        let survey = draft.survey;
        let first = survey.rounds.partition_point(|round| round.start(survey) < setting.place);
        let goal = setting.goal;
        let start = Start { taken: draft.taken.clone(), span: draft.span.clone(), told: 0 };
        let recent = survey.rounds.len();
        let mut step =
            Self { draft, setting, goal, first, recent, cap: u64::MAX, kept: recent, told: 0, start };
        step.told = if step.draft.span.is_some() { step.gone().pairs() } else { 0 };
        step.start.told = step.told;
        step.find_recent();
        step
    }

    /// Frees as much as the goal demands; says whether that was possible.
    pub fn run(&mut self) -> bool {
        self.leave_out_superseded();
        if self.draft.cuttable_tokens() > self.goal {
            match self.setting.budget.policy {
                Policy::Mask => {
                    self.mask();
                    let goal = self.goal;
                    self.summarise_while(|draft| draft.tool_tokens().less(goal));
                }
                _ => self.excerpt(),
            }
        }
        self.draft.cuttable_tokens() <= self.goal
    }

    /// Frees more, beyond the goal, until the whole prompt fits; says whether it does.
    ///
    /// Once over the limit it goes down to `target`, or the next request would be over it again.
    pub fn squeeze(&mut self, limit: Tokens, target: Tokens) -> bool {
        let fits = |draft: &Draft<'_>| draft.total() <= limit;
        if fits(self.draft) {
            return true;
        }
        self.draft.is_pressed = true;
        self.cut_recent(target);
        if !fits(self.draft) {
            self.summarise_while(|draft| draft.total().less(target));
        }
        if !fits(self.draft) {
            self.shorten_summary();
        }
        if !fits(self.draft) {
            self.leave_out_talk(target, 0);
        }
        if !fits(self.draft) {
            self.shorten_messages(target);
        }
        fits(self.draft)
    }

    /// Leaves out what the model said, the oldest first, while talk takes more of the prompt than its share.
    pub fn limit_talk(draft: &mut Draft<'a>, room: Tokens, fills: bool) {
        let survey = draft.survey;
        let is_talk =
            |at: &usize| survey.entries[*at].as_said().is_some_and(|said| said.role == Role::Assistant);
        let talk: Tokens = (0..survey.entries.len()).filter(is_talk).map(|at| draft.size(at)).sum();
        if talk <= room.percent(TALK_SHARE_MAX) {
            return;
        }
        let share = if fills { TALK_SHARE_MAX } else { TALK_SHARE };
        let mut over = talk.less(room.percent(share));
        for at in old_talk(survey, TALK_ROUNDS_KEPT) {
            if over == Tokens(0) {
                return;
            }
            if draft.decision(at).is_none() {
                over = over.less(draft.size(at));
                draft.leave_out_entry(at, Decision::Summarised);
            }
        }
    }

    fn survey(&self) -> &'a Survey<'a> {
        self.draft.survey
    }

    fn round_tokens(&self, round: &Round) -> Tokens {
        let pairs = &self.survey().pairs[round.pairs.clone()];
        pairs.iter().flat_map(Pair::entries).map(|entry| self.draft.size(entry)).sum()
    }

    fn whole_round_tokens(&self, round: &Round) -> Tokens {
        let thoughts = round.thoughts.iter().map(|entry| self.draft.size(*entry)).sum();
        self.round_tokens(round) + thoughts
    }

    /// Says whether rounds may become a summary: not if the summary that there is stands before the place.
    fn may_summarise(&self) -> bool {
        self.setting.place == 0
    }

    /// Finds the first round that stays as it is.
    fn find_recent(&mut self) {
        self.recent = match self.setting.budget.recent_calls_to_keep {
            Some(calls) => {
                self.kept = self.find_kept(calls);
                self.kept
            }
            None => self.find_recent_by_share(),
        }
        .max(self.first);
    }

    /// Finds the first of so many calls that stay whole; if they alone exceed what is allowed, the largest are cut.
    fn find_kept(&mut self, calls: usize) -> usize {
        let rounds = &self.survey().rounds;
        let mut at = rounds.len();
        let mut count = 0;
        while count < calls && at > 0 {
            at -= 1;
            count += rounds[at].pairs.len();
        }
        let kept: Tokens = rounds[at..].iter().map(|round| self.round_tokens(round)).sum();
        let most = self.setting.most;
        if kept <= most {
            self.goal = self.goal.max(kept + most.less(kept).percent(LEFT_TO_OLD)).min(most);
        } else {
            self.goal = most;
            let room = most.less(self.setting.unseen).percent(RECENT_SHARE_EXCEEDED);
            self.cap = self.find_cap(at..self.first_unseen(), room);
        }
        at
    }

    /// Returns the first round whose results the model has not seen yet.
    fn first_unseen(&self) -> usize {
        self.survey().rounds.len() - usize::from(self.setting.unseen > Tokens(0))
    }

    /// Finds the size down to which the latest results are cut, the largest first, so that they fit into `room`.
    fn find_cap(&self, kept: Range<usize>, room: Tokens) -> u64 {
        let survey = self.survey();
        let rounds = survey.rounds.get(kept).unwrap_or_default();
        let pairs = rounds.iter().flat_map(|round| &survey.pairs[round.pairs.clone()]);
        let mut sizes: Vec<u64> = pairs.flat_map(Pair::entries).map(|at| self.draft.size(at).0).collect();
        sizes.sort_unstable();
        let mut left = room.0;
        for (at, size) in sizes.iter().enumerate() {
            let others = u64::try_from(sizes.len() - at).unwrap_or(u64::MAX);
            if size.saturating_mul(others) > left {
                return left / others.max(1);
            }
            left -= size;
        }
        u64::MAX
    }

    fn find_recent_by_share(&self) -> usize {
        let rounds = &self.survey().rounds;
        let (mut calls, mut tokens) = (0, Tokens(0));
        let room = self.goal.less(self.setting.unseen);
        let mut spared = self.setting.unseen;
        for (at, round) in rounds.iter().enumerate().rev() {
            let of_round = self.round_tokens(round);
            tokens += of_round.less(spared);
            spared = spared.less(of_round);
            let by_number = calls < RECENT_CALLS && tokens <= room.percent(RECENT_SHARE_MAX);
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
        for at in self.first..self.recent.min(survey.rounds.len()) {
            if self.draft.is_gone(at) {
                continue;
            }
            let round = &survey.rounds[at];
            let by = |pair: usize| self.setting.relations.by[pair];
            if self.may_summarise() && !round.is_pinned && round.pairs.clone().all(|pair| by(pair).is_some())
            {
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
            .map(|result| self.draft.size(result).0.min(self.least_of_result()))
            .sum();
        calls + results
    }

    fn least_of_result(&self) -> u64 {
        MASK_TOKENS + self.draft.around_entry()
    }

    /// Returns what a call takes when its large strings are marks only.
    fn least_of_call(&self, call: usize) -> u64 {
        let size = self.survey().sizes[call].0;
        let Some(of) = self.survey().entries[call].as_call() else { return size };
        let large = fill::cuttable_bytes(of);
        if large == 0 {
            return size;
        }
        let share = u64::try_from(large * 100 / of.input.text().len().max(1)).unwrap_or(100);
        size - size * share / 100 + MASK_TOKENS
    }

    /// Returns the rounds up to `end` that are still shown, in the order in which they go: the oldest first, those
    /// that matter to what is being done last.
    fn order(&self, end: usize) -> Vec<usize> {
        let matters = |at: &usize| {
            self.survey().rounds[*at].pairs.clone().any(|pair| self.setting.relations.matters[pair])
        };
        let (last, mut order): (Vec<usize>, Vec<usize>) =
            (0..end).filter(|at| !self.draft.is_gone(*at)).partition(matters);
        order.extend(last);
        order
    }

    /// Makes further rounds a summary, from the oldest on, while something is in excess; the latest always stays.
    fn summarise_while(&mut self, excess: impl Fn(&Draft<'_>) -> Tokens) {
        if !self.may_summarise() {
            return;
        }
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
        if let Some(words) = self.setting.words {
            text = format!("{}\n{text}", words.trim_end());
        }
        self.draft.set_span(text);
    }

    /// Writes the summary anew for the room that there is now, if that makes it smaller.
    fn shorten_summary(&mut self) {
        let before = self.draft.span.clone();
        let size = self.draft.total();
        self.told = 0;
        self.goal = Tokens(0);
        self.summarise();
        if self.draft.total() > size {
            self.draft.span = before;
        }
    }

    /// Masks results, from the oldest on.
    fn mask(&mut self) {
        let survey = self.survey();
        let mut over = self.draft.tool_tokens().less(self.goal);
        for at in (self.first..self.recent).filter(|at| !self.draft.is_gone(*at)).collect::<Vec<_>>() {
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
        let start = self.state();
        let mut room = self.goal.0;
        let mut best: Option<(Tokens, Start)> = None;
        for round in 0..ROUNDS_OF_FILLING {
            self.restore(&start);
            // With nothing chosen, the rest is what is left to choose from.
            self.show_selected(&pool, if round == 0 { 0 } else { room });
            let taken = self.draft.cuttable_tokens();
            if round == 0 {
                room = self.goal.less(taken).0;
                best = Some((taken, self.state()));
                continue;
            }
            let is_better = |(before, _): &(Tokens, Start)| *before > self.goal || *before < taken;
            if taken <= self.goal && best.as_ref().is_none_or(is_better) {
                best = Some((taken, self.state()));
            }
            if taken > self.goal {
                room = room.saturating_sub(taken.less(self.goal).0 * 11 / 10 + 1);
            } else if taken < self.goal.percent(FILLED_ENOUGH) {
                room += self.goal.less(taken).0 * 9 / 10;
            } else {
                break;
            }
        }
        if let Some((_, best)) = best {
            self.restore(&best);
        }
    }

    /// Shows what the pool selects for so much room, and makes the rounds a summary that get nothing.
    fn show_selected(&mut self, pool: &Pool, room: u64) {
        let selection = pool.select(room);
        for (round, is_shown) in selection.rounds.iter().enumerate() {
            if !is_shown && !self.draft.is_gone(round) {
                self.draft.leave_out(round, &Decision::Summarised);
            }
        }
        self.summarise();
        pool.decide(self.draft, &selection, &self.setting.relations.stale);
    }

    fn state(&self) -> Start {
        Start { taken: self.draft.taken.clone(), span: self.draft.span.clone(), told: self.told }
    }

    fn restore(&mut self, state: &Start) {
        self.draft.taken.clone_from(&state.taken);
        self.draft.span.clone_from(&state.span);
        self.told = state.told;
    }

    /// Gathers the candidates, and what the prompt shows anyway.
    pub fn pool(&self) -> Pool {
        let survey = self.survey();
        let mut pool = Pool::new(survey.rounds.len());
        for (at, entry) in survey.entries.iter().enumerate() {
            let Kind::Said(said) = &entry.kind else { continue };
            let is_message = survey.pasted.contains(&at) && at >= self.setting.place;
            let is_source =
                is_message && self.draft.decision(at).is_none() && pool.take_message(self.draft, at);
            if !is_source && self.draft.decision(at).is_none() {
                pool.take_shown(&joined_text(&said.parts), said.role != Role::Assistant);
            }
        }
        for (at, round) in survey.rounds.iter().enumerate() {
            if !self.draft.is_gone(at) {
                self.take_round(&mut pool, at, round);
            }
        }
        pool
    }

    fn take_round(&self, pool: &mut Pool, at: usize, round: &Round) {
        let survey = self.survey();
        let is_recent = at >= self.recent;
        let is_old = at >= self.first && !is_recent;
        let mut head = String::new();
        for pair in round.pairs.clone() {
            let of = &survey.pairs[pair];
            for entry in of.entries() {
                let size = self.draft.size(entry).0;
                let is_large = size > self.least_of_result() + 12;
                let is_capped = is_recent && at >= self.first && at < self.first_unseen() && size > self.cap;
                let is_candidate = is_old && is_large || is_capped;
                let is_kept = is_recent || at >= self.kept;
                let weight = if is_kept { RECENT_WEIGHT } else { self.weight(pair) };
                let quota = if is_kept && self.cap < u64::MAX { self.cap } else { 0 };
                let candidate = Candidate { entry, pair, round: at, weight, quota, failed: of.failed };
                let is_source = is_candidate && pool.take_source(self.draft, candidate);
                let is_call = survey.entries[entry].as_call().is_some();
                if is_old && (!is_source || is_call) {
                    head.push_str(&self.shown_text(entry, is_source));
                    head.push('\n');
                } else if !is_source {
                    pool.take_shown(&self.shown_text(entry, false), false);
                }
            }
        }
        let is_latest = at + 1 == survey.rounds.len();
        let is_spared = is_latest || at >= self.kept || round.is_pinned;
        let may_go = is_old && !is_spared && self.may_summarise();
        if may_go {
            let matters = round.pairs.clone().any(|pair| self.setting.relations.matters[pair]);
            pool.take_head(at, self.floor(round), &head, matters);
        } else if is_old {
            pool.take_shown(&head, false);
        }
    }

    /// Returns what is shown of a call or a result; of a call that is cut, what stays in any case.
    fn shown_text(&self, entry: usize, is_cut: bool) -> String {
        let text = match &self.survey().entries[entry].kind {
            Kind::Called(call) if is_cut => return fill::fixed_text(call),
            Kind::Called(call) => call.input.text().clone(),
            Kind::Returned(returned) => joined_text(&returned.parts),
            _ => return String::new(),
        };
        match self.draft.decision(entry) {
            None => text.to_string(),
            Some(Decision::Excerpt(ranges)) => {
                let piece = |range: &Range<u32>| text.get(range.start as usize..range.end as usize);
                ranges.iter().filter_map(piece).collect::<Vec<_>>().join("\n")
            }
            Some(_) => String::new(),
        }
    }

    /// Returns by how many hundredths the lines of a pair are worth: those of a file that is being edited are worth more
    /// than others, what was written less than what was found.
    fn weight(&self, pair: usize) -> u64 {
        let is_write = self.survey().pairs[pair].usage.kind == ToolKind::Write;
        if self.setting.relations.replaced[pair] {
            if is_write { 20 } else { 40 }
        } else if self.setting.relations.under_edit[pair] {
            200
        } else if is_write {
            50
        } else {
            100
        }
    }

    /// Cuts what stayed as it is, the latest round included.
    fn cut_recent(&mut self, target: Tokens) {
        let over = self.draft.total().less(target);
        let goal = self.draft.cuttable_tokens().less(over);
        let start = self.start.clone();
        self.restore(&start);
        self.goal = goal;
        self.recent = self.survey().rounds.len();
        if self.kept < self.recent {
            self.cap = self.find_cap(self.kept..self.recent, goal.percent(RECENT_SHARE_EXCEEDED));
        }
        self.leave_out_superseded();
        if self.setting.budget.policy == Policy::Mask {
            self.mask();
        } else {
            self.excerpt();
        }
    }

    /// Leaves out what the model said, from the oldest on; so many of the latest rounds keep their words.
    fn leave_out_talk(&mut self, target: Tokens, rounds_kept: usize) {
        let mut over = self.draft.total().less(target);
        for at in old_talk(self.survey(), rounds_kept) {
            if over == Tokens(0) {
                return;
            }
            if self.draft.decision(at).is_none() {
                over = over.less(self.draft.size(at));
                self.draft.leave_out_entry(at, Decision::Summarised);
            }
        }
    }

    /// Cuts what the user said before the latest message: first all but the ends of each, then those, too.
    fn shorten_messages(&mut self, target: Tokens) {
        for ends in [fill::MESSAGE_END, 40, 0] {
            for at in self.survey().asked.clone() {
                if self.draft.total() <= target {
                    return;
                }
                let Some(said) = self.survey().entries[at].as_said() else { continue };
                let decision = fill::ends_of(&joined_text(&said.parts), ends);
                let handle = self.draft.handle(at);
                self.draft.shorten(at, handle, decision, false);
            }
        }
    }
}

/// Returns what the model said, the oldest first, but for the words of so many of the latest rounds.
fn old_talk(survey: &Survey<'_>, rounds_kept: usize) -> Vec<usize> {
    let old = survey.rounds.len().saturating_sub(rounds_kept.max(1));
    let mut talk: Vec<usize> =
        survey.rounds[..old].iter().flat_map(|round| round.words.iter().copied()).collect();
    let end = survey.rounds.get(old).map_or(survey.entries.len(), |round| round.start(survey));
    talk.extend(survey.talk.iter().copied().filter(|at| *at < end));
    talk.sort_unstable();
    talk
}
