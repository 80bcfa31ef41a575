//! `throughline doctor`: whether everything is in order, and what to do where it is not.
//!
//! Looks and changes nothing, with one exception: with `--probe`, what backends say of themselves is
//! remembered, so that a gateway need not find it out by failing.

use super::{history, serve};
use crate::args::Args;
use crate::configuration;
use crate::exit::CommandError;
use crate::output::{self, Ink, Tone, counted};
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_core::Text;
use throughline_gateway::config::{Backend, Config, Credential, Flags, IgnoredFile, StoreLocation};
use throughline_gateway::gateway::{Gateway, now};
use throughline_gateway::probe::{Probe, Reached, probe};
use throughline_gateway::secret::Secret;
use throughline_gateway::verdicts;
use throughline_sim::Sim;
use throughline_store::{Batch, Learned, Memory, Postgres, PostgresOptions, Sqlite, Standing, Write};
use throughline_tools::visible_line;
use throughline_wire::json::Writer;

/// How something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In order.
    Well,
    /// Worth knowing.
    Note,
    /// In order, but probably not meant.
    Doubtful,
    /// Not in order.
    Wrong,
}

/// One thing that was found.
#[derive(Debug)]
struct Finding {
    subject: String,
    state: State,
    what: String,
    /// What to do about it.
    advice: Option<String>,
}

/// Examines everything. Something that is wrong is the answer "no".
pub fn run(is_probing: bool, args: &Args) -> Result<(), CommandError> {
    let findings = examine(is_probing, args)?;
    let wrong = findings.iter().filter(|finding| finding.state == State::Wrong).count();
    if args.json {
        output::print(&format!("{}\n", as_json(&findings, wrong == 0)))?;
    } else {
        let ink = Ink::of_stdout();
        let shown = findings.iter().filter(|finding| !args.quiet || finding.state == State::Wrong);
        output::print(&shown.map(|finding| as_line(finding, &ink)).collect::<String>())?;
    }
    match wrong {
        0 => Ok(()),
        wrong => Err(CommandError::no(counted(wrong as u64, "thing is wrong", "things are wrong"))),
    }
}

fn examine(is_probing: bool, args: &Args) -> Result<Vec<Finding>, CommandError> {
    let flags = Flags { config: args.config.clone(), listen: None, data: args.data.clone() };
    let (loaded, ignored) = configuration::examine(&flags);
    let mut findings: Vec<Finding> = ignored.iter().map(of_ignored).collect();
    let config = match loaded {
        Ok(config) => config,
        Err(errors) => {
            let wrong = |problem: &_| Finding::new("configuration", State::Wrong, format!("{problem}"));
            findings.extend(errors.0.iter().map(wrong));
            return Ok(findings);
        }
    };
    findings.extend(of_configuration(&config));
    let mut standing = standing_of(&config);
    findings.push(of_history(&config, standing.as_ref().err()));
    let mut probes = BTreeMap::new();
    if let (true, Ok(known)) = (is_probing, &standing) {
        probes = asked(&config, known)?;
        standing = standing_of(&config);
    }
    findings.extend(of_commands(&config)?);
    let standing = standing.unwrap_or_default();
    for backend in &config.backends {
        findings.push(of_credentials(backend));
        findings.extend(probes.get(&backend.name).map(|probe| of_probe(backend, probe)));
        findings.extend(of_model(backend, &standing));
        let about = standing.learned.iter().filter(|learned| learned.backend == backend.name);
        findings.extend(about.map(of_learned));
    }
    Ok(findings)
}

fn standing_of(config: &Config) -> Result<Standing, CommandError> {
    let history = history::open_to_read(config)?;
    history::wait(async { Ok(history.standing().await?) })
}

/// Asks every backend, and remembers what they say.
fn asked(config: &Config, standing: &Standing) -> Result<BTreeMap<Text, Probe>, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    let (probes, lessons) = runtime.block_on(ask(config, standing))?;
    if !lessons.is_empty() {
        let history = history::open_to_change(config)?;
        runtime.block_on(history.append(Batch::durable(lessons)))?;
    }
    Ok(probes)
}

async fn ask(
    config: &Config,
    standing: &Standing,
) -> Result<(BTreeMap<Text, Probe>, Vec<Write>), CommandError> {
    let sim = serve::simulated(config).await?;
    let base_url = sim.as_ref().map(Sim::base_url);
    // Only its ways to the backends are used, and those need no history.
    let gateway = Gateway::build(config.clone(), Arc::new(Memory::new()), base_url).await;
    let setup = gateway.map_err(|error| CommandError::bad_input(error.to_string()))?.setup();
    let mut probes = BTreeMap::new();
    let mut lessons = Vec::new();
    for backend in config.backends.iter().filter(|backend| backend.lacks.is_none()) {
        if let Some(egress) = setup.egress.get(&backend.name) {
            let probe = probe(backend, egress).await;
            lessons.extend(probe.lessons(backend, standing, now()));
            lessons.extend(probe.listed(backend, now()));
            lessons.extend(probe.kept_windows(backend, now()));
            probes.insert(backend.name.clone(), probe);
        }
    }
    if let Some(sim) = sim {
        sim.stop().await;
    }
    Ok((probes, lessons))
}

/// Says what is not known of the model that a backend is asked for by default, and what follows from that.
fn of_model(backend: &Backend, standing: &Standing) -> Vec<Finding> {
    let Some(model) = backend.default_model.as_deref().filter(|_| backend.endpoint.url().is_some()) else {
        return Vec::new();
    };
    let facts = backend.model_facts(model);
    let window = verdicts::window(standing, &backend.name, model, now());
    let subject = format!("backend {}", backend.name);
    let mut findings = Vec::new();
    if facts.context_window.is_none() && window.is_none() {
        let what =
            format!("nobody knows how many tokens fit into {model}: nothing is shortened before it refuses");
        let advice = Some("set its context_window, or let `throughline doctor --probe` ask".to_owned());
        findings.push(Finding { advice, ..Finding::new(&subject, State::Note, what) });
    }
    if facts.prices.is_none() {
        let what = format!("nobody knows what {model} costs");
        let advice = Some("set its prices to have costs counted".to_owned());
        findings.push(Finding { advice, ..Finding::new(&subject, State::Note, what) });
    }
    findings
}

fn of_ignored(ignored: &IgnoredFile) -> Finding {
    let what = format!("{}: ignored, since {}", visible_line(&ignored.path.to_string_lossy()), ignored.why);
    let advice = Some(ignored.advice().to_owned());
    Finding { advice, ..Finding::new("configuration", State::Doubtful, what) }
}

fn of_configuration(config: &Config) -> Vec<Finding> {
    let file = config.file.as_ref().map_or("no file".to_owned(), |file| file.display().to_string());
    let what = format!("{file}; active: {}", &*config.active);
    let warned = |warning: &_| Finding::new("configuration", State::Doubtful, format!("{warning}"));
    let missed = |absent: &_| Finding {
        advice: Some(
            "set it where `serve`, `run` and `chat` are started; other commands do without".to_owned(),
        ),
        ..Finding::new("configuration", State::Wrong, format!("{absent}"))
    };
    std::iter::once(Finding::new("configuration", State::Well, what))
        .chain(config.warnings.iter().map(warned))
        .chain(config.absent.iter().map(missed))
        .collect()
}

/// Says what keeps the commands of `run` and `chat` where they belong.
fn of_commands(config: &Config) -> Result<Vec<Finding>, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    let shell = runtime.block_on(super::run::shell(&config.tools))?;
    let confinement = shell.confinement();
    let advice = |what: &str| Some(what.to_owned());
    let landlock = match (&confinement.landlock, shell.refusal()) {
        (_, Some(refusal)) => Finding {
            advice: advice("set tools.confinement to \"best-effort\" to run commands with your own rights"),
            ..Finding::new("commands", State::Wrong, refusal.to_owned())
        },
        (Ok(_), None) => Finding::new("commands", State::Well, confinement.to_string()),
        (Err(_), None) => Finding {
            advice: advice("a kernel with Landlock (Linux 5.13 or later) confines them"),
            ..Finding::new("commands", State::Doubtful, format!("{confinement}; they run with your rights"))
        },
    };
    let mut findings = vec![landlock];
    if confinement.namespaces.is_ok() && !confinement.fresh_proc {
        let what = "a new /proc cannot be mounted, so commands see the names and arguments of all processes";
        findings.push(Finding::new("commands", State::Note, what.to_owned()));
    }
    let network = match (config.tools.network, shell.is_offline()) {
        (true, _) => Finding::new("commands", State::Note, "they may use the network".to_owned()),
        (false, true) => Finding::new("commands", State::Well, "they have no network".to_owned()),
        (false, false) => {
            let what = "they may use the network, since nothing here can keep them from it".to_owned();
            Finding::new("commands", State::Doubtful, what)
        }
    };
    findings.push(network);
    Ok(findings)
}

fn of_history(config: &Config, error: Option<&CommandError>) -> Finding {
    let name = match &config.store.location {
        StoreLocation::Sqlite(file) => file.as_path(),
        StoreLocation::Postgres(url) => return of_postgres(url),
    };
    if let Some(error) = error {
        let what = format!("{}: {error}", name.display());
        let advice = error.advice().map(str::to_owned);
        return Finding { advice, ..Finding::new("history", State::Wrong, what) };
    }
    match std::fs::metadata(name) {
        Ok(metadata) => {
            let (size, format) = (metadata.len().div_ceil(1024), Sqlite::FORMAT);
            let what = format!("{}: opens; format {format}, {size} KiB", name.display());
            Finding::new("history", State::Well, what)
        }
        Err(_) => {
            let what = format!("{}: not there yet; the first start makes it", name.display());
            Finding::new("history", State::Note, what)
        }
    }
}

fn of_postgres(url: &Secret) -> Finding {
    let options = PostgresOptions::default();
    let opened = Postgres::open_as_it_is(url.expose(), options).map_err(CommandError::from);
    let examined = opened.and_then(|opened| {
        let Some(opened) = opened else { return Ok(None) };
        let condition = history::wait(async { Ok(opened.condition().await?) })?;
        Ok(Some((opened.place(), condition)))
    });
    let (place, condition) = match examined {
        Ok(Some(examined)) => examined,
        Ok(None) => {
            let what = "PostgreSQL: no tables yet; the first start makes them".to_owned();
            return Finding::new("history", State::Note, what);
        }
        Err(error) => {
            let advice = error.advice().map(str::to_owned);
            let what = format!("PostgreSQL: {error}");
            return Finding { advice, ..Finding::new("history", State::Wrong, what) };
        }
    };
    let (size, format) = (condition.bytes.div_ceil(1024), Postgres::FORMAT);
    let what = format!("PostgreSQL {} at {place}: opens; format {format}, {size} KiB", condition.server);
    if condition.flushes {
        return Finding::new("history", State::Well, what);
    }
    let lost = "fsync is off there, and what was acknowledged is lost when its machine fails";
    Finding::new("history", State::Wrong, format!("{what}; {lost}"))
}

fn of_credentials(backend: &Backend) -> Finding {
    if let Some(lacks) = &backend.lacks {
        let what = format!("{} at {}, which cannot be asked: {lacks}", backend.dialect, backend.endpoint);
        return Finding::of_backend(backend, State::Doubtful, what);
    }
    let credentials = match backend.credential {
        Credential::Key(_) => "with a key",
        Credential::Passthrough => "with the credentials of each client",
        Credential::None => "without credentials",
    };
    let what = format!("{} at {}, {credentials}", backend.dialect, backend.endpoint);
    Finding::of_backend(backend, State::Well, what)
}

fn of_probe(backend: &Backend, probe: &Probe) -> Finding {
    let advice = probe.advice(&backend.credential);
    let (state, what) = match &probe.reached {
        Reached::Listed(models) => (State::Well, format!("reachable; lists {} models", models.len())),
        Reached::Unlisted => (State::Well, "reachable; it lists no models".to_owned()),
        Reached::Refused { status, message } => {
            let state = if advice.is_some() { State::Wrong } else { State::Note };
            (state, format!("refused with {status}: {message}"))
        }
        Reached::Unreachable(why) => (State::Wrong, format!("not reachable: {why}")),
    };
    Finding { advice: advice.map(str::to_owned), ..Finding::of_backend(backend, state, what) }
}

fn of_learned(learned: &Learned) -> Finding {
    let model = if learned.model.is_empty() { "all models" } else { &learned.model };
    let until = match learned.expires {
        Some(expires) if expires <= now() => "no longer".to_owned(),
        Some(expires) => format!("until {}", output::seconds(expires)),
        None => "for good".to_owned(),
    };
    let (ability, verdict, reason) = (&learned.capability, &learned.verdict, &learned.reason);
    let what = format!("{model}: {ability}: {verdict} ({reason}; {until})");
    Finding::new(format!("backend {}", &*learned.backend), State::Note, what)
}

fn as_line(finding: &Finding, ink: &Ink) -> String {
    // Padded before it is styled: styles are not as wide as they are long.
    let state = format!("{:5}", finding.state.name());
    let state = match finding.state {
        State::Well => ink.good(&state),
        State::Note => ink.dim(&state),
        State::Doubtful => ink.toned(Tone::Warn, &state),
        State::Wrong => ink.bad(&state),
    };
    let advice = finding.advice.as_ref().map(|advice| format!("\n{:7}{}", "", ink.wrapped(advice, 7)));
    let what = ink.wrapped(&format!("{}: {}", finding.subject, finding.what), 7);
    format!("{state}  {what}{}\n", advice.unwrap_or_default())
}

fn as_json(findings: &[Finding], is_well: bool) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_bool("well", is_well);
    writer.key("findings");
    writer.begin_array();
    for finding in findings {
        writer.begin_object();
        writer.field_str("subject", &finding.subject);
        writer.field_str("state", finding.state.name());
        writer.field_str("message", &finding.what);
        if let Some(advice) = &finding.advice {
            writer.field_str("advice", advice);
        }
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    writer.into_string()
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Note => "note",
            Self::Doubtful => "warn",
            Self::Wrong => "wrong",
        }
    }
}

impl Finding {
    fn new(subject: impl Into<String>, state: State, what: String) -> Self {
        Self { subject: subject.into(), state, what, advice: None }
    }

    fn of_backend(backend: &Backend, state: State, what: String) -> Self {
        Self::new(format!("backend {}", &*backend.name), state, what)
    }
}
