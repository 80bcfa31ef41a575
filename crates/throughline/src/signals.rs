//! Being told to stop, and to read the configuration again.

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Returns what waits for Ctrl-C or, where there is such a thing, SIGTERM.
///
/// The signals are listened to from the call on and not from the first poll, so that whoever says that it is ready
/// afterwards can be stopped at once.
pub fn stop() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let (mut terminated, mut interrupted) = {
        use tokio::signal::unix::{SignalKind, signal};
        (signal(SignalKind::terminate()).ok(), signal(SignalKind::interrupt()).ok())
    };
    #[cfg(unix)]
    return async move {
        tokio::select! {
            () = next(terminated.as_mut()) => {}
            () = next(interrupted.as_mut()) => {}
        }
    };
    #[cfg(not(unix))]
    async {
        // Where signals cannot be listened to, nothing but the end of the process stops it.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits for the next signal; for ever where it cannot be listened to.
#[cfg(unix)]
async fn next(signal: Option<&mut tokio::signal::unix::Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// SIGHUPs as they come; none where there is no such thing.
///
/// From its making on the signal no longer ends the process.
#[derive(Debug)]
pub struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    /// Begins to listen.
    pub fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Self { signal: signal(SignalKind::hangup()).ok() }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        next(self.signal.as_mut()).await;
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}

/// Calls something off when the user asks for it: once cleanly, and the second time at once.
#[derive(Debug)]
pub struct Cancelling {
    token: CancellationToken,
    listening: JoinHandle<()>,
}

/// What a shell makes of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

impl Cancelling {
    /// Begins to listen.
    pub fn new() -> Self {
        let token = CancellationToken::new();
        let called_off = token.clone();
        let once = stop();
        let listening = tokio::spawn(async move {
            once.await;
            let again = stop();
            called_off.cancel();
            crate::output::remark("stopping; once more stops it at once");
            again.await;
            std::process::exit(INTERRUPTED);
        });
        Self { token, listening }
    }

    /// Returns what is cancelled.
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.listening.abort();
    }
}
