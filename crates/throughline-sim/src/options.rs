//! How a simulated backend behaves.

use crate::Script;
use std::net::{Ipv4Addr, SocketAddr};
use throughline_validate::Provider;

/// How a simulated backend behaves; the default is a strict, stateful one on a free port of this machine.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Where it listens; port 0 is any that is free.
    pub listen: SocketAddr,
    /// What it answers, instead of thinking.
    pub script: Option<Script>,
    /// Whether it answers 400 `Invalid input` to tool calls and results in the history.
    pub reject_native: bool,
    /// Whether it forgets every response, so that `previous_response_id` leads nowhere.
    pub stateless: bool,
    /// Whether it refuses what the providers refuse.
    pub strict: bool,
    /// Whose rules hold for Chat Completions.
    pub chat_rules: Provider,
    /// The models that it has; without any, it answers to every name.
    pub models: Vec<String>,
    /// The key that clients must present.
    pub key: Option<String>,
    /// What its ids and seals are made from: simulated backends with equal seeds accept each other's seals.
    pub seed: String,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            script: None,
            reject_native: false,
            stateless: false,
            strict: true,
            chat_rules: Provider::OpenAiChat,
            models: Vec::new(),
            key: None,
            seed: "sim".to_owned(),
        }
    }
}
