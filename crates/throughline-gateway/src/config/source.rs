//! Where the configuration comes from: a file, then variables, then flags, each overriding the one before.
//!
//! The world outside is a [`Surroundings`], so that all of this is tested with a map. Reading is blocking;
//! a server that reloads does it on a thread for that.

use super::error::{ConfigError, ConfigErrors, Source, Sources, Warning};
use super::file::{self, BackendSection, FileConfig};
use super::providers::{PROVIDERS, Provider};
use super::resolve::{Config, Secrets, resolve};
use super::trust::{self, Distrust, FoundFile, IgnoredFile, Trust, TrustRecord};
use super::values::{DialectName, Models};
use super::{address, variables};
use crate::secret::SecretRef;
use std::io;
use std::path::{Path, PathBuf};
use throughline_core::Dialect;

/// The name of the file, wherever it is.
pub const FILE_NAME: &str = "throughline.toml";

/// What the configuration may look at.
pub trait Surroundings {
    /// Returns the value of a variable; one that is not text is as good as absent.
    fn variable(&self, name: &str) -> Option<String>;
    /// Returns the names of all variables.
    fn variable_names(&self) -> Vec<String>;
    /// Returns the text of a file that the user named, or that lies in their own directory.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Reads a file in the working directory that nobody named, and says whether the user trusts what was read. Where
    /// there is no working directory, there is no such file.
    fn read_found(&self, path: &Path) -> io::Result<FoundFile> {
        let _ = path;
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The surroundings of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process;

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<String>,
    /// `--data`
    pub data: Option<PathBuf>,
}

/// Who said which backends there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendsFrom {
    /// The file.
    File,
    /// Keys of known providers in the environment.
    Keys,
    /// Nobody: there is only the simulated one.
    Nobody,
}

/// Everything as written, from all places, with the place of each value.
#[derive(Debug)]
pub struct Written {
    /// The values.
    pub file: FileConfig,
    /// Where each came from.
    pub sources: Sources,
    /// The file that was read.
    pub path: Option<PathBuf>,
    /// A file in the working directory that was not.
    pub ignored: Option<IgnoredFile>,
    /// The folder that history is kept in.
    pub data: PathBuf,
    /// Who said which backends there are.
    pub backends_from: BackendsFrom,
    /// What was noticed on the way.
    pub warnings: Vec<Warning>,
}

/// Finds, reads and checks the configuration.
///
/// # Errors
/// When something in it is wrong, or a secret that it refers to is not there.
pub fn load(surroundings: &dyn Surroundings, flags: &Flags) -> Result<Config, ConfigErrors> {
    let written = gather(surroundings, flags).map_err(ConfigErrors)?;
    resolve(written, surroundings, Secrets::Needed)
}

/// Finds, reads and checks the configuration for somebody who asks no backend: a secret that is not there is told in
/// [`Config::absent`], and is no error.
///
/// # Errors
/// When something in it is wrong, or the address of the history is a secret that is not there.
pub fn load_to_look(surroundings: &dyn Surroundings, flags: &Flags) -> Result<Config, ConfigErrors> {
    let written = gather(surroundings, flags).map_err(ConfigErrors)?;
    resolve(written, surroundings, Secrets::Spared)
}

/// Returns the places at which a file would be read, the first that is there and trusted; all of them are to be
/// watched, and so is the record of what is trusted.
#[must_use]
pub fn file_places(surroundings: &dyn Surroundings, flags: &Flags) -> Vec<PathBuf> {
    if let Some((path, _)) = named_file(surroundings, flags) {
        return vec![path];
    }
    let record = TrustRecord::of_user(surroundings).ok().map(|record| record.folder().to_owned());
    [Some(PathBuf::from(FILE_NAME)), user_file(surroundings), record].into_iter().flatten().collect()
}

fn gather(surroundings: &dyn Surroundings, flags: &Flags) -> Result<Written, Vec<ConfigError>> {
    let FileChoice { read, ignored } = choose_file(surroundings, flags)?;
    let (mut file, mut sources) = match &read {
        Some((path, text)) => file::parse(path, text)?,
        None => Default::default(),
    };
    let warnings = variables::apply(surroundings, &mut file, &mut sources)?;
    if let Some(listen) = &flags.listen {
        file.listen = Some(listen.clone());
        sources.insert("listen".to_owned(), Source::Flag("--listen"));
    }
    let data = data_folder(surroundings, flags, &mut sources)?;
    let backends_from = find_backends(surroundings, &mut file, &mut sources);
    let path = read.map(|(path, _)| path);
    Ok(Written { file, sources, path, ignored, data, backends_from, warnings })
}

/// Which file is used.
#[derive(Default)]
struct FileChoice {
    /// Its path and its text.
    read: Option<(PathBuf, String)>,
    /// One that would come before it, if it were trusted.
    ignored: Option<IgnoredFile>,
}

/// Reads the file that is used. One that was asked for by name has to be there; one in the working directory counts only
/// if the user trusts it, and else the one in their own directory does.
fn choose_file(surroundings: &dyn Surroundings, flags: &Flags) -> Result<FileChoice, Vec<ConfigError>> {
    if let Some((path, source)) = named_file(surroundings, flags) {
        let text = surroundings.read(&path).map_err(|error| unreadable(&path, &error, source))?;
        return Ok(FileChoice { read: Some((path, text)), ignored: None });
    }
    let here = PathBuf::from(FILE_NAME);
    let ignored = match surroundings.read_found(&here) {
        Ok(FoundFile { text, trust: Trust::Trusted, .. }) => {
            return Ok(FileChoice { read: Some((here, text)), ignored: None });
        }
        Ok(FoundFile { path, trust: Trust::Untrusted(why), .. }) => Some(IgnoredFile { path, why }),
        Err(error) if is_absent(&error) => None,
        Err(error) => {
            let path = std::path::absolute(&here).unwrap_or(here);
            Some(IgnoredFile { path, why: Distrust::Unreadable(error.to_string()) })
        }
    };
    let Some(path) = user_file(surroundings) else { return Ok(FileChoice { read: None, ignored }) };
    match surroundings.read(&path) {
        Ok(text) => Ok(FileChoice { read: Some((path, text)), ignored }),
        Err(error) if is_absent(&error) => Ok(FileChoice { read: None, ignored }),
        Err(error) => Err(unreadable(&path, &error, Source::File { path: path.clone(), line: 1 })),
    }
}

/// Returns the path of the file in the user's own directory.
fn user_file(surroundings: &dyn Surroundings) -> Option<PathBuf> {
    Some(user_folder(surroundings, "XDG_CONFIG_HOME", ".config")?.join(FILE_NAME))
}

/// Returns the file that was asked for by name, and who did.
fn named_file(surroundings: &dyn Surroundings, flags: &Flags) -> Option<(PathBuf, Source)> {
    let variable = surroundings.variable("THROUGHLINE_CONFIG").filter(|path| !path.is_empty());
    match (&flags.config, variable) {
        (Some(path), _) => Some((path.clone(), Source::Flag("--config"))),
        (None, Some(path)) => Some((PathBuf::from(path), Source::Variable("THROUGHLINE_CONFIG".to_owned()))),
        (None, None) => None,
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn unreadable(path: &Path, error: &io::Error, source: Source) -> Vec<ConfigError> {
    let what = match error.kind() {
        io::ErrorKind::InvalidData => "is not UTF-8".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    let hint = "`throughline config init` writes a file to begin with";
    vec![ConfigError::new(source, path.display().to_string(), what).with_hint(hint)]
}

fn data_folder(
    surroundings: &dyn Surroundings,
    flags: &Flags,
    sources: &mut Sources,
) -> Result<PathBuf, Vec<ConfigError>> {
    let variable = surroundings.variable("THROUGHLINE_DATA").filter(|path| !path.is_empty());
    let (folder, source) = match (&flags.data, variable) {
        (Some(folder), _) => (Some(folder.clone()), Source::Flag("--data")),
        (None, Some(folder)) => {
            (Some(PathBuf::from(folder)), Source::Variable("THROUGHLINE_DATA".to_owned()))
        }
        (None, None) => (user_folder(surroundings, "XDG_DATA_HOME", ".local/share"), Source::Default),
    };
    sources.insert("data".to_owned(), source);
    folder.ok_or_else(|| {
        let what = "there is no home directory to keep history in";
        vec![
            ConfigError::new(Source::Default, "data", what)
                .with_hint("give --data DIR or set THROUGHLINE_DATA"),
        ]
    })
}

/// Returns our folder among the user's own, as the XDG base directories have it.
pub(super) fn user_folder(
    surroundings: &dyn Surroundings,
    variable: &str,
    below_home: &str,
) -> Option<PathBuf> {
    let set = |name: &str| surroundings.variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A relative path in these variables is to be ignored, says the specification.
    let named = set(variable).filter(|path| path.is_absolute());
    let home = || set("HOME").map(|home| home.join(below_home));
    let base = named.or_else(home).or_else(|| set("APPDATA"))?;
    Some(base.join("throughline"))
}

/// Adds the backends that the environment speaks of, or else the simulated one, when the file names none.
fn find_backends(
    surroundings: &dyn Surroundings,
    file: &mut FileConfig,
    sources: &mut Sources,
) -> BackendsFrom {
    if !file.backends.is_empty() {
        return BackendsFrom::File;
    }
    for provider in PROVIDERS {
        if let Some(variable) = provider.variable(surroundings) {
            let path = format!("backends[{}]", file.backends.len());
            for key in ["name", "dialect", "base_url", "api_key", "default_model", "models", "profile"] {
                sources.insert(format!("{path}.{key}"), Source::Variable(variable.to_owned()));
            }
            file.backends.push(found(provider, variable));
        }
    }
    if file.backends.is_empty() {
        file.backends.push(simulated());
        return BackendsFrom::Nobody;
    }
    BackendsFrom::Keys
}

fn found(provider: &Provider, variable: &str) -> BackendSection {
    BackendSection {
        name: Some(provider.name.to_owned()),
        dialect: Some(DialectName(provider.dialect)),
        base_url: Some(provider.base_url.to_owned()),
        api_key: Some(SecretRef::Variable(variable.to_owned())),
        default_model: Some(provider.default_model.to_owned()),
        models: Some(listed(provider)),
        profile: Some(provider.rules.to_owned()),
        ..BackendSection::default()
    }
}

fn simulated() -> BackendSection {
    BackendSection {
        name: Some("sim".to_owned()),
        dialect: Some(DialectName(Dialect::Responses)),
        base_url: Some(address::SIMULATED.to_owned()),
        // `run` and `chat` ask for no model of their own.
        default_model: Some("sim".to_owned()),
        ..BackendSection::default()
    }
}

/// Returns the provider's own models, each sent as it was asked for.
pub(super) fn listed(provider: &Provider) -> Models {
    Models(provider.models.iter().map(|name| ((*name).to_owned(), "*".to_owned())).collect())
}

impl Surroundings for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn variable_names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }

    fn read_found(&self, path: &Path) -> io::Result<FoundFile> {
        trust::find(self, path)
    }
}
