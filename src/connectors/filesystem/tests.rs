use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use tempfile::TempDir;

use super::{FilesystemSink, commit, fate, names::HIDDEN, recover_at};
use crate::{
    connector::{Fate, RowReject, Sink, SinkContext},
    formats::{Encoder, Writer},
    model::{Epoch, Fault, FaultKind, Generation, Mend, PipelineName, Token},
};

const INCARNATION: &str = "0123456789abcdef";

/// One line a row; refuses the text "bad".
struct Lines;

impl Encoder for Lines {
    fn encode_rows(
        &mut self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        written: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject> {
        let texts = rows.column(0).as_any().downcast_ref::<StringArray>().unwrap();
        let mut rejects = Vec::new();
        for row in 0..texts.len() {
            if texts.value(row) == "bad" {
                rejects.push(RowReject { row, reason: "bad".to_owned() });
            } else {
                out.extend(texts.value(row).as_bytes());
                written(row, out);
            }
        }
        rejects
    }

    fn line_end(&self) -> &[u8] {
        b"\n"
    }

    fn extension(&self) -> &'static str {
        "txt"
    }
}

fn context(pipeline: &str, generation: u64) -> SinkContext {
    SinkContext {
        pipeline: PipelineName::new(pipeline).unwrap(),
        incarnation: INCARNATION.to_owned(),
        generation: Generation(generation),
    }
}

fn sink_of(target: &Path, pipeline: &str, generation: u64) -> FilesystemSink {
    FilesystemSink::new(target.to_owned(), Writer::Lines(Box::new(Lines)), 64 << 20, context(pipeline, generation))
}

async fn recovered(target: &Path, generation: u64, tokens: &[Token]) -> FilesystemSink {
    let mut sink = sink_of(target, "a", generation);
    sink.recover(tokens).await.unwrap();
    sink
}

fn rows(texts: &[&str]) -> RecordBatch {
    RecordBatch::try_from_iter([("text", Arc::new(StringArray::from(texts.to_vec())) as ArrayRef)]).unwrap()
}

async fn write(sink: &mut FilesystemSink, texts: &[&str]) {
    assert_eq!(sink.write(&rows(texts)).await.unwrap(), []);
}

async fn prepare(sink: &mut FilesystemSink, epoch: u64) -> Token {
    sink.prepare(Epoch(epoch)).await.unwrap().expect("a token")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.filter(|name| name != HIDDEN).collect();
    names.sort();
    names
}

fn staging(target: &Path) -> PathBuf {
    target.join(HIDDEN).join("a")
}

fn part(generation: u64, epoch: u64) -> String {
    format!("part-{INCARNATION}-{generation}-{epoch}-0.txt")
}

#[tokio::test]
async fn rows_become_visible_whole_and_only_at_the_commit() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("new/out");
    let mut sink = recovered(&target, 1, &[]).await;
    write(&mut sink, &["x", "y"]).await;
    let token = prepare(&mut sink, 7).await;
    assert_eq!(names(&target), [""; 0]);
    assert_eq!(names(&staging(&target)), [part(1, 7)]);
    sink.commit(&token).await.unwrap();
    assert_eq!(names(&target), [part(1, 7)]);
    assert_eq!(names(&staging(&target)), [""; 0]);
    assert_eq!(fs::read_to_string(target.join(part(1, 7))).unwrap(), "x\ny\n");
}

#[tokio::test]
async fn committing_twice_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    write(&mut sink, &["x"]).await;
    let token = prepare(&mut sink, 1).await;
    sink.commit(&token).await.unwrap();
    sink.commit(&token).await.unwrap();
    assert_eq!(names(dir.path()), [part(1, 1)]);
    fs::remove_file(dir.path().join(part(1, 1))).unwrap();
    sink.commit(&token).await.unwrap();
    assert_eq!(names(dir.path()), [""; 0], "a reader may move what was committed away");
}

#[tokio::test]
async fn an_epoch_without_rows_makes_no_file() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    assert_eq!(sink.prepare(Epoch(1)).await.unwrap(), None);
    let rejects = sink.write(&rows(&["bad"])).await.unwrap();
    assert_eq!(rejects.len(), 1);
    assert_eq!(sink.prepare(Epoch(2)).await.unwrap(), None);
    assert_eq!(names(&staging(dir.path())), [""; 0]);
}

#[tokio::test]
async fn every_row_is_in_the_file_however_many_there_are() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    let texts: Vec<String> = (0..20_000).map(|n| format!("row {n:040}")).collect();
    for some in texts.chunks(300) {
        write(&mut sink, &some.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let token = prepare(&mut sink, 1).await;
    sink.commit(&token).await.unwrap();
    write(&mut sink, &["next"]).await;
    let token = prepare(&mut sink, 2).await;
    sink.commit(&token).await.unwrap();
    let text = fs::read_to_string(dir.path().join(part(1, 1))).unwrap();
    assert!(text.lines().eq(texts.iter().map(String::as_str)));
    assert_eq!(fs::read_to_string(dir.path().join(part(1, 2))).unwrap(), "next\n");
}

#[tokio::test]
async fn a_commit_never_replaces_a_file() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    write(&mut sink, &["x"]).await;
    let token = prepare(&mut sink, 1).await;
    fs::write(dir.path().join(part(1, 1)), "theirs").unwrap();
    let fault = sink.commit(&token).await.unwrap_err();
    assert_eq!(fault.mend, Mend::Never);
    assert_eq!(fs::read_to_string(dir.path().join(part(1, 1))).unwrap(), "theirs");
    assert_eq!(names(&staging(dir.path())), [part(1, 1)], "and loses nothing");
    fs::remove_file(dir.path().join(part(1, 1))).unwrap();
    sink.commit(&token).await.unwrap();
}

#[tokio::test]
async fn a_name_that_was_used_before_is_not_used_again() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    fs::write(dir.path().join(part(1, 1)), "of a pipeline that has another name now").unwrap();
    write(&mut sink, &["x"]).await;
    let token = prepare(&mut sink, 1).await;
    sink.commit(&token).await.unwrap();
    assert_eq!(names(dir.path()), [part(1, 1), format!("part-{INCARNATION}-1-1-1.txt")]);
}

#[tokio::test]
async fn recovery_commits_what_a_token_names_and_discards_the_rest() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    write(&mut sink, &["recorded"]).await;
    let token = prepare(&mut sink, 1).await;
    write(&mut sink, &["prepared, but in no checkpoint"]).await;
    prepare(&mut sink, 2).await;
    let many = "open ".repeat(30_000);
    write(&mut sink, &[&many]).await;
    drop(sink);
    assert_eq!(names(&staging(dir.path())).len(), 3);
    recovered(dir.path(), 2, &[token]).await;
    assert_eq!(names(dir.path()), [part(1, 1)]);
    assert_eq!(names(&staging(dir.path())), [""; 0]);
}

#[tokio::test]
async fn recovery_leaves_the_files_of_others_alone() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(staging(dir.path())).unwrap();
    let others = [
        "notes.txt".to_owned(),
        format!("open-{INCARNATION}-2-1.txt"),
        format!("open-{INCARNATION}-3-1.txt"),
        "part-ffffffffffffffff-1-1-0.txt".to_owned(),
    ];
    for name in &others {
        fs::write(staging(dir.path()).join(name), "x").unwrap();
    }
    fs::write(staging(dir.path()).join(format!("open-{INCARNATION}-1-1.txt")), "x").unwrap();
    let mut sink = recovered(dir.path(), 2, &[]).await;
    assert_eq!(names(&staging(dir.path())), others);
    write(&mut sink, &["x"]).await;
    let token = prepare(&mut sink, 1).await;
    sink.commit(&token).await.unwrap();
    assert_eq!(names(dir.path()), [part(2, 1)]);
}

#[tokio::test]
async fn a_crash_between_link_and_unlink_is_finished_by_recovery() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    write(&mut sink, &["x"]).await;
    let token = prepare(&mut sink, 1).await;
    drop(sink);
    fs::hard_link(staging(dir.path()).join(part(1, 1)), dir.path().join(part(1, 1))).unwrap();
    recovered(dir.path(), 2, &[token]).await;
    assert_eq!(names(dir.path()), [part(1, 1)]);
    assert_eq!(names(&staging(dir.path())), [""; 0]);
}

#[tokio::test]
async fn a_crash_between_two_renames_is_finished_by_recovery() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    write(&mut sink, &["x"]).await;
    let mut token = prepare(&mut sink, 1).await;
    drop(sink);
    // An epoch makes one file so far; a token may hold more.
    let second = format!("part-{INCARNATION}-1-1-1.txt");
    fs::write(staging(dir.path()).join(&second), "y\n").unwrap();
    let first = part(1, 1);
    token.content = token.content.replace(&format!("\"{first}\""), &format!("\"{first}\",\"{second}\""));
    fs::rename(staging(dir.path()).join(&first), dir.path().join(&first)).unwrap();
    recovered(dir.path(), 2, &[token]).await;
    assert_eq!(names(dir.path()), [first, second]);
    assert_eq!(names(&staging(dir.path())), [""; 0]);
}

#[test]
fn without_the_one_step_two_do_the_same() {
    let dir = TempDir::new().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    fs::write(&from, "x").unwrap();
    commit::link_new(&from, &to).unwrap();
    commit::link_new(&from, &to).unwrap();
    assert_eq!(names(dir.path()), ["to"]);
    fs::write(&from, "y").unwrap();
    assert_eq!(commit::link_new(&from, &to).unwrap_err().mend, Mend::Never);
    assert_eq!(fs::read_to_string(to).unwrap(), "x");
}

#[tokio::test]
async fn a_token_is_recovered_at_its_own_target() {
    let dir = TempDir::new().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let mut sink = recovered(&old, 1, &[]).await;
    write(&mut sink, &["x"]).await;
    let token = prepare(&mut sink, 1).await;
    write(&mut sink, &["y"]).await;
    prepare(&mut sink, 2).await;
    drop(sink);
    let refused = sink_of(&new, "a", 2).recover(std::slice::from_ref(&token)).await.unwrap_err();
    assert_eq!(refused.kind, FaultKind::Bug);
    recover_at(&token.sink, std::slice::from_ref(&token), &context("a", 2)).await.unwrap();
    assert_eq!(names(&old), [part(1, 1)]);
    assert_eq!(names(&staging(&old)), [""; 0]);
}

#[tokio::test]
async fn a_missing_disk_does_not_look_like_a_commit() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("mount");
    let mut sink = recovered(&target, 1, &[]).await;
    write(&mut sink, &["x"]).await;
    let token = prepare(&mut sink, 1).await;
    drop(sink);
    fs::rename(&target, dir.path().join("elsewhere")).unwrap();
    fs::create_dir(&target).unwrap();
    let fault = sink_of(&target, "a", 2).recover(std::slice::from_ref(&token)).await.unwrap_err();
    assert_eq!((fault.kind, fault.mend), (FaultKind::Missing, Mend::Never));
    assert!(fault.to_string().contains("`queuewarden state settle a`"), "{fault}");
    fs::remove_dir(&target).unwrap();
    fs::rename(dir.path().join("elsewhere"), &target).unwrap();
    recovered(&target, 2, &[token]).await;
    assert_eq!(names(&target), [part(1, 1)]);
}

#[tokio::test]
async fn what_became_of_a_token_is_seen_from_outside() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("out");
    let mut sink = recovered(&target, 1, &[]).await;
    write(&mut sink, &["x"]).await;
    let token = prepare(&mut sink, 1).await;
    let waiting = Fate::Waiting(staging(&target).join(part(1, 1)).display().to_string());
    assert_eq!(fate(&token).unwrap(), waiting);
    sink.commit(&token).await.unwrap();
    drop(sink);
    assert_eq!(fate(&token).unwrap(), Fate::Committed);
    fs::remove_dir_all(target.join(HIDDEN)).unwrap();
    assert_eq!(fate(&token).unwrap(), Fate::Committed, "the file is in place");
    fs::remove_dir_all(&target).unwrap();
    assert_eq!(fate(&token).unwrap(), Fate::Gone);
    fs::create_dir_all(staging(&target)).unwrap();
    assert_eq!(fate(&token).unwrap(), Fate::Committed, "and its reader has moved it away");
}

async fn refusal(mut sink: FilesystemSink) -> Fault {
    sink.recover(&[]).await.unwrap_err()
}

#[tokio::test]
async fn two_writers_of_one_folder_are_refused_but_not_a_successor() {
    let dir = TempDir::new().unwrap();
    let first = recovered(dir.path(), 1, &[]).await;
    let fault = refusal(sink_of(dir.path(), "b", 1)).await;
    assert!(fault.mend == Mend::Never && fault.to_string().contains("pipeline a already writes"), "{fault}");
    assert_eq!(refusal(sink_of(dir.path(), "a", 1)).await.mend, Mend::Never);
    let successor = recovered(dir.path(), 2, &[]).await;
    drop(first);
    refusal(sink_of(dir.path(), "b", 1)).await;
    drop(successor);
    sink_of(dir.path(), "b", 1).recover(&[]).await.unwrap();
}

#[tokio::test]
async fn a_folder_that_another_process_writes_to_is_refused() {
    let dir = TempDir::new().unwrap();
    let hidden = dir.path().join(HIDDEN);
    fs::create_dir(&hidden).unwrap();
    let lock = fs::File::create(hidden.join("lock")).unwrap();
    lock.lock().unwrap();
    fs::write(hidden.join("lock"), "process 1234, pipeline z\n").unwrap();
    let fault = refusal(sink_of(dir.path(), "a", 1)).await;
    assert!(fault.mend == Mend::Restart && fault.to_string().contains("process 1234"), "{fault}");
}

#[tokio::test]
async fn what_only_a_person_can_mend_says_where() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let fault = refusal(sink_of(&file.join("out"), "a", 1)).await;
    assert!(fault.mend == Mend::Never && fault.to_string().contains(file.to_str().unwrap()), "{fault}");
    assert_eq!(refusal(sink_of(Path::new("relative"), "a", 1)).await.mend, Mend::Never);
}

#[tokio::test]
async fn after_what_no_retry_can_mend_nothing_more_is_written() {
    let dir = TempDir::new().unwrap();
    let mut sink = recovered(dir.path(), 1, &[]).await;
    fs::rename(staging(dir.path()), dir.path().join("gone")).unwrap();
    let large = "x".repeat(200_000);
    assert_eq!(sink.write(&rows(&[&large])).await.unwrap_err().mend, Mend::Never);
    fs::rename(dir.path().join("gone"), staging(dir.path())).unwrap();
    assert_eq!(sink.write(&rows(&["x"])).await.unwrap_err().mend, Mend::Restart);
    assert!(sink.prepare(Epoch(1)).await.is_err());
}

#[tokio::test]
async fn an_epoch_larger_than_the_file_size_makes_several_files_that_are_committed_together() {
    let dir = TempDir::new().unwrap();
    let mut sink = FilesystemSink::new(dir.path().to_owned(), Writer::Lines(Box::new(Lines)), 4, context("a", 1));
    sink.recover(&[]).await.unwrap();
    for texts in [&["a"][..], &["b"], &["c", "d", "e"], &["f"]] {
        write(&mut sink, texts).await;
    }
    let token = prepare(&mut sink, 1).await;
    assert_eq!(names(dir.path()), [""; 0], "nothing is seen before the commit");
    let name = |part: u64| format!("part-{INCARNATION}-1-1-{part}.txt");
    assert_eq!(names(&staging(dir.path())), [name(0), name(1), name(2)]);
    sink.commit(&token).await.unwrap();
    let files: Vec<_> = names(dir.path()).iter().map(|n| fs::read_to_string(dir.path().join(n)).unwrap()).collect();
    assert_eq!(files, ["a\nb\n", "c\nd\ne\n", "f\n"]);
    write(&mut sink, &["g"]).await;
    let token = prepare(&mut sink, 2).await;
    sink.commit(&token).await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(part(1, 2))).unwrap(), "g\n", "an epoch begins files of its own");
}

#[tokio::test]
async fn files_of_which_only_some_were_committed_are_committed_by_the_next_generation() {
    let dir = TempDir::new().unwrap();
    let mut sink = FilesystemSink::new(dir.path().to_owned(), Writer::Lines(Box::new(Lines)), 1, context("a", 1));
    sink.recover(&[]).await.unwrap();
    for text in ["a", "b", "c"] {
        write(&mut sink, &[text]).await;
    }
    let token = prepare(&mut sink, 1).await;
    drop(sink);
    let second = format!("part-{INCARNATION}-1-1-1.txt");
    fs::rename(staging(dir.path()).join(&second), dir.path().join(&second)).unwrap();
    assert!(matches!(fate(&token).unwrap(), Fate::Waiting(_)), "two of three wait");
    let _next = recovered(dir.path(), 2, std::slice::from_ref(&token)).await;
    assert_eq!(names(dir.path()).len(), 3);
    assert_eq!(names(&staging(dir.path())), [""; 0]);
    assert_eq!(fate(&token).unwrap(), Fate::Committed);
}
