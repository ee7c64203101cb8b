//! The section `dead_letter`, and the `rate` of a source.

use std::{fs, path::Path};

use queuewarden::{
    connectors,
    definition::{OnError, Style},
    model::dead_letter_schema,
};

use crate::{EXAMPLE, environment, load, told, told_with};

const LETTERS: &str = "on_error: dead_letter\ndead_letter:\n  connector: filesystem\n  path: dead\n  format: json\n";

fn with(letters: &str) -> String {
    EXAMPLE.replace("on_error: fail\n", letters)
}

#[test]
fn dead_letters_have_an_ordinary_sink_with_columns_of_their_own() {
    let loaded = load(&with(LETTERS));
    let definition = loaded.definition.unwrap_or_else(|| panic!("{}", loaded.report.render(Style::Plain)));
    assert_eq!(definition.on_error, OnError::DeadLetter);
    let letters = definition.dead_letter.as_ref().expect("it is there");
    assert_eq!((letters.connector, &letters.schema), ("filesystem", &dead_letter_schema()));
    // Shown as it is meant, and another folder is another meaning.
    let shown = definition.to_yaml();
    let again = load(&shown).definition.unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(again.to_yaml(), shown);
    assert!(
        load(&with(LETTERS).replace("path: dead", "path: other")).definition.unwrap().digest() != definition.digest()
    );
}

#[test]
fn what_is_wrong_with_the_section_is_told_as_of_a_sink() {
    for (letters, expected) in [
        (
            "on_error: dead_letter\n",
            "25:11: error: `on_error` is `dead_letter`, but the section `dead_letter` is missing; expected \
             `dead_letter:` with a `connector:`",
        ),
        (
            &LETTERS.replace(": dead_letter", ": skip"),
            "26:1: error: nothing goes to `dead_letter`, for `on_error` is `skip`; write `on_error: dead_letter`, or take \
             the section out",
        ),
        (
            &LETTERS.replace("on_error: dead_letter\n", ""),
            "25:1: error: nothing goes to `dead_letter`, for `on_error` is `fail`; write `on_error: dead_letter`, or take \
             the section out",
        ),
        (
            &LETTERS.replace("dead_letter:\n", "dead_leter:\n"),
            "26:1: error: `the definition` has no option `dead_leter`; did you mean `dead_letter`?",
        ),
        (
            &LETTERS.replace("  path: dead\n", ""),
            "26:1: error: the required option `path` is missing from `dead_letter`; expected `path: ...`, a path",
        ),
        (
            &LETTERS.replace("  connector: filesystem\n", ""),
            "26:1: error: the required option `connector` is missing from `dead_letter`; expected the name of a sink: \
             `rocketmq4`, `rocketmq5`, `mq`, `cmq`, `filesystem`, `print`, `blackhole`",
        ),
        (
            &LETTERS.replace("filesystem", "mns"),
            "27:14: error: `mns` can only be a source, not a sink; expected the name of a sink: \
             `rocketmq4`, `rocketmq5`, `mq`, `cmq`, `filesystem`, `print`, `blackhole`",
        ),
        (
            &format!("{LETTERS}  schema: {{ a: INT }}\n"),
            "30:3: error: `dead_letter` has no option `schema`; the columns of dead letters are always the same",
        ),
        (
            &format!("{LETTERS}  on_error: skip\n"),
            "30:3: error: `dead_letter` has no option `on_error`; `on_error` stands at the top of the file, beside \
             `dead_letter`",
        ),
        (
            "on_error: dead_letter\ndead_letter: out\n",
            "26:14: error: `dead_letter` holds a single value; expected a mapping of options",
        ),
    ] {
        assert_eq!(told(&with(letters)), [expected], "{letters}");
    }
}

#[test]
fn dead_letters_and_rows_have_each_a_folder_that_nobody_else_has() {
    let dir = tempfile::tempdir().unwrap();
    let load = |texts: &[String]| {
        let files = ('a'..).zip(texts).map(|(letter, text)| {
            let file = dir.path().join(format!("{letter}.yaml"));
            fs::write(&file, text).unwrap();
            file
        });
        connectors::load(&files.collect::<Vec<_>>(), &environment())
    };
    let told = |texts: &[String]| {
        let prefix = format!("{}/", dir.path().display());
        load(texts).iter().map(|one| one.read.report.render(Style::Line).replace(&prefix, "")).collect::<Vec<_>>()
    };
    let define = |name: &str, out: &str, letters: &str| {
        with(LETTERS)
            .replace("name: oss-created", &format!("name: {name}"))
            .replace("oss-events", name)
            .replace("path: out", &format!("path: {out}"))
            .replace("path: dead", &format!("path: {letters}"))
    };
    for (letters, what) in [
        ("rows", "to the same folder as the rows"),
        ("./rows/", "to the same folder as the rows"),
        ("rows/dead", "to a folder inside that of the rows"),
        ("x/../rows/dead", "to a folder inside that of the rows"),
        (".", "to a folder that holds that of the rows"),
    ] {
        let expected = format!("a.yaml:28:9: error: the dead letters go {what}; each needs a folder of its own\n");
        assert_eq!(told(&[define("a", "rows", letters)]), [expected]);
    }
    let parquet = define("a", "rows", "dead").replace("path: dead\n  format: json", "path: dead\n  format: parquet");
    assert_eq!(
        told(&[parquet]),
        ["a.yaml:29:11: error: dead letters in files of `parquet` could not be replayed; expected `format: json`\n"]
    );
    let taken = "another pipeline writes to this folder; it is declared in a.yaml; each needs a folder of its own";
    let texts = [
        define("a", "a", "da"),
        define("b", "b", "da"),
        define("c", "da", "dc"),
        define("d", "d", "a"),
        define("e", "e", "de"),
    ];
    let at = |file: &str, line: u32| format!("{file}.yaml:{line}:9: error: {taken}\n");
    assert_eq!(told(&texts), [String::new(), at("b", 28), at("c", 21), at("d", 28), String::new()]);
    let plan = load(&[define("a", "a", "da")]).remove(0).plan.unwrap();
    let target = plan.dead_letter.unwrap().identity.target;
    assert!(Path::new(&target).is_absolute() && target.ends_with("/da"), "{target}");
}

#[test]
fn a_rate_belongs_to_a_source_of_messages() {
    let definition = load(&EXAMPLE.replace("  batchSize: 16\n", "  batchSize: 16\n  rate: 500 / s\n"));
    let definition = definition.definition.expect("it is valid");
    assert!(definition.to_yaml().contains("rate: 500/s"), "{}", definition.to_yaml());
    for (place, rate, expected) in [
        (
            "  batchSize: 16\n",
            "500",
            "12:9: error: `rate` is `500`; expected a rate such as `500/s`, `30000/min` or `1/h`",
        ),
        (
            "  batchSize: 16\n",
            "1/d",
            "12:9: error: `rate` is `1/d`; expected a rate such as `500/s`, `30000/min` or `1/h`",
        ),
        ("  path: out\n", "1/s", "22:3: error: `sink` has no option `rate`; `rate` stands inside `source:`"),
    ] {
        assert_eq!(told_with(place, &format!("{place}  rate: {rate}\n")), [expected]);
    }
    let top = told(&format!("{EXAMPLE}rate: 1/s\n"));
    assert_eq!(top, ["26:1: error: `the definition` has no option `rate`; `rate` stands inside `source:`"]);
    let made_up =
        "name: a\nsource:\n  connector: datagen\n  rate: 1/s\n  schema: { a: INT }\nsink: { connector: print }\n";
    assert_eq!(
        told(made_up),
        [
            "4:9: error: `rate` counts messages, and `datagen` makes rows in stretches of many; `rows-per-second` says how many rows there are"
        ]
    );
}
