//! A changed configuration, put into effect while the gateway serves: on SIGHUP, or when the file changes.
//!
//! A file that was found in the working directory is taken again only if the user trusts its new content; until then,
//! and when it is gone, what was read from it holds. So whoever can write there does not configure the gateway.
//!
//! The file is looked at once a second, by its time and its size, instead of being watched by the system:
//! that works on network file systems and in containers, where notices do not arrive, and through editors and
//! mounts that replace the file or a link on the way to it; it needs no dependency and costs one `stat`. A
//! file that is still being written is left alone until it looks the same twice.

use crate::signals::Hangups;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use throughline_gateway::config::{
    Config, ConfigErrors, FILE_NAME, Flags, IgnoredFile, Process, file_places, load,
};
use throughline_gateway::gateway::Gateway;
use tokio::time::{MissedTickBehavior, interval};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks out for changes of the configuration.
#[derive(Debug)]
pub struct Reloader {
    flags: Flags,
    places: Vec<PathBuf>,
    /// How the places looked when they were last read.
    read: Look,
    /// How they looked at the last look.
    last: Look,
}

/// How files look from outside: when each was changed, and how large it is.
type Look = Vec<Option<(SystemTime, u64)>>;

impl Reloader {
    /// Begins to look out; blocks for a moment. To be made before the configuration is first read, so that
    /// no change is missed.
    pub fn new(flags: Flags) -> Self {
        let places = file_places(&Process, &flags);
        let look = look(&places);
        Self { flags, places, read: look.clone(), last: look }
    }

    /// Reloads whenever there is reason to; never ends.
    pub async fn run(mut self, gateway: Arc<Gateway>, mut hangups: Hangups) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_told = tokio::select! {
                () = hangups.next() => true,
                _ = ticks.tick() => false,
            };
            // Files are read on a thread for that: one on a slow disk holds up nobody's answer.
            let looked = tokio::task::spawn_blocking(move || {
                let loaded = self.loaded(is_told);
                (self, loaded)
            });
            let loaded = match looked.await {
                Ok((same, loaded)) => {
                    self = same;
                    loaded
                }
                Err(error) => {
                    tracing::error!(%error, "the configuration is not watched any more");
                    return;
                }
            };
            if let Some(loaded) = loaded {
                self.put_into_effect(&gateway, loaded);
            }
        }
    }

    /// Reads the configuration if somebody asked for that, or if the file has changed and is at rest.
    fn loaded(&mut self, is_told: bool) -> Option<Result<Config, ConfigErrors>> {
        let now = look(&self.places);
        let is_due = is_told || is_settled(&self.read, &self.last, &now);
        self.last.clone_from(&now);
        if !is_due {
            return None;
        }
        self.read = now;
        Some(load(&Process, &self.flags))
    }

    fn put_into_effect(&self, gateway: &Gateway, loaded: Result<Config, ConfigErrors>) {
        let config = match loaded {
            Ok(config) => config,
            Err(errors) => {
                // Counted first: whoever reads the log then finds it counted.
                gateway.telemetry.reloaded(false);
                for problem in &errors.0 {
                    tracing::error!(%problem, "the configuration was refused; the one before holds");
                }
                return;
            }
        };
        let is_found = |config: &Config| config.file.as_deref() == Some(Path::new(FILE_NAME));
        let is_named = self.places.len() == 1;
        if !is_named && is_found(&gateway.setup().config) && !is_found(&config) {
            gateway.telemetry.reloaded(false);
            return warn_held(config.ignored.as_ref());
        }
        if let Some(IgnoredFile { path, why }) = &config.ignored {
            tracing::warn!(file = %path.display(), %why, "ignored; `throughline trust FILE` trusts it");
        }
        apply(gateway, config);
    }
}

/// Says that the file which the configuration came from is not taken again, and what to do.
fn warn_held(ignored: Option<&IgnoredFile>) {
    match ignored {
        Some(IgnoredFile { path, why }) => tracing::warn!(
            file = %path.display(), %why,
            "the configuration was not reloaded, the one before holds; `throughline trust FILE` trusts the new one"
        ),
        None => tracing::warn!(
            "{FILE_NAME} is gone from the working directory; what was read from it holds until the next start"
        ),
    }
}

/// Says whether files have changed since they were read, and have stopped changing.
fn is_settled(read: &Look, last: &Look, now: &Look) -> bool {
    now != read && now == last
}

fn look(places: &[PathBuf]) -> Look {
    let look = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    places.iter().map(|path| look(path)).collect()
}

fn apply(gateway: &Gateway, config: Config) {
    let backends = config.backends.len();
    for warning in &config.warnings {
        tracing::warn!(%warning, "the configuration");
    }
    let reloaded = gateway.reload(config);
    gateway.telemetry.reloaded(reloaded.is_ok());
    match reloaded {
        Ok(needs_restart) => {
            for key in needs_restart {
                tracing::warn!(key, "needs a restart to change; the old value holds");
            }
            tracing::info!(backends, "the configuration was reloaded");
        }
        Err(problem) => tracing::error!(%problem, "the configuration was refused; the one before holds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_it_has_changed_and_is_at_rest() {
        let at = |seconds, size| vec![Some((SystemTime::UNIX_EPOCH + Duration::from_secs(seconds), size))];
        let (old, begun, done) = (at(1, 10), at(2, 0), at(2, 12));
        assert!(!is_settled(&old, &old, &old), "nothing happened");
        assert!(!is_settled(&old, &old, &begun), "somebody is writing");
        assert!(!is_settled(&old, &begun, &done), "somebody was writing a moment ago");
        assert!(is_settled(&old, &done, &done));
        assert!(!is_settled(&done, &done, &done), "it was read");
        assert!(is_settled(&vec![None], &done, &done), "a file has appeared");
        assert!(is_settled(&done, &vec![None], &vec![None]), "the file is gone");
    }
}
