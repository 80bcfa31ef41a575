//! What the documents promise: decisions in order and complete, links that lead somewhere.

use super::{Finding, Source, assert_none, root, tree};

const DECISIONS: &str = "docs/decisions/";
const HEADINGS: &[&str] = &["## Context", "## Options", "## Decision", "## Consequences"];

#[test]
fn decisions_are_numbered_without_gaps() {
    let mut findings = Vec::new();
    for (index, decision) in decisions().iter().enumerate() {
        let expected = format!("{DECISIONS}{:04}-", index + 1);
        if !decision.path.starts_with(&expected) {
            findings.push(Finding::new(&decision.path, 1, format!("should begin with {expected}")));
        }
    }
    assert_none(&findings);
}

#[test]
fn decisions_argue() {
    let findings: Vec<Finding> = decisions().iter().filter_map(missing_heading).collect();
    assert_none(&findings);
}

#[test]
fn the_tests_that_the_conformance_table_names_are_there() {
    let tree = tree();
    let table = tree.iter().find(|source| source.path == "docs/conformance.md").expect("the table is there");
    let mut findings = Vec::new();
    let mut named = 0;
    for (line, test) in
        table.numbered_lines().flat_map(|(line, text)| named_tests(text).map(move |test| (line, test)))
    {
        named += 1;
        let (module, name) = test;
        let path = format!("crates/throughline-gateway/tests/it/{module}.rs");
        let function = format!("async fn {name}()");
        if !tree.iter().any(|source| source.path == path && source.text.contains(&function)) {
            findings.push(Finding::new(
                &table.path,
                line,
                format!("names {module}::{name}, which is not there"),
            ));
        }
    }
    assert!(named > 50, "only {named} tests are named; has the form of the table changed?");
    assert_none(&findings);
}

#[test]
fn the_tests_that_the_threat_model_names_are_there() {
    let tree = tree();
    let page = tree.iter().find(|source| source.path == "docs/security.md").expect("the page is there");
    let mut findings = Vec::new();
    let mut named = 0;
    for (line, text) in page.numbered_lines() {
        for code in text.split('`').skip(1).step_by(2) {
            let Some((module, name)) = code.split_once("::") else { continue };
            named += 1;
            let (krate, module) = match module.split_once('/') {
                Some((part @ ("tools" | "store" | "gateway"), rest)) => (format!("throughline-{part}"), rest),
                _ => ("throughline".to_owned(), module),
            };
            let path = format!("crates/{krate}/tests/it/{module}.rs");
            let function = format!("fn {name}()");
            if !tree.iter().any(|source| source.path == path && source.text.contains(&function)) {
                findings.push(Finding::new(&page.path, line, format!("names {code}, which is not there")));
            }
        }
    }
    assert!(named > 30, "only {named} tests are named; has the form of the page changed?");
    assert_none(&findings);
}

/// Returns the tests that a row of a table names, by module and name.
fn named_tests(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let row = if line.starts_with('|') { line } else { "" };
    row.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::"))
}

#[test]
fn relative_links_lead_somewhere() {
    let mut findings = Vec::new();
    for document in tree().iter().filter(|source| is_document(&source.path)) {
        for (line, target) in relative_links(document) {
            let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if !root().join(folder).join(target).exists() {
                findings.push(Finding::new(
                    &document.path,
                    line,
                    format!("links to {target}, which is not there"),
                ));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn links_are_told_from_code() {
    let text = "[a](one.md) and [b](two.md#part)\n```text\n[c](three.md)\n```\n`[d](four.md)` [e](https://example.com) [f](#here)\n";
    let document = Source { path: "a.md".to_owned(), text: text.to_owned() };
    assert_eq!(relative_links(&document), [(1, "one.md"), (1, "two.md")]);
}

#[test]
fn a_decision_without_options_is_found() {
    let text = "# 1\n\n## Context\n\n## Decision\n\n## Consequences\n";
    let document = Source { path: "a.md".to_owned(), text: text.to_owned() };
    let finding = missing_heading(&document).expect("a heading is missing");
    assert!(finding.what.contains("## Options"), "{finding}");
}

fn decisions() -> Vec<Source> {
    tree()
        .into_iter()
        .filter(|source| source.path.starts_with(DECISIONS) && source.extension() == "md")
        .filter(|source| !source.path.ends_with("/README.md"))
        .collect()
}

/// Returns the first heading that is absent or out of order.
fn missing_heading(decision: &Source) -> Option<Finding> {
    let mut lines = decision.text.lines();
    let missing = HEADINGS.iter().find(|heading| !lines.any(|line| line == **heading))?;
    Some(Finding::new(&decision.path, 1, format!("lacks `{missing}`, in the order {HEADINGS:?}")))
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/"))
}

/// Returns the files that a document links to, without the part after `#`.
fn relative_links(document: &Source) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut fenced = false;
    for (number, line) in document.numbered_lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second piece between backticks is code.
        let prose = line.split('`').step_by(2);
        let targets =
            prose.flat_map(|piece| piece.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
        let files = targets.filter_map(|target| target.split('#').next());
        links.extend(files.filter(|file| !file.is_empty() && !file.contains(':')).map(|file| (number, file)));
    }
    links
}
