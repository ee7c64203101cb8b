//! Queries as a whole.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, RecordBatch, StringArray};

use super::{Query, QueryError, Selected};
use crate::model::{Column, RowReject, Schema};

pub(super) fn source(columns: &[(&str, &str)]) -> Schema {
    Schema { columns: columns.iter().map(|(name, ty)| Column::parse(name, ty).unwrap()).collect() }
}

pub(super) fn events() -> Schema {
    source(&[("id", "INT"), ("name", "STRING"), ("ok", "BOOLEAN"), ("amount", "DOUBLE NOT NULL")])
}

fn batch() -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), Some(0), None, Some(4)])),
        Arc::new(StringArray::from(vec![Some("12"), Some("x"), Some("3"), None])),
        Arc::new(BooleanArray::from(vec![Some(true), Some(true), None, Some(false)])),
        Arc::new(Float64Array::from(vec![1.5, 2.5, 3.5, 4.5])),
    ];
    RecordBatch::try_new(events().to_arrow(), columns).unwrap()
}

pub(super) fn errors(text: &str) -> Vec<QueryError> {
    Query::plan(text, &events()).expect_err(text)
}

fn run(text: &str) -> (Query, Selected) {
    let query = Query::plan(text, &events()).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    let selected = query.run(&batch()).unwrap();
    (query, selected)
}

#[test]
fn what_only_where_looks_at_is_not_kept_and_the_rest_stays_what_it_is() {
    for (text, from, first) in [
        ("SELECT 7 AS x FROM source WHERE id > 0", vec![0, 3], "7"),
        ("SELECT amount FROM source WHERE ok", vec![0, 1], "1.5"),
        ("SELECT name, amount, id FROM source WHERE amount > 2", vec![1, 2, 3], "x"),
        ("SELECT CASE WHEN amount > 4 THEN name ELSE UPPER(name) END FROM source WHERE id = 0", vec![1], "X"),
        ("SELECT name FROM source WHERE CAST(name AS INT) > 3", vec![0], "12"),
    ] {
        let (_, selected) = run(text);
        assert_eq!(selected.from, from, "{text}");
        let shown = arrow_cast::display::array_value_to_string(selected.rows.column(0), 0).unwrap();
        assert_eq!((selected.rows.num_rows(), shown.as_str()), (from.len(), first), "{text}");
    }
}

#[test]
fn a_type_may_have_comments_around_it() {
    let (query, _) =
        run("SELECT CAST(id AS /* x */ BIGINT -- y\n) AS a, TRY_CAST(name AS DECIMAL(/* p */ 10, 2)) AS b FROM source");
    let types: Vec<_> = query.schema().columns.iter().map(|column| column.ty.logical.to_string()).collect();
    assert_eq!(types, ["BIGINT", "DECIMAL(10, 2)"]);
}

#[test]
fn all_says_nothing_and_bytes_are_written_in_base_16() {
    let (query, selected) = run("SELECT ALL id, x'1F' AS b FROM source");
    assert_eq!((query.schema().columns.len(), selected.from.len()), (2, 4));
}

#[test]
fn columns_of_one_name_are_numbered_as_in_flink() {
    let (query, _) = run("SELECT id, id, name AS id, id AS id0, 1 AS `EXPR$5`, 2 FROM source");
    let names: Vec<_> = query.schema().columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "id0", "id1", "id00", "EXPR$5", "EXPR$50"]);
}

#[test]
fn a_row_that_fails_is_rejected_alone_and_one_that_where_drops_is_not_looked_at() {
    let (_, selected) = run("SELECT id, CAST(name AS INT) AS n FROM source");
    assert_eq!(selected.from, [0, 2, 3]);
    let reject = RowReject { row: 1, reason: "column `n`: 'x' is no INT".into() };
    assert_eq!(selected.rejects, [reject]);
    let (_, selected) = run("SELECT CAST(name AS INT) AS n FROM source WHERE name <> 'x'");
    assert_eq!((selected.from, selected.rejects.len()), (vec![0, 2], 0));
    let (_, selected) = run("SELECT id FROM source WHERE 4 / id > 1");
    assert_eq!(selected.from, [0]);
    assert_eq!(selected.rejects, [RowReject { row: 1, reason: "WHERE: a division by zero".into() }]);
    let (_, selected) = run("SELECT 1 / id AS a, CAST(name AS INT) AS b FROM source");
    assert_eq!(selected.rejects, [RowReject { row: 1, reason: "column `a`: a division by zero".into() }]);
    assert_eq!(selected.from, [0, 2, 3]);
}

#[test]
fn a_guard_protects_what_stands_behind_it() {
    for text in [
        "SELECT id <> 0 AND 4 / id > 1 AS a FROM source",
        "SELECT id = 0 OR 4 / id > 1 AS a FROM source",
        "SELECT CASE WHEN id <> 0 THEN 4 / id ELSE 0 END AS a FROM source",
        "SELECT CASE id WHEN 0 THEN 0 ELSE 4 / id END AS a FROM source",
        "SELECT IF(id = 0, 0, 4 / id) AS a FROM source",
        "SELECT COALESCE(NULLIF(id, 0), 1) AS a FROM source",
        "SELECT TRY_CAST(name AS INT) AS a FROM source",
    ] {
        let (_, selected) = run(text);
        assert_eq!((selected.from.len(), selected.rejects.len()), (4, 0), "{text}");
    }
}

#[test]
fn null_in_where_drops_the_row() {
    let (_, selected) = run("SELECT * FROM source WHERE ok");
    assert_eq!(selected.from, [0, 1]);
    let (_, selected) = run("SELECT * FROM source WHERE ok IS NOT TRUE");
    assert_eq!(selected.from, [2, 3]);
    let (_, selected) = run("SELECT * FROM source WHERE NULL");
    assert_eq!((selected.from.len(), selected.rows.num_rows()), (0, 0));
}

#[test]
fn columns_have_names_and_types_as_in_flink() {
    let columns = |text| {
        let (query, selected) = run(text);
        assert_eq!(selected.rows.schema(), query.schema().to_arrow());
        let one = |column: &Column| format!("{} {}", column.name, column.ty);
        query.schema().columns.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(columns("SELECT * FROM source"), "id INT, name STRING, ok BOOLEAN, amount DOUBLE NOT NULL");
    assert_eq!(
        columns("SELECT id + 1, s.name, amount * 2 FROM source s"),
        "EXPR$0 INT, name STRING, EXPR$2 DOUBLE NOT NULL"
    );
    assert_eq!(columns("SELECT source.id AS `a b`, 'x' AS c FROM source"), "a b INT, c CHAR(1) NOT NULL");
    assert_eq!(columns("SELECT s.*, CURRENT_DATE AS d FROM source AS s;").split(", ").last(), Some("d DATE NOT NULL"));
}

#[test]
fn a_query_that_selects_everything_copies_nothing() {
    let rows = batch();
    let (query, selected) = run("SELECT id, name, ok, amount FROM source");
    assert!(query.plan.is_identity());
    assert_eq!(selected.rows, rows);
    let same = query.run(&rows).unwrap().rows;
    assert!(Arc::ptr_eq(same.column(1), rows.column(1)));
    let (_, selected) = run("SELECT name AS n, amount FROM source WHERE amount > 0");
    assert_eq!(selected.from, [0, 1, 2, 3]);
    assert!(
        Query::plan("SELECT name, id, ok, amount FROM source", &events()).is_ok_and(|query| !query.plan.is_identity())
    );
}

#[test]
fn the_time_is_one_for_all_rows_of_a_batch() {
    let (_, selected) = run("SELECT CURRENT_TIMESTAMP = NOW() AS same, CURRENT_TIMESTAMP AS t FROM source");
    let times = selected.rows.column(1);
    assert!((1..4).all(|row| times.slice(row, 1) == times.slice(0, 1)));
    assert_eq!(**selected.rows.column(0), BooleanArray::from(vec![true; 4]));
}

#[test]
fn a_query_without_rows_answers_none() {
    let query =
        Query::plan("SELECT CAST(name AS INT) AS n, 1 / id AS m FROM source WHERE 1 / id > 0", &events()).unwrap();
    let selected = query.run(&batch().slice(0, 0)).unwrap();
    assert_eq!((selected.rows.num_rows(), selected.from.len(), selected.rejects.len()), (0, 0, 0));
}

#[test]
fn a_query_that_is_too_long_or_too_deep_is_refused_and_not_walked() {
    let long = format!("SELECT {} FROM source", vec!["1"; 6_000].join(" + "));
    assert!(errors(&long)[0].message.contains("longer than"), "{:?}", errors(&long)[0]);
    let chain = format!("SELECT {} FROM source", vec!["1"; 2_000].join(" + "));
    assert!(errors(&chain)[0].message.contains("deep"));
    for (open, close) in [("CASE WHEN ok THEN 1 ELSE ", " END"), ("(", ")"), ("ABS(", ")"), ("NOT (", ")")] {
        let nested = |times: usize| format!("SELECT {}id{} AS x FROM source", open.repeat(times), close.repeat(times));
        let found = errors(&nested(61));
        assert!(found[0].message.contains("more than 60 deep"), "{open}: {found:?}");
        let found = Query::plan(&nested(60), &events()).err().unwrap_or_default();
        assert!(found.iter().all(|error| !error.message.contains("deep")), "{open}: {found:?}");
    }
    let deep = format!("SELECT {}1 AS x FROM source", "id + ".repeat(140));
    assert_eq!(run(&deep).1.from.len(), 4, "what is planned can be run on any thread");
    let nested = format!("SELECT {}id{} FROM source", "(".repeat(500), ")".repeat(500));
    assert!(!errors(&nested).is_empty());
    let conditions = format!("SELECT id FROM source WHERE {}", vec!["id = 1"; 1_200].join(" OR "));
    assert!(Query::plan(&conditions, &events()).is_ok(), "AND and OR are taken as a whole");
}

/// A random expression of a type; most have a meaning, and what has none is refused.
fn expression(random: &mut fastrand::Rng, ty: char, depth: usize) -> String {
    let mut next = |ty: char| expression(random, ty, depth.saturating_sub(1));
    if depth == 0 {
        let choices: &[&str] = match ty {
            'i' => &["id", "0", "7", "-1", "CAST(NULL AS INT)", "2147483647"],
            's' => &["name", "'12'", "'x'", "''", "'é😀'", "CAST(NULL AS STRING)"],
            'd' => &["amount", "1.5", "0.0", "1e300", "0.25"],
            't' => &["DATE '2024-02-29'", "TIMESTAMP '1969-12-31 23:59:59.999'", "DATE '9999-12-31'"],
            _ => &["ok", "TRUE", "FALSE", "UNKNOWN"],
        };
        return choices[random.usize(..choices.len())].to_owned();
    }
    let (i, s, d, b, t) = (next('i'), next('s'), next('d'), next('b'), next('t'));
    let (i2, s2, b2) = (next('i'), next('s'), next('b'));
    let choices = match ty {
        'i' => vec![
            format!("({i} + {i2})"),
            format!("({i} / {i2})"),
            format!("({i} % {i2})"),
            format!("CAST({s} AS INT)"),
            format!("TRY_CAST({s} AS INT)"),
            format!("CHAR_LENGTH({s})"),
            format!("CASE WHEN {b} THEN {i} ELSE {i2} END"),
            format!("CAST({d} AS INT)"),
            format!("COALESCE({i}, {i2})"),
            format!("NULLIF({i}, {i2})"),
            format!("IF({b}, {i}, {i2})"),
            format!("CAST(YEAR({t}) AS INT)"),
            format!("LOCATE({s}, {s2}, {i})"),
        ],
        's' => vec![
            format!("({s} || {s2})"),
            format!("SUBSTRING({s}, {i}, {i2})"),
            format!("UPPER({s})"),
            format!("CAST({i} AS STRING)"),
            format!("CAST({d} AS VARCHAR(3))"),
            format!("LPAD({s}, {i} % 50, {s2})"),
            format!("REPLACE({s}, {s2}, 'r')"),
            format!("OVERLAY({s} PLACING {s2} FROM {i})"),
            format!("SPLIT_INDEX({s}, {s2}, {i})"),
            format!("REGEXP_EXTRACT({s}, '(.)', {i})"),
            format!("JSON_VALUE({s}, '$.a')"),
            format!("DATE_FORMAT(CAST({t} AS TIMESTAMP(3)), 'yyyy D HH')"),
        ],
        'd' => vec![
            format!("({d} / {i})"),
            format!("ROUND({d}, {i})"),
            format!("CAST(CAST({d} AS DECIMAL(10, 2)) / {i} AS DOUBLE)"),
            format!("POWER({d}, {i})"),
            format!("CAST({s} AS DOUBLE)"),
        ],
        't' => vec![
            format!("CAST({t} AS DATE)"),
            format!("CAST({s} AS DATE)"),
            format!("TIMESTAMPADD(MONTH, {i}, {t})"),
            format!("({t} + INTERVAL '1' DAY * {i})"),
            format!("FLOOR({t} TO MONTH)"),
            format!("CEIL({t} TO WEEK)"),
        ],
        _ => vec![
            format!("({b} AND {b2})"),
            format!("({b} OR {b2})"),
            format!("(NOT {b})"),
            format!("({i} = {i2})"),
            format!("({d} < {i})"),
            format!("({s} LIKE {s2})"),
            format!("({s} LIKE '%1%')"),
            format!("({i} IN ({i2}, 1, NULL))"),
            format!("({i} BETWEEN {i2} AND 5)"),
            format!("({b} IS NOT TRUE)"),
            format!("({s} IS DISTINCT FROM {s2})"),
            format!("({t} > {t})"),
            format!("({s} IS JSON)"),
        ],
    };
    choices[random.usize(..choices.len())].clone()
}

#[test]
fn any_expression_makes_of_a_batch_what_it_makes_of_each_row() {
    let (rows, mut planned) = (batch(), 0);
    for seed in 0..1_500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let ty = ['i', 's', 'd', 'b', 't'][random.usize(..5)];
        let text = format!(
            "SELECT id, {} AS x FROM source WHERE {}",
            expression(&mut random, ty, 3),
            expression(&mut random, 'b', 2)
        );
        let Ok(query) = Query::plan(&text, &events()) else { continue };
        planned += 1;
        let all = query.run(&rows).unwrap();
        let (mut from, mut rejects) = (Vec::new(), Vec::new());
        for row in 0..rows.num_rows() {
            let one = query.run(&rows.slice(row, 1)).unwrap();
            for _ in &one.from {
                let made = all.from.iter().position(|from| *from == row).map(|at| all.rows.slice(at, 1));
                assert_eq!(made.as_ref(), Some(&one.rows), "{text}, row {row}");
                from.push(row);
            }
            rejects.extend(one.rejects.into_iter().map(|reject| RowReject { row, ..reject }));
        }
        assert_eq!((all.from, all.rejects), (from, rejects), "{text}");
    }
    assert!(planned > 1_000, "{planned}");
}

#[test]
fn no_text_makes_the_planner_panic() {
    let words = [
        "SELECT",
        "FROM",
        "source",
        "WHERE",
        "id",
        "name",
        "(",
        ")",
        ",",
        "'",
        "`",
        "*",
        "+",
        "CASE",
        "WHEN",
        "END",
        "CAST",
        "AS",
        "INT",
        "JSON_VALUE",
        "IS",
        "NOT",
        "JSON",
        "TRIM",
        "BOTH",
        "INTERVAL",
        "'1'",
        "DAY",
        "é",
        ";",
        ".",
        "[",
        "]",
        "1",
        "--",
        "/*",
        "U&'",
        "NULL",
        "IN",
        "BETWEEN",
        "AND",
        "LIKE",
        "ESCAPE",
        "EXTRACT",
        "OVER",
        "\n",
    ];
    for seed in 0..5_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.usize(1..14);
        let mut text = String::from(if random.bool() { "SELECT " } else { "" });
        for _ in 0..count {
            text.push_str(words[random.usize(..words.len())]);
            text.push(' ');
        }
        if random.bool() {
            text.push_str("FROM source");
        }
        match Query::plan(&text, &events()) {
            Ok(query) => drop(query.run(&batch()).unwrap()),
            Err(errors) => {
                for error in errors {
                    assert!(text.get(error.at.clone()).is_some(), "{text:?}: {error:?}");
                    assert!(!error.message.is_empty(), "{text:?}");
                }
            }
        }
    }
}
