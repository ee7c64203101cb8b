//! What may be a secret is shown nowhere.

use std::path::Path;

use queuewarden::{definition::Style, flink_sql::import};

use crate::errors::told;

#[test]
fn a_secret_is_not_shown_where_something_is_wrong_beside_it() {
    let script = "CREATE TABLE s (a INT) WITH ('connector' = 'mns', 'accessKeySecret' = 'T0PS3CRET', 'accesKeySecret' = 'T0PS3CRET');
CREATE TABLE p (a INT) WITH ('connector' = 'print'); INSERT INTO p SELECT * FROM s WHERE";
    for style in [Style::Plain, Style::Line] {
        let told = import(Path::new("x.sql"), script).report.render(style);
        assert!(told.contains("a predicate") && !told.contains("T0PS3CRET"), "{told}");
    }
    let told = import(Path::new("x.sql"), &script.replace(" WHERE", "")).report.render(Style::Plain);
    assert!(told.contains("did you mean `accessKeySecret`?") || told.contains("has no option"), "{told}");
    assert!(!told.contains("T0PS3CRET"), "{told}");
}

#[test]
fn what_follows_an_equals_sign_and_is_no_text_is_never_shown() {
    let table = |options: &str| {
        format!(
            "CREATE TABLE s (a INT) WITH (\n 'connector' = 'mns', {options}, 'accesKeyId' = 'i'\n);\nCREATE TABLE p (a INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT * FROM s;"
        )
    };
    for value in [
        "\"T0PS3CRET\"",
        "N'T0PS3CRET'",
        "X'70'",
        "$$T0PS3CRET$$",
        "T0PS3CRET",
        "T0PS3CRET.x",
        "abc,T0PS3CRET",
        "abc)T0PS3CRET",
        "abc;T0PS3CRET",
        "'abc'T0PS3CRET",
        "'abc' T0PS3CRET",
        "'abc', T0PS3CRET 'x'",
        "<T0PS3CRET>",
        "abc T0PS3CRET",
        "\u{201c}T0PS3CRET\u{201d}",
        "'${T0PS3CRET-x}'",
        "U&'${T0PS3CRET-x}'",
        "= T0PS3CRET",
        "abc;\nT0PS3CRET x",
    ] {
        let scripts = [
            table(&format!("'accessKeySecret' = {value}")),
            table(&format!("'accessKeySecret' {value}")),
            table(&format!("'accessKeySecret' = {value}")).replace("WITH (", "WIHT ("),
            table("'batchSize' = '16'") + "SET 'k' = " + &value.replace(';', "") + ";SET 'x' y;",
            table("'batchSize' = '16'") + "SET k = " + &value.replace(';', "") + ";SET 'x' y;",
            table("'batchSize' = '16'") + "SET 'k' " + &value.replace(';', "") + ";SET 'x' y;",
        ];
        for script in scripts {
            for style in [Style::Plain, Style::Line] {
                let told = import(Path::new("x.sql"), &script).report.render(style);
                assert!(!told.is_empty() && !told.contains("T0PS3CRET"), "{script}\n{told}");
            }
        }
    }
    let plain = import(Path::new("x.sql"), &table("'accesKeySecret' = \"T0PS3CRET\"")).report.render(Style::Plain);
    assert!(plain.contains("2 |  'connector' = 'mns', *** = ***"), "{plain}");
    let told = told(&table("'accessKeySecret' = \"T0PS3CRET\""));
    assert!(told.contains("x.sql:2:43: error: found a value without `'`; expected a value in single quotes"), "{told}");
}

/// A script whose secrets stand in a table and in a setting, on their own and within names and texts.
const SCRIPT: &str = "SET 'fs.oss.accessKeySecret' = 'T0PS3CRET';
SET fs.cos.secret = T0PS3CRET;
CREATE TABLE `s` (`id` BIGINT, `t` STRING COMMENT 'x') WITH (
  'connector' = 'mns', 'endpoint' = 'http://h', 'region' = 'r', -- it's
  'accessKeyId'='i', 'accessKeySecret'='T0PS3CRET',
  'queueName'='q', 'format'='json');
CREATE TABLE p (id BIGINT, t STRING) WITH ('connector' = 'mq', 'accessKey'='T0PS3CRET', 'topic' = 't');
INSERT INTO p SELECT `id`, t FROM s WHERE t = 'a' AND id > 1;
SET 'fs.oss.accessKeySecret' = 'T0PS3CRET';
CREATE CATALOG c WITH ('type'='jdbc', 'password'='T0PS3CRET');
INSERT INTO p SELECT `id`, 'x' FROM s WHERE t = 'it''s';
";

/// Imports a script, and holds that no part of the secret is told.
fn assert_hidden(script: &str) -> String {
    let report = import(Path::new("x.sql"), script).report;
    let told = format!("{}{}", report.render(Style::Plain), report.render(Style::Line));
    assert!(!["T0P", "S3C", "3CRET"].iter().any(|part| told.contains(part)), "{script}\n{told}");
    told
}

#[test]
fn one_character_that_is_lost_doubled_or_another_makes_no_secret_shown() {
    assert!(!import(Path::new("x.sql"), SCRIPT).report.render(Style::Line).is_empty());
    for (at, c) in SCRIPT.char_indices() {
        let (before, rest) = (&SCRIPT[..at], &SCRIPT[at + c.len_utf8()..]);
        assert_hidden(&format!("{before}{rest}"));
        if c.is_alphanumeric() || c == ' ' {
            continue;
        }
        assert_hidden(&format!("{before}{c}{c}{rest}"));
        for other in "'=,;`()".chars() {
            assert_hidden(&format!("{before}{other}{rest}"));
        }
    }
}

#[test]
fn a_key_that_is_none_is_told_without_it() {
    for pair in [
        "'accessKeySecret''T0PS3CRET'",
        "'accessKeySecret','T0PS3CRET'",
        "'accessKeySecret'=,'T0PS3CRET'",
        "'accessKeySecret==T0PS3CRET'",
        "'accessKeySecret:T0PS3CRET'",
        "'accessKeySecret T0PS3CRET'",
        "'accessKeySecret=T0PS3CRET'='x'",
        "'T0PS3CRET'='accessKeySecret'",
        "'T0PS3CRET' = 'accesKeySecret'",
    ] {
        let script = format!(
            "CREATE TABLE s (a INT) WITH ('connector' = 'mns',\n{pair},\n'queueName' = 'q');
CREATE TABLE p (a INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT * FROM s;"
        );
        assert!(assert_hidden(&script).contains("error"), "{pair}");
    }
    for (key, expected) in [("fields.a b.kind", false), ("fields.\u{5217}.kind", false), ("a b", true)] {
        let script = format!(
            "CREATE TABLE s (`a b` INT, `\u{5217}` INT) WITH ('connector' = 'datagen', '{key}' = 'random');
CREATE TABLE p (a INT, b INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT * FROM s;"
        );
        assert_eq!(told(&script).contains("this is no name of an option"), expected, "{key}");
    }
}

#[test]
fn a_name_that_a_lost_backtick_has_made_is_not_repeated() {
    let script = "CREATE TABLE s (id BIGINT, `t STRING) WITH ('connector' = 'mns', 'accessKeySecret'='T0PS3CRET');
INSERT INTO x SELECT `id` FROM s; SELECT T0PS3CRET";
    let expected = "x.sql:1:28: error: a backtick is missing: what begins here is no name; expected a backtick at both ends of each name; what follows is looked at then\n";
    assert!(assert_hidden(script).ends_with(expected));
    assert_eq!(told(script), expected);
    let odd = "CREATE TABLE s (`it's` INT, `a``b` INT, `a = b, c` INT) WITH ('connector' = 'datagen');
CREATE TABLE p (a INT, b INT, c INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT `it's`, `a``b`, `a = b, c` FROM s;";
    assert_eq!(told(odd), "", "names are odd at times");
}

#[test]
fn a_setting_that_is_not_in_quotes_hides_what_may_be_its_rest() {
    for (script, expected) in [
        ("SET fs.oss.accessKeySecret' = 'T0PS3CRET;\nSELECT x;", "error: a `'` is missing"),
        ("SET fs.oss.accessKeySecret' = ' T0PS3CRET;\nSELECT x;", "error: this is no name of a setting"),
        ("SET fs.oss.accessKeySecret ' = ' T0PS3CRET;\nSELECT x;", "error: this is no name of a setting"),
        ("SET fs.oss.accessKeySecret T0PS3CRET;", "error: this is no name of a setting"),
        ("SET 'fs.x=T0PS3CRET' = 'x';", "error: this is no name of a setting"),
        ("SET 'T0PS3CRET' = 'fs.oss.accessKeySecret';", "error: this is no name of a setting"),
        ("SET 'a' = 'b';\nST fs.oss.accessKeySecret = T0PS3CRET;", "error: ST cannot be imported"),
        ("SET 'a' = 'b';)SET fs.oss.accessKeySecret = T0PS3CRET;", "error: found `)`; expected a statement"),
        ("SET k = ;T0PS3CRET;", "error: this is the rest of a statement that is not whole"),
        ("SET k = ;T0PS3CRET;x;T0PS3CRET y", "error: this is the rest of a statement that is not whole"),
        ("SET fs.secret = abc;T0PS3CRET;", "error: this is the rest of a statement that is not whole"),
    ] {
        let told = assert_hidden(script);
        assert!(told.contains(expected), "{script}\n{told}");
    }
    let told = told("SET k = a;\nCREAT TABLE s (a INT);\nSET k = 'a';\nCREAT TABLE s (a INT);");
    assert!(told.contains("x.sql:2:1: error: this is the rest") && told.contains("x.sql:4:1: error: CREAT cannot"));
}
