//! What cannot be imported is told, all of it, where it stands.

use std::path::Path;

use queuewarden::{definition::Style, flink_sql::import};

/// Two tables, in lines 1 and 2; what is tested follows in line 3.
const TABLES: &str = "CREATE TABLE s (a INT, b STRING) WITH ('connector' = 'datagen');
CREATE TABLE p (a INT, b STRING) WITH ('connector' = 'print');
";

pub fn told(script: &str) -> String {
    let imported = import(Path::new("x.sql"), script);
    assert_eq!(imported.pipelines.is_empty(), imported.report.has_errors(), "all or nothing: {script}");
    imported.report.render(Style::Line)
}

fn assert_told(cases: &[(&str, &str)]) {
    for (script, expected) in cases {
        assert_eq!(told(script), *expected, "{script}");
    }
}

/// Cases whose script follows the two tables.
fn assert_told_after_tables(cases: &[(&str, &str)]) {
    for (script, expected) in cases {
        assert_eq!(told(&format!("{TABLES}{script}")), *expected, "{script}");
    }
}

#[test]
fn what_a_pipeline_has_no_place_for_is_named_in_a_table() {
    let table = |element: &str, behind: &str| {
        format!(
            "CREATE TABLE s (\n  a INT,\n  {element}) {behind} WITH ('connector' = 'datagen');\nINSERT INTO p SELECT * FROM s;"
        )
    };
    let print = "CREATE TABLE p (a INT) WITH ('connector' = 'print');\n";
    for (element, behind, expected) in [
        ("WATERMARK FOR t AS t - INTERVAL '5' SECOND", "", "x.sql:4:3: error: WATERMARK FOR cannot be imported\n"),
        ("p AS PROCTIME()", "", "x.sql:4:3: error: the computed column `p` cannot be imported\n"),
        ("UNIQUE (a)", "", "x.sql:4:3: error: UNIQUE cannot be imported\n"),
        ("b INT", "PARTITIONED BY (a)", "x.sql:4:10: error: PARTITIONED BY cannot be imported\n"),
        ("b INT", "DISTRIBUTED INTO 4 BUCKETS", "x.sql:4:10: error: DISTRIBUTED cannot be imported\n"),
        ("a STRING", "", "x.sql:4:3: error: the column `a` is declared twice\n"),
        (
            "b STRIN",
            "",
            "x.sql:4:5: error: found `STRIN` in the type of column `b`; expected a type such as STRING, BIGINT or TIMESTAMP(3); did you mean `STRING`?\n",
        ),
        (
            "b ROW<x INT, y TIMESTMP>",
            "",
            "x.sql:4:18: error: found `TIMESTMP` in the type of column `b`; expected a type such as STRING, BIGINT or TIMESTAMP(3); did you mean `TIMESTAMP`?\n",
        ),
        (
            "b INT METADATA VIRTUL",
            "",
            "x.sql:4:18: error: found `VIRTUL` in the type of column `b`; expected FROM 'key', VIRTUAL or the end; did you mean `VIRTUAL`?\n",
        ),
        ("b", "", "x.sql:4:4: error: found `)`; expected the type of the column `b`\n"),
        (
            "PRIMARY KEY (a)",
            "",
            "x.sql:4:3: error: a primary key without NOT ENFORCED, which Flink refuses; expected NOT ENFORCED behind it\n",
        ),
        (
            "PRIMARY KEY (A) NOT ENFORCED",
            "",
            "x.sql:4:16: error: the primary key names `A`, which is no column; did you mean `a`?\n",
        ),
        (
            "m STRING METADATA, PRIMARY KEY (m) NOT ENFORCED",
            "",
            "x.sql:4:35: error: the primary key names `m`, which is metadata; expected a column that is read from the body, as in Flink\n",
        ),
        (
            "b INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (a) NOT ENFORCED",
            "",
            "x.sql:4:35: error: the table has a second primary key\n",
        ),
    ] {
        assert_eq!(told(&format!("{print}{}", table(element, behind))), expected, "{element} {behind}");
    }
}

#[test]
fn what_a_table_ends_with_is_read_to_the_end() {
    assert_told(&[
        (
            "CREATE TABLE s (a INT)",
            "x.sql:1:14: error: the table `s` has no WITH; expected `WITH ('connector' = '...', ...)`\n",
        ),
        ("CREATE TABLE s (a INT) LIKE t", "x.sql:1:24: error: CREATE TABLE ... LIKE cannot be imported\n"),
        (
            "CREATE TABLE s (a INT) WITH ('connector' = 'print') LIKE t",
            "x.sql:1:53: error: CREATE TABLE ... LIKE cannot be imported\n",
        ),
        (
            "CREATE TABLE s WITH ('connector' = 'print') AS SELECT 1",
            "x.sql:1:45: error: CREATE TABLE ... AS SELECT cannot be imported\n",
        ),
        ("CREATE TABLE s (a INT) WITH ('connector' 'print')", "x.sql:1:42: error: found a text; expected `=`\n"),
        (
            "CREATE TABLE s (a INT) WITH ('connector' = print)",
            "x.sql:1:44: error: found a value without `'`; expected a value in single quotes\n",
        ),
        (
            "CREATE TABLE s (a INT) WITH (connector = 'print')",
            "x.sql:1:30: error: found `connector`; expected an option such as `'format' = 'json'`\n",
        ),
        (
            "CREATE TABLE s (a INT WITH ('a' = 'b')",
            "x.sql:1:33: error: found `=` in the type of column `a`; expected a type, a name or one of `< > ( ) ,`\nx.sql:1:39: error: found the end of the statement; expected `,` or `)`\n",
        ),
        (
            "CREATE TABLE s (a INT) WIHT ('a' = 'b')",
            "x.sql:1:24: error: found `WIHT`; expected `WITH`, `COMMENT` or the end of the statement\n",
        ),
    ]);
}

#[test]
fn what_a_pipeline_has_no_place_for_is_named_in_an_insert() {
    assert_told_after_tables(&[
        ("INSERT INTO p SELECT * FROM s JOIN t ON s.a = t.a", "x.sql:3:31: error: a join cannot be imported\n"),
        (
            "INSERT INTO p SELECT * FROM s AS x LEFT JOIN t ON x.a = t.a",
            "x.sql:3:36: error: a join cannot be imported\n",
        ),
        ("INSERT INTO p SELECT * FROM s, t", "x.sql:3:30: error: a join (a second table) cannot be imported\n"),
        ("INSERT INTO p SELECT a, COUNT(*) FROM s GROUP BY a", "x.sql:3:41: error: GROUP BY cannot be imported\n"),
        ("INSERT INTO p SELECT * FROM s WHERE a > 1 ORDER BY a", "x.sql:3:43: error: ORDER BY cannot be imported\n"),
        ("INSERT INTO p SELECT * FROM s LIMIT 5", "x.sql:3:31: error: LIMIT cannot be imported\n"),
        (
            "INSERT INTO p SELECT * FROM s WHERE a = 1 UNION ALL SELECT * FROM s",
            "x.sql:3:43: error: UNION cannot be imported\n",
        ),
        ("INSERT INTO p SELECT DISTINCT * FROM s", "x.sql:3:22: error: SELECT DISTINCT cannot be imported\n"),
        (
            "INSERT INTO p SELECT a, ROW_NUMBER() OVER (ORDER BY a) FROM s",
            "x.sql:3:38: error: a window (OVER) cannot be imported\n",
        ),
        ("INSERT INTO p SELECT * FROM (SELECT * FROM s)", "x.sql:3:29: error: a subquery cannot be imported\n"),
        (
            "INSERT INTO p SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(t), INTERVAL '1' HOUR))",
            "x.sql:3:29: error: a table function cannot be imported\n",
        ),
        (
            "INSERT INTO p SELECT * FROM s /*+ OPTIONS('rows-per-second'='1') */",
            "x.sql:3:31: error: a hint (`/*+ ... */`) cannot be imported; write the options it gives into the table's WITH\n",
        ),
        ("INSERT INTO p VALUES (1, 'a')", "x.sql:3:15: error: INSERT ... VALUES cannot be imported\n"),
        (
            "INSERT INTO p WITH x AS (SELECT * FROM s) SELECT * FROM x",
            "x.sql:3:15: error: WITH (a common table expression) cannot be imported\n",
        ),
        ("INSERT INTO p SELECT 1, 'a'", "x.sql:3:28: error: a SELECT without FROM cannot be imported\n"),
        ("INSERT OVERWRITE p SELECT * FROM s", "x.sql:3:1: error: INSERT OVERWRITE cannot be imported\n"),
        ("INSERT INTO p PARTITION (a = 1) SELECT b FROM s", "x.sql:3:15: error: PARTITION cannot be imported\n"),
        (
            "SELECT * FROM s",
            "x.sql:3:1: error: a SELECT that is not inserted anywhere; expected INSERT INTO ... SELECT\n",
        ),
    ]);
}

#[test]
fn what_is_not_there_or_does_not_fit_is_told_with_what_is_near() {
    assert_told_after_tables(&[
        (
            "INSERT INTO q SELECT * FROM s",
            "x.sql:3:13: error: there is no table `q`; expected a table that is created before it is used\n",
        ),
        (
            "INSERT INTO P SELECT * FROM s",
            "x.sql:3:13: error: there is no table `P`; expected a table that is created before it is used; did you mean `p`?\n",
        ),
        (
            "INSERT INTO p SELECT a FROM s",
            "x.sql:3:1: error: 1 columns are selected for 2 of `p`; expected one for each; they are matched by position\n",
        ),
        ("INSERT INTO p (a, c) SELECT a, b FROM s", "x.sql:3:19: error: `p` takes no column `c`\n"),
        ("INSERT INTO p (a, a) SELECT a, b FROM s", "x.sql:3:19: error: `a` is named twice\n"),
        (
            "INSERT INTO p (a) SELECT a, b FROM s",
            "x.sql:3:1: error: 2 columns are selected for 1 of `p`; expected one for each; they are matched by position\n",
        ),
        (
            "CREATE TABLE p (a INT) WITH ('connector' = 'print'); INSERT INTO p SELECT * FROM s",
            "x.sql:3:14: error: the table `p` is declared in line 2 already\n",
        ),
        (
            "DROP TABLE z; DROP TABLE IF EXISTS z; DROP TABLE p CASCADE; INSERT INTO p SELECT * FROM s",
            "x.sql:3:12: error: there is no table `z`; expected a table that is created before it is used
x.sql:3:52: error: found `CASCADE`; expected the end of the statement\n",
        ),
        (
            "CREATE TABLE c.d.p (a INT, b STRING) WITH ('connector' = 'print');
CREATE TABLE e.d.p (a INT, b STRING) WITH ('connector' = 'print'); DROP TABLE d.p; INSERT INTO c.d.p SELECT * FROM s",
            "x.sql:4:79: error: there are several tables `p`; expected the name with its catalog and database\n",
        ),
        (
            "INSERT INTO p SELECT zzz.a, b FROM s",
            "x.sql:3:22: error: there is no table or column `zzz`; expected source.column or row.field\n",
        ),
        ("INSERT INTO p SELECT zzz.* FROM s", "x.sql:3:22: error: `zzz.*` cannot be imported; expected `s.*`\n"),
        ("INSERT INTO p SELECT s.* FROM s AS x", "x.sql:3:22: error: `s.*` cannot be imported; expected `x.*`\n"),
        (
            "DROP TABLE p; INSERT INTO p SELECT * FROM s",
            "x.sql:3:27: error: there is no table `p`; expected a table that is created before it is used\n",
        ),
    ]);
}

#[test]
fn other_statements_are_named() {
    assert_told_after_tables(&[
        (
            "CREATE VIEW v AS SELECT * FROM s",
            "x.sql:3:1: error: CREATE VIEW cannot be imported; expected CREATE TABLE\n",
        ),
        (
            "CREATE TEMPORARY FUNCTION f AS 'x'",
            "x.sql:3:1: error: CREATE FUNCTION cannot be imported; expected CREATE TABLE\n",
        ),
        (
            "ALTER TABLE s RENAME TO t",
            "x.sql:3:1: error: ALTER cannot be imported; expected CREATE TABLE, INSERT INTO or SET\n",
        ),
        (
            "INSRET INTO p SELECT * FROM s",
            "x.sql:3:1: error: INSRET cannot be imported; expected CREATE TABLE, INSERT INTO or SET; did you mean `INSERT`?\n",
        ),
        (
            "SET 'restart-strategy.type' = 'sometimes'; INSERT INTO p SELECT * FROM s",
            "x.sql:3:31: error: there is no restart strategy `sometimes`; expected one of `none`, `fixed-delay`, `failure-rate`, `exponential-delay`\n",
        ),
        (
            "SET 'execution.checkpointing.interval' = 'often'; INSERT INTO p SELECT * FROM s",
            "x.sql:3:42: error: `interval` is `often`; expected a duration of at least 10ms, such as `10s`\n",
        ),
        (
            "",
            "x.sql: error: the script has no INSERT INTO, so there is nothing to run; expected INSERT INTO ... SELECT ... FROM ...\nx.sql:1:14: warning: no INSERT reads or writes the table `s`; it becomes part of no pipeline\nx.sql:2:14: warning: no INSERT reads or writes the table `p`; it becomes part of no pipeline\n",
        ),
    ]);
}

#[test]
fn what_check_says_of_the_definition_is_told_in_the_script() {
    let with = |options: &str| {
        format!(
            "CREATE TABLE s (a INT) WITH (\n{options});\nCREATE TABLE p (a INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT * FROM s;"
        )
    };
    let mns = "  'connector' = 'mns', 'endpoint' = 'http://h', 'queueName' = 'q', 'accessKeyId' = 'i', 'accessKeySecret' = 'k'";
    for (options, expected) in [
        (
            "'connector' = 'kafka'".to_owned(),
            "x.sql:2:15: error: there is no connector `kafka`; expected the name of a source: `mns`, `rocketmq4`, `rocketmq5`, `cmq`, `datagen`\n",
        ),
        ("'connector' = 'rocketmq6'".to_owned(), "x.sql:2:15: error: there is no connector `rocketmq6`"),
        (
            "'conector' = 'mns'".to_owned(),
            "x.sql:1:14: error: the required option `connector` is missing from `source`",
        ),
        (
            format!("{mns},\n  'format' = 'json'"),
            "x.sql:1:14: error: the required option `region` is missing from `source`; expected `region: ...`, a text that is not empty\n",
        ),
        (format!("{mns},\n  'region' = 'r', 'format' = 'jsn'"), "x.sql:3:30: error: there is no format `jsn`"),
        (
            format!("{mns},\n  'region' = 'r', 'format' = 'json',\n  'batchsize' = '8'"),
            "x.sql:4:3: error: `source` has no option `batchsize`; did you mean `batchSize`?\n",
        ),
        (
            format!("{mns},\n  'region' = 'r', 'format' = 'json',\n  'batchSize' = '<yourBatch>'"),
            "x.sql:4:17: error: `batchSize` is `<yourBatch>`; expected an integer from 1 to 16; it stands for a value of yours: put that in\n",
        ),
        (
            format!("{mns},\n  'region' = 'r', 'format' = 'json',\n  'batchSize' = '17'"),
            "x.sql:4:17: error: `batchSize` is `17`; expected an integer from 1 to 16\n",
        ),
        (
            format!("{mns},\n  'region' = '${{a-b}}', 'format' = 'json'"),
            "x.sql:3:14: error: `${...}` does not hold the name of a variable; expected `${NAME}` or `${secret_values.NAME}`; where the text itself is meant, U&'...' with \\0024\n",
        ),
    ] {
        let told = told(&with(&options));
        assert!(told.contains(expected), "{options}:\n{told}\n{expected}");
    }
}

#[test]
fn what_is_refused_hides_nothing_of_what_else_is_wrong() {
    let script = "CREATE TABLE s (a INT, WATERMARK FOR a AS a, b STRIN) WITH ('connector' = 'mnss', 'queueName' = 'q');
CREATE TABLE p (a INT, b DATE) WITH ('connector' = 'filesystem', 'paht' = '/tmp/x', 'format' = 'jsom');
CREATE TABLE u (a INT) WITH ('connector' = 'mns', 'batchsize' = '8');
INSERT INTO p SELECT a, COUNT(*) FROM s GROUP BY a;
CREATE TABLE d (a INT, b STRING) WITH ('connector' = 'datagen');
INSERT INTO p SELECT UPER(b), a + 'x' = nmae FROM d;";
    let expected = "x.sql:1:24: error: WATERMARK FOR cannot be imported
x.sql:1:48: error: found `STRIN` in the type of column `b`; expected a type such as STRING, BIGINT or TIMESTAMP(3); did you mean `STRING`?
x.sql:1:75: error: there is no connector `mnss`; expected the name of a source: `mns`, `rocketmq4`, `rocketmq5`, `cmq`, `datagen`; did you mean `mns`?
x.sql:2:66: error: `sink` has no option `paht`, and the required option `path` is missing; did you mean `path`?
x.sql:2:96: error: there is no format `jsom`; expected the name of a format: `json`, `csv`, `raw`, `avro`, `parquet`; did you mean `json`?
x.sql:3:51: error: `source` has no option `batchsize`; did you mean `batchSize`?
x.sql:4:41: error: GROUP BY cannot be imported
x.sql:6:22: error: there is no function UPER; did you mean `UPPER`?
x.sql:6:31: error: there is no + of INT and CHAR(1); texts are joined with ||
x.sql:6:41: error: there is no column `nmae`; expected a column of the source: a, b
";
    assert_eq!(told(script), expected);
}

#[test]
fn what_cannot_be_inserted_is_told_at_what_is_selected() {
    assert_told_after_tables(&[
        (
            "INSERT INTO p SELECT b, b FROM s",
            "x.sql:3:22: error: `a` of `p` is INT, and this is STRING; expected what can be inserted into INT; CAST(`b` AS INT)\n",
        ),
        (
            "INSERT INTO p (b, a) SELECT a, UPPER(b) AS n FROM s",
            "x.sql:3:29: error: `b` of `p` is STRING, and this is INT; expected what can be inserted into STRING; CAST(`a` AS STRING)\nx.sql:3:32: error: `a` of `p` is INT, and this is STRING; expected what can be inserted into INT\n",
        ),
        (
            "CREATE TABLE t (a STRING, b STRING) WITH ('connector' = 'datagen'); INSERT INTO p SELECT * FROM t; INSERT INTO p SELECT * FROM s",
            "x.sql:3:90: error: `a` of `p` is INT, and this is STRING; expected what can be inserted into INT; CAST(`a` AS INT)\n",
        ),
    ]);
}

#[test]
fn one_queue_cannot_be_read_for_two_inserts() {
    let script =
        "CREATE TABLE s (a INT) WITH ('connector' = 'mns', 'endpoint' = 'http://h', 'region' = 'r', 'queueName' = 'q',
  'accessKeyId' = 'i', 'accessKeySecret' = 'k', 'format' = 'json');
CREATE TABLE p (a INT) WITH ('connector' = 'print');
CREATE TABLE b (a INT) WITH ('connector' = 'blackhole');
EXECUTE STATEMENT SET BEGIN INSERT INTO p SELECT * FROM s; INSERT INTO b SELECT * FROM s; END;";
    let expected = "x.sql:1:106: error: another pipeline reads this queue; it is that of the INSERT in line 5; two readers would take each other's messages\n";
    assert_eq!(told(script), expected);
    assert_eq!(
        told(&script.replace("'queueName' = 'q'", "'queueName' = '${A}'")),
        "",
        "what is not known is nobody's fault"
    );
}

#[test]
fn a_semicolon_that_is_missing_is_told_and_both_statements_are_read() {
    assert_told_after_tables(&[
        (
            "INSERT INTO p SELECT a, b FROM s\nINSERT INTO p SELECT nope, b FROM s",
            "x.sql:4:1: error: `;` is missing before this\nx.sql:4:22: error: there is no column `nope`; expected a column of the source: a, b\n",
        ),
        (
            "CREATE TABLE t (a INT, b STRIN) WITH ('connector' = 'print')\nCREATE TABLE u (a INT, b STRIN) WITH ('connector' = 'print')",
            "x.sql:3:26: error: found `STRIN` in the type of column `b`; expected a type such as STRING, BIGINT or TIMESTAMP(3); did you mean `STRING`?\nx.sql:4:1: error: `;` is missing before this\nx.sql:4:26: error: found `STRIN` in the type of column `b`; expected a type such as STRING, BIGINT or TIMESTAMP(3); did you mean `STRING`?\n",
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO p SELECT * FROM s INSERT INTO p SELECT * FROM s; END;",
            "x.sql:3:59: error: `;` is missing before this\n",
        ),
    ]);
}

#[test]
fn a_statement_set_without_its_end_is_an_error() {
    let expected = "error: the statement set that begins here has no `END`; expected `END;` behind its INSERTs\n";
    assert_told_after_tables(&[
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO p SELECT * FROM s;", &format!("x.sql:3:1: {expected}")),
        ("BEGIN STATEMENT SET; INSERT INTO p SELECT * FROM s;", &format!("x.sql:3:1: {expected}")),
        ("BEGIN STATEMENT SET; INSERT INTO p SELECT * FROM s; END;", ""),
    ]);
}

#[test]
fn a_hint_hides_nothing_of_what_else_is_wrong() {
    assert_told_after_tables(&[(
        "INSERT INTO p SELECT a, nope FROM s /*+ OPTIONS('a'='b') */;",
        "x.sql:3:25: error: there is no column `nope`; expected a column of the source: a, b\nx.sql:3:37: error: a hint (`/*+ ... */`) cannot be imported; write the options it gives into the table's WITH\n",
    )]);
}

#[test]
fn a_table_is_checked_as_it_is_used_also_where_its_insert_cannot_be_read() {
    let tables = "CREATE TABLE s (a INT, k INT METADATA FROM 'nope') WITH ('connector' = 'mns', 'endpoint' = 'http://h', 'region' = 'r',
 'queueName' = 'q', 'accessKeyId' = 'i', 'accessKeySecret' = 'k', 'format' = 'json', 'batchSize' = '17');
CREATE TABLE p (a INT, b DECIMAL(10, 2)) WITH ('connector' = 'filesystem', 'format' = 'json');
CREATE TABLE q (a INT) WITH ('connector' = 'datage');\n";
    let told =
        told(&format!("{tables}INSERT INTO p SELECT a, b FROM s GROUP BY a;\nINSERT INTO q SELECT DISTINCT a FROM s;"));
    for expected in [
        "x.sql:1:26: error: `mns` as a source has no metadata `nope`",
        "x.sql:2:100: error: `batchSize` is `17`; expected an integer from 1 to 16\n",
        "x.sql:3:14: error: the required option `path` is missing from `sink`",
        "x.sql:4:44: error: there is no connector `datage`; expected the name of a sink: ",
        "x.sql:5:34: error: GROUP BY cannot be imported\n",
        "x.sql:6:22: error: SELECT DISTINCT cannot be imported\n",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}");
    }
    assert_eq!(told.lines().count(), 6, "nothing of the other side: {told}");
}

#[test]
fn keys_of_a_definition_are_no_options_of_a_table() {
    let table = |options: &str| {
        told(&format!(
            "CREATE TABLE s (a INT) WITH ('connector' = 'datagen', {options});\nCREATE TABLE p (a INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT * FROM s;"
        ))
    };
    let schema =
        "x.sql:1:55: error: `schema` is no option of a table; expected the columns in parentheses in front of WITH\n";
    assert_eq!(table("'schema' = 'x'"), schema);
    assert!(table("'primaryKey' = 'x'").contains("error: `primaryKey` is no option of a table; expected `PRIMARY KEY"));
    assert!(!table("'shema' = 'x'").contains("schema"), "{}", table("'shema' = 'x'"));
    assert!(!table("'zzz' = 'x'").contains("schema"), "{}", table("'zzz' = 'x'"));
}

#[test]
fn a_wait_is_told_where_it_is_set() {
    assert_told_after_tables(&[
        (
            "SET 'restart-strategy.type' = 'fixed-delay'; SET 'restart-strategy.fixed-delay.delay' = 'x'; INSERT INTO p SELECT * FROM s",
            "x.sql:3:89: error: `restart-strategy.fixed-delay.delay` is `x`; expected a duration such as `10s`, `500 ms` or `2min` (units d, h, min, s, ms, us, ns; a bare number is milliseconds)\n",
        ),
        (
            "SET 'restart-strategy.type' = 'fixed-delay'; SET 'restart-strategy.fixed-delay.delay' = '0 s'; INSERT INTO p SELECT * FROM s",
            "",
        ),
        (
            "SET 'restart-strategy.fixed-delay.attempts' = '3'; INSERT INTO p SELECT * FROM s",
            "x.sql:3:47: warning: `restart-strategy.fixed-delay.attempts` is left out: `restart-strategy.type` is not set\n",
        ),
        (
            "SET 'restart-strategy.type' = 'none'; SET 'restart-strategy.fixed-delay.attempts' = '3'; INSERT INTO p SELECT * FROM s",
            "x.sql:3:85: warning: `restart-strategy.fixed-delay.attempts` is left out: `restart-strategy.type` is `none`\n",
        ),
        (
            "SET 'restart-strategy.fixed-delay.attemps' = '3'; INSERT INTO p SELECT * FROM s",
            "x.sql:3:5: warning: `restart-strategy.fixed-delay.attemps` has no counterpart here and is left out; did you mean `restart-strategy.fixed-delay.attempts`?\n",
        ),
        (
            "SET 'execution.checkpointing.mode' = 'x'; INSERT INTO p SELECT * FROM s",
            "x.sql:3:5: warning: `execution.checkpointing.mode` has no counterpart here and is left out\n",
        ),
    ]);
}

#[test]
fn what_says_nothing_about_a_pipeline_is_left_out_and_its_secrets_are_not_shown() {
    for statement in [
        "ADD JAR '/tmp/x.jar'",
        "REMOVE JAR '/tmp/x.jar'",
        "LOAD MODULE m WITH ('k' = 'T0PS3CRET')",
        "CREATE CATALOG c WITH ('type' = 'jdbc', 'password' = 'T0PS3CRET')",
        "CREATE DATABASE d",
    ] {
        let script = format!("{TABLES}{statement};\nINSERT INTO p SELECT * FROM s;");
        let words = statement.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let expected = format!("x.sql:3:1: warning: {words} says nothing about a pipeline and is left out\n");
        assert_eq!(told(&script), expected);
        let plain = import(Path::new("x.sql"), &script).report.render(Style::Plain);
        assert!(!plain.contains("T0PS3CRET"), "{plain}");
    }
}

#[test]
fn a_conversion_is_advised_only_where_there_is_one() {
    let tables = "CREATE TABLE s (a INT, b ARRAY<INT>, c BOOLEAN, d TIMESTAMP(3)) WITH ('connector' = 'datagen');
CREATE TABLE p (a BOOLEAN) WITH ('connector' = 'print');
CREATE TABLE q (a ARRAY<STRING>) WITH ('connector' = 'print');\n";
    for (insert, expected) in [
        ("INSERT INTO p SELECT a FROM s", Some("CAST(`a` AS BOOLEAN)")),
        ("INSERT INTO p SELECT b FROM s", None),
        ("INSERT INTO p SELECT d AS e FROM s", None),
        ("INSERT INTO p SELECT a + 1 AS e FROM s", None),
        ("INSERT INTO q SELECT a FROM s", None),
    ] {
        let told = told(&format!("{tables}{insert};"));
        assert_eq!(told.contains("CAST("), expected.is_some(), "{insert}: {told}");
        assert!(told.contains(expected.unwrap_or("what can be inserted into")), "{insert}: {told}");
    }
}

#[test]
fn a_name_that_changes_and_a_character_that_nobody_sees_are_told() {
    let script = "CREATE TABLE `\u{65e5}\u{672c}` (a INT) WITH ('connector' = 'datagen');
CREATE TABLE p (a INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT * FROM `\u{65e5}\u{672c}`;";
    assert!(told(script).starts_with("x.sql:3:1: warning: the pipeline is called `to-p`"), "{}", told(script));
    let unseen = told(&format!("{TABLES}INSERT INTO p \u{200b} SELECT * FROM s;"));
    assert!(unseen.contains("found `U+200B`"), "{unseen}");
}

#[test]
fn of_tables_that_no_insert_uses_a_hundred_are_looked_at() {
    let table = |number| format!("CREATE TABLE t{number} (a INT) WITH ('connector' = 'mns', 'batchsize' = '1');\n");
    let tables: String = (0..300).map(table).collect();
    let told = told(&tables);
    assert_eq!(told.matches("has no option `batchsize`").count(), 100, "5,000 took 20 seconds");
    assert!(told.contains("there is nothing to run"), "{told}");
}

#[test]
fn a_use_that_decides_between_tables_is_an_error() {
    let table = |name: &str, connector: &str| {
        format!("CREATE TABLE IF NOT EXISTS {name} (a INT) WITH ('connector' = '{connector}');")
    };
    let with = |statements: &[&str]| told(&format!("{}\n{}", table("s", "datagen"), statements.join("\n")));
    let p = table("p", "print");
    let (first, second) = (table("c.d.p", "print"), table("e.d.p", "print"));
    let insert = "INSERT INTO p SELECT * FROM s;";
    let warned = "warning: USE says nothing about a pipeline and is left out\n";
    assert_eq!(with(&["USE CATALOG c;", &p, insert]), format!("x.sql:2:1: {warned}"));
    assert_eq!(
        with(&["USE CATALOG c;", &p, "USE CATALOG e;", &p, insert]),
        format!(
            "x.sql:2:1: {warned}x.sql:4:1: {warned}x.sql:5:28: error: USE decides whether this is the table `p` of line 3; \
             expected the names of both with catalog and database; USE is not followed\n"
        )
    );
    let several =
        "error: there are several tables `p`; expected the name with its catalog and database; USE is not followed\n";
    assert_eq!(with(&[&p, &second, "USE e.d;", insert]), format!("x.sql:4:1: {warned}x.sql:5:13: {several}"));
    assert_eq!(
        with(&[&first, &second, "USE e.d;", "DROP TABLE p;", "INSERT INTO c.d.p SELECT * FROM s"]),
        format!("x.sql:4:1: {warned}x.sql:5:12: {several}")
    );
}

#[test]
fn a_definition_that_check_would_refuse_for_its_size_is_an_error() {
    let columns: Vec<_> = (0..200).map(|number| format!("`c{number}{}` INT", "x".repeat(2000))).collect();
    let columns = columns.join(",\n");
    let script = format!(
        "CREATE TABLE s ({columns}) WITH ('connector' = 'datagen');
CREATE TABLE p ({columns}) WITH ('connector' = 'print');\nINSERT INTO p SELECT * FROM s;"
    );
    let expected =
        "x.sql:401:1: error: the definition would be larger than 256 KiB; expected less than a definition may hold\n";
    assert_eq!(told(&script), expected);
}

#[test]
fn many_inserts_take_no_longer_than_they_are_many() {
    let began = std::time::Instant::now();
    let name = "n".repeat(100);
    for table in ["p", name.as_str()] {
        let script =
            format!("{TABLES}SET 'pipeline.name' = '{table}';{}", "INSERT INTO p SELECT * FROM s;\n".repeat(1500));
        let imported = import(Path::new("x.sql"), &script);
        let names: std::collections::HashSet<_> = imported.pipelines.iter().map(|pipeline| &pipeline.name).collect();
        assert_eq!(names.len(), 1500);
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn everything_is_told_at_once_in_the_order_of_the_script() {
    let script =
        "CREATE TABLE s (a INT, WATERMARK FOR a AS a, b AS a) PARTITIONED BY (a) WITH ('connector' = 'datagen');
CREATE VIEW v AS SELECT 1;
INSERT INTO p SELECT DISTINCT a FROM s LIMIT 3;
INSERT INTO q SELECT * FROM s;";
    let places: Vec<String> = told(script).lines().map(|line| line.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(
        places,
        ["x.sql:1:24", "x.sql:1:46", "x.sql:1:54", "x.sql:2:1", "x.sql:3:22", "x.sql:3:40", "x.sql:4:13"]
    );
}

#[test]
fn what_is_left_out_is_a_warning_and_nothing_more() {
    assert_told_after_tables(&[
        (
            "SET 'parallelism.default' = '4';\nINSERT INTO p SELECT * FROM s",
            "x.sql:3:5: warning: `parallelism.default` has no counterpart here and is left out\n",
        ),
        (
            "SHOW TABLES; USE CATALOG c;\nINSERT INTO p SELECT * FROM s",
            "x.sql:3:1: warning: SHOW says nothing about a pipeline and is left out\nx.sql:3:14: warning: USE says nothing about a pipeline and is left out\n",
        ),
        (
            "CREATE TABLE IF NOT EXISTS p (z INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT * FROM s",
            "x.sql:3:28: warning: the table `p` is declared in line 2 already\n",
        ),
        (
            "CREATE TABLE x (a INT, b STRING, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print', 'sink.parallelism' = '1');\nINSERT INTO x SELECT * FROM s",
            "x.sql:2:14: warning: no INSERT reads or writes the table `p`; it becomes part of no pipeline\nx.sql:3:34: warning: the primary key of `x` is left out: the table is written here; a primary key is only for what is read by `cmq`\nx.sql:3:93: warning: `sink.parallelism` is left out: a pipeline is not cut into parallel parts\n",
        ),
        (
            "CREATE TABLE x (a INT, b STRING) WITH ('connector' = 'print', 'print-identifier' = 'x', 'print-identifier' = 'y');\nINSERT INTO x SELECT * FROM s",
            "x.sql:2:14: warning: no INSERT reads or writes the table `p`; it becomes part of no pipeline\nx.sql:3:89: warning: the option `print-identifier` is given twice; this value holds, as in Flink\n",
        ),
    ]);
}

#[test]
fn a_script_as_the_page_has_it_without_its_line_breaks_says_what_is_missing() {
    let script = "CREATE TABLE `s` ( `id` INT, PRIMARY KEY (`id`) NOT ENFORCED \u{2014} the key) WITH ( 'connector' = 'cmq', \u{2014} always);";
    let expected = "x.sql:1:62: error: the comment behind `\u{2014}` has swallowed the rest of its line; put a line break after each comment, as the script once had\n";
    assert_eq!(told(script), expected);
}

/// Whatever a script has become on its way, importing it ends, and says something or makes a definition.
#[test]
fn a_script_that_is_mangled_is_answered() {
    let scripts = crate::scripts();
    let mut random = fastrand::Rng::with_seed(7);
    let pieces = [
        "'", "`", "(", ")", ",", ";", "--", "/*", "*/", "\u{2014}", "\u{2018}", "\u{201d}", "$", "${", "}", "SELECT",
        "FROM", "U&'\\", "\n", "\0", "ROW<", ">>", "AS", "*",
    ];
    for number in 0..4000 {
        let (name, script) = &scripts[number % scripts.len()];
        let mut text: Vec<char> = script.chars().collect();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..text.len());
            match random.u32(0..3) {
                0 => text.truncate(at.max(1)),
                1 => drop(text.drain(at..(at + random.usize(1..30)).min(text.len()))),
                _ => drop(text.splice(at..at, random.choice(pieces).unwrap().chars()).collect::<Vec<_>>()),
            }
            if text.is_empty() {
                text.push('x');
            }
        }
        let text: String = text.iter().collect();
        let imported = import(Path::new("x.sql"), &text);
        assert_ne!(imported.pipelines.is_empty(), !imported.report.has_errors(), "{name}:\n{text}");
    }
}
