//! The log: what is done along the way, on standard error.
//!
//! Only what this program says is in it. Libraries know less about what is nobody's business: at the depth of `-vv` some
//! of them print what passes over a connection.

use crate::args::Args;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What the names of all our targets begin with.
const OURS: &str = "throughline";

/// Lets the log go to standard error, at the level that was asked for, or at the usual one of the command.
pub fn begin(args: &Args, usual: Option<Level>) {
    let Some(level) = level(args, usual) else { return };
    let lines = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(std::io::stderr);
    lines.finish().with(Targets::new().with_target(OURS, level)).init();
    tracing::debug!(version = env!("CARGO_PKG_VERSION"), "throughline");
}

fn level(args: &Args, usual: Option<Level>) -> Option<Level> {
    match args.verbose {
        0 if args.quiet => usual.map(|_| Level::ERROR),
        0 => usual,
        1 => Some(Level::DEBUG),
        _ => Some(Level::TRACE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn the_level_is_the_usual_one_unless_it_is_asked_for() {
        let all = [
            ("ls", None, None),
            ("ls -v", None, Some(Level::DEBUG)),
            ("-vv ls", None, Some(Level::TRACE)),
            ("ls -q", None, None),
            ("serve", Some(Level::INFO), Some(Level::INFO)),
            ("serve -q", Some(Level::INFO), Some(Level::ERROR)),
            ("serve --verbose", Some(Level::INFO), Some(Level::DEBUG)),
        ];
        for (typed, usual, wanted) in all {
            let words = std::iter::once("throughline").chain(typed.split(' '));
            assert_eq!(level(&Args::parse_from(words), usual), wanted, "{typed}");
        }
        assert!(Args::try_parse_from(["throughline", "-q", "-v", "ls"]).is_err());
    }
}
