//! The `primaryKey` of a source.

use super::{
    check::{Section, quoted},
    diagnostics::{Diagnostic, Report},
    located::{Located, Node, Value},
    registry::{Registry, RoleTables},
    schema::ReadSchema,
};
use crate::model::{LogicalType, nearest};

/// The key that holds it.
pub(super) const PRIMARY_KEY: &str = "primaryKey";

const EXPECTED: &str = "the name of a column, or a list of such names";

/// Reads the columns of the primary key of a source that takes one. Empty if it has none, or one that is wrong.
pub(super) fn read_primary_key(
    section: Section<'_>,
    tables: &RoleTables,
    schema: &ReadSchema,
    report: &mut Report,
) -> Vec<String> {
    let Some(window) = tables.key_window else { return Vec::new() };
    let Some(entry) = section.get(PRIMARY_KEY) else {
        if let Some(given) = section.get(window.name) {
            let message = format!("`{}` needs `{PRIMARY_KEY}`, and has no effect without it", window.name);
            report.push(Diagnostic::warning(message).at(given.key.span));
        }
        return Vec::new();
    };
    let before = report.errors();
    let mut names: Vec<Located<String>> = Vec::new();
    let nodes = match &entry.value.value {
        Value::Sequence(nodes) => nodes.as_slice(),
        Value::Broken => &[],
        _ => std::slice::from_ref(&entry.value),
    };
    if matches!(&entry.value.value, Value::Sequence(nodes) if nodes.is_empty()) {
        let message = format!("`{PRIMARY_KEY}` holds an empty list");
        report.push(Diagnostic::error(message).at(entry.value.span).expected(EXPECTED));
    }
    for node in nodes {
        let Some(name) = read_name(node, report) else { continue };
        if names.iter().any(|other| other.value == name.value) {
            let message = format!("`{PRIMARY_KEY}` names {} twice", quoted(&name.value));
            report.push(Diagnostic::error(message).at(name.span));
            continue;
        }
        check_column(&name, schema, report);
        names.push(name);
    }
    if report.errors() > before { Vec::new() } else { names.into_iter().map(|name| name.value).collect() }
}

fn read_name(node: &Node, report: &mut Report) -> Option<Located<String>> {
    let message = match &node.value {
        Value::Scalar(scalar) if !scalar.secret => {
            report.show(node.span);
            return Some(Located::new(scalar.text.clone(), node.span));
        }
        Value::Scalar(_) => format!("`{PRIMARY_KEY}` holds a secret"),
        // Reported before.
        Value::Broken => return None,
        other => format!("`{PRIMARY_KEY}` holds {}", other.describe()),
    };
    report.push(Diagnostic::error(message).at(node.span).expected(EXPECTED));
    None
}

fn check_column(name: &Located<String>, schema: &ReadSchema, report: &mut Report) {
    let Some(readable) = &schema.readable else { return };
    // Also those whose type could not be read.
    let names = || schema.places.columns.keys().map(String::as_str);
    if !names().any(|known| known == name.value) {
        let list: Vec<_> = readable.columns.iter().map(|column| format!("`{}`", column.name)).collect();
        report.push(
            Diagnostic::error(format!("there is no column {} in the schema", quoted(&name.value)))
                .at(name.span)
                .expected(format!("one of {}", list.join(", ")))
                .nearest(nearest(&name.value, names())),
        );
    }
    let nested = |ty: &LogicalType| matches!(ty, LogicalType::Array(_) | LogicalType::Map(..) | LogicalType::Row(_));
    if let Some(column) = readable.columns.iter().find(|column| column.name == name.value && nested(&column.ty.logical))
    {
        let message = format!("`{}` is {}, which cannot be part of a primary key", column.name, column.ty);
        report.push(Diagnostic::error(message).at(name.span).expected("a column that is not nested"));
    }
}

/// Says of the key where it may stand.
pub(super) fn taken_by(registry: &Registry) -> String {
    let names: Vec<_> = registry.with_primary_key().into_iter().map(|name| format!("`{name}`")).collect();
    format!("a primary key is only for a source that drops rows by it: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::definition::{
        ConnectorTables, Environment, FormatUse, Loaded, OptionKind, OptionSpec, OptionTable, Registry, RoleTables,
        Style, load_text, no_check,
    };

    const ANY: OptionKind = OptionKind::Duration { min: std::time::Duration::ZERO, max: std::time::Duration::MAX };
    static ALIVE: OptionSpec = OptionSpec::new("alive", ANY, "").default("60s");
    static WITH: OptionTable = OptionTable { name: "keyed", options: &[&ALIVE] };
    static NOTHING: OptionTable = OptionTable { name: "nothing", options: &[] };

    const fn role(options: &'static OptionTable, key_window: Option<&'static OptionSpec>) -> RoleTables {
        RoleTables { options, columns: None, format: FormatUse::Never, metadata: &[], key_window, check: no_check }
    }

    static KEYED: ConnectorTables =
        ConnectorTables { name: "keyed", source: Some(role(&WITH, Some(&ALIVE))), sink: Some(role(&NOTHING, None)) };
    static PLAIN: ConnectorTables =
        ConnectorTables { name: "plain", source: Some(role(&NOTHING, None)), sink: Some(role(&NOTHING, None)) };
    static REGISTRY: Registry = Registry { connectors: &[&KEYED, &PLAIN], formats: &[] };

    fn load(text: &str) -> Loaded {
        load_text(Path::new("p.yaml"), text, &REGISTRY, &Environment::new(|_| None, None))
    }

    /// A source that takes a key, and the rest of its section.
    fn keyed(rest: &str) -> Loaded {
        let schema = "{id: BIGINT, shop: STRING, items: ARRAY<INT>}";
        load(&format!("sink: {{connector: plain}}\nsource:\n  connector: keyed\n  schema: {schema}\n{rest}\n"))
    }

    fn told(loaded: &Loaded) -> String {
        loaded.report.render(Style::Line)
    }

    #[test]
    fn a_primary_key_is_one_name_or_a_list_of_names_in_its_own_order() {
        for (written, expected) in [
            ("  primaryKey: id", &["id"][..]),
            ("  primaryKey: [id]", &["id"]),
            ("  primaryKey: [shop, id]", &["shop", "id"]),
            ("  primaryKey:\n    - shop", &["shop"]),
            ("", &[]),
        ] {
            let loaded = keyed(written);
            let definition = loaded.definition.as_ref().unwrap_or_else(|| panic!("{}", told(&loaded)));
            assert_eq!(definition.source.primary_key, expected, "{written}");
            let again = load(&definition.to_yaml()).definition.unwrap();
            assert_eq!(again.source.primary_key, expected, "as it is shown");
        }
    }

    #[test]
    fn the_primary_key_is_part_of_what_a_definition_means() {
        let digest = |rest| keyed(rest).definition.unwrap().digest();
        assert_ne!(digest("  primaryKey: id"), digest("  primaryKey: shop"));
        assert_ne!(digest("  primaryKey: id"), digest(""));
        assert_eq!(digest("  primaryKey: id"), digest("  primaryKey: [id] # the same"));
    }

    #[test]
    fn what_is_no_primary_key_is_told_with_its_place() {
        for (written, expected) in [
            ("[]", "p.yaml:5:15: error: `primaryKey` holds an empty list; expected the name of a column"),
            (
                "[di]",
                "p.yaml:5:16: error: there is no column `di` in the schema; expected one of `id`, `shop`, `items`",
            ),
            ("[id, shup]", "p.yaml:5:20: error: there is no column `shup` in the schema"),
            ("[shop, id, shop]", "p.yaml:5:26: error: `primaryKey` names `shop` twice"),
            ("items", "p.yaml:5:15: error: `items` is ARRAY<INT>, which cannot be part of a primary key"),
            ("[[id]]", "p.yaml:5:16: error: `primaryKey` holds a list; expected the name of a column"),
            ("{id: 1}", "p.yaml:5:15: error: `primaryKey` holds a mapping; expected the name of a column"),
            ("", "p.yaml:5:3: error: `primaryKey` holds nothing; expected the name of a column"),
        ] {
            let loaded = keyed(&format!("  primaryKey: {written}"));
            let told = told(&loaded);
            assert!(told.starts_with(expected), "{written}: {told}");
            assert!(loaded.definition.is_none() && told.lines().count() == 1, "{written}: {told}");
        }
        assert!(told(&keyed("  primaryKey: shup")).contains("did you mean `shop`?"));
    }

    #[test]
    fn a_column_whose_type_is_wrong_is_not_told_a_second_time() {
        let text =
            "sink: {connector: plain}\nsource: {connector: keyed, schema: {id: BIGNIT, a: INT}, primaryKey: id}\n";
        let told = told(&load(text));
        assert!(told.lines().count() == 1 && told.contains("BIGNIT"), "{told}");
    }

    #[test]
    fn whoever_does_not_take_a_primary_key_is_told_who_does() {
        let schema = "schema: {id: BIGINT}";
        let help = "a primary key is only for a source that drops rows by it: `keyed`";
        for (source, sink, section) in [
            (format!("connector: plain, {schema}, primaryKey: id"), "connector: plain".to_owned(), "source"),
            (format!("connector: keyed, {schema}"), "connector: keyed, primaryKey: [id]".to_owned(), "sink"),
        ] {
            let told = told(&load(&format!("source: {{{source}}}\nsink: {{{sink}}}\n")));
            let expected = format!("error: `{section}` has no option `primaryKey`; {help}");
            assert!(told.contains(&expected), "{told}");
        }
        let top = told(&load(&format!(
            "primaryKey: id\nsource: {{connector: keyed, {schema}}}\nsink: {{connector: plain}}\n"
        )));
        assert!(top.contains("`primaryKey` stands inside `source:`"), "{top}");
        let near = told(&keyed("  primarykey: id"));
        assert!(near.contains("did you mean `primaryKey`?"), "{near}");
    }

    #[test]
    fn a_window_without_a_key_is_warned_of() {
        let loaded = keyed("  alive: 5min");
        assert!(loaded.definition.is_some());
        let expected = "p.yaml:5:3: warning: `alive` needs `primaryKey`, and has no effect without it\n";
        assert_eq!(told(&loaded), expected);
        assert_eq!(told(&keyed("  alive: 5min\n  primaryKey: id")), "");
    }
}
