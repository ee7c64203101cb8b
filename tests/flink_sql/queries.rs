//! What an INSERT becomes as a `query`, and what the planner says of it, in the script.

use std::path::Path;

use queuewarden::{definition::Style, flink_sql::import};

use crate::{imported, loaded};

const TABLES: &str =
    "CREATE TABLE s (id INT NOT NULL, name STRING, `timestamp` TIMESTAMP(3), r ROW<a INT>) WITH ('connector' = 'datagen');
CREATE TABLE p (ts TIMESTAMP(3), n STRING, i BIGINT, x DECIMAL(10, 2)) WITH ('connector' = 'print');
";

/// The query of what an INSERT becomes; empty: it needs none.
fn query(script: &str) -> String {
    let definition = loaded(&imported("x", script));
    definition.query.as_ref().map_or_else(String::new, |query| query.text().to_owned())
}

#[test]
fn a_list_of_columns_puts_the_select_list_into_the_order_of_the_table() {
    for (insert, expected) in [
        (
            "INSERT INTO p (i, n) SELECT id, UPPER(name)\nFROM s -- the source\nWHERE name LIKE 'a!%%' ESCAPE '!' AND s.id > 3",
            "SELECT CAST(NULL AS TIMESTAMP(3)), UPPER(name), id, CAST(NULL AS DECIMAL(10, 2))\nFROM source AS s\nWHERE name LIKE 'a!%%' ESCAPE '!' AND s.id > 3",
        ),
        (
            "INSERT INTO p (x, i, n, ts) SELECT 1.5, id + 1, 'a, b', timestamp FROM s",
            "SELECT timestamp, 'a, b', id + 1, 1.5\nFROM source",
        ),
        (
            "INSERT INTO p (ts, n, i, x) SELECT timestamp, name, id, 2 FROM s",
            "SELECT timestamp, name, id, 2 FROM source",
        ),
    ] {
        assert_eq!(query(&format!("{TABLES}{insert};")), expected, "{insert}");
    }
    let two = "CREATE TABLE s (a INT, b STRING) WITH ('connector' = 'datagen');
CREATE TABLE p (b STRING, a INT) WITH ('connector' = 'print');
INSERT INTO p (a, b) SELECT * FROM s";
    assert_eq!(query(two), "SELECT `b`, `a`\nFROM source");
}

#[test]
fn a_column_of_any_plain_type_may_be_left_out() {
    for ty in [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(20, 4)",
        "CHAR(3)",
        "VARCHAR(9)",
        "STRING",
        "BINARY(2)",
        "BYTES",
        "DATE",
        "TIME(0)",
        "TIMESTAMP(6)",
        "TIMESTAMP_LTZ(3)",
    ] {
        let script = format!(
            "CREATE TABLE s (a INT) WITH ('connector' = 'datagen');
CREATE TABLE p (a INT, b {ty}) WITH ('connector' = 'print'); INSERT INTO p (a) SELECT a FROM s"
        );
        assert_eq!(query(&script), format!("SELECT a, CAST(NULL AS {ty})\nFROM source"));
    }
}

#[test]
fn what_hands_on_every_column_needs_no_query() {
    let script =
        "CREATE TABLE s (a INT, b STRING, c STRING METADATA FROM 'msg-id' VIRTUAL) WITH ('connector' = 'rocketmq4',
'rocketmq.client.endpoints' = 'h:1', 'rocketmq.source.topic' = 't', 'rocketmq.source.group' = 'g');
CREATE TABLE p (x INT, y STRING, z STRING) WITH ('connector' = 'print'); INSERT INTO p ";
    for select in
        ["SELECT * FROM s", "SELECT s.* FROM s", "SELECT a, b, c FROM s", "select x.a, `b` as q, c z from s as x"]
    {
        assert_eq!(query(&format!("{script}{select}")), "", "{select}");
    }
    for select in ["SELECT a, c, b FROM s", "SELECT * FROM s WHERE a > 1", "SELECT a, b, 'c' FROM s"] {
        assert_ne!(query(&format!("{script}{select}")), "", "{select}");
    }
}

#[test]
fn a_field_and_a_value_are_not_taken_for_a_column_of_their_name() {
    let script = "CREATE TABLE s (id INT, data ROW<id INT, x STRING>) WITH ('connector' = 'datagen');
CREATE TABLE p (a INT, b ROW<id INT, x STRING>) WITH ('connector' = 'print'); INSERT INTO p ";
    for (select, expected) in [
        ("SELECT data.id, data FROM s", "SELECT data.id, data FROM source"),
        ("SELECT data.id, t.data FROM s AS t", "SELECT data.id, t.data FROM source AS t"),
        ("SELECT s.id, data FROM s", ""),
        ("SELECT ALL s.id, data FROM c.d.s", ""),
    ] {
        let script = format!(
            "{}{select}",
            script.replace("TABLE s", if select.contains("c.d") { "TABLE c.d.s" } else { "TABLE s" })
        );
        assert_eq!(query(&script), expected, "{select}");
    }
    let script = "CREATE TABLE s (`CURRENT_DATE` DATE, `true` BOOLEAN) WITH ('connector' = 'datagen');
CREATE TABLE p (d DATE, t BOOLEAN) WITH ('connector' = 'print'); INSERT INTO p ";
    for (select, expected) in [
        ("SELECT CURRENT_DATE, true FROM s", "SELECT CURRENT_DATE, true FROM source"),
        ("SELECT `CURRENT_DATE`, `true` FROM s", ""),
    ] {
        assert_eq!(query(&format!("{script}{select}")), expected, "{select}");
    }
}

#[test]
fn what_stands_in_texts_arrives_as_it_is() {
    let script =
        format!("{TABLES}INSERT INTO p (n) SELECT 'x  \n\n\t y \r\n  \u{2028}z\u{85}\n' FROM s  \n\nWHERE id > 1;");
    let expected = "SELECT CAST(NULL AS TIMESTAMP(3)), 'x  \n\n\t y \r\n  \u{2028}z\u{85}\n', CAST(NULL AS BIGINT), CAST(NULL AS DECIMAL(10, 2))\nFROM source\nWHERE id > 1";
    assert_eq!(query(&script), expected);
    let tables = "CREATE TABLE `s\u{2028}injected: x` (`a\u{2028}b` INT) WITH ('connector' = 'datagen');
CREATE TABLE p (`\u{85}` INT) WITH ('connector' = 'print', 'print-identifier' = 'a\u{2028}  b\u{85}');";
    let script = format!("{tables} INSERT INTO p SELECT `a\u{2028}b` FROM `s\u{2028}injected: x`;");
    let definition = loaded(&imported("x", &script));
    assert_eq!(definition.source.schema.columns[0].name, "a\u{2028}b");
    assert_eq!(definition.sink.schema.columns[0].name, "\u{85}");
    assert!(
        definition.to_yaml().contains("a\\u2028  b\\u0085") || definition.to_yaml().contains("a\u{2028}"),
        "{}",
        definition.to_yaml()
    );
}

#[test]
fn the_value_of_a_set_without_a_counterpart_is_not_written() {
    let script = format!(
        "SET 'fs.oss.accessKeySecret' = 'T0PS3CRET';\nSET fs.key = T0PS3CRET2;\n{TABLES}INSERT INTO p (i) SELECT id FROM s"
    );
    let text = imported("x", &script);
    assert!(!text.contains("T0PS3CRET"), "{text}");
    assert!(
        text.contains("# Left out, for it has no counterpart here: SET 'fs.oss.accessKeySecret' in line 1\n"),
        "{text}"
    );
    assert!(text.contains("SET 'fs.key' in line 2\n"), "{text}");
}

#[test]
fn what_the_planner_says_is_told_in_the_script() {
    let script = format!(
        "{TABLES}INSERT INTO p (n, i) SELECT nme,
   MY_FUNC(id)
FROM s
WHERE COUNT(*) > 1;
INSERT INTO p (x) SELECT id || FROM s;"
    );
    let report = import(Path::new("x.sql"), &script).report.render(Style::Line);
    let told: Vec<&str> = report.lines().collect();
    for (line, expected) in told.iter().zip([
        "x.sql:3:29: error: there is no column `nme`; expected a column of the source: id, name, timestamp, r; did you mean `name`?",
        "x.sql:4:4: error: there is no function MY_FUNC",
        "x.sql:6:7: error: COUNT is an aggregate",
        "x.sql:7:",
    ]) {
        assert!(line.starts_with(expected), "{report}");
    }
    assert_eq!(told.len(), 4, "{report}");
    let nested = "CREATE TABLE q (a INT, r ROW<a INT>, b INT NOT NULL) WITH ('connector' = 'print');";
    let nested = format!("{TABLES}{nested} INSERT INTO q (a) SELECT id FROM s");
    let report = import(Path::new("x.sql"), &nested).report.render(Style::Line);
    assert!(report.contains(
        "x.sql:3:99: error: `r` of `q` is ROW<`a` INT>, and a query cannot make a null of that type; expected a value for it
x.sql:3:99: error: `b` of `q` is NOT NULL and is given no value; expected a value for it
"
    ), "{report}");
}

#[test]
fn what_looks_like_a_reference_in_a_query_is_told_to_be_a_text() {
    let told = crate::errors::told(&format!("{TABLES}INSERT INTO p SELECT timestamp, '${{SALT}}', id, 1 FROM s;"));
    assert!(told.contains("x.sql:3:34: warning: `${` in a query is a text here, and refers to nothing"), "{told}");
}
