//! How what was written becomes values of columns: a writer's schema against those of the table, by name.

use std::{cell::Cell, sync::Arc};

use super::nodes::{Kind, Logical, Nodes};
use crate::{
    formats::columnar::{Failure, MOST_BYTES, Target, lacking},
    model::{ColumnType, Field, LogicalType as T, nearest},
};

/// What a part of a plan takes in memory beside its name.
const PART_BYTES: usize = 128;
const TOO_LARGE: &str = "the schema of the file refers to its own types so often that it is too large";

/// How one type is read.
#[derive(Debug)]
pub(super) enum Plan {
    /// Null, which is on the wire with no byte.
    Null,
    /// Something that is not nested.
    Scalar(Wire, Convert),
    /// An array, and its elements.
    Array(Box<Plan>),
    /// A map, and its values.
    Map(Box<Plan>),
    /// A record.
    Record(Record),
    /// One of several, each with its name. A branch that the column cannot hold is an error where it is met.
    Union(Vec<(String, Result<Plan, String>)>),
}

/// How a record is read.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Its fields, in the order in which they are written.
    pub(super) fields: Vec<WrittenField>,
    /// Fields of the table that it lacks; nullable, all of them.
    pub(super) absent: Vec<usize>,
}

/// A field as it was written.
#[derive(Debug)]
pub(super) struct WrittenField {
    /// Its name.
    pub(super) name: String,
    /// Its type, for what nobody wants.
    pub(super) node: usize,
    /// Which field of the table it fills, and how.
    pub(super) to: Option<(usize, Plan)>,
}

/// What a value is on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wire {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Arc<[String]>),
}

/// What a value becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Convert {
    Boolean,
    Integer,
    Float,
    Double,
    Text,
    Bytes,
    Date,
    /// Of so many units in a second.
    Time(i64),
    /// Of so many units in a second.
    Timestamp(i64),
    /// Of this scale.
    Decimal(i32),
}

/// How a file's records become rows.
///
/// # Errors
/// The outermost type is no record, or a column cannot be read from what there is.
pub(super) fn rows(nodes: &Nodes, target: &Target) -> Result<Record, String> {
    let Kind::Record(written) = &nodes.get(0).kind else {
        return Err("the schema of the file is no record".into());
    };
    let fields: Vec<&Field> = target.fields().collect();
    let planner = Planner { nodes, room: Cell::new(MOST_BYTES) };
    let plan = planner.record(written, &fields);
    // In a branch of a union it would be an error only where the branch is met.
    if planner.room.get() == 0 {
        return Err(TOO_LARGE.into());
    }
    plan.map_err(|(name, failure)| failure.of_column(&name))
}

/// Makes the plan of a file. A type stands in it as often as others refer to it, which may be many times for each level.
struct Planner<'a> {
    nodes: &'a Nodes,
    /// Bytes that the plan may still take; once they are too few, 0.
    room: Cell<usize>,
}

impl Planner<'_> {
    fn part(&self, name: &str) -> Result<(), Failure> {
        let left = self.room.get().checked_sub(PART_BYTES + name.len()).filter(|left| *left > 0);
        self.room.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| Failure::new(TOO_LARGE))
    }

    fn record(&self, written: &[(String, usize)], fields: &[&Field]) -> Result<Record, (String, Failure)> {
        let mut plan = Record::default();
        for (name, node) in written {
            self.part(name).map_err(|failure| (name.clone(), failure))?;
            let wanted = fields.iter().enumerate().find(|(_, field)| field.name == *name);
            let to = match wanted {
                None => None,
                Some((index, field)) => {
                    Some((index, self.value(*node, &field.ty).map_err(|failure| (name.clone(), failure))?))
                }
            };
            plan.fields.push(WrittenField { name: name.clone(), node: *node, to });
        }
        for (index, field) in fields.iter().enumerate() {
            if written.iter().any(|(name, _)| *name == field.name) {
                continue;
            }
            if !field.ty.nullable {
                let meant = nearest(&field.name, written.iter().map(|(name, _)| name.as_str()));
                return Err((field.name.clone(), lacking(meant)));
            }
            plan.absent.push(index);
        }
        Ok(plan)
    }

    fn value(&self, index: usize, ty: &ColumnType) -> Result<Plan, Failure> {
        let node = self.nodes.get(index);
        self.part(&node.name)?;
        let mismatch = || Failure::new(format!("the file has {} here, which is no {}", node.name, ty.logical));
        Ok(match (&node.kind, &ty.logical) {
            (Kind::Null, _) => Plan::Null,
            (Kind::Union(branches), _) => {
                let branch = |index: &usize| {
                    let plan = self.value(*index, ty).map_err(|failure| failure.of_branch());
                    (self.nodes.get(*index).name.clone(), plan)
                };
                let plans: Vec<_> = branches.iter().map(branch).collect();
                let fits = |plan: &Result<Plan, String>| plan.as_ref().is_ok_and(|plan| !matches!(plan, Plan::Null));
                let only_nulls = plans.iter().all(|(_, plan)| matches!(plan, Ok(Plan::Null)));
                if !only_nulls && !plans.iter().any(|(_, plan)| fits(plan)) {
                    let names: Vec<_> = plans.iter().map(|(name, _)| name.as_str()).collect();
                    let message =
                        format!("the file has a union of {} here, which is no {}", names.join(", "), ty.logical);
                    return Err(Failure::new(message));
                }
                Plan::Union(plans)
            }
            (Kind::Array(items), T::Array(element)) => Plan::Array(Box::new(self.value(*items, element)?)),
            (Kind::Map(values), T::Map(key, of)) if matches!(key.logical, T::Char(_) | T::VarChar(_)) => {
                Plan::Map(Box::new(self.value(*values, of)?))
            }
            (Kind::Record(written), T::Row(fields)) => {
                let fields: Vec<&Field> = fields.iter().collect();
                Plan::Record(self.record(written, &fields).map_err(|(name, failure)| failure.in_field(&name))?)
            }
            (kind, logical) => {
                let wire = wire(kind).ok_or_else(mismatch)?;
                let convert = convert(&wire, node.logical, logical).ok_or_else(mismatch)?;
                Plan::Scalar(wire, convert)
            }
        })
    }
}

fn wire(kind: &Kind) -> Option<Wire> {
    Some(match kind {
        Kind::Boolean => Wire::Boolean,
        Kind::Int => Wire::Int,
        Kind::Long => Wire::Long,
        Kind::Float => Wire::Float,
        Kind::Double => Wire::Double,
        Kind::Bytes => Wire::Bytes,
        Kind::String => Wire::String,
        Kind::Fixed(size) => Wire::Fixed(*size),
        Kind::Enum(symbols) => Wire::Enum(Arc::clone(symbols)),
        Kind::Null | Kind::Array(_) | Kind::Map(_) | Kind::Union(_) | Kind::Record(_) => return None,
    })
}

/// What Avro promotes, and no more: nothing is narrowed but whole numbers that fit.
fn convert(wire: &Wire, means: Option<Logical>, logical: &T) -> Option<Convert> {
    Some(match (wire, logical) {
        (Wire::Boolean, T::Boolean) => Convert::Boolean,
        (Wire::Int | Wire::Long, T::TinyInt | T::SmallInt | T::Int | T::BigInt) => Convert::Integer,
        (Wire::Int | Wire::Long, T::Decimal(..)) if means.is_none() => Convert::Integer,
        (Wire::Int | Wire::Long | Wire::Float, T::Float) => Convert::Float,
        (Wire::Int | Wire::Long | Wire::Float | Wire::Double, T::Double) => Convert::Double,
        (Wire::Bytes | Wire::Fixed(_), T::Decimal(..)) => match means {
            Some(Logical::Decimal(scale)) => Convert::Decimal(scale),
            _ => return None,
        },
        (Wire::String | Wire::Bytes | Wire::Enum(_), T::Char(_) | T::VarChar(_)) => Convert::Text,
        (Wire::Bytes | Wire::Fixed(_) | Wire::String, T::Binary(_) | T::VarBinary(_)) => Convert::Bytes,
        (Wire::Int, T::Date) if means == Some(Logical::Date) => Convert::Date,
        (Wire::Int | Wire::Long, T::Time(_)) => match means {
            Some(Logical::Time(per_second)) => Convert::Time(per_second),
            _ => return None,
        },
        (Wire::Long, T::Timestamp(_) | T::TimestampLtz(_)) => match means {
            Some(Logical::Timestamp(per_second)) => Convert::Timestamp(per_second),
            _ => return None,
        },
        _ => return None,
    })
}
