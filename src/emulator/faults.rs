//! The switches: what can be ordered to go wrong on a queue.

use std::str::FromStr;

use crate::model::nearest;

/// What goes wrong on a queue; probabilities are from 0 to 1. Each kind of duplicate happens at most once to a
/// message, so that a consumer that deletes what it receives ends with an empty queue even at 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(missing_docs, reason = "the table of switches says what each does")]
pub struct Faults {
    pub duplicate_same_receive: f64,
    pub duplicate_in_flight: f64,
    pub duplicate_before_delete: f64,
    pub duplicate_during_delete: f64,
    pub lost_send_reply: f64,
    pub lost_receive_reply: f64,
    pub lost_delete_reply: f64,
    pub no_reply: f64,
    pub error_on_send: f64,
    pub error_on_receive: f64,
    pub error_on_delete: f64,
    pub throttle: f64,
    pub unavailable: f64,
    pub not_authenticated: f64,
    pub cut_connection: f64,
    pub name_server_down: f64,
    pub dead_route: f64,
    pub clock_skew: f64,
    pub empty_at_once: f64,
    pub fewer_than_asked: f64,
    pub clock_offset_ms: i64,
    pub delay_ms: i64,
}

/// One thing that can be ordered.
#[derive(Debug)]
pub struct Switch {
    /// As a flag and the control endpoint write it.
    pub name: &'static str,
    /// What happens.
    pub doc: &'static str,
    field: Field,
}

/// Where a switch's value is kept, and what it may be.
#[derive(Debug)]
enum Field {
    Probability(fn(&mut Faults) -> &mut f64),
    /// Whole milliseconds, from and to.
    Millis(fn(&mut Faults) -> &mut i64, i64, i64),
}

/// A checked value of a switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// From 0 to 1.
    Probability(f64),
    /// Milliseconds.
    Millis(i64),
}

const fn probability(name: &'static str, field: fn(&mut Faults) -> &mut f64, doc: &'static str) -> Switch {
    Switch { name, doc, field: Field::Probability(field) }
}

/// Longest offset of a clock: thirty days.
const FARTHEST_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// All switches, in the order in which they are documented.
pub static SWITCHES: [Switch; 22] = [
    probability(
        "duplicate-same-receive",
        |faults| &mut faults.duplicate_same_receive,
        "Of a message's first delivery: it is in the answer twice, and only the second receipt is valid. Needs a receive of at least two.",
    ),
    probability(
        "duplicate-in-flight",
        |faults| &mut faults.duplicate_in_flight,
        "Of a message's first delivery: it can be received again at once, while the first delivery is on its way. The first receipt is valid until it is.",
    ),
    probability(
        "duplicate-before-delete",
        |faults| &mut faults.duplicate_before_delete,
        "Of a message's first delete: it is answered MessageNotExist (CMQ: 4430), as if the visibility timeout had just run out, and the message is delivered again.",
    ),
    probability(
        "duplicate-during-delete",
        |faults| &mut faults.duplicate_during_delete,
        "Of a message's first delete while a poll waits: that poll gets the message once more, with a receipt that is dead on arrival, and the delete is done as usual.",
    ),
    probability(
        "lost-send-reply",
        |faults| &mut faults.lost_send_reply,
        "Of a send: it is done, but the connection is closed instead of an answer.",
    ),
    probability(
        "lost-receive-reply",
        |faults| &mut faults.lost_receive_reply,
        "Of a receive with messages: they are made invisible, but the connection is closed instead of an answer.",
    ),
    probability(
        "lost-delete-reply",
        |faults| &mut faults.lost_delete_reply,
        "Of a delete: it is done, but the connection is closed instead of an answer.",
    ),
    probability(
        "no-reply",
        |faults| &mut faults.no_reply,
        "Of any request about the queue: it is done, but no answer is ever sent. The connection stays, and over CMQ's TCP other requests on it are answered.",
    ),
    probability(
        "error-on-send",
        |faults| &mut faults.error_on_send,
        "Of a send: 500 InternalError (CMQ: 6000), and nothing is done.",
    ),
    probability(
        "error-on-receive",
        |faults| &mut faults.error_on_receive,
        "Of a receive: 500 InternalError (CMQ: 6000), and nothing is done.",
    ),
    probability(
        "error-on-delete",
        |faults| &mut faults.error_on_delete,
        "Of a delete: 500 InternalError (CMQ: 6000), and nothing is done.",
    ),
    probability(
        "throttle",
        |faults| &mut faults.throttle,
        "Of any request about the queue: 400 QpsLimitExceeded (CMQ: 4420), and nothing is done.",
    ),
    probability(
        "unavailable",
        |faults| &mut faults.unavailable,
        "Of any request about the queue: 503 with a page of HTML, as from a proxy before the service, and nothing is done. CMQ: over HTTP only, so also questions for a route.",
    ),
    probability(
        "clock-skew",
        |faults| &mut faults.clock_skew,
        "Of any request about the queue: 408 TimeExpired, from a server whose clock is 20 minutes ahead, and nothing is done. MNS only.",
    ),
    probability(
        "empty-at-once",
        |faults| &mut faults.empty_at_once,
        "Of a receive that would wait for a message: that there is none, at once, as too many waiting polls get it.",
    ),
    probability(
        "fewer-than-asked",
        |faults| &mut faults.fewer_than_asked,
        "Of a receive that could get several messages: it gets fewer, and at least one.",
    ),
    probability(
        "not-authenticated",
        |faults| &mut faults.not_authenticated,
        "Of any request about the queue: 403 SignatureDoesNotMatch (CMQ: 4100; over TCP 306, and the connection has to authenticate itself again), and nothing is done.",
    ),
    probability(
        "cut-connection",
        |faults| &mut faults.cut_connection,
        "Of any request about the queue: its connection is closed while it is under way, with everything else that is under way on it, and nothing is done.",
    ),
    probability(
        "name-server-down",
        |faults| &mut faults.name_server_down,
        "Of a question for the queue's route (CMQ): the connection is closed instead of an answer.",
    ),
    probability(
        "dead-route",
        |faults| &mut faults.dead_route,
        "Of a question for the queue's route (CMQ): the first address it is told is one where nobody listens.",
    ),
    Switch {
        name: "clock-offset-ms",
        doc: "By how much the service's clock is ahead of this machine's in everything the queue answers: the Date header and the times of messages. Beyond 15 minutes MNS answers every request TimeExpired.",
        field: Field::Millis(|faults| &mut faults.clock_offset_ms, -FARTHEST_MS, FARTHEST_MS),
    },
    Switch {
        name: "delay-ms",
        doc: "How much later than it could every request about the queue is answered.",
        field: Field::Millis(|faults| &mut faults.delay_ms, 0, 600_000),
    },
];

impl Switch {
    /// The switch of this name. The error names the nearest.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        if let Some(switch) = SWITCHES.iter().find(|switch| switch.name == name) {
            return Ok(switch);
        }
        let names = SWITCHES.iter().map(|switch| switch.name);
        Err(match nearest(name, names.clone()) {
            Some(near) => format!("there is no switch `{name}`; did you mean `{near}`?"),
            None => format!("there is no switch `{name}`; there are: {}", names.collect::<Vec<_>>().join(", ")),
        })
    }

    /// Reads a value of this switch. The error says what it takes.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let value = match self.field {
            Field::Probability(_) => {
                text.parse().ok().filter(|value| (0.0..=1.0).contains(value)).map(Value::Probability)
            }
            Field::Millis(_, least, most) => {
                text.parse().ok().filter(|value| (least..=most).contains(value)).map(Value::Millis)
            }
        };
        value.ok_or_else(|| format!("`{}` takes {}, not `{text}`", self.name, self.takes()))
    }

    /// What values it takes, in words.
    pub fn takes(&self) -> String {
        match self.field {
            Field::Probability(_) => "a probability from 0 to 1".to_owned(),
            Field::Millis(_, least, most) => format!("whole milliseconds from {least} to {most}"),
        }
    }

    /// Its value in `faults`; probability or milliseconds 0 is off.
    pub fn get(&self, mut faults: Faults) -> Value {
        match self.field {
            Field::Probability(field) => Value::Probability(*field(&mut faults)),
            Field::Millis(field, ..) => Value::Millis(*field(&mut faults)),
        }
    }

    /// Sets it. A value of another switch's kind is none of this one's.
    pub fn set(&self, faults: &mut Faults, value: Value) {
        match (&self.field, value) {
            (Field::Probability(field), Value::Probability(value)) => *field(faults) = value,
            (Field::Millis(field, ..), Value::Millis(value)) => *field(faults) = value,
            _ => {}
        }
    }
}

impl Faults {
    /// The switches that are on, and their values.
    pub fn in_force(self) -> impl Iterator<Item = (&'static str, Value)> {
        SWITCHES.iter().map(move |switch| (switch.name, switch.get(self))).filter(|(_, value)| !value.is_off())
    }
}

impl Value {
    fn is_off(self) -> bool {
        matches!(self, Self::Probability(0.0) | Self::Millis(0))
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Probability(value) => value.fmt(f),
            Self::Millis(value) => value.fmt(f),
        }
    }
}

/// One switch as a flag writes it: `[QUEUE:]NAME=VALUE`.
#[derive(Debug, Clone)]
pub struct FaultFlag {
    /// The queue; `None`: all.
    pub queue: Option<String>,
    switch: &'static Switch,
    value: Value,
}

impl FaultFlag {
    /// Sets the switch.
    pub fn apply(&self, faults: &mut Faults) {
        self.switch.set(faults, self.value);
    }
}

impl FromStr for FaultFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (left, value) = text.split_once('=').ok_or("expected [QUEUE:]NAME=VALUE, such as throttle=0.1")?;
        let (queue, name) = left.split_once(':').map_or((None, left), |(queue, name)| (Some(queue.to_owned()), name));
        let switch = Switch::find(name)?;
        Ok(Self { queue, switch, value: switch.read(value)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_sets_one_switch_of_one_queue_or_all() {
        let mut faults = Faults::default();
        let flag: FaultFlag = "duplicate-in-flight=0.25".parse().expect("valid");
        flag.apply(&mut faults);
        assert_eq!((flag.queue, faults.duplicate_in_flight), (None, 0.25));
        let flag: FaultFlag = "q:clock-offset-ms=-5000".parse().expect("valid");
        flag.apply(&mut faults);
        assert_eq!((flag.queue.as_deref(), faults.clock_offset_ms), (Some("q"), -5000));
    }

    #[test]
    fn a_wrong_flag_is_told_the_nearest_name_or_the_range() {
        for (wrong, told) in [
            ("", "NAME=VALUE"),
            ("throttle", "NAME=VALUE"),
            ("throtle=1", "did you mean `throttle`?"),
            ("q:delay=1", "there is no switch `delay`"),
            ("x=1", "there are: duplicate-same-receive, "),
            ("throttle=2", "a probability from 0 to 1, not `2`"),
            ("throttle=NaN", "a probability from 0 to 1"),
            ("throttle=-0.1", "a probability from 0 to 1"),
            ("delay-ms=0.5", "whole milliseconds from 0 to 600000"),
            ("delay-ms=-1", "whole milliseconds from 0 to 600000"),
        ] {
            let error = wrong.parse::<FaultFlag>().expect_err(wrong);
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn every_switch_has_a_field_of_its_own() {
        for (at, switch) in SWITCHES.iter().enumerate() {
            let mut faults = Faults::default();
            assert!(faults.in_force().next().is_none());
            switch.set(&mut faults, switch.read("1").expect("in every range"));
            let on: Vec<_> = faults.in_force().map(|(name, _)| name).collect();
            assert_eq!(on, [SWITCHES[at].name]);
        }
    }
}
