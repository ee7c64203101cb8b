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
    assert!(plain.contains("2 |  'connector' = 'mns', 'accesKeySecret' = ***"), "{plain}");
    let told = told(&table("'accessKeySecret' = \"T0PS3CRET\""));
    assert!(told.contains("x.sql:2:43: error: found a value without `'`; expected a value in single quotes"), "{told}");
}
