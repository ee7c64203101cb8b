//! Names, texts and comments as Flink's SQL writes them.

/// A name, quoted.
pub(super) fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text, quoted.
pub(super) fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A text with escapes: one that holds what cannot be seen, or a dollar sign that begins no reference.
fn escaped(text: &str) -> String {
    let mut written = String::from("U&'");
    for c in text.chars() {
        match c {
            '\'' => written.push_str("''"),
            '\\' => written.push_str("\\\\"),
            c if c.is_control() || c == '$' => written.push_str(&format!("\\{:04X}", u32::from(c))),
            c => written.push(c),
        }
    }
    written.push('\'');
    written
}

/// A value of a definition, with its references as they are and `$$` as the dollar sign it stands for.
pub(super) fn value(written: &str) -> String {
    let (mut plain, mut rest) = (String::new(), written);
    let (mut refers, mut seems_to) = (false, false);
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let length = match from.as_bytes() {
            [b'$', b'$', after @ ..] => {
                seems_to |= after.first() == Some(&b'{');
                plain.push('$');
                2
            }
            [b'$', b'{', ..] => {
                refers = true;
                let length = from.find('}').map_or(from.len(), |end| end + 1);
                plain.push_str(from.get(..length).unwrap_or_default());
                length
            }
            _ => {
                plain.push('$');
                1
            }
        };
        rest = from.get(length..).unwrap_or_default();
    }
    plain.push_str(rest);
    // Escapes would make a reference a text.
    if !refers && (seems_to || plain.contains(char::is_control)) { escaped(&plain) } else { text(&plain) }
}

/// A comment of one line.
pub(super) fn comment(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("-- {text}\n")
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
            ("a\nb\\c'd", "U&'a\\000Ab\\\\c''d'"),
            ("a\\tb", "'a\\tb'"),
        ] {
            assert_eq!(value(written), expected, "{written}");
        }
    }
}
