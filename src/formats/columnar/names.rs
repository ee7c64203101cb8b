//! Types of a file in reasons. The library knows them as arrays in memory, which nobody who made the file has heard of, and
//! files of each format have names of their own: so each is told by the type of SQL that means the same, as the schema is
//! written in.

use arrow_schema::{DataType, Field, TimeUnit};

use crate::formats::reason::shortened;

/// Longest name of a type in a reason, in characters: a file may have thousands of columns in one ROW.
const MOST_NAME: usize = 120;

/// What a column is in the words of SQL.
pub(super) fn sql_name(found: &DataType) -> String {
    shortened(&whole(found), MOST_NAME)
}

fn whole(found: &DataType) -> String {
    let text = match found {
        DataType::Null => "NULL",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INT",
        DataType::Int64 => "BIGINT",
        // SQL has none of these, and databases that do call them so.
        DataType::UInt8 => "TINYINT UNSIGNED",
        DataType::UInt16 => "SMALLINT UNSIGNED",
        DataType::UInt32 => "INT UNSIGNED",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::Float16 => "FLOAT of 16 bits",
        DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTES",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL",
        DataType::FixedSizeBinary(size) => return format!("BINARY({size})"),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            return format!("DECIMAL({precision}, {scale})");
        }
        DataType::Time32(unit) | DataType::Time64(unit) => return format!("TIME({})", digits(*unit)),
        DataType::Timestamp(unit, None) => return format!("TIMESTAMP({})", digits(*unit)),
        DataType::Timestamp(unit, Some(_)) => return format!("TIMESTAMP_LTZ({})", digits(*unit)),
        DataType::List(item) | DataType::LargeList(item) => return format!("ARRAY<{}>", whole(item.data_type())),
        DataType::Map(entries, _) => return map(entries),
        DataType::Struct(fields) => {
            let field = |field: &std::sync::Arc<Field>| {
                format!("`{}` {}", field.name().replace('`', "``"), whole(field.data_type()))
            };
            return format!("ROW<{}>", fields.iter().map(field).collect::<Vec<_>>().join(", "));
        }
        other => return other.to_string(),
    };
    text.to_owned()
}

fn map(entries: &Field) -> String {
    match entries.data_type() {
        DataType::Struct(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| whole(part.data_type())).collect();
            format!("MAP<{}>", parts.join(", "))
        }
        _ => "MAP".to_owned(),
    }
}

/// Digits of a second.
const fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::flink_cases::schema;

    #[test]
    fn what_a_file_has_is_told_as_the_type_of_a_schema_that_means_the_same() {
        for name in [
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(20, 3)",
            "STRING",
            "BYTES",
            "DATE",
            "TIME(3)",
            "TIMESTAMP(6)",
            "TIMESTAMP(9)",
            "ARRAY<ARRAY<INT>>",
            "MAP<STRING, ARRAY<DATE>>",
            "ROW<`a` INT, `b ``c` ROW<`d` STRING>>",
        ] {
            let column = &schema(&[&format!("x {name}")]).columns[0];
            assert_eq!(sql_name(&column.ty.logical.to_arrow()), name);
        }
        assert_eq!(sql_name(&DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))), "TIMESTAMP_LTZ(0)");
        assert_eq!(sql_name(&DataType::Utf8View), "STRING");
        assert_eq!(sql_name(&DataType::FixedSizeBinary(16)), "BINARY(16)");
        assert_eq!(sql_name(&DataType::UInt64), "BIGINT UNSIGNED");
    }

    #[test]
    fn a_type_of_thousands_of_columns_is_told_by_its_beginning() {
        let fields: Vec<_> = (0..5000).map(|at| Field::new(format!("c{at}"), DataType::Int32, true)).collect();
        let name = sql_name(&DataType::Struct(fields.into()));
        assert!(name.starts_with("ROW<`c0` INT, `c1` INT, ") && name.ends_with("..."), "{name}");
        assert_eq!(name.len(), MOST_NAME + 3);
    }
}
