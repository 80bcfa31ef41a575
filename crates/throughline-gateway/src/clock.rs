//! The time, and ids that no other process draws: what makes two runs of the gateway differ.

use std::time::{SystemTime, UNIX_EPOCH};
use throughline_store::Moment;

/// Returns what the clock says.
#[must_use]
pub fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns an id that nobody has used, of letters and digits; later ones sort behind earlier ones.
#[must_use]
pub fn mint() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
