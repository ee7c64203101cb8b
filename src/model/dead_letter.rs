//! What is kept of a body or row that was refused for good, under `on_error: dead_letter`.

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use super::{
    Column, ColumnBuilder, ColumnType, Fault, FaultKind, LogicalType, MetaValue, RowsBuilder, Scalar, Schema,
    SourceIdentity, columns::ColumnError,
};

/// The columns of dead letters: name, type, meaning. Fixed, so that any of them can be replayed.
pub const DEAD_LETTER_COLUMNS: [(&str, &str, &str); 13] = [
    (
        "id",
        "STRING NOT NULL",
        "Of this letter: the same whenever the same row of the same message is refused, so that none is replayed twice.",
    ),
    ("body", "BYTES NOT NULL", "The whole body, as the format got it; in JSON base64."),
    ("row", "INT", "Which row of the body, from 0; null: the body as a whole."),
    (
        "stage",
        "STRING NOT NULL",
        "Who refused it: `transport` (then the body is as the service gave it), `decode`, `query` or `sink`.",
    ),
    ("reason", "STRING NOT NULL", "Why."),
    ("source", "STRING NOT NULL", "What was read."),
    ("lane", "STRING NOT NULL", "Which lane of it."),
    ("position", "STRING", "The stretch of positions it lies in; null where a lane has none."),
    ("message_id", "STRING NOT NULL", "The service's id of the message."),
    (
        "metadata",
        "MAP<STRING, STRING> NOT NULL",
        "The connector's metadata of the message, whether or not a column is filled from it; times as in RFC 3339.",
    ),
    ("rejected_at", "TIMESTAMP_LTZ(3) NOT NULL", "When it was refused."),
    ("pipeline", "STRING NOT NULL", "The pipeline."),
    ("generation", "BIGINT NOT NULL", "Its generation."),
];

/// The columns of dead letters as a schema.
pub fn dead_letter_schema() -> Schema {
    let column = |(name, declared, _): &(&str, &str, &str)| {
        let unreadable = ColumnType { logical: LogicalType::VarChar(None), nullable: true };
        Column {
            name: (*name).to_owned(),
            // A test reads them all.
            ty: ColumnType::parse(declared).unwrap_or(unreadable),
            metadata: None,
            is_virtual: false,
        }
    };
    Schema { columns: DEAD_LETTER_COLUMNS.iter().map(column).collect() }
}

/// How far a body came before it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The transport's own encoding is broken.
    Transport,
    /// The format refused it.
    Decode,
    /// A row of it failed in the query.
    Query,
    /// The sink refused a row of it.
    Sink,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Transport, Self::Decode, Self::Query, Self::Sink];

    /// As it is written in a dead letter.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Decode => "decode",
            Self::Query => "query",
            Self::Sink => "sink",
        }
    }
}

/// What a dead letter is made of that a batch does not hold otherwise.
#[derive(Debug, Clone)]
pub struct Original {
    /// The body, shared with the message it came in.
    pub body: Bytes,
    /// Values of the connector's metadata, in the order in which it declares them.
    pub metadata: Vec<MetaValue>,
}

/// One dead letter.
#[derive(Debug)]
pub struct DeadLetter<'a> {
    /// The message's body and metadata.
    pub original: &'a Original,
    /// The names of the metadata.
    pub keys: &'a [&'static str],
    /// The row of the body, from 0; none: all of it.
    pub row: Option<u32>,
    /// Who refused it.
    pub stage: Stage,
    /// Why.
    pub reason: &'a str,
    /// What was read.
    pub source: &'a SourceIdentity,
    /// Which lane of it.
    pub lane: &'a str,
    /// The stretch of positions, on a lane that has them.
    pub position: Option<String>,
    /// The service's id of the message.
    pub message_id: &'a str,
    /// Milliseconds since 1970, UTC.
    pub rejected_ms: i64,
    /// The pipeline.
    pub pipeline: &'a str,
    /// Its generation.
    pub generation: u64,
}

impl DeadLetter<'_> {
    /// The same at every refusal of the same row. Each part with its length, so that no two are written alike.
    fn id(&self) -> String {
        let row = self.row.map_or_else(String::new, |row| row.to_string());
        let mut hash = Xxh3::new();
        for part in ["dead letter", &self.source.0, self.message_id, &row] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        format!("{:032x}", hash.digest128())
    }

    /// Appends it as a row of [`dead_letter_schema`].
    ///
    /// # Errors
    /// Only a bug, or more than 2 GiB in one batch.
    pub fn append_to(&self, rows: &mut RowsBuilder) -> Result<(), Fault> {
        self.append(rows.columns_mut())
            .map_err(|error| Fault::restart(FaultKind::Bug, "a dead letter does not fit its columns").because(error))
    }

    fn append(&self, columns: &mut [ColumnBuilder]) -> Result<(), ColumnError> {
        let [
            id,
            body,
            row,
            stage,
            reason,
            source,
            lane,
            position,
            message_id,
            metadata,
            rejected_at,
            pipeline,
            generation,
        ] = columns
        else {
            return Err(ColumnError::Incomplete);
        };
        id.append(Scalar::Text(&self.id()))?;
        body.append(Scalar::Bytes(&self.original.body))?;
        match self.row {
            // A body has far fewer rows.
            Some(number) => row.append(Scalar::Int32(i32::try_from(number).unwrap_or(i32::MAX)))?,
            None => row.append_null(),
        }
        stage.append(Scalar::Text(self.stage.label()))?;
        reason.append(Scalar::Text(self.reason))?;
        source.append(Scalar::Text(&self.source.0))?;
        lane.append(Scalar::Text(self.lane))?;
        match &self.position {
            Some(text) => position.append(Scalar::Text(text))?,
            None => position.append_null(),
        }
        message_id.append(Scalar::Text(self.message_id))?;
        let (keys, values) = metadata.entries_mut().ok_or(ColumnError::WrongType)?;
        for (key, value) in self.keys.iter().zip(&self.original.metadata) {
            if let Some(text) = value.to_text() {
                keys.append(Scalar::Text(key))?;
                values.append(Scalar::Text(&text))?;
            }
        }
        metadata.close()?;
        rejected_at.append(Scalar::Int64(self.rejected_ms.saturating_mul(1000)))?;
        pipeline.append(Scalar::Text(self.pipeline))?;
        generation.append(Scalar::Int64(i64::try_from(self.generation).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_the_type_it_is_documented_with() {
        for ((name, declared, meaning), column) in DEAD_LETTER_COLUMNS.iter().zip(dead_letter_schema().columns) {
            assert_eq!(column.ty, ColumnType::parse(declared).unwrap(), "{name}");
            assert!(!meaning.is_empty());
        }
    }

    #[test]
    fn a_letter_is_known_by_source_message_and_row_and_fits_its_columns() {
        let source = SourceIdentity("mns h q".to_owned());
        let metadata = vec![MetaValue::Text("m".into()), MetaValue::Millis(1500), MetaValue::Null];
        let original = Original { body: Bytes::from_static(b"x"), metadata };
        let letter = |message_id, row, stage| DeadLetter {
            original: &original,
            keys: &["message-id", "enqueue-time", "priority"],
            row,
            stage,
            reason: "why",
            source: &source,
            lane: "mns",
            position: None,
            message_id,
            rejected_ms: 7,
            pipeline: "p",
            generation: 1,
        };
        assert_eq!(letter("m", Some(1), Stage::Sink).id(), letter("m", Some(1), Stage::Decode).id());
        let ids = [("m", None), ("m", Some(1)), ("m1", None)].map(|(id, row)| letter(id, row, Stage::Sink).id());
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
        let mut rows = RowsBuilder::new(&dead_letter_schema());
        letter("m", Some(1), Stage::Sink).append_to(&mut rows).unwrap();
        letter("m", None, Stage::Transport).append_to(&mut rows).unwrap();
        assert_eq!(rows.finish().unwrap().num_rows(), 2);
    }
}
