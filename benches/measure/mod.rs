//! How works are measured against each other on one core.

use std::{
    error::Error,
    time::{Duration, Instant},
};

/// Of this many runs the median counts.
pub const RUNS: usize = 5;
const SLICES: usize = 20;
const SLICE: Duration = Duration::from_millis(40);

/// What is measured: handles a fixed number of messages.
pub type Work<'a> = dyn FnMut() -> Result<(), Box<dyn Error>> + 'a;

/// Messages per second of the median run, with least and most.
pub struct Measured {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// Messages per second of each work, which handles so many at a time. They take turns in short slices, so that a slow spell of the machine falls on
/// all of them.
pub fn rates(messages: usize, works: &mut [&mut Work<'_>]) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut totals = vec![(0_u32, Duration::ZERO); works.len()];
    for _ in 0..SLICES {
        for (work, (rounds, time)) in works.iter_mut().zip(&mut totals) {
            let start = Instant::now();
            while start.elapsed() < SLICE {
                work()?;
                *rounds += 1;
            }
            *time += start.elapsed();
        }
    }
    let rate = |(rounds, time): (u32, Duration)| f64::from(rounds) * messages as f64 / time.as_secs_f64();
    Ok(totals.into_iter().map(rate).collect())
}

pub fn summary(mut rates: Vec<f64>) -> Measured {
    rates.sort_by(f64::total_cmp);
    let at = |index: usize| rates.get(index).copied().unwrap_or(f64::NAN);
    Measured { median: at(rates.len() / 2), least: at(0), most: at(rates.len() - 1) }
}

pub fn print(what: &str, measured: &Measured) {
    println!(
        "{what:<28} {:>9.0} messages/s  (least {:.0}, most {:.0}; {:.2} us a message)",
        measured.median,
        measured.least,
        measured.most,
        1e6 / measured.median
    );
}

pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    format!("{model}, {cores} cores, {} {}", std::env::consts::OS, std::env::consts::ARCH)
}
