//! What single expressions make, and what they are refused for.

use std::{sync::Arc, time::Instant};

use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;

use super::{Query, QueryError, Selected};
use crate::model::{Column, Schema};

fn schema() -> Schema {
    Schema { columns: vec![Column::parse("id", "INT").unwrap(), Column::parse("name", "STRING").unwrap()] }
}

fn rows(count: i32) -> RecordBatch {
    let ids: ArrayRef = Arc::new((0..count).map(|id| (id % 2 == 0).then_some(id)).collect::<Int32Array>());
    let names: ArrayRef = Arc::new((0..count).map(|id| Some(format!("n{id}"))).collect::<StringArray>());
    RecordBatch::try_new(schema().to_arrow(), vec![ids, names]).unwrap()
}

fn plan(expression: &str) -> Result<Query, Vec<QueryError>> {
    Query::plan(&format!("SELECT {expression} AS x FROM source"), &schema())
}

fn over(expression: &str, count: i32) -> Selected {
    plan(expression).unwrap_or_else(|errors| panic!("{expression}: {errors:?}")).run(&rows(count)).unwrap()
}

/// The value for the first row, whose id is 0 and whose name is n0.
fn value(expression: &str) -> String {
    let made = over(expression, 1);
    let Some(reject) = made.rejects.first() else {
        let column = made.rows.column(0);
        return if column.is_null(0) { "NULL".into() } else { array_value_to_string(column, 0).unwrap() };
    };
    format!("error: {}", reject.reason)
}

fn refused(expression: &str) -> String {
    plan(expression).expect_err(expression).remove(0).message
}

#[test]
fn more_text_than_a_batch_holds_at_once_is_made_in_parts() {
    let made = over("name || REPEAT('x', 16777000)", 6);
    assert_eq!((made.rows.num_rows(), made.rejects.len()), (6, 0));
    let texts = made.rows.column(0).as_any().downcast_ref::<StringArray>().unwrap().clone();
    assert!(texts.iter().enumerate().all(|(row, text)| text.unwrap().starts_with(&format!("n{row}x"))));
    let constant = over("REPEAT('x', 16777000)", 6);
    assert_eq!(constant.rows.num_rows(), 6, "a long constant is not copied for all rows at once");
}

#[test]
fn no_function_makes_a_text_that_is_too_long() {
    for expression in [
        "name || REPEAT('x', 16777216)",
        "CONCAT(name, REPEAT('x', 16777216))",
        "CONCAT_WS(REPEAT('x', 16777216), name, name)",
        "CAST(name AS CHAR(2000000000))",
        "CAST(name AS BINARY(2000000000))",
        "REPLACE(REPEAT(name, 5000000), 'n', 'nnnn')",
        "REGEXP_REPLACE(REPEAT(name, 5000000), 'n', 'nnnn')",
    ] {
        let value = value(expression);
        assert!(value.contains("16777216 are the most"), "{expression}: {}", value.get(..80).unwrap_or(&value));
    }
}

#[test]
fn a_choice_of_many_is_planned_at_once_and_one_that_doubles_is_refused() {
    let started = Instant::now();
    let many = |name: &str, count: usize| format!("{name}({})", vec!["id"; count].join(", "));
    assert_eq!(value(&many("GREATEST", 16)), "0");
    assert_eq!(value(&many("COALESCE", 30)), "0");
    let nested = |name: &str, depth| format!("{}id{}", format!("{name}(").repeat(depth), ", 7)".repeat(depth));
    assert_eq!(value(&nested("IFNULL", 25)), "0");
    assert_eq!(value(&nested("LEAST", 25)), "0");
    assert!(refused(&nested("NULLIF", 25)).contains("too large"));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn choices_look_at_each_row_as_far_as_it_needs() {
    let made = over("COALESCE(id, 10 / id, CAST('7' AS INT))", 4);
    let made: Vec<_> = (0..4).map(|row| array_value_to_string(made.rows.column(0), row).unwrap()).collect();
    assert_eq!(made, ["0", "7", "2", "7"]);
    for (expression, expected) in [
        ("GREATEST(1, 3, 2)", "3"),
        ("LEAST(name, 'a', 'z')", "a"),
        ("GREATEST(1.50, 2, 0.1)", "2.00"),
        ("LEAST(DATE '2024-02-01', DATE '2024-01-01')", "2024-01-01"),
        ("GREATEST(TIMESTAMP '2024-02-01 00:00:00', TIMESTAMP '2024-01-01 00:00:00')", "2024-02-01T00:00:00"),
        ("GREATEST(1, CAST(NULL AS INT))", "NULL"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn a_random_integer_is_another_one_in_every_row() {
    let made = over("RAND_INTEGER(2000000000)", 8);
    let column = made.rows.column(0);
    assert!((1..8).any(|row| column.slice(row, 1) != column.slice(0, 1)));
}

#[test]
fn digits_beyond_all_numbers_are_no_panic() {
    let least = "CAST('-9223372036854775808' AS BIGINT)";
    assert_eq!(value(&format!("ROUND(id + 7, {least})")), "0");
    assert_eq!(value(&format!("TRUNCATE(CAST(7.5 AS DOUBLE), {least})")), "0.0");
    assert_eq!(value(&format!("ROUND(CAST(7.5 AS DECIMAL(3, 1)), {least})")), "0");
}

#[test]
fn formats_of_times_have_letters_as_often_as_java_bears() {
    let pattern = "H".repeat(70_000);
    assert!(refused(&format!("FROM_UNIXTIME(id, '{pattern}')")).contains("at most 2"));
    assert!(refused("FROM_UNIXTIME(id, 'SSSSSSSSSS')").contains("at most 9"));
    assert_eq!(value("FROM_UNIXTIME(id, 'yyyy-MM-dd')"), "1970-01-01");
}

#[test]
fn times_are_those_of_java_and_calcite() {
    for (expression, expected) in [
        ("TIMESTAMPDIFF(MONTH, TIMESTAMP '2024-01-31 00:00:00', TIMESTAMP '2023-12-31 23:59:59.999')", "-1"),
        ("TIMESTAMPDIFF(MONTH, TIMESTAMP '2024-02-29 13:14:15.678', DATE '2024-02-29')", "-1"),
        ("TIMESTAMPDIFF(YEAR, TIMESTAMP '2025-05-31 12:00:00', TIMESTAMP '2024-05-31 13:00:00')", "-1"),
        ("TIMESTAMPDIFF(MONTH, TIMESTAMP '2024-01-31 10:00:00', TIMESTAMP '2024-02-29 10:00:00')", "1"),
        ("TO_DATE('1/2/99', 'M/d/yy')", "1999-01-02"),
        ("TO_DATE('1/2/70', 'M/d/yy')", "1970-01-02"),
        ("TO_DATE('1/2/24', 'M/d/yy')", "2024-01-02"),
        ("CONVERT_TZ('2024-11-03 01:30:00', 'America/Los_Angeles', 'UTC')", "2024-11-03 09:30:00"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn the_first_kind_of_time_decides_the_type_of_a_case() {
    let ty = |expression: &str| plan(expression).unwrap().schema().columns[0].ty.logical.to_string();
    let (plain, local) = ("TIMESTAMP '2024-01-01 00:00:00'", "TO_TIMESTAMP_LTZ(id, 0)");
    assert_eq!(ty(&format!("CASE WHEN id > 0 THEN {plain} ELSE {local} END")), "TIMESTAMP(3)");
    assert_eq!(ty(&format!("CASE WHEN id > 0 THEN {local} ELSE {plain} END")), "TIMESTAMP_LTZ(3)");
}

#[test]
fn what_the_planner_of_flink_refuses_is_refused() {
    assert!(refused("DATE '2024-01-01' + INTERVAL '100' DAY").contains("more than 2 digits"));
    assert_eq!(value("DATE '2024-01-01' + INTERVAL '100' DAY(3)"), "2024-04-10");
    assert!(refused("1e400").contains("no number"));
    assert!(refused(r"name LIKE 'a' ESCAPE '\'").contains("escape character"));
}

#[test]
fn a_decimal_that_does_not_fit_is_null() {
    assert_eq!(value("CAST(id = 0 AS DECIMAL(1, 1))"), "NULL");
    assert_eq!(value("CAST(id = 0 AS DECIMAL(2, 1))"), "1.0");
}

#[test]
fn integers_of_json_keep_their_digits() {
    for (expression, expected) in [
        (r#"JSON_VALUE('{"a":12345678901234567890123}', '$.a')"#, "12345678901234567890123"),
        (r#"JSON_VALUE('{"a":"\"","b":[-12345678901234567890123]}', '$.b[0]')"#, "-12345678901234567890123"),
        (r#"JSON_QUERY('{"a":[18446744073709551616, 1.5, "x"]}', '$.a')"#, r#"[18446744073709551616,1.5,"x"]"#),
        (r#"JSON_VALUE('{"a":"12345678901234567890123"}', '$.a')"#, "12345678901234567890123"),
        (r#"'{12345678901234567890123:1}' IS JSON"#, "false"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn instr_goes_backwards_from_the_end() {
    for (expression, expected) in [
        ("INSTR('hello world', 'l', -1)", "10"),
        ("INSTR('hello world', 'l', -1, 2)", "4"),
        ("INSTR('hello world', 'l', -1, 4)", "0"),
        ("INSTR('hello world', 'l', 0)", "0"),
        ("INSTR('hello world', 'l', 5)", "10"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}
