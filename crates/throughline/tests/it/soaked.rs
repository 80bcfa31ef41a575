//! A soak of seconds, with the faults that disturb nobody else who uses the same server.

use crate::soak::{Fault, Plan, own_schema, soak};
use std::time::Duration;

#[test]
fn what_agents_saw_completed_is_in_the_history_once_whatever_happens_to_replicas() {
    let Ok(server) = std::env::var("THROUGHLINE_TEST_POSTGRES") else {
        assert!(std::env::var_os("CI").is_none(), "THROUGHLINE_TEST_POSTGRES is not set");
        return;
    };
    let report = soak(&Plan {
        agents: 6,
        count: 6,
        time: Duration::MAX,
        answers: 20,
        pause: Duration::from_secs(5),
        calm: Duration::ZERO,
        every: Duration::ZERO,
        faults: Fault::ALL[..2].to_vec(),
        folder: crate::cli::scratch("soak"),
        url: own_schema(&server, &format!("soak_{}", std::process::id())),
        disk: None,
    });
    assert!(report.completed > 20, "{} completed, {} refused", report.completed, report.refused);
    assert_eq!((report.injected.len(), report.throughput), (2, None));
    assert!(report.verdict.is_clean(), "{:?}, silent for {:?}", report.verdict, report.silence);
}
