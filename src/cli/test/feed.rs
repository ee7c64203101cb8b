//! From the messages of a case to what the pipeline makes of them, on the way that they take when it runs.

use std::{path::Path, sync::Arc};

use arrow_array::{RecordBatch, cast::AsArray, types::TimestampMicrosecondType};
use base64_simd::STANDARD;
use bytes::Bytes;

use super::{
    expected::{Values, read_value},
    outcome::{Outcome, Refused},
};
use crate::{
    connectors::{self, NotNull, Plan, REGISTRY, Shaped, Transport, datagen},
    definition::{
        Case, Content, Diagnostic, Endpoint, Entry, Input, Located, MetadataKey, OnError, PipelineDefinition, Report,
        TestMessage, Value,
    },
    formats::Writer,
    model::{Body, Column, ColumnType, Fault, LogicalType, MetaValue, Origin, RowReject, RowsBuilder, Stage, nearest},
};

/// What a metadata column of time says where a test gives none: 2026-01-01, in milliseconds since 1970.
const ANY_TIME_MS: i64 = 1_767_225_600_000;

/// A message as a source would hand it on.
pub(super) struct Fed {
    body: Body,
    meta: Vec<MetaValue>,
}

/// The messages of a case; `None`: something in them is wrong, and has been told.
pub(super) fn messages(
    case: &Case,
    file: &Path,
    (source, transport): (&Endpoint, &Transport),
    report: &mut Report,
) -> Option<Vec<Fed>> {
    let makes_rows_up = source.connector == datagen::TABLE.name;
    match &case.input {
        Input::Generate(count) if makes_rows_up => generated(count, source, report),
        Input::Messages(messages, _) if !makes_rows_up => {
            let keys = metadata_keys(source);
            let mut read = |(at, message): (usize, &TestMessage)| {
                let body = body(&message.body, file, transport, report);
                let meta = metadata(at + 1, &message.metadata, keys, source.connector, report);
                Some(Fed { body: body?, meta: meta? })
            };
            let fed: Vec<_> = messages.iter().enumerate().map(&mut read).collect();
            fed.into_iter().collect()
        }
        Input::Generate(count) => {
            let message = format!("`{}` makes no rows up", source.connector);
            report.push(Diagnostic::error(message).at(count.span).expected("`messages:`"));
            None
        }
        Input::Messages(_, place) => {
            let message = format!("`{}` reads no messages", source.connector);
            report.push(Diagnostic::error(message).at(*place).expected("`generate: 5`, the first rows it makes up"));
            None
        }
    }
}

fn generated(count: &Located<u64>, source: &Endpoint, report: &mut Report) -> Option<Vec<Fed>> {
    if let Some(bound) = datagen::bound(source).filter(|bound| *bound < count.value) {
        let message = format!("the source is at its end after {bound} rows");
        report.push(Diagnostic::error(message).at(count.span).expected(format!("at most {bound}")));
        return None;
    }
    Some(vec![Fed { body: Body::Bytes(datagen::body(&(0..count.value))), meta: Vec::new() }])
}

fn body(content: &Located<Content>, file: &Path, transport: &Transport, report: &mut Report) -> Option<Body> {
    let plain = |bytes: Vec<u8>| Some(Body::Bytes(Bytes::from(bytes)));
    let refused = match &content.value {
        Content::Text(text) => return plain(text.clone().into_bytes()),
        Content::Received(text) => return Some(transport(Bytes::from(text.clone()))),
        Content::Base64(text) => {
            let joined: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            match STANDARD.decode_to_vec(joined) {
                Ok(bytes) => return plain(bytes),
                Err(error) => Diagnostic::error(format!("this is not base64: {error}")),
            }
        }
        Content::File(path) => match read_file(&file.parent().unwrap_or(Path::new("")).join(path)) {
            Ok(bytes) => return plain(bytes),
            Err(error) => Diagnostic::error(format!("{} cannot be read: {error}", path.display()))
                .expected("a file, by its path from the folder of the test"),
        },
    };
    report.push(refused.at(content.span));
    None
}

/// A pipe or a device would be read without end.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    std::fs::read(path)
}

fn metadata_keys(source: &Endpoint) -> &'static [MetadataKey] {
    let connector = REGISTRY.connector(source.connector);
    connector.and_then(|connector| connector.source.as_ref()).map_or(&[], |tables| tables.metadata)
}

/// The values of all keys; those that are not given have some value that tells messages apart.
fn metadata(
    number: usize,
    given: &[Entry],
    keys: &[MetadataKey],
    connector: &str,
    report: &mut Report,
) -> Option<Vec<MetaValue>> {
    let before = report.errors();
    for entry in given.iter().filter(|entry| !keys.iter().any(|key| key.name == entry.key.value)) {
        let message = format!("`{connector}` has no metadata `{}`", entry.key.value);
        let near = nearest(&entry.key.value, keys.iter().map(|key| key.name));
        let list: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
        let told = Diagnostic::error(message).at(entry.key.span).nearest(near);
        report.push(if near.is_none() { told.expected(format!("one of {}", list.join(", "))) } else { told });
    }
    let value = |key: &MetadataKey| match given.iter().find(|entry| entry.key.value == key.name) {
        None => Some(any_value(number, key)),
        Some(entry) => match given_value(entry, key, report) {
            Ok(value) => Some(value),
            Err(diagnostic) => {
                report.push(*diagnostic);
                None
            }
        },
    };
    let values: Vec<_> = keys.iter().map(value).collect();
    if report.errors() > before { None } else { values.into_iter().collect() }
}

fn any_value(number: usize, key: &MetadataKey) -> MetaValue {
    match key.logical() {
        _ if key.nullable => MetaValue::Null,
        LogicalType::Map(..) => MetaValue::Map(Default::default()),
        LogicalType::Timestamp(_) | LogicalType::TimestampLtz(_) => MetaValue::Millis(ANY_TIME_MS),
        LogicalType::TinyInt | LogicalType::SmallInt | LogicalType::Int | LogicalType::BigInt => MetaValue::Integer(1),
        _ => MetaValue::Text(format!("{}-{number}", key.name).into()),
    }
}

fn given_value(entry: &Entry, key: &MetadataKey, report: &mut Report) -> Result<MetaValue, Box<Diagnostic>> {
    let refuse = |expected: String| {
        let told = Diagnostic::error(format!("this is no value of the metadata `{}`", key.name));
        Box::new(told.at(entry.value.span).expected(expected))
    };
    let logical = key.logical();
    let text = match (&entry.value.value, &logical) {
        (Value::Null, _) if key.nullable => return Ok(MetaValue::Null),
        (Value::Mapping(entries), LogicalType::Map(..)) => {
            let pair = |entry: &Entry| match &entry.value.value {
                Value::Scalar(scalar) => Some((entry.key.value.clone(), scalar.text.clone())),
                _ => None,
            };
            let map = entries.iter().map(pair).collect::<Option<_>>().map(Arc::new).map(MetaValue::Map);
            return map.ok_or_else(|| refuse(logical.to_string()));
        }
        (Value::Scalar(scalar), scalars) if !matches!(scalars, LogicalType::Map(..)) => scalar.text.as_str(),
        _ => return Err(refuse(logical.to_string())),
    };
    match logical {
        LogicalType::Timestamp(_) | LogicalType::TimestampLtz(_) => {
            let ty = ColumnType { logical: LogicalType::TimestampLtz(3), nullable: false };
            let column = Column { name: key.name.to_owned(), ty, metadata: None, is_virtual: false };
            let expected = "a time such as `2026-01-15 08:30:00Z`";
            let batch = read_value(&column, &entry.value, report).map_err(|_| refuse(expected.to_owned()))?;
            let micros = batch.column(0).as_primitive_opt::<TimestampMicrosecondType>().map(|array| array.value(0));
            micros.map(|micros| MetaValue::Millis(micros / 1000)).ok_or_else(|| refuse(expected.to_owned()))
        }
        LogicalType::TinyInt | LogicalType::SmallInt | LogicalType::Int | LogicalType::BigInt => {
            text.parse().map(MetaValue::Integer).map_err(|_| refuse(logical.to_string()))
        }
        _ => Ok(MetaValue::Text(text.into())),
    }
}

/// What the pipeline makes of them.
///
/// # Errors
/// A bug of a format, or a row that cannot be shown.
pub(super) fn run(
    definition: &PipelineDefinition,
    plan: &Plan,
    messages: &[Fed],
    values: &Values,
) -> Result<Outcome, Box<Diagnostic>> {
    let mut outcome = Outcome { fails: definition.on_error == OnError::Fail, ..Outcome::default() };
    let (mut rows, mut origins) = decode(plan, messages, &mut outcome)?;
    if let Some(query) = &plan.query {
        let selected = query.run(&rows).map_err(failed)?;
        let refused =
            |RowReject { row, reason }| Refused { message: number(&origins, row), stage: Stage::Query, reason };
        outcome.rejects.extend(selected.rejects.into_iter().map(refused));
        origins = selected.from.iter().filter_map(|row| origins.get(*row).copied()).collect();
        rows = selected.rows;
    }
    let Shaped { rows, nulled } = plan.shape.apply(&rows).map_err(failed)?;
    outcome.nulled_fields += nulled as u64;
    let refused = refused(definition, &rows)?;
    let (shown, unshown) = values.of_batch(&rows).map_err(bug)?;
    for (at, row) in shown.into_iter().enumerate() {
        match (refused.iter().find(|reject| reject.row == at), row) {
            (Some(RowReject { reason, .. }), _) => outcome.rejects.push(Refused {
                message: number(&origins, at),
                stage: Stage::Sink,
                reason: reason.clone(),
            }),
            (None, Some(row)) => outcome.rows.push(row),
            (None, None) => {
                let why = unshown.iter().find(|reject| reject.row == at).map_or("", |reject| reject.reason.as_str());
                return Err(bug(format!("row {} cannot be shown: {why}", at + 1)));
            }
        }
    }
    outcome.rejects.sort_by_key(|refused| refused.message);
    Ok(outcome)
}

fn failed(fault: Fault) -> Box<Diagnostic> {
    bug(fault.to_string())
}

fn bug(why: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(why))
}

/// The number of the message that a row came from.
fn number(origins: &[Origin], row: usize) -> u64 {
    origins.get(row).map_or(0, |origin| u64::from(origin.message) + 1)
}

/// The rows of the messages, and where each came from.
fn decode(plan: &Plan, messages: &[Fed], outcome: &mut Outcome) -> Result<(RecordBatch, Vec<Origin>), Box<Diagnostic>> {
    let mut decoder = (plan.decoder)().map_err(failed)?;
    let (mut rows, mut origins) = (RowsBuilder::new(&plan.schema), Vec::new());
    for (index, message) in messages.iter().enumerate() {
        let before = rows.rows();
        let (stage, decoded) = match &message.body {
            Body::Bytes(body) | Body::Row(body, _) => (Stage::Decode, decoder.decode(body, &mut rows)),
            Body::Broken { reason, .. } => (Stage::Transport, Err(reason.clone())),
            Body::Filtered(_) => continue,
        };
        let decoded = decoded.and_then(|decoded| {
            for _ in 0..decoded.rows {
                for (column, value) in plan.metadata.iter() {
                    rows.append_meta(*column, message.meta.get(*value).unwrap_or(&MetaValue::Null))?;
                }
            }
            Ok(decoded)
        });
        match decoded {
            Ok(decoded) => {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                origins.extend((0..decoded.rows).map(|row| Origin { message: index, row }));
                outcome.ignored += u64::from(decoded.rows == 0);
                outcome.nulled_fields += u64::from(decoded.nulled_fields);
                outcome.unread += u64::from(decoded.unread) + u64::from(decoded.dropped && decoded.rows > 0);
            }
            Err(reason) => {
                rows.truncate(before);
                outcome.rejects.push(Refused { message: index as u64 + 1, stage, reason });
            }
        }
    }
    Ok((rows.finish().map_err(failed)?, origins))
}

/// The rows that the sink refuses.
fn refused(definition: &PipelineDefinition, rows: &RecordBatch) -> Result<Vec<RowReject>, Box<Diagnostic>> {
    let mut refused = NotNull::of(definition).refused(rows);
    if let Some((writer, columns)) = connectors::encoder(&definition.sink).map_err(bug)? {
        let written = rows.project(&columns).map_err(|error| bug(error.to_string()))?;
        refused.extend(match writer {
            Writer::Lines(mut encoder) => encoder.encode(&written, &mut Vec::new()),
            Writer::Files(mut encoder) => encoder.rows(&written, &mut Vec::new()).map_err(bug)?,
        });
    }
    Ok(refused)
}
