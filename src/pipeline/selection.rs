//! The query of a pipeline, over the rows of a batch on their way to the sink.

use crate::{
    model::{Batch, Disposition, Fault, FaultKind, Origin, Reject, Stage},
    query::Query,
};

/// Puts what the query selects in the place of a batch's rows. Answers how many rows its WHERE left out. A row that
/// fails in it is refused alone; a message of which no row is left counts as filtered.
///
/// # Errors
/// Only a bug.
pub fn select(query: &Query, batch: &mut Batch) -> Result<usize, Fault> {
    let selected = query.run(&batch.rows)?;
    let bug = |what| Fault::restart(FaultKind::Bug, what);
    let origin_of = |row: usize| batch.origin.get(row).copied();
    let origin: Option<Vec<Origin>> = selected.from.iter().map(|row| origin_of(*row)).collect();
    let origin = origin.filter(|origin| origin.len() == selected.rows.num_rows());
    let origin = origin.ok_or_else(|| bug("a query answered rows that it was not given"))?;
    let left_out = batch.origin.len().checked_sub(origin.len() + selected.rejects.len());
    let left_out = left_out.ok_or_else(|| bug("a query answered more rows than it was given"))?;

    let mut left = vec![0_u32; batch.messages.len()];
    for origin in &origin {
        left.get_mut(origin.message as usize).into_iter().for_each(|left| *left += 1);
    }
    let mut refused = vec![false; batch.messages.len()];
    for reject in selected.rejects {
        let Origin { message, row } =
            origin_of(reject.row).ok_or_else(|| bug("a query refused a row that it was not given"))?;
        refused.get_mut(message as usize).into_iter().for_each(|refused| *refused = true);
        batch.rejects.push(Reject { message, row: Some(row), stage: Stage::Query, reason: reject.reason });
    }
    for ((message, left), refused) in batch.messages.iter_mut().zip(left).zip(refused) {
        if message.disposition == Disposition::Rows && (refused || left == 0) {
            message.disposition = if refused { Disposition::Rejected } else { Disposition::Filtered };
        }
    }
    batch.rows = selected.rows;
    batch.origin = origin;
    Ok(left_out)
}
