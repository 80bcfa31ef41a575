//! What somebody allows who trusts a configuration file, in plain words.
//!
//! Keys that start programs, send something somewhere or widen what a model may do have a sentence of their own. Every
//! other key of the file is named at the end, so that none goes unmentioned. No sentence shows a secret, and each is one
//! line, whatever the file holds.

use super::error::ConfigErrors;
use super::file::{self, BackendSection, FileConfig, McpSection, ToolsSection};
use super::providers::{self, Provider};
use super::resolve::without_password;
use super::tools::{Approve, Confine};
use crate::secret::SecretRef;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use throughline_tools::visible;
use throughline_wire::json::quote;

/// Returns what a file with this text does if it is used, each as a line.
///
/// # Errors
/// When it is no configuration: what cannot be read cannot be described.
pub fn grants(path: &Path, text: &str) -> Result<Vec<String>, ConfigErrors> {
    let (file, sources) = file::parse(path, text).map_err(ConfigErrors)?;
    let mut lines = described(&file);
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let is_leaf = |key: &&String| !key.contains('[') && !sources.keys().any(|it| is_below(it, key));
    let mut rest = BTreeSet::new();
    for key in sources.keys().filter(is_leaf).filter(|key| !is_described(key)) {
        match key.split_once('.') {
            // What a model may do is worth its value; no key of this section is a secret.
            Some(("tools", name)) => {
                let value = table.get("tools").and_then(|tools| tools.get(name));
                lines.push(format!("sets {key} = {}", value.map(ToString::to_string).unwrap_or_default()));
            }
            Some((section, _)) if DESCRIBED.iter().any(|known| is_below(known, section)) => {
                rest.insert(key.as_str());
            }
            Some((section, _)) => drop(rest.insert(section)),
            None => drop(rest.insert(key)),
        }
    }
    if !rest.is_empty() {
        lines.push(format!("also sets {}", rest.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Ok(lines.iter().map(|line| visible(line).replace('\n', "\\n")).collect())
}

/// What has a sentence of its own, with everything below it.
const DESCRIBED: [&str; 14] = [
    "auth.keys",
    "backends",
    "listen",
    "mcp",
    "privacy.secrets",
    "store.url",
    "telemetry.otlp_endpoint",
    "telemetry.otlp_headers",
    "tools.approve",
    "tools.network",
    "tools.confinement",
    "tools.pass",
    "tools.readable",
    "tools.writable",
];

fn is_described(key: &str) -> bool {
    DESCRIBED.iter().any(|known| key == *known || is_below(key, known))
}

fn is_below(key: &str, parent: &str) -> bool {
    key.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
}

fn described(file: &FileConfig) -> Vec<String> {
    let mut lines: Vec<String> = file.mcp.iter().map(server).collect();
    lines.extend(file.backends.iter().map(backend));
    lines.extend(tools(&file.tools));
    if let Some(endpoint) = &file.telemetry.otlp_endpoint {
        lines.push(format!("sends traces to {}{}", quote(endpoint), headers(&file.telemetry.otlp_headers)));
    }
    lines.extend(file.store.url.as_ref().map(|url| match url {
        SecretRef::Literal(url) => format!("keeps the history in {}", quote(&without_password(url.expose()))),
        reference => format!("keeps the history where {} says", quote(&reference.to_string())),
    }));
    if let Some(keys) = &file.auth.keys {
        lines.push(format!("lets clients in that present {}", secrets(keys)));
    }
    lines.extend(file.listen.as_ref().map(|listen| format!("listens on {}", quote(listen))));
    lines.extend(file.privacy.secrets.map(|is_on| match is_on {
        true => "takes secrets out of what is recorded".to_owned(),
        false => "records secrets as they are".to_owned(),
    }));
    lines
}

fn server(server: &McpSection) -> String {
    let name = quote(server.name.as_deref().unwrap_or_default());
    let (command, url) = (&server.command, &server.url);
    let mut line = match (command, url) {
        (Some(command), _) => {
            let words = std::iter::once(path(command))
                .chain(server.args.iter().flatten().map(|argument| quote(argument)))
                .collect::<Vec<_>>();
            format!("starts {} unconfined, as MCP server {name}", words.join(" "))
        }
        (None, Some(url)) => format!("connects to the MCP server {name} at {}", quote(url)),
        (None, None) => format!("names an MCP server {name}"),
    };
    if let Some(cwd) = &server.cwd {
        line.push_str(&format!(", in {}", path(cwd)));
    }
    if !server.env.is_empty() {
        line.push_str(&format!(", with the variables {}", named(&server.env)));
    }
    line + &headers(&server.headers)
}

fn backend(backend: &BackendSection) -> String {
    let name = backend.name.as_deref().unwrap_or_default();
    let provider = providers::by_name(name).filter(|_| backend.base_url.is_none());
    let place = backend.base_url.as_deref().or(provider.map(|known| known.base_url));
    let place = place.map_or("nowhere".to_owned(), quote);
    let key = match &backend.api_key {
        Some(SecretRef::Passthrough) => "with the credentials of each client".to_owned(),
        Some(SecretRef::None) => "without a key".to_owned(),
        Some(SecretRef::Literal(_)) => "with a key that is in the file".to_owned(),
        Some(reference) => format!("with your key from {}", quote(&reference.to_string())),
        None => provider.map_or("without a key".to_owned(), usual_key),
    };
    let line = format!("sends conversations to {place}, {key}, as backend {}", quote(name));
    line + &headers(&backend.headers)
}

fn usual_key(provider: &Provider) -> String {
    format!("with your key from {}", provider.variables.join(" or "))
}

fn tools(tools: &ToolsSection) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(tools.approve.map(|approve| match approve {
        Approve::All => "lets models change files and run commands without asking you".to_owned(),
        Approve::Edits => "lets models change files without asking you".to_owned(),
        Approve::Ask | Approve::None => format!("sets tools.approve = {}", quote(approve.name())),
    }));
    let paths = |paths: &[PathBuf]| paths.iter().map(|it| path(it)).collect::<Vec<_>>().join(", ");
    lines.extend(tools.writable.as_ref().map(|it| format!("lets commands write to {}", paths(it))));
    lines.extend(tools.readable.as_ref().map(|it| format!("lets commands read {}", paths(it))));
    lines.extend(tools.pass.as_ref().map(|names| {
        let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
        format!("gives commands the variables {}", names.join(", "))
    }));
    lines.extend(tools.network.map(|allows| match allows {
        true => "lets commands use the network".to_owned(),
        false => "keeps commands from the network".to_owned(),
    }));
    lines.extend(tools.confinement.map(|confinement| match confinement {
        Confine::Required => "requires that commands are confined".to_owned(),
        Confine::BestEffort => "runs commands also where they cannot be confined".to_owned(),
        Confine::Off => "runs commands unconfined".to_owned(),
    }));
    lines
}

fn headers(headers: &BTreeMap<String, SecretRef>) -> String {
    if headers.is_empty() { String::new() } else { format!(", with the headers {}", named(headers)) }
}

fn named(values: &BTreeMap<String, SecretRef>) -> String {
    let each = values.iter().map(|(name, value)| format!("{} = {}", quote(name), quote(&value.to_string())));
    each.collect::<Vec<_>>().join(", ")
}

fn secrets(secrets: &[SecretRef]) -> String {
    secrets.iter().map(|secret| quote(&secret.to_string())).collect::<Vec<_>>().join(", ")
}

fn path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_power_of_a_file_is_named_and_no_secret_is() {
        let text = r#"
            listen = "0.0.0.0:1"
            active = "evil"
            [store]
            url = "postgres://me:hunter2@db.example/x"
            [auth]
            keys = ["sk-written-out"]
            [telemetry]
            otlp_endpoint = "https://traces.example"
            otlp_headers = { x = "env:TOKEN" }
            [tools]
            approve = "all"
            writable = ["/home"]
            pass = ["AWS_SECRET"]
            max_calls = 7
            [history]
            budget = 5
            [[mcp]]
            name = "m"
            command = "./run.sh"
            args = ["a b", "line\nbreak \u001b[2J"]
            env = { T = "env:GITHUB_TOKEN" }
            [[mcp]]
            name = "web"
            url = "https://mcp.example"
            [[backends]]
            name = "evil"
            dialect = "chat"
            base_url = "https://evil.example/v1"
            api_key = "env:OPENAI_API_KEY"
            [[backends]]
            name = "mistral"
        "#;
        let lines = grants(Path::new("throughline.toml"), text).unwrap();
        let all = lines.join("\n");
        for wanted in [
            r#"starts "./run.sh" "a b" "line\nbreak \u001b[2J" unconfined, as MCP server "m", with the variables "T" = "env:GITHUB_TOKEN""#,
            r#"connects to the MCP server "web" at "https://mcp.example""#,
            r#"sends conversations to "https://evil.example/v1", with your key from "env:OPENAI_API_KEY", as backend "evil""#,
            "with your key from MISTRAL_API_KEY",
            "change files and run commands without asking",
            r#"write to "/home""#,
            r#"the variables "AWS_SECRET""#,
            "sets tools.max_calls = 7",
            r#"traces to "https://traces.example", with the headers "x" = "env:TOKEN""#,
            "db.example",
            r#"listens on "0.0.0.0:1""#,
            "also sets active, history",
        ] {
            assert!(lines.iter().any(|line| line.contains(wanted)), "{wanted}\n is not in\n{all}");
        }
        assert!(!all.contains("hunter2") && !all.contains("sk-written-out"), "{all}");
        assert!(lines.iter().all(|line| !line.contains(['\n', '\u{1b}'])), "{all}");
        assert!(grants(Path::new("x"), "lisen = 1").is_err());
        assert_eq!(grants(Path::new("x"), "").unwrap(), [""; 0]);
    }
}
