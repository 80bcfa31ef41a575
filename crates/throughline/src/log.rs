//! The log: what is done along the way, on standard error.
//!
//! Somebody at a terminal sees one line for each request, with what it took, what it cost and what it was about; a file
//! or another program gets a JSON object for each event, without words of a conversation. Only what this program says is
//! in it. Libraries know less about what is nobody's business: at the depth of `-vv` some of them print what passes over a
//! connection.

use crate::args::Args;
use crate::output::{self, Ink, json_line};
use std::fmt::Debug;
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use throughline_gateway::gateway::{Gateway, now};
use throughline_gateway::view;
use throughline_store::{Conversations, Exchange, ExchangeId, Exchanges};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// What the names of all our targets begin with.
const OURS: &str = "throughline";

/// What the gateway says when an exchange is over.
const EXCHANGE: &str = "exchange";

/// Where the events of exchanges go that are shown with what the record knows of them.
static EXCHANGES: OnceLock<UnboundedSender<Logged>> = OnceLock::new();

/// Lets the log go to standard error, at the level that was asked for, or at the usual one of the command.
pub fn begin(args: &Args, usual: Option<Level>) {
    let Some(level) = level(args, usual) else { return };
    let lines = Lines { is_for_people: std::io::stderr().is_terminal() };
    let targets = Targets::new().with_target(OURS, level);
    tracing_subscriber::registry().with(targets).with(lines).init();
    tracing::debug!(version = env!("CARGO_PKG_VERSION"), "throughline");
}

/// Shows exchanges with their title and their cost from now on, to somebody at a terminal.
pub fn follow_exchanges(gateway: Arc<Gateway>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let (sender, mut receiver) = unbounded_channel::<Logged>();
    if EXCHANGES.set(sender).is_err() {
        return;
    }
    tokio::spawn(async move {
        while let Some(logged) = receiver.recv().await {
            let known = recorded(&gateway, &logged).await.unwrap_or_default();
            output::remark(&exchange_line(&logged, &known, &Ink::of_stderr()));
        }
    });
}

fn level(args: &Args, usual: Option<Level>) -> Option<Level> {
    match args.verbose {
        0 if args.quiet => usual.map(|_| Level::ERROR),
        0 => usual,
        1 => Some(Level::DEBUG),
        _ => Some(Level::TRACE),
    }
}

/// Writes a line for each event.
struct Lines {
    is_for_people: bool,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut logged = Logged { level: *metadata.level(), target: metadata.target(), ..Logged::new() };
        event.record(&mut logged);
        if !self.is_for_people {
            output::remark(json_line(|writer| logged.write(writer)).trim_end());
            return;
        }
        let is_exchange = logged.message == EXCHANGE && logged.level == Level::INFO;
        if !is_exchange {
            output::remark(&logged.line(&Ink::of_stderr()));
            return;
        }
        // What the record knows is read elsewhere: whoever logs does not wait for that.
        match EXCHANGES.get() {
            Some(sender) => drop(sender.send(logged)),
            None => output::remark(&exchange_line(&logged, &Recorded::default(), &Ink::of_stderr())),
        }
    }
}

/// An event, with its fields in their order.
#[derive(Debug)]
struct Logged {
    at: String,
    level: Level,
    target: &'static str,
    message: String,
    fields: Vec<(&'static str, Value)>,
}

/// The value of a field.
#[derive(Debug)]
enum Value {
    Number(String),
    Text(String),
}

impl Logged {
    fn new() -> Self {
        Self {
            at: view::iso(now()),
            level: Level::INFO,
            target: OURS,
            message: String::new(),
            fields: Vec::new(),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| match value {
            Value::Number(text) | Value::Text(text) => text.as_str(),
        })
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    fn push(&mut self, field: &Field, value: Value) {
        self.fields.push((field.name(), value));
    }

    fn write(&self, writer: &mut throughline_wire::json::Writer) {
        writer.begin_object();
        writer.field_str("at", &self.at);
        writer.field_str("level", &self.level.to_string().to_lowercase());
        writer.field_str("target", self.target);
        writer.field_str("message", &self.message);
        for (name, value) in &self.fields {
            match value {
                Value::Number(text) => writer.field_raw(name, text),
                Value::Text(text) => writer.field_str(name, text),
            }
        }
        writer.end_object();
    }

    /// Returns it as somebody reads it.
    fn line(&self, ink: &Ink) -> String {
        let label = match self.level {
            Level::ERROR => ink.bad("error"),
            Level::WARN => ink.warn("warning"),
            Level::INFO => ink.dim("·"),
            _ => ink.dim(&self.level.to_string().to_lowercase()),
        };
        let mut line = format!("{} {label} {}", ink.dim(self.clock()), ink.tame(&self.message));
        for (name, value) in &self.fields {
            let (Value::Number(text) | Value::Text(text)) = value;
            line.push_str(&format!(
                " {}{}",
                ink.dim(&format!("{name}=")),
                ink.tame(&text.replace('\n', " "))
            ));
        }
        line
    }

    /// Returns the time of day.
    fn clock(&self) -> &str {
        self.at.get(11..19).unwrap_or(&self.at)
    }
}

impl Visit for Logged {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            _ => self.push(field, Value::Text(value.to_owned())),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, Value::Number(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, Value::Number(value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, Value::Number(value.to_string()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            _ => self.push(field, Value::Text(text)),
        }
    }
}

/// What the record knows of an exchange, besides what was logged.
#[derive(Debug, Default)]
struct Recorded {
    title: Option<String>,
    cost: Option<f64>,
}

async fn recorded(gateway: &Gateway, logged: &Logged) -> Option<Recorded> {
    let id = ExchangeId::new(logged.text("request")?);
    let found = gateway.history.exchanges(Exchanges::One(id)).await.ok()?;
    let exchange: Exchange = found.items.into_iter().next()?;
    let which = Conversations::One(exchange.conversation.clone());
    let heading = gateway.history.conversations(which).await.ok()?.items.into_iter().next();
    Some(Recorded {
        title: heading.and_then(|heading| heading.title).map(|title| title.to_string()),
        cost: view::cost_of(&gateway.setup().config, &exchange),
    })
}

/// Returns the line about a request: when, how it went, who answered, what it took, what it was about.
fn exchange_line(logged: &Logged, known: &Recorded, ink: &Ink) -> String {
    let clock = ink.dim(logged.clock());
    let backend = ink.tame(logged.text("backend").unwrap_or("none")).into_owned();
    let took = output::lasted(i64::try_from(logged.number("took_ms")).unwrap_or(i64::MAX));
    if let Some(failure) = logged.text("failure") {
        return format!("{clock} {}", ink.bad(&ink.tame(&format!("✗ {backend}  {took}  {failure}"))));
    }

    let (input, cached) = (logged.number("input_tokens"), logged.number("cached_tokens"));
    let share = match (input, cached) {
        (1.., 1..) => format!(" ({} %)", cached.saturating_mul(100) / input),
        _ => String::new(),
    };
    let (input, output) = (output::count(input), output::count(logged.number("output_tokens")));
    let cost = known.cost.map(|cost| format!(" {}", output::money(cost))).unwrap_or_default();
    let head = format!("{backend} {input}{share} → {output}  {took}{cost}");
    let title = known.title.as_deref().map(|title| ink.tame(title).into_owned()).unwrap_or_default();
    let room = ink.width().map_or(usize::MAX, |width| width.saturating_sub(head.chars().count() + 13));
    let title = if room < 8 { String::new() } else { format!("  {}", output::cut(&title, room)) };
    format!("{clock} {} {head}{}", ink.good("✓"), ink.dim(title.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use throughline_store::Moment;

    #[test]
    fn the_level_is_the_usual_one_unless_it_is_asked_for() {
        let all = [
            ("ls", None, None),
            ("ls -v", None, Some(Level::DEBUG)),
            ("-vv ls", None, Some(Level::TRACE)),
            ("ls -q", None, None),
            ("serve", Some(Level::INFO), Some(Level::INFO)),
            ("serve -q", Some(Level::INFO), Some(Level::ERROR)),
            ("serve --verbose", Some(Level::INFO), Some(Level::DEBUG)),
        ];
        for (typed, usual, wanted) in all {
            let words = std::iter::once("throughline").chain(typed.split(' '));
            assert_eq!(level(&Args::parse_from(words), usual), wanted, "{typed}");
        }
        assert!(Args::try_parse_from(["throughline", "-q", "-v", "ls"]).is_err());
    }

    fn logged(fields: &[(&'static str, &str)]) -> Logged {
        let value = |text: &str| match text.parse::<u64>() {
            Ok(_) => Value::Number(text.to_owned()),
            Err(_) => Value::Text(text.to_owned()),
        };
        Logged {
            at: "2026-11-18T14:54:08.120Z".to_owned(),
            message: EXCHANGE.to_owned(),
            fields: fields.iter().map(|(name, text)| (*name, value(text))).collect(),
            ..Logged::new()
        }
    }

    #[test]
    fn a_request_is_one_line_that_fits_the_terminal() {
        let answered = logged(&[
            ("backend", "claude"),
            ("input_tokens", "29000"),
            ("cached_tokens", "26800"),
            ("output_tokens", "430"),
            ("took_ms", "1400"),
        ]);
        let known = Recorded { title: Some("Fix the flaky test of the oven".to_owned()), cost: Some(0.0104) };
        let line = |width| exchange_line(&answered, &known, &Ink::of_width(width, Moment(0)));
        assert_eq!(
            line(120),
            "14:54:08 ✓ claude 29k (92 %) → 430  1.4 s $0.010  Fix the flaky test of the oven"
        );
        assert_eq!(line(64), "14:54:08 ✓ claude 29k (92 %) → 430  1.4 s $0.010  Fix the flaky…");
        let unrecorded = exchange_line(&answered, &Recorded::default(), &Ink::of_width(120, Moment(0)));
        assert_eq!(unrecorded, "14:54:08 ✓ claude 29k (92 %) → 430  1.4 s");
    }

    #[test]
    fn a_failure_says_why_in_the_log() {
        let failed = logged(&[
            ("backend", "claude"),
            ("took_ms", "40"),
            ("failure", "request failed at claude, 400: prompt is too long"),
        ]);
        assert_eq!(
            exchange_line(&failed, &Recorded::default(), &Ink::of_width(40, Moment(0))),
            "14:54:08 ✗ claude  40 ms  request failed at claude, 400: prompt is too long"
        );
        let json = json_line(|writer| failed.write(writer));
        assert!(
            json.starts_with(r#"{"at":"2026-11-18T14:54:08.120Z","level":"info","target":"throughline","#)
        );
        assert!(json.contains(r#""took_ms":40,"failure":"request failed at claude, 400"#), "{json}");
    }
}
