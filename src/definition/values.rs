//! From the text of a value to the value an option accepts, and what the option accepts in words.

use std::{path::PathBuf, time::Duration};

use bigdecimal::BigDecimal;

use super::{
    options::{OptionKind, OptionValue},
    units::{self, show_duration},
};
use crate::model::nearest;

/// Why a text is no value of an option. Does not repeat the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What was expected.
    pub expected: String,
    /// The nearest valid value, if one is near.
    pub nearest: Option<&'static str>,
}

impl OptionKind {
    /// Reads a value.
    pub fn parse(&self, text: &str) -> Result<OptionValue, Refusal> {
        let refusal = |_: &str| Refusal { expected: self.describe(), nearest: None };
        match *self {
            Self::Text if text.is_empty() => Err(refusal("")),
            Self::Text | Self::AnyText => Ok(OptionValue::Text(text.to_owned())),
            Self::Url if is_url(text) => Ok(OptionValue::Text(text.to_owned())),
            Self::Url => Err(refusal("")),
            Self::Integer { min, max } => {
                let value = units::parse_integer(text).map_err(refusal)?;
                if (min..=max).contains(&value) { Ok(OptionValue::Integer(value)) } else { Err(refusal("")) }
            }
            Self::Boolean => units::parse_boolean(text).map(OptionValue::Boolean).map_err(refusal),
            Self::Duration { min, max } => {
                let value = units::parse_duration(text).map_err(refusal)?;
                if (min..=max).contains(&value) { Ok(OptionValue::Duration(value)) } else { Err(refusal("")) }
            }
            Self::Choice { values, any_case } => {
                let same = |value: &&&str| if any_case { value.eq_ignore_ascii_case(text) } else { **value == text };
                values.iter().find(same).map(|value| OptionValue::Text((*value).to_owned())).ok_or_else(|| Refusal {
                    expected: self.describe(),
                    nearest: nearest(text, values.iter().copied()),
                })
            }
            Self::Path if text.is_empty() || text.contains('\0') => Err(refusal("")),
            Self::Path => Ok(OptionValue::Path(PathBuf::from(text))),
            Self::Character => units::parse_character(text).map(OptionValue::Character).map_err(refusal),
            Self::Size => units::parse_size(text).map(OptionValue::Size).map_err(refusal),
            Self::Number => units::parse_number(text).map(OptionValue::Number).map_err(refusal),
            Self::Share => {
                let share = units::parse_number(text).map_err(refusal)?;
                let (none, all) = (BigDecimal::from(0), BigDecimal::from(1));
                if none <= share && share <= all { Ok(OptionValue::Number(share)) } else { Err(refusal("")) }
            }
            Self::Rate => units::parse_rate(text).map(OptionValue::Rate).map_err(refusal),
            Self::Backoff => {
                let (least, most) = units::parse_backoff(text).map_err(refusal)?;
                Ok(OptionValue::Backoff(least, most))
            }
            Self::Gone(_) => Err(refusal("")),
        }
    }

    /// What it accepts, in words that follow "expected".
    pub fn describe(&self) -> String {
        match *self {
            Self::Text => "a text that is not empty".into(),
            Self::AnyText => "a text, which may be empty".into(),
            Self::Url => "an absolute `http://` or `https://` URL without a user or password".into(),
            Self::Integer { min, max } => match (min == i64::MIN, max == i64::MAX) {
                (true, true) => "an integer".into(),
                (true, false) => format!("an integer of at most {max}"),
                (false, true) => format!("an integer of at least {min}"),
                (false, false) => format!("an integer from {min} to {max}"),
            },
            Self::Boolean => "`true` or `false`".into(),
            Self::Duration { min, max } => match (min.is_zero(), max == Duration::MAX) {
                (true, true) => "a duration such as `10s` or `500 ms`".into(),
                (false, true) => format!("a duration of at least {}, such as `10s`", show_duration(min)),
                (_, false) => {
                    format!("a duration from {} to {}, such as `10s`", show_duration(min), show_duration(max))
                }
            },
            Self::Choice { values, any_case } => {
                let list: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
                let case = if any_case { "" } else { " (in this case)" };
                match list.split_last() {
                    Some((only, [])) => format!("{only}{case}"),
                    Some((last, others)) => format!("{} or {last}{case}", others.join(", ")),
                    None => "nothing".into(),
                }
            }
            Self::Path => "a path".into(),
            Self::Character => "exactly one character (`\\t`, `\\n` and `\\u0001` are understood)".into(),
            Self::Size => "a size such as `128mb` (a bare number is bytes)".into(),
            Self::Number => "a number such as `10` or `-1.5`".into(),
            Self::Share => "a number from 0 to 1".into(),
            Self::Rate => "a rate such as `500/s`, `30000/min` or `1/h`".into(),
            Self::Backoff => "a range of durations such as `1s..60s`, the shorter first".into(),
            Self::Gone(why) => format!("nothing: {why}"),
        }
    }
}

fn is_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            // The parser mends `http:host`; a person should.
            && text.get(url.scheme().len()..).is_some_and(|rest| rest.starts_with("://"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_absolute_http_without_credentials() {
        for text in ["http://127.0.0.1:9871", "https://1.mns.cn-hangzhou.aliyuncs.com/", "HTTP://h"] {
            assert!(OptionKind::Url.parse(text).is_ok(), "{text}");
        }
        for text in ["", "127.0.0.1:9871", "ftp://h", "http:h", "http://", "http://u:p@h", "http://u@h", "/x"] {
            assert!(OptionKind::Url.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_include_both_ends() {
        let kind = OptionKind::Integer { min: 1, max: 16 };
        for (text, good) in [("0", false), ("1", true), ("16", true), ("17", false), ("x", false)] {
            assert_eq!(kind.parse(text).is_ok(), good, "{text}");
        }
        let kind = OptionKind::Duration { min: Duration::ZERO, max: Duration::from_secs(30) };
        for (text, good) in [("0", true), ("30s", true), ("30001", false)] {
            assert_eq!(kind.parse(text).is_ok(), good, "{text}");
        }
        assert_eq!(kind.describe(), "a duration from 0s to 30s, such as `10s`");
    }

    #[test]
    fn a_choice_is_handed_out_in_its_own_spelling() {
        let kind = OptionKind::Choice { values: &["FAIL", "DROP"], any_case: true };
        assert_eq!(kind.parse("drop"), Ok(OptionValue::Text("DROP".into())));
        let kind = OptionKind::Choice { values: &["SQL", "ISO-8601"], any_case: false };
        let refusal = kind.parse("iso-8601").unwrap_err();
        assert_eq!(refusal.nearest, Some("ISO-8601"));
        assert_eq!(refusal.expected, "`SQL` or `ISO-8601` (in this case)");
    }
}
