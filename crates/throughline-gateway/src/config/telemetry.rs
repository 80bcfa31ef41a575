//! Where traces go, checked.

use super::address::{BaseUrl, Endpoint};
use super::file::TelemetrySection;
use super::resolve::{Resolver, list};
use crate::secret::{Secret, SecretRef};
use http::{HeaderName, HeaderValue};
use throughline_core::Text;

/// Where traces go, and what they say of us.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// The collector.
    pub endpoint: BaseUrl,
    /// Headers that it is sent; names in lower case.
    pub headers: Vec<(Text, Secret)>,
    /// What the gateway is called in traces.
    pub service_name: Text,
    /// Which share of the traces is kept, from 0 to 1. One that a client began is kept if it says so.
    pub sampling_ratio: f64,
}

impl Resolver<'_> {
    /// Returns where traces go; nowhere if no collector is named.
    pub(super) fn tracing(&mut self, section: TelemetrySection) -> Option<Tracing> {
        let shown = section.otlp_headers.iter().map(|(name, value)| format!("{name}: {value}"));
        self.note("telemetry.otlp_endpoint", section.otlp_endpoint.as_deref().unwrap_or("none"));
        self.note("telemetry.otlp_headers", list(shown));
        let service_name = section.service_name.unwrap_or_else(|| "throughline".to_owned());
        self.note("telemetry.service_name", &service_name);
        let sampling_ratio = section.sampling_ratio.map_or(1.0, |ratio| ratio.0);
        self.note("telemetry.sampling_ratio", sampling_ratio);
        let headers = self.otlp_headers(section.otlp_headers.iter());
        let endpoint = match Endpoint::parse(&section.otlp_endpoint?) {
            Ok(Endpoint::Url(endpoint)) => endpoint,
            Ok(Endpoint::Simulated) | Err(_) => {
                let what = "expected the URL of a collector, such as http://localhost:4318";
                self.problem("telemetry.otlp_endpoint", what);
                return None;
            }
        };
        Some(Tracing { endpoint, headers, service_name: service_name.into(), sampling_ratio })
    }

    fn otlp_headers<'a>(
        &mut self,
        headers: impl Iterator<Item = (&'a String, &'a SecretRef)>,
    ) -> Vec<(Text, Secret)> {
        let mut opened = Vec::new();
        for (name, value) in headers {
            let name = name.to_lowercase();
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                self.problem("telemetry.otlp_headers", format!("`{name}` is not the name of a header"));
                continue;
            }
            let Some(secret) = self.open("telemetry.otlp_headers", value) else { continue };
            self.note_credential(&name, value, &secret);
            if HeaderValue::from_str(secret.expose()).is_ok() {
                opened.push((Text::from(name), secret));
            } else {
                self.problem("telemetry.otlp_headers", format!("the value of `{name}` cannot be a header's"));
            }
        }
        opened
    }
}
