//! Where reading begins, and where it ends.

use super::{
    options::{OFFSET_DATE, OFFSET_SPECIFIC, OFFSET_TIMESTAMP, SCAN_MODE, STOP_TIMESTAMP, TIME_ZONE},
    reading::Reading,
    zone::{self, DateError, FORM, Zone},
};
use crate::definition::OptionSpec;

/// Where a queue is read from that has no position yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Startup {
    /// At its first message.
    Earliest,
    /// After its last message.
    Latest,
    /// At the offset of the group; where it has none, like [`Startup::Earliest`].
    GroupOffsets,
    /// At the first message stored at this time or after, in milliseconds since 1970; where there is none, like
    /// [`Startup::Latest`].
    Timestamp(i64),
    /// At this offset, or the nearest that there is.
    Specific(u64),
}

/// The time zone of the options. An invalid one is reported.
pub(super) fn zone(reading: &mut Reading<'_>) -> Option<Zone> {
    let text = reading.opt_text(&TIME_ZONE)?;
    match Zone::parse(text) {
        Ok(zone) => Some(zone),
        Err(near) => {
            let expected = "a time zone such as `Asia/Shanghai`, or an offset such as `GMT+8`";
            reading.refuse(&TIME_ZONE, text, expected, near);
            None
        }
    }
}

/// Where reading begins.
pub(super) fn startup(reading: &mut Reading<'_>, zone: Option<Zone>) -> Startup {
    let values = values(reading, zone);
    if let [(first, _), (second, _), ..] = values[..] {
        let message = format!("`{}` and `{}` both say where reading begins", first.name, second.name);
        reading.error(second, message, "give one of them");
    }
    let Some(mode) = reading.opt_text(&SCAN_MODE) else {
        return values.first().map_or(Startup::Latest, |(_, startup)| *startup);
    };
    if let Some((spec, startup)) = values.first() {
        let message =
            format!("`{}` cannot be given with `{}`, which says the mode by itself", SCAN_MODE.name, spec.name);
        reading.error(&SCAN_MODE, message, "take one of the two out");
        return *startup;
    }
    let mut bare = |option: String| {
        let message = format!("`{}: {mode}` says nothing of where", SCAN_MODE.name);
        reading.error(&SCAN_MODE, message, &format!("give {option} in its place"));
        Startup::Latest
    };
    match mode {
        "timestamp" => bare(format!("`{}` or `{}`", OFFSET_TIMESTAMP.name, OFFSET_DATE.name)),
        "specific_offset" => bare(format!("`{}`", OFFSET_SPECIFIC.name)),
        "earliest" => Startup::Earliest,
        "group_offsets" => Startup::GroupOffsets,
        _ => Startup::Latest,
    }
}

/// Those of the three options that are set, with what they say. -1 is not set.
fn values(reading: &mut Reading<'_>, zone: Option<Zone>) -> Vec<(&'static OptionSpec, Startup)> {
    let mut values: Vec<(&'static OptionSpec, Startup)> = Vec::new();
    if let Ok(offset) = u64::try_from(reading.endpoint.options.integer(&OFFSET_SPECIFIC)) {
        values.push((&OFFSET_SPECIFIC, Startup::Specific(offset)));
    }
    let millis = reading.endpoint.options.integer(&OFFSET_TIMESTAMP);
    if millis >= 0 {
        values.push((&OFFSET_TIMESTAMP, Startup::Timestamp(millis)));
    }
    if let Some(text) = reading.opt_text(&OFFSET_DATE) {
        let at = date(reading, &OFFSET_DATE, text, &format!("a date and time as `{FORM}`"), zone);
        values.push((&OFFSET_DATE, Startup::Timestamp(at.unwrap_or_default())));
    }
    values
}

/// Where reading ends, in milliseconds since 1970; `None`: nowhere.
pub(super) fn stop(reading: &mut Reading<'_>, startup: Startup, zone: Option<Zone>) -> Option<i64> {
    let text = reading.opt_text(&STOP_TIMESTAMP).filter(|text| *text != "-1")?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let stop = match text.parse::<i64>() {
        Ok(millis) if digits => millis,
        _ => {
            let expected = format!("milliseconds since 1970, or a date and time as `{FORM}`");
            if zone::is_date(text) && reading.opt_text(&TIME_ZONE).is_none() {
                let message = format!("a date in `{}` needs a time zone", STOP_TIMESTAMP.name);
                reading.error(&STOP_TIMESTAMP, message, &format!("give `{}`", TIME_ZONE.name));
                return None;
            }
            date(reading, &STOP_TIMESTAMP, text, &expected, zone)?
        }
    };
    if matches!(startup, Startup::Timestamp(start) if stop < start) {
        let message = format!("`{}` is before the time that reading begins at", STOP_TIMESTAMP.name);
        reading.error(&STOP_TIMESTAMP, message, "nothing would be read");
    }
    Some(stop)
}

/// The time of a date in an option. What is wrong with it is reported, except that there is no zone.
fn date(
    reading: &mut Reading<'_>,
    spec: &'static OptionSpec,
    text: &str,
    expected: &str,
    zone: Option<Zone>,
) -> Option<i64> {
    let Some(zone) = zone else {
        if !zone::is_date(text) {
            reading.refuse(spec, text, expected, None);
        }
        return None;
    };
    let twice = "give the milliseconds since 1970";
    let error = match zone.millis(text) {
        Ok(millis) => return Some(millis),
        Err(error) => error,
    };
    match error {
        DateError::Form => reading.refuse(spec, text, expected, None),
        DateError::Skipped => {
            reading.error(spec, format!("`{}` is a time that clocks in that zone went forward over", spec.name), twice);
        }
        DateError::Twice => {
            reading.error(spec, format!("`{}` is a time that clocks in that zone showed twice", spec.name), twice);
        }
    }
    None
}
