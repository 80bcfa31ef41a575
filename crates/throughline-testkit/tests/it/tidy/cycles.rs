//! No module imports itself by way of others.
//!
//! Modules that stand side by side in one folder form a graph: one points to another if anything in it imports
//! anything from there. What a folder re-exports is looked up where it is defined. A module may use what its own
//! folder's `mod.rs` defines, so arrows up and down the tree are not counted.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Source, assert_none, rust_files};

/// Arrows that close a cycle and are still to be turned around, by crate. The list only ever gets shorter.
const KNOWN: &[(&str, &str, &str)] = &[
    ("throughline", "args", "completion"),
    ("throughline", "commands", "completion"),
    ("throughline", "commands::export", "commands::import"),
    ("throughline", "commands::export", "commands::run"),
    ("throughline", "commands::import::find", "commands::import::opencode"),
    ("throughline-carry", "claude_code", "fit"),
    ("throughline-carry", "claude_code", "write"),
    ("throughline-carry", "codex", "fit"),
    ("throughline-carry", "codex", "write"),
    ("throughline-carry", "fit", "opencode"),
    ("throughline-carry", "opencode", "write"),
    ("throughline-core", "entry", "provenance"),
    ("throughline-core", "exit", "plan"),
    ("throughline-core", "plan::paths", "plan::survey"),
    ("throughline-core", "prompt", "normalise"),
    ("throughline-core", "render", "normalise"),
    ("throughline-eval", "excerpt", "scene"),
    ("throughline-eval", "ladder", "policy"),
    ("throughline-eval", "policy", "throughline"),
    ("throughline-eval", "scene", "throughline"),
    ("throughline-gateway", "config::file", "config::tools"),
    ("throughline-gateway", "config::profiles", "config::resolve"),
    ("throughline-gateway", "config::providers", "config::source"),
    ("throughline-gateway", "config::resolve", "config::backend"),
    ("throughline-gateway", "config::resolve", "config::source"),
    ("throughline-gateway", "config::resolve", "config::telemetry"),
    ("throughline-gateway", "config::resolve", "config::trust"),
    ("throughline-gateway", "config::source", "config::trust"),
    ("throughline-gateway", "config::source", "config::variables"),
    ("throughline-gateway", "config::tools", "config::resolve"),
    ("throughline-gateway", "exchange::compact", "exchange::place"),
    ("throughline-gateway", "exchange::place", "exchange::handover"),
    ("throughline-gateway", "exchange::place", "exchange::known"),
    ("throughline-gateway", "exchange::planning", "exchange::prompting"),
    ("throughline-gateway", "exchange::planning", "exchange::record"),
    ("throughline-gateway", "exchange::planning", "exchange::retell"),
    ("throughline-gateway", "gateway", "exchange"),
    ("throughline-gateway", "view::failure", "view::json"),
    ("throughline-gateway", "view::reason", "view::seen"),
    ("throughline-sim", "server", "routes"),
    ("throughline-store", "checksum", "upkeep"),
    ("throughline-store", "kept", "batch"),
    ("throughline-store", "postgres::prune", "postgres::upkeep"),
    ("throughline-store", "sqlite::upkeep", "sqlite::verify"),
    ("throughline-store", "upkeep", "sqlite"),
    ("throughline-tokens", "merge", "vocabulary"),
    ("throughline-tools", "call", "mcp"),
    ("throughline-tools", "mcp::bounded", "mcp::connection"),
    ("throughline-tools", "mcp::connection", "mcp::http"),
    ("throughline-tools", "toolbox", "mcp"),
    ("throughline-tools", "toolbox", "shell"),
    ("throughline-wire", "chat::calls", "chat::history"),
    ("throughline-wire", "dialects", "heal"),
    ("throughline-wire", "dialects", "responses"),
    ("throughline-wire", "json::index", "json::scan"),
];

/// The name of a module: the folders and the file that lead to it.
type Path = Vec<String>;

/// What one file of a crate imports.
#[derive(Debug, Default)]
struct Module {
    /// Paths as they are written, relative to the module.
    paths: BTreeSet<String>,
    /// What each imported name stands for, so that it can be followed when others import it from here.
    names: BTreeMap<String, String>,
}

/// The arrows among the modules of one folder.
type Arrows = BTreeSet<(String, String)>;

#[test]
fn no_module_imports_itself_by_way_of_others() {
    let mut findings = Vec::new();
    for (krate, modules) in crates(&rust_files()) {
        for (folder, mut arrows) in arrows_by_folder(&modules) {
            for (_, from, to) in KNOWN.iter().filter(|(known, ..)| *known == krate) {
                arrows.remove(&((*from).to_owned(), (*to).to_owned()));
            }
            if let Some(cycle) = find_cycle(&arrows) {
                let file = format!("crates/{krate}/src/{}", folder.join("/"));
                findings.push(Finding::new(
                    &file,
                    1,
                    format!("modules import each other: {}", cycle.join(" → ")),
                ));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn every_known_arrow_still_closes_a_cycle() {
    let mut findings = Vec::new();
    let crates = crates(&rust_files());
    for (krate, from, to) in KNOWN {
        let arrows: Arrows = crates
            .get(*krate)
            .into_iter()
            .flat_map(arrows_by_folder)
            .flat_map(|(_, arrows)| arrows)
            .collect();
        let is_there = arrows.contains(&((*from).to_owned(), (*to).to_owned()));
        if !is_there || !leads_to(&arrows, to, from) {
            let what = format!("{from} → {to} closes no cycle any more: take it out of KNOWN");
            findings.push(Finding::new(&format!("crates/{krate}"), 1, what));
        }
    }
    assert_none(&findings);
}

#[test]
fn imports_are_read_as_they_are_written() {
    let text = "\
//! use crate::comment;
use super::{self, a::{B, c as d}, e};
pub(crate) use crate::f::G;

fn h() {
    crate::i::j();
}

#[cfg(test)]
mod tests {
    use crate::k;
}
";
    let module = Module::read(text);
    let expected = ["crate::f::G", "crate::i::j", "super::a::B", "super::a::c", "super::e", "super::self"];
    assert_eq!(module.paths.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(module.names.get("d").map(String::as_str), Some("super::a::c"));
}

#[test]
fn a_cycle_is_found_and_named() {
    let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let arrows = Arrows::from([arrow("a", "b"), arrow("b", "c"), arrow("c", "b")]);
    assert_eq!(find_cycle(&arrows), Some(["b", "c", "b"].map(str::to_owned).to_vec()));
    assert_eq!(find_cycle(&Arrows::from([arrow("a", "b"), arrow("a", "c"), arrow("b", "c")])), None);
}

/// Returns the modules of each crate of the workspace.
fn crates(files: &[Source]) -> BTreeMap<String, BTreeMap<Path, Module>> {
    let mut crates: BTreeMap<String, BTreeMap<Path, Module>> = BTreeMap::new();
    for file in files {
        let Some((krate, path)) = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let mut path: Path = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        match path.last().map(String::as_str) {
            Some("tests") => continue,
            Some("mod" | "lib" | "main") => drop(path.pop()),
            _ => {}
        }
        crates.entry(krate.to_owned()).or_default().insert(path, Module::read(&file.text));
    }
    crates
}

impl Module {
    fn read(text: &str) -> Self {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let code: String = text.lines().filter(is_code).map(|line| line.to_owned() + "\n").collect();

        let mut module = Self::default();
        for statement in code.split(';') {
            let Some((before, tree)) = split_use(statement) else { continue };
            if before.is_empty() || before.starts_with("pub") {
                for (path, name) in expand(tree) {
                    module.names.insert(name, path.clone());
                    module.paths.insert(path);
                }
            }
        }
        for start in ["crate::", "super::"] {
            let inline = code.match_indices(start).map(|(at, _)| &code[at..]);
            module.paths.extend(inline.map(path_at).filter(|path| !path.ends_with("::")));
        }
        module
    }

    fn imports(&self) -> impl Iterator<Item = &String> {
        self.paths.iter()
    }
}

/// Splits the last line of a statement that begins with `use` into what stands before it and what it names.
fn split_use(statement: &str) -> Option<(&str, &str)> {
    let at = statement
        .rfind("use ")
        .filter(|at| statement[..*at].chars().next_back().is_none_or(char::is_whitespace))?;
    let before = statement[..at].rsplit('\n').next().unwrap_or_default();
    Some((before.trim(), statement[at + "use ".len()..].trim()))
}

/// Returns the paths that a tree of imports names, each with the name that it is known by.
fn expand(tree: &str) -> Vec<(String, String)> {
    let Some((before, inner)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree));
        let name = name.rsplit("::").next().unwrap_or(name);
        return vec![(path.trim().to_owned(), name.trim().to_owned())];
    };
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let mut depth = 0_i32;
    let branches = inner.split(|character: char| {
        depth += i32::from(character == '{') - i32::from(character == '}');
        character == ',' && depth == 0
    });
    let branches = branches.map(str::trim).filter(|branch| !branch.is_empty());
    let whole = |(path, name): (String, String)| (format!("{}{path}", before.trim()), name);
    branches.flat_map(expand).map(whole).collect()
}

/// Returns the path that a text begins with.
fn path_at(text: &str) -> String {
    let end =
        text.find(|character: char| !(character.is_alphanumeric() || character == '_' || character == ':'));
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Returns the arrows among the modules of each folder; modules are named by their whole paths.
fn arrows_by_folder(modules: &BTreeMap<Path, Module>) -> BTreeMap<Path, Arrows> {
    let mut folders: BTreeMap<Path, Arrows> = BTreeMap::new();
    for (from, module) in modules {
        for path in module.imports() {
            let Some(to) = resolve(modules, from, path, 0) else { continue };
            let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
            if shared < from.len() && shared < to.len() {
                let arrow = (from[..=shared].join("::"), to[..=shared].join("::"));
                folders.entry(from[..shared].to_vec()).or_default().insert(arrow);
            }
        }
    }
    folders
}

/// How many re-exports of one name are followed.
const REEXPORTS_MAX: u32 = 6;

/// Returns the module that defines what a path names, if it is one of this crate.
fn resolve(modules: &BTreeMap<Path, Module>, from: &Path, path: &str, depth: u32) -> Option<Path> {
    let mut steps: Vec<&str> = path.split("::").filter(|step| !step.is_empty()).collect();
    let mut whole: Path = match steps[0] {
        "crate" => Path::new(),
        "self" | "super" => from.clone(),
        first => {
            let child: Path = from.iter().cloned().chain([first.to_owned()]).collect();
            modules.contains_key(&child).then(|| from.clone())?
        }
    };
    while steps.first().is_some_and(|step| ["crate", "self", "super"].contains(step)) {
        if steps.remove(0) == "super" {
            whole.pop();
        }
    }
    whole.extend(steps.iter().filter(|step| **step != "self").map(|step| (*step).to_owned()));

    let end = (0..=whole.len()).rev().find(|end| modules.contains_key(&whole[..*end]))?;
    let (module, rest) = whole.split_at(end);
    let module = module.to_vec();
    let known = rest.first().and_then(|name| modules[&module].names.get(name));
    match known.filter(|_| depth < REEXPORTS_MAX) {
        Some(known) => Some(resolve(modules, &module, known, depth + 1).unwrap_or(module)),
        None => Some(module),
    }
}

/// Returns the modules of a cycle, in the order of its arrows.
fn find_cycle(arrows: &Arrows) -> Option<Vec<String>> {
    let (from, to) = arrows.iter().find(|(from, to)| leads_to(arrows, to, from))?;
    let mut cycle = vec![from.clone(), to.clone()];
    while cycle.last() != Some(from) {
        let last = cycle[cycle.len() - 1].clone();
        let next = arrows.iter().find(|(step, next)| {
            *step == last && (next == from || !cycle.contains(next) && leads_to(arrows, next, from))
        });
        cycle.push(next?.1.clone());
    }
    Some(cycle)
}

/// Says whether the arrows lead from one module to another.
fn leads_to(arrows: &Arrows, from: &str, to: &str) -> bool {
    let mut reached = BTreeSet::from([from]);
    let mut new = vec![from];
    while let Some(module) = new.pop() {
        for (_, next) in arrows.iter().filter(|(step, _)| step == module) {
            if reached.insert(next) {
                new.push(next);
            }
        }
    }
    from != to && reached.contains(to)
}
