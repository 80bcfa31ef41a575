//! `throughline env`: what a client must be told to come through here.
//!
//! Shell variables are printed so that `eval "$(throughline env CLIENT)"` sets them; of a client that reads a
//! file, the part of that file, with its path in a comment. A key is never printed, only the reference that
//! the configuration has for it.

mod clients;
mod edit;
mod install;
mod key;
pub mod launch;
mod mcp;

use super::config::bad_config;
use super::open::reached;
use crate::args::{Args, EnvArgs};
use crate::configuration::{Question, load_to_look};
use crate::exit::CommandError;
use crate::output::{self, Cell, Column, Ink, Table, Tone};
use clients::{CLIENTS, Client, Form, Guide, Value};
use key::Key;
pub use mcp::print as print_mcp;
use throughline_gateway::config::keys::nearest;
use throughline_gateway::config::{Config, Flags};
use throughline_wire::json::Writer;

/// Prints what the client is to be told; without a client, which ones are known.
pub fn run(asked: &EnvArgs, args: &Args) -> Result<(), CommandError> {
    let Some(name) = asked.client.as_deref() else { return list(args.json) };
    let client = find(name)?;
    let flags = Flags { config: args.config.clone(), listen: asked.listen.clone(), data: args.data.clone() };
    let config = load_to_look(&flags, Question::Left).map_err(|errors| bad_config(&errors))?;
    let url = url(&config)?;
    let key = Key::of(&config);
    let gateway = clients::Gateway { url: &url, key: &key, models: models(&config) };
    if asked.install {
        return tell_installed(client, &install::install(client.name, &gateway)?, &key, args);
    }
    if asked.uninstall {
        let changed = install::uninstall(client.name, &gateway)?;
        return tell(client, &changed, "is as it was before", args);
    }
    let guide = (client.guide)(&gateway);
    let text =
        if args.json { as_json(client, &url, &key, &guide) } else { as_text(client, &url, &key, &guide) };
    output::print(&text)
}

fn tell_installed(
    client: &Client,
    changed: &install::Changed,
    key: &Key,
    args: &Args,
) -> Result<(), CommandError> {
    tell(client, changed, "leads through the gateway now", args)?;
    if let (Some(export), false) = (key.export_for_files(), args.quiet) {
        output::remark(&format!("before it is started: {export}"));
    }
    if !args.quiet {
        output::remark(&format!("`throughline env {} --uninstall` takes it out again", client.name));
    }
    Ok(())
}

/// Says what was done to a client's configuration.
fn tell(client: &Client, changed: &install::Changed, what: &str, args: &Args) -> Result<(), CommandError> {
    let backup = changed.backup.as_ref().map(|path| path.display().to_string());
    if args.json {
        return output::print(&output::json_line(|writer| {
            writer.begin_object();
            writer.field_str("client", client.name);
            writer.field_str("file", &changed.path.display().to_string());
            match &backup {
                Some(backup) => writer.field_str("backup", backup),
                None => writer.field_null("backup"),
            }
            writer.end_object();
        }));
    }
    output::print(&format!("{}: {} {what}\n", changed.path.display(), client.title))?;
    if let (Some(backup), false) = (backup, args.quiet) {
        output::remark(&format!("what was there before is in {backup}"));
    }
    Ok(())
}

fn list(json: bool) -> Result<(), CommandError> {
    if json {
        return output::print(&output::json_lines(CLIENTS, |writer, client| {
            writer.begin_object();
            writer.field_str("client", client.name);
            writer.field_str("title", client.title);
            writer.field_str("takes", client.form.as_str());
            writer.end_object();
        }));
    }
    let mut table = Table::new([
        Column::words("CLIENT"),
        Column::words("WHAT IT IS").down_to(12),
        Column::words("IS TOLD BY"),
    ]);
    for client in CLIENTS {
        let name = match client.alias {
            Some(alias) => format!("{}, {alias}", client.name),
            None => client.name.to_owned(),
        };
        table.push([Cell::new(Tone::Bold, name), client.title.into(), client.form.as_str().into()]);
    }
    output::print(&table.shown(&Ink::of_stdout()))
}

/// Returns the clients that are known, each with what it is.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    CLIENTS.iter().map(|client| (client.name, client.title))
}

fn find(name: &str) -> Result<&'static Client, CommandError> {
    let is_it = |client: &&Client| client.name == name || client.alias == Some(name);
    CLIENTS.iter().find(is_it).ok_or_else(|| {
        let names = CLIENTS.iter().flat_map(|client| [Some(client.name), client.alias]).flatten();
        let meant = nearest(name, names).map(|meant| format!("; did you mean `{meant}`?"));
        CommandError::bad_input(format!("no client is called `{name}`{}", meant.unwrap_or_default()))
            .hint("`throughline env` lists those that are known")
    })
}

/// Returns the address of the gateway as a client on this machine reaches it.
fn url(config: &Config) -> Result<String, CommandError> {
    let address = reached(config.listen);
    if address.port() == 0 {
        return Err(CommandError::bad_input("listen: the port is chosen anew with each start".to_owned())
            .hint("give it a port, or say `--listen` with the address that `serve` printed"));
    }
    Ok(format!("http://{address}"))
}

/// Returns the models that are worth naming: that of the active backend first.
fn models(config: &Config) -> Vec<&str> {
    let (active, others): (Vec<_>, Vec<_>) =
        config.backends.iter().partition(|backend| backend.name == config.active);
    let mut models = Vec::new();
    for model in active.iter().chain(&others).filter_map(|backend| backend.default_model.as_deref()) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    if models.is_empty() {
        models.push("default");
    }
    models
}

fn as_text(client: &Client, url: &str, key: &Key, guide: &Guide) -> String {
    let mut text = String::new();
    let mark = guide.file.as_ref().map_or("#", |file| file.comment);
    let comment = |text: &mut String, line: &str| text.push_str(&format!("{mark} {line}\n"));
    comment(&mut text, &format!("{}, through {url}", client.title));
    match &guide.file {
        Some(file) => {
            comment(&mut text, &format!("for {}:", file.path));
            if let Some(export) = key.export_for_files() {
                comment(&mut text, &format!("first, in the shell: {export}"));
            }
            text.push_str(&file.text);
        }
        None => {
            comment(&mut text, &format!("eval \"$(throughline env {})\"", client.name));
            for (name, value) in &guide.variables {
                let value = match value {
                    Value::Text(value) => key::quoted(value),
                    Value::Key => key.in_shell(),
                };
                text.push_str(&format!("export {name}={value}\n"));
            }
            if matches!(key, Key::Own) {
                comment(&mut text, "the backend is shown your own key: leave that as it is");
            }
        }
    }
    comment(&mut text, &format!("then: {}", guide.then));
    text
}

fn as_json(client: &Client, url: &str, key: &Key, guide: &Guide) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("client", client.name);
    writer.field_str("url", url);
    writer.key("key");
    write_key(&mut writer, key);
    writer.key("variables");
    writer.begin_object();
    for (name, value) in &guide.variables {
        writer.key(name);
        match value {
            Value::Text(value) => writer.string(value),
            Value::Key => write_key(&mut writer, key),
        }
    }
    writer.end_object();
    match &guide.file {
        Some(file) => {
            writer.key("file");
            writer.begin_object();
            writer.field_str("path", file.path);
            writer.field_str("text", &file.text);
            writer.end_object();
        }
        None => writer.field_null("file"),
    }
    writer.field_str("then", &guide.then);
    writer.end_object();
    writer.into_string() + "\n"
}

/// Writes the key where anything will do, and otherwise where it comes from.
fn write_key(writer: &mut Writer, key: &Key) {
    match key {
        Key::Any => writer.string(key::PLACEHOLDER),
        _ => {
            writer.begin_object();
            writer.field_str("from", &key.origin());
            writer.end_object();
        }
    }
}

impl Form {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Variables => "variables",
            Self::File => "a file",
        }
    }
}
