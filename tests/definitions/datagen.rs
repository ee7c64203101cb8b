//! What can be wrong with the options of `datagen` that only its columns tell.

use super::{load, told};

fn definition(schema: &str, options: &[&str]) -> String {
    let options: String = options.iter().map(|option| format!("  {option}\n")).collect();
    format!("source:\n  connector: datagen\n{options}  schema: {{ {schema} }}\nsink: {{ connector: blackhole }}\n")
}

/// The one thing told of a source whose options begin in line 3.
fn only(schema: &str, options: &[&str]) -> String {
    let told = told(&definition(schema, options));
    assert_eq!(told.len(), 1, "{told:#?}");
    told[0].clone()
}

#[test]
fn a_whole_definition_is_accepted_and_shown_again_as_it_is() {
    let text = definition(
        "id: BIGINT NOT NULL, who: 'ROW<name STRING, tags ARRAY<STRING>>', a.b: INT",
        &[
            "rows-per-second: 5",
            "fields.id.kind: sequence",
            "fields.id.start: 1",
            "fields.id.end: 1e3",
            "fields.who.name.length: 8",
            "fields.who.tags.element.null-rate: 0.25",
            "fields.a.b.max: -1",
        ],
    );
    let shown = load(&text).definition.unwrap().to_yaml();
    for line in
        ["seed: '0'", "fields.id.end: '1000'", "fields.who.tags.element.null-rate: '0.25'", "fields.a.b.max: '-1'"]
    {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert_eq!(load(&shown).definition.unwrap().to_yaml(), shown);
}

#[test]
fn an_unknown_column_or_option_is_told_with_the_nearest_one() {
    let schema = "amount: INT, who: 'ROW<name STRING>'";
    for (option, expected) in [
        ("fields.amuont.min: 1", "there is no column `amuont`; did you mean `fields.amount.min`?"),
        ("fields.amount.mni: 1", "a column has no `mni`; did you mean `fields.amount.min`?"),
        ("fields.who.nmae.length: 1", "there is no column `who.nmae`; did you mean `fields.who.name.length`?"),
        ("fields.colour.min: 1", "there is no column `colour`; expected one of `amount`, `who`, `who.name`"),
        ("fields.amount.colour: 1", "a column has no `colour`; expected one of `kind`, `min`, `max`, "),
        ("fields.amount: 1", "`fields.amount` names no option of a column; expected `fields.COLUMN.OPTION`"),
        ("fields.min: 1", "`fields.min` names no option of a column; expected `fields.COLUMN.OPTION`"),
        ("field.amount.min: 1", "did you mean `fields.amount.min`?"),
        ("fields: { amount: { min: 1 } }", "options with a dot are written out: `fields.amount.min: ...`"),
        ("colour: 1", "`seed`, `base-time-ms`, `rate`, `fields.COLUMN.OPTION`"),
    ] {
        let told = only(schema, &[option]);
        assert!(told.starts_with("3:3: error: ") && told.contains(expected), "{option}\n{told}");
    }
}

#[test]
fn an_option_that_does_not_go_with_the_column_is_told_at_its_value() {
    let schema = "n: TINYINT, t: 'VARCHAR(3) NOT NULL', c: CHAR(3), f: FLOAT, d: 'DECIMAL(4, 2)', o: BOOLEAN, \
                  b: BINARY(4), m: 'MAP<STRING, INT>', s: STRING";
    for (option, expected) in [
        (
            "fields.t.min: 1",
            "`fields.t.min` does not go with VARCHAR(3); expected `kind`, `null-rate`, `length`, `var-len` for `t`",
        ),
        (
            "fields.n.length: 1",
            "`fields.n.length` does not go with TINYINT; expected `kind`, `null-rate`, `min`, `max` for `n`",
        ),
        ("fields.c.length: 1", "`fields.c.length` does not go with CHAR(3); expected `kind`, `null-rate` for `c`"),
        ("fields.s.max-past: 1s", "`fields.s.max-past` does not go with STRING"),
        ("fields.m.key.null-rate: 0.5", "`fields.m.key.null-rate` does not go with a key of STRING"),
        ("fields.m.value.kind: sequence", "`fields.m.value.kind` does not go with a value of INT"),
        ("fields.n.max: 128", "`fields.n.max` does not fit TINYINT; expected an integer from -128 to 127"),
        ("fields.n.min: 1.5", "`fields.n.min` does not fit TINYINT; expected an integer from -128 to 127"),
        ("fields.f.max: 1e39", "`fields.f.max` does not fit FLOAT; expected a number from -3.4"),
        (
            "fields.d.max: 100",
            "`fields.d.max` does not fit DECIMAL(4, 2); expected at most 2 digits before the point and 2 after it",
        ),
        ("fields.d.max: 0.001", "`fields.d.max` does not fit DECIMAL(4, 2)"),
        ("fields.t.length: 4", "`fields.t.length` is more than VARCHAR(3) holds; expected an integer from 0 to 3"),
        ("fields.t.null-rate: 0.1", "`fields.t.null-rate` asks for nulls, but `t` is NOT NULL"),
        ("fields.f.max: -1", "`fields.f.max` is less than 0, which `fields.f.min` is if it is not given"),
        ("fields.o.kind: sequence", "`o` is BOOLEAN, which cannot be a sequence; expected `random`"),
        ("fields.b.kind: sequence", "`b` is BINARY(4), which cannot be a sequence; expected `random`"),
        (
            "fields.n.start: 1",
            "`fields.n.start` is for a sequence, and `n` is none; expected `fields.n.kind: sequence` with it",
        ),
    ] {
        let told = only(schema, &[option]);
        let column = option.find(": ").unwrap() + 5;
        assert!(told.starts_with(&format!("3:{column}: error: ")) && told.contains(expected), "{option}\n{told}");
    }
}

#[test]
fn options_of_one_column_that_contradict_each_other_are_told() {
    let sequence = "fields.n.kind: sequence";
    let cases: [(&[&str], &str); 8] = [
        (&["fields.n.min: 2", "fields.n.max: 1"], "4:17: error: `fields.n.max` is less than `fields.n.min`"),
        (&[sequence, "fields.n.start: 1"], "3:18: error: `fields.n.kind: sequence` needs `fields.n.end`"),
        (&[sequence, "fields.n.end: 1"], "3:18: error: `fields.n.kind: sequence` needs `fields.n.start`"),
        (
            &[sequence, "fields.n.start: 2", "fields.n.end: 1"],
            "5:17: error: `fields.n.end` is less than `fields.n.start`",
        ),
        (
            &[sequence, "fields.n.start: 1", "fields.n.end: 40000"],
            "5:17: error: `fields.n.end` does not fit SMALLINT; expected an integer from -32768 to 32767",
        ),
        (
            &[sequence, "fields.n.start: 1", "fields.n.end: 9", "fields.n.max: 9"],
            "6:17: error: `fields.n.max` does not go with a sequence of SMALLINT; expected `kind`, `start`, `end` for `n`",
        ),
        (
            &[sequence, "fields.n.start: 1", "fields.n.end: 9", "fields.n.null-rate: 0"],
            "6:23: error: `fields.n.null-rate` does not go with a sequence of SMALLINT",
        ),
        (&["fields.n.kind: sequnce"], "3:18: error: `fields.n.kind` is `sequnce`; expected `random` or `sequence`"),
    ];
    for (options, expected) in cases {
        let told = only("n: SMALLINT", options);
        assert!(told.starts_with(expected), "{options:?}\n{told}");
    }
}

#[test]
fn what_a_source_of_made_up_rows_cannot_have_is_told() {
    assert!(only("a: INT", &["format: json"]).contains("`datagen` has no format; take the key `format` out"));
    assert!(only("a: INT, b: STRING METADATA", &[]).contains("`datagen`"));
    assert!(
        only("a: 'MAP<INT, INT>'", &[]).contains("a MAP with keys of INT cannot be generated; expected keys of STRING")
    );
    let large = only("a: STRING, b: 'ARRAY<STRING>'", &["fields.a.length: 1000000", "fields.b.length: 100000"]);
    assert!(
        large.contains("a row may take 11400") && large.contains("expected rows of at most 4194304 bytes"),
        "{large}"
    );
}
