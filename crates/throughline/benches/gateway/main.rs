//! What the gateway costs, beside bare proxies, in one run.
//!
//! Four processes: a mock backend that answers at once, a hyper proxy that passes everything on, another that
//! also keeps both bodies in a log that is flushed before the answer ends, and `throughline serve` with a durable
//! history. Each is given the same requests over the same number of connections, in turn. Times of a machine
//! mean little elsewhere, so what counts is ratios of one run, of CPU seconds rather than of the clock.
//!
//! `just bench-gateway` runs everything; words behind it choose the sections whose names contain them.

#![expect(clippy::print_stdout, reason = "a bench is read on the terminal")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot measure has nothing else to say")]

mod agent;
mod cases;
mod load;
mod mock;
mod process;
mod proxy;
mod table;

use process::{Cast, ROLE};

fn main() {
    match std::env::var(ROLE).as_deref() {
        Ok("mock") => mock::run(),
        Ok("plain") => proxy::run(false),
        Ok("durable") => proxy::run(true),
        _ => drive(),
    }
}

fn drive() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let cast = Cast::start().await;
        println!("ready after {} ms (aim: 100)", cast.ready.as_millis());
        for section in cases::sections() {
            if chosen.is_empty() || chosen.iter().any(|word| section.name.contains(word.as_str())) {
                table::head(&section);
                for target in &cast.targets {
                    let measured = load::measure(&section, target).await;
                    table::row(&section, target, &measured);
                }
                table::end(&section);
            }
        }
        if chosen.is_empty() || chosen.iter().any(|word| "memory".contains(word.as_str())) {
            load::hold_many(&cast).await;
        }
    });
}
