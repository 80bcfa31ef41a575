//! Attempts: who is asked, in which form, and what is tried next, until somebody answers or nobody is left.
//!
//! What is tried is decided by [`Attempts`], without knowing how; here it is done. As long as the client has not seen a
//! byte, the same request may be sent again, in another form, or to another backend.

use super::Running;
use super::answer_stream::AnswerStream;
use super::failures::backend_failed;
use super::healing;
use super::open::{self, Opened};
use super::prompting::BRIEF;
use crate::capability::{self, Ability, Attempts, Decision, Evidence, Form, Learned, Leg, Lesson};
use crate::capability::{Failed, Rejection, Repairs, RetryPolicy, Step, Verdict};
use crate::gateway::now;
use crate::routing::Destination;
use crate::verdicts;
use throughline_core::{Failure, Kind, Text};
use throughline_store::{Batch, Moment, Standing, Write};

impl Running {
    /// Has one of the destinations answer.
    pub(super) async fn seek(&mut self) -> Result<Opened, Failure> {
        let attempts = self.attempts();
        Box::pin(self.pursue(attempts, 0, None)).await
    }

    /// Makes attempts until one answers or none is left; their legs are the destinations from `first` on.
    pub(super) async fn pursue(
        &mut self,
        mut attempts: Attempts<Failure>,
        first: usize,
        mut resumed: Option<&mut AnswerStream>,
    ) -> Result<Opened, Failure> {
        let mut opened: Option<Opened> = None;
        while let Some(step) = attempts.next_step() {
            match step {
                Step::Send { leg, form, after, .. } => {
                    if self.gateway.waits {
                        tokio::time::sleep(after).await;
                    }
                    match self.open((first + leg, form), resumed.as_deref_mut()).await {
                        Ok(answer) => {
                            if answer.prompted.report.strategy == BRIEF && !answer.prompted.shows_tools {
                                attempts.handle_no_tool_history();
                            }
                            opened = Some(answer);
                            attempts.handle_answer();
                        }
                        Err(open::Unopened::Backend(failed, failure)) => {
                            self.note_window(first + leg, failed).await;
                            attempts.handle_failure(failed, failure);
                        }
                        Err(open::Unopened::Own(failure)) => return Err(failure),
                    }
                }
                Step::Answer { leg, lessons } => {
                    let healed = opened.as_ref().map(|opened| opened.sent.1.repairs).unwrap_or_default();
                    self.keep_repairs(first + leg, healed).await;
                    let of_all = |lesson: Lesson| Lesson { leg: first + lesson.leg, ..lesson };
                    self.learn(&lessons.into_iter().map(of_all).collect::<Vec<_>>()).await;
                    break;
                }
                Step::Fail(failure) => return Err(failure),
            }
        }
        opened.ok_or_else(|| backend_failed("no backend answered"))
    }

    fn attempts(&self) -> Attempts<Failure> {
        self.attempts_at(self.legs())
    }

    /// Returns the attempts at the rest of a turn: where the answer so far came from, and then those that would
    /// have stood in for it.
    pub(super) fn attempts_from(&self, (leg, form): (usize, Form)) -> Attempts<Failure> {
        let mut legs = self.legs().split_off(leg);
        legs.iter_mut().take(1).for_each(|leg| leg.form = form);
        self.attempts_at(legs)
    }

    fn legs(&self) -> Vec<Leg> {
        let standing = self.gateway.standing();
        let at = now();
        let leg = |destination: &Destination| {
            let native = decision(&standing, destination, Ability::NativeToolHistory, at);
            let state = decision(&standing, destination, Ability::ServerState, at);
            let age = self.footing.as_ref().and_then(|footing| footing.age_at(destination, at));
            // Embedded text retells the whole history, so there is nothing to go on from.
            let age = age.filter(|_| native.verdict() != Some(Verdict::No));
            let mut leg = Leg::new(&native, &state, age);
            leg.form.repairs =
                healing::repairs(&standing, &self.placed.conversation, &destination.backend.name);
            leg
        };
        self.destinations.iter().map(leg).collect()
    }

    fn attempts_at(&self, legs: Vec<Leg>) -> Attempts<Failure> {
        let is_tool = |kind: &Kind| matches!(kind, Kind::Called(_) | Kind::Returned(_));
        let has_tool_history =
            self.reading.has_calls_besides() || self.placed.history.iter().any(|entry| is_tool(&entry.kind));
        // Any number will do that differs from one exchange to the next.
        let seed = self.stamp.id.bytes().fold(0_u64, |seed, byte| seed.rotate_left(5) ^ u64::from(byte));
        Attempts::new(legs, has_tool_history, RetryPolicy::default(), seed)
    }

    /// Takes note of a window that a backend names when it refuses a prompt: what is sent again fits into it, and so
    /// does what is sent later.
    async fn note_window(&mut self, leg: usize, failed: Failed) {
        let Failed::Status { rejection: Some(Rejection::TooLong { window }), .. } = failed else { return };
        let destination = &mut self.destinations[leg];
        destination.window.refused = Some(window);
        let write = verdicts::keep_window(
            &destination.backend.name,
            &destination.model,
            window,
            Evidence::Tried,
            now(),
        );
        self.remember(vec![write]).await;
    }

    /// Remembers which repairs helped, for the rest of the conversation.
    async fn keep_repairs(&self, leg: usize, repairs: Repairs) {
        let backend = &self.destinations[leg].backend.name;
        let conversation = &self.placed.conversation;
        let known = healing::repairs(&self.gateway.standing(), conversation, backend);
        if !repairs.lasting().is_empty() && repairs.lasting() != known {
            self.remember(vec![healing::keep(conversation, backend, repairs.lasting(), now())]).await;
        }
    }

    /// Remembers what the attempts have shown, for the next request and for other gateways.
    async fn learn(&self, lessons: &[Lesson]) {
        let at = now();
        let learned = |lesson: &Lesson| {
            let destination = &self.destinations[lesson.leg];
            let Lesson { ability, verdict, words, .. } = *lesson;
            tracing::info!(
                backend = destination.backend.name.as_str(),
                ability = ability.name(),
                verdict = verdict.name(),
                words,
                "learned"
            );
            let learned = Learned::new(ability, verdict, Evidence::Tried, Text::from_static(words), at.0);
            verdicts::keep(&destination.backend.name, destination.model.clone(), &learned)
        };
        self.remember(lessons.iter().map(learned).collect()).await;
    }

    /// Writes verdicts, and has them in effect. That it fails is no reason to fail a request.
    pub(super) async fn remember(&self, verdicts: Vec<Write>) {
        if verdicts.is_empty() {
            return;
        }
        let written = self.gateway.history.append(Batch::relaxed(verdicts)).await;
        let refreshed = match written {
            Ok(_) => self.gateway.refresh().await,
            Err(error) => Err(error),
        };
        if let Err(error) = refreshed {
            tracing::warn!(%error, "what was learned was not remembered");
        }
    }
}

/// Decides about an ability of a destination: about its model, or else about all models of its backend.
pub fn decision(standing: &Standing, destination: &Destination, ability: Ability, at: Moment) -> Decision {
    let backend = &destination.backend;
    let flag = match ability {
        Ability::NativeToolHistory => backend.native_tool_history,
        Ability::ServerState => backend.server_state,
    };
    let about = |model: &str| verdicts::find(standing, &backend.name, model, ability);
    let kept = about(&destination.model).or_else(|| about(""));
    let learned = kept.and_then(verdicts::recall);
    capability::decide(flag, learned.as_ref(), at.0)
}
