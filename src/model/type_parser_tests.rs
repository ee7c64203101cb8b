use super::*;
use LogicalType::*;

fn nullable(logical: LogicalType) -> ColumnType {
    ColumnType { logical, nullable: true }
}

fn parsed(text: &str) -> LogicalType {
    ColumnType::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).logical
}

#[test]
fn every_type_is_read_with_flinks_aliases_and_defaults() {
    for (text, expected) in [
        ("BOOLEAN", Boolean),
        ("TINYINT", TinyInt),
        ("smallint", SmallInt),
        ("INT", Int),
        ("Integer", Int),
        ("BIGINT", BigInt),
        ("FLOAT", Float),
        ("DOUBLE", Double),
        ("DOUBLE PRECISION", Double),
        ("DECIMAL", Decimal(10, 0)),
        ("DEC(5)", Decimal(5, 0)),
        ("NUMERIC( 38 , 38 )", Decimal(38, 38)),
        ("CHAR", Char(1)),
        ("CHARACTER(3)", Char(3)),
        ("CHAR VARYING(7)", VarChar(Some(7))),
        ("CHARACTER VARYING", VarChar(None)),
        ("VARCHAR", VarChar(None)),
        ("VARCHAR(255)", VarChar(Some(255))),
        ("VARCHAR(2147483647)", VarChar(None)),
        ("STRING", VarChar(None)),
        ("BINARY", Binary(1)),
        ("BINARY(9)", Binary(9)),
        ("BINARY VARYING(9)", VarBinary(Some(9))),
        ("VARBINARY", VarBinary(None)),
        ("BYTES", VarBinary(None)),
        ("DATE", Date),
        ("TIME", Time(0)),
        ("TIME(3) WITHOUT TIME ZONE", Time(3)),
        ("TIMESTAMP", Timestamp(6)),
        ("timestamp(3)", Timestamp(3)),
        ("TIMESTAMP(9) WITHOUT TIME ZONE", Timestamp(9)),
        ("TIMESTAMP_LTZ", TimestampLtz(6)),
        ("TIMESTAMP_LTZ(3)", TimestampLtz(3)),
        ("TIMESTAMP(0) WITH LOCAL TIME ZONE", TimestampLtz(0)),
        ("ARRAY<INT>", Array(Box::new(nullable(Int)))),
        ("INT ARRAY", Array(Box::new(nullable(Int)))),
        ("MAP<STRING,BIGINT>", Map(Box::new(nullable(VarChar(None))), Box::new(nullable(BigInt)))),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn rows_have_quoted_names_comments_and_either_bracket() {
    let fields = vec![
        Field { name: "a".into(), ty: ColumnType { logical: Int, nullable: false } },
        Field { name: "b `c".into(), ty: nullable(VarChar(None)) },
    ];
    for text in ["ROW<a INT NOT NULL, `b ``c` STRING 'it''s'>", "row(a int not null 'x', `b ``c` string null)"] {
        assert_eq!(parsed(text), Row(fields.clone()), "{text}");
    }
}

#[test]
fn nullability_is_kept_at_every_level() {
    let ty = ColumnType::parse("ARRAY<INT NOT NULL> NOT NULL").unwrap();
    assert!(!ty.nullable);
    assert_eq!(ty.logical, Array(Box::new(ColumnType { logical: Int, nullable: false })));
    assert!(ColumnType::parse("INT NULL").unwrap().nullable);
}

#[test]
fn a_type_prints_as_text_that_reads_the_same() {
    for text in [
        "DECIMAL(10, 2) NOT NULL",
        "ROW<`a` ARRAY<VARCHAR(3) NOT NULL>, `b ``c` MAP<STRING, TIMESTAMP_LTZ(3)>>",
        "ARRAY<BYTES>",
        "TIME(0)",
    ] {
        assert_eq!(ColumnType::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn a_refused_type_says_where_what_and_what_was_meant() {
    for (text, offset, length, found, nearest) in [
        ("STRNG", 0, 5, "`STRNG`", Some("STRING")),
        ("BIGINTEGER", 0, 10, "`BIGINTEGER`", Some("INTEGER")),
        ("", 0, 0, "the end", None),
        ("DECIMAL(39)", 8, 2, "`39`", None),
        ("DECIMAL(5, 6)", 11, 1, "`6`", None),
        ("DECIMAL(0)", 8, 1, "`0`", None),
        ("VARCHAR(0)", 8, 1, "`0`", None),
        ("CHAR(2147483648)", 5, 10, "`2147483648`", None),
        ("TIMESTAMP(10)", 10, 2, "`10`", None),
        ("TIMESTAMP(3", 11, 0, "the end", None),
        ("TIMESTAMP WITH TIME ZONE", 15, 4, "`TIME`", None),
        ("ARRAY<STRIGN>", 6, 6, "`STRIGN`", Some("STRING")),
        ("ARRAY<INT", 9, 0, "the end", None),
        ("MAP<STRING>", 10, 1, "`>`", None),
        ("ROW<a INT, a INT>", 11, 1, "`a`", None),
        ("ROW<a INT", 9, 0, "the end", None),
        ("ROW<>", 4, 1, "`>`", None),
        ("ROW<a: INT>", 5, 1, "`:`", None),
        ("INT NOTNULL", 4, 7, "`NOTNULL`", Some("NOT NULL")),
        ("INT PRIMARY", 4, 7, "`PRIMARY`", None),
        ("INT;", 3, 1, "`;`", None),
        ("ROW<`a INT>", 4, 7, "``a INT>`", None),
        ("MULTISET<INT>", 0, 8, "`MULTISET`", None),
    ] {
        let error = ColumnType::parse(text).expect_err(text);
        assert_eq!((error.offset, error.length), (offset, length), "{text}: {error}");
        assert_eq!(error.found, found, "{text}");
        assert_eq!(error.nearest.as_deref(), nearest, "{text}: {error}");
    }
}

#[test]
fn nesting_is_bounded() {
    assert!(ColumnType::parse(&"ARRAY<".repeat(100_000)).is_err());
    assert!(ColumnType::parse(&format!("INT{}", " ARRAY".repeat(100_000))).is_err());
}

#[test]
fn a_column_may_be_metadata() {
    let column = Column::parse("message-id", "STRING NOT NULL METADATA").unwrap();
    assert_eq!(column.metadata.as_deref(), Some("message-id"));
    assert!(!column.is_virtual && !column.ty.nullable);
    let column = Column::parse("id", "STRING METADATA FROM 'message-id' VIRTUAL COMMENT 'x'").unwrap();
    assert_eq!((column.metadata.as_deref(), column.is_virtual), (Some("message-id"), true));
    assert_eq!(Column::parse("id", "bigint").unwrap().metadata, None);
}

#[test]
fn a_refused_column_says_where() {
    for (text, offset, nearest) in [
        ("STRING METADAT", 7, Some("METADATA")),
        ("STRING VIRTUAL", 7, None),
        ("STRING METADATA FROM key", 21, None),
        ("STRING METADATA VIRTUL", 16, Some("VIRTUAL")),
        ("STRING METADATA VIRTUAL FROM 'a'", 24, None),
    ] {
        let error = Column::parse("c", text).expect_err(text);
        assert_eq!(error.offset, offset, "{text}");
        assert_eq!(error.nearest.as_deref(), nearest, "{text}");
    }
}
