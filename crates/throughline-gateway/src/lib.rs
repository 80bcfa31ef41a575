//! The gateway between agent clients and model backends.
//!
//! [`config`] says what was asked for and from where; [`routing`] chooses a backend and a model for a request;
//! [`capability`] says what that backend can be shown, and what is sent next when it fails.
//! These decide and do nothing: they take facts and return data, so they are tested without network or clock.
//! The rest acts: [`ingress`] lets requests in, [`exchange`] carries one from start to end, [`egress`] speaks
//! to backends, [`gateway`] is what all exchanges share, and [`server`] runs it. [`switch`] changes the backend
//! at run time, [`connections`] and [`memory`] bound what clients may take, [`view`] is the record as it is shown, [`telemetry`] counts what happens, [`trace`] tells how long
//! it took, [`probe`] asks a backend what it is, [`model_discovery`] does so in the background, [`verdicts`] are what was
//! learned about one, [`token_counters`] how its models count, and [`bill`] what their tokens cost. [`background`] holds answers that nobody waits for,
//! [`async_summary`] what a model is summarising, [`drain`] what is waited for before the gateway stops, and
//! [`privacy`] takes out what is not to be kept. [`turn`] runs a model's tools in a loop, and replays it.

pub mod async_summary;
pub mod background;
pub mod bill;
pub mod capability;
pub mod clock;
pub mod config;
pub mod connections;
pub mod drain;
pub mod echo;
pub mod egress;
pub mod exchange;
pub mod failure;
pub mod gateway;
pub mod ingress;
pub mod memory;
pub mod model_discovery;
pub mod model_lists;
pub mod privacy;
pub mod probe;
pub mod remote_jobs;
pub mod response_ids;
pub mod routing;
pub mod run_ids;
pub mod secret;
pub mod server;
pub mod switch;
pub mod telemetry;
pub mod token_counters;
pub mod trace;
pub mod turn;
pub mod verdicts;
pub mod view;
