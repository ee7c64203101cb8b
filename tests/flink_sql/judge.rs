//! Real Flink plans what goes out as it plans what came in.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use queuewarden::flink_sql::export;
use serde_json::{Value, json};

use crate::{common::skip, examples, imported, loaded, root, round_trip, scripts};

/// What Flink answers of each script: the plans of its INSERTs, or why it refuses it. `None`: Flink is not here.
fn plans(scripts: &[(String, String)]) -> Option<Vec<Result<Vec<String>, String>>> {
    let flink = root().join("target/flink");
    let classes = flink.join("plans");
    if !classes.join("stamp").exists() {
        skip("Flink's planner is not installed: it needs a JDK; run `python3 tests/flink/check_plans.py --prepare`");
        return None;
    }
    let jars = std::fs::read_dir(&flink).unwrap().map(|entry| entry.unwrap().path().join("deps/lib/*"));
    let path: Vec<PathBuf> = [classes, flink.join("flink-table-planner.jar")]
        .into_iter()
        .chain(jars.filter(|jars| jars.parent().unwrap().is_dir()))
        .collect();
    let path: Vec<_> = path.iter().map(|path| path.display().to_string()).collect();
    let mut command = Command::new("java");
    command.args(["-Xmx1g", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-cp", &path.join(":"), "FlinkPlans"]);
    let mut java =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("java runs");
    let lines: String =
        scripts.iter().map(|(name, script)| json!({"name": name, "script": script}).to_string() + "\n").collect();
    let mut stdin = java.stdin.take().expect("piped");
    let written = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = java.wait_with_output().expect("it ends");
    written.join().unwrap().expect("read");
    let answers: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), scripts.len(), "{}", output.status);
    let answer = |answer: &Value| match answer["plans"].as_array() {
        Some(plans) => Ok(plans.iter().map(|plan| plan.as_str().unwrap().to_owned()).collect()),
        None => Err(answer["error"].as_str().unwrap().to_owned()),
    };
    Some(answers.iter().map(answer).collect())
}

/// A script of a page as Flink's parser takes it: it knows no dashes for comments, and `timestamp` only in backticks.
fn as_flink_takes_it(script: &str) -> String {
    script.replace(['\u{2014}', '\u{2013}'], "--").replace("action, timestamp, payload", "action, `timestamp`, payload")
}

/// A script with something in the place of each reference, as its reader is told to put there.
fn with_values(script: &str) -> String {
    let mut parts = script.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "value" + part.split_once('}').map_or("", |(_, rest)| rest))
}

/// A plan without the names of the tables.
fn nameless(plan: &str, script: &str) -> String {
    let upper = script.to_ascii_uppercase();
    let names = upper.match_indices("TABLE ").filter_map(|(at, word)| {
        let name = script[at + word.len()..].trim_start_matches('`');
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        Some(&name[..end]).filter(|name| !name.is_empty())
    });
    names.fold(plan.to_owned(), |plan, name| {
        plan.replace(&format!("default_database.{name}]"), "SINK]")
            .replace(&format!("default_database, {name}]"), "SOURCE]")
            .replace(&format!("default_database, {name},"), "SOURCE,")
    })
}

#[test]
fn flink_plans_every_script_of_the_pages_and_what_it_comes_out_as_alike() {
    let originals: Vec<_> = scripts().into_iter().map(|(name, script)| (name, as_flink_takes_it(&script))).collect();
    let exported = |(name, script): &(String, String)| {
        let text = imported(name, script);
        (format!("{name}, exported"), export(&loaded(&text), &text))
    };
    let exports: Vec<_> = scripts().iter().map(exported).collect();
    let Some(answers) = plans(&[originals.clone(), exports.clone()].concat()) else { return };
    let (before, after) = answers.split_at(originals.len());
    for ((original, exported), (before, after)) in originals.iter().zip(&exports).zip(before.iter().zip(after)) {
        let plan = |answer: &Result<Vec<String>, String>, (name, script): &(String, String)| {
            let plans = answer.as_ref().unwrap_or_else(|why| panic!("{name}: {why}\n{script}"));
            let [plan] = &plans[..] else { panic!("{name}: {} plans", plans.len()) };
            nameless(plan, script)
        };
        assert_eq!(plan(after, exported), plan(before, original), "{}\n{}", exported.0, exported.1);
        assert!(plan(after, exported).contains("SOURCE"), "the names are gone");
    }
    println!("{} scripts", originals.len());
}

#[test]
fn flink_plans_what_every_example_comes_out_as() {
    let mut exports: Vec<_> =
        examples().into_iter().map(|(name, text)| (name, with_values(&export(&loaded(&text), &text)))).collect();
    // Flink's jars for Parquet are not among those that are fetched.
    exports.retain(|(_, script)| !script.contains("'format' = 'parquet'"));
    let Some(answers) = plans(&exports) else { return };
    for ((name, script), answer) in exports.iter().zip(answers) {
        let plans = answer.unwrap_or_else(|why| panic!("{name}: {why}\n{script}"));
        assert_eq!(plans.len(), 1, "{name}");
    }
}

#[test]
fn flink_plans_what_generated_definitions_come_out_as() {
    let texts: Vec<_> = (0..150).map(round_trip::definition).collect();
    let exports: Vec<_> = texts.iter().map(|text| (text.clone(), with_values(&export(&loaded(text), text)))).collect();
    let Some(answers) = plans(&exports) else { return };
    for ((text, script), answer) in exports.iter().zip(answers) {
        let plans = answer.unwrap_or_else(|why| panic!("{why}\n{text}\n{script}"));
        assert_eq!(plans.len(), 1, "{text}");
    }
}
