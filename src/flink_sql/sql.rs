//! Names, texts and comments as Flink's SQL writes them.

use super::yaml::{ends_line, in_one_line};

/// A name, quoted.
pub(super) fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text, quoted.
pub(super) fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A text as it stands between the quotes of `U&'...'`. `dollars`: a dollar sign is escaped too, so that it begins no
/// reference.
fn escaped(text: &str, dollars: bool) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\'' => written.push_str("''"),
            '\\' => written.push_str("\\\\"),
            c if c.is_control() || ends_line(c) || (c == '$' && dollars) => {
                written.push_str(&format!("\\{:04X}", u32::from(c)));
            }
            c => written.push(c),
        }
    }
    written
}

/// A stretch of a value.
enum Stretch<'a> {
    Plain(String),
    Reference(&'a str),
}

/// Cuts a value of a definition; `$$` becomes the dollar sign it stands for.
fn cut(written: &str) -> Vec<Stretch<'_>> {
    let (mut stretches, mut plain, mut rest) = (Vec::new(), String::new(), written);
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let length = if from.starts_with("${") {
            let length = from.find('}').map_or(from.len(), |end| end + 1);
            stretches.push(Stretch::Plain(std::mem::take(&mut plain)));
            stretches.push(Stretch::Reference(from.get(..length).unwrap_or_default()));
            length
        } else {
            plain.push('$');
            if from.starts_with("$$") { 2 } else { 1 }
        };
        rest = from.get(length..).unwrap_or_default();
    }
    plain.push_str(rest);
    stretches.push(Stretch::Plain(plain));
    stretches
}

/// A value of a definition, with its references as they are. A dollar sign that seems to begin one is written as an
/// escape, as is what cannot be seen.
pub(super) fn value(written: &str) -> String {
    let stretches = cut(written);
    let odd = |stretch: &Stretch<'_>| match stretch {
        Stretch::Plain(plain) => plain.contains("${") || plain.contains(|c: char| c.is_control() || ends_line(c)),
        Stretch::Reference(_) => false,
    };
    if stretches.iter().any(odd) {
        let inner = stretches.iter().map(|stretch| match stretch {
            Stretch::Plain(plain) => escaped(plain, true),
            Stretch::Reference(reference) => escaped(reference, false),
        });
        return format!("U&'{}'", inner.collect::<String>());
    }
    let inner = stretches.iter().map(|stretch| match stretch {
        Stretch::Plain(plain) => plain.as_str(),
        Stretch::Reference(reference) => reference,
    });
    text(&inner.collect::<String>())
}

/// A comment of one line.
pub(super) fn comment(text: &str) -> String {
    format!("-- {}\n", in_one_line(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_so_that_it_reads_back_as_it_is() {
        for (written, expected) in [
            ("it's", "'it''s'"),
            ("${A}-${secret_values.b}", "'${A}-${secret_values.b}'"),
            ("5$$", "'5$'"),
            ("$$${A}", "'$${A}'"),
            ("$${A}", "U&'\\0024{A}'"),
            ("$${A}-${B:-it's}$", "U&'\\0024{A}-${B:-it''s}\\0024'"),
            ("${A}\n", "U&'${A}\\000A'"),
            ("a\u{2028}b", "U&'a\\2028b'"),
            ("a\nb\\c'd", "U&'a\\000Ab\\\\c''d'"),
            ("a\\tb", "'a\\tb'"),
        ] {
            assert_eq!(value(written), expected, "{written}");
        }
    }
}
