//! Signals: caught as the first thing the program does, told apart on a thread of their own, and sent.
//!
//! Real-time signals queue in the kernel, but the handler's buffer holds five of a kind that nobody has looked at
//! yet: of a burst some may be dropped. Whoever must know looks at the effect, as `queuewarden restart` does.

mod value;

use std::{fs, io, process, thread};

use libc::{SIGHUP, SIGINT, SIGRTMIN, SIGTERM, SIGUSR1, c_int, siginfo_t};
use signal_hook::{
    iterator::{SignalsInfo, exfiltrator::WithRawSiginfo},
    low_level::emulate_default_handler,
};
use tokio::sync::mpsc;

use crate::model::Slot;

/// Caught signals. Nothing looks at them until one of the two methods is called.
pub struct Signals {
    caught: SignalsInfo<WithRawSiginfo>,
    ignored: u64,
}

/// One signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    number: c_int,
    /// Whether whoever started the process wanted it ignored, as `nohup` does.
    ignored: bool,
    /// What it carried.
    pub value: Option<i32>,
    /// What it asks for.
    pub asks: Asks,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// Drain and end; the second time: now.
    Stop,
    /// Read the definitions again.
    Reload,
    /// Restart the pipeline of a slot.
    Restart(Slot),
    /// Restart every Failed pipeline.
    RestartFailed,
    /// Nothing: its value is missing, or no slot has such a number.
    Nothing,
}

impl Signals {
    /// Catches all signals that mean anything to a supervisor, so that none of them ends the process by default.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn install() -> io::Result<Self> {
        let ignored = ignored().unwrap_or(0);
        let caught = SignalsInfo::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, restart_signal()])?;
        Ok(Self { caught, ignored })
    }

    /// For a verb that acts on signals: what has come and what comes, in order of each kind.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn listen(self) -> io::Result<mpsc::UnboundedReceiver<Received>> {
        let (send, received) = mpsc::unbounded_channel();
        self.each(move |signal| {
            // Whoever listened is ending the process.
            let _ending = send.send(signal);
        })?;
        Ok(received)
    }

    /// For a verb that does not: they do what they would have done uncaught.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn by_default(self) -> io::Result<()> {
        self.each(Received::act_by_default)
    }

    fn each(self, act: impl Fn(Received) + Send + 'static) -> io::Result<()> {
        let Self { mut caught, ignored } = self;
        let listen = move || caught.forever().for_each(|info| act(Received::new(&info, ignored)));
        thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
    }
}

impl Received {
    fn new(info: &siginfo_t, ignored: u64) -> Self {
        let (number, value) = (info.si_signo, value::received(info));
        Self { number, ignored: ignored >> (number - 1) & 1 == 1, value, asks: Asks::of(number, value) }
    }

    /// Its name, as `kill -l` has it.
    pub fn name(&self) -> &'static str {
        match self.number {
            SIGTERM => "TERM",
            SIGINT => "INT",
            SIGHUP => "HUP",
            SIGUSR1 => "USR1",
            _ => "RTMIN+1",
        }
    }

    /// Ends the process as the signal would have done uncaught.
    pub fn act_by_default(self) {
        if !self.ignored && emulate_default_handler(self.number).is_err() {
            // It does not know real-time signals. A shell's way to say what ended it:
            process::exit(128 + self.number);
        }
    }
}

impl Asks {
    fn of(signal: c_int, value: Option<i32>) -> Self {
        match (signal, value) {
            (SIGTERM | SIGINT, _) => Self::Stop,
            (SIGHUP, _) => Self::Reload,
            (SIGUSR1, None) => Self::RestartFailed,
            (_, Some(value)) => match u32::try_from(value) {
                Ok(slot @ 1..) => Self::Restart(Slot(slot)),
                _ => Self::Nothing,
            },
            (_, None) => Self::Nothing,
        }
    }

    /// Its name as the label of a metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Reload => "reload",
            Self::Restart(_) => "restart",
            Self::RestartFailed => "restart_failed",
            Self::Nothing => "nothing",
        }
    }
}

/// SIGRTMIN+1; the C library keeps the first real-time signals to itself, so it is no constant.
fn restart_signal() -> c_int {
    SIGRTMIN() + 1
}

/// Asks the supervisor in another process to restart the pipeline of a slot.
///
/// # Errors
/// There is no such process or slot, the process is another user's, or too many signals wait already.
pub fn send_restart(process: u32, slot: u32) -> io::Result<()> {
    let process = i32::try_from(process).map_err(io::Error::other)?;
    value::send(process, restart_signal(), i32::try_from(slot).map_err(io::Error::other)?)
}

/// The signals that are ignored now, a bit for each, SIGHUP the lowest.
fn ignored() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_slot_and_what_is_no_slot_asks_for_nothing() {
        for signal in [restart_signal(), SIGUSR1] {
            assert_eq!(Asks::of(signal, Some(3)), Asks::Restart(Slot(3)));
            assert_eq!(Asks::of(signal, Some(i32::MAX)), Asks::Restart(Slot(i32::MAX.cast_unsigned())));
            for value in [0, -1, i32::MIN] {
                assert_eq!(Asks::of(signal, Some(value)), Asks::Nothing);
            }
        }
        assert_eq!(Asks::of(restart_signal(), None), Asks::Nothing);
        assert_eq!(Asks::of(SIGUSR1, None), Asks::RestartFailed);
        assert_eq!(Asks::of(SIGTERM, Some(1)), Asks::Stop);
        assert_eq!(Asks::of(SIGHUP, None), Asks::Reload);
    }

    #[test]
    fn what_is_sent_is_what_is_received() {
        let number = SIGRTMIN() + 5;
        let mut caught = SignalsInfo::<WithRawSiginfo>::new([number]).expect("a handler");
        for sent in [1, 77, -5, i32::MAX] {
            value::send(process::id().cast_signed(), number, sent).expect("sent");
            let info = caught.wait().next().expect("received");
            assert_eq!(value::received(&info), Some(sent));
        }
        signal_hook::low_level::raise(number).expect("sent");
        let info = caught.wait().next().expect("received");
        assert_eq!(value::received(&info), None, "a signal without a value has none");
    }
}
