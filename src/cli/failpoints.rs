//! Places where a test may end, stop or fail the process. Only with the feature `failpoints`.
//!
//! `FAILPOINTS=name=action` as the crate `fail` reads it, and `QUEUEWARDEN_KILL_AT=name=3`: the third time the place
//! is reached the process kills itself, as `kill -9` would. With `QUEUEWARDEN_FAIL_PIPELINE=name` the places of other
//! pipelines are passed by.

use std::sync::atomic::{AtomicU32, Ordering};

/// Arms what the environment asks for; disarmed when the answer is dropped.
pub fn arm() -> fail::FailScenario<'static> {
    let scenario = fail::FailScenario::setup();
    if let Ok(at) = std::env::var("QUEUEWARDEN_KILL_AT") {
        let (name, times) = at.split_once('=').unwrap_or((&at, "1"));
        let left = AtomicU32::new(times.parse().unwrap_or(1));
        let place = name.to_owned();
        let armed = fail::cfg_callback(name, move || {
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                eprintln!("killed at {place}");
                let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            }
        });
        if let Err(reason) = armed {
            eprintln!("QUEUEWARDEN_KILL_AT={at}: {reason}");
        }
    }
    scenario
}
