//! `throughline config`: write, check and print the configuration.
//!
//! A valid configuration with warnings is valid: they go to standard error, and the exit code is 0. With
//! `--json`, `check` prints what is wrong as well, so that a script need not read sentences.

use crate::args::{Args, ConfigAction};
use crate::configuration::{Question, load, load_to_look};
use crate::exit::CommandError;
use crate::output::{self, Ink, Tone};
use std::path::{Path, PathBuf};
use throughline_gateway::config::{
    BackendsFrom, Config, ConfigError, ConfigErrors, Effective, FILE_NAME, Flags, FoundFile, IgnoredFile,
    Process, Source, TrustRecord, Verdict, Warning, template,
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
    if force && let Err(error) = std::fs::remove_file(&path) {
        // Replaced, not written through: what is there may be a link, or a pipe.
        if error.kind() != std::io::ErrorKind::NotFound {
            return Err(failed(error));
        }
    }
    let text = template(&Process);
    // Keys may stand in it later.
    crate::private::write_new(&path, &text).map_err(failed)?;
    let trusted = trust_written(&path, &text);
    if let Err(why) = &trusted {
        output::remark(&format!("warning: {name} is not trusted, and so not used unless it is named: {why}"));
    }
    if args.json {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("file", &name);
        writer.field_bool("trusted", trusted == Ok(true));
        writer.end_object();
        return print_line(writer);
    }
    let then = match trusted {
        Ok(true) => "written, and trusted as it is; after you change it, `throughline trust` trusts it again",
        _ => "written; `throughline config check` reads it",
    };
    output::print(&format!("{name}: {then}\n"))
}

/// Trusts a file that was just written, if it is one that has to be: what the user had us write is theirs. Says whether
/// it is trusted.
fn trust_written(path: &Path, text: &str) -> Result<bool, String> {
    if path.file_name().is_none_or(|name| name != FILE_NAME) {
        return Ok(false);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = FoundFile::read(folder, FILE_NAME).map_err(|error| error.to_string())?;
    if found.text != text {
        return Err("it was changed in the meantime".to_owned());
    }
    let record = TrustRecord::of_user(&Process)?;
    record.decide(&found, Verdict::Trusted).map_err(|error| error.to_string())?;
    Ok(true)
}

fn check(args: &Args) -> Result<(), CommandError> {
    let loaded = load(&flags(args), Question::Left);
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
    let config = load_to_look(&flags(args), Question::Left).map_err(|errors| bad_config(&errors))?;
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
    match &config.ignored {
        Some(IgnoredFile { path, why }) => {
            writer.key("ignored");
            writer.begin_object();
            writer.field_str("file", &path.to_string_lossy());
            writer.field_str("reason", &why.to_string());
            writer.end_object();
        }
        None => writer.field_null("ignored"),
    }
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
