//! `throughline store`: check, count, copy and move the history.

use super::{history, prune};
use crate::args::{Args, StoreAction};
use crate::exit::CommandError;
use crate::output::{self, Bar, Cell, Column, Ink, Table, Tone, Unit, bytes, counted, json_line};
use crate::private::Scratch;
use std::path::Path;
use std::sync::Arc;
use throughline_gateway::config::{StoreLocation, Surroundings};
use throughline_gateway::secret::{Secret, SecretRef};
use throughline_store::{
    Checkup, Finding, Inventory, Moment, Postgres, Remedy, Sqlite, Stats, StoreError, Upkeep, Volume, Watch,
    copy,
};
use throughline_wire::json::Writer;

/// How many findings are printed.
const FINDINGS_SHOWN: usize = 50;

/// Looks after the history.
pub fn run(action: &StoreAction, args: &Args) -> Result<(), CommandError> {
    match action {
        StoreAction::Check => check(args),
        StoreAction::Stats => stats(args),
        StoreAction::Backup { file } => back_up(file, args),
        StoreAction::Migrate { to, from } => migrate(to, from.as_deref(), args),
        StoreAction::Prune(asked) => prune::run(asked, args),
        StoreAction::Upgrade => upgrade(args),
        StoreAction::Reindex => reindex(args),
    }
}

/// Brings the history to the schema of this version.
fn upgrade(args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let location = &config.store.location;
    let found = match history::as_it_is(location) {
        Err(StoreError::Older { found, .. }) => {
            drop(history::open_at(location)?);
            Some(found)
        }
        _ => {
            drop(history::open_existing(&config)?);
            None
        }
    };
    let now = match location {
        StoreLocation::Sqlite(_) => Sqlite::FORMAT,
        StoreLocation::Postgres(_) => Postgres::FORMAT,
    };
    if args.json {
        return output::print(&json_line(|writer| {
            writer.begin_object();
            writer.field_uint("from", found.unwrap_or(now).into());
            writer.field_uint("to", now.into());
            writer.end_object();
        }));
    }
    match found {
        _ if args.quiet => Ok(()),
        Some(found) => output::print(&format!("the history was brought from schema {found} to {now}\n")),
        None => output::print(&format!("the history has schema {now} already\n")),
    }
}

/// Builds the index of words anew.
fn reindex(args: &Args) -> Result<(), CommandError> {
    let history = history::open_existing(&history::configured(args)?)?;
    let entries = history::wait(async {
        history.reindex().await?;
        Ok(history.stats().await?.entries)
    })?;
    if args.json {
        return output::print(&json_line(|writer| {
            writer.begin_object();
            writer.field_uint("entries", entries);
            writer.end_object();
        }));
    }
    match args.quiet {
        true => Ok(()),
        false => output::print(&format!("indexed the words of {}\n", counted(entries, "entry", "entries"))),
    }
}

/// Verifies everything. Something wrong is the answer "no".
fn check(args: &Args) -> Result<(), CommandError> {
    let history = history::open_existing(&history::configured(args)?)?;
    let bar = Bar::new(!args.quiet, Unit::Count);
    let checkup = history::wait(async { Ok(history.check(watch(&bar)).await?) });
    bar.clear();
    let checkup = checkup?;
    if args.json {
        output::print(&format!("{}\n", written_checkup(&checkup)))?;
    } else {
        output::print(&shown_checkup(&checkup, &Ink::of_stdout()))?;
    }
    match checkup.wrong {
        0 => Ok(()),
        wrong => {
            let things = counted(wrong, "thing is wrong", "things are wrong");
            Err(CommandError::no(format!("the history is not sound: {things}"))
                .hint("docs/operations.md says what to do about it"))
        }
    }
}

fn shown_checkup(checkup: &Checkup, ink: &Ink) -> String {
    let of = |counts: &[(u64, &str, &str)]| {
        let words = counts.iter().map(|(count, one, several)| counted(*count, one, several));
        words.collect::<Vec<_>>().join(", ") + "\n"
    };
    let mut text = of(&[
        (checkup.conversations, "conversation", "conversations"),
        (checkup.exchanges, "exchange", "exchanges"),
        (checkup.entries, "entry", "entries"),
        (checkup.records, "record", "records"),
        (checkup.requests, "request", "requests"),
    ]);
    text += &of(&[
        (checkup.pairs, "pair", "pairs"),
        (checkup.open, "open call", "open calls"),
        (checkup.orphans, "result without a call", "results without a call"),
        (checkup.repeated, "repeated result", "repeated results"),
    ]);
    for found in checkup.findings.iter().take(FINDINGS_SHOWN) {
        let of = match &found.conversation {
            Some(conversation) if found.table != "conversations" => {
                format!("{} (table {}, conversation {conversation})", found.of, found.table)
            }
            _ => format!("{} (table {})", found.of, found.table),
        };
        text += &format!("{}: {}\n  {}\n", ink.tame(&of), ink.bad(&found.what), ink.tame(&advice(found)));
    }
    let hidden = checkup.wrong.saturating_sub(FINDINGS_SHOWN as u64);
    if hidden > 0 {
        text += &format!("… and {hidden} more\n");
    }
    if checkup.wrong == 0 {
        text += &format!("{}\n", ink.good("everything is what its digest says"));
    }
    text
}

/// Says what can be done about something that was found.
fn advice(found: &Finding) -> String {
    match (found.remedy, &found.conversation) {
        (Remedy::Reindex, _) => "rebuild it: throughline store reindex".to_owned(),
        (Remedy::WriteAgain, _) => "make the setting again, or wait until it is learned anew".to_owned(),
        (Remedy::RestoreOrDelete, Some(conversation)) => {
            let quoted = super::export::quoted(conversation);
            format!(
                "restore a backup, or delete the conversation: throughline store prune --conversation {quoted}"
            )
        }
        _ => "restore a backup".to_owned(),
    }
}

fn written_checkup(checkup: &Checkup) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_bool("sound", checkup.wrong == 0);
    let counts = [
        ("conversations", checkup.conversations),
        ("exchanges", checkup.exchanges),
        ("entries", checkup.entries),
        ("records", checkup.records),
        ("requests", checkup.requests),
        ("pairs", checkup.pairs),
        ("open", checkup.open),
        ("orphans", checkup.orphans),
        ("repeated", checkup.repeated),
        ("wrong", checkup.wrong),
    ];
    counts.iter().for_each(|(name, count)| writer.field_uint(name, *count));
    writer.key("findings");
    writer.begin_array();
    for found in &checkup.findings {
        writer.begin_object();
        writer.field_str("table", found.table);
        writer.field_str("of", &found.of);
        match &found.conversation {
            Some(conversation) => writer.field_str("conversation", conversation),
            None => writer.field_null("conversation"),
        }
        writer.field_str("what", &found.what);
        writer.field_str("advice", &advice(found));
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    writer.into_string()
}

fn stats(args: &Args) -> Result<(), CommandError> {
    let history = history::open_existing(&history::configured(args)?)?;
    let stats = history::wait(async { Ok(history.stats().await?) })?;
    if args.json {
        return output::print(&format!("{}\n", written_stats(&stats)));
    }
    let row = |name: &str, volume: &Volume| {
        let unpacked = if volume.count == 0 { "-".to_owned() } else { bytes(volume.unpacked) };
        [name.into(), volume.count.to_string().into(), bytes(volume.bytes).into(), unpacked.into()]
    };
    let plain = |name: &str, count: u64| {
        [Cell::from(name), count.to_string().into(), Cell::new(Tone::Dim, "-"), Cell::new(Tone::Dim, "-")]
    };
    let mut table = Table::new([
        Column::words("WHAT"),
        Column::number("COUNT"),
        Column::number("BYTES"),
        Column::number("UNPACKED"),
    ]);
    let rows = [
        plain("conversations", stats.conversations),
        plain("exchanges", stats.exchanges),
        plain("entries", stats.entries),
        row("records", &stats.records),
        row("requests", &stats.requests),
        row("events", &stats.events),
        row("answers", &stats.answers),
    ];
    rows.into_iter().for_each(|row| table.push(row));
    let ink = Ink::of_stdout();
    let moment = |moment: Option<Moment>| moment.map_or_else(|| "-".to_owned(), |moment| ink.when(moment));
    output::print(&format!(
        "{}contents {}, on disk {}, from {} to {}\n",
        table.shown(&ink),
        bytes(stats.content()),
        bytes(stats.disk),
        moment(stats.oldest),
        moment(stats.latest)
    ))
}

fn written_stats(stats: &Stats) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    let counts = [
        ("conversations", stats.conversations),
        ("exchanges", stats.exchanges),
        ("entries", stats.entries),
        ("content_bytes", stats.content()),
        ("disk_bytes", stats.disk),
    ];
    counts.iter().for_each(|(name, count)| writer.field_uint(name, *count));
    for (name, moment) in [("oldest", stats.oldest), ("latest", stats.latest)] {
        match moment {
            Some(moment) => writer.field_str(name, &throughline_gateway::view::iso(moment)),
            None => writer.field_null(name),
        }
    }
    let volumes = [
        ("records", &stats.records),
        ("requests", &stats.requests),
        ("events", &stats.events),
        ("answers", &stats.answers),
    ];
    for (name, volume) in volumes {
        writer.key(name);
        writer.begin_object();
        writer.field_uint("count", volume.count);
        writer.field_uint("bytes", volume.bytes);
        writer.field_uint("unpacked_bytes", volume.unpacked);
        writer.end_object();
    }
    writer.end_object();
    writer.into_string()
}

fn back_up(file: &Path, args: &Args) -> Result<(), CommandError> {
    let name = file.display();
    if file.exists() {
        return Err(CommandError::bad_input(format!("{name}: there is something already"))
            .hint("a backup is never written over another; give it a name of its own"));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(CommandError::bad_input(format!("{name}: there is no directory {}", folder.display()))
            .hint("make it first, or name another"));
    }
    let history = history::open_existing(&history::configured(args)?)?;
    let bar = Bar::new(!args.quiet, Unit::Count);
    // Whoever calls it off is not left with half a copy.
    let unfinished = Scratch::files(throughline_store::unfinished_backup(file).into());
    let copied = history::wait(async { Ok(history.back_up(file, watch(&bar)).await?) });
    drop(unfinished);
    bar.clear();
    copied?;
    let taken = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    if args.json {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("file", &file.to_string_lossy());
        writer.field_uint("bytes", taken);
        writer.end_object();
        return output::print(&format!("{}\n", writer.into_string()));
    }
    if args.quiet { Ok(()) } else { output::print(&format!("{}: {}\n", file.display(), bytes(taken))) }
}

fn migrate(to: &str, from: Option<&str>, args: &Args) -> Result<(), CommandError> {
    let to = location("--to", to)?;
    let from = match from {
        Some(from) => location("--from", from)?,
        None => history::configured(args)?.store.location,
    };
    if to == from {
        return Err(CommandError::bad_input("--to: that is where the history is"));
    }
    if let StoreLocation::Sqlite(file) = &from
        && !file.exists()
    {
        return Err(CommandError::no(format!("there is no history: {}", file.display()))
            .hint("--from names another one; without it, the one that the configuration names is copied"));
    }
    let missing = || {
        CommandError::no("there is no history to copy")
            .hint("--from names another one; without it, the one that the configuration names is copied")
    };
    let source = history::as_it_is(&from)?.ok_or_else(missing)?;
    let target = history::open_at(&to)?;
    let bar = Bar::new(!args.quiet, Unit::Count);
    let copied = history::wait(copied(&source, &target, &bar));
    bar.clear();
    let (inventory, grown) = copied?;
    if args.json {
        output::print(&format!("{}\n", written_inventory(&inventory, grown)))?;
    } else if !args.quiet {
        let mut table = Table::new([Column::words("WHAT"), Column::number("ROWS")]);
        inventory.rows().for_each(|(name, rows)| table.push([name.into(), rows.to_string().into()]));
        let table = table.shown(&Ink::of_stdout());
        output::print(&format!("{table}both have the digest {}\n", inventory.digest()))?;
    }
    match grown {
        0 => Ok(()),
        grown => Err(CommandError::no(format!(
            "{grown} exchanges were added meanwhile and are not in the copy; stop the gateways, empty it, and begin again"
        ))),
    }
}

/// Copies, and returns by how many exchanges the source has grown meanwhile.
async fn copied(
    source: &Arc<dyn Upkeep>,
    target: &Arc<dyn Upkeep>,
    bar: &Bar,
) -> Result<(Inventory, u64), CommandError> {
    let inventory = copy(&**source, &**target, watch(bar)).await?;
    let (now, then) = (source.stats().await?, target.stats().await?);
    Ok((inventory, now.exchanges.saturating_sub(then.exchanges)))
}

fn written_inventory(inventory: &Inventory, grown: u64) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_bool("equal", true);
    writer.field_str("digest", &inventory.digest());
    writer.field_uint("added_meanwhile", grown);
    writer.key("rows");
    writer.begin_object();
    inventory.rows().for_each(|(name, rows)| writer.field_uint(name, rows));
    writer.end_object();
    writer.end_object();
    writer.into_string()
}

/// Reads where a history is; a file is where the user is.
fn location(flag: &str, text: &str) -> Result<StoreLocation, CommandError> {
    let bad = |what: &str| CommandError::bad_input(format!("{flag}: {what}"));
    let url = match SecretRef::parse(text) {
        SecretRef::Variable(name) => {
            let value = throughline_gateway::config::Process.variable(&name);
            Secret::new(value.ok_or_else(|| bad(&format!("the variable {name} is not set")))?)
        }
        SecretRef::File(path) => {
            let text = std::fs::read_to_string(&path)
                .map_err(|source| CommandError::file(path.display(), source))?;
            Secret::new(text.trim_end())
        }
        _ => Secret::new(text),
    };
    StoreLocation::parse(url, Path::new("")).map_err(|what| bad(&what))
}

fn watch(bar: &Bar) -> Watch {
    let bar = bar.clone();
    Arc::new(move |progress| bar.at(progress.what, progress.done, progress.total))
}
