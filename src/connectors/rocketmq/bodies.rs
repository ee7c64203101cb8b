//! What bodies are: delimited text with what the connectors' own options say of it, or another format.

use super::{
    mq,
    options::{FIELD_DELIMITER, LENGTH_CHECK, LINE_DELIMITER, MESSAGE_ENCODING, MESSAGE_OPTIONS},
    reading::Reading,
};
use crate::{
    definition::{At, Diagnostic, Endpoint, OptionSpec, Role},
    formats::{
        self, Decoder, Encoder,
        delimited::{self, Delimiters, DelimitersError, Encoding, LengthCheck, Settings},
    },
    model::Schema,
};

const CHARSET: &str = "the name of a charset, such as `UTF-8` or `GBK`";
const DELIMITERS: &str = "delimiters such as `,` or `\\u0001`";

/// Whether bodies are delimited text.
fn is_delimited(endpoint: &Endpoint) -> bool {
    endpoint.format.as_ref().is_some_and(|format| format.name == delimited::TABLES.name)
}

/// Reports what is wrong with the options of bodies, and with the columns for the one format that these options are of.
pub(super) fn check(reading: &mut Reading<'_>) {
    let endpoint = reading.endpoint;
    if is_delimited(endpoint) {
        settings(reading);
        if let Some(unfit) = delimited::unfit(&endpoint.schema) {
            let told = Diagnostic::error(unfit.to_string()).at(endpoint.at(At::Type(&unfit.column)));
            let inherited = "without a `schema` of its own the sink puts every column of the source into the body";
            let inherits = endpoint.role == Role::Sink && !endpoint.own_schema;
            reading.found.push(if inherits { told.help(inherited) } else { told });
        }
        return;
    }
    let format = endpoint.format.as_ref().map_or("", |format| format.name);
    for spec in MESSAGE_OPTIONS {
        if spec.default != endpoint.options.opt_text(spec) {
            let message = format!("`{}` is about delimited text, and the format is `{format}`", spec.name);
            reading.error(spec, message, "take it out, or the format");
        }
    }
}

/// What the options say of delimited text. What is wrong with them is reported; `None` then.
fn settings(reading: &mut Reading<'_>) -> Option<Settings> {
    if reading.endpoint.connector == mq::TABLES.name {
        let (encoding, fields) = (encoding(reading, &mq::ENCODING), delimiters(reading, &mq::FIELD_DELIMITER));
        let (encoding, fields) = (encoding?, fields?);
        // Nothing is read.
        return Some(Settings { encoding, lines: fields.clone(), fields, length_check: LengthCheck::None });
    }
    let encoding = encoding(reading, &MESSAGE_ENCODING);
    let (fields, lines) = (delimiters(reading, &FIELD_DELIMITER), delimiters(reading, &LINE_DELIMITER));
    let length_check = match reading.text(&LENGTH_CHECK) {
        "SKIP" => LengthCheck::Skip,
        "EXCEPTION" => LengthCheck::Exception,
        "PAD" => LengthCheck::Pad,
        _ => LengthCheck::None,
    };
    let (encoding, fields, lines) = (encoding?, fields?, lines?);
    if fields.common(&lines).is_some() {
        let message = format!("`{}` and `{}` have a character in common", FIELD_DELIMITER.name, LINE_DELIMITER.name);
        reading.error(&FIELD_DELIMITER, message, "no line would hold it");
    }
    Some(Settings { encoding, fields, lines, length_check })
}

fn encoding(reading: &mut Reading<'_>, spec: &'static OptionSpec) -> Option<Encoding> {
    let name = reading.text(spec);
    Encoding::find(name).map_err(|near| reading.refuse(spec, name, CHARSET, near)).ok()
}

fn delimiters(reading: &mut Reading<'_>, spec: &'static OptionSpec) -> Option<Delimiters> {
    let text = reading.text(spec);
    let error = match Delimiters::parse(text) {
        Ok(delimiters) => return Some(delimiters),
        Err(error) => error,
    };
    match error {
        DelimitersError::Escape | DelimitersError::Empty => reading.refuse(spec, text, DELIMITERS, None),
        DelimitersError::Doubled => {
            let message = format!("each character of `{}` separates, and two backslashes are one of them", spec.name);
            reading.error(spec, message, "write one backslash");
        }
    }
    None
}

/// The decoder of a source's bodies.
///
/// # Errors
/// What the format cannot do with the columns or options. A definition that was checked has none.
pub fn decoder(endpoint: &Endpoint) -> Result<Box<dyn Decoder>, String> {
    if !is_delimited(endpoint) {
        let (name, options) = format(endpoint);
        return formats::decoder(name, &endpoint.schema, &options);
    }
    let decoder = delimited::Decoder::new(&endpoint.schema, checked(endpoint)?);
    Ok(Box::new(decoder.map_err(|unfit| unfit.to_string())?))
}

/// The encoder of a sink's bodies: of the columns that are neither virtual nor metadata.
///
/// # Errors
/// As [`decoder`].
pub fn encoder(endpoint: &Endpoint) -> Result<Box<dyn Encoder>, String> {
    let physical = endpoint.schema.columns.iter().filter(|column| column.metadata.is_none()).cloned();
    let schema = Schema { columns: physical.collect() };
    if !is_delimited(endpoint) {
        let (name, options) = format(endpoint);
        return formats::encoder(name, &schema, &options);
    }
    let encoder = delimited::Encoder::new(&schema, checked(endpoint)?);
    Ok(Box::new(encoder.map_err(|unfit| unfit.to_string())?))
}

fn format(endpoint: &Endpoint) -> (&'static str, crate::definition::Options) {
    endpoint.format.as_ref().map_or_else(Default::default, |format| (format.name, format.options.clone()))
}

fn checked(endpoint: &Endpoint) -> Result<Settings, String> {
    let mut reading = Reading::new(endpoint);
    let settings = settings(&mut reading);
    let first = reading.found.into_iter().next();
    first.map_or_else(|| settings.ok_or_else(String::new), |found| Err(found.to_string()))
}
