//! Queries as a whole.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, RecordBatch, StringArray};

use super::{Query, QueryError, Selected};
use crate::model::{Column, RowReject, Schema};

fn source(columns: &[(&str, &str)]) -> Schema {
    Schema { columns: columns.iter().map(|(name, ty)| Column::parse(name, ty).unwrap()).collect() }
}

fn events() -> Schema {
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

fn errors(text: &str) -> Vec<QueryError> {
    Query::plan(text, &events()).expect_err(text)
}

fn run(text: &str) -> (Query, Selected) {
    let query = Query::plan(text, &events()).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    let selected = query.run(&batch()).unwrap();
    (query, selected)
}

#[test]
fn what_rows_alone_cannot_answer_is_refused_by_its_name_at_its_place() {
    for (text, at, named) in [
        ("SELECT id FROM source GROUP BY id", "GROUP BY", "GROUP BY"),
        ("SELECT id FROM source HAVING id > 1", "HAVING", "HAVING"),
        ("SELECT DISTINCT id FROM source", "DISTINCT", "SELECT DISTINCT"),
        ("SELECT id FROM source ORDER BY id", "ORDER BY", "ORDER BY"),
        ("SELECT id FROM source LIMIT 3", "LIMIT", "LIMIT"),
        ("SELECT id FROM source OFFSET 3", "OFFSET", "OFFSET"),
        ("SELECT id FROM source FETCH FIRST 3 ROWS ONLY", "FETCH", "FETCH"),
        ("SELECT id FROM source JOIN source AS b ON TRUE", "JOIN", "JOIN"),
        ("SELECT id FROM source, other", "other", "one table"),
        ("SELECT id FROM source UNION ALL SELECT id FROM source", "UNION", "UNION"),
        ("WITH a AS (SELECT 1) SELECT id FROM source", "WITH", "WITH"),
        ("SELECT id FROM (SELECT id FROM source)", "SELECT id FROM source", "subquery"),
        ("SELECT id FROM source WHERE id IN (SELECT 1)", "", "subquery"),
        ("SELECT (SELECT 1) FROM source", "", "subquery"),
        ("SELECT COUNT(*) FROM source", "COUNT", "an aggregate"),
        ("SELECT id, SUM(id) FROM source", "SUM(id", "an aggregate"),
        ("SELECT ROW_NUMBER() OVER (ORDER BY id) FROM source", "", "OVER"),
        ("SELECT LAG(id) FROM source", "LAG(id", "a window function"),
        ("SELECT TUMBLE_START(id) FROM source", "TUMBLE_START(id", "windows"),
        ("SELECT /*+ OPTIONS('a'='b') */ id FROM source", "/*+ OPTIONS('a'='b') */", "hints"),
        ("SELECT id FROM source; SELECT id FROM source", "SELECT id FROM source", "one statement"),
        ("INSERT INTO t SELECT id FROM source", "INSERT", "INSERT"),
        ("DELETE FROM source", "DELETE", "DELETE"),
        ("SELECT id FROM Source", "Source", "no table Source"),
        ("SELECT id == 1 AS a FROM source", "==", "no operator =="),
        ("SELECT id FROM source WHERE id != 1", "!=", "no operator !="),
        ("SELECT id AS 'a' FROM source", "'a'", "single quotes"),
        ("SELECT id 'a' FROM source", "'a'", "single quotes"),
        ("SELECT id FROM source AS 's'", "'s'", "single quotes"),
        ("SELECT id, 0x1F AS v FROM source", "0x1F", "no numbers of base 16"),
        ("SELECT name = ‘a’ FROM source", "‘", "is no quote"),
        ("SELECT MAP['a', 1] FROM source", "MAP", "MAP[...] is not supported"),
        ("SELECT id BETWEEN SYMMETRIC 2 AND 1 FROM source", "SYMMETRIC", "BETWEEN SYMMETRIC"),
        ("SELECT id FROM source WHERE name RLIKE 'b'", "RLIKE", "RLIKE, which in Flink is REGEXP"),
        ("SELECT CASE WHEN ok THEN 1 ELSE 2 FROM source", "CASE", "this CASE has no END"),
        ("SELECT id /* ; FROM source", "/* ; FROM source", "this comment has no end"),
        (" ", "", "the query is empty"),
        ("SELECT id", "", "no FROM"),
    ] {
        let errors = errors(text);
        let error = &errors[0];
        assert!(error.message.contains(named), "{text}: {error:?}");
        let place = text.get(error.at.clone()).unwrap_or_else(|| panic!("{text}: {error:?}"));
        assert!(at.is_empty() || place.contains(at), "{text}: at {place:?}");
    }
}

#[test]
fn errors_name_what_is_wrong_and_the_nearest_name() {
    for (text, at, named, nearest) in [
        ("SELECT nmae FROM source", "nmae", "no column `nmae`", Some("name")),
        ("SELECT ID FROM source", "ID", "no column `ID`", Some("id")),
        ("SELECT UPER(name) FROM source", "UPER(name", "no function UPER", Some("UPPER")),
        ("SELECT s.id FROM source AS t", "s", "no table or column `s`", None),
        ("SELECT UPPER(id) FROM source", "id", "UPPER is given INT", None),
        ("SELECT id + name FROM source", "id + name", "no + of INT and STRING", None),
        ("SELECT id = name FROM source", "id = name", "INT and STRING cannot be compared", None),
        ("SELECT CAST(id AS DATE) FROM source", "id", "INT cannot be cast to DATE", None),
        ("SELECT CAST(id AS INTT) FROM source", "INTT", "INTT is no type", Some("INT")),
        ("SELECT CAST(CAST((id) AS STRING) AS TEXT) FROM source", "TEXT", "TEXT is no type", Some("STRING")),
        ("SELECT TRY_CAST(UPPER(name) AS ROW<a INT8>) FROM source", "INT8", "is no type", Some("BIGINT")),
        ("SELECT COALESCE() FROM source", "COALESCE", "COALESCE is given 0 arguments", None),
        ("SELECT TIMESTAMPADD(id, 1) FROM source", "TIMESTAMPADD", "TIMESTAMPADD is given 2 arguments", None),
        ("SELECT id FROM source WHERE id", "id", "WHERE is INT", None),
        ("SELECT NULL FROM source", "NULL", "NULL has no type", None),
        ("SELECT \"id\" FROM source", "\"id\"", "double quotes", None),
        ("SELECT name LIKE 'a!b' ESCAPE '!' FROM source", "'a!b'", "escape character", None),
        ("SELECT REGEXP(name, '(?=a)') FROM source", "'(?=a)'", "look-around", None),
        (
            "SELECT ARRAY_JOIN(name, ',') FROM source",
            "ARRAY_JOIN",
            "Flink's function ARRAY_JOIN is not supported",
            None,
        ),
        ("SELECT id FROM source WHERE", "", "ends here", None),
        ("SELECT 'open FROM source", "'open FROM source", "this text has no end", None),
        ("SELECT LENGTH(name) FROM source", "LENGTH", "no function LENGTH", Some("CHAR_LENGTH")),
        ("SELECT ROW(id) FROM source", "ROW", "Flink's function ROW is not supported", None),
        ("SELECT ABS() FROM source", "ABS", "ABS is given 0 arguments", None),
        ("SELECT id, FROM source", "FROM", "unexpected FROM", None),
        ("SELECT CAST(name, INT) FROM source", ",", "unexpected ,", None),
        ("SELECT CASE WHEN ok THEN 1 ELSE 2 3 END AS x FROM source", "3", "unexpected 3", None),
        ("SELECT CAST(name AS) FROM source", "", "a type is missing", None),
        ("SELECT EXTRACT(YEER FROM name) FROM source", "YEER", "unexpected YEER", Some("YEAR")),
        ("SELECT id DIV 2 AS x FROM source", "DIV", "no operator DIV", None),
    ] {
        let errors = errors(text);
        let error = &errors[0];
        assert!(error.message.contains(named), "{text}: {error:?}");
        let place = text.get(error.at.clone()).unwrap_or_else(|| panic!("{text}: {error:?}"));
        assert!(at.is_empty() || place.contains(at), "{text}: at {place:?}");
        assert_eq!(error.nearest.as_deref(), nearest, "{text}");
    }
}

#[test]
fn everything_that_is_wrong_is_told_in_the_order_of_the_text() {
    let found = errors("SELECT a,\n  b + 1, id\nFROM source WHERE c > 0");
    let places: Vec<_> = found.iter().map(|error| error.at.clone()).collect();
    assert_eq!(places, [7..8, 12..13, 40..41], "{found:?}");

    for (text, expected) in [
        ("SELECT DATEADD(day, 1, nmae) FROM source", vec!["DATEADD(day, 1, nmae", "nmae"]),
        ("SELECT CASE aa WHEN bb THEN cc END FROM source", vec!["aa", "bb", "cc"]),
        ("SELECT nmae LIKE 'a' ESCAPE 'ab' FROM source", vec!["nmae", "'ab'"]),
        ("SELECT 'a' AS x, id AS 'a' FROM source", vec!["'a'"]),
    ] {
        let found: Vec<_> = errors(text).into_iter().map(|error| &text[error.at]).collect();
        assert_eq!(found, expected);
    }
    let text = "SELECT UPER(nmae) + CASE WHEN ok = a THEN b ELSE LOWR(name) END, COUNT(id),
  CAST(c AS TEXT), id != 1 FROM Source WHERE d BETWEEN h AND f AND g GROUP BY id";
    let found: Vec<_> = errors(text).into_iter().map(|error| text[error.at].to_owned()).collect();
    let expected = [
        "UPER(nmae",
        "nmae",
        "a",
        "b",
        "LOWR(name",
        "COUNT(id",
        "c",
        "TEXT",
        "!=",
        "Source",
        "d",
        "h",
        "f",
        "g",
        "GROUP BY",
    ];
    assert_eq!(found, expected);
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
fn an_error_deep_within_others_takes_no_longer() {
    for (open, close) in [("CAST(", " AS INT)"), ("NOT (", ")"), ("FLOOR(", ")"), ("CASE WHEN ok THEN ", " END")] {
        let text = format!("SELECT {}id id{} AS x FROM source", open.repeat(55), close.repeat(55));
        assert_eq!(errors(&text).len(), 1, "{open}");
    }
    let all = format!("SELECT {}* FROM source", "*, ".repeat(2_400));
    let columns = Query::plan(&all, &events()).unwrap().schema().columns.len();
    assert_eq!(columns, 4 * 2_401);
    let all = format!("SELECT {}* FROM source", "*, ".repeat(2_498));
    let wide: Vec<(String, &str)> = (0..5).map(|number| (format!("c{number}"), "INT")).collect();
    let wide: Vec<(&str, &str)> = wide.iter().map(|(name, ty)| (name.as_str(), *ty)).collect();
    let found = Query::plan(&all, &source(&wide)).unwrap_err();
    assert!(found[0].message.contains("more than 10000 columns"), "{found:?}");
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
fn a_word_that_is_misspelt_is_told_where_it_makes_the_query_unreadable() {
    for (text, word, meant) in [
        ("SELECT id FRM source", "FRM", "FROM"),
        ("SELECT id FROM source WHRE id > 1", "WHRE", "WHERE"),
        ("SELCT id FROM source", "SELCT", "SELECT"),
        ("SELECT CASE WHEN ok TEHN 1 END FROM source", "TEHN", "THEN"),
        ("SELECT id FROM source WHERE name LKE 'a'", "LKE", "LIKE"),
    ] {
        let help = format!("perhaps `{word}` was to be {meant}");
        assert_eq!(errors(text)[0].help.as_ref(), Some(&help), "{text}: {:?}", errors(text));
    }
    assert_eq!(errors("SELECT id FROM source WHERE id >")[0].help, None);
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
