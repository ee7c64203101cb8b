//! Parts of addresses.

use std::borrow::Cow;

use url::Url;

use super::{Function, Param::Text, STRING, function, texts};

pub(super) const FUNCTIONS: &[Function] = &[function("PARSE_URL", 2..=3, |given| {
    let kernel = texts(|row| {
        let key = (row.len() > 2).then(|| row.text(2));
        Ok(part(row.text(0), row.text(1), key).map(Cow::Owned))
    });
    Ok(given.with(&[Text])?.strict_nullable(STRING, kernel))
})];

/// A part by the name that Java's `URL` and Flink give it; null if there is none, or the text is no address.
fn part(text: &str, name: &str, key: Option<&str>) -> Option<String> {
    let url = Url::parse(text).ok()?;
    // As written: Url knows the usual ports and would leave them out, and would escape what it finds.
    let written = text.split_once("://").map(|(_, rest)| rest)?;
    let end = |text: &str, stops: &[char]| text.find(stops).unwrap_or(text.len());
    let (authority, rest) = written.split_at(end(written, &['/', '?', '#']));
    let (before, reference) =
        rest.split_once('#').map_or((rest, None), |(before, reference)| (before, Some(reference)));
    let (path, query) = before.split_once('?').map_or((before, None), |(path, query)| (path, Some(query)));
    match (name, key) {
        ("QUERY", Some(key)) => {
            let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
        }
        (_, Some(_)) => None,
        ("HOST", _) => url.host_str().map(str::to_owned),
        ("PATH", _) => Some(path.to_owned()),
        ("QUERY", _) => query.map(str::to_owned),
        ("REF", _) => reference.map(str::to_owned),
        ("PROTOCOL", _) => Some(url.scheme().to_owned()),
        ("FILE", _) => Some(before.to_owned()),
        ("AUTHORITY", _) => Some(authority.to_owned()),
        ("USERINFO", _) => authority.rsplit_once('@').map(|(user, _)| user.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_are_those_that_are_written() {
        let of = |name, key| part("http://u:p@example.com:80/a/b.php?q=1&k=v%20w#r", name, key);
        assert_eq!(of("HOST", None).as_deref(), Some("example.com"));
        assert_eq!(of("AUTHORITY", None).as_deref(), Some("u:p@example.com:80"));
        assert_eq!(of("FILE", None).as_deref(), Some("/a/b.php?q=1&k=v%20w"));
        assert_eq!(of("QUERY", Some("k")).as_deref(), Some("v%20w"));
        assert_eq!(of("QUERY", Some("zz")), None);
        assert_eq!(of("host", None), None);
        assert_eq!(part("no address", "HOST", None), None);
    }
}
