use std::{fs, path::Path};

use tempfile::TempDir;

use super::{
    OpenError, Opened, StateDir, Stopped, StoppedError, StoreError, Stored,
    tests::{blobs, checkpoint, database, ids, name, open, source, stamped},
};
use crate::model::{Epoch, Generation, LaneId, PipelineName, SinkIdentity, SourceIdentity, Token};

fn token() -> Token {
    let sink = SinkIdentity { connector: "filesystem".to_owned(), target: "/out".to_owned() };
    Token { sink, content: "what was prepared".to_owned() }
}

/// Two epochs of one id each; what the second one prepared is pending, or not.
async fn fill(dir: &Path, pipeline: &PipelineName, tokens: Vec<Token>) {
    let state = StateDir::open(dir).unwrap();
    let opened = open(&state.store(), pipeline).await;
    for epoch in 1..=2 {
        let mut next = checkpoint(pipeline, &opened, opened.epoch.0 + epoch);
        next.added = ids(epoch..epoch + 1);
        next.uptime_ms = opened.uptime_ms + epoch * 10;
        next.positions.insert(LaneId("lane".into()), epoch);
        next.tokens = if epoch == 2 { tokens.clone() } else { vec![token()] };
        next.finished = epoch == 2;
        state.store().checkpoint(next).await.unwrap();
    }
}

async fn reopened(dir: &Path, pipeline: &PipelineName, source: &SourceIdentity) -> Result<Opened, StoreError> {
    let state = StateDir::open(dir).unwrap();
    state.store().open_generation(pipeline, source).await
}

fn stopped(dir: &Path) -> Stopped {
    Stopped::open(dir).unwrap()
}

/// Changes a value of the database behind everybody's back.
fn spoil(dir: &Path, prefix: &[u8]) {
    let db = database(dir);
    let (key, mut value) = db.scan_prefix(prefix).next().unwrap().unwrap();
    value[20] ^= 1;
    db.insert(key, value).unwrap();
    db.flush().unwrap();
}

#[tokio::test]
async fn what_is_stored_is_listed_and_shown() {
    let dir = TempDir::new().unwrap();
    fill(dir.path(), &name("b"), vec![token()]).await;
    fill(dir.path(), &name("a"), Vec::new()).await;
    let state = stopped(dir.path());
    let shown = state.show(&name("b")).unwrap();
    let expected = Stored {
        source: Some(source()),
        generation: Generation(1),
        epoch: Epoch(2),
        positions: [("lane".to_owned(), 2)].into(),
        tokens: vec![token()],
        ids: 2,
        keys: 0,
        uptime_ms: 20,
        finished: true,
        deltas: super::Deltas { count: 2, ids: 2 },
    };
    assert_eq!(shown, expected);
    let listed = state.list().unwrap();
    assert_eq!(listed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(listed[1].1, Ok(expected));
}

#[tokio::test]
async fn a_damaged_state_is_listed_beside_the_others() {
    let dir = TempDir::new().unwrap();
    fill(dir.path(), &name("a"), Vec::new()).await;
    fill(dir.path(), &name("b"), Vec::new()).await;
    spoil(dir.path(), b"p\x01ad");
    let listed = stopped(dir.path()).list().unwrap();
    assert!(matches!(&listed[0].1, Err(StoppedError::Damaged(_))), "{listed:?}");
    assert!(listed[1].1.is_ok());
}

#[tokio::test]
async fn an_unknown_name_is_told_the_nearest_one() {
    let dir = TempDir::new().unwrap();
    fill(dir.path(), &name("orders"), Vec::new()).await;
    let mut state = stopped(dir.path());
    let errors = [
        state.show(&name("order")).unwrap_err(),
        state.reset(&name("ordesr")).unwrap_err(),
        state.rename(&name("Orders"), &name("x")).unwrap_err(),
        state.settle(&name("oders"), true).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("did you mean `orders`?"), "{error}");
    }
}

#[tokio::test]
async fn a_reset_forgets_everything_but_where_generations_and_epochs_stand() {
    let dir = TempDir::new().unwrap();
    let (a, b) = (name("a"), name("b"));
    fill(dir.path(), &a, Vec::new()).await;
    fill(dir.path(), &b, Vec::new()).await;
    let before = stopped(dir.path()).show(&b).unwrap();
    let forgotten = stopped(dir.path()).reset(&a).unwrap();
    assert_eq!((forgotten.generation, forgotten.epoch), (Generation(1), Epoch(2)));
    assert_eq!(forgotten.stored.unwrap().ids, 2);

    assert_eq!(stopped(dir.path()).show(&b).unwrap(), before, "the neighbour keeps its state");
    let other = SourceIdentity("mns http://127.0.0.1:1 others".to_owned());
    let opened = reopened(dir.path(), &a, &other).await.unwrap();
    let expected = Opened { generation: Generation(2), epoch: Epoch(2), ..Opened::default() };
    assert_eq!(opened, expected, "no id, no position, not finished; and no name of a file comes again");
    let refused = reopened(dir.path(), &a, &source()).await;
    assert!(matches!(refused, Err(StoreError::OtherSource { .. })), "the state belongs to the new source now");
}

#[tokio::test]
async fn a_damaged_state_is_reset_and_goes_on_counting() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    fill(dir.path(), &a, vec![token()]).await;
    spoil(dir.path(), b"p\x01ad");
    let refused = reopened(dir.path(), &a, &source()).await.unwrap_err().to_string();
    assert!(refused.contains("`queuewarden state reset a`"), "{refused}");
    let forgotten = stopped(dir.path()).reset(&a).unwrap();
    assert_eq!(forgotten.tokens, [token()], "told, since it is given up");
    let opened = reopened(dir.path(), &a, &source()).await.unwrap();
    assert_eq!(opened, Opened { generation: Generation(2), epoch: Epoch(2), ..Opened::default() });
}

#[tokio::test]
async fn a_state_without_its_record_is_reset_beyond_every_generation_there_was() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    fill(dir.path(), &a, Vec::new()).await;
    spoil(dir.path(), b"p\x01ar");
    let forgotten = stopped(dir.path()).reset(&a).unwrap();
    assert!(forgotten.generation > Generation(1_000_000_000), "{forgotten:?}");
    assert_eq!(forgotten.epoch, Epoch(2));
    let opened = reopened(dir.path(), &a, &source()).await.unwrap();
    assert_eq!((opened.generation.0, opened.ids), (forgotten.generation.0 + 1, Vec::new()));
}

#[tokio::test]
async fn while_output_is_pending_a_state_is_neither_reset_nor_renamed() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    fill(dir.path(), &a, vec![token()]).await;
    let mut state = stopped(dir.path());
    let before = state.show(&a).unwrap();
    for refused in [state.reset(&a).map(drop), state.rename(&a, &name("b"))] {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("what was prepared") && text.contains("`queuewarden state settle a`"), "{text}");
    }
    assert_eq!(state.show(&a).unwrap(), before);
}

#[tokio::test]
async fn a_renamed_state_goes_on_under_its_new_name() {
    let dir = TempDir::new().unwrap();
    let (old, new) = (name("old"), name("another-name"));
    fill(dir.path(), &old, Vec::new()).await;
    let before = stopped(dir.path()).show(&old).unwrap();
    stopped(dir.path()).rename(&old, &new).unwrap();
    assert_eq!(stopped(dir.path()).show(&new).unwrap(), before);
    assert!(matches!(stopped(dir.path()).show(&old), Err(StoppedError::Unknown { .. })));
    let opened = reopened(dir.path(), &new, &source()).await.unwrap();
    assert_eq!((opened.generation, opened.epoch), (Generation(2), Epoch(2)));
    let mut kept = opened.ids;
    kept.sort_by_key(|(_, stamp)| *stamp);
    assert_eq!(kept, [stamped(ids(1..2), 10), stamped(ids(2..3), 20)].concat());
    assert_eq!(reopened(dir.path(), &old, &source()).await.unwrap().generation, Generation(1), "nothing is left of it");
}

#[tokio::test]
async fn a_large_state_is_renamed_and_reset_without_a_file_that_is_never_synced() {
    let dir = TempDir::new().unwrap();
    let (a, b) = (name("a"), name("b"));
    {
        let state = StateDir::open(dir.path()).unwrap();
        let opened = open(&state.store(), &a).await;
        let mut next = checkpoint(&a, &opened, 1);
        next.added = ids(0..100_000);
        state.store().checkpoint(next).await.unwrap();
    }
    let mut state = stopped(dir.path());
    state.rename(&a, &b).unwrap();
    assert_eq!(state.show(&b).unwrap().ids, 100_000);
    assert_eq!(blobs(dir.path()), 0);
    state.reset(&b).unwrap();
    assert_eq!(blobs(dir.path()), 0);
    drop(state);
    let db = database(dir.path());
    assert_eq!(db.len(), 2, "what the store is, and one record");
}

#[tokio::test]
async fn a_name_that_has_a_state_is_not_renamed_to() {
    let dir = TempDir::new().unwrap();
    fill(dir.path(), &name("a"), Vec::new()).await;
    fill(dir.path(), &name("b"), Vec::new()).await;
    let mut state = stopped(dir.path());
    for new in ["a", "b"] {
        assert_eq!(state.rename(&name("a"), &name(new)), Err(StoppedError::Taken { name: name(new) }));
    }
    assert_eq!(state.list().unwrap().len(), 2);
}

#[tokio::test]
async fn settling_drops_the_tokens_and_the_ids_of_their_epoch_if_they_are_to_come_again() {
    for (again, left) in
        [(true, stamped(ids(1..2), 10)), (false, [stamped(ids(1..2), 10), stamped(ids(2..3), 20)].concat())]
    {
        let dir = TempDir::new().unwrap();
        let a = name("a");
        fill(dir.path(), &a, vec![token()]).await;
        assert_eq!(stopped(dir.path()).settle(&a, again).unwrap(), usize::from(again));
        let opened = reopened(dir.path(), &a, &source()).await.unwrap();
        assert_eq!((opened.tokens, opened.epoch), (Vec::new(), Epoch(3)), "epochs go on counting");
        let mut ids = opened.ids;
        ids.sort_by_key(|(_, stamp)| *stamp);
        assert_eq!(ids, left);
        assert_eq!(stopped(dir.path()).settle(&a, again).unwrap(), 0, "nothing is pending any more");
    }
}

#[tokio::test]
async fn settling_finds_the_ids_of_the_last_epoch_in_a_snapshot() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    {
        let state = StateDir::open(dir.path()).unwrap();
        let opened = open(&state.store(), &a).await;
        let mut next = checkpoint(&a, &opened, 1);
        next.uptime_ms = 20;
        next.snapshot = Some([stamped(ids(0..3), 7), stamped(ids(3..5), 20)].concat());
        next.tokens = vec![token()];
        state.store().checkpoint(next).await.unwrap();
    }
    assert_eq!(stopped(dir.path()).settle(&a, true).unwrap(), 2);
    assert_eq!(stopped(dir.path()).show(&a).unwrap().ids, 3);
}

#[tokio::test]
async fn a_directory_that_is_in_use_or_holds_no_state_is_not_opened() {
    let dir = TempDir::new().unwrap();
    assert!(matches!(Stopped::open(dir.path()), Err(OpenError::Missing { .. })));
    assert!(matches!(Stopped::open(&dir.path().join("nowhere")), Err(OpenError::Missing { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is created");
    let state = StateDir::open(dir.path()).unwrap();
    state.set_address("127.0.0.1:9870").unwrap();
    let text = Stopped::open(dir.path()).err().unwrap().to_string();
    assert!(text.contains(&std::process::id().to_string()) && text.contains("127.0.0.1:9870"), "{text}");
    drop(state);
    let stopped = stopped(dir.path());
    assert!(matches!(StateDir::open(dir.path()), Err(OpenError::Locked { pid: None, .. })), "and it keeps others out");
    drop(stopped);
    StateDir::open(dir.path()).unwrap();
}

#[tokio::test]
async fn a_store_that_is_removed_or_moved_while_it_is_in_use_fails() {
    type Harm = fn(&Path);
    let harms: [Harm; 3] = [
        |dir| fs::remove_dir_all(dir).unwrap(),
        |dir| fs::remove_dir_all(dir.join("store")).unwrap(),
        |dir| {
            fs::rename(dir.join("store"), dir.join("moved")).unwrap();
            fs::create_dir(dir.join("store")).unwrap();
            fs::write(dir.join("store/db"), "another").unwrap();
        },
    ];
    for (at, harm) in harms.into_iter().enumerate() {
        let dir = TempDir::new().unwrap();
        let (a, dir) = (name("a"), dir.path().join("state"));
        let state = StateDir::open(&dir).unwrap();
        let opened = open(&state.store(), &a).await;
        harm(&dir);
        let refused = state.store().checkpoint(checkpoint(&a, &opened, 1)).await;
        let Err(StoreError::Poisoned(reason)) = refused else { panic!("{at}: {refused:?}") };
        assert!(reason.contains(dir.join("store/db").to_str().unwrap()) && reason.contains("was removed"), "{reason}");
    }
}

#[test]
fn an_incarnation_that_cannot_be_read_makes_the_state_unreadable() {
    for marker in [&b"\xff\xfe"[..], b"", b"0123456789abcdeg", b"0123456789abcdef0", b"0123456789ABCDEF"] {
        let dir = TempDir::new().unwrap();
        drop(StateDir::open(dir.path()).unwrap());
        fs::write(dir.path().join("incarnation"), marker).unwrap();
        match StateDir::open(dir.path()) {
            Err(OpenError::Unreadable { reason, .. }) => assert!(reason.contains("16 lower-case"), "{reason}"),
            other => panic!("{marker:?}: {other:?}"),
        }
    }
}
