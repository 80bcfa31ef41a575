//! Configuration: what was written, where, and what it means.
//!
//! There are two forms. [`FileConfig`] is what is written: everything optional, every key known or an error.
//! [`Config`] is what is meant: every value there, checked, with the place that it came from. [`load`] leads
//! from the one to the other, with variables and flags in between.

mod address;
mod backend;
mod compose;
mod error;
mod file;
mod fixed;
mod grants;
pub mod keys;
mod model;
mod privacy;
mod profiles;
pub mod providers;
mod resolve;
mod source;
mod telemetry;
mod template;
mod tools;
mod trust;
mod values;
mod variables;

#[cfg(test)]
mod tests;

pub use address::{BaseUrl, Endpoint};
pub use compose::{Compose, GUIDANCE};
pub use error::{ConfigError, ConfigErrors, Source, Warning};
pub use file::{FileConfig, ToolRule};
pub(crate) use fixed::keep_fixed;
pub use grants::grants;
pub use model::{FactSource, ModelFact, ModelFacts};
pub use resolve::{
    Backend, Config, Credential, Effective, Handover, History, Limits, ModelRule, StoreConfig, StoreLocation,
    Timeouts,
};
pub use source::{BackendsFrom, FILE_NAME, Flags, Process, Surroundings, file_places, load, load_to_look};
pub use telemetry::Tracing;
pub use template::template;
pub use tools::{Approve, Confine, Mcp, McpWay, Prices, Tools};
pub use trust::{Distrust, FoundFile, IgnoredFile, Trust, TrustEntry, TrustRecord, Verdict, protected_paths};
pub use values::{
    Budget, Choice, HandoverMode, HandoverSummary, OnStoreFailure, Policy, ReasoningPolicy, TextEmbed,
    ToolKind,
};
