//! A query is planned when its definition is checked, and what is wrong with it is told where it stands.

use crate::told;

/// What is told of a definition with this value of `query`, which begins on line 2, and this section at the sink.
fn told_of(query: &str, sink: &str) -> Vec<String> {
    told(&format!(
        "source: {{ connector: datagen, schema: {{ id: INT, price: 'DECIMAL(10, 2)', name: STRING }} }}\nquery:{query}\nsink: {sink}\n"
    ))
}

const BLACKHOLE: &str = "{ connector: blackhole }";

#[test]
fn a_mistake_in_a_query_is_told_where_it_stands_however_the_query_is_written() {
    let of_nam = |place: &str| {
        vec![format!(
            "{place}: error: there is no column `nam`; expected a column of the source: id, price, name; did you mean `name`?"
        )]
    };
    for (query, place) in [
        (" SELECT id, nam FROM source", "2:19"),
        (" \"SELECT id, nam FROM source\"", "2:20"),
        (" 'SELECT id, nam FROM source'", "2:20"),
        (" SELECT id,\n  nam\n  FROM source", "3:3"),
        (" |\n  SELECT id,\n    nam\n  FROM source", "4:5"),
        (" |\n  SELECT 'é', id, nam\n  FROM source", "3:19"),
        (" |-\n\n  SELECT id,\n\n  nam FROM source", "6:3"),
        (" |2\n    SELECT id,\n   nam FROM source", "4:4"),
        (" |\r\n  SELECT id,\r\n  nam FROM source\r", "4:3"),
        (" >\n  SELECT id,\n  nam FROM source", "4:3"),
        (" |\n  SELECT id, -- nam\n  nam FROM source", "4:3"),
    ] {
        assert_eq!(told_of(query, BLACKHOLE), of_nam(place), "{query}");
    }
}

#[test]
fn a_comment_that_swallows_what_yaml_folded_behind_it_is_told() {
    for (query, place) in [
        (" >\n  SELECT id FROM source -- only large ones\n  WHERE id > 1", "3:25"),
        (" >-\n  SELECT id -- which\n  FROM source", "3:13"),
        (" >-\n  SELECT id, '--' AS a -- of ${NAME:-all}\n  FROM source", "3:24"),
        (" SELECT id FROM source -- only large ones\n  WHERE id > 1", "2:30"),
        (" \"SELECT id\\n\\n FROM source -- all\n  WHERE nope > 1\"", "2:35"),
    ] {
        let help = "these lines are folded into one: write the query behind `|`, or the comment as /* ... */";
        let expected = format!("{place}: error: lines that follow are a part of this comment; {help}");
        assert_eq!(told_of(query, BLACKHOLE), [expected], "{query}");
    }
    for query in [
        " >\n  SELECT '--', /* all */ id\n  FROM source",
        " |\n  SELECT id -- which\n  FROM source -- of all\n",
        " SELECT id FROM source -- of all",
        " >\n  SELECT id\n  FROM source -- of all",
        " >\n  SELECT id\n  FROM source\n  -- WHERE id > 1\n",
        " >\n  SELECT id -- which\n\n  FROM source",
        " 'SELECT id\n  FROM source -- it''s all'",
        " \"SELECT id -- which\\nFROM source\"",
        " |\n  SELECT id -- of ${NAME:-all}\n  FROM source",
        " >\n  SELECT id\n  FROM source -- of ${NAME:-all}",
        " |\n  SELECT '--' AS a, id -- FROM source\n  FROM source",
    ] {
        assert_eq!(told_of(query, BLACKHOLE), [] as [&str; 0], "{query}");
    }
}

#[test]
fn every_column_that_is_not_there_is_told_at_once_beside_other_mistakes() {
    let all = told_of(" |\n  SELECT idd, nam FROM source\n  WHERE pric > 1", "{ connector: blackhole, color: red }");
    let places: Vec<_> = all.iter().map(|told| told.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["3:10", "3:15", "4:9", "5:31"], "{all:?}");
}

#[test]
fn what_needs_more_than_one_row_is_refused_by_its_name() {
    for (rest, place, name) in [
        ("SELECT id FROM source ORDER BY id", "2:30", "ORDER BY"),
        ("SELECT id FROM source LIMIT 1", "2:30", "LIMIT"),
        ("SELECT DISTINCT id FROM source", "2:15", "DISTINCT"),
        ("SELECT id FROM source GROUP BY id", "2:30", "GROUP BY"),
        ("SELECT COUNT(*) FROM source", "2:15", "COUNT"),
        ("SELECT a.id FROM source a JOIN source b ON a.id = b.id", "2:", "JOIN"),
        ("SELECT id FROM source UNION ALL SELECT id FROM source", "2:30", "UNION"),
        ("SELECT (SELECT 1) FROM source", "2:", "subquer"),
        ("SELECT id FROM orders", "2:23", "orders"),
        ("INSERT INTO a SELECT id FROM source", "2:8", "INSERT"),
    ] {
        let told = told_of(&format!(" {rest}"), BLACKHOLE);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(place) && told[0].contains(name), "{rest}: {told:?}");
    }
}

#[test]
fn the_sink_takes_the_columns_of_the_query() {
    let query = " SELECT id, price + 1 AS more FROM source";
    let columns = |columns: &str| told_of(query, &format!("{{ connector: print, schema: {{ {columns} }} }}"));
    assert_eq!(columns("a: BIGINT, b: 'DECIMAL(13, 2)'"), [""; 0]);
    assert_eq!(
        columns("a: INT"),
        ["3:27: error: the sink has 1 columns, the query has 2; they are matched by position; expected 2 columns"]
    );
    assert_eq!(
        columns("a: STRING, b: DOUBLE"),
        ["3:40: error: `a` is STRING, column 1 of the query, `id`, is INT; expected INT or a wider type of its kind"]
    );
    let overflows = columns("a: INT, b: 'DECIMAL(4, 2)'");
    assert_eq!(overflows.len(), 1, "{overflows:?}");
    assert!(
        overflows[0].contains("warning: `b` is DECIMAL(4, 2), column 2 of the query, `more`, is "),
        "{overflows:?}"
    );
}

#[test]
fn a_query_is_a_text_at_the_top_that_holds_no_secret() {
    let expected = "expected `SELECT ... FROM source`, with or without a `WHERE`";
    assert_eq!(told_of(" [1]", BLACKHOLE), [format!("2:8: error: `query` holds a list; {expected}")]);
    assert_eq!(told_of("", BLACKHOLE), [format!("2:1: error: `query` holds nothing; {expected}")]);
    let inside =
        told("source: { connector: datagen, query: x, schema: { id: INT } }\nsink: { connector: blackhole }\n");
    assert_eq!(
        inside,
        ["1:31: error: `source` has no option `query`; `query` stands at the top of the file, beside `source`"]
    );
}
