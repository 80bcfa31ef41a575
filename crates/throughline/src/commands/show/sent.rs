//! The exchanges of a conversation: what each backend was sent, to the byte, and what was changed for it.

use crate::exit::CommandError;
use crate::output::{self, Ink, json_lines};
use throughline_core::ConversationId;
use throughline_gateway::view;
use throughline_store::{Attempt, DocumentKind, Exchange, History, PlanSizes, Recording, Which};
use throughline_wire::json::{Document, Node};

/// How many bytes of bodies are shown at most; of more than that, the latest.
const BODY_BYTES_MAX: usize = 4 << 20;

/// Shows all exchanges, the earliest first. Of the bodies no more is shown than fits on a few screens of a program.
pub async fn shown(
    history: &dyn History,
    id: &ConversationId,
    json: bool,
    ink: &Ink,
) -> Result<String, CommandError> {
    let exchanges = view::exchanges(history, id).await?;
    let mut texts = Vec::with_capacity(exchanges.len());
    let mut room = BODY_BYTES_MAX;
    for (at, exchange) in exchanges.iter().enumerate().rev() {
        let mut recording = history.recording(exchange.id.clone(), Which::Reports).await?;
        if room > 0 {
            let sent = history.recording(exchange.id.clone(), Which::Sent).await?.sent;
            let bytes: usize = sent.iter().map(|(_, body)| body.len()).sum();
            // The latest one is shown whatever its size.
            if bytes <= room || at + 1 == exchanges.len() {
                recording.sent = sent;
            }
            room = room.saturating_sub(bytes);
        }
        texts.push(text(at + 1, exchange, &recording, json, ink));
    }
    texts.reverse();
    Ok(texts.concat())
}

/// Shows one exchange, counted from 1; from the last one backwards, if the number is negative.
pub async fn one(
    history: &dyn History,
    id: &ConversationId,
    number: i64,
    json: bool,
    ink: &Ink,
) -> Result<String, CommandError> {
    let exchanges = view::exchanges(history, id).await?;
    let count = i64::try_from(exchanges.len()).unwrap_or(i64::MAX);
    let place = if number < 0 { count + number } else { number - 1 };
    let at = usize::try_from(place).ok().filter(|at| *at < exchanges.len());
    let Some(at) = at else {
        let there = output::counted(exchanges.len() as u64, "exchange", "exchanges");
        return Err(CommandError::no(format!(
            "--exchange: the conversation has {there}, and no number {number}"
        )));
    };
    let exchange = &exchanges[at];
    let mut recording = history.recording(exchange.id.clone(), Which::Reports).await?;
    recording.sent = history.recording(exchange.id.clone(), Which::Sent).await?.sent;
    Ok(text(at + 1, exchange, &recording, json, ink))
}

fn text(number: usize, exchange: &Exchange, recording: &Recording, json: bool, ink: &Ink) -> String {
    if json {
        let write = |writer: &mut _, each: &Exchange| view::write_exchange(writer, each, recording);
        return json_lines(std::slice::from_ref(exchange), write);
    }
    exchange_shown(number, exchange, recording, ink)
}

fn exchange_shown(number: usize, exchange: &Exchange, recording: &Recording, ink: &Ink) -> String {
    let title = ink.bold(&format!("exchange {number}"));
    let started = output::seconds(exchange.started);
    let asked = exchange.asked_model.as_deref().unwrap_or("no model");
    let client = exchange.client.as_deref().unwrap_or("unnamed client");
    let ending = exchange.ending.as_deref().unwrap_or("under way");
    let facts = format!("{}  {started}  {} asked for {asked} by {client}", exchange.id, exchange.dialect);
    let mut text = format!("{title}  {ending}  {}\n", ink.dim(&ink.tame(&facts)));
    if let Some(failure) = view::failure_of(exchange) {
        text.push_str(&format!("  {}\n", ink.bad(&ink.tame(&format!("✗ {}", failure.line())))));
    }
    for (at, attempt) in (0_u32..).zip(&exchange.attempts) {
        text.push_str(&attempt_shown(at, attempt, recording, ink));
        if recording.document(at, DocumentKind::Sent).is_none() {
            let hint = format!("  (the body is not shown; --exchange {number} shows it if it was kept)\n");
            text.push_str(&ink.dim(&hint));
        }
    }
    text.push('\n');
    text
}

fn attempt_shown(at: u32, attempt: &Attempt, recording: &Recording, ink: &Ink) -> String {
    let number = at + 1;
    let name = ink.bold(&attempt.backend);
    let model = ink.tame(attempt.model.as_deref().unwrap_or("no model"));
    let strategy = attempt.strategy.as_deref().unwrap_or("no strategy");
    let came_of = match (&attempt.failure, attempt.status) {
        (Some(failure), _) => ink.bad(&ink.tame(failure)),
        (None, Some(status)) => status.to_string(),
        (None, None) => "no answer yet".to_owned(),
    };
    let took = attempt.ended.map(|ended| format!(" in {} ms", ended.0 - attempt.started.0));
    let state = if attempt.continues.is_some() { " state=provider" } else { "" };
    let mut text = format!(
        "  attempt {number}  {name}  {} {model}  {strategy}{state}  {came_of}{}\n",
        attempt.dialect,
        took.unwrap_or_default()
    );
    if let Some(report) = recording.document(at, DocumentKind::Report) {
        text.push_str(&changes_shown(attempt, &String::from_utf8_lossy(report), ink));
    }
    if let Some(body) = recording.document(at, DocumentKind::Sent) {
        text.push_str(&format!("{}\n", ink.tame(&String::from_utf8_lossy(body))));
    }
    text
}

/// Shows the changes of a report, which the record keeps as JSON.
fn changes_shown(attempt: &Attempt, report: &str, ink: &Ink) -> String {
    let Ok(document) = Document::parse(report) else { return format!("    {}\n", ink.tame(report)) };
    let plan = attempt.plan.map_or_else(String::new, |plan| plan_shown(attempt, plan, ink));
    let plan =
        document.root().field("handover").map_or_else(String::new, |each| handover_shown(each, ink)) + &plan;
    let Some(changes) = document.root().field("changes") else { return plan };
    let change = |change: Node<'_>| {
        let field = |name| change.field(name).and_then(|value| value.as_str()).unwrap_or_default();
        let line = format!("{} {}: {}", field("action"), field("place"), field("reason"));
        format!("    {}\n", ink.tame(&line))
    };
    plan + &changes.items().map(change).collect::<String>()
}

/// Shows who took over with this attempt, why, and what it was given.
fn handover_shown(handover: Node<'_>, ink: &Ink) -> String {
    let text = |name| handover.field(name).and_then(|value| value.as_text()).unwrap_or_default();
    let from = handover.field("from").and_then(|from| from.field("backend")?.as_text());
    let from = from.map_or_else(String::new, |from| format!(" from {from}"));
    let chars = handover.field("brief_chars").and_then(|chars| chars.as_u64());
    let given = match chars {
        Some(chars) => format!("a brief of {chars} characters stands for what came before"),
        None => "natively".to_owned(),
    };
    let line = format!("takes over{from} ({}: {}): {given}", text("by"), text("reason"));
    format!("    {}\n", ink.tame(&line))
}

/// Shows what a plan made of a history that did not fit, and where that was decided.
fn plan_shown(attempt: &Attempt, plan: PlanSizes, ink: &Ink) -> String {
    let step = attempt.compaction.as_ref();
    let since = step.map_or_else(String::new, |step| format!(", as decided in {}", step.exchange));
    let PlanSizes { before, after, .. } = plan;
    format!("    {}\n", ink.tame(&format!("planned: {after} of {before} tokens are shown{since}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Dialect;
    use throughline_store::Moment;

    #[test]
    fn what_a_backend_keeps_itself_is_said_beside_the_strategy() {
        let shown = |continues: Option<&str>| {
            let attempt = Attempt {
                model: Some("m".into()),
                strategy: Some("native".into()),
                ended: Some(Moment(3)),
                status: Some(200),
                continues: continues.map(Into::into),
                ..Attempt::begun("own".into(), Dialect::Responses, Moment(1))
            };
            attempt_shown(0, &attempt, &Recording::default(), &Ink::of_stdout())
        };
        let line = shown(Some("resp_1"));
        assert!(line.contains("native state=provider  200 in 2 ms"), "{line}");
        assert!(shown(None).contains("native  200 in 2 ms"));
    }
}
