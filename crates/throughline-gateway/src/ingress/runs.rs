//! Runs over HTTP: which there are, what each did, and whether it still does the same.
//!
//! A replay asks nobody and touches nothing but the record, to which its verdict is added: a note beside the run,
//! so that whoever looks later sees when it was replayed and what came of it.

use super::Ingress;
use super::api_answer::{Parameters, array, bad, listed, paging, respond, unread};
use crate::failure::gateway_error;
use crate::gateway::now;
use crate::switch::By;
use crate::turn;
use crate::turn::replay::{self, ReplayError, RunNotes, Tape};
use crate::view::Run;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use std::cmp::Reverse;
use throughline_core::{Failure, FailureKind};
use throughline_store::{
    Batch, Conversations, Entries, Heading, History, Paging, StoreError, Which, title_of,
};
use throughline_wire::json::Writer;

/// So many conversations are looked through for one page of runs, in so many goes.
const LOOKED_THROUGH: u32 = 50;
const GOES_MAX: u32 = 4;

/// Lists runs, those of the latest conversations first.
pub async fn list(State(ingress): State<Ingress>, Query(parameters): Parameters) -> Response {
    let answer = async {
        let Paging { after, limit } = paging(&parameters)?;
        let mut found = Vec::new();
        let mut next = after;
        for _ in 0..GOES_MAX {
            let which = Conversations::All(Paging { after: next, limit: LOOKED_THROUGH });
            let page = ingress.gateway.history.conversations(which).await.map_err(|error| unread(&error))?;
            for heading in page.items {
                let runs = runs_of(&ingress, &heading).await.map_err(|error| unread(&error))?;
                found.extend(runs.into_iter().map(|(run, told)| (heading.clone(), run, told)));
            }
            next = page.next;
            if next.is_none() || found.len() >= limit as usize {
                break;
            }
        }
        found.sort_by_key(|(_, run, _)| Reverse(run.started));
        let setup = ingress.gateway.setup();
        let mut writer = Writer::new();
        writer.begin_object();
        array(&mut writer, "runs", &found, |writer, (heading, run, told)| {
            turn::write_run(writer, heading, run, told, &setup.config);
        });
        match next {
            Some(next) => writer.field_str("next", &next.0),
            None => writer.field_null("next"),
        }
        writer.end_object();
        Ok(writer)
    };
    respond(answer.await)
}

/// Shows one run with its steps.
pub async fn one(State(ingress): State<Ingress>, Path(id): Path<String>) -> Response {
    let answer = async {
        let tape = tape(&ingress, &id).await?;
        let heading = listed(&ingress, tape.conversation.as_str()).await?.heading;
        let runs = runs_of(&ingress, &heading).await.map_err(|error| unread(&error))?;
        let (run, told) = runs.into_iter().find(|(run, _)| run.id == tape.turn).ok_or_else(|| no_run(&id))?;
        let mut writer = Writer::new();
        let setup = ingress.gateway.setup();
        turn::write_run_whole(&mut writer, &heading, (&run, &tape), &told, &setup.config);
        Ok(writer)
    };
    respond(answer.await)
}

/// Replays a run from the record alone, keeps the verdict, and answers with it.
///
/// With `settings=current` it is driven under the settings that the gateway has now, instead of those that it had.
pub async fn replayed(
    State(ingress): State<Ingress>,
    Path(id): Path<String>,
    Query(parameters): Parameters,
) -> Response {
    let answer = async {
        // Each drives a whole run as fast as it can: a few of them would leave nothing for those who wait for an answer.
        let _permit = ingress.gateway.replays.try_acquire().map_err(|_| {
            let message = "several runs are being replayed already; try again when one is done";
            gateway_error(FailureKind::Overloaded, "throughline_busy", message)
        })?;
        let tape = tape(&ingress, &id).await?;
        let history = &*ingress.gateway.history;
        let against = match parameters.get("settings").map(String::as_str) {
            None | Some("recorded") => None,
            Some("current") => Some(ingress.gateway.setup().config.clone()),
            Some(_) => return Err(bad("settings", "must be `recorded` or `current`")),
        };
        let is_other = against.is_some();
        let replayed = replay::replay(history, &tape, against).await;
        let replayed = replayed.map_err(|error| unreplayed(&error, &id))?;
        if let Some(note) = tape.verdict(&replayed, By::Http, is_other, now()) {
            history.append(Batch::durable(vec![note])).await.map_err(|error| unread(&error))?;
        }
        let mut writer = Writer::new();
        replay::write_replayed(&mut writer, &tape, &replayed, false);
        Ok(writer)
    };
    respond(answer.await)
}

async fn tape(ingress: &Ingress, id: &str) -> Result<Tape, Failure> {
    if !id.starts_with("run_") {
        return Err(no_run(id));
    }
    let tapes = replay::find(&*ingress.gateway.history, id).await.map_err(|error| unreplayed(&error, id))?;
    tapes.into_iter().next().ok_or_else(|| no_run(id))
}

async fn runs_of(ingress: &Ingress, heading: &Heading) -> Result<Vec<(Run, RunNotes)>, StoreError> {
    let history = &*ingress.gateway.history;
    let tally = ingress.gateway.tallies.of(history, heading).await?;
    let mut runs = Vec::with_capacity(tally.runs.len());
    for run in tally.runs {
        let told = told(history, &run).await?;
        runs.push((run, told));
    }
    Ok(runs)
}

async fn told(history: &dyn History, run: &Run) -> Result<RunNotes, StoreError> {
    let told = replay::run_notes(&history.recording(run.last.clone(), Which::Events).await?);
    let Some(task) = &run.task else { return Ok(told) };
    let kept = history.entries(Entries::One(task.clone())).await?.into_iter().next();
    let task = kept.and_then(|kept| title_of(&[kept.entry])).map(|task| task.to_string());
    Ok(RunNotes { task, ..told })
}

fn no_run(id: &str) -> Failure {
    gateway_error(FailureKind::NotFound, "throughline_no_such_run", format!("no run is called `{id}`"))
}

fn unreplayed(error: &ReplayError, id: &str) -> Failure {
    match error {
        ReplayError::NoSuchTurn(_) => no_run(id),
        ReplayError::Store(error) => unread(error),
        error => gateway_error(FailureKind::InvalidRequest, "throughline_not_replayable", error.to_string()),
    }
}
