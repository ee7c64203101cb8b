//! Ids that a sender gives its messages.

use std::sync::{
    LazyLock,
    atomic::{AtomicU16, Ordering},
};

use chrono::{Datelike, Local, NaiveDate, TimeZone};

/// Ids are 16 bytes in hex, laid out as the Java client's: ten bytes that are this process's own, milliseconds since
/// the month began, a counter. Tools read the time out of an id to know where to look for its message.
pub fn of_now() -> impl Iterator<Item = String> {
    static OWN: LazyLock<String> = LazyLock::new(|| format!("{:020X}", fastrand::u128(..) >> 48));
    static COUNTER: AtomicU16 = AtomicU16::new(0);
    // The calendar costs more than all the rest: one look at it serves all messages of a request.
    let span = into_month(chrono::Utc::now().timestamp_millis());
    std::iter::repeat_with(move || format!("{}{span:08X}{:04X}", *OWN, COUNTER.fetch_add(1, Ordering::Relaxed)))
}

/// Milliseconds since the month of `now_ms` began here; they take 32 bits.
fn into_month(now_ms: i64) -> u32 {
    let began = chrono::DateTime::from_timestamp_millis(now_ms)
        .map(|now| now.with_timezone(&Local).date_naive())
        .and_then(|date| NaiveDate::from_ymd_opt(date.year(), date.month(), 1))
        .and_then(|first| first.and_hms_opt(0, 0, 0))
        .and_then(|first| Local.from_local_datetime(&first).earliest());
    began.and_then(|began| u32::try_from(now_ms - began.timestamp_millis()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ_and_have_the_layout_of_the_java_client() {
        let ids: HashSet<_> = of_now().take(60_000).collect();
        assert_eq!(ids.len(), 60_000);
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'))));
    }

    #[test]
    fn an_id_holds_the_milliseconds_since_its_month_began() {
        let day = 24 * 3600 * 1000;
        let within = into_month(chrono::Utc::now().timestamp_millis());
        assert!(i64::from(within) < 31 * day + 3600 * 1000, "{within}");
    }
}
