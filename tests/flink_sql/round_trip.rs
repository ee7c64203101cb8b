//! What goes out comes in again as the same.

use std::fmt::Write as _;

use queuewarden::{
    connectors::REGISTRY,
    definition::{ConnectorTables, PipelineDefinition},
    flink_sql::export,
    model::Schema,
};
use serde_yaml::Value;

use crate::{examples, imported, loaded, scripts};

/// Everything of a definition that a script can say. What it cannot is not there, or as if it had not been given.
#[derive(Debug, PartialEq)]
struct Said {
    rest: Value,
    source: Schema,
    sink: Schema,
}

/// Whether only this program has the option.
fn is_ours(key: &str) -> bool {
    let roles = |connector: &&'static ConnectorTables| [connector.source.as_ref(), connector.sink.as_ref()];
    let of_connectors = REGISTRY.connectors.iter().flat_map(roles).flatten().map(|role| role.options);
    let tables = of_connectors.chain(REGISTRY.formats.iter().map(|format| format.options));
    key == "rate" || tables.filter_map(|table| table.find(key)).any(|spec| spec.ours)
}

fn said(definition: &PipelineDefinition) -> Said {
    let mut rest: Value = serde_yaml::from_str(&definition.to_yaml()).unwrap();
    let whole = rest.as_mapping_mut().unwrap();
    for key in ["on_error", "dead_letter", "batch", "credits"] {
        whole.remove(key);
    }
    let checkpoint = whole.get_mut("checkpoint").unwrap().as_mapping_mut().unwrap();
    checkpoint.remove("max_unacknowledged");
    // A script says no range of waits.
    whole.get_mut("restart").unwrap().as_mapping_mut().unwrap().remove("backoff");
    for section in ["source", "sink"] {
        let section = whole.get_mut(section).unwrap().as_mapping_mut().unwrap();
        section.retain(|key, _| !is_ours(key.as_str().unwrap()));
        // Compared below, whether it was written down or not.
        section.remove("schema");
    }
    // Comments stay in scripts, and do not come back.
    if let Some(query) = whole_query(&mut rest) {
        *query = COMMENTS.iter().fold(query.clone(), |text, comment| text.replace(comment, ""));
        // Names come back in backticks, and a text with an escape, where Flink needs them.
        *query = WORDS.iter().fold(query.clone(), |text, word| text.replace(&format!("`{word}`"), word));
        *query = query.replace(r"U&'\0024{A}-$$'", "'$${A}-$$'");
    }
    Said { rest, source: definition.source.schema.clone(), sink: definition.sink.schema.clone() }
}

/// Words of SQL that are names in generated queries.
const WORDS: [&str; 4] = ["day", "timestamp", "value", "year"];

const COMMENTS: [&str; 2] = [" -- a comment", " /* another */"];

fn whole_query(definition: &mut Value) -> Option<&mut String> {
    match definition.get_mut("query") {
        Some(Value::String(query)) => Some(query),
        _ => None,
    }
}

fn comes_back(name: &str, text: &str) {
    let definition = loaded(text);
    let script = export(&definition, text);
    let again = imported(name, &script);
    assert_eq!(said(&loaded(&again)), said(&definition), "{name}:\n{text}\n{script}\n{again}");
    // The second time nothing is left to be lost.
    let second = export(&loaded(&again), &again);
    let but_its_first_line = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(but_its_first_line(&imported(name, &second)), but_its_first_line(&again), "{second}");
}

#[test]
fn every_example_and_every_script_of_the_pages_comes_back_as_it_went_out() {
    for (name, text) in examples() {
        // Without a name of its own it has that of its file.
        let named = if text.contains("\nname: ") { text } else { format!("name: {name}\n{text}") };
        comes_back(&name, &named);
    }
    for (name, script) in scripts() {
        comes_back(&name, &imported(&name, &script));
    }
}

#[test]
fn every_generated_definition_comes_back_as_it_went_out() {
    for seed in 0..400 {
        comes_back("generated", &definition(seed));
    }
}

/// A text as YAML writes it, whatever is in it.
fn yaml(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Texts that mean something in YAML, in SQL or to who substitutes.
const TEXTS: [&str; 25] = [
    "plain",
    "it's",
    "a\"b",
    "a`b",
    "5$",
    "$$${A}",
    "$${A}",
    "$${A}-${A}",
    "\\$${A}${A}'",
    "a\u{2028}b",
    "${A}",
    "${A}-${B:-c}",
    "${secret_values.x}",
    "a\\tb",
    "a: b",
    "# a",
    "null",
    "007",
    "1e3",
    "true",
    "a\nb",
    "\u{6d88}\u{606f}",
    "-- a",
    "/* a */",
    "\u{2014} a",
];

/// Names of columns, likewise.
const NAMES: [&str; 14] = [
    "id",
    "ID",
    "timestamp",
    "a b",
    "a`b",
    "it's",
    "\u{5217}",
    "a.b",
    "select",
    "null",
    "a: b",
    "$a",
    "007",
    "event-time",
];

fn ty(random: &mut fastrand::Rng, depth: u32) -> String {
    let plain = [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(12, 3)",
        "CHAR(4)",
        "VARCHAR(20)",
        "STRING",
        "BYTES",
        "DATE",
        "TIME",
        "TIMESTAMP(3)",
        "TIMESTAMP(9)",
        "TIMESTAMP_LTZ(3)",
    ];
    let base = match random.u32(0..if depth < 2 { 20 } else { 16 }) {
        17 => format!("ARRAY<{}>", ty(random, depth + 1)),
        18 => format!("MAP<STRING, {}>", ty(random, depth + 1)),
        19 => format!(
            "ROW<`a b` {}, c {}, `value` STRING, `timestamp` INT>",
            ty(random, depth + 1),
            ty(random, depth + 1)
        ),
        _ => random.choice(plain).unwrap().to_owned(),
    };
    if random.u32(0..5) == 0 { format!("{base} NOT NULL") } else { base }
}

/// A definition that uses what a definition may say. The same for the same seed.
pub fn definition(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let text = |random: &mut fastrand::Rng| yaml(random.choice(TEXTS).unwrap());
    let mut names = NAMES.to_vec();
    random.shuffle(&mut names);
    let columns: Vec<(String, String)> =
        names.iter().take(random.usize(1..5)).map(|name| ((*name).to_owned(), ty(&mut random, 0))).collect();
    let mut all = format!("name: generated-{seed}\nsource:\n");
    let keyed = match random.u32(0..3) {
        0 => {
            let (queue, id, secret) = (text(&mut random), text(&mut random), text(&mut random));
            write!(all, "  connector: mns\n  endpoint: http://h\n  region: r\n  queueName: {queue}\n  accessKeyId: {id}\n  accessKeySecret: {secret}\n  format: json\n  json.ignore-parse-errors: {}\n", random.bool()).unwrap();
            if random.bool() {
                all += "  receive.concurrency: 2\n  batchSize: 7\n  rate: 5/s\n";
            }
            false
        }
        1 => {
            let (id, secret) = (text(&mut random).replace("\\n", ""), "${secret_values.x}");
            write!(all, "  connector: cmq\n  hosts: http://h\n  queue: q\n  secret-id: {id}\n  secret-key: {secret}\n  format: json\n  transport: http\n").unwrap();
            true
        }
        _ => {
            write!(all, "  connector: datagen\n  rows-per-second: 3\n  seed: {seed}\n").unwrap();
            false
        }
    };
    let scalar = columns.iter().find(|(_, ty)| !ty.contains('<'));
    if let Some((key, _)) = scalar.filter(|_| keyed && random.bool()) {
        writeln!(all, "  primaryKey: {}", yaml(key)).unwrap();
    }
    all += "  schema:\n";
    for (name, ty) in &columns {
        writeln!(all, "    {}: {}", yaml(name), yaml(ty)).unwrap();
    }
    if random.bool() {
        let list: Vec<_> = columns.iter().map(|(name, _)| format!("`{}`", name.replace('`', "``"))).collect();
        let (first, comment) = (&list[0], random.choice(["", COMMENTS[0], COMMENTS[1]]).unwrap());
        let alias = random.choice(["", " AS source", " s", " AS `s t`", " AS day", " year"]).unwrap();
        // Words that Flink takes for names only in backticks: of a column, of the table and of a field.
        let mut items = list.clone();
        items[0] += random.choice(["", " value", " AS value"]).unwrap();
        let of = alias.split(' ').next_back().filter(|alias| matches!(*alias, "day" | "year" | "s"));
        let mut conditions = vec![format!("{first} IS NOT NULL")];
        conditions.extend(of.map(|alias| format!("{alias}.{first} IS NOT NULL")));
        let rows = columns.iter().zip(&list).filter(|((_, ty), _)| ty.starts_with("ROW"));
        conditions.extend(rows.map(|(_, name)| format!("{name}.value IS NOT NULL AND {name}.timestamp > 1")));
        conditions.extend((random.u32(0..4) == 0).then(|| "'${A}-$' <> 'x'".to_owned()));
        let (items, conditions) = (items.join(", "), conditions.join(" AND "));
        let query = format!("SELECT {items}{comment}\nFROM source{alias}\nWHERE {conditions}{comment}");
        writeln!(all, "query: {}", yaml(&query.replace('$', "$$"))).unwrap();
    }
    all += "sink:\n";
    match random.u32(0..3) {
        0 => writeln!(all, "  connector: print\n  print-identifier: {}", text(&mut random)).unwrap(),
        1 => write!(all, "  connector: filesystem\n  path: out/${{A}}\n  format: json\n").unwrap(),
        _ => all += "  connector: blackhole\n",
    }
    if random.bool() {
        all += "  schema:\n";
        for (number, (_, ty)) in columns.iter().enumerate() {
            writeln!(all, "    {}: {}", yaml(&format!("{}{number}", random.choice(NAMES).unwrap())), yaml(ty)).unwrap();
        }
    }
    if random.bool() {
        writeln!(all, "checkpoint: {{ interval: {}s, timeout: 2min }}", random.u32(1..100)).unwrap();
    }
    match random.u32(0..4) {
        0 => all += "restart: { max: 0 }\n",
        1 => all += "restart: { max: 7, within: 5min, backoff: 3s..3s }\n",
        _ => {}
    }
    if random.u32(0..4) == 0 {
        all += "on_error: skip\nbatch: { rows: 9 }\ncredits: { batches: 3 }\n";
    }
    all
}
