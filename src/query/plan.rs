//! A query as expressions over the columns of a batch, and how they are run.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use datafusion_common::DataFusionError;
use datafusion_physical_expr::{
    PhysicalExpr,
    expressions::Column as ColumnOf,
    utils::{collect_columns, reassign_expr_columns},
};

use super::{
    QueryError, Selected, clock,
    frame::{self, Frame, Item},
    lower::{Lower, Term},
    place::Places,
    types::{Kind, Type},
};
use crate::model::{Column, ColumnType, Fault, FaultKind, LogicalType, RowReject, Schema};

/// How often an expression is evaluated anew without the rows that failed. It is more than once only where random
/// numbers decide what fails.
const MOST_TRIES: usize = 100;

/// The most columns that a query makes; each of them takes a word, but for those of `*`.
const MOST_COLUMNS: usize = 10_000;

/// Bytes of the stack of a planner; only what is used of it is taken.
const STACK: usize = 64 * 1024 * 1024;

type Expressions = Vec<Arc<dyn PhysicalExpr>>;

/// A query as expressions.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    schema: Schema,
    arrow: SchemaRef,
    condition: Option<Condition>,
    columns: Expressions,
    /// Whether it answers what it is given.
    identity: bool,
}

/// A WHERE.
#[derive(Debug, Clone)]
struct Condition {
    expr: Arc<dyn PhysicalExpr>,
    /// The columns that are looked at behind it, which alone are copied for the rows that it leaves.
    kept: Vec<usize>,
}

/// What an expression is there for.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    Where,
    Column(&'a str),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Where => f.write_str("WHERE"),
            Self::Column(name) => write!(f, "column `{name}`"),
        }
    }
}

/// A column of the output while it is planned.
struct Output {
    name: String,
    term: Term,
}

impl Plan {
    /// Plans on a thread of its own, whose stack bears any text that is not refused for its length: sqlparser's trees
    /// are as deep as a chain of operators is long, and are walked and dropped by functions that call themselves.
    pub(super) fn new(text: &str, source: &Schema) -> Result<Self, Vec<QueryError>> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("plan".into()).stack_size(STACK);
            let failed = |what: String| Err(vec![QueryError::new(0..text.len(), what)]);
            match thread.spawn_scoped(scope, || Self::make(text, source)).map(|thread| thread.join()) {
                Ok(Ok(planned)) => planned,
                Ok(Err(_)) => failed("the planner of queries panicked: a bug".into()),
                Err(error) => failed(format!("no thread to plan the query could be started: {error}")),
            }
        })
    }

    fn make(text: &str, source: &Schema) -> Result<Self, Vec<QueryError>> {
        let mut places = Places::new(text);
        let frame = frame::read(&mut places, text)?;
        let lower = Lower::new(&places, source, frame.alias.as_deref());
        let (outputs, mut wrong) = outputs(&places, &frame, &lower, source);
        let condition: Option<Arc<dyn PhysicalExpr>> =
            match frame.condition.as_ref().map(|condition| condition_of(&lower, condition)) {
                Some(Err(error)) => {
                    wrong.push(error);
                    None
                }
                Some(Ok(term)) => Some(term.expr),
                None => None,
            };
        wrong.extend(lower.more());
        if !(wrong.is_empty() && frame.wrong.is_empty()) {
            // What the frame says of a place says more than what the expressions make of it.
            let mut wrong: Vec<QueryError> = frame.wrong.into_iter().chain(wrong).collect();
            wrong.sort_by_key(|error| error.at.start);
            wrong.dedup_by_key(|error| error.at.start);
            return Err(wrong);
        }
        let columns: Vec<_> = outputs.iter().map(|output| Arc::clone(&output.term.expr)).collect();
        let schema = Schema { columns: outputs.into_iter().filter_map(column).collect() };
        let plain = |(at, expr): (usize, &Arc<dyn PhysicalExpr>)| {
            expr.downcast_ref::<ColumnOf>().is_some_and(|column| column.index() == at)
        };
        let same_names =
            schema.columns.iter().map(|column| &column.name).eq(source.columns.iter().map(|one| &one.name));
        let identity = condition.is_none() && same_names && columns.iter().enumerate().all(plain);
        let (condition, columns) = match condition {
            Some(expr) => {
                let (kept, columns) =
                    narrowed(columns, source).map_err(|why| vec![QueryError::new(places.whole(), why)])?;
                (Some(Condition { expr, kept }), columns)
            }
            None => (None, columns),
        };
        Ok(Self { arrow: schema.to_arrow(), schema, condition, columns, identity })
    }

    pub(super) fn line_comments(text: &str) -> Vec<std::ops::Range<usize>> {
        frame::line_comments(text)
    }

    pub(super) const fn schema(&self) -> &Schema {
        &self.schema
    }

    #[cfg(test)]
    pub(super) const fn is_identity(&self) -> bool {
        self.identity
    }

    pub(super) fn run(&self, rows: &RecordBatch) -> Result<Selected, Fault> {
        if self.identity {
            return Ok(Selected { rows: rows.clone(), from: (0..rows.num_rows()).collect(), rejects: Vec::new() });
        }
        clock::begin_batch();
        let mut state = State { rows: rows.clone(), from: None, rejects: Vec::new() };
        if let Some(Condition { expr, kept }) = &self.condition {
            let passes = state.evaluate(expr, Place::Where)?;
            let passes = passes.as_any().downcast_ref::<BooleanArray>().ok_or_else(|| bug("WHERE is no condition"))?;
            state.rows = state.rows.project(kept).map_err(bug_because)?;
            state.keep(passes)?;
        }
        let columns = self.project(&mut state)?;
        let options = RecordBatchOptions::new().with_row_count(Some(state.rows.num_rows()));
        let made = RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns, &options);
        let from = state.from.unwrap_or_else(|| (0..rows.num_rows()).collect());
        state.rejects.sort_by_key(|reject| reject.row);
        Ok(Selected { rows: made.map_err(bug_because)?, from, rejects: state.rejects })
    }

    /// Every column over the rows for which none fails.
    fn project(&self, state: &mut State) -> Result<Vec<ArrayRef>, Fault> {
        let mut made = Vec::with_capacity(self.columns.len());
        let mut failed: Vec<(usize, String)> = Vec::new();
        for (expr, column) in self.columns.iter().zip(&self.schema.columns) {
            match whole(expr, &state.rows, Place::Column(&column.name))? {
                Ok(array) => made.push(array),
                Err(reasons) => failed.extend(reasons),
            }
        }
        if made.len() == self.columns.len() {
            return Ok(made);
        }
        state.reject(failed)?;
        // What failed a moment ago for one row and does not now for others: that of random numbers only.
        let before = state.rows.num_rows();
        let mut made = Vec::with_capacity(self.columns.len());
        for (expr, column) in self.columns.iter().zip(&self.schema.columns) {
            made.push(state.evaluate(expr, Place::Column(&column.name))?);
        }
        if state.rows.num_rows() == before { Ok(made) } else { self.project(state) }
    }
}

/// What is left of a batch.
struct State {
    rows: RecordBatch,
    /// Of each row its number in the batch; `None`: all are there.
    from: Option<Vec<usize>>,
    rejects: Vec<RowReject>,
}

impl State {
    /// Evaluates over the rows for which it does not fail; the others are rejected.
    fn evaluate(&mut self, expr: &Arc<dyn PhysicalExpr>, what: Place<'_>) -> Result<ArrayRef, Fault> {
        for _ in 0..MOST_TRIES {
            match whole(expr, &self.rows, what)? {
                Ok(array) => return Ok(array),
                Err(failed) => self.reject(failed)?,
            }
        }
        Err(bug("an expression fails for a batch and for none of its rows"))
    }

    fn reject(&mut self, mut failed: Vec<(usize, String)>) -> Result<(), Fault> {
        failed.sort_by_key(|(row, _)| *row);
        failed.dedup_by_key(|(row, _)| *row);
        let mut stays = vec![true; self.rows.num_rows()];
        for (row, reason) in failed {
            if let Some(stay) = stays.get_mut(row) {
                *stay = false;
            }
            let row = self.from.as_ref().map_or(Some(row), |from| from.get(row).copied());
            self.rejects.push(RowReject { row: row.ok_or_else(|| bug("a row that is not there failed"))?, reason });
        }
        self.keep(&BooleanArray::from(stays))
    }

    /// Keeps the rows for which it is true: neither false nor null.
    fn keep(&mut self, passes: &BooleanArray) -> Result<(), Fault> {
        if passes.null_count() == 0 && passes.true_count() == passes.len() {
            return Ok(());
        }
        self.rows = filter_record_batch(&self.rows, passes).map_err(bug_because)?;
        let stays = |row: &usize| passes.is_valid(*row) && passes.value(*row);
        let kept = (0..passes.len()).filter(stays);
        self.from = Some(match self.from.take() {
            None => kept.collect(),
            Some(from) => kept.filter_map(|row| from.get(row).copied()).collect(),
        });
        Ok(())
    }
}

fn evaluate(expr: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<ArrayRef, DataFusionError> {
    expr.evaluate(rows)?.into_array(rows.num_rows())
}

/// A column, or the rows that stand in its way and why.
type Whole = Result<ArrayRef, Vec<(usize, String)>>;

/// Evaluates over all rows, in parts where it fails for all of them at once: some rows fail, or too much would be made
/// at a time.
fn whole(expr: &Arc<dyn PhysicalExpr>, rows: &RecordBatch, what: Place<'_>) -> Result<Whole, Fault> {
    if let Ok(array) = evaluate(expr, rows) {
        return Ok(Ok(array));
    }
    let mut parts = Parts { expr, what, made: Vec::new(), bytes: 0, failed: Vec::new() };
    parts.add(rows, 0)?;
    if !parts.failed.is_empty() {
        return Ok(Err(parts.failed));
    }
    let made: Vec<&dyn Array> = parts.made.iter().map(|array| &**array as &dyn Array).collect();
    arrow_select::concat::concat(&made).map(Ok).map_err(bug_because)
}

/// The most bytes of a column of a batch that is made in parts. Arrow cannot count beyond 2 GiB.
const MOST_OF_COLUMN: usize = 512 * 1024 * 1024;

/// An expression evaluated over parts of a batch.
struct Parts<'a> {
    expr: &'a Arc<dyn PhysicalExpr>,
    what: Place<'a>,
    made: Vec<ArrayRef>,
    /// Of all that was made.
    bytes: usize,
    failed: Vec<(usize, String)>,
}

impl Parts<'_> {
    /// By halves down to the rows that fail; `first` is the number of the first row.
    fn add(&mut self, rows: &RecordBatch, first: usize) -> Result<(), Fault> {
        let what = self.what;
        match (rows.num_rows(), evaluate(self.expr, rows)) {
            (count, Ok(array)) => {
                let bytes = self.bytes.saturating_add(array.to_data().get_slice_memory_size().map_err(bug_because)?);
                if bytes > MOST_OF_COLUMN {
                    let reason = format!("{what}: the batch would hold more than {MOST_OF_COLUMN} bytes of it");
                    self.failed.extend((first..first + count).map(|row| (row, reason.clone())));
                } else {
                    self.bytes = bytes;
                    self.made.push(array);
                }
                Ok(())
            }
            (0, Err(error)) => Err(bug_because(error)),
            (1, Err(DataFusionError::Execution(reason))) => {
                self.failed.push((first, format!("{what}: {reason}")));
                Ok(())
            }
            (1, Err(error)) => {
                self.failed.push((first, format!("{what}: {error}")));
                Ok(())
            }
            (count, Err(_)) => {
                let half = count / 2;
                self.add(&rows.slice(0, half), first)?;
                self.add(&rows.slice(half, count - half), first + half)
            }
        }
    }
}

fn bug(message: &'static str) -> Fault {
    Fault::restart(FaultKind::Bug, message)
}

fn bug_because(error: impl std::error::Error + Send + Sync + 'static) -> Fault {
    Fault::restart(FaultKind::Bug, "a query could not be run").because(error)
}

fn outputs(places: &Places<'_>, frame: &Frame, lower: &Lower<'_>, source: &Schema) -> (Vec<Output>, Vec<QueryError>) {
    let (mut outputs, mut wrong) = (Vec::new(), Vec::new());
    for item in &frame.items {
        match frame::item(places, frame, item) {
            Err(error) => wrong.push(error),
            Ok(Item::All) => {
                let at = places.range(sqlparser::ast::Spanned::span(item));
                if outputs.len() + source.columns.len() > MOST_COLUMNS {
                    wrong.push(QueryError::new(at, format!("the query makes more than {MOST_COLUMNS} columns")));
                    break;
                }
                for (index, column) in source.columns.iter().enumerate() {
                    let term = Term::column(index, column, at.clone());
                    outputs.push(Output { name: column.name.clone(), term });
                }
            }
            Ok(Item::One(expression, alias)) => match lower.output(expression) {
                Err(error) => wrong.push(error),
                Ok(term) => {
                    let name = match alias {
                        Some(alias) => alias.value.clone(),
                        None => lower.name(expression).unwrap_or_else(|| format!("EXPR${}", outputs.len())),
                    };
                    outputs.push(Output { name, term });
                }
            },
        }
    }
    number(&mut outputs);
    (outputs, wrong)
}

/// A name that is there already gets the first number behind it that makes it another, as in Calcite.
fn number(outputs: &mut [Output]) {
    let (mut taken, mut next) = (HashSet::new(), HashMap::<String, u32>::new());
    for Output { name, .. } in outputs {
        let given = name.clone();
        while !taken.insert(name.clone()) {
            let next = next.entry(given.clone()).or_default();
            *name = format!("{given}{next}");
            *next += 1;
        }
    }
}

/// The columns of the source that these look at, and the same expressions over those only.
fn narrowed(columns: Expressions, source: &Schema) -> Result<(Vec<usize>, Expressions), String> {
    let used = columns.iter().flat_map(collect_columns).map(|column| column.index());
    let kept: Vec<usize> = used.collect::<BTreeSet<_>>().into_iter().collect();
    let schema = source.to_arrow().project(&kept).map_err(|error| error.to_string())?;
    let moved = columns.into_iter().map(|expr| reassign_expr_columns(expr, &schema)).collect::<Result<_, _>>();
    Ok((kept, moved.map_err(|error| error.to_string())?))
}

fn column(output: Output) -> Option<Column> {
    let Type { kind: Kind::Of(logical), nullable } = output.term.ty else { return None };
    Some(Column { name: output.name, ty: ColumnType { logical, nullable }, metadata: None, is_virtual: false })
}

fn condition_of(lower: &Lower<'_>, condition: &sqlparser::ast::Expr) -> Result<Term, QueryError> {
    let term = lower.expression(condition)?;
    match term.ty.kind {
        Kind::Of(LogicalType::Boolean) => Ok(term),
        Kind::Null => Ok(term.typed_null(LogicalType::Boolean)),
        ref kind => {
            let error = QueryError::new(term.at.clone(), format!("WHERE is {kind}"));
            Err(error.expected("BOOLEAN, which a comparison makes"))
        }
    }
}
