//! Fields of rows, elements of arrays, values of maps.

use std::{ops::Range, sync::Arc};

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, UInt32Array, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_ord::ord::make_comparator;
use arrow_schema::SortOptions;
use arrow_select::take::take;
use sqlparser::ast::{AccessExpr, Expr, Ident, Spanned, Subscript};

use super::{Lower, Planned, Term};
use crate::{
    model::{Field, LogicalType, nearest},
    query::{
        QueryError,
        call::{Args, Kernel},
        cast,
        types::{Kind, Type, is_integer},
    },
};

impl Lower<'_> {
    /// `s.a`, `a.x.y`, `s.a.x`.
    pub(super) fn compound(&self, expression: &Expr, idents: &[Ident]) -> Planned {
        let Some((first, rest)) = idents.split_first() else { return self.refuse(expression, "this is no name") };
        if let (true, Some((second, fields))) = (first.value == self.table(), rest.split_first()) {
            if let Some(term) = self.column(second) {
                return self.fields(term, fields);
            }
            if self.column(first).is_none() {
                return Err(self.no_column(second));
            }
        }
        match self.column(first) {
            Some(term) => self.fields(term, rest),
            None => {
                let names = self.source.columns.iter().map(|column| column.name.as_str()).chain([self.table()]);
                let error = QueryError::new(
                    self.places.range(first.span),
                    format!("there is no table or column `{}`", first.value),
                );
                Err(error
                    .nearest(nearest(&first.value, names))
                    .expected(format!("{}.column or row.field", self.table())))
            }
        }
    }

    fn fields(&self, term: Term, fields: &[Ident]) -> Planned {
        fields.iter().try_fold(term, |term, name| self.field(term, name))
    }

    /// Anything with `.name` and `[...]` behind it.
    pub(super) fn access(&self, expression: &Expr, root: &Expr, chain: &[AccessExpr]) -> Planned {
        // A table's name before a column is no field: `s.a[1]` begins with two names.
        let dots = chain.iter().map_while(|one| match one {
            AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
            _ => None,
        });
        let (mut term, done) = match root {
            Expr::Identifier(first) if first.value == self.table() && self.column(first).is_none() => {
                let names: Vec<Ident> = std::iter::once(first.clone()).chain(dots).collect();
                (self.compound(root, &names)?, names.len() - 1)
            }
            other => (self.expression(other)?, 0),
        };
        for one in chain.get(done..).unwrap_or_default() {
            term = match one {
                AccessExpr::Dot(Expr::Identifier(name)) => self.field(term, name)?,
                AccessExpr::Subscript(Subscript::Index { index }) => self.element(term, index, self.at(expression))?,
                other => return Err(QueryError::new(self.places.range(other.span()), "this access is not supported")),
            };
        }
        Ok(term)
    }

    fn field(&self, term: Term, name: &Ident) -> Planned {
        let at = term.at.start..self.places.range(name.span).end.max(term.at.end);
        let Kind::Of(LogicalType::Row(fields)) = &term.ty.kind else {
            let error = QueryError::new(self.places.range(name.span), format!("{} has no fields", term.ty.kind));
            return Err(error.expected("a ROW before the point"));
        };
        let Some(index) = fields.iter().position(|field| field.name == name.value) else {
            let error = QueryError::new(self.places.range(name.span), format!("there is no field `{}`", name.value));
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            return Err(error.nearest(nearest(&name.value, names.iter().copied())).expected(names.join(", ")));
        };
        let Some(Field { ty, .. }) = fields.get(index) else { return Err(term.error("there is no such field")) };
        let ty = Type { nullable: ty.nullable || term.ty.nullable, ..Type::from(ty) };
        let kernel = Kernel::Column(Arc::new(move |args| field(args, index)));
        Ok(Term::lenient(format!(".{}", name.value), vec![term], ty, at, kernel))
    }

    fn element(&self, term: Term, index: &Expr, at: Range<usize>) -> Planned {
        let index = self.expression(index)?;
        match term.ty.kind.clone() {
            Kind::Of(LogicalType::Array(item)) => {
                if !index.logical().is_some_and(is_integer) {
                    return Err(index
                        .error(format!("an array has no element {}", index.ty.kind))
                        .expected("an integer from 1"));
                }
                if index.constant_long().is_some_and(|index| index < 1) {
                    return Err(index.error("elements of an array are counted from 1"));
                }
                let index = cast::implicit(index, &LogicalType::BigInt)?;
                let ty = Type { nullable: true, ..Type::from(&*item) };
                Ok(Term::lenient("[]", vec![term, index], ty, at, Kernel::Column(Arc::new(element))))
            }
            Kind::Of(LogicalType::Map(key, value)) => {
                let index = cast::implicit(index, &key.logical)?;
                let ty = Type { nullable: true, ..Type::from(&*value) };
                Ok(Term::lenient("[]", vec![term, index], ty, at, Kernel::Column(Arc::new(entry))))
            }
            kind => Err(term.error(format!("{kind} has no elements")).expected("an ARRAY or a MAP")),
        }
    }
}

fn field(args: &Args, index: usize) -> Result<ArrayRef, String> {
    let rows = args.column(0)?;
    let rows = rows.as_any().downcast_ref::<StructArray>().ok_or("this is no ROW")?;
    let column = rows.columns().get(index).ok_or("there is no such field")?;
    if rows.null_count() == 0 {
        return Ok(Arc::clone(column));
    }
    let nulls = NullBuffer::union(rows.nulls(), column.nulls());
    column.to_data().into_builder().nulls(nulls).build().map(arrow_array::make_array).map_err(|error| error.to_string())
}

/// Rows of `values`; where there is none, null.
fn gathered(values: &ArrayRef, places: Vec<Option<u32>>) -> Result<ArrayRef, String> {
    if values.is_empty() {
        return Ok(new_null_array(values.data_type(), places.len()));
    }
    take(values, &UInt32Array::from(places), None).map_err(|error| error.to_string())
}

fn element(args: &Args) -> Result<ArrayRef, String> {
    let (arrays, indexes) = (args.column(0)?, args.column(1)?);
    let arrays = arrays.as_any().downcast_ref::<ListArray>().ok_or("this is no ARRAY")?;
    let indexes = indexes.as_any().downcast_ref::<arrow_array::Int64Array>().ok_or("this is no index")?;
    let place = |row: usize| -> Option<u32> {
        if arrays.is_null(row) || indexes.is_null(row) {
            return None;
        }
        let (start, length) = (*arrays.value_offsets().get(row)?, arrays.value_length(row));
        let index = i32::try_from(indexes.value(row)).ok().filter(|index| (1..=length).contains(index))?;
        u32::try_from(start + index - 1).ok()
    };
    gathered(arrays.values(), (0..args.rows).map(place).collect())
}

fn entry(args: &Args) -> Result<ArrayRef, String> {
    let (maps, wanted) = (args.column(0)?, args.column(1)?);
    let maps = maps.as_any().downcast_ref::<MapArray>().ok_or("this is no MAP")?;
    let compare = make_comparator(maps.keys(), &wanted, SortOptions::default()).map_err(|error| error.to_string())?;
    let place = |row: usize| -> Option<u32> {
        if maps.is_null(row) || wanted.is_null(row) {
            return None;
        }
        let range = *maps.value_offsets().get(row)?..*maps.value_offsets().get(row + 1)?;
        let mut places = range.filter_map(|place| usize::try_from(place).ok());
        places.find(|place| compare(*place, row).is_eq()).and_then(|place| u32::try_from(place).ok())
    };
    gathered(maps.values(), (0..args.rows).map(place).collect())
}

/// `CARDINALITY(array or map)`.
pub(in crate::query) fn cardinality(term: Term, at: Range<usize>) -> Planned {
    let nullable = term.ty.nullable;
    match &term.ty.kind {
        Kind::Of(LogicalType::Array(_) | LogicalType::Map(..)) => {
            let kernel = Kernel::Column(Arc::new(|args| {
                let array = args.column(0)?;
                let any = array.as_any();
                let length = |row: usize| match (any.downcast_ref::<ListArray>(), any.downcast_ref::<MapArray>()) {
                    (Some(list), _) => Some(list.value_length(row)),
                    (_, Some(map)) => Some(map.value_length(row)),
                    _ => None,
                };
                let lengths = (0..args.rows).map(|row| if array.is_null(row) { None } else { length(row) });
                Ok(Arc::new(lengths.collect::<arrow_array::Int32Array>()))
            }));
            Ok(Term::lenient("CARDINALITY", vec![term], Type::new(LogicalType::Int, nullable), at, kernel))
        }
        kind => Err(term.error(format!("{kind} has no elements")).expected("an ARRAY or a MAP")),
    }
}

/// `ELEMENT(array)`: its only element; null if it is empty.
pub(in crate::query) fn only(term: Term, at: Range<usize>) -> Planned {
    let Kind::Of(LogicalType::Array(item)) = &term.ty.kind else {
        return Err(term.error(format!("{} has no elements", term.ty.kind)).expected("an ARRAY"));
    };
    let ty = Type { nullable: true, ..Type::from(&**item) };
    let kernel = Kernel::Column(Arc::new(|args| {
        let arrays = args.column(0)?;
        let arrays = arrays.as_any().downcast_ref::<ListArray>().ok_or("this is no ARRAY")?;
        let mut places = Vec::with_capacity(args.rows);
        for row in 0..args.rows {
            places.push(match (arrays.is_null(row), arrays.value_length(row)) {
                (true, _) | (_, 0) => None,
                (_, 1) => arrays.value_offsets().get(row).and_then(|start| u32::try_from(*start).ok()),
                (_, length) => return Err(format!("the array has {length} elements and not one")),
            });
        }
        gathered(arrays.values(), places)
    }));
    Ok(Term::lenient("ELEMENT", vec![term], ty, at, kernel).may_fail())
}

/// `ARRAY_CONTAINS(array, value)`.
pub(in crate::query) fn contains(array: Term, value: Term, at: Range<usize>) -> Planned {
    let Kind::Of(LogicalType::Array(item)) = &array.ty.kind else {
        return Err(array.error(format!("{} has no elements", array.ty.kind)).expected("an ARRAY"));
    };
    let item = item.logical.clone();
    let nullable = array.ty.nullable;
    let value = cast::implicit(value, &item)?;
    let kernel = Kernel::Column(Arc::new(|args| {
        let (arrays, wanted) = (args.column(0)?, args.column(1)?);
        let arrays = arrays.as_any().downcast_ref::<ListArray>().ok_or("this is no ARRAY")?;
        let values = arrays.values();
        let compare = make_comparator(values, &wanted, SortOptions::default()).map_err(|error| error.to_string())?;
        let row = |row: usize| {
            let range = *arrays.value_offsets().get(row)?..*arrays.value_offsets().get(row + 1)?;
            let mut places = range.filter_map(|place| usize::try_from(place).ok());
            arrays.is_valid(row).then(|| places.any(|place| compare(place, row).is_eq()))
        };
        Ok(Arc::new((0..args.rows).map(row).collect::<arrow_array::BooleanArray>()))
    }));
    Ok(Term::lenient("ARRAY_CONTAINS", vec![array, value], Type::new(LogicalType::Boolean, nullable), at, kernel))
}
