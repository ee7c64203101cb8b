//! `SET`: what of Flink's configuration has a place in a definition.

use std::collections::BTreeMap;

use crate::{
    definition::{Diagnostic, Located, Report, Span, parse_duration},
    model::nearest,
};

/// What is set, by key, from some statement on.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    set: BTreeMap<String, Located<String>>,
}

/// A line of a section of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub key: &'static str,
    pub value: String,
    /// Where the value was set.
    pub place: Span,
}

const INTERVAL: &str = "execution.checkpointing.interval";
const TIMEOUT: &str = "execution.checkpointing.timeout";
const NAME: &str = "pipeline.name";
const STRATEGY: &str = "restart-strategy.type";

const PREFIX: &str = "restart-strategy.";

/// How the keys end whose values become a wait.
const WAITS: [&str; 3] = [".delay", ".initial-backoff", ".max-backoff"];

/// How many letters of a key may be wrong for another to be meant.
const MOST_MISSPELT: usize = 2;

/// How Flink calls a strategy, and the keys below its name that have a counterpart.
type Strategy = (&'static [&'static str], &'static str, &'static [&'static str]);

const STRATEGIES: [Strategy; 4] = [
    (&["none", "off", "disable"], "none", &[]),
    (&["fixed-delay", "fixeddelay"], "fixed-delay", &["attempts", "delay"]),
    (
        &["failure-rate", "failurerate"],
        "failure-rate",
        &["max-failures-per-interval", "failure-rate-interval", "delay"],
    ),
    (
        &["exponential-delay", "exponentialdelay"],
        "exponential-delay",
        &["initial-backoff", "max-backoff", "attempts-before-reset-backoff"],
    ),
];

impl Settings {
    /// Takes a SET; one that has no counterpart is told. `whole`: whether the value is a text in quotes, and so no part of
    /// another, which may be a secret.
    pub(super) fn set(&mut self, key: &Located<String>, value: Located<String>, whole: bool, report: &mut Report) {
        // As it was called before Flink 1.19.
        let name = if key.value == "restart-strategy" { STRATEGY } else { key.value.as_str() };
        if !is_known(name) {
            let warning = Diagnostic::warning(format!("`{}` has no counterpart here and is left out", key.value));
            let known = known();
            let near = nearest(name, known.iter().map(String::as_str));
            // Many keys of Flink are near to these, and others.
            let near = near.filter(|near| strsim::damerau_levenshtein(near, name) <= MOST_MISSPELT);
            report.push(warning.at(key.span).nearest(near));
        }
        report.show(key.span);
        // What has a place here is no secret.
        if whole && is_known(name) {
            report.show(value.span);
        }
        let is_wait = is_known(name) && WAITS.iter().any(|wait| name.ends_with(wait));
        if let Some(expected) = parse_duration(&value.value).err().filter(|_| is_wait && !value.value.contains("${")) {
            let found = if whole { format!("`{}`", value.value) } else { "no duration".to_owned() };
            report.push(Diagnostic::error(format!("`{}` is {found}", key.value)).at(value.span).expected(expected));
            return;
        }
        self.set.insert(name.to_owned(), value);
    }

    /// Takes a RESET of one key, or of all.
    pub(super) fn reset(&mut self, key: Option<&str>) {
        match key {
            Some(key) => drop(self.set.remove(if key == "restart-strategy" { STRATEGY } else { key })),
            None => self.set.clear(),
        }
    }

    /// What the pipeline is to be called.
    pub(super) fn name(&self) -> Option<&Located<String>> {
        self.set.get(NAME)
    }

    /// What is left out, without its value, which may be a secret.
    pub(super) fn left_out(&self) -> impl Iterator<Item = String> {
        let unknown = self.set.iter().filter(|(key, _)| !is_known(key));
        unknown.map(|(key, setting)| format!("SET '{key}' in line {}", setting.span.line))
    }

    /// Says what is set for a strategy that is not the one that is set.
    pub(super) fn idle(&self) -> Vec<Diagnostic> {
        let strategy = self.set.get(STRATEGY).map(|value| strategy(&value.value));
        // That there is none such is told.
        if strategy == Some(None) {
            return Vec::new();
        }
        let strategy = strategy.flatten().map(|(_, name, _)| *name);
        let below = |key: &str, name| key.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with(name));
        let idle = self.set.iter().filter(|(key, _)| {
            let other = || strategy.is_none_or(|name| !below(key, name));
            key.starts_with(PREFIX) && *key != STRATEGY && is_known(key) && other()
        });
        let warning = |(key, setting): (&String, &Located<String>)| {
            let why = match strategy {
                None => format!("`{STRATEGY}` is not set"),
                Some(name) => format!("`{STRATEGY}` is `{name}`"),
            };
            Diagnostic::warning(format!("`{key}` is left out: {why}")).at(setting.span)
        };
        idle.map(warning).collect()
    }

    /// The lines of `checkpoint:`.
    pub(super) fn checkpoint(&self) -> Vec<Line> {
        [("interval", INTERVAL), ("timeout", TIMEOUT)]
            .into_iter()
            .filter_map(|(key, name)| self.line(key, name))
            .collect()
    }

    fn line(&self, key: &'static str, name: &str) -> Option<Line> {
        let value = self.set.get(name)?;
        Some(Line { key, value: value.value.clone(), place: value.span })
    }

    /// The lines of `restart:`, and what is not quite the same here.
    ///
    /// # Errors
    /// A strategy that Flink does not have.
    pub(super) fn restart(&self) -> Result<(Vec<Line>, Option<&'static str>), Box<Diagnostic>> {
        let Some(value) = self.set.get(STRATEGY) else { return Ok((Vec::new(), None)) };
        let Some((_, strategy, _)) = strategy(&value.value) else {
            let names: Vec<_> = STRATEGIES.iter().map(|(_, name, _)| format!("`{name}`")).collect();
            let error = Diagnostic::error(format!("there is no restart strategy `{}`", value.value)).at(value.span);
            return Err(Box::new(error.expected(format!("one of {}", names.join(", ")))));
        };
        let of = |key, below: &str| self.line(key, &format!("restart-strategy.{strategy}.{below}"));
        // A wait that does not grow.
        let steady = |line: Line| Line { value: format!("{0}..{0}", wait(&line.value)), ..line };
        let lines = |lines: [Option<Line>; 3]| lines.into_iter().flatten().collect();
        Ok(match *strategy {
            "none" => (vec![Line { key: "max", value: "0".to_owned(), place: value.span }], None),
            "failure-rate" => {
                let delay = of("backoff", "delay").map(steady);
                let (max, within) = (of("max", "max-failures-per-interval"), of("within", "failure-rate-interval"));
                (lines([max, within, delay]), None)
            }
            "fixed-delay" => {
                let note = "Flink counts the attempts of fixed-delay over all the life of a job, here two minutes of health give them back.";
                let max = of("max", "attempts");
                let within = max.as_ref().map(|max| Line { key: "within", value: "365d".to_owned(), ..max.clone() });
                (lines([max, within, of("backoff", "delay").map(steady)]), Some(note))
            }
            _ => {
                let (first, most) = (of("", "initial-backoff"), of("", "max-backoff"));
                // Flink's defaults.
                let text =
                    |line: &Option<Line>, default| line.as_ref().map_or(default, |line| wait(&line.value)).to_owned();
                let backoff = first.as_ref().or(most.as_ref()).map(|line| Line {
                    key: "backoff",
                    value: format!("{}..{}", text(&first, "1s"), text(&most, "1min")),
                    place: line.place,
                });
                let note = "Flink goes on restarting with exponential-delay, here `restart.max` bounds it.";
                (lines([of("max", "attempts-before-reset-backoff"), backoff, None]), Some(note))
            }
        })
    }
}

/// A strategy by one of its names.
fn strategy(name: &str) -> Option<&'static Strategy> {
    let name = name.to_ascii_lowercase();
    STRATEGIES.iter().find(|(names, ..)| names.contains(&name.as_str()))
}

/// A wait as a definition may have it: above zero.
fn wait(written: &str) -> &str {
    if parse_duration(written).is_ok_and(|wait| wait.is_zero()) { "1ms" } else { written }
}

/// Every key that has a counterpart.
fn known() -> Vec<String> {
    let of =
        |(_, strategy, keys): &Strategy| keys.iter().map(|key| format!("{PREFIX}{strategy}.{key}")).collect::<Vec<_>>();
    let single = [INTERVAL, TIMEOUT, NAME, STRATEGY].into_iter().map(str::to_owned);
    single.chain(STRATEGIES.iter().flat_map(of)).collect()
}

fn is_known(name: &str) -> bool {
    [INTERVAL, TIMEOUT, NAME, STRATEGY].contains(&name)
        || STRATEGIES.iter().any(|(_, strategy, keys)| {
            name.strip_prefix(PREFIX)
                .and_then(|rest| rest.strip_prefix(strategy)?.strip_prefix('.'))
                .is_some_and(|key| keys.contains(&key))
        })
}
