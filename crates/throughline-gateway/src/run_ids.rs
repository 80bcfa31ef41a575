//! How an exchange says which run it belongs to: in what its client calls itself.

use throughline_store::Exchange;

/// Returns what a run calls itself as a client.
#[must_use]
pub fn client_of(run: &str) -> String {
    format!("throughline/{} {run}", env!("CARGO_PKG_VERSION"))
}

/// Returns the run that an exchange belongs to, by what its client calls itself.
#[must_use]
pub fn run_of(exchange: &Exchange) -> Option<&str> {
    let run = exchange.client.as_deref()?.strip_prefix("throughline/")?.split(' ').nth(1)?;
    run.starts_with("run_").then_some(run)
}
