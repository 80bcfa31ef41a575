//! Runs as JSON: what they were given, what they did, and what came of replaying them.

use super::replay::{RunNotes, Tape};
use crate::async_summary::answering;
use crate::config::Config;
use crate::view::{Run, cost_of, iso, moment_or_null, optional, write_cost, write_usage};
use throughline_store::Heading;
use throughline_wire::json::Writer;

/// Writes a run of a list.
pub fn write_run(writer: &mut Writer, heading: &Heading, run: &Run, notes: &RunNotes, config: &Config) {
    writer.begin_object();
    write_run_fields(writer, heading, run, notes, config);
    writer.end_object();
}

/// Writes a run with all that is to be seen of it.
pub fn write_run_whole(
    writer: &mut Writer,
    heading: &Heading,
    (run, tape): (&Run, &Tape),
    notes: &RunNotes,
    config: &Config,
) {
    writer.begin_object();
    write_run_fields(writer, heading, run, notes, config);
    writer.field_raw("begun", tape.begun());
    writer.key("steps");
    writer.begin_array();
    for (number, (exchange, recording)) in (run.first..).zip(&tape.exchanges) {
        writer.begin_object();
        writer.field_uint("number", number);
        writer.field_str("exchange", exchange.id.as_str());
        writer.field_str("started", &iso(exchange.started));
        moment_or_null(writer, "ended", exchange.ended);
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

fn write_run_fields(writer: &mut Writer, heading: &Heading, run: &Run, notes: &RunNotes, config: &Config) {
    writer.field_str("run", &run.id);
    writer.field_str("conversation", heading.id.as_str());
    optional(writer, "title", notes.task.as_deref().or(heading.title.as_deref()));
    writer.field_str("started", &iso(run.started));
    moment_or_null(writer, "ended", run.ended);
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
    match &notes.ended {
        Some(ended) => writer.raw(ended),
        None => writer.null(),
    }
    writer.key("replays");
    writer.begin_array();
    for (at, verdict) in &notes.replays {
        writer.begin_object();
        writer.field_str("at", &iso(*at));
        writer.field_raw("verdict", verdict);
        writer.end_object();
    }
    writer.end_array();
}
