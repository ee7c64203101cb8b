//! Takes the rows whose primary key was seen shortly before out of a batch.

use super::{KeyClock, KeyColumns, KeyWindow};
use crate::model::{Batch, Disposition, Fault, RowKey};

/// What rows are recognised by, and what has been seen.
#[derive(Debug)]
pub struct Keys {
    /// What a key is made of.
    pub columns: KeyColumns,
    /// What was seen, whether a checkpoint holds it yet or not.
    pub window: KeyWindow,
    /// The time.
    pub clock: KeyClock,
}

impl Keys {
    /// Takes out every row whose key has passed within the window, also with an earlier row of the batch. The keys of
    /// those that stay go with the batch; a row with a null in its key has none, and stays. Answers how many rows were
    /// taken out.
    ///
    /// # Errors
    /// Only a bug.
    pub fn check(&mut self, batch: &mut Batch) -> Result<usize, Fault> {
        let now_ms = self.clock.now_ms();
        self.window.expire(now_ms);
        let fingerprints = self.columns.fingerprints(&batch.rows)?;
        let mut stays = Vec::with_capacity(fingerprints.len());
        let mut left = vec![0u32; batch.messages.len()];
        for (key, origin) in fingerprints.iter().zip(&batch.origin) {
            let passes = key.is_none_or(|key| self.window.pass(key, now_ms));
            stays.push(passes);
            if let Some(left) = left.get_mut(origin.message as usize).filter(|_| passes) {
                *left += 1;
            }
            if let Some(key) = key.filter(|_| passes) {
                batch.keys.push(RowKey { message: origin.message, key, first_seen_ms: now_ms });
            }
        }
        let dropped = stays.iter().filter(|stays| !**stays).count();
        if dropped > 0 {
            batch.retain_rows(stays)?;
            for (message, _) in batch.messages.iter_mut().zip(left).filter(|(_, left)| *left == 0) {
                if message.disposition == Disposition::Rows {
                    message.disposition = Disposition::DuplicateKey;
                }
            }
        }
        Ok(dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use arrow_array::{Int64Array, RecordBatch, cast::AsArray, types::Int64Type};

    use super::*;
    use crate::model::{BatchMessage, Column, ColumnType, LaneId, Origin, Reject, Schema, SourceIdentity, Stage};

    fn schema() -> Schema {
        let column = |name: &str| Column {
            name: name.to_owned(),
            ty: ColumnType::parse("BIGINT").unwrap(),
            metadata: None,
            is_virtual: false,
        };
        Schema { columns: vec![column("id"), column("n")] }
    }

    fn keys() -> Keys {
        let columns = KeyColumns::new(&SourceIdentity("q".to_owned()), &schema(), &[0]);
        let window = KeyWindow::load(Duration::from_secs(3600), Vec::new(), 0);
        Keys { columns, window, clock: KeyClock::resume(0) }
    }

    /// Messages of rows of an id and a number each; a message without a row is a reject.
    fn batch(messages: &[&[(Option<i64>, i64)]]) -> Batch {
        let rows: Vec<_> = messages.iter().flat_map(|rows| rows.iter().copied()).collect();
        let (ids, numbers): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let arrays: Vec<arrow_array::ArrayRef> =
            vec![Arc::new(Int64Array::from(ids)), Arc::new(Int64Array::from(numbers))];
        let refused = |(message, rows): (usize, &&[_])| {
            let message = u32::try_from(message).unwrap();
            rows.is_empty().then(|| Reject { message, row: None, stage: Stage::Decode, reason: "bad".to_owned() })
        };
        let origin = |(message, rows): (usize, &&[_])| {
            let message = u32::try_from(message).unwrap();
            (0..u32::try_from(rows.len()).unwrap()).map(move |row| Origin { message, row }).collect::<Vec<_>>()
        };
        let message = |rows: &&[_]| BatchMessage {
            id: "m".into(),
            fingerprint: None,
            disposition: if rows.is_empty() { Disposition::Rejected } else { Disposition::Rows },
        };
        Batch {
            lane: LaneId::default(),
            range: 0..1,
            rows: RecordBatch::try_new(schema().to_arrow(), arrays).unwrap(),
            origin: messages.iter().enumerate().flat_map(origin).collect(),
            rejects: messages.iter().enumerate().filter_map(refused).collect(),
            keys: Vec::new(),
            messages: messages.iter().map(message).collect(),
            originals: Vec::new(),
            credits: Vec::new(),
        }
    }

    fn numbers(batch: &Batch) -> Vec<i64> {
        batch.rows.column(1).as_primitive::<Int64Type>().values().to_vec()
    }

    fn dispositions(batch: &Batch) -> Vec<Disposition> {
        batch.messages.iter().map(|message| message.disposition).collect()
    }

    #[test]
    fn the_first_row_of_a_key_wins_within_a_message_a_batch_and_a_window() {
        let mut keys = keys();
        let mut first = batch(&[&[(Some(1), 10), (Some(1), 11), (Some(2), 12)], &[(Some(2), 13)], &[(Some(3), 14)]]);
        assert_eq!(keys.check(&mut first).unwrap(), 2);
        assert_eq!(numbers(&first), [10, 12, 14]);
        let at = |message, row| Origin { message, row };
        assert_eq!(first.origin, [at(0, 0), at(0, 2), at(2, 0)], "rows keep their numbers");
        assert_eq!(dispositions(&first), [Disposition::Rows, Disposition::DuplicateKey, Disposition::Rows]);
        assert_eq!(first.keys.iter().map(|key| key.message).collect::<Vec<_>>(), [0, 0, 2]);

        let mut second = batch(&[&[(Some(3), 20)], &[(Some(4), 21), (Some(1), 22)]]);
        assert_eq!(keys.check(&mut second).unwrap(), 2);
        assert_eq!(numbers(&second), [21]);
        assert_eq!(dispositions(&second), [Disposition::DuplicateKey, Disposition::Rows]);
        assert_eq!(second.keys.len(), 1);
        assert_eq!(keys.window.len(), 4);
    }

    #[test]
    fn a_row_with_a_null_key_always_passes_and_is_not_remembered() {
        let mut keys = keys();
        for _ in 0..2 {
            let mut batch = batch(&[&[(None, 1), (None, 2)], &[(None, 3)]]);
            assert_eq!(keys.check(&mut batch).unwrap(), 0);
            assert_eq!((numbers(&batch), batch.keys.len()), (vec![1, 2, 3], 0));
            assert_eq!(dispositions(&batch), [Disposition::Rows; 2]);
        }
        assert!(keys.window.is_empty());
    }

    #[test]
    fn what_a_message_was_refused_for_stays_with_it() {
        let mut keys = keys();
        let mut batch = batch(&[&[(Some(1), 1)], &[], &[(Some(1), 2)]]);
        keys.check(&mut batch).unwrap();
        assert_eq!(dispositions(&batch), [Disposition::Rows, Disposition::Rejected, Disposition::DuplicateKey]);
        assert_eq!(batch.rejects.len(), 1);
    }

    #[test]
    fn a_batch_whose_rows_are_all_gone_still_stands_for_its_messages() {
        let mut keys = keys();
        keys.check(&mut batch(&[&[(Some(1), 1)]])).unwrap();
        let mut again = batch(&[&[(Some(1), 2)], &[(Some(1), 3)]]);
        assert_eq!(keys.check(&mut again).unwrap(), 2);
        assert_eq!((again.rows.num_rows(), again.messages.len(), again.keys.len()), (0, 2, 0));
    }
}
