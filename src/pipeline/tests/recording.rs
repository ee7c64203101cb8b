//! A sink that keeps what it is given, and does what the script says.

use std::sync::Arc;

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Int32Type, Int64Type},
};
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

/// A body and the row in it.
pub type Letter = (String, Option<i32>);

/// What the sink for dead letters has and does.
#[derive(Default)]
pub struct Posted {
    /// Letters taken and not yet prepared.
    pub open: Vec<Letter>,
    pub committed: Vec<Letter>,
    /// What letters say of the positions they lie in.
    pub positions: Vec<String>,
    /// Bodies of which it refuses letters.
    pub refused: Vec<&'static str>,
}

/// Where dead letters go: likewise.
pub struct Post(pub Arc<World>);

pub fn letters_identity() -> SinkIdentity {
    SinkIdentity { connector: "recording".to_owned(), target: "letters".to_owned() }
}

#[async_trait]
impl Sink for Post {
    fn identity(&self) -> SinkIdentity {
        letters_identity()
    }

    async fn recover(&mut self, tokens: &[Token]) -> Result<(), Fault> {
        self.0.sink_call("recover letters").await?;
        self.0.state().post.open.clear();
        for token in tokens {
            self.commit(token).await?;
        }
        Ok(())
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        self.0.sink_call("write letters").await?;
        let mut state = self.0.state();
        let (bodies, numbers) = (rows.column(1).as_binary::<i32>(), rows.column(2).as_primitive::<Int32Type>());
        let positions = rows.column(7).as_string::<i32>();
        state.post.positions.extend(positions.iter().flatten().map(str::to_owned));
        let mut rejects = Vec::new();
        for row in 0..rows.num_rows() {
            let body = String::from_utf8(bodies.value(row).to_vec()).unwrap();
            if state.post.refused.contains(&body.as_str()) {
                rejects.push(RowReject { row, reason: "no such addressee".to_owned() });
            } else {
                state.post.open.push((body, numbers.is_valid(row).then(|| numbers.value(row))));
            }
        }
        Ok(rejects)
    }

    async fn prepare(&mut self, epoch: Epoch) -> Result<Option<Token>, Fault> {
        self.0.sink_call("prepare letters").await?;
        let letters = std::mem::take(&mut self.0.state().post.open);
        let content = serde_json::to_string(&(epoch, &letters)).unwrap();
        Ok((!letters.is_empty()).then(|| Token { sink: letters_identity(), content }))
    }

    async fn commit(&mut self, token: &Token) -> Result<(), Fault> {
        self.0.sink_call("commit letters").await?;
        assert_eq!(token.sink, letters_identity(), "a token goes to the sink it names");
        let (_, letters): (Epoch, Vec<Letter>) = serde_json::from_str(&token.content).unwrap();
        let mut state = self.0.state();
        if state.tokens.insert(token.content.clone()) {
            state.post.committed.extend(letters);
        }
        Ok(())
    }
}
