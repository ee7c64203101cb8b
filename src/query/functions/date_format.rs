//! Patterns of dates and times as Java has them, such as `yyyy-MM-dd HH:mm:ss`.

use std::fmt::Write;

use chrono::{Datelike, Duration, Months, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Letters that have a meaning here.
const LETTERS: &str = "yuMLdDHhKkmsSaEew";

/// A pattern.
#[derive(Debug, Clone)]
pub(super) struct DateFormat {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A letter and how often it stands there.
    Field(char, usize),
}

/// Which of Java's readers a function uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// `DateTimeFormatter`: fields are as long as they say, and everything is read.
    Exact,
    /// `SimpleDateFormat`: numbers may be longer or shorter, the 13th month is the first of the next year, and what
    /// follows is left.
    Lenient,
}

impl DateFormat {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut characters = pattern.chars().peekable();
        let text = |pieces: &mut Vec<Piece>, character: char| match pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(character),
            _ => pieces.push(Piece::Text(character.into())),
        };
        while let Some(character) = characters.next() {
            match character {
                '\'' if characters.peek() == Some(&'\'') => {
                    characters.next();
                    text(&mut pieces, '\'');
                }
                '\'' => loop {
                    match characters.next() {
                        Some('\'') if characters.peek() == Some(&'\'') => {
                            characters.next();
                            text(&mut pieces, '\'');
                        }
                        Some('\'') => break,
                        Some(other) => text(&mut pieces, other),
                        None => return Err("a quote in the format is not closed".into()),
                    }
                },
                letter if letter.is_ascii_alphabetic() => {
                    if !LETTERS.contains(letter) {
                        return Err(format!(
                            "the letter {letter} in a format of times is not supported: expected one of {LETTERS}"
                        ));
                    }
                    let mut count = 1;
                    while characters.next_if_eq(&letter).is_some() {
                        count += 1;
                    }
                    if count > most(letter) {
                        return Err(format!(
                            "the letter {letter} stands {count} times in a format of times: at most {}",
                            most(letter)
                        ));
                    }
                    pieces.push(Piece::Field(letter, count));
                }
                '[' | ']' | '{' | '}' | '#' => {
                    return Err(format!("{character} in a format of times is not supported"));
                }
                other => text(&mut pieces, other),
            }
        }
        Ok(Self { pieces })
    }

    pub(super) fn write(&self, moment: NaiveDateTime) -> String {
        let mut out = String::with_capacity(24);
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Field(letter, count) => {
                    let written = write_field(&mut out, *letter, *count, moment);
                    debug_assert!(written.is_ok(), "a String takes everything");
                }
            }
        }
        out
    }

    /// Reads a text; what it does not have is that of 1970-01-01 00:00:00.
    pub(super) fn read(&self, text: &str, reader: Reader) -> Option<NaiveDateTime> {
        let mut found = Found::default();
        let mut rest = text;
        for (at, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Text(wanted) => rest = rest.strip_prefix(wanted.as_str())?,
                Piece::Field(letter, count) => {
                    let numeric =
                        |piece: &Piece| matches!(piece, Piece::Field(letter, count) if !is_word(*letter, *count));
                    let next = self.pieces.get(at + 1).is_some_and(numeric);
                    rest = found.field(*letter, *count, rest, next, reader)?;
                }
            }
        }
        if reader == Reader::Exact && !rest.is_empty() {
            return None;
        }
        found.resolve(reader)
    }
}

/// How often a letter may follow itself, as in Java's `DateTimeFormatterBuilder`.
const fn most(letter: char) -> usize {
    match letter {
        'y' | 'u' => 19,
        'S' => 9,
        'M' | 'L' | 'E' => 5,
        'D' => 3,
        'a' => 1,
        _ => 2,
    }
}

fn is_word(letter: char, count: usize) -> bool {
    match letter {
        'M' | 'L' => count > 2,
        'E' | 'a' => true,
        _ => false,
    }
}

fn write_field(out: &mut String, letter: char, count: usize, moment: NaiveDateTime) -> std::fmt::Result {
    let (date, time) = (moment.date(), moment.time());
    let number = |out: &mut String, value: u32| write!(out, "{value:0count$}");
    let word = |words: &[&'static str], index: u32| -> &'static str {
        let word = usize::try_from(index).ok().and_then(|index| words.get(index)).copied().unwrap_or_default();
        if count < 4 { word.get(..3).unwrap_or(word) } else { word }
    };
    match letter {
        'y' | 'u' if count == 2 => write!(out, "{:02}", date.year().rem_euclid(100)),
        'y' | 'u' => write!(out, "{:0count$}", date.year()),
        'M' | 'L' if count > 2 => out.write_str(word(&MONTHS, date.month0())),
        'M' | 'L' => number(out, date.month()),
        'd' => number(out, date.day()),
        'D' => number(out, date.ordinal()),
        'H' => number(out, time.hour()),
        'k' => number(out, if time.hour() == 0 { 24 } else { time.hour() }),
        'K' => number(out, time.hour() % 12),
        'h' => number(out, time.hour12().1),
        'm' => number(out, time.minute()),
        's' => number(out, time.second()),
        'S' => {
            let digits = format!("{:09}", time.nanosecond());
            write!(out, "{:0<count$}", digits.get(..count.min(9)).unwrap_or(&digits))
        }
        'a' => out.write_str(if time.hour() < 12 { "AM" } else { "PM" }),
        'E' => out.write_str(word(&DAYS, date.weekday().num_days_from_monday())),
        'e' => number(out, date.weekday().number_from_sunday()),
        // Weeks of the United States: from Sunday, and the first one has January 1. Days before it are its as well.
        'w' => {
            let first = date.with_ordinal(1).map_or(0, |first| first.weekday().num_days_from_sunday());
            let next =
                NaiveDate::from_ymd_opt(date.year() + 1, 1, 1).map_or(7, |next| next.weekday().num_days_from_sunday());
            let last_days =
                NaiveDate::from_ymd_opt(date.year(), 12, 31).map_or(0, |last| last.ordinal() - date.ordinal());
            number(out, if last_days < next { 1 } else { (date.ordinal0() + first) / 7 + 1 })
        }
        _ => Ok(()),
    }
}

/// A year of two digits as `SimpleDateFormat` has it: from 80 years before now on.
fn within_window(value: i64) -> i64 {
    // Not of the batch: a constant is read while planning.
    let first = i64::from(chrono::Utc::now().year()) - 80;
    first + (value - first).rem_euclid(100)
}

/// What was read so far.
#[derive(Debug, Default)]
struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    hour12: Option<i64>,
    afternoon: bool,
    minute: i64,
    second: i64,
    nanos: i64,
}

impl Found {
    /// Reads a field and answers what is left. `next`: a number follows at once.
    fn field<'a>(&mut self, letter: char, count: usize, text: &'a str, next: bool, reader: Reader) -> Option<&'a str> {
        if is_word(letter, count) {
            return self.word(letter, count, text, reader);
        }
        let lenient = reader == Reader::Lenient;
        let text = if lenient { text.trim_start_matches(' ') } else { text };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let most = match letter {
            'S' if !lenient => count,
            _ if next => count,
            'y' | 'u' if count == 2 && !lenient => 2,
            'y' | 'u' => 9,
            _ if count == 1 || lenient => 9,
            _ => count,
        };
        let taken = digits.min(most);
        if taken == 0 || (!lenient && taken < count) {
            return None;
        }
        let (number, rest) = text.split_at_checked(taken)?;
        let value = number.parse::<i64>().ok()?;
        match letter {
            'y' | 'u' if lenient && count <= 2 && taken == 2 => self.year = Some(within_window(value)),
            'y' | 'u' if count == 2 && taken == 2 => self.year = Some(2000 + value),
            'y' | 'u' => self.year = Some(value),
            'M' | 'L' => self.month = Some(value),
            'd' => self.day = Some(value),
            'D' => self.day_of_year = Some(value),
            'H' => self.hour = value,
            'k' => self.hour = if value == 24 { 0 } else { value },
            'h' => self.hour12 = Some(value % 12),
            'K' => self.hour12 = Some(value),
            'm' => self.minute = value,
            's' => self.second = value,
            'S' if lenient => self.nanos = value.checked_mul(1_000_000)?,
            'S' => self.nanos = format!("{:0<9}", number.get(..taken.min(9))?).parse().ok()?,
            _ => {}
        }
        Some(rest)
    }

    fn word<'a>(&mut self, letter: char, count: usize, text: &'a str, reader: Reader) -> Option<&'a str> {
        let begins = |word: &str| {
            let start = text.get(..word.len())?;
            let same = if reader == Reader::Lenient { start.eq_ignore_ascii_case(word) } else { start == word };
            same.then(|| text.get(word.len()..)).flatten()
        };
        match letter {
            'a' => {
                let rest = begins("PM").inspect(|_| self.afternoon = true);
                rest.or_else(|| begins("AM"))
            }
            'E' => DAYS.iter().find_map(|day| if count < 4 { begins(day.get(..3)?) } else { begins(day) }),
            _ => MONTHS.iter().zip(1..).find_map(|(month, number)| {
                let rest = if count < 4 { begins(month.get(..3)?)? } else { begins(month)? };
                self.month = Some(number);
                Some(rest)
            }),
        }
    }

    fn resolve(self, reader: Reader) -> Option<NaiveDateTime> {
        let hour = self.hour12.map_or(self.hour, |hour| hour + if self.afternoon { 12 } else { 0 });
        let year = i32::try_from(self.year.unwrap_or(1970)).ok()?;
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        if reader == Reader::Lenient {
            let start = NaiveDate::from_ymd_opt(year, 1, 1)?;
            let date = match self.day_of_year {
                Some(day) => start.checked_add_signed(Duration::try_days(day - 1)?)?,
                None => {
                    let months = Months::new(u32::try_from((month - 1).unsigned_abs()).ok()?);
                    let month_start = if month >= 1 {
                        start.checked_add_months(months)?
                    } else {
                        start.checked_sub_months(months)?
                    };
                    month_start.checked_add_signed(Duration::try_days(day - 1)?)?
                }
            };
            let seconds =
                hour.checked_mul(3600)?.checked_add(self.minute.checked_mul(60)?)?.checked_add(self.second)?;
            let moment = date.and_time(NaiveTime::MIN).checked_add_signed(Duration::try_seconds(seconds)?)?;
            return moment.checked_add_signed(Duration::nanoseconds(self.nanos));
        }
        let small = |value: i64| u32::try_from(value).ok();
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(year, small(day)?)?,
            None => {
                // A day up to 31 that the month does not have is its last one.
                let (month, day) = (small(month)?, small(day).filter(|day| (1..=31).contains(day))?);
                (28..=day.max(28)).rev().find_map(|last| NaiveDate::from_ymd_opt(year, month, day.min(last)))?
            }
        };
        let time =
            NaiveTime::from_hms_nano_opt(small(hour)?, small(self.minute)?, small(self.second)?, small(self.nanos)?)?;
        Some(date.and_time(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> NaiveDateTime {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let at = moment("2026-11-30T13:14:15.678");
        for pattern in
            ["yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmmssSSS", "EEE, d MMM yyyy hh:mm:ss.SSS a", "D yyyy HH'h'mm:ss.SSS"]
        {
            let format = DateFormat::new(pattern).unwrap();
            assert_eq!(format.read(&format.write(at), Reader::Exact), Some(at), "{pattern}");
        }
        assert_eq!(DateFormat::new("''yy''' at 'H").unwrap().write(at), "'26' at 13");
    }

    #[test]
    fn the_lenient_reader_rolls_over_and_leaves_the_rest() {
        let format = DateFormat::new("yyyy-MM-dd").unwrap();
        assert_eq!(format.read("2023-13-45 x", Reader::Lenient), Some(moment("2024-02-14T00:00:00")));
        assert_eq!(format.read("2023-13-45", Reader::Exact), None);
        assert_eq!(format.read("2024-1-2", Reader::Exact), None);
        assert_eq!(format.read("2024-1-2", Reader::Lenient), Some(moment("2024-01-02T00:00:00")));
        assert_eq!(format.read("2023-02-31", Reader::Exact), Some(moment("2023-02-28T00:00:00")));
    }

    #[test]
    fn weeks_are_those_of_the_united_states() {
        let week = |text: &str| DateFormat::new("w").unwrap().write(moment(text));
        assert_eq!(week("2026-11-30T00:00:00"), "49");
        assert_eq!(week("1969-12-31T00:00:00"), "1");
        assert_eq!(week("2000-01-31T00:00:00"), "6");
    }

    #[test]
    fn unknown_letters_are_refused() {
        assert!(DateFormat::new("yyyy-MM-ddTHH").unwrap_err().contains("letter T"));
        assert!(DateFormat::new("'open").is_err());
    }
}
