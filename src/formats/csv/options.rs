//! The options of `csv`, named as Flink names them.

use crate::definition::{OptionKind, OptionSpec, OptionTable, Options};

/// `csv.field-delimiter`
pub static FIELD_DELIMITER: OptionSpec =
    OptionSpec::new("csv.field-delimiter", OptionKind::Character, "What separates the fields of a row.").default(",");

/// `csv.line-delimiter`
pub static LINE_DELIMITER: OptionSpec = OptionSpec::new(
    "csv.line-delimiter",
    OptionKind::Character,
    "What ends a row. When read: a body holds any number of rows, split outside quotes; with `\\n` or `\\r`, at LF, \
     CR and CRLF alike. An empty line is no row, unless there is only one column. Without it a body is one row, and \
     something after its line end is an error. When written: LF without it. Tencent's cmq has it; Flink had it up to \
     1.11, and has read one row a body ever since.",
)
.example("\\n");

/// `csv.disable-quote-character`
pub static DISABLE_QUOTE_CHARACTER: OptionSpec = OptionSpec::new(
    "csv.disable-quote-character",
    OptionKind::Boolean,
    "Whether there are no quotes, so that a quote is a character like any other. A row whose values would need quotes \
     is refused when written. Not together with csv.quote-character.",
)
.default("false");

/// `csv.quote-character`
pub static QUOTE_CHARACTER: OptionSpec = OptionSpec::new(
    "csv.quote-character",
    OptionKind::Character,
    "What encloses a field that holds delimiters, line ends or quotes; a quote inside is doubled. Default: `\"`.",
)
.example("\"");

/// `csv.allow-comments`
pub static ALLOW_COMMENTS: OptionSpec = OptionSpec::new(
    "csv.allow-comments",
    OptionKind::Boolean,
    "Whether lines that begin with `#`, after blanks or none, are left out, and empty lines with them. A body of \
     nothing else has no row, which is an error.",
)
.default("false");

/// `csv.ignore-parse-errors`
pub static IGNORE_PARSE_ERRORS: OptionSpec = OptionSpec::new(
    "csv.ignore-parse-errors",
    OptionKind::Boolean,
    "Whether a field that cannot be read becomes null, as do fields that a row lacks at its end, and a row with too \
     many fields or broken quotes is dropped; all are counted. Otherwise each is an error of the message. A value \
     that is NOT NULL takes what encloses it with it: the enclosing ROW or ARRAY becomes null, or the row is dropped.",
)
.default("false");

/// `csv.array-element-delimiter`
pub static ARRAY_ELEMENT_DELIMITER: OptionSpec = OptionSpec::new(
    "csv.array-element-delimiter",
    OptionKind::Character,
    "What separates the elements of an ARRAY and the fields of a ROW. A value that holds it cannot be told apart, so \
     its row is refused when written.",
)
.default(";");

/// `csv.escape-character`
pub static ESCAPE_CHARACTER: OptionSpec = OptionSpec::new(
    "csv.escape-character",
    OptionKind::Character,
    "What takes its meaning from the character after it, inside and outside quotes; `n`, `r`, `t` and `0` after it \
     stand for LF, CR, tab and NUL.",
)
.example("\\");

/// `csv.null-literal`
pub static NULL_LITERAL: OptionSpec = OptionSpec::new(
    "csv.null-literal",
    OptionKind::AnyText,
    "What null is read from and written as, in any column and inside ARRAY and ROW; a quoted field counts too. The \
     empty text makes every empty field null. Without it nothing is read as null, and null is written as an empty \
     field.",
)
.example("NULL");

/// `csv.write-bigdecimal-in-scientific-notation`
pub static SCIENTIFIC_DECIMALS: OptionSpec = OptionSpec::new(
    "csv.write-bigdecimal-in-scientific-notation",
    OptionKind::Boolean,
    "Whether decimals may be written with an exponent: `1E+5` rather than `100000`, `2.7E-8` rather than \
     `0.000000027`. Flink heeds it in messages only, where it writes plainly unless it is given; its sink of files \
     always writes an exponent.",
)
.default("true");

/// All of them.
pub static TABLE: OptionTable = OptionTable {
    name: "csv",
    options: &[
        &FIELD_DELIMITER,
        &LINE_DELIMITER,
        &DISABLE_QUOTE_CHARACTER,
        &QUOTE_CHARACTER,
        &ALLOW_COMMENTS,
        &IGNORE_PARSE_ERRORS,
        &ARRAY_ELEMENT_DELIMITER,
        &ESCAPE_CHARACTER,
        &NULL_LITERAL,
        &SCIENTIFIC_DECIMALS,
    ],
};

/// Characters that must differ, each with the one it is when it is not given. The delimiter of elements need not: a
/// quoted field may be split by any.
static DISTINCT: [(&OptionSpec, Option<char>); 4] =
    [(&FIELD_DELIMITER, Some(',')), (&LINE_DELIMITER, None), (&QUOTE_CHARACTER, Some('"')), (&ESCAPE_CHARACTER, None)];

/// Why these options contradict each other, if they do, and the option to point at.
pub fn check(options: &Options) -> Option<(String, &'static OptionSpec)> {
    let quoting = !options.opt_boolean(&DISABLE_QUOTE_CHARACTER).unwrap_or(false);
    if !quoting && options.has(&QUOTE_CHARACTER) {
        let (given, off) = (QUOTE_CHARACTER.name, DISABLE_QUOTE_CHARACTER.name);
        return Some((format!("{given} cannot be given while {off} is true"), &QUOTE_CHARACTER));
    }
    let used = |(spec, default): &(&'static OptionSpec, Option<char>)| {
        let used = quoting || spec.name != QUOTE_CHARACTER.name;
        Some((*spec, options.opt_character(spec).or(*default).filter(|_| used)?))
    };
    let characters: Vec<_> = DISTINCT.iter().filter_map(used).collect();
    characters.iter().enumerate().find_map(|(at, (spec, character))| {
        if spec.name != LINE_DELIMITER.name && matches!(character, '\n' | '\r') {
            return Some((format!("{} cannot be a line end", spec.name), *spec));
        }
        let (other, _) = characters.iter().take(at).find(|(_, earlier)| earlier == character)?;
        // One of the two is given, for the defaults differ.
        let place = if options.has(spec) { *spec } else { *other };
        Some((format!("{} and {} are the same character", other.name, spec.name), place))
    })
}
