//! Shell commands looked into as far as the planner must: what they run, and what they write.
//!
//! This is no shell. It splits a command line into simple commands and redirections; whatever it does not understand
//! counts as something that may have changed anything, never as harmless.

/// A command line, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
struct CommandLine {
    /// The words of each simple command, without quotes.
    commands: Vec<Vec<String>>,
    /// The files that output goes to.
    redirects: Vec<String>,
    /// Whether it holds a here-document or a substitution.
    is_nested: bool,
}

/// What a command writes, as far as its words tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Files and directories.
    pub files: Vec<String>,
    /// Whether it may have written any file: a checkout, a formatter.
    pub anything: bool,
}

/// Says whether a command is known to change nothing; in doubt it is not.
pub(super) fn is_read_only(command: &str) -> bool {
    let line = CommandLine::parse(command);
    let is_harmless = |words: &Vec<String>| is_harmless(words);
    !line.is_nested
        && !line.commands.is_empty()
        && line.redirects.iter().all(|file| is_sink(file))
        && line.commands.iter().all(is_harmless)
}

/// Returns what a command writes.
pub(super) fn written(command: &str) -> Written {
    let line = CommandLine::parse(command);
    let mut written = Written::default();
    written.files.extend(line.redirects.into_iter().filter(|file| !is_sink(file)));
    for words in &line.commands {
        add_written(words, &mut written);
    }
    written
}

/// Returns the directory that a command changes to first, if it is an absolute one.
pub(super) fn directory(command: &str) -> Option<String> {
    let line = CommandLine::parse(command);
    let first = line.commands.first()?;
    let first = inner(first).map_or_else(
        || first.clone(),
        |text| CommandLine::parse(&text).commands.into_iter().next().unwrap_or_default(),
    );
    match first.as_slice() {
        [cd, directory, ..] if cd == "cd" && directory.starts_with('/') => Some(directory.clone()),
        _ => None,
    }
}

fn is_sink(file: &str) -> bool {
    matches!(file, "/dev/null" | "/dev/stdout" | "/dev/stderr")
}

impl CommandLine {
    fn parse(text: &str) -> Self {
        let mut line = Self::default();
        let (mut words, mut word) = (Vec::new(), Word::default());
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => word.push(chars.next().unwrap_or('\\')),
                '\'' => {
                    word.begin();
                    chars.by_ref().take_while(|c| *c != '\'').for_each(|c| word.push(c));
                }
                '"' => {
                    word.begin();
                    while let Some(c) = chars.next().filter(|c| *c != '"') {
                        match c {
                            '\\' => word.push(chars.next().unwrap_or('\\')),
                            '`' => line.is_nested = true,
                            '$' if chars.peek() == Some(&'(') => line.is_nested = true,
                            c => word.push(c),
                        }
                    }
                }
                '`' => line.is_nested = true,
                '$' if chars.peek() == Some(&'(') => line.is_nested = true,
                '<' => {
                    word.end_into(&mut words);
                    line.is_nested |= matches!(chars.peek(), Some('<' | '('));
                }
                '&' if chars.peek() == Some(&'>') => {}
                '>' => {
                    word.end_before_redirect(&mut words);
                    line.redirects.extend(target(&mut chars));
                }
                ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}' if !is_inside(c, &word) => {
                    word.end_into(&mut words);
                    line.take(&mut words);
                }
                c if c.is_whitespace() => word.end_into(&mut words),
                c => word.push(c),
            }
        }
        word.end_into(&mut words);
        line.take(&mut words);
        line
    }

    fn take(&mut self, words: &mut Vec<String>) {
        if !words.is_empty() {
            self.commands.push(std::mem::take(words));
        }
    }
}

/// Braces belong to words such as `{a,b}`; alone they group.
fn is_inside(c: char, word: &Word) -> bool {
    matches!(c, '{' | '}') && word.is_begun
}

#[derive(Default)]
struct Word {
    text: String,
    is_begun: bool,
}

impl Word {
    const fn begin(&mut self) {
        self.is_begun = true;
    }

    fn push(&mut self, c: char) {
        self.is_begun = true;
        self.text.push(c);
    }

    fn end_into(&mut self, words: &mut Vec<String>) {
        if std::mem::take(&mut self.is_begun) {
            words.push(std::mem::take(&mut self.text));
        }
    }

    /// The number in front of `>` names a stream.
    fn end_before_redirect(&mut self, words: &mut Vec<String>) {
        if self.text.bytes().all(|byte| byte.is_ascii_digit()) {
            *self = Self::default();
        }
        self.end_into(words);
    }
}

/// Returns the file behind `>`; nothing where one stream goes into another.
fn target(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    while chars.next_if(|c| matches!(c, '>' | '|')).is_some() {}
    if chars.next_if(|c| *c == '&').is_some() {
        while chars.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {}
        return None;
    }
    while chars.next_if(|c| *c == ' ').is_some() {}
    let mut file = String::new();
    while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | ')')) {
        if !matches!(c, '"' | '\'') {
            file.push(c);
        }
    }
    Some(file)
}

/// Returns the program of a simple command and its arguments, behind assignments and programs that only run others.
fn program(words: &[String]) -> Option<(&str, &[String])> {
    let mut at = 0;
    loop {
        let word = words.get(at)?;
        let name = word.rsplit('/').next().unwrap_or(word);
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        match name {
            _ if is_assignment => at += 1,
            "time" | "nice" | "nohup" | "command" | "exec" | "then" | "do" | "else" | "!" | "sudo"
            | "env" | "if" | "while" => at += 1,
            "timeout" => at += 2,
            "xargs" => {
                at += 1;
                while words.get(at).is_some_and(|word| word.starts_with('-')) {
                    at += 1;
                }
            }
            _ => return Some((name, &words[at + 1..])),
        }
    }
}

/// Returns the command that a shell is given to run.
fn inner(words: &[String]) -> Option<String> {
    let (name, arguments) = program(words)?;
    let flag = arguments.first().filter(|flag| flag.starts_with('-') && flag.ends_with('c'))?;
    let is_shell = matches!(name, "bash" | "sh" | "zsh" | "dash") && !flag.is_empty();
    is_shell.then(|| arguments[1..].join(" "))
}

fn is_harmless(words: &[String]) -> bool {
    if let Some(text) = inner(words) {
        return is_read_only(&text);
    }
    let Some((name, arguments)) = program(words) else { return true };
    let has = |wanted: &[&str]| arguments.iter().any(|argument| wanted.contains(&argument.as_str()));
    let starts = |start: &str| arguments.iter().any(|argument| argument.starts_with(start));
    match name {
        "sed" => !starts("-i") && !starts("--in-place"),
        "find" | "fd" => !has(&["-delete", "-exec", "-execdir", "-ok", "-fprint", "-x", "-X"]),
        "sort" => !starts("-o"),
        "awk" | "gawk" => !arguments.iter().any(|text| text.contains("system(") || text.contains('>')),
        "curl" => false,
        _ if HARMLESS.contains(&name) => true,
        _ => {
            let verb = arguments.iter().find(|argument| !argument.starts_with('-'));
            let verb = verb.map_or("", String::as_str);
            HARMLESS_WITH.iter().any(|(program, verbs)| *program == name && verbs.contains(&verb))
                && !has(&["--fix", "--write", "-w", "-D", "-d", "--delete", "-m"])
        }
    }
}

/// Programs that only look, whatever their arguments.
const HARMLESS: &[&str] = &[
    "ls",
    "cat",
    "head",
    "tail",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "wc",
    "cd",
    "pwd",
    "echo",
    "printf",
    "true",
    "false",
    "test",
    "[",
    "stat",
    "file",
    "du",
    "df",
    "tree",
    "diff",
    "cmp",
    "comm",
    "cut",
    "tr",
    "uniq",
    "nl",
    "od",
    "xxd",
    "hexdump",
    "strings",
    "which",
    "whereis",
    "type",
    "whoami",
    "id",
    "date",
    "uname",
    "hostname",
    "env",
    "printenv",
    "ps",
    "free",
    "uptime",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "sleep",
    "jq",
    "yq",
    "column",
    "fold",
    "less",
    "more",
    "bat",
    "md5sum",
    "sha256sum",
    "sha1sum",
    "cksum",
    "seq",
    "expr",
    "done",
    "fi",
    "tac",
    "rev",
    "pytest",
    "tsc",
    "mypy",
    "pyright",
    "flake8",
    "pylint",
    "shellcheck",
    "nproc",
    "lscpu",
    "lsof",
    "objdump",
    "nm",
];

/// Programs that only look with one of these verbs; tests and builds write only what they make anew.
const HARMLESS_WITH: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "status",
            "log",
            "diff",
            "show",
            "blame",
            "ls-files",
            "rev-parse",
            "describe",
            "grep",
            "shortlog",
            "branch",
            "remote",
            "cat-file",
            "ls-tree",
            "reflog",
            "merge-base",
            "rev-list",
        ],
    ),
    ("cargo", &["check", "test", "clippy", "build", "nextest", "tree", "metadata", "bench", "doc"]),
    ("go", &["test", "vet", "build", "list", "version", "env"]),
    ("npm", &["test", "t", "ls", "list", "view", "outdated"]),
    ("yarn", &["test", "list"]),
    ("pnpm", &["test", "list", "ls"]),
    ("make", &["test", "check", "tests"]),
    ("just", &["test", "check"]),
    ("ruff", &["check"]),
    ("eslint", &["."]),
    ("pip", &["list", "show", "freeze"]),
    ("pip3", &["list", "show", "freeze"]),
    ("docker", &["ps", "images", "logs", "inspect"]),
    ("kubectl", &["get", "describe", "logs"]),
    ("gh", &["view", "list", "status"]),
    ("systemctl", &["status"]),
    ("mvn", &["test"]),
    ("gradle", &["test"]),
    ("dotnet", &["test"]),
];

/// Programs whose arguments are files that they write, move or take away.
const WRITERS: &[&str] =
    &["tee", "mv", "cp", "rm", "touch", "truncate", "ln", "install", "unlink", "rsync", "shred", "rmdir"];

/// Programs that write files of their own choice, with the word by which they do; an empty one stands for any.
const FORMATTERS: &[(&str, &str)] = &[
    ("cargo", "fmt"),
    ("cargo", "fix"),
    ("rustfmt", ""),
    ("black", ""),
    ("isort", ""),
    ("prettier", "--write"),
    ("prettier", "-w"),
    ("ruff", "format"),
    ("ruff", "--fix"),
    ("eslint", "--fix"),
    ("biome", "--write"),
    ("biome", "format"),
    ("gofmt", "-w"),
    ("goimports", "-w"),
    ("go", "fmt"),
    ("clang-format", "-i"),
    ("autopep8", "-i"),
    ("yapf", "-i"),
    ("terraform", "fmt"),
    ("dart", "format"),
    ("mix", "format"),
    ("stylua", ""),
    ("swiftformat", ""),
    ("npm", "format"),
    ("npm", "lint:fix"),
    ("yarn", "format"),
    ("pnpm", "format"),
    ("npx", "--write"),
    ("npx", "--fix"),
    ("make", "fmt"),
    ("make", "format"),
    ("just", "fmt"),
    ("patch", ""),
    ("2to3", "-w"),
];

/// The verbs of `git` that change files of the working tree.
const GIT_WRITERS: &[&str] = &[
    "checkout",
    "restore",
    "stash",
    "apply",
    "reset",
    "revert",
    "merge",
    "pull",
    "rebase",
    "cherry-pick",
    "switch",
    "am",
    "clean",
    "mv",
    "rm",
];

fn add_written(words: &[String], written: &mut Written) {
    if let Some(text) = inner(words) {
        let of_inner = self::written(&text);
        written.files.extend(of_inner.files);
        written.anything |= of_inner.anything;
        return;
    }
    let Some((name, arguments)) = program(words) else { return };
    let files = || arguments.iter().filter(|argument| !argument.starts_with('-')).cloned();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    match name {
        "git" => add_written_by_git(arguments, written),
        "sed" if arguments.iter().any(|flag| flag.starts_with("-i") || flag.starts_with("--in-place")) => {
            written.files.extend(files());
        }
        "perl" | "ruby" if arguments.iter().any(|flag| flag.starts_with('-') && flag.contains('i')) => {
            written.files.extend(files());
        }
        "dd" => written
            .files
            .extend(arguments.iter().filter_map(|word| word.strip_prefix("of=")).map(str::to_owned)),
        _ if WRITERS.contains(&name) => written.files.extend(files()),
        _ => {
            let is_one = |(program, word): &&(&str, &str)| *program == name && (word.is_empty() || has(word));
            written.anything |= FORMATTERS.iter().any(|it| is_one(&it));
        }
    }
}

fn add_written_by_git(arguments: &[String], written: &mut Written) {
    let verb = arguments.iter().position(|word| GIT_WRITERS.contains(&word.as_str()));
    let Some(verb) = verb else { return };
    let rest = &arguments[verb + 1..];
    if let Some(at) = rest.iter().position(|word| word == "--") {
        written.files.extend(rest[at + 1..].iter().cloned());
        return;
    }
    match arguments[verb].as_str() {
        "checkout" | "switch" if rest.iter().any(|word| matches!(word.as_str(), "-b" | "-B" | "-c")) => {}
        "restore" | "mv" | "rm" => {
            written.files.extend(rest.iter().filter(|word| !word.starts_with('-')).cloned());
        }
        "stash" if rest.iter().any(|word| matches!(word.as_str(), "list" | "show")) => {}
        "apply" if rest.iter().any(|word| matches!(word.as_str(), "--check" | "--stat")) => {}
        _ => written.anything = true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_look_is_harmless() {
        for command in [
            "ls -la",
            "git status",
            "cargo test 2>&1 | tail -n 5",
            "grep -rn rmdir_all . 2>/dev/null",
            "sed -n 1,5p a",
            "cd /w && git diff --stat && cat a.rs",
            "bash -lc 'ls -a | head'",
            "bash -lc ls -a",
            "RUST_LOG=debug timeout 5 pytest -q; echo done",
            "find . -name '*.rs' | xargs wc -l",
        ] {
            assert!(is_read_only(command), "{command}");
        }
        for command in [
            "./deploy.sh staging",
            "make deploy",
            "fly deploy",
            "rm -r x",
            "echo a > b",
            "ls && git commit -m y",
            "cat <<EOF",
            "sed -i s/a/b/ c",
            "npm ci",
            "find . -delete",
            "python run.py",
            "echo $(rm x)",
            "bash -lc 'make deploy'",
            "git branch -D old",
            "curl -X POST http://localhost",
            "",
        ] {
            assert!(!is_read_only(command), "{command}");
        }
    }

    #[test]
    fn what_a_command_writes_is_found() {
        let check = |command: &str, files: &[&str], anything: bool| {
            let files = files.iter().map(|file| (*file).to_owned()).collect();
            assert_eq!(written(command), Written { files, anything }, "{command}");
        };
        check("cat a > b.rs", &["b.rs"], false);
        check("echo x >>'b c'", &["b"], false);
        check("ls 2>&1 | tee -a out.log", &["out.log"], false);
        check("sed -i 's/a/b/' src/a.rs", &["s/a/b/", "src/a.rs"], false);
        check("cd /w && mv a.rs b.rs 2>/dev/null", &["a.rs", "b.rs"], false);
        check("git checkout -- a.rs", &["a.rs"], false);
        check("git restore src/a.rs", &["src/a.rs"], false);
        check("git stash && cargo build", &[], true);
        check("git checkout -b new", &[], false);
        check("bash -lc 'cargo fmt'", &[], true);
        check("npx prettier --write .", &[], true);
        check("cargo test", &[], false);
    }

    #[test]
    fn the_directory_of_a_command_is_found() {
        assert_eq!(directory("cd /w/x && ls"), Some("/w/x".to_owned()));
        assert_eq!(directory("bash -lc 'cd /w; ls'"), Some("/w".to_owned()));
        assert_eq!(directory("cd x && ls"), None);
    }
}
