//! Which configuration files found in a working directory the user has trusted.
//!
//! A file that came with a repository could start programs and send keys anywhere, so it counts only once the user has
//! trusted it: by its place, since relative paths in it mean what is beside it, and by the digest of its content, since
//! whoever changes it writes another file. The bytes that are compared are the bytes that are parsed.
//!
//! The record is a folder with one file for each decision, named after both digests. Several writers do not disturb each
//! other, a damaged file is one decision less, and taking one back is removing a file.

use super::source::{FILE_NAME, Surroundings, user_folder};
use super::{Config, StoreLocation};
use crate::clock::{mint, now};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use throughline_tools::visible;
use throughline_wire::json::{Document, Writer};

/// The largest file that is read without being named.
const FOUND_BYTES_MAX: u64 = 1024 * 1024;
/// The largest file of the record.
const ENTRY_BYTES_MAX: u64 = 64 * 1024;

/// A file that was found in a directory, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Where it is, from the root on. The directory is without links; the file itself may be one.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    /// Whether it may be used.
    pub trust: Trust,
    /// The user that it belongs to, if that is somebody else.
    pub foreign_owner: Option<u32>,
}

/// Whether a file that was found may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The user trusts this content in this place.
    Trusted,
    /// It must be ignored.
    Untrusted(Distrust),
}

/// Why a file that was found is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// The user has not decided.
    Undecided,
    /// The user trusted another content of it.
    Changed,
    /// The user decided against it.
    Refused,
    /// Decisions cannot be read, for this reason.
    NoRecord(String),
    /// The file cannot be read, for this reason.
    Unreadable(String),
}

/// A file that was found and is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredFile {
    /// Where it is.
    pub path: PathBuf,
    /// Why.
    pub why: Distrust,
}

/// What the user decided about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be used.
    Trusted,
    /// It is ignored, and nobody is asked about it again.
    Refused,
}

/// One decision of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustEntry {
    /// Where the file is; a part of the path that is not text is replaced.
    pub path: String,
    /// The digest of the content.
    pub digest: String,
    /// What was decided.
    pub verdict: Verdict,
    /// When, in milliseconds since 1970.
    pub decided: u64,
}

/// What the user decided about files that were found.
#[derive(Clone, Debug)]
pub struct TrustRecord {
    folder: PathBuf,
}

impl FoundFile {
    /// Reads the file `name` in a directory, without judging it. Links are followed, but only a regular file of bounded
    /// size is read, and nothing is waited for: a pipe or a device in its place is an error.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn read(folder: &Path, name: &str) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let path = folder.join(name);
        let (bytes, owner) = read_regular(&path, FOUND_BYTES_MAX, true)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the file is not UTF-8"))?;
        let trust = Trust::Untrusted(Distrust::Undecided);
        Ok(Self { path, text, trust, foreign_owner: owner.filter(|owner| !is_this_user(*owner)) })
    }

    /// Returns the digest of its content.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(self.text.as_bytes())
    }
}

impl TrustRecord {
    /// Returns the record of this user. It need not exist yet.
    ///
    /// # Errors
    /// When the user has no directory of their own, in words.
    pub fn of_user(surroundings: &dyn Surroundings) -> Result<Self, String> {
        let state = user_folder(surroundings, "XDG_STATE_HOME", ".local/state");
        // A relative home would put the record into whatever directory this is.
        match state.filter(|folder| folder.is_absolute()) {
            Some(state) => Ok(Self { folder: state.join("trust") }),
            None => Err("there is no home directory to remember trusted files in".to_owned()),
        }
    }

    /// Returns the folder that holds the record.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Says whether a file may be used.
    #[must_use]
    pub fn judge(&self, found: &FoundFile) -> Trust {
        match self.decided(found) {
            Ok(Some(Verdict::Trusted)) => Trust::Trusted,
            Ok(Some(Verdict::Refused)) => Trust::Untrusted(Distrust::Refused),
            Ok(None) if self.is_other_content_trusted(&found.path) => Trust::Untrusted(Distrust::Changed),
            Ok(None) => Trust::Untrusted(Distrust::Undecided),
            Err(error) => {
                let what = format!("{}: {error}", self.folder.display());
                Trust::Untrusted(Distrust::NoRecord(what))
            }
        }
    }

    /// Records a decision about a file as it was read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn decide(&self, found: &FoundFile, verdict: Verdict) -> io::Result<()> {
        create_private_folder(&self.folder)?;
        check_private(&fs::metadata(&self.folder)?)?;
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("path", &found.path.to_string_lossy());
        writer.field_str("verdict", verdict.name());
        writer.field_uint("decided", u64::try_from(now().0).unwrap_or(0));
        writer.end_object();
        let name = entry_name(&found.path, &found.digest());
        write_private(&self.folder, &name, writer.into_string().as_bytes())
    }

    /// Takes back every decision about a file, whatever its content was, and returns how many there were.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn forget(&self, path: &Path) -> io::Result<usize> {
        let mut count = 0;
        for name in self.names()?.iter().filter(|name| is_about(name, path)) {
            fs::remove_file(self.folder.join(name))?;
            count += 1;
        }
        Ok(count)
    }

    /// Returns every decision, by path. A file in the record that is none is left out.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn entries(&self) -> io::Result<Vec<TrustEntry>> {
        let mut entries: Vec<TrustEntry> =
            self.names()?.iter().filter_map(|name| self.entry(name).ok().flatten()).collect();
        entries.sort_by(|a, b| (&a.path, a.decided).cmp(&(&b.path, b.decided)));
        Ok(entries)
    }

    fn decided(&self, found: &FoundFile) -> io::Result<Option<Verdict>> {
        match fs::metadata(&self.folder) {
            Ok(metadata) => check_private(&metadata)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let entry = self.entry(&entry_name(&found.path, &found.digest()))?;
        Ok(entry.map(|entry| entry.verdict))
    }

    fn is_other_content_trusted(&self, path: &Path) -> bool {
        let names = self.names().unwrap_or_default();
        let mut entries =
            names.iter().filter(|name| is_about(name, path)).filter_map(|name| self.entry(name).ok()?);
        entries.any(|entry| entry.verdict == Verdict::Trusted)
    }

    /// Reads one decision; nothing if there is none of that name, or none that can be read.
    fn entry(&self, name: &str) -> io::Result<Option<TrustEntry>> {
        let bytes = match read_regular(&self.folder.join(name), ENTRY_BYTES_MAX, false) {
            Ok((bytes, owner)) if owner.is_none_or(is_this_user) => bytes,
            Ok(_) => return Err(io::Error::other(FOREIGN)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(String::from_utf8(bytes).ok().and_then(|text| parse_entry(name, &text)))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter(|name| !name.starts_with('.')).collect())
    }
}

/// Reads the file of the usual name in the working directory, and says whether this user trusts it.
pub(super) fn find(surroundings: &dyn Surroundings, path: &Path) -> io::Result<FoundFile> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(FILE_NAME);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = FoundFile::read(folder, name)?;
    let own = user_folder(surroundings, "XDG_CONFIG_HOME", ".config").and_then(|own| own.canonicalize().ok());
    let trust = if own.is_some() && found.path.parent() == own.as_deref() {
        // Whoever stands in their configuration directory has found their own file.
        Trust::Trusted
    } else {
        match TrustRecord::of_user(surroundings) {
            Ok(record) => record.judge(&found),
            Err(why) => Trust::Untrusted(Distrust::NoRecord(why)),
        }
    };
    Ok(FoundFile { trust, ..found })
}

/// Returns every path that decides what Throughline does, or holds what it recorded: the user's configuration
/// directory, the file that was read, the record of trusted files, the history.
///
/// What a model has written must never count as the user's word, so no tool and no command may write these, create them
/// or replace a directory above them. All are absolute, whether they exist or not; one that is reached through a link is
/// named by both paths.
#[must_use]
pub fn protected_paths(surroundings: &dyn Surroundings, config: &Config) -> Vec<PathBuf> {
    let mut named: Vec<PathBuf> =
        user_folder(surroundings, "XDG_CONFIG_HOME", ".config").into_iter().collect();
    named.extend(TrustRecord::of_user(surroundings).map(|record| record.folder));
    named.push(config.data.clone());
    named.extend(config.file.clone());
    if let StoreLocation::Sqlite(file) = &config.store.location {
        for ending in ["", "-wal", "-shm", "-journal"] {
            let mut path = file.clone().into_os_string();
            path.push(ending);
            named.push(path.into());
        }
    }
    let mut paths: Vec<PathBuf> =
        named.iter().flat_map(|path| std::path::absolute(path).into_iter().chain(resolved(path))).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Returns a path without links, as far as it exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let (above, mut real) = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)))?;
    for part in path.strip_prefix(above).ok()?.components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
    }
    Some(real)
}

const FOREIGN: &str = "the record belongs to another user, or others may write it";

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn entry_name(path: &Path, content: &str) -> String {
    format!("{}-{content}", digest(path.as_os_str().as_encoded_bytes()))
}

fn is_about(name: &str, path: &Path) -> bool {
    name.split_once('-').is_some_and(|(about, _)| about == digest(path.as_os_str().as_encoded_bytes()))
}

fn parse_entry(name: &str, text: &str) -> Option<TrustEntry> {
    let document = Document::parse(text).ok()?;
    let root = document.root();
    let verdict = root.field("verdict")?.as_text()?;
    let verdict =
        [Verdict::Trusted, Verdict::Refused].into_iter().find(|it| it.name() == verdict.as_str())?;
    Some(TrustEntry {
        path: root.field("path")?.as_text()?.to_string(),
        digest: name.split_once('-')?.1.to_owned(),
        verdict,
        decided: root.field("decided")?.as_u64()?,
    })
}

/// Reads a regular file without waiting for anybody, and says whose it is.
fn read_regular(path: &Path, max: u64, follows: bool) -> io::Result<(Vec<u8>, Option<u32>)> {
    let file = open_unwaiting(path, follows)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::other(format!("it has more than {max} bytes")));
    }
    Ok((bytes, owner(&metadata)))
}

#[cfg(unix)]
fn open_unwaiting(path: &Path, follows: bool) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let links = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | links;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open_unwaiting(path: &Path, _: bool) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn owner(metadata: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Some(metadata.uid())
}

#[cfg(not(unix))]
fn owner(_: &fs::Metadata) -> Option<u32> {
    None
}

#[cfg(unix)]
fn is_this_user(owner: u32) -> bool {
    owner == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_this_user(_: u32) -> bool {
    true
}

/// Fails if somebody else could have written the record.
fn check_private(metadata: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        const OTHERS_WRITE: u32 = 0o022;
        if !is_this_user(metadata.uid()) || metadata.mode() & OTHERS_WRITE != 0 {
            return Err(io::Error::other(FOREIGN));
        }
    }
    let _ = metadata;
    Ok(())
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Puts a file in its place at once: whoever reads it sees it whole or not at all.
fn write_private(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = folder.join(format!(".{}.draft", mint()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let written = options
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, folder.join(name)));
    if written.is_err() {
        // Nothing more can be done about a draft that cannot be removed either.
        let _ = fs::remove_file(&draft);
    }
    written
}

impl Verdict {
    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecided => f.write_str("it is not trusted"),
            Self::Changed => f.write_str("it has changed since it was trusted"),
            Self::Refused => f.write_str("you chose not to trust it"),
            Self::NoRecord(why) => write!(f, "it cannot be trusted: {}", visible(why)),
            Self::Unreadable(why) => write!(f, "it cannot be read: {}", visible(why)),
        }
    }
}

impl IgnoredFile {
    /// Returns what the user can do about it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self.why {
            Distrust::Undecided | Distrust::Changed | Distrust::Refused => {
                "`throughline trust` trusts it, `--config throughline.toml` uses it this once"
            }
            Distrust::NoRecord(_) => "`--config throughline.toml` uses it this once",
            Distrust::Unreadable(_) => "`--config FILE` uses another one",
        }
    }
}

impl fmt::Display for IgnoredFile {
    /// Writes one line: which file, why, and what to type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.to_string_lossy();
        let path = visible(&path).replace('\n', "\\n");
        write!(f, "ignoring {path}: {} ({})", self.why, self.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    struct Home(BTreeMap<&'static str, String>);

    impl Surroundings for Home {
        fn variable(&self, name: &str) -> Option<String> {
            self.0.get(name).cloned()
        }

        fn variable_names(&self) -> Vec<String> {
            Vec::new()
        }

        fn read(&self, path: &Path) -> io::Result<String> {
            fs::read_to_string(path)
        }
    }

    /// A home directory, and a repository with a file in it.
    fn place() -> (tempfile::TempDir, Home, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home([("HOME", folder.path().join("home").display().to_string())].into());
        let repository = folder.path().join("repository");
        fs::create_dir(&repository).unwrap();
        let file = repository.join(FILE_NAME);
        fs::write(&file, "active = \"a\"").unwrap();
        (folder, home, file)
    }

    fn trust_of(home: &Home, file: &Path) -> Trust {
        find(home, file).unwrap().trust
    }

    #[test]
    fn a_file_is_trusted_in_its_place_and_as_it_is() {
        let (folder, home, file) = place();
        let record = TrustRecord::of_user(&home).unwrap();
        let untrusted = Trust::Untrusted;
        assert_eq!(trust_of(&home, &file), untrusted(Distrust::Undecided));
        record.decide(&find(&home, &file).unwrap(), Verdict::Trusted).unwrap();
        assert_eq!(trust_of(&home, &file), Trust::Trusted);
        fs::write(&file, "active = \"b\"").unwrap();
        assert_eq!(trust_of(&home, &file), untrusted(Distrust::Changed));
        fs::write(&file, "active = \"a\"").unwrap();
        assert_eq!(trust_of(&home, &file), Trust::Trusted, "what was trusted once is");
        // The same bytes beside other programs are another file, and so is a link to it from elsewhere.
        let other = folder.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::copy(&file, other.join(FILE_NAME)).unwrap();
        assert_eq!(trust_of(&home, &other.join(FILE_NAME)), untrusted(Distrust::Undecided));
        #[cfg(unix)]
        {
            fs::remove_file(other.join(FILE_NAME)).unwrap();
            std::os::unix::fs::symlink(&file, other.join(FILE_NAME)).unwrap();
            assert_eq!(trust_of(&home, &other.join(FILE_NAME)), untrusted(Distrust::Undecided));
        }
        record.decide(&find(&home, &file).unwrap(), Verdict::Refused).unwrap();
        assert_eq!(trust_of(&home, &file), untrusted(Distrust::Refused));
        let entries = record.entries().unwrap();
        assert_eq!(entries.len(), 1);
        assert!(entries[0].path.ends_with("repository/throughline.toml"), "{entries:?}");
        assert_eq!(record.forget(&find(&home, &file).unwrap().path).unwrap(), 1);
        assert_eq!(trust_of(&home, &file), untrusted(Distrust::Undecided));
    }

    #[cfg(unix)]
    #[test]
    fn a_record_that_others_may_write_says_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_folder, home, file) = place();
        let record = TrustRecord::of_user(&home).unwrap();
        record.decide(&find(&home, &file).unwrap(), Verdict::Trusted).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(record.folder()), 0o700);
        let entry = record.folder().join(&record.names().unwrap()[0]);
        assert_eq!(mode(&entry), 0o600);
        fs::set_permissions(record.folder(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(trust_of(&home, &file), Trust::Untrusted(Distrust::NoRecord(_))));
        fs::set_permissions(record.folder(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(trust_of(&home, &file), Trust::Trusted);
        // An entry that is damaged, or a link, trusts nothing.
        fs::write(&entry, "{").unwrap();
        assert_eq!(trust_of(&home, &file), Trust::Untrusted(Distrust::Undecided));
    }

    #[test]
    fn without_a_home_nothing_is_trusted() {
        let (_folder, _, file) = place();
        for home in [Home(BTreeMap::new()), Home([("HOME", "here".to_owned())].into())] {
            assert!(matches!(trust_of(&home, &file), Trust::Untrusted(Distrust::NoRecord(_))));
        }
    }

    #[test]
    fn the_users_own_directory_is_trusted() {
        let (_folder, home, _) = place();
        let own = PathBuf::from(home.variable("HOME").unwrap()).join(".config/throughline");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join(FILE_NAME), "").unwrap();
        assert_eq!(trust_of(&home, &own.join(FILE_NAME)), Trust::Trusted);
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let (_folder, home, file) = place();
        fs::write(&file, vec![b'#'; 1024 * 1024 + 1]).unwrap();
        assert!(find(&home, &file).unwrap_err().to_string().contains("more than"));
        fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(find(&home, &file).unwrap_err().to_string().contains("not a regular file"));
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(find(&home, &file).unwrap_err().to_string().contains("not a regular file"));
    }

    #[test]
    fn an_ignored_file_is_named_in_one_line() {
        let path = PathBuf::from("/x\n\u{1b}[2J\u{202e}/throughline.toml");
        let line = IgnoredFile { path, why: Distrust::Changed }.to_string();
        assert!(!line.contains(['\n', '\u{1b}', '\u{202e}']), "{line:?}");
        assert!(line.contains("changed since") && line.contains("`throughline trust`"), "{line}");
    }

    #[test]
    fn what_must_be_protected_is_named_whether_it_exists_or_not() {
        let (folder, home, _) = place();
        let file = folder.path().join("named.toml");
        fs::write(&file, "[store]\nurl = \"sqlite:../elsewhere/h.db\"").unwrap();
        let flags = super::super::Flags { config: Some(file.clone()), ..Default::default() };
        let config = super::super::load(&home, &flags).unwrap();
        let paths = protected_paths(&home, &config);
        let home = PathBuf::from(home.variable("HOME").unwrap());
        let wanted = [
            home.join(".config/throughline"),
            home.join(".local/state/throughline/trust"),
            home.join(".local/share/throughline"),
            file,
        ];
        for path in wanted {
            assert!(paths.contains(&path), "{} is not in {paths:?}", path.display());
        }
        assert!(paths.iter().any(|path| path.ends_with("elsewhere/h.db-wal")), "{paths:?}");
        assert!(paths.iter().all(|path| path.is_absolute()));
    }
}
