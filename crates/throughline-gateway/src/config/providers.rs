//! Providers that are known by name, so that a key in the environment is configuration enough.
//!
//! The order is the order of preference: the first one found is the active backend. What `models` lists is
//! asked of that provider, whichever backend is active.

use super::address::Endpoint;
use super::source::Surroundings;
use throughline_core::Dialect;

/// What is known about a provider.
#[derive(Debug, PartialEq, Eq)]
pub struct Provider {
    /// The name of its backend.
    pub name: &'static str,
    /// The variables that its key may be in.
    pub variables: &'static [&'static str],
    /// What it speaks.
    pub dialect: Dialect,
    /// Where it is.
    pub base_url: &'static str,
    /// The model for names that it does not know.
    pub default_model: &'static str,
    /// The names of its own models, as patterns.
    pub models: &'static [&'static str],
    /// What it accepts.
    pub rules: &'static str,
}

/// The providers, the preferred one first.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        name: "anthropic",
        variables: &["ANTHROPIC_API_KEY"],
        dialect: Dialect::Messages,
        base_url: "https://api.anthropic.com/v1",
        default_model: "claude-sonnet-4-5",
        models: &["claude-*"],
        rules: "anthropic",
    },
    Provider {
        name: "openai",
        variables: &["OPENAI_API_KEY"],
        dialect: Dialect::Responses,
        base_url: "https://api.openai.com/v1",
        default_model: "gpt-5",
        models: &["gpt-*", "chatgpt-*", "codex-*", "o1*", "o3*", "o4*"],
        rules: "openai-responses",
    },
    Provider {
        name: "gemini",
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        dialect: Dialect::Chat,
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        default_model: "gemini-2.5-pro",
        models: &["gemini-*", "gemma-*"],
        rules: "gemini",
    },
    Provider {
        name: "deepseek",
        variables: &["DEEPSEEK_API_KEY"],
        dialect: Dialect::Chat,
        base_url: "https://api.deepseek.com/v1",
        default_model: "deepseek-chat",
        models: &["deepseek-*"],
        rules: "deepseek",
    },
    Provider {
        name: "mistral",
        variables: &["MISTRAL_API_KEY"],
        dialect: Dialect::Chat,
        base_url: "https://api.mistral.ai/v1",
        default_model: "mistral-large-latest",
        models: &["mistral-*", "ministral-*", "magistral-*", "codestral-*", "devstral-*", "pixtral-*"],
        rules: "mistral",
    },
    Provider {
        name: "moonshot",
        variables: &["MOONSHOT_API_KEY", "KIMI_API_KEY"],
        dialect: Dialect::Chat,
        base_url: "https://api.moonshot.ai/v1",
        default_model: "kimi-latest",
        models: &["kimi-*", "moonshot-*"],
        rules: "kimi",
    },
    Provider {
        name: "zai",
        variables: &["ZAI_API_KEY", "GLM_API_KEY"],
        dialect: Dialect::Chat,
        base_url: "https://api.z.ai/api/paas/v4",
        default_model: "glm-4.6",
        models: &["glm-*"],
        rules: "glm",
    },
    Provider {
        name: "xai",
        variables: &["XAI_API_KEY"],
        dialect: Dialect::Chat,
        base_url: "https://api.x.ai/v1",
        default_model: "grok-4",
        models: &["grok-*"],
        rules: "openai-chat",
    },
    Provider {
        name: "groq",
        variables: &["GROQ_API_KEY"],
        dialect: Dialect::Chat,
        base_url: "https://api.groq.com/openai/v1",
        default_model: "openai/gpt-oss-120b",
        models: &["llama-*"],
        // It refuses fields of a message that it does not know.
        rules: "strict-chat",
    },
    Provider {
        name: "openrouter",
        variables: &["OPENROUTER_API_KEY"],
        dialect: Dialect::Chat,
        base_url: "https://openrouter.ai/api/v1",
        default_model: "openrouter/auto",
        // All of its names are `vendor/model`.
        models: &["*/*"],
        rules: "openrouter",
    },
];

/// Returns the provider of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// Returns the name of the provider whose own address this is.
#[must_use]
pub fn at(endpoint: &Endpoint) -> Option<&'static str> {
    let host = endpoint.url()?.host();
    let is_there = |provider: &&Provider| {
        Endpoint::parse(provider.base_url)
            .is_ok_and(|known| known.url().is_some_and(|url| url.host() == host))
    };
    PROVIDERS.iter().find(is_there).map(|provider| provider.name)
}

impl Provider {
    /// Returns the variable that its key is in; an empty one counts as absent.
    pub fn variable(&self, surroundings: &dyn Surroundings) -> Option<&'static str> {
        let is_set = |name: &&&str| surroundings.variable(name).is_some_and(|value| !value.trim().is_empty());
        self.variables.iter().find(is_set).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Rules;

    #[test]
    fn every_provider_has_rules_of_its_dialect() {
        for provider in PROVIDERS {
            let rules = Rules::from_name(provider.rules);
            assert_eq!(rules.map(|rules| rules.dialect), Some(provider.dialect), "{}", provider.name);
            assert!(provider.base_url.starts_with("https://"), "{}", provider.name);
            assert!(!provider.base_url.ends_with('/'), "{}", provider.name);
        }
    }

    #[test]
    fn names_and_variables_occur_once() {
        let mut names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
        names.extend(PROVIDERS.iter().flat_map(|provider| provider.variables));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
