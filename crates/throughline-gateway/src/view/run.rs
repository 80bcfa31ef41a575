//! Runs as JSON: what they were given, what they did, and what came of replaying them.

use super::json::{moment, optional, write_cost, write_usage};
use super::{Run, cost_of, iso};
use crate::config::Config;
use crate::retelling::answering;
use crate::turn::replay::{Difference, Replayed, Tape};
use throughline_core::Text;
use throughline_store::{Heading, Moment};
use throughline_wire::json::Writer;

/// What the record tells of a run besides its exchanges: its task, and the notes behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The first words of its task.
    pub task: Option<String>,
    /// How it ended, as JSON; nothing as long as it has not.
    pub ended: Option<Text>,
    /// What came of each replay that is kept, as JSON, with its moment.
    pub replays: Vec<(Moment, Text)>,
}

/// Writes a run of a list.
pub fn write_run(writer: &mut Writer, heading: &Heading, run: &Run, told: &Told, config: &Config) {
    writer.begin_object();
    write_run_fields(writer, heading, run, told, config);
    writer.end_object();
}

/// Writes a run with all that is to be seen of it.
pub fn write_run_whole(
    writer: &mut Writer,
    heading: &Heading,
    (run, tape): (&Run, &Tape),
    told: &Told,
    config: &Config,
) {
    writer.begin_object();
    write_run_fields(writer, heading, run, told, config);
    writer.field_raw("begun", tape.begun());
    writer.key("steps");
    writer.begin_array();
    for (number, (exchange, recording)) in (run.first..).zip(&tape.exchanges) {
        writer.begin_object();
        writer.field_uint("number", number);
        writer.field_str("exchange", exchange.id.as_str());
        writer.field_str("started", &iso(exchange.started));
        moment(writer, "ended", exchange.ended);
        optional(writer, "ending", exchange.ending.as_deref());
        let answered = answering(exchange);
        optional(writer, "backend", answered.map(|attempt| &*attempt.backend));
        optional(writer, "model", answered.and_then(|attempt| attempt.model.as_deref()));
        writer.field_uint("attempts", exchange.attempts.len() as u64);
        write_usage(writer, "usage", exchange.usage);
        write_cost(writer, cost_of(config, exchange));
        writer.field_uint("frames", recording.events.len() as u64);
        writer.key("calls");
        writer.begin_array();
        Tape::calls_of(recording).for_each(|call| writer.raw(call));
        writer.end_array();
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
}

fn write_run_fields(writer: &mut Writer, heading: &Heading, run: &Run, told: &Told, config: &Config) {
    writer.field_str("run", &run.id);
    writer.field_str("conversation", heading.id.as_str());
    optional(writer, "title", told.task.as_deref().or(heading.title.as_deref()));
    writer.field_str("started", &iso(run.started));
    moment(writer, "ended", run.ended);
    optional(writer, "ending", run.ending.as_deref());
    writer.field_uint("first", run.first);
    writer.field_uint("exchanges", run.exchanges);
    writer.key("backends");
    writer.begin_array();
    run.used.backends().into_iter().for_each(|backend| writer.string(backend));
    writer.end_array();
    write_usage(writer, "usage", run.used.total());
    write_cost(writer, run.used.cost(config));
    writer.key("end");
    match &told.ended {
        Some(ended) => writer.raw(ended),
        None => writer.null(),
    }
    writer.key("replays");
    writer.begin_array();
    for (at, verdict) in &told.replays {
        writer.begin_object();
        writer.field_str("at", &iso(*at));
        writer.field_raw("verdict", verdict);
        writer.end_object();
    }
    writer.end_array();
}

/// Writes what came of a replay; `whole` with the bodies of requests that differ.
pub fn write_replayed(writer: &mut Writer, tape: &Tape, replayed: &Replayed, whole: bool) {
    writer.begin_object();
    writer.field_str("run", &tape.turn);
    writer.field_str("conversation", tape.conversation.as_str());
    write_verdict(writer, replayed, usize::MAX, whole);
    writer.end_object();
}

/// Writes the fields of a verdict, with so many of the differences.
pub(crate) fn write_verdict(writer: &mut Writer, replayed: &Replayed, differences_max: usize, whole: bool) {
    writer.field_bool("identical", replayed.differences.is_empty());
    writer.field_bool("finished", replayed.is_finished);
    writer.field_uint("requests", replayed.requests as u64);
    writer.field_uint("provider_events", replayed.events as u64);
    writer.field_uint("tool_calls", replayed.calls as u64);
    writer.key("differences");
    writer.begin_array();
    for difference in replayed.differences.iter().take(differences_max) {
        write_difference(writer, difference, whole);
    }
    writer.end_array();
}

fn write_difference(writer: &mut Writer, difference: &Difference, whole: bool) {
    writer.begin_object();
    match difference.request {
        Some(request) => writer.field_uint("request", request as u64),
        None => writer.field_null("request"),
    }
    writer.field_str("what", difference.place.words());
    writer.field_str("path", &difference.path);
    writer.field_str("recorded", &difference.recorded);
    writer.field_str("replayed", &difference.replayed);
    if let Some(bodies) = difference.bodies.as_ref().filter(|_| whole) {
        writer.field_str("recorded_body", &bodies.recorded);
        writer.field_str("replayed_body", &bodies.replayed);
    }
    writer.end_object();
}
