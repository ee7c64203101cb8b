//! Expressions whose results on real Flink are known: `tests/fixtures/flink-cases/sql.json`, which
//! `tests/flink/check_cases.py` runs on Flink. What differs here stands in that file with its reason.

use arrow_array::RecordBatch;
use serde_json::{Value, json};

use super::flink_cases::{groups, options, schema, show};
use crate::{
    model::{ColumnType, RowsBuilder, Schema},
    query::Query,
};

/// The rows of a group, read by the JSON decoder as Flink reads them by its own.
fn rows(schema: &Schema, rows: &Value) -> RecordBatch {
    let mut decoder = super::decoder("json", schema, &options("json", &[])).unwrap();
    let mut builder = RowsBuilder::new(schema);
    for row in rows.as_array().unwrap() {
        decoder.decode(row.to_string().as_bytes(), &mut builder).unwrap();
    }
    builder.finish().unwrap()
}

/// What a query of one column makes of each row; an error is one whatever its words are.
fn made(query: &Query, rows: &RecordBatch) -> Value {
    let selected = query.run(rows).unwrap();
    let mut made = vec![json!("lost"); rows.num_rows()];
    let ty = &query.schema().columns[0].ty.logical;
    for (at, from) in selected.from.iter().enumerate() {
        made[*from] = show(ty, selected.rows.column(0), at);
    }
    for reject in &selected.rejects {
        made[reject.row] = json!({"error": ""});
    }
    made.into()
}

/// The same without the words of errors.
fn without_words(makes: &Value) -> Value {
    let one = |value: &Value| if value.get("error").is_some() { json!({"error": ""}) } else { value.clone() };
    makes.as_array().map_or_else(|| makes.clone(), |all| all.iter().map(one).collect())
}

/// Types by what they say, not by how they are written.
fn same_type(a: &str, b: &str) -> bool {
    a == b || matches!((ColumnType::parse(a), ColumnType::parse(b)), (Ok(a), Ok(b)) if a == b)
}

/// What differs from what the case says.
fn check(case: &Value, schema: &Schema, rows: &RecordBatch) -> Option<String> {
    let sql = case["sql"].as_str().unwrap();
    let here = &case["here"];
    let expected = without_words(here.get("makes").unwrap_or(&case["makes"]));
    let query = match Query::plan(&format!("SELECT {sql} FROM source"), schema) {
        Ok(query) => query,
        Err(errors) => {
            let good = expected == "refused" && errors.iter().all(|error| !error.message.is_empty());
            return (!good).then(|| format!("refused: {errors:?}"));
        }
    };
    let all = made(&query, rows);
    let alone = (0..rows.num_rows()).map(|row| made(&query, &rows.slice(row, 1))[0].clone());
    let alone: Value = alone.collect();
    if all != alone {
        return Some(format!("of all {all}, of each {alone}"));
    }
    let ty = query.schema().columns[0].ty.to_string();
    let wanted = here.get("type").unwrap_or(&case["type"]).as_str().unwrap_or_default();
    let wrong = all != expected || !same_type(&ty, wanted);
    wrong.then(|| format!("{ty} {all}"))
}

/// A difference has a reason, and is one.
fn check_here(case: &Value) -> Option<&'static str> {
    let here = case.get("here")?;
    let differs = |key: &str| here.get(key).is_some_and(|value| value != &case[key]);
    match here["why"].as_str() {
        None | Some("") => Some("a difference without a reason"),
        Some(_) if !differs("makes") && !differs("type") => Some("no difference"),
        Some(_) => None,
    }
}

#[test]
fn expressions_are_what_flink_makes_of_them_but_for_what_is_listed() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for group in groups(include_str!("../../tests/fixtures/flink-cases/sql.json")) {
        let columns: Vec<&str> = group["schema"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        let schema = schema(&columns);
        let rows = rows(&schema, &group["rows"]);
        for case in group["cases"].as_array().unwrap() {
            cases += 1;
            let found = check(case, &schema, &rows).or_else(|| check_here(case).map(str::to_owned));
            wrong.extend(found.map(|found| format!("{}: {case}\n    found {found}", group["name"])));
        }
    }
    assert!(wrong.is_empty(), "{} of {cases}\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases >= 700, "{cases} cases");
}
