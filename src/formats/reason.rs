//! Words for the reasons that formats give.

/// Longest excerpt of a value in a reason, in characters.
const MOST_EXCERPT: usize = 40;

/// The beginning of a value, on one line.
pub(super) fn excerpt(text: &str) -> String {
    shortened(text, MOST_EXCERPT)
}

/// The beginning of a text, of so many characters, on one line.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let mut chars = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut short: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() {
        short.push_str("...");
    }
    short
}
