//! A sink that keeps what it is given, and does what the script says.

use std::sync::Arc;

use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use async_trait::async_trait;

use super::harness::World;
use crate::{
    connector::{RowReject, Sink},
    model::{Epoch, Fault, SinkIdentity, Token},
};

/// Two phases: a token holds its epoch and the rows.
pub struct Recording(pub Arc<World>);

impl Drop for Recording {
    fn drop(&mut self) {
        let panics = std::mem::take(&mut self.0.state().panics_when_dropped);
        assert!(!panics, "the sink panics when it is dropped");
    }
}

pub fn sink_identity() -> SinkIdentity {
    SinkIdentity { connector: "recording".to_owned(), target: "here".to_owned() }
}

#[async_trait]
impl Sink for Recording {
    fn identity(&self) -> SinkIdentity {
        sink_identity()
    }

    async fn recover(&mut self, tokens: &[Token]) -> Result<(), Fault> {
        self.0.sink_call("recover").await?;
        self.0.state().open.clear();
        for token in tokens {
            self.commit(token).await?;
        }
        Ok(())
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        self.0.sink_call("write").await?;
        let mut state = self.0.state();
        let mut rejects = Vec::new();
        for (row, number) in rows.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
            if state.refused.contains(number) {
                rejects.push(RowReject { row, reason: "refused".to_owned() });
            } else {
                state.open.push(*number);
            }
        }
        Ok(rejects)
    }

    async fn prepare(&mut self, epoch: Epoch) -> Result<Option<Token>, Fault> {
        self.0.sink_call("prepare").await?;
        let rows = std::mem::take(&mut self.0.state().open);
        let content = serde_json::to_string(&(epoch, &rows)).unwrap();
        Ok((!rows.is_empty()).then(|| Token { sink: sink_identity(), content }))
    }

    async fn commit(&mut self, token: &Token) -> Result<(), Fault> {
        self.0.sink_call("commit").await?;
        let (_, rows): (Epoch, Vec<i64>) = serde_json::from_str(&token.content).unwrap();
        let mut state = self.0.state();
        if state.tokens.insert(token.content.clone()) {
            state.committed.extend(rows);
        }
        Ok(())
    }
}
