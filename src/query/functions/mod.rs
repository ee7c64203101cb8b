//! The functions of Flink SQL that there are here.

mod date_format;
mod digests;
mod json;
mod json_path;
mod known;
mod math;
mod pattern;
mod regexes;
mod strings;
mod times;
mod urls;

use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};

pub(super) use known::beyond_rows;
pub(super) use pattern::{like, similar};
pub(super) use strings::check as check_length;

use super::{
    QueryError,
    call::Kernel,
    cast,
    lower::{Planned, Term, access},
    types::{Family, Kind, Type, is_integer},
};
use crate::model::{LogicalType, nearest};

/// A function by its name.
pub(super) struct Function {
    name: &'static str,
    /// How many arguments it takes.
    counts: RangeInclusive<usize>,
    build: fn(Given<'_>) -> Planned,
}

const fn function(name: &'static str, counts: RangeInclusive<usize>, build: fn(Given<'_>) -> Planned) -> Function {
    Function { name, counts, build }
}

/// Functions that stand in no group.
const OTHERS: &[Function] = &[
    function("CARDINALITY", 1..=1, |given| {
        let at = given.at.clone();
        access::cardinality(given.only()?, at)
    }),
    function("ELEMENT", 1..=1, |given| {
        let at = given.at.clone();
        access::only(given.only()?, at)
    }),
    function("ARRAY_CONTAINS", 2..=2, |given| {
        let at = given.at.clone();
        let (array, value) = given.two()?;
        access::contains(array, value, at)
    }),
];

/// Those that are planned where their arguments are, with how many they take: they choose one of them, or take a unit.
const CHOICES: [(&str, RangeInclusive<usize>); 8] = [
    ("COALESCE", 1..=usize::MAX),
    ("IFNULL", 2..=2),
    ("NULLIF", 2..=2),
    ("IF", 3..=3),
    ("GREATEST", 1..=usize::MAX),
    ("LEAST", 1..=usize::MAX),
    ("TIMESTAMPADD", 3..=3),
    ("TIMESTAMPDIFF", 3..=3),
];

fn all() -> impl Iterator<Item = &'static Function> {
    [
        OTHERS,
        strings::FUNCTIONS,
        regexes::FUNCTIONS,
        digests::FUNCTIONS,
        urls::FUNCTIONS,
        math::FUNCTIONS,
        times::FUNCTIONS,
        json::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// A call as it is written.
pub(super) struct Given<'a> {
    /// The name, in capitals.
    pub(super) name: &'a str,
    pub(super) args: Vec<Term>,
    /// Where it stands.
    pub(super) at: Range<usize>,
}

/// Plans a call.
pub(super) fn build(given: Given<'_>) -> Planned {
    if let Some((_, counts)) = CHOICES.iter().find(|(name, _)| *name == given.name) {
        return Err(miscounted(given.name, given.args.len(), counts, given.at));
    }
    match all().find(|function| function.name == given.name) {
        Some(function) if function.counts.contains(&given.args.len()) => (function.build)(given),
        Some(function) => Err(miscounted(given.name, given.args.len(), &function.counts, given.at)),
        None => Err(unknown(given.name, given.at)),
    }
}

/// Whether there is a function by this name, in capitals, that takes so many arguments.
///
/// # Errors
/// There is none.
pub(super) fn check_call(name: &str, count: usize, at: &Range<usize>) -> Result<(), QueryError> {
    let plain = all().map(|function| (function.name, &function.counts));
    let mut known = plain.chain(CHOICES.iter().map(|(name, counts)| (*name, counts)));
    match known.find(|(known, _)| *known == name) {
        Some((_, counts)) if counts.contains(&count) => Ok(()),
        Some((_, counts)) => Err(miscounted(name, count, counts, at.clone())),
        None => Err(unknown(name, at.clone())),
    }
}

fn miscounted(name: &str, given: usize, counts: &RangeInclusive<usize>, at: Range<usize>) -> QueryError {
    let count = match (*counts.start(), *counts.end()) {
        (least, most) if least == most => format!("{least}"),
        (least, usize::MAX) => format!("at least {least}"),
        (least, most) => format!("{least} to {most}"),
    };
    let arguments = if given == 1 { "argument" } else { "arguments" };
    QueryError::new(at, format!("{name} is given {given} {arguments}")).expected(format!("{count} of them"))
}

fn unknown(name: &str, at: Range<usize>) -> QueryError {
    let names = || {
        all()
            .map(|function| function.name)
            .chain(CHOICES.iter().map(|(name, _)| *name))
            .filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()) && !name.contains(' '))
    };
    if known::is_of_flink(name) {
        return QueryError::new(at, format!("Flink's function {name} is not supported here"));
    }
    let near = known::called_otherwise(name).or_else(|| nearest(name, names()));
    QueryError::new(at, format!("there is no function {name}")).nearest(near)
}

/// What an argument must be.
#[derive(Debug, Clone, Copy)]
enum Param {
    /// CHAR, VARCHAR, STRING
    Text,
    /// An integer of any width
    Long,
    /// Any number, as DOUBLE
    Double,
    /// BINARY, VARBINARY, BYTES
    Bytes,
}

impl Given<'_> {
    /// The only argument.
    fn only(self) -> Planned {
        let error = QueryError::new(self.at, "an argument is missing");
        self.args.into_iter().next().ok_or(error)
    }

    /// The only two arguments.
    fn two(self) -> Result<(Term, Term), QueryError> {
        let error = QueryError::new(self.at, "an argument is missing");
        let mut args = self.args.into_iter();
        args.next().zip(args.next()).ok_or(error)
    }

    /// An argument to look at.
    fn arg(&self, index: usize) -> Option<&Term> {
        self.args.get(index)
    }

    /// The family of an argument.
    fn family(&self, index: usize) -> Option<Family> {
        self.arg(index).and_then(Term::family)
    }

    /// The same with arguments of these kinds; the last one stands for all that follow.
    fn with(mut self, params: &[Param]) -> Result<Self, QueryError> {
        let mut args = Vec::with_capacity(self.args.len());
        for (index, arg) in std::mem::take(&mut self.args).into_iter().enumerate() {
            let param = params.get(index).or(params.last());
            args.push(match param {
                Some(param) => fit(arg, *param, self.name)?,
                None => arg,
            });
        }
        Ok(Self { args, ..self })
    }

    fn nullable(&self) -> bool {
        self.args.iter().any(|arg| arg.ty.nullable)
    }

    /// A call that is null where an argument is.
    fn strict(self, logical: LogicalType, kernel: Kernel) -> Term {
        let ty = Type::new(logical, self.nullable());
        Term::strict(self.name.to_owned(), self.args, ty, self.at, kernel)
    }

    /// The same where Flink says that it may be null though no argument is.
    fn strict_nullable(self, logical: LogicalType, kernel: Kernel) -> Term {
        self.strict(logical, kernel).with_nullable(true)
    }
}

/// An argument as a function takes it.
fn fit(arg: Term, param: Param, name: &str) -> Planned {
    let wanted = match param {
        Param::Text => "a text",
        Param::Long => "an integer",
        Param::Double => "a number",
        Param::Bytes => "bytes",
    };
    let as_null = match param {
        Param::Text => LogicalType::VarChar(None),
        Param::Long => LogicalType::BigInt,
        Param::Double => LogicalType::Double,
        Param::Bytes => LogicalType::VarBinary(None),
    };
    if let Kind::Null = arg.ty.kind {
        return Ok(arg.typed_null(as_null));
    }
    match (param, arg.family()) {
        (Param::Text, Some(Family::Text)) | (Param::Bytes, Some(Family::Bytes)) => Ok(arg),
        (Param::Long, Some(Family::Number)) if arg.logical().is_some_and(is_integer) => Ok(arg),
        (Param::Double, Some(Family::Number)) => cast::implicit(arg, &LogicalType::Double),
        _ => {
            let error = arg.error(format!("{name} is given {}", arg.ty.kind)).expected(wanted);
            Err(error.help("write CAST(... AS ...) around it"))
        }
    }
}

/// STRING
const STRING: LogicalType = LogicalType::VarChar(None);

/// A kernel of conditions.
fn bools(run: impl Fn(&super::call::Row<'_>) -> super::call::Out<bool> + Send + Sync + 'static) -> Kernel {
    Kernel::Bool(Arc::new(run))
}

/// A kernel of integers.
fn longs(run: impl Fn(&super::call::Row<'_>) -> super::call::Out<i64> + Send + Sync + 'static) -> Kernel {
    Kernel::Long(Arc::new(run))
}

/// A kernel of texts.
fn texts(
    run: impl for<'a> Fn(&super::call::Row<'a>) -> super::call::Out<std::borrow::Cow<'a, str>> + Send + Sync + 'static,
) -> Kernel {
    Kernel::Text(Arc::new(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_stands_once_in_the_tables() {
        let mut names: Vec<&str> = all().map(|function| function.name).chain(CHOICES.map(|(name, _)| name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for name in names {
            assert!(beyond_rows(name).is_none(), "{name}");
        }
    }
}
