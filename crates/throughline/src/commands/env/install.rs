//! `throughline env CLIENT --install`: what a client must be told, written into its own configuration.
//!
//! Only the values that matter are changed, in place. What was there is kept beside it, and `--uninstall` brings it back:
//! to the byte if nothing else was changed since, else value by value.

use super::clients::Gateway;
use super::edit::{add_toml, json_value, remove_json, remove_toml, set_json};
use super::key::{Key, PLACEHOLDER};
use crate::exit::CommandError;
use crate::private;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use throughline_wire::json::quote;

/// What the copy of a file is called, behind its own name.
const BACKUP: &str = "throughline-backup";

/// A client's own configuration.
struct Target {
    path: PathBuf,
    form: Form,
}

/// What belongs into it.
enum Form {
    /// Values of a JSON document, by their paths.
    Json(Vec<(Vec<&'static str>, String)>),
    /// Values at the top of a TOML file, and tables at its end.
    Toml(Vec<(&'static str, String)>, String),
}

/// What was done to a file.
pub struct Changed {
    /// The file.
    pub path: PathBuf,
    /// Where what was there before is kept.
    pub backup: Option<PathBuf>,
}

/// Writes what the client must be told.
pub fn install(client: &str, gateway: &Gateway<'_>) -> Result<Changed, CommandError> {
    let target = target(client, gateway)?;
    let path = resolved(&target.path);
    let before = read(&path)?;
    let text = target
        .form
        .added(before.as_deref().unwrap_or_default())
        .map_err(|why| refused(&path, &why, client))?;
    if let Some(folder) = path.parent() {
        private::create_folder(folder).map_err(|source| CommandError::file(folder.display(), source))?;
    }
    let backup = backup_of(&path);
    if let Some(before) = &before {
        // The first copy is the one without anything of ours.
        match private::write_new(&backup, before) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(CommandError::file(backup.display(), error));
            }
            _ => {}
        }
    }
    write(&path, &text)?;
    Ok(Changed { path, backup: before.is_some().then_some(backup) })
}

/// Takes out what was written.
pub fn uninstall(client: &str, gateway: &Gateway<'_>) -> Result<Changed, CommandError> {
    let target = target(client, gateway)?;
    let path = resolved(&target.path);
    let backup = backup_of(&path);
    let Some(now) = read(&path)? else {
        return Err(CommandError::no(format!("{}: there is no such file", path.display())));
    };
    let kept = read(&backup)?;
    let restored = target.form.removed(&now, kept.as_deref()).map_err(|why| refused(&path, &why, client))?;
    if restored == now {
        return Err(CommandError::no(format!("{}: nothing of ours is in it", path.display())));
    }
    write(&path, &restored)?;
    if kept.is_some() {
        std::fs::remove_file(&backup).map_err(|source| CommandError::file(backup.display(), source))?;
    }
    Ok(Changed { path, backup: None })
}

fn target(client: &str, gateway: &Gateway<'_>) -> Result<Target, CommandError> {
    let user = std::env::home_dir();
    let folder = |variable: &str, below: &str| {
        let named = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        named.or_else(|| Some(user.as_ref()?.join(below)))
    };
    let target = match client {
        "claude-code" => folder("CLAUDE_CONFIG_DIR", ".claude").map(|folder| Target {
            path: folder.join("settings.json"),
            form: Form::Json(claude_code(gateway)),
        }),
        "codex" => folder("CODEX_HOME", ".codex").map(|folder| {
            let (values, tables) = codex(gateway);
            Target { path: folder.join("config.toml"), form: Form::Toml(values, tables) }
        }),
        "opencode" => folder("XDG_CONFIG_HOME", ".config").map(|folder| Target {
            path: folder.join("opencode/opencode.json"),
            form: Form::Json(vec![(vec!["provider", "throughline"], opencode_provider(gateway))]),
        }),
        _ => {
            return Err(CommandError::bad_input(format!("{client} has no configuration that can be edited in place"))
                .hint(format!("`throughline env {client}` prints what it must be told; --install knows claude-code, codex and opencode")));
        }
    };
    target.ok_or_else(|| {
        CommandError::bad_input("HOME is not set, so the client's configuration cannot be found")
    })
}

fn claude_code(gateway: &Gateway<'_>) -> Vec<(Vec<&'static str>, String)> {
    let mut values = vec![(vec!["env", "ANTHROPIC_BASE_URL"], quote(gateway.url))];
    match gateway.key {
        Key::Own => {}
        Key::Any => values.push((vec!["env", "ANTHROPIC_AUTH_TOKEN"], quote(PLACEHOLDER))),
        // The file refers to the key and does not hold it.
        key => values.push((vec!["apiKeyHelper"], quote(&format!("printf %s {}", key.in_shell())))),
    }
    values
}

/// Returns what Codex is told: who provides its models.
pub fn codex(gateway: &Gateway<'_>) -> (Vec<(&'static str, String)>, String) {
    let env_key = gateway.key.variable().filter(|_| *gateway.key != Key::Own);
    let credentials = match env_key {
        Some(name) => format!("env_key = {}\n", quote(name)),
        None if *gateway.key == Key::Own => "requires_openai_auth = true\n".to_owned(),
        None => String::new(),
    };
    let tables = format!(
        "[model_providers.throughline]\nname = \"Throughline\"\nbase_url = {}\nwire_api = \"responses\"\n{credentials}",
        quote(&format!("{}/v1", gateway.url)),
    );
    (vec![("model_provider", "\"throughline\"".to_owned())], tables)
}

/// Returns what opencode is told of its provider.
pub fn opencode_provider(gateway: &Gateway<'_>) -> String {
    let key = gateway.key.variable().map_or_else(|| PLACEHOLDER.to_owned(), |name| format!("{{env:{name}}}"));
    let models: Vec<String> = gateway.models.iter().map(|model| format!("{}: {{}}", quote(model))).collect();
    format!(
        "{{ \"npm\": \"@ai-sdk/openai-compatible\", \"name\": \"Throughline\", \"options\": {{ \"baseURL\": {}, \
         \"apiKey\": {} }}, \"models\": {{ {} }} }}",
        quote(&format!("{}/v1", gateway.url)),
        quote(&key),
        models.join(", "),
    )
}

impl Form {
    fn added(&self, text: &str) -> Result<String, String> {
        match self {
            Self::Json(values) => {
                values.iter().try_fold(text.to_owned(), |text, (path, value)| set_json(&text, path, value))
            }
            Self::Toml(values, tables) => {
                let edited = add_toml(text, values, tables);
                edited.parse::<toml::Table>().map_err(|error| error.to_string())?;
                Ok(edited)
            }
        }
    }

    /// Returns the text without what was added: the copy, if nothing else was changed since.
    fn removed(&self, now: &str, kept: Option<&str>) -> Result<String, String> {
        if let Some(kept) = kept
            && self.added(kept).is_ok_and(|added| added == now)
        {
            return Ok(kept.to_owned());
        }
        match self {
            Self::Toml(..) => Ok(remove_toml(now)),
            Self::Json(values) => values.iter().try_fold(now.to_owned(), |text, (path, _)| {
                match kept.and_then(|kept| json_value(kept, path)) {
                    Some(before) => set_json(&text, path, &before),
                    None => remove_json(&text, path),
                }
            }),
        }
    }
}

/// Returns where a link leads: the file itself is edited.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn backup_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.{BACKUP}"))
}

fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CommandError::file(path.display(), source)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let permissions = std::fs::metadata(path).ok().map(|facts| facts.permissions());
    private::write(path, text).map_err(|source| CommandError::file(path.display(), source))?;
    if let Some(permissions) = permissions {
        std::fs::set_permissions(path, permissions)
            .map_err(|source| CommandError::file(path.display(), source))?;
    }
    Ok(())
}

fn refused(path: &Path, why: &str, client: &str) -> CommandError {
    CommandError::bad_input(format!("{}: {why}", path.display()))
        .hint(format!("nothing was changed; `throughline env {client}` prints what belongs into it"))
}
