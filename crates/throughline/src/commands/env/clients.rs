//! The clients that are known, and what each must be told.
//!
//! Two dialects, two habits: clients of OpenAI's take an address that ends in the version, clients of
//! Anthropic's add the version themselves.

use super::key::{Key, PLACEHOLDER};
use throughline_wire::json::quote;

/// A client.
pub struct Client {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What else it is called.
    pub alias: Option<&'static str>,
    /// What its makers call it.
    pub title: &'static str,
    /// How it is told.
    pub form: Form,
    /// Returns what it must be told.
    pub guide: fn(&Gateway<'_>) -> Guide,
}

/// How a client is told.
#[derive(Clone, Copy)]
pub enum Form {
    /// By variables of the environment.
    Variables,
    /// By a file, or a line of its program.
    File,
}

/// The gateway, as clients see it.
pub struct Gateway<'a> {
    /// Its address, without the version.
    pub url: &'a str,
    /// The key that it asks for.
    pub key: &'a Key,
    /// The models that are worth naming; at least one.
    pub models: Vec<&'a str>,
}

/// What a client must be told.
pub struct Guide {
    /// Variables of the environment.
    pub variables: Vec<(&'static str, Value)>,
    /// The part of a file.
    pub file: Option<Fragment>,
    /// What to do then.
    pub then: String,
}

/// The value of a variable.
pub enum Value {
    /// This text.
    Text(String),
    /// The key.
    Key,
}

/// A part of a file.
pub struct Fragment {
    /// Which file.
    pub path: &'static str,
    /// What a comment begins with there.
    pub comment: &'static str,
    /// What belongs into it.
    pub text: String,
}

/// Every client that is known.
pub const CLIENTS: &[Client] = &[
    variables("claude-code", Some("claude"), "Claude Code", claude_code),
    file("codex", "Codex", codex),
    file("opencode", "opencode", opencode),
    variables("aider", None, "aider", aider),
    file("vscode", "Visual Studio Code", vscode),
    variables("openai-python", None, "the OpenAI SDK for Python", openai_python),
    variables("anthropic-python", None, "the Anthropic SDK for Python", anthropic_python),
    file("ai-sdk", "the AI SDK", ai_sdk),
    variables("langchain", None, "LangChain", langchain),
    variables("curl", None, "curl", curl),
];

type Guiding = fn(&Gateway<'_>) -> Guide;

const fn variables(
    name: &'static str,
    alias: Option<&'static str>,
    title: &'static str,
    guide: Guiding,
) -> Client {
    Client { name, alias, title, form: Form::Variables, guide }
}

const fn file(name: &'static str, title: &'static str, guide: Guiding) -> Client {
    Client { name, alias: None, title, form: Form::File, guide }
}

impl Gateway<'_> {
    fn openai(&self) -> String {
        format!("{}/v1", self.url)
    }

    fn model(&self) -> &str {
        self.models.first().copied().unwrap_or_default()
    }

    /// Returns variables, without the key where the client has its own.
    fn set(&self, addresses: &[(&'static str, String)], keys: &[&'static str]) -> Vec<(&'static str, Value)> {
        let addresses = addresses.iter().map(|(name, address)| (*name, Value::Text(address.clone())));
        let keys = keys.iter().filter(|_| *self.key != Key::Own).map(|name| (*name, Value::Key));
        addresses.chain(keys).collect()
    }
}

fn claude_code(gateway: &Gateway<'_>) -> Guide {
    let addresses = [("ANTHROPIC_BASE_URL", gateway.url.to_owned())];
    Guide {
        variables: gateway.set(&addresses, &["ANTHROPIC_AUTH_TOKEN"]),
        file: None,
        then: "claude".to_owned(),
    }
}

fn codex(gateway: &Gateway<'_>) -> Guide {
    let env_key =
        gateway.key.variable().map(|name| format!("env_key = {}\n", quote(name))).unwrap_or_default();
    let text = format!(
        "model = {}\nmodel_provider = \"throughline\"\n\n[model_providers.throughline]\nname = \"Throughline\"\n\
         base_url = {}\nwire_api = \"responses\"\n{env_key}",
        quote(gateway.model()),
        quote(&gateway.openai()),
    );
    let path = "~/.codex/config.toml, or config.toml in $CODEX_HOME";
    Guide {
        variables: Vec::new(),
        file: Some(Fragment { path, comment: "#", text }),
        then: "codex".to_owned(),
    }
}

fn opencode(gateway: &Gateway<'_>) -> Guide {
    let key = gateway.key.variable().map_or_else(|| PLACEHOLDER.to_owned(), |name| format!("{{env:{name}}}"));
    let models: Vec<String> = gateway.models.iter().map(|model| format!("{}: {{}}", quote(model))).collect();
    let text = format!(
        "{{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"provider\": {{\n    \"throughline\": {{\n      \
         \"npm\": \"@ai-sdk/openai-compatible\",\n      \"name\": \"Throughline\",\n      \"options\": {{ \
         \"baseURL\": {}, \"apiKey\": {} }},\n      \"models\": {{ {} }}\n    }}\n  }}\n}}\n",
        quote(&gateway.openai()),
        quote(&key),
        models.join(", "),
    );
    let path = "opencode.json in the project, or ~/.config/opencode/opencode.json";
    Guide {
        variables: Vec::new(),
        file: Some(Fragment { path, comment: "//", text }),
        then: format!("opencode --model throughline/{}", gateway.model()),
    }
}

fn aider(gateway: &Gateway<'_>) -> Guide {
    Guide {
        variables: gateway.set(&[("OPENAI_API_BASE", gateway.openai())], &["OPENAI_API_KEY"]),
        file: None,
        then: format!("aider --model openai/{}", gateway.model()),
    }
}

fn vscode(gateway: &Gateway<'_>) -> Guide {
    let url = quote(&format!("{}/v1/responses", gateway.url));
    let model = |model: &&str| {
        format!(
            "      {{ \"id\": {0}, \"name\": {0}, \"url\": {url}, \"toolCalling\": true, \"vision\": true,\n        \
             \"maxInputTokens\": 128000, \"maxOutputTokens\": 16000 }}",
            quote(model),
        )
    };
    let models: Vec<String> = gateway.models.iter().map(model).collect();
    let text = format!(
        "[\n  {{\n    \"name\": \"Throughline\",\n    \"vendor\": \"customendpoint\",\n    \"apiType\": \
         \"responses\",\n    \"models\": [\n{}\n    ]\n  }}\n]\n",
        models.join(",\n"),
    );
    let path =
        "chatLanguageModels.json (Chat: Manage Language Models, Add Models, Custom Endpoint, the gear)";
    let then = match gateway.key {
        Key::Any => "pick the model in the chat; no key is needed".to_owned(),
        _ => "when asked for a key, give it there; pick the model in the chat".to_owned(),
    };
    Guide { variables: Vec::new(), file: Some(Fragment { path, comment: "//", text }), then }
}

fn openai_python(gateway: &Gateway<'_>) -> Guide {
    Guide {
        variables: gateway.set(&[("OPENAI_BASE_URL", gateway.openai())], &["OPENAI_API_KEY"]),
        file: None,
        then: "openai.OpenAI() finds both".to_owned(),
    }
}

fn anthropic_python(gateway: &Gateway<'_>) -> Guide {
    Guide {
        variables: gateway.set(&[("ANTHROPIC_BASE_URL", gateway.url.to_owned())], &["ANTHROPIC_API_KEY"]),
        file: None,
        then: "anthropic.Anthropic() finds both".to_owned(),
    }
}

fn ai_sdk(gateway: &Gateway<'_>) -> Guide {
    let key = gateway.key.variable().map_or_else(|| quote(PLACEHOLDER), |name| format!("process.env.{name}"));
    let text = format!(
        "import {{ createOpenAI }} from \"@ai-sdk/openai\";\n\nexport const throughline = createOpenAI({{\n  \
         baseURL: {},\n  apiKey: {key},\n}});\n",
        quote(&gateway.openai()),
    );
    let then = format!("generateText({{ model: throughline({}), … }})", quote(gateway.model()));
    Guide { variables: Vec::new(), file: Some(Fragment { path: "the program", comment: "//", text }), then }
}

fn langchain(gateway: &Gateway<'_>) -> Guide {
    let addresses = [("OPENAI_API_BASE", gateway.openai()), ("ANTHROPIC_BASE_URL", gateway.url.to_owned())];
    Guide {
        variables: gateway.set(&addresses, &["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]),
        file: None,
        then: format!("ChatOpenAI(model={0}), ChatAnthropic(model={0})", quote(gateway.model())),
    }
}

fn curl(gateway: &Gateway<'_>) -> Guide {
    let addresses = [("THROUGHLINE_URL", gateway.url.to_owned())];
    let body = format!(r#"{{"model": {}, "input": "Hello"}}"#, quote(gateway.model()));
    let header = gateway.key.variable().map(|name| format!(" -H \"authorization: Bearer ${name}\""));
    Guide {
        variables: gateway.set(&addresses, &[]),
        file: None,
        then: format!("curl \"$THROUGHLINE_URL/v1/responses\"{} -d '{body}'", header.unwrap_or_default()),
    }
}
