//! What a running gateway cannot change: it is bound to its address, and its history is open.

use super::resolve::Config;

/// Makes `new` keep what cannot change while `running` runs, and returns the keys that differed.
///
/// So the configuration in effect says what is true, and what needs a restart is compared with what the
/// gateway was started with, however often it is reloaded.
pub(crate) fn keep_fixed(running: &Config, new: &mut Config) -> Vec<&'static str> {
    let is_other = [
        ("listen", running.listen != new.listen),
        ("data", running.data != new.data),
        ("store.url", running.store.location != new.store.location),
        ("limits.concurrent_requests", running.limits.concurrent_requests != new.limits.concurrent_requests),
    ];
    new.listen = running.listen;
    new.data.clone_from(&running.data);
    new.store.location.clone_from(&running.store.location);
    new.limits.concurrent_requests = running.limits.concurrent_requests;
    is_other.into_iter().filter_map(|(key, is_other)| is_other.then_some(key)).collect()
}
