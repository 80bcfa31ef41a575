//! Arguments in the spellings of many agents, and arguments that cannot be used.

use crate::bench::Bench;
use serde_json::{Value, json};
use std::time::Duration;
use throughline_tools::{Call, EditStep, GrepMode, Refused};

fn checked(tool: &str, arguments: &Value) -> Result<Call, Refused> {
    Bench::new().toolbox.check(tool, &arguments.to_string())
}

/// Asserts that every spelling means what the first one does.
fn all_mean_the_same(spellings: &[(&str, Value)]) {
    let bench = Bench::new();
    let check = |(tool, arguments): &(&str, Value)| {
        bench.toolbox.check(tool, &arguments.to_string()).unwrap_or_else(|error| panic!("{tool}: {error}"))
    };
    let first = check(&spellings[0]);
    for spelling in spellings {
        assert_eq!(check(spelling), first, "{spelling:?}");
    }
}

#[test]
fn read_in_every_spelling() {
    all_mean_the_same(&[
        ("read", json!({"path": "a", "offset": 3, "limit": 5})),
        ("Read", json!({"file_path": "a", "offset": 3, "limit": 5})),
        ("read_file", json!({"absolute_path": "a", "offset": 3, "limit": 5})),
        ("ReadFile", json!({"filename": "a", "start_line": 3, "end_line": 7})),
        ("cat", json!({"file": "a", "offset": "3", "limit": 5.0})),
        ("view", json!({"filePath": "a", "view_range": [3, 7]})),
        ("str_replace_editor", json!({"command": "view", "path": "a", "view_range": [3, 7]})),
        ("str_replace_based_edit_tool", json!({"command": "view", "path": "a", "view_range": [3, 7]})),
        (
            "read",
            json!({"path": "a", "offset": 3, "limit": 5, "explanation": "to see it", "view_range": null}),
        ),
    ]);
}

#[test]
fn write_in_every_spelling() {
    all_mean_the_same(&[
        ("write", json!({"path": "a", "content": "x"})),
        ("Write", json!({"file_path": "a", "content": "x"})),
        ("write_file", json!({"filename": "a", "contents": "x"})),
        ("create_file", json!({"filePath": "a", "text": "x"})),
        ("write_to_file", json!({"path": "a", "content": "x"})),
        ("str_replace_editor", json!({"command": "create", "path": "a", "file_text": "x"})),
    ]);
}

#[test]
fn edit_in_every_spelling() {
    all_mean_the_same(&[
        ("edit", json!({"path": "a", "old_string": "x", "new_string": "y"})),
        ("Edit", json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": false})),
        ("str_replace", json!({"path": "a", "old_str": "x", "new_str": "y"})),
        (
            "replace",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "expected_replacements": 1}),
        ),
        ("MultiEdit", json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]})),
        (
            "str_replace_editor",
            json!({"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}),
        ),
    ]);
    let all =
        checked("edit", &json!({"path": "a", "old_string": "x", "new_string": "y", "replace_all": true}));
    let Ok(Call::Edit(edit)) = all else { panic!("{all:?}") };
    assert!(matches!(&edit.steps[..], [EditStep::Replace { all: true, .. }]));
    let insert = json!({"command": "insert", "path": "a", "insert_line": 2, "new_str": "y"});
    let Ok(Call::Edit(edit)) = checked("str_replace_editor", &insert) else { panic!("an edit was expected") };
    assert_eq!(edit.steps, [EditStep::Insert { line: 2, text: "y".to_owned() }]);
}

#[test]
fn apply_patch_in_every_spelling() {
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    all_mean_the_same(&[
        ("apply_patch", json!({"patch": patch})),
        ("apply_patch", json!({"input": patch})),
        ("ApplyPatch", json!({"patchText": patch})),
        ("apply_diff", json!({"diff": patch})),
        ("shell", json!({"command": ["apply_patch", patch]})),
    ]);
    let heredoc =
        |patch: &str| json!({"command": ["bash", "-lc", format!("apply_patch <<'EOF'\n{patch}\nEOF\n")]});
    let Ok(Call::ApplyPatch(written)) = checked("shell", &heredoc(patch)) else {
        panic!("a patch was expected")
    };
    assert_eq!(written.patch, format!("{patch}\n"));
    let unquoted = json!({"command": format!("apply_patch <<EOF\n{patch}\nEOF\n")});
    assert!(
        matches!(checked("bash", &unquoted), Ok(Call::Bash(_))),
        "a shell would look for variables in it"
    );
    let free = Bench::new().toolbox.check("apply_patch", patch).unwrap();
    assert_eq!(free, checked("apply_patch", &json!({"patch": patch})).unwrap());
}

#[test]
fn bash_in_every_spelling() {
    all_mean_the_same(&[
        ("bash", json!({"command": "ls -l", "cwd": "src", "timeout_seconds": 5})),
        ("Bash", json!({"command": "ls -l", "cwd": "src", "timeout": 5000, "description": "List"})),
        ("shell", json!({"command": ["bash", "-lc", "ls -l"], "workdir": "src", "timeout_ms": 5000})),
        ("shell", json!({"command": ["ls", "-l"], "workdir": "src", "timeout": 5})),
        (
            "exec_command",
            json!({"cmd": "ls -l", "workdir": "src", "timeout_ms": "5000", "yield_time_ms": 100}),
        ),
        ("run_shell_command", json!({"command": "ls -l", "directory": "src", "timeout_seconds": 5})),
        ("run_command", json!({"script": "ls -l", "working_directory": "src", "timeout": 5})),
    ]);
    let Ok(Call::Bash(bash)) = checked("shell", &json!({"command": ["echo", "it's", "a b", ""]})) else {
        panic!("a command was expected")
    };
    assert_eq!(bash.command, r"echo 'it'\''s' 'a b' ''");
    assert_eq!(bash.time_limit, None::<Duration>);
}

#[test]
fn searches_in_every_spelling() {
    all_mean_the_same(&[
        ("glob", json!({"pattern": "*.rs", "path": "src"})),
        ("Glob", json!({"pattern": "*.rs", "path": "src"})),
        ("find_files", json!({"glob_pattern": "*.rs", "directory": "src"})),
    ]);
    all_mean_the_same(&[
        (
            "grep",
            json!({"pattern": "fn", "path": "src", "glob": "*.rs", "ignore_case": true, "mode": "files", "limit": 9}),
        ),
        (
            "Grep",
            json!({"pattern": "fn", "path": "src", "glob": "*.rs", "-i": true, "-n": true, "output_mode": "files_with_matches", "head_limit": 9}),
        ),
        (
            "search",
            json!({"regex": "fn", "dir_path": "src", "include": "*.rs", "case_sensitive": false, "mode": "files", "max_results": 9}),
        ),
        (
            "ripgrep",
            json!({"query": "fn", "path": "src", "include_pattern": "*.rs", "case_insensitive": true, "mode": "files", "limit": 9}),
        ),
    ]);
    all_mean_the_same(&[
        ("grep", json!({"pattern": "fn", "before": 2, "after": 2})),
        ("Grep", json!({"pattern": "fn", "-C": 2})),
        ("Grep", json!({"pattern": "fn", "-A": 2, "-B": 2})),
    ]);
    all_mean_the_same(&[
        ("ls", json!({"path": "src"})),
        ("LS", json!({"path": "src"})),
        ("list_dir", json!({"dir_path": "src"})),
        ("list_directory", json!({"directory": "src", "ignored": false})),
    ]);
    let Ok(Call::Grep(grep)) = checked("grep", &json!({"pattern": "x", "output_mode": "count"})) else {
        panic!("a grep was expected")
    };
    assert_eq!((grep.mode, grep.before), (GrepMode::Count, 0));
}

#[test]
fn names_resolve_to_ours() {
    let toolbox = Bench::new().toolbox;
    let names = [
        ("Read", "read"),
        ("list_dir", "ls"),
        ("container.exec", "bash"),
        ("rg", "grep"),
        ("text_editor", "edit"),
    ];
    for (name, ours) in names {
        assert_eq!(toolbox.resolve(name), Some(ours), "{name}");
    }
    assert_eq!(toolbox.resolve("teleport"), None);
    let declared: Vec<String> = toolbox.declare().into_iter().map(|it| it.name.into_owned()).collect();
    assert_eq!(declared, ["read", "write", "edit", "apply_patch", "bash", "glob", "grep", "ls"]);
    assert_eq!(toolbox.declare(), Bench::new().toolbox.declare(), "a declaration is the same every time");
}

#[test]
fn what_is_declared_is_what_is_read() {
    // Every declared property, alone with those that are required, is accepted by the tool that declares it.
    let toolbox = Bench::new().toolbox;
    for tool in toolbox.declare() {
        let schema: Value = serde_json::from_str(&tool.schema).unwrap();
        let value_of = |property: &Value| match property["type"].as_str().unwrap() {
            "string" => property["enum"].get(0).cloned().unwrap_or(json!("text")),
            "integer" => json!(1),
            "boolean" => json!(true),
            "array" => json!(["text"]),
            other => panic!("{other} is of no type that is known"),
        };
        let properties = schema["properties"].as_object().unwrap();
        let mut required = serde_json::Map::new();
        for name in schema["required"].as_array().unwrap_or(&Vec::new()) {
            let name = name.as_str().unwrap();
            required.insert(name.to_owned(), value_of(&properties[name]));
        }
        for (name, property) in properties {
            let mut arguments = required.clone();
            arguments.insert(name.clone(), value_of(property));
            let text = Value::Object(arguments).to_string();
            toolbox.check(&tool.name, &text).unwrap_or_else(|error| panic!("{}: {error}", tool.name));
        }
        for name in required.keys() {
            let mut arguments = required.clone();
            arguments.remove(name);
            let refused = toolbox.check(&tool.name, &Value::Object(arguments).to_string());
            assert!(refused.is_err_and(|it| it.to_string().contains(name)), "{}: {name}", tool.name);
        }
    }
}

#[test]
fn an_error_names_the_field_what_was_expected_and_what_came() {
    are_refused(&[
        (
            "read",
            json!({}),
            "the arguments of read cannot be used: `path` is missing: expected a string, the path of a file",
        ),
        (
            "Read",
            json!({"file_path": 7}),
            "`file_path`: expected a string, the path of a file, but the number 7 came",
        ),
        (
            "read",
            json!({"path": "a", "offset": "x"}),
            "`offset`: expected a whole number of at least 0, but the string \"x\" came",
        ),
        (
            "read",
            json!({"path": "a", "limit": 0}),
            "`limit`: expected a whole number of at least 1, but the number 0 came",
        ),
        (
            "read",
            json!({"path": "a", "lines": 3}),
            "`lines`: expected no such field for read, but the number 3 came",
        ),
        ("read", json!({"path": "a", "file_path": "b"}), "`file_path`: expected nothing beside `path`"),
        ("write", json!({"path": "a"}), "`content` is missing"),
        (
            "write",
            json!({"path": "a", "content": {"x": 1}}),
            "`content`: expected a string, the whole new content, but an object came",
        ),
        ("edit", json!({"path": "a", "old_string": "x"}), "`new_string` is missing"),
        (
            "edit",
            json!({"path": "a", "old_string": "x", "new_string": "y", "replace_all": "yes"}),
            "`replace_all`: expected true or false",
        ),
        (
            "MultiEdit",
            json!({"path": "a", "edits": [{"old_string": "x"}]}),
            "`edits[0].new_string` is missing",
        ),
        ("MultiEdit", json!({"path": "a", "edits": []}), "but an empty list came"),
    ]);
}

#[test]
fn an_error_about_a_command_or_a_search_does_too() {
    are_refused(&[
        ("bash", json!({}), "`command` is missing"),
        ("bash", json!({"command": "  "}), "`command`: expected a string, the command line"),
        ("bash", json!({"command": ["ls", 3]}), "a list with something else in it"),
        ("bash", json!({"command": "x", "run_in_background": true}), "`run_in_background`: expected false"),
        (
            "bash",
            json!({"command": "x", "timeout_seconds": -1}),
            "`timeout_seconds`: expected a whole number of at least 1",
        ),
        (
            "grep",
            json!({"pattern": "x", "mode": "lines"}),
            "`mode`: expected one of content, files, count, but \"lines\" came",
        ),
        ("glob", json!({"path": "a"}), "`pattern` is missing"),
        ("ls", json!({"path": ["a"]}), "`path`: expected a string, but a list of 1 came"),
        (
            "str_replace_editor",
            json!({"command": "undo_edit", "path": "a"}),
            "`command`: expected one of view, create, str_replace, insert",
        ),
        ("str_replace_editor", json!({"path": "a"}), "`command` is missing"),
        (
            "str_replace_editor",
            json!({"command": "insert", "path": "a", "new_str": "x"}),
            "`insert_line` is missing",
        ),
        ("read", json!({"path": "a", "view_range": [5, 2]}), "`view_range`: expected two line numbers"),
        ("apply_patch", json!({"patch": 1}), "`patch`: expected a string, the patch"),
    ]);
}

/// Asserts that each call is refused, in words that hold these.
fn are_refused(cases: &[(&str, Value, &str)]) {
    for (tool, arguments, wanted) in cases {
        let error = checked(tool, arguments).expect_err("it is refused").to_string();
        assert!(error.contains(wanted), "{tool} {arguments}\n{error}");
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let Err(Refused::BadFields { problems, .. }) =
        checked("edit", &json!({"replace_all": 1, "colour": "red"}))
    else {
        panic!("it is refused")
    };
    let fields: Vec<&str> = problems.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, ["path", "old_string", "new_string", "replace_all", "colour"]);
}

#[test]
fn what_is_no_object_is_told() {
    let toolbox = Bench::new().toolbox;
    let cases = [
        ("[1]", "a list of 1 came"),
        ("\"ls\"", "the string \"ls\" came"),
        ("{\"path\": \"a\"", "this is no JSON"),
        ("null", "null came"),
    ];
    for (arguments, wanted) in cases {
        let error = toolbox.check("read", arguments).unwrap_err().to_string();
        assert!(error.contains("the arguments of read must be a JSON object"), "{error}");
        assert!(error.contains(wanted), "{error}");
    }
    assert!(toolbox.check("ls", "").is_ok(), "nothing at all is taken for an empty object");
    let unknown = toolbox.check("teleport", "{}").unwrap_err();
    assert_eq!(
        unknown.outcome().output,
        "{\"error\":\"there is no tool \\\"teleport\\\"; the tools are read, write, edit, apply_patch, bash, glob, grep, ls\"}"
    );
}
