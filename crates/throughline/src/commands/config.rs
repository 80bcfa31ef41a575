//! `throughline config`: write, check and print the configuration.
//!
//! A valid configuration with warnings is valid: they go to standard error, and the exit code is 0. With
//! `--json`, `check` prints what is wrong as well, so that a script need not read sentences.

use crate::args::{Args, ConfigAction};
use crate::exit::CommandError;
use crate::output::{self, Ink, Tone};
use std::io::Write;
use std::path::PathBuf;
use throughline_gateway::config::{
    BackendsFrom, Config, ConfigError, ConfigErrors, Effective, FILE_NAME, Flags, Process, Source, Warning,
    load, load_to_look, template,
};
use throughline_wire::json::Writer;

/// Runs what was asked for; without a word, prints the configuration.
pub fn run(action: Option<&ConfigAction>, args: &Args) -> Result<(), CommandError> {
    match action {
        Some(ConfigAction::Init { force }) => init(args, *force),
        Some(ConfigAction::Check) => check(args),
        Some(ConfigAction::Show) | None => show(args),
    }
}

/// Returns what the command line says about the configuration.
fn flags(args: &Args) -> Flags {
    Flags { config: args.config.clone(), data: args.data.clone(), listen: None }
}

fn init(args: &Args, force: bool) -> Result<(), CommandError> {
    let path = args.config.clone().unwrap_or_else(|| PathBuf::from(FILE_NAME));
    let name = path.display().to_string();
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AlreadyExists => {
            CommandError::bad_input(format!("{name}: there is one already")).hint("--force replaces it")
        }
        _ => CommandError::file(&name, source),
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    let options = if force { options.create(true).truncate(true) } else { options.create_new(true) };
    let text = template(&Process);
    options.open(&path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
    if args.json {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("file", &name);
        writer.end_object();
        return print_line(writer);
    }
    output::print(&format!("{name}: written; `throughline config check` reads it\n"))
}

fn check(args: &Args) -> Result<(), CommandError> {
    let loaded = load(&Process, &flags(args));
    if args.json {
        print_line(checked(&loaded))?;
    }
    let config = loaded.map_err(|errors| bad_config(&errors))?;
    remark_on_warnings(&config, args);
    if args.json {
        return Ok(());
    }
    let file = config.file.as_ref().map_or("no file".to_owned(), |file| file.display().to_string());
    let names: Vec<&str> = config.backends.iter().map(|backend| &*backend.name).collect();
    output::print(&format!("{file}: valid; backends: {}; active: {}\n", names.join(", "), &*config.active))
}

fn show(args: &Args) -> Result<(), CommandError> {
    let config = load_to_look(&Process, &flags(args)).map_err(|errors| bad_config(&errors))?;
    remark_on_warnings(&config, args);
    if args.json {
        return print_line(shown(&config));
    }
    let width = |text: fn(&Effective) -> usize| config.effective.iter().map(text).max().unwrap_or(0);
    let key = width(|value| value.key.chars().count());
    // A long value should not push the sources of all others out of sight.
    let value = width(|value| value.value.chars().count()).min(48);
    let ink = Ink::of_stdout();
    let line = |each: &Effective| {
        let source = format!("# {}", each.source);
        // What somebody chose stands out from what nobody did.
        let tone = if each.source == Source::Default { Tone::Dim } else { Tone::Plain };
        let line = format!("{:key$} = {:value$}", each.key, each.value);
        format!("{}  {}\n", ink.toned(tone, &line), ink.dim(&source))
    };
    output::page(&config.effective.iter().map(line).collect::<String>(), args)
}

pub(super) fn bad_config(errors: &ConfigErrors) -> CommandError {
    CommandError::bad_input(errors.to_string())
}

fn remark_on_warnings(config: &Config, args: &Args) {
    if args.quiet {
        return;
    }
    if config.backends_from == BackendsFrom::Nobody {
        output::remark(
            "no backend is configured and no provider's key is set: the simulated backend answers",
        );
    }
    if !args.json {
        config.warnings.iter().for_each(|warning| output::remark(&format!("warning: {warning}")));
        config.absent.iter().for_each(|absent| output::remark(&format!("warning: {absent}")));
    }
}

fn checked(loaded: &Result<Config, ConfigErrors>) -> Writer {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_bool("valid", loaded.is_ok());
    match loaded {
        Ok(config) => {
            write_file(&mut writer, config);
            writer.field_str("active", &config.active);
            writer.key("backends");
            writer.begin_array();
            config.backends.iter().for_each(|backend| writer.string(&backend.name));
            writer.end_array();
            write_warnings(&mut writer, &config.warnings);
        }
        Err(errors) => {
            writer.key("errors");
            writer.begin_array();
            errors.0.iter().for_each(|error| write_error(&mut writer, error));
            writer.end_array();
        }
    }
    writer.end_object();
    writer
}

fn shown(config: &Config) -> Writer {
    let mut writer = Writer::new();
    writer.begin_object();
    write_file(&mut writer, config);
    writer.key("values");
    writer.begin_array();
    for each in &config.effective {
        writer.begin_object();
        writer.field_str("key", &each.key);
        writer.field_str("value", &each.value);
        writer.field_str("source", &each.source.to_string());
        writer.end_object();
    }
    writer.end_array();
    write_warnings(&mut writer, &config.warnings);
    writer.key("absent");
    writer.begin_array();
    config.absent.iter().for_each(|absent| write_error(&mut writer, absent));
    writer.end_array();
    writer.end_object();
    writer
}

fn write_file(writer: &mut Writer, config: &Config) {
    match &config.file {
        Some(file) => writer.field_str("file", &file.display().to_string()),
        None => writer.field_null("file"),
    }
    writer.field_bool("simulated", config.backends_from == BackendsFrom::Nobody);
}

fn write_warnings(writer: &mut Writer, warnings: &[Warning]) {
    writer.key("warnings");
    writer.begin_array();
    for warning in warnings {
        writer.begin_object();
        writer.field_str("key", &warning.key);
        writer.field_str("source", &warning.source.to_string());
        writer.field_str("message", &warning.what);
        writer.end_object();
    }
    writer.end_array();
}

fn write_error(writer: &mut Writer, error: &ConfigError) {
    writer.begin_object();
    writer.field_str("key", &error.key);
    writer.field_str("source", &error.source.to_string());
    writer.field_str("message", &error.what);
    if let Some(hint) = &error.hint {
        writer.field_str("hint", hint);
    }
    writer.end_object();
}

fn print_line(writer: Writer) -> Result<(), CommandError> {
    output::print(&format!("{}\n", writer.into_string()))
}
