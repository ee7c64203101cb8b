//! Dates in options, and the time zones they are in.

use chrono::{FixedOffset, LocalResult, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};

use crate::model::nearest;

/// The form of a date in an option.
pub(super) const FORM: &str = "yyyy-MM-dd HH:mm:ss";

/// `rocketmq.client.timeZone`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    /// By its name in the tz database.
    Named(Tz),
    /// East of UTC.
    Fixed(FixedOffset),
}

/// Why a date is no point in time. Does not repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateError {
    /// It is not of the form.
    Form,
    /// Clocks went forward over it.
    Skipped,
    /// Clocks went back to it.
    Twice,
}

impl Zone {
    /// Reads a name of the tz database, in its case, or an offset: `GMT+8`, `UTC+08:00`, `+0800`, `Z`. Java's
    /// `TimeZone` takes any other text for GMT.
    ///
    /// # Errors
    /// The nearest name that there is, if one is near.
    pub(super) fn parse(text: &str) -> Result<Self, Option<&'static str>> {
        if let Ok(named) = text.parse() {
            return Ok(Self::Named(named));
        }
        let unnamed = ["GMT", "UTC"].iter().find_map(|name| text.strip_prefix(name)).unwrap_or(text);
        if text == "Z" {
            return Ok(Self::Fixed(Utc.fix()));
        }
        // Of abbreviations such as CST several zones are meant, and none that looks like them.
        let names = TZ_VARIANTS.iter().map(|zone| zone.name()).filter(|_| text.len() > 4);
        offset(unnamed).map(Self::Fixed).ok_or_else(|| nearest(text, names))
    }

    /// The time of a [`FORM`] in this zone, in milliseconds since 1970.
    ///
    /// A time that the zone does not have, or has twice, is refused: Java picks one of two, and nobody can tell which
    /// was meant.
    pub(super) fn millis(self, text: &str) -> Result<i64, DateError> {
        let local = parse_date(text).ok_or(DateError::Form)?;
        let found = match self {
            Self::Named(zone) => zone.from_local_datetime(&local).map(|at| at.timestamp_millis()),
            Self::Fixed(zone) => zone.from_local_datetime(&local).map(|at| at.timestamp_millis()),
        };
        match found {
            LocalResult::Single(millis) => Ok(millis),
            LocalResult::None => Err(DateError::Skipped),
            LocalResult::Ambiguous(..) => Err(DateError::Twice),
        }
    }
}

/// Whether a text is of the [`FORM`].
pub(super) fn is_date(text: &str) -> bool {
    parse_date(text).is_some()
}

fn parse_date(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").ok()
}

/// A sign, one or two digits of hours, and two of minutes, which may be left out or follow a colon.
fn offset(text: &str) -> Option<FixedOffset> {
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix('-')?),
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if rest.len() > 2 => rest.split_at_checked(rest.len() - 2)?,
        None => (rest, "00"),
    };
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i32>().ok()).flatten();
    let (hours, minutes) = (number(hours).filter(|_| hours.len() <= 2)?, number(minutes)?);
    let inside = hours <= 23 && minutes <= 59;
    inside.then(|| FixedOffset::east_opt(sign * (hours * 3600 + minutes * 60))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(zone: &str, date: &str) -> Result<i64, DateError> {
        Zone::parse(zone).unwrap().millis(date)
    }

    #[test]
    fn a_date_is_read_in_its_zone_whichever_way_that_is_named() {
        let noon = Ok(1_796_011_200_000);
        for zone in ["Asia/Shanghai", "GMT+8", "GMT+08", "GMT+08:00", "GMT+0800", "UTC+8", "+08:00", "+8", "+0800"] {
            assert_eq!(millis(zone, "2026-11-30 12:00:00"), noon, "{zone}");
        }
        for zone in ["UTC", "GMT", "Z", "+00:00", "-0", "Etc/UTC"] {
            assert_eq!(millis(zone, "2026-11-30 04:00:00"), noon, "{zone}");
        }
        assert_eq!(millis("GMT-3:30", "2026-11-30 00:30:00"), noon);
    }

    #[test]
    fn an_unknown_zone_is_none_and_the_nearest_is_named() {
        assert_eq!(Zone::parse("Asia/Shangai"), Err(Some("Asia/Shanghai")));
        assert_eq!(Zone::parse("asia/shanghai"), Err(Some("Asia/Shanghai")));
        assert_eq!(Zone::parse("CST"), Err(None));
        for wrong in
            ["CST", "GMT+", "+", "GMT+24", "+08:0", "+8:60", "+08:000", "+12345", "8", "", "UTC8", "+ 8", "++8"]
        {
            assert!(Zone::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_that_is_not_there_or_there_twice_is_none() {
        assert_eq!(millis("Europe/Berlin", "2026-03-29 02:30:00"), Err(DateError::Skipped));
        assert_eq!(millis("Europe/Berlin", "2026-10-25 02:30:00"), Err(DateError::Twice));
        for wrong in ["", "2026-11-30", "2026-11-30T12:00:00", "2026-02-30 00:00:00", "2026-11-30 12:00:00.5", "0"] {
            assert_eq!(millis("UTC", wrong), Err(DateError::Form), "{wrong}");
        }
    }
}
