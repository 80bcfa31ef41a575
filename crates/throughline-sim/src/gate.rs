//! Who and what is let in: keys, headers, the provider's rules, seals, state.
//!
//! The order is the providers': credentials first, then whether the body is JSON, then whether the model and
//! the state it refers to exist, then what it says.

use crate::options::SimOptions;
use crate::refusal::{Refused, invalid};
use crate::seal::Sealer;
use crate::stored::Stored;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use throughline_core::{Ask, Dialect, Failure, FailureKind, Kind, Subject, Text};
use throughline_validate::{Provider, validate};

/// A request that was let in.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// The request as it was sent.
    pub(crate) ask: Ask,
    /// The same with the history that it refers to.
    pub(crate) prompt: Ask,
    /// The items of that history and of the request, where the dialect has items.
    pub(crate) items: Vec<Value>,
    /// The digest of the body, which sets its answer apart from those of other backends.
    pub(crate) digest: String,
}

/// Lets requests in, or refuses them.
pub(crate) struct Gate<'a> {
    pub(crate) options: &'a SimOptions,
    pub(crate) sealer: &'a Sealer,
    pub(crate) dialect: Dialect,
}

impl Gate<'_> {
    /// Returns whose rules hold.
    pub(crate) const fn provider(&self) -> Provider {
        match self.dialect {
            Dialect::Chat => self.options.chat_rules,
            Dialect::Messages => Provider::Anthropic,
            Dialect::Responses => Provider::OpenAiResponses,
        }
    }

    /// Checks the credentials, and the headers that a provider demands.
    pub(crate) fn admit_headers(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let given = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = given("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let presented = given("x-api-key").or(bearer);
        if let Some(key) = &self.options.key
            && presented != Some(key)
        {
            return Err(self.refused(&self.wrong_key(presented.is_some())));
        }
        let lacks_version = self.dialect == Dialect::Messages && given("anthropic-version").is_none();
        if self.options.strict && lacks_version {
            return Err(self.refused(&invalid("anthropic-version: header is required", "")));
        }
        Ok(())
    }

    /// Checks a request, and finds the history that it refers to.
    pub(crate) fn admit(&self, body: &str, stored: &Stored) -> Result<Admitted, Refused> {
        let json: Value = serde_json::from_str(body).map_err(|error| self.no_json(&error))?;
        self.check_model(&json)?;
        let decoded = throughline_wire::decode_request(self.dialect, body);
        if let Ok(ask) = &decoded {
            self.check_native(ask)?;
        }
        if self.options.strict {
            self.check_rules(&json)?;
        }
        let ask = decoded.map_err(|error| self.refused(&invalid(&error.to_string(), &error.path)))?;
        let (prompt, items) = self.with_history(&ask, &json, stored)?;
        self.check_native(&prompt)?;
        if self.options.strict {
            self.check_seals(&prompt)?;
        }
        let digest = blake3::hash(body.as_bytes()).to_hex().to_string();
        Ok(Admitted { ask, prompt, items, digest })
    }

    fn refused(&self, failure: &Failure) -> Refused {
        Refused::new(self.dialect, failure)
    }

    fn wrong_key(&self, is_given: bool) -> Failure {
        let (message, code) = match (self.dialect, is_given) {
            (Dialect::Messages, true) => ("invalid x-api-key", None),
            (Dialect::Messages, false) => ("x-api-key header is required", None),
            (_, true) => ("Incorrect API key provided.", Some("invalid_api_key")),
            (_, false) => ("You didn't provide an API key.", None),
        };
        Failure { code: code.map(Text::from_static), ..Failure::new(FailureKind::Authentication, message) }
    }

    fn no_json(&self, error: &serde_json::Error) -> Refused {
        let message = match self.dialect {
            Dialect::Messages => format!("The request body is not valid JSON: {error}"),
            Dialect::Chat | Dialect::Responses => {
                format!("We could not parse the JSON body of your request: {error}")
            }
        };
        self.refused(&invalid(&message, ""))
    }

    fn check_model(&self, json: &Value) -> Result<(), Refused> {
        let models = &self.options.models;
        let Some(model) = json.get("model").and_then(Value::as_str) else { return Ok(()) };
        if models.is_empty() || models.iter().any(|known| known == model) {
            return Ok(());
        }
        let (message, code) = match self.dialect {
            Dialect::Messages => (format!("model: {model}"), None),
            Dialect::Chat | Dialect::Responses => (
                format!("The model `{model}` does not exist or you do not have access to it."),
                Some("model_not_found"),
            ),
        };
        let code = code.map(Text::from_static);
        Err(self.refused(&Failure { code, ..Failure::new(FailureKind::NotFound, message) }))
    }

    /// Refuses tool history, as a backend does that knows only messages.
    fn check_native(&self, ask: &Ask) -> Result<(), Refused> {
        if !self.options.reject_native {
            return Ok(());
        }
        let is_tool = |kind: &Kind| matches!(kind, Kind::Called(_) | Kind::Returned(_));
        match ask.entries.iter().find(|entry| is_tool(&entry.kind)) {
            Some(entry) => {
                let place = throughline_wire::path(self.dialect, &Subject::Entry(entry.place));
                Err(self.refused(&invalid("Invalid input", &place)))
            }
            None => Ok(()),
        }
    }

    fn check_rules(&self, json: &Value) -> Result<(), Refused> {
        let provider = self.provider();
        match validate(provider, json).first() {
            Some(violation) => Err(Refused::of_violation(self.dialect, provider, violation)),
            None => Ok(()),
        }
    }

    fn check_seals(&self, prompt: &Ask) -> Result<(), Refused> {
        let model = prompt.model.as_deref().unwrap_or_default();
        for entry in &prompt.entries {
            let Kind::Thought(thought) = &entry.kind else { continue };
            self.sealer.check(model, thought).map_err(|broken| {
                let place = throughline_wire::path(self.dialect, &Subject::Entry(entry.place));
                Refused::of_seal(self.dialect, &broken, &place)
            })?;
        }
        Ok(())
    }

    /// Returns the request together with what it refers to, and its items.
    fn with_history(&self, ask: &Ask, json: &Value, stored: &Stored) -> Result<(Ask, Vec<Value>), Refused> {
        if self.dialect != Dialect::Responses {
            return Ok((ask.clone(), Vec::new()));
        }
        if let Some(id) = &ask.conversation {
            return Err(self.not_found(&format!("Conversation with id '{id}' not found."), "conversation"));
        }
        let mut items = self.earlier_items(ask, stored)?;
        for item in sent_items(json) {
            items.push(self.resolved(item, stored)?);
        }
        let whole = self.expanded(json, &items);
        if self.options.strict && ask.previous.is_some() {
            self.check_rules(&whole)?;
        }
        let prompt = throughline_wire::decode_request(self.dialect, whole.to_string())
            .map_err(|error| self.refused(&invalid(&error.to_string(), &error.path)))?;
        Ok((prompt, items))
    }

    fn earlier_items(&self, ask: &Ask, stored: &Stored) -> Result<Vec<Value>, Refused> {
        let Some(id) = &ask.previous else { return Ok(Vec::new()) };
        if let Some(response) = stored.find(id) {
            return Ok(response.input.iter().chain(&response.output).cloned().collect());
        }
        let failure = Failure {
            code: Some(Text::from_static("previous_response_not_found")),
            ..invalid(&format!("Previous response with id '{id}' not found."), "previous_response_id")
        };
        // OpenAI says 400; servers that keep nothing say 404.
        let status = if self.options.stateless { 404 } else { 400 };
        Err(Refused::with_status(self.dialect, status, &failure))
    }

    /// Returns an item, or the one that it refers to by its id.
    fn resolved(&self, item: Value, stored: &Stored) -> Result<Value, Refused> {
        let kind = item.get("type").and_then(Value::as_str);
        let refers = match kind {
            Some("item_reference") => true,
            Some("reasoning") => {
                self.options.strict && item.get("encrypted_content").is_none_or(Value::is_null)
            }
            Some(_) => false,
            None => item.get("role").is_none(),
        };
        let Some(id) = item.get("id").and_then(Value::as_str).filter(|_| refers) else { return Ok(item) };
        let found = stored.item(id).cloned();
        found.ok_or_else(|| self.not_found(&format!("Item with id '{id}' not found."), "input"))
    }

    fn not_found(&self, message: &str, place: &str) -> Refused {
        Refused::with_status(self.dialect, 404, &invalid(message, place))
    }

    /// Returns the request as if all its history had been sent with it.
    fn expanded(&self, json: &Value, items: &[Value]) -> Value {
        let mut whole = json.clone();
        if let Some(fields) = whole.as_object_mut() {
            fields.shift_remove("previous_response_id");
            fields.insert("input".to_owned(), json!(items));
            // What is kept here need not be sealed.
            fields.shift_remove("store");
        }
        whole
    }
}

/// Returns the items that a request brings; a bare text is one.
fn sent_items(json: &Value) -> Vec<Value> {
    match json.get("input") {
        Some(Value::Array(items)) => items.clone(),
        Some(Value::String(text)) => vec![json!({ "role": "user", "content": text })],
        _ => Vec::new(),
    }
}
