//! `queuewarden init`: a definition to begin with, with everything that may be said in it. Asks nothing.

mod template;

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;

use super::{Exit, failed, told::hand_over};
use crate::{
    connectors::REGISTRY,
    definition::{ConnectorTables, FormatTables, FormatUse, Role, RoleTables},
    model::nearest,
};

/// What stands for a source where only a sink is asked for.
const ANY_SOURCE: &str = "datagen";
/// What stands for a sink where only a source is asked for.
const ANY_SINK: &str = "print";

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The connector to read from, or one to write to
    connector: String,
    /// The connector to write to [default: print]
    #[arg(long, value_name = "SINK")]
    to: Option<String>,
    /// The format of the source, and of the sink where it can be [default: the first that the connector has]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Where to write it; never over a file that is there [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// One end of the pipeline.
#[derive(Debug, Clone, Copy)]
struct End {
    role: Role,
    name: &'static str,
    tables: &'static RoleTables,
    format: Option<&'static FormatTables>,
}

/// Why there is nothing to write, and how that ends.
#[derive(Debug, PartialEq, Eq)]
struct Refused(Exit, String);

/// Writes it.
pub fn run(args: &InitArgs) -> Exit {
    let (source, sink) = match ends(&args.connector, args.to.as_deref(), args.format.as_deref()) {
        Ok(ends) => ends,
        Err(Refused(exit, why)) => {
            tell!("error: {why}");
            return exit;
        }
    };
    let text = template::definition(source, sink);
    let Some(file) = &args.output else {
        return hand_over(&text);
    };
    let written = File::create_new(file).and_then(|mut created| created.write_all(text.as_bytes()));
    match written {
        Ok(()) => Exit::Done,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            tell!("error: {} is there already, and is never written over", file.display());
            Exit::Refused
        }
        Err(error) => failed(&format!("{} cannot be written", file.display()), &error),
    }
}

fn ends(connector: &str, to: Option<&str>, format: Option<&str>) -> Result<(End, End), Refused> {
    let connector = find(connector, None)?;
    let (source, sink) = match (&connector.source, to) {
        (Some(_), to) => (connector, find(to.unwrap_or(ANY_SINK), Some(Role::Sink))?),
        (None, None) => (find(ANY_SOURCE, Some(Role::Source))?, connector),
        (None, Some(_)) => {
            let name = connector.name;
            let why = format!("`{name}` can only be written to: name a source, and give `--to {name}`");
            return Err(Refused(Exit::Usage, why));
        }
    };
    let (source, sink) = (tables(Role::Source, source)?, tables(Role::Sink, sink)?);
    let wanted = match format {
        Some(name) => Some(format_of(name, source, sink)?),
        None => None,
    };
    let with_format = |end: End| End { format: chosen(end.tables, wanted), ..end };
    let source = with_format(source);
    // A sink writes what is read, where it can.
    let wanted = wanted.or(source.format.map(|format| format.name));
    Ok((source, End { format: chosen(sink.tables, wanted), ..sink }))
}

fn tables(role: Role, connector: &'static ConnectorTables) -> Result<End, Refused> {
    let tables = role
        .of(connector)
        .ok_or_else(|| Refused(Exit::Usage, format!("`{}` cannot be a {}", connector.name, role.name())))?;
    Ok(End { role, name: connector.name, tables, format: None })
}

/// `role`: what it must be; `None`: either.
fn find(name: &str, role: Option<Role>) -> Result<&'static ConnectorTables, Refused> {
    let usable = |connector: &&&'static ConnectorTables| role.is_none_or(|role| role.of(connector).is_some());
    let names: Vec<_> = REGISTRY.connectors.iter().filter(usable).map(|connector| connector.name).collect();
    let what = role.map_or("connector", Role::name);
    if let Some(connector) = REGISTRY.connector(name) {
        return match names.contains(&connector.name) {
            true => Ok(connector),
            false => {
                Err(Refused(Exit::Usage, format!("`{name}` cannot be a {what}; expected one of {}", list(&names))))
            }
        };
    }
    Err(Refused(Exit::NoInput, unknown(what, name, &names)))
}

fn format_of(name: &str, source: End, sink: End) -> Result<&'static str, Refused> {
    let Some(format) = REGISTRY.format(name) else {
        let names: Vec<_> = REGISTRY.formats.iter().map(|format| format.name).collect();
        return Err(Refused(Exit::NoInput, unknown("format", name, &names)));
    };
    let takes = |end: End| end.tables.format.choices().contains(&format.name);
    // The source decides; a sink without this format keeps one of its own.
    let has_format = |end: End| end.tables.format != FormatUse::Never;
    let deciding = if has_format(source) { source } else { sink };
    if takes(deciding) {
        return Ok(format.name);
    }
    let why = match deciding.tables.format.choices() {
        [] => format!("neither `{}` nor `{}` has a format", source.name, sink.name),
        choices => {
            format!("`{}` does not go with the format `{name}`; expected one of {}", deciding.name, list(choices))
        }
    };
    Err(Refused(Exit::Usage, why))
}

/// The format wanted where the connector has it, else its first.
fn chosen(tables: &RoleTables, wanted: Option<&str>) -> Option<&'static FormatTables> {
    let choices = tables.format.choices();
    let name = choices.iter().find(|choice| Some(**choice) == wanted).or(choices.first())?;
    REGISTRY.format(name)
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn unknown(what: &str, name: &str, names: &[&'static str]) -> String {
    let name = name.escape_debug();
    match nearest(&name.to_string(), names.iter().copied()) {
        Some(near) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!("there is no {what} `{name}`; expected one of {}", list(names)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{
        connectors::resolve,
        definition::{Environment, OptionTable, Style, load_text, sections},
    };

    /// What is wrong with a definition once every variable is set, warnings too; empty: nothing.
    fn wrong(text: &str) -> String {
        // As the id of a key of CMQ begins.
        let environment = Environment::new(|_| Some("AKIDvalue".into()), None);
        let mut loaded = load_text(Path::new("begin.yaml"), text, &REGISTRY, &environment);
        if let Some(Err(diagnostic)) = loaded.definition.as_ref().map(resolve) {
            loaded.add([*diagnostic]);
        }
        loaded.report.render(Style::Line)
    }

    /// The tables of everything there is; options of columns are not in them, for those need a column's name.
    fn tables() -> impl Iterator<Item = &'static OptionTable> {
        let roles = |connector: &&'static ConnectorTables| [connector.source.as_ref(), connector.sink.as_ref()];
        let of_connectors = REGISTRY.connectors.iter().flat_map(roles).flatten().map(|role| role.options);
        let of_formats = REGISTRY.formats.iter().map(|format| format.options);
        of_connectors.chain(of_formats).chain([&sections::SOURCE])
    }

    /// Every definition that can be asked for.
    fn all() -> Vec<(String, String)> {
        let mut all = Vec::new();
        let formats: Vec<_> = REGISTRY.formats.iter().map(|format| Some(format.name)).chain([None]).collect();
        let sinks = REGISTRY.connectors.iter().filter(|connector| connector.sink.is_some()).map(|sink| Some(sink.name));
        let sinks: Vec<_> = sinks.chain([None]).collect();
        for connector in REGISTRY.connectors {
            for (sink, format) in sinks.iter().flat_map(|sink| formats.iter().map(move |format| (*sink, *format))) {
                if let Ok((source, to)) = ends(connector.name, sink, format) {
                    let asked = format!("{} to {sink:?} as {format:?}", connector.name);
                    all.push((asked, template::definition(source, to)));
                }
            }
        }
        all
    }

    #[test]
    fn what_it_writes_is_valid_once_the_variables_are_set_for_every_connector_sink_and_format() {
        let all = all();
        for connector in REGISTRY.connectors {
            assert!(all.iter().any(|(asked, _)| asked.starts_with(connector.name)), "{}", connector.name);
        }
        for (asked, text) in all {
            assert_eq!(wrong(&text), "", "{asked}:\n{text}");
        }
    }

    #[test]
    fn every_optional_line_is_valid_when_its_comment_sign_is_taken_away() {
        for (asked, text) in all() {
            let lines: Vec<&str> = text.lines().collect();
            let optional = lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.strip_prefix("  # ")?)));
            let keys = optional.filter(|(_, line)| {
                line.split_once(": ").is_some_and(|(key, _)| tables().any(|table| table.find(key).is_some()))
            });
            for (at, line) in keys {
                let mut with: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
                with[at] = format!("  {line}");
                let mut told = wrong(&with.join("\n"));
                // An option that goes with another one says which.
                if let Some((other, _)) = told.split_once(" needs `").and_then(|(_, rest)| rest.split_once('`')) {
                    // In the section of the first one, source or sink.
                    let places = || (0..lines.len()).filter(|at| lines[*at].starts_with(&format!("  # {other}: ")));
                    let other = places().min_by_key(|other| at.abs_diff(*other)).unwrap();
                    with[other] = format!("  {}", &lines[other][4..]);
                    told = wrong(&with.join("\n"));
                }
                // One table may be for both sides, as on the page of the Flink connector.
                let is_of_the_other_side = told.contains(": warning: ") && told.contains(" has no effect on a s");
                assert!(told.is_empty() || is_of_the_other_side, "{asked}: {line}: {told}");
            }
        }
    }

    #[test]
    fn the_section_for_dead_letters_is_valid_when_its_comment_signs_are_taken_away() {
        for (asked, text) in all() {
            let (before, letters) = text.split_once("# dead_letter:\n").unwrap();
            let uncommented = |line: &str| line.strip_prefix("#   ").map(|rest| format!("  {rest}\n"));
            let letters: String = letters.lines().map_while(uncommented).collect();
            let before = before.replace("# on_error: fail\n", "on_error: dead_letter\n");
            assert_eq!(wrong(&format!("{before}dead_letter:\n{letters}")), "", "{asked}");
        }
    }

    #[test]
    fn what_is_not_there_or_does_not_go_together_is_told() {
        let told = |connector, to, format| ends(connector, to, format).map(|_| ()).unwrap_err();
        let missing = |why: &str| Refused(Exit::NoInput, why.to_owned());
        assert_eq!(told("msn", None, None), missing("there is no connector `msn`; did you mean `mns`?"));
        assert_eq!(told("mns", Some("prin"), None), missing("there is no sink `prin`; did you mean `print`?"));
        assert_eq!(told("mns", None, Some("jsn")), missing("there is no format `jsn`; did you mean `json`?"));
        assert_eq!(told("print", Some("print"), None).0, Exit::Usage);
        assert!(told("mns", Some("datagen"), None).1.starts_with("`datagen` cannot be a sink; expected one of"));
        let none = "neither `datagen` nor `print` has a format";
        assert_eq!(told("datagen", None, Some("json")), Refused(Exit::Usage, none.to_owned()));
    }
}
