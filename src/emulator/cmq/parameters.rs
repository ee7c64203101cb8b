//! The parameters of a request.

use std::ops::RangeInclusive;

use super::answer::{BATCH_SIZE, Code, INDEX_GAP, QUEUE_NAME};
use crate::connectors::cmq::wire::MOST_PER_CALL;

/// Decoded, in the order of the request. Those nobody asks for are signed and otherwise ignored.
#[derive(Debug)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Of a query or a form.
    pub(super) fn parse(text: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(text).into_owned().collect())
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn queue(&self) -> Result<&str, Code> {
        self.get("queueName").ok_or(QUEUE_NAME)
    }

    /// A number in `range`; anything else is `wrong`.
    pub(super) fn number(&self, name: &str, range: RangeInclusive<u32>, wrong: Code) -> Result<Option<u32>, Code> {
        match self.get(name).map(str::parse) {
            None => Ok(None),
            Some(Ok(number)) if range.contains(&number) => Ok(Some(number)),
            Some(_) => Err(wrong),
        }
    }

    /// The values of `name.N`, by N: from 0 or 1 on without a gap, and 1 to 16 of them.
    pub(super) fn list(&self, name: &str) -> Result<Vec<&str>, Code> {
        let mut values = Vec::new();
        for (key, value) in self.pairs() {
            if let Some(index) = key.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
                values.push((index.parse::<usize>().map_err(|_| INDEX_GAP)?, value));
            }
        }
        if !(1..=MOST_PER_CALL).contains(&values.len()) {
            return Err(BATCH_SIZE);
        }
        values.sort_by_key(|(index, _)| *index);
        let first = values.first().map_or(0, |(index, _)| *index);
        let is_whole = first <= 1 && values.iter().enumerate().all(|(at, (index, _))| first + at == *index);
        if is_whole { Ok(values.into_iter().map(|(_, value)| value).collect()) } else { Err(INDEX_GAP) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: &str) -> Result<String, Code> {
        Parameters::parse(query.as_bytes()).list("msgBody").map(|values| values.join(" "))
    }

    #[test]
    fn a_list_is_by_number_and_begins_at_0_or_1() {
        assert_eq!(list("msgBody.0=a&x=1&msgBody.1=b"), Ok("a b".into()));
        let reversed: Vec<_> = (1..=16).rev().map(|n| format!("msgBody.{n}={n}")).collect();
        assert_eq!(list(&reversed.join("&")).expect("consecutive"), (1..=16).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
        for gap in ["msgBody.2=a", "msgBody.1=a&msgBody.3=b", "msgBody.1=a&msgBody.1=b", "msgBody.x=a"] {
            assert_eq!(list(gap), Err(INDEX_GAP), "{gap}");
        }
        assert_eq!(list("msgBody=a"), Err(BATCH_SIZE));
        let many: Vec<_> = (1..=17).map(|n| format!("msgBody.{n}=a")).collect();
        assert_eq!(list(&many.join("&")), Err(BATCH_SIZE));
    }
}
