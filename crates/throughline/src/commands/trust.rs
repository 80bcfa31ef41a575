//! `throughline trust`: which configuration files in working directories are used.

use crate::args::{Args, TrustArgs};
use crate::exit::CommandError;
use crate::output::{self, Cell, Column, Ink, Table, Tone, json_line, json_lines};
use std::path::{Path, PathBuf};
use throughline_gateway::config::{FILE_NAME, FoundFile, Process, TrustEntry, TrustRecord, Verdict, grants};
use throughline_gateway::view;
use throughline_store::Moment;
use throughline_tools::visible_line;

/// How much of a digest is shown to people.
const DIGEST_CHARS: usize = 12;

/// How the file that was decided about stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    /// It has the content that was decided about.
    Current,
    /// It has another one.
    Changed,
    /// It is not there, or cannot be read.
    Gone,
}

/// Trusts a file, forgets one, or lists what was decided.
pub fn run(asked: &TrustArgs, args: &Args) -> Result<(), CommandError> {
    let record = TrustRecord::of_user(&Process).map_err(|why| {
        CommandError::bad_input(why).hint("set HOME, or name the file with --config each time")
    })?;
    if asked.list {
        return list(&record, args);
    }
    let place = Place::of(asked.file.as_deref())?;
    if asked.forget { forget(&record, &place, args) } else { trust(&record, &place, args) }
}

/// Where a file is looked for.
struct Place {
    folder: PathBuf,
}

impl Place {
    /// Returns the place that was named: a file, or a directory that holds one.
    fn of(file: Option<&Path>) -> Result<Self, CommandError> {
        let Some(file) = file else { return Ok(Self { folder: PathBuf::from(".") }) };
        if file.is_dir() {
            return Ok(Self { folder: file.to_owned() });
        }
        if file.file_name().is_none_or(|name| name != FILE_NAME) {
            let what = format!("{}: only a file called {FILE_NAME} is looked for", shown(file));
            return Err(
                CommandError::bad_input(what).hint("use another one with --config FILE, without trusting it")
            );
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(Self { folder: folder.unwrap_or(Path::new(".")).to_owned() })
    }

    /// Returns the path that decisions are recorded under.
    fn path(&self) -> Result<PathBuf, CommandError> {
        let folder = self.folder.canonicalize().or_else(|_| std::path::absolute(&self.folder));
        let folder = folder.map_err(|source| CommandError::file(shown(&self.folder), source))?;
        Ok(folder.join(FILE_NAME))
    }
}

fn trust(record: &TrustRecord, place: &Place, args: &Args) -> Result<(), CommandError> {
    let path = place.path()?;
    let at = |source| CommandError::file(shown(&path), source);
    let found = FoundFile::read(&place.folder, FILE_NAME).map_err(at)?;
    let grants = grants(&found.path, &found.text).map_err(|errors| super::config::bad_config(&errors))?;
    record
        .decide(&found, Verdict::Trusted)
        .map_err(|source| CommandError::file(record.folder().display(), source))?;
    let digest = found.digest();
    if args.json {
        return output::print(&json_line(|writer| {
            writer.begin_object();
            writer.field_str("file", &found.path.to_string_lossy());
            writer.field_str("digest", &digest);
            writer.field_str("verdict", Verdict::Trusted.name());
            writer.key("grants");
            writer.begin_array();
            grants.iter().for_each(|line| writer.string(line));
            writer.end_array();
            writer.end_object();
        }));
    }
    let mut text =
        format!("{}: trusted as it is now (digest {})\n", shown(&found.path), &digest[..DIGEST_CHARS]);
    if !args.quiet {
        grants.iter().for_each(|line| text.push_str(&format!("  - it {line}\n")));
    }
    output::print(&text)
}

fn forget(record: &TrustRecord, place: &Place, args: &Args) -> Result<(), CommandError> {
    let path = place.path()?;
    let forgotten =
        record.forget(&path).map_err(|source| CommandError::file(record.folder().display(), source))?;
    if args.json {
        output::print(&json_line(|writer| {
            writer.begin_object();
            writer.field_str("file", &path.to_string_lossy());
            writer.field_uint("forgotten", forgotten as u64);
            writer.end_object();
        }))?;
    }
    match forgotten {
        0 => Err(CommandError::no(format!("{}: nothing was decided about it", shown(&path)))
            .hint("`throughline trust --list` lists what was")),
        _ if args.json => Ok(()),
        _ => output::print(&format!("{}: not trusted any more\n", shown(&path))),
    }
}

fn list(record: &TrustRecord, args: &Args) -> Result<(), CommandError> {
    let entries = record.entries();
    let entries = entries.map_err(|source| CommandError::file(record.folder().display(), source))?;
    if args.json {
        return output::print(&json_lines(&entries, |writer, entry| {
            writer.begin_object();
            writer.field_str("file", &entry.path);
            writer.field_str("digest", &entry.digest);
            writer.field_str("verdict", entry.verdict.name());
            writer.field_str("state", state(entry).name());
            writer.field_str("decided", &view::iso(decided(entry)));
            writer.end_object();
        }));
    }
    let ink = Ink::of_stdout();
    let mut table = Table::new([
        Column::words("FILE").down_to(20),
        Column::words("VERDICT"),
        Column::words("NOW"),
        Column::words("DECIDED"),
        Column::words("DIGEST"),
    ]);
    for entry in &entries {
        let verdict = match entry.verdict {
            Verdict::Trusted => Cell::new(Tone::Good, entry.verdict.name()),
            Verdict::Refused => Cell::new(Tone::Dim, entry.verdict.name()),
        };
        let path = Cell::new(Tone::Bold, visible_line(&entry.path));
        let digest: String = entry.digest.chars().take(DIGEST_CHARS).collect();
        table.push([
            path,
            verdict,
            state(entry).name().into(),
            ink.when(decided(entry)).into(),
            digest.into(),
        ]);
    }
    output::page(&table.shown(&ink), args)
}

fn decided(entry: &TrustEntry) -> Moment {
    Moment(i64::try_from(entry.decided).unwrap_or(i64::MAX))
}

fn state(entry: &TrustEntry) -> FileState {
    let path = Path::new(&entry.path);
    match FoundFile::read(path.parent().unwrap_or(path), FILE_NAME) {
        Ok(found) if found.digest() == entry.digest => FileState::Current,
        Ok(_) => FileState::Changed,
        Err(_) => FileState::Gone,
    }
}

impl FileState {
    const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Changed => "changed",
            Self::Gone => "gone",
        }
    }
}

fn shown(path: &Path) -> String {
    visible_line(&path.to_string_lossy())
}
