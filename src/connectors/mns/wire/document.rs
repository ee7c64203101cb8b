//! Walking a document and writing texts.

use std::borrow::Cow;

use quick_xml::{Reader, events::Event};

/// A document that cannot be read. Says what and where, never the document itself.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// It is not well-formed XML.
    #[error("malformed XML at byte {0}")]
    Malformed(u64),
    /// An element that must be there is not.
    #[error("the element {0} is missing")]
    Missing(&'static str),
    /// An element's text is not a number of the right kind.
    #[error("the element {0} is not a number in range")]
    Number(&'static str),
    /// The root is none of those expected.
    #[error("unexpected root element {0:?}")]
    Root(String),
}

/// A step of a walk. Names are local names.
pub(super) enum Step<'a> {
    /// An element begins.
    Open,
    /// An element ends; its text, if it had no children.
    Close(Cow<'a, str>),
}

/// Walks a document and calls `visit` with the names from the root down to the element at hand.
///
/// Answers [`WireError::Malformed`] for anything that is not one well-formed root element, and the first error of
/// `visit`.
pub(super) fn walk<'a>(
    xml: &'a [u8],
    mut visit: impl FnMut(&[&'a [u8]], Step<'a>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut reader = Reader::from_reader(xml);
    // `<a/>` then reads like `<a></a>`.
    reader.config_mut().expand_empty_elements = true;
    let mut path: Vec<&'a [u8]> = Vec::with_capacity(8);
    let mut text: Cow<'a, str> = Cow::Borrowed("");
    let mut roots = 0;
    loop {
        let event = reader.read_event().map_err(|_| WireError::Malformed(reader.error_position()))?;
        let malformed = || WireError::Malformed(reader.buffer_position());
        match event {
            Event::Start(start) => {
                roots += usize::from(path.is_empty());
                path.push(local_name(xml, &start).ok_or_else(malformed)?);
                text = Cow::Borrowed("");
                visit(&path, Step::Open)?;
            }
            Event::End(_) => {
                visit(&path, Step::Close(std::mem::take(&mut text)))?;
                path.pop();
            }
            Event::Text(part) => {
                let part = borrow(part.into_inner()).ok_or_else(malformed)?;
                if path.is_empty() && !part.trim_matches([' ', '\t', '\r', '\n', '\u{feff}']).is_empty() {
                    return Err(malformed());
                }
                append(&mut text, part);
            }
            Event::CData(part) => append(&mut text, borrow(part.into_inner()).ok_or_else(malformed)?),
            Event::GeneralRef(reference) => {
                let character = match reference.resolve_char_ref().map_err(|_| malformed())? {
                    Some(character) => character,
                    None => predefined(&reference).ok_or_else(malformed)?,
                };
                text.to_mut().push(character);
            }
            Event::Eof if path.is_empty() && roots == 1 => return Ok(()),
            Event::Eof => return Err(malformed()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

/// The name without a prefix, borrowed from the document itself so that it outlives the event.
fn local_name<'a>(xml: &'a [u8], start: &quick_xml::events::BytesStart<'_>) -> Option<&'a [u8]> {
    let name = start.local_name();
    let name = name.as_ref();
    // The reader of a slice hands out parts of that slice, so the place of the name in it can be told.
    let offset = (name.as_ptr() as usize).checked_sub(xml.as_ptr() as usize)?;
    xml.get(offset..offset.checked_add(name.len())?)
}

fn borrow(bytes: Cow<'_, [u8]>) -> Option<Cow<'_, str>> {
    match bytes {
        Cow::Borrowed(bytes) => simdutf8::basic::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

fn append<'a>(text: &mut Cow<'a, str>, part: Cow<'a, str>) {
    if text.is_empty() {
        *text = part;
    } else {
        text.to_mut().push_str(&part);
    }
}

/// The five entities XML itself defines. Others cannot be declared here.
fn predefined(name: &[u8]) -> Option<char> {
    match name {
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"amp" => Some('&'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        _ => None,
    }
}

/// A text as it must stand in an element: `<`, `>` and `&` escaped, and carriage returns, which a reader would
/// otherwise turn into newlines.
pub fn escape(text: &str) -> Cow<'_, str> {
    let escaped = quick_xml::escape::partial_escape(text);
    if escaped.contains('\r') { Cow::Owned(escaped.replace('\r', "&#13;")) } else { escaped }
}

/// Whether XML 1.0 can carry the text at all: most control characters have no way in, escaped or not.
pub fn is_xml_text(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && c != '\u{fffe}' && c != '\u{ffff}'))
}

/// Appends `<name>text</name>` on a line of its own, indented by `indent` spaces. The text must not need escaping
/// or be escaped already.
pub(super) fn line(out: &mut String, indent: usize, name: &str, text: &str) {
    out.extend(std::iter::repeat_n(' ', indent));
    tag(out, name, text);
    out.push('\n');
}

/// Appends `<name>text</name>`; as for [`line`].
pub(super) fn tag(out: &mut String, name: &str, text: &str) {
    for part in ["<", name, ">", text, "</", name, ">"] {
        out.push_str(part);
    }
}

/// Reads a number.
pub(super) fn number<T: std::str::FromStr>(name: &'static str, text: &str) -> Result<T, WireError> {
    text.trim().parse().map_err(|_| WireError::Number(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(xml: &str) -> Result<Vec<String>, WireError> {
        let mut texts = Vec::new();
        walk(xml.as_bytes(), |path, step| {
            if let (2, Step::Close(text)) = (path.len(), step) {
                texts.push(text.into_owned());
            }
            Ok(())
        })?;
        Ok(texts)
    }

    #[test]
    fn texts_are_kept_byte_for_byte() {
        let xml = "\u{feff}<?xml version=\"1.0\" ?>\n<a xmlns=\"x\">\n <b>  &lt;x&gt; &amp;&#38; \r\n&#x4E16; <![CDATA[<&amp;]]> </b><b/><b></b></a>\n";
        assert_eq!(texts(xml).expect("well-formed"), ["  <x> && \r\n世 <&amp; ", "", ""]);
    }

    #[test]
    fn names_are_matched_without_prefix() {
        let mut seen = Vec::new();
        walk(b"<m:a xmlns:m='x'><m:b>1</m:b></m:a>", |path, _| {
            seen.push(path.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>().join("/"));
            Ok(())
        })
        .expect("well-formed");
        assert_eq!(seen, ["a", "a/b", "a/b", "a"]);
    }

    #[test]
    fn what_is_not_one_well_formed_element_is_malformed() {
        for xml in
            ["", "x", "<a>", "<a></b>", "<a/><b/>", "<a>a <b> & c</a>", "<a>&unknown;</a>", "<a>&#xD800;</a>", "<a/>x"]
        {
            assert!(matches!(texts(xml), Err(WireError::Malformed(_))), "{xml}");
        }
    }

    #[test]
    fn what_is_escaped_reads_back_as_it_was() {
        let text = "a<b>&c\r\n\t\"' \u{1F600}]]>";
        assert_eq!(texts(&format!("<a><b>{}</b></a>", escape(text))).expect("well-formed"), [text]);
        assert!(is_xml_text(text));
        assert!(!is_xml_text("\u{1}"));
    }
}
