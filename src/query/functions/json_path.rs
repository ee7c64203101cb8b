//! Paths into JSON, as far as Jayway's JsonPath, which Flink uses, has a plain meaning: names, places, `*` and `..name`.
//! Filters, slices and functions are refused.

use super::json::Node;

/// What becomes of what is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is nothing.
    Lax,
    /// It is an error.
    Strict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    /// From the end if it is negative
    Place(i64),
    /// `*`
    Every,
    /// `..name`
    Anywhere(String),
}

/// A path.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) mode: Mode,
    steps: Vec<Step>,
}

impl Path {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let begins = |word: &str| {
            let start = trimmed.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word))?;
            trimmed.get(start.len()..).filter(|rest| rest.starts_with(char::is_whitespace))
        };
        let (mode, path) = match (begins("lax"), begins("strict")) {
            (Some(rest), _) => (Mode::Lax, rest.trim_start()),
            (_, Some(rest)) => (Mode::Strict, rest.trim_start()),
            _ => (Mode::Strict, trimmed),
        };
        let wrong = |what: &str| format!("'{text}' is no path of JSON here: {what}");
        // Jayway puts a $ before what has none.
        let mut rest = match path.strip_prefix('$') {
            Some(rest) => rest.to_owned(),
            None if path.starts_with(['.', '[']) || path.is_empty() => return Err(wrong("it begins with no $")),
            None => format!(".{path}"),
        };
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, left) = step(&rest).map_err(|what| wrong(&what))?;
            steps.push(step);
            rest = left;
        }
        Ok(Self { mode, steps })
    }

    /// What is found; many things are an array, as soon as the path could find many.
    pub(super) fn find(&self, document: &Node) -> Result<Option<Node>, String> {
        let many = self.steps.iter().any(|step| matches!(step, Step::Every | Step::Anywhere(_)));
        let nothing = || match self.mode {
            Mode::Lax => Ok(None),
            Mode::Strict => Err("the path finds nothing".to_owned()),
        };
        let mut found = vec![document];
        for step in &self.steps {
            if found.is_empty() {
                // Of many things there may be none, but not of what they are looked for in.
                return nothing();
            }
            let mut next = Vec::new();
            for node in found {
                follow(node, step, &mut next);
            }
            found = next;
        }
        if many {
            return Ok(Some(Node::Array(found.into_iter().cloned().collect())));
        }
        found.first().map_or_else(nothing, |node| Ok(Some((*node).clone())))
    }
}

fn follow<'n>(node: &'n Node, step: &Step, found: &mut Vec<&'n Node>) {
    match (step, node) {
        (Step::Name(name), Node::Object(entries)) => {
            found.extend(entries.iter().find(|(known, _)| known == name).map(|(_, value)| value));
        }
        (Step::Place(place), Node::Array(items)) => {
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let place = if *place < 0 { place.checked_add(length) } else { Some(*place) };
            found.extend(place.and_then(|place| usize::try_from(place).ok()).and_then(|place| items.get(place)));
        }
        (Step::Every, Node::Array(items)) => found.extend(items),
        (Step::Every, Node::Object(entries)) => found.extend(entries.iter().map(|(_, value)| value)),
        (Step::Anywhere(name), node) => {
            follow(node, &Step::Name(name.clone()), found);
            match node {
                Node::Array(items) => items.iter().for_each(|item| follow(item, step, found)),
                Node::Object(entries) => entries.iter().for_each(|(_, value)| follow(value, step, found)),
                _ => {}
            }
        }
        _ => {}
    }
}

/// The first step and what follows it.
fn step(text: &str) -> Result<(Step, String), String> {
    let split = |text: &str| {
        let end = text.find(['.', '[', '(']).unwrap_or(text.len());
        (text.get(..end).unwrap_or_default().to_owned(), text.get(end..).unwrap_or_default().to_owned())
    };
    if let Some(rest) = text.strip_prefix("..") {
        let (name, rest) = split(rest);
        return if name.is_empty() || name == "*" {
            Err("behind .. a name must stand".into())
        } else {
            Ok((Step::Anywhere(name), rest))
        };
    }
    if let Some(rest) = text.strip_prefix('.') {
        let (name, rest) = split(rest);
        return match (name.as_str(), rest.starts_with('(')) {
            (_, true) => Err("functions are not supported".into()),
            ("", _) => Err("a name is missing".into()),
            ("*", _) => Ok((Step::Every, rest)),
            _ => Ok((Step::Name(name), rest)),
        };
    }
    let Some(inner) = text.strip_prefix('[') else { return Err("a step begins with . or [".into()) };
    let inner = inner.trim_start();
    if let Some(quote) = inner.chars().next().filter(|first| matches!(first, '\'' | '"')) {
        let mut name = String::new();
        let mut characters = inner.chars();
        characters.next();
        loop {
            match characters.next() {
                Some('\\') => name.extend(characters.next()),
                Some(one) if one == quote => break,
                Some(one) => name.push(one),
                None => return Err("a quote is not closed".into()),
            }
        }
        let rest = characters.as_str().trim_start();
        let rest = rest.strip_prefix(']').ok_or("several names are not supported")?;
        return Ok((Step::Name(name), rest.to_owned()));
    }
    let (place, rest) = inner.split_once(']').ok_or("a bracket is not closed")?;
    match place.trim() {
        "*" => Ok((Step::Every, rest.to_owned())),
        place => match place.parse() {
            Ok(place) => Ok((Step::Place(place), rest.to_owned())),
            Err(_) => Err("filters and slices are not supported".into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str, document: &str) -> Result<Option<Node>, String> {
        Path::new(path).unwrap().find(&serde_json::from_str(document).unwrap())
    }

    #[test]
    fn paths_find_what_they_name() {
        let document = r#"{"a":{"b":[1,2,{"c d":"x"}]},"b":null}"#;
        assert_eq!(find("$.a.b[1]", document), Ok(Some(Node::Integer(2))));
        assert_eq!(find("$.a.b[-3]", document), Ok(Some(Node::Integer(1))));
        assert_eq!(find("$['a']['b'][2][\"c d\"]", document), Ok(Some(Node::Text("x".into()))));
        assert_eq!(find("a.b[0]", document), Ok(Some(Node::Integer(1))));
        assert_eq!(find("$.b", document), Ok(Some(Node::Null)));
        assert!(matches!(find("$..b", document), Ok(Some(Node::Array(all))) if all.len() == 2));
        assert!(matches!(find("$.a.b[*]", document), Ok(Some(Node::Array(all))) if all.len() == 3));
    }

    #[test]
    fn what_is_not_there_is_an_error_unless_the_path_is_lax() {
        assert!(find("$.z", "{}").is_err());
        assert!(find("strict $.z", "{}").is_err());
        assert_eq!(find("lax $.z", "{}"), Ok(None));
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        for path in ["$.a[?(@.b)]", "$.a[0:2]", "$.length()", "$.", "$.a[", "", ".a", "$..*"] {
            assert!(Path::new(path).is_err(), "{path}");
        }
    }
}
