//! What is said of a query that cannot be planned.

use super::{
    Query,
    tests::{errors, events, source},
};

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
