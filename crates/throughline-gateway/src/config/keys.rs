//! The keys of the configuration, as one list: what is known, and what a variable may set.
//!
//! The structs in `file.rs` are what is read; this list is what is *said* about it: the nearest key to a
//! misspelt one, the names of the variables, and the test that the documentation leaves none out. A test holds
//! the list and the structs together.

/// What a list of keys says about one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Where it stands; `[]` stands for the number of an element.
    pub path: &'static str,
}

/// Every key, in the order in which they are documented.
pub const KEYS: &[Key] = &[
    now("listen"),
    now("active"),
    now("store.url"),
    now("store.on_failure"),
    now("auth.keys"),
    now("limits.body_bytes"),
    now("limits.header_bytes"),
    now("limits.concurrent_requests"),
    now("limits.request_timeout"),
    now("limits.known_bytes"),
    now("limits.memory_bytes"),
    now("limits.connections"),
    now("limits.header_timeout"),
    now("limits.idle_timeout"),
    now("limits.write_timeout"),
    now("limits.answer_bytes"),
    now("backends[].name"),
    now("backends[].dialect"),
    now("backends[].base_url"),
    now("backends[].api_key"),
    now("backends[].default_model"),
    now("backends[].models"),
    now("backends[].context_window"),
    now("backends[].native_tool_history"),
    now("backends[].server_state"),
    now("backends[].context_management"),
    now("backends[].reasoning"),
    now("backends[].fallback"),
    now("backends[].profile"),
    now("backends[].rules"),
    now("backends[].headers"),
    now("backends[].timeouts.connect"),
    now("backends[].timeouts.idle"),
    now("backends[].timeouts.progress"),
    now("backends[].http2"),
    now("backends[].prices"),
    now("backends[].store"),
    now("backends[].history.recent_calls_to_keep"),
    now("backends[].history.truncation_threshold"),
    now("backends[].history.budget"),
    now("backends[].history.recall"),
    now("backends[].history.policy"),
    now("backends[].history.text_embed"),
    now("backends[].history.rules[].tools"),
    now("backends[].history.rules[].kind"),
    now("backends[].history.rules[].key"),
    now("profiles[].name"),
    now("profiles[].base"),
    now("profiles[].call_id_min"),
    now("profiles[].call_id_max"),
    now("profiles[].call_id_chars"),
    now("profiles[].unique_call_ids"),
    now("profiles[].tool_name_max"),
    now("profiles[].object_arguments"),
    now("profiles[].tools_for_history"),
    now("profiles[].custom_tools"),
    now("profiles[].own_extensions"),
    now("profiles[].media_in_results"),
    now("profiles[].parts_in_results"),
    now("profiles[].files"),
    now("profiles[].blank_text"),
    now("profiles[].system"),
    now("profiles[].developer_role"),
    now("profiles[].user_first"),
    now("profiles[].alternate"),
    now("profiles[].user_after_results"),
    now("profiles[].assistant_last"),
    now("profiles[].reasoning_refused"),
    now("profiles[].reasoning_sealed"),
    now("profiles[].reasoning_with_calls"),
    now("profiles[].reasoning_leads"),
    now("profiles[].wording"),
    now("profiles[].effort_none"),
    now("profiles[].effort_max"),
    now("profiles[].selects_tools"),
    now("profiles[].marked_calls"),
    now("history.recent_calls_to_keep"),
    now("history.truncation_threshold"),
    now("history.budget"),
    now("history.recall"),
    now("history.policy"),
    now("history.text_embed"),
    now("history.rules[].tools"),
    now("history.rules[].kind"),
    now("history.rules[].key"),
    now("handover.mode"),
    now("handover.summary"),
    now("handover.summary_backend"),
    now("handover.tool_context"),
    now("handover.max_result_chars"),
    now("handover.max_tool_context_chars"),
    now("telemetry.otlp_endpoint"),
    now("telemetry.otlp_headers"),
    now("telemetry.service_name"),
    now("telemetry.sampling_ratio"),
    now("tools.max_calls"),
    now("tools.approve"),
    now("tools.command_timeout"),
    now("tools.readable"),
    now("tools.writable"),
    now("tools.network"),
    now("tools.confinement"),
    now("tools.pass"),
    now("mcp[].name"),
    now("mcp[].command"),
    now("mcp[].args"),
    now("mcp[].env"),
    now("mcp[].cwd"),
    now("mcp[].url"),
    now("mcp[].headers"),
    now("mcp[].timeout"),
    now("compose.enabled"),
    now("compose.backend"),
    now("compose.model"),
    now("compose.temperature"),
    now("compose.max_tokens"),
    now("compose.guidance"),
    now("privacy.secrets"),
    now("privacy.redact[].name"),
    now("privacy.redact[].pattern"),
];

/// Returns the variable that overrides a key, if one does: `history.budget` is `THROUGHLINE_HISTORY_BUDGET`.
///
/// What stands in a list of tables has none; a secret in it can refer to any variable.
#[must_use]
pub fn variable(path: &str) -> Option<String> {
    if path.contains("[]") {
        return None;
    }
    Some(format!("THROUGHLINE_{}", path.replace('.', "_").to_uppercase()))
}

/// Returns the path as the list of keys has it: `backends[2].name` is `backends[].name`.
#[must_use]
pub fn pattern(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    let mut in_brackets = false;
    for c in path.chars() {
        in_brackets = (in_brackets || c == '[') && c != ']';
        if !in_brackets || c == '[' {
            pattern.push(c);
        }
    }
    pattern
}

/// Says whether `pattern` is a key, or a table or list that holds some.
#[must_use]
pub fn is_known(pattern: &str) -> bool {
    let below = |path: &str| path.strip_prefix(pattern).is_some_and(|rest| rest.starts_with(['.', '[']));
    KEYS.iter().any(|key| key.path == pattern || below(key.path))
}

/// Says whether `pattern` is a key itself, below which everything is the user's own.
#[must_use]
pub fn is_leaf(pattern: &str) -> bool {
    KEYS.iter().any(|key| key.path == pattern)
}

/// Says whether the value of a key may be a secret, so that no error may repeat it.
#[must_use]
pub fn is_secret(pattern: &str) -> bool {
    let secret = [
        "auth.keys",
        "backends[].api_key",
        "backends[].headers",
        "store.url",
        "telemetry.otlp_headers",
        "mcp[].env",
        "mcp[].headers",
    ];
    secret.iter().any(|secret| pattern.starts_with(secret))
}

/// Returns the names that are known directly below `parent`, in their order.
#[must_use]
pub fn names_below(parent: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let rest = if parent.is_empty() {
            Some(key.path)
        } else {
            key.path.strip_prefix(parent).and_then(|rest| rest.strip_prefix('.'))
        };
        let Some(name) = rest.and_then(|rest| rest.split(['.', '[']).next()) else { continue };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the one of `names` that `wrong` was probably meant to be: at least half of it must be there.
#[must_use]
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let tolerated = (wrong.chars().count() / 3).max(2);
    names
        .into_iter()
        .map(|name| (distance(&wrong.to_lowercase(), name), name))
        .filter(|(distance, name)| {
            *distance <= tolerated && 2 * distance <= wrong.chars().count().max(name.chars().count())
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns how many characters have to be put in, taken out or replaced to make `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

const fn now(path: &'static str) -> Key {
    Key { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_finds_its_neighbour() {
        for (wrong, expected) in
            [("lisen", "listen"), ("backend", "backends"), ("Active", "active"), ("stor", "store")]
        {
            assert_eq!(nearest(wrong, names_below("")), Some(expected), "{wrong}");
        }
        assert_eq!(nearest("kitchen", names_below("")), None);
        assert_eq!(nearest("baseurl", names_below("backends[]")), Some("base_url"));
        assert_eq!(
            (nearest("zz", ["a", "glm"]), nearest("aa", ["a"]), nearest("glm", ["gpt"])),
            (None, Some("a"), None)
        );
    }

    #[test]
    fn a_table_is_known_by_what_is_in_it() {
        for known in ["history", "history.rules[]", "backends[].timeouts", "listen"] {
            assert!(is_known(known), "{known}");
        }
        for unknown in ["hist", "listen.port", "backends[].timeouts.total"] {
            assert!(!is_known(unknown), "{unknown}");
        }
        assert_eq!(pattern("backends[12].history.rules[0].kind"), "backends[].history.rules[].kind");
    }

    #[test]
    fn variables_are_named_after_their_keys() {
        assert_eq!(variable("listen").as_deref(), Some("THROUGHLINE_LISTEN"));
        assert_eq!(variable("store.on_failure").as_deref(), Some("THROUGHLINE_STORE_ON_FAILURE"));
        assert_eq!(variable("backends[].name"), None);
    }
}
