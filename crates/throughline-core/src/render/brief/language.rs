//! The language of a file, by its name, as the info string of a fence names it.

/// Extensions, in lower case, and the languages that they stand for.
const EXTENSIONS: &[(&str, &[&str])] = &[
    ("bash", &["sh", "bash", "zsh", "ksh"]),
    ("bat", &["bat", "cmd"]),
    ("c", &["c", "h"]),
    ("clojure", &["clj", "cljs", "cljc", "edn"]),
    ("cpp", &["cc", "cpp", "cxx", "hpp", "hh", "hxx", "ino"]),
    ("csharp", &["cs", "csx"]),
    ("css", &["css"]),
    ("csv", &["csv"]),
    ("dart", &["dart"]),
    ("diff", &["diff", "patch"]),
    ("elixir", &["ex", "exs"]),
    ("elm", &["elm"]),
    ("erlang", &["erl", "hrl"]),
    ("fsharp", &["fs", "fsi", "fsx"]),
    ("go", &["go"]),
    ("graphql", &["graphql", "gql"]),
    ("groovy", &["groovy", "gradle"]),
    ("haskell", &["hs", "lhs"]),
    ("hcl", &["hcl", "tf", "tfvars"]),
    ("html", &["html", "htm", "xhtml"]),
    ("ini", &["ini", "cfg", "conf", "properties", "editorconfig"]),
    ("java", &["java"]),
    ("javascript", &["js", "mjs", "cjs"]),
    ("json", &["json", "jsonl", "ndjson", "ipynb", "webmanifest"]),
    ("jsonc", &["jsonc", "json5"]),
    ("jsx", &["jsx"]),
    ("julia", &["jl"]),
    ("kotlin", &["kt", "kts"]),
    ("less", &["less"]),
    ("lua", &["lua"]),
    ("makefile", &["mk", "mak"]),
    ("markdown", &["md", "markdown", "mdx"]),
    ("nix", &["nix"]),
    ("objectivec", &["m", "mm"]),
    ("ocaml", &["ml", "mli"]),
    ("perl", &["pl", "pm"]),
    ("php", &["php"]),
    ("powershell", &["ps1", "psm1"]),
    ("protobuf", &["proto"]),
    ("python", &["py", "pyi", "pyw"]),
    ("r", &["r", "rmd"]),
    ("rst", &["rst"]),
    ("ruby", &["rb", "rake", "gemspec"]),
    ("rust", &["rs"]),
    ("scala", &["scala", "sc", "sbt"]),
    ("scss", &["scss", "sass"]),
    ("sql", &["sql"]),
    ("svelte", &["svelte"]),
    ("swift", &["swift"]),
    ("tex", &["tex", "sty", "bib"]),
    ("toml", &["toml", "lock"]),
    ("tsx", &["tsx"]),
    ("typescript", &["ts", "mts", "cts"]),
    ("vue", &["vue"]),
    ("wasm", &["wat", "wast"]),
    ("xml", &["xml", "xsd", "xsl", "svg", "plist", "csproj", "props"]),
    ("yaml", &["yaml", "yml"]),
    ("zig", &["zig", "zon"]),
];

/// Whole names, in lower case.
const NAMES: &[(&str, &[&str])] = &[
    ("bash", &[".bashrc", ".zshrc", ".profile", ".bash_profile", ".envrc"]),
    ("cmake", &["cmakelists.txt"]),
    ("dockerfile", &["dockerfile", "containerfile"]),
    ("groovy", &["jenkinsfile"]),
    ("json", &[".babelrc", ".prettierrc", "package-lock.json"]),
    ("makefile", &["makefile", "gnumakefile", "justfile"]),
    ("ruby", &["gemfile", "rakefile", "podfile", "vagrantfile"]),
];

/// Returns the language of a file, or nothing; paths of all systems are understood.
pub(super) fn of_file(path: &str) -> &'static str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
    let among = |table: &'static [(&'static str, &'static [&'static str])], word: &str| {
        table.iter().find(|(_, words)| words.contains(&word)).map(|(language, _)| *language)
    };
    let by_extension = || name.rsplit_once('.').and_then(|(_, extension)| among(EXTENSIONS, extension));
    among(NAMES, &name).or_else(by_extension).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::of_file;

    #[test]
    fn a_language_follows_from_the_name_of_the_file() {
        for (path, language) in [
            ("/path/to/file.rs", "rust"),
            (r"C:\Users\me\src\Main.CS", "csharp"),
            ("src/CMakeLists.txt", "cmake"),
            ("Makefile", "makefile"),
            ("a/b.tar.gz", ""),
            (".gitignore", ""),
            ("notes", ""),
            ("dir.rs/notes", ""),
        ] {
            assert_eq!(of_file(path), language, "{path}");
        }
    }
}
