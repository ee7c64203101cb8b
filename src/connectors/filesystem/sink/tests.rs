use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};

use super::*;
use crate::{
    formats::Encoder,
    model::{Generation, PipelineName},
};

struct FirstText;

impl Encoder for FirstText {
    fn encode_rows(
        &mut self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        written: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject> {
        let texts = rows.column(0).as_any().downcast_ref::<StringArray>().unwrap();
        out.extend(texts.value(0).as_bytes());
        written(0, out);
        Vec::new()
    }

    fn line_end(&self) -> &[u8] {
        b""
    }

    fn extension(&self) -> &'static str {
        "txt"
    }
}

fn file_of(sink: &mut FilesystemSink) -> &mut Option<OpenFile> {
    match &mut sink.writer {
        State::Ready(writer) => &mut writer.file,
        _ => panic!("no writer"),
    }
}

#[tokio::test]
async fn a_full_disk_can_be_waited_for_without_losing_or_repeating_a_row() {
    let dir = tempfile::TempDir::new().unwrap();
    let context = SinkContext {
        pipeline: PipelineName::new("a").unwrap(),
        incarnation: "0123456789abcdef".to_owned(),
        generation: Generation(1),
    };
    let mut sink = FilesystemSink::new(dir.path().to_owned(), Format::Lines(Box::new(FirstText)), u64::MAX, context);
    sink.recover(&[]).await.unwrap();
    let row =
        |text: &str| RecordBatch::try_from_iter([("t", Arc::new(StringArray::from(vec![text])) as ArrayRef)]).unwrap();
    let large = "x".repeat(PIECE_BYTES);
    sink.write(&row(&large)).await.unwrap();
    sink.write(&row("small")).await.unwrap();

    let good = file_of(&mut sink).take().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    *file_of(&mut sink) = Some(OpenFile { file: full, path: good.path.clone(), length: good.length });
    for _ in 0..2 {
        assert_eq!(sink.write(&row(&large)).await.unwrap_err().mend, Mend::Retry);
        assert_eq!(sink.prepare(Epoch(1)).await.unwrap_err().mend, Mend::Retry);
    }
    // Half of what was refused got through.
    good.file.write_all_at(b"smallxxxx", good.length).unwrap();
    *file_of(&mut sink) = Some(good);
    let token = sink.prepare(Epoch(1)).await.unwrap().unwrap();
    sink.commit(&token).await.unwrap();
    let file = dir.path().join("part-0123456789abcdef-1-1-0.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), large + "small");
}

/// Holds the texts of a file until it ends, and writes them in brackets.
#[derive(Default)]
struct Bracketed(Vec<String>);

impl FileEncoder for Bracketed {
    fn rows(&mut self, rows: &RecordBatch, _: &mut Vec<u8>) -> Result<Vec<RowReject>, String> {
        let texts = rows.column(0).as_any().downcast_ref::<StringArray>().unwrap();
        self.0.extend(texts.iter().flatten().map(str::to_owned));
        Ok(Vec::new())
    }

    fn pending(&self) -> u64 {
        self.0.iter().map(|text| text.len() as u64).sum()
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        if !self.0.is_empty() {
            out.extend(format!("[{}]", self.0.join(",")).as_bytes());
            self.0.clear();
        }
        Ok(())
    }

    fn extension(&self) -> &'static str {
        "txt"
    }
}

fn row(text: &str) -> RecordBatch {
    RecordBatch::try_from_iter([("t", Arc::new(StringArray::from(vec![text])) as ArrayRef)]).unwrap()
}

async fn of_files(dir: &Path, file_size: u64) -> FilesystemSink {
    let context = SinkContext {
        pipeline: PipelineName::new("a").unwrap(),
        incarnation: "0123456789abcdef".to_owned(),
        generation: Generation(1),
    };
    let format = Format::Files(Box::new(Bracketed::default()));
    let mut sink = FilesystemSink::new(dir.to_owned(), format, file_size, context);
    sink.recover(&[]).await.unwrap();
    sink
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|name| name.is_file());
    names.sort();
    names.iter().map(|name| std::fs::read_to_string(name).unwrap()).collect()
}

#[tokio::test]
async fn files_with_an_end_are_whole_at_each_size_and_each_checkpoint() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut sink = of_files(dir.path(), 4).await;
    for text in ["a", "bcd", "ef", "ghi", "j"] {
        assert_eq!(sink.write(&row(text)).await.unwrap(), []);
    }
    let token = sink.prepare(Epoch(1)).await.unwrap().unwrap();
    assert_eq!(files(dir.path()), [""; 0]);
    sink.commit(&token).await.unwrap();
    assert_eq!(files(dir.path()), ["[a,bcd]", "[ef,ghi]", "[j]"]);
    assert_eq!(sink.prepare(Epoch(2)).await.unwrap(), None, "an epoch without rows has no file");
}

#[tokio::test]
async fn a_full_disk_neither_loses_nor_repeats_what_a_format_of_files_has_taken() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut sink = of_files(dir.path(), 4).await;
    // Nothing has been written yet, so there is a file to take away only if one is begun.
    let State::Ready(writer) = &mut sink.writer else { panic!("no writer") };
    let good = writer.begin().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    writer.file = Some(OpenFile { file: full, path: good.path.clone(), length: 0 });

    assert_eq!(sink.write(&row("taken")).await.unwrap(), [], "the format has it, whatever the disk says");
    for _ in 0..2 {
        assert_eq!(sink.write(&row("refused")).await.unwrap_err().mend, Mend::Retry);
        assert_eq!(sink.prepare(Epoch(1)).await.unwrap_err().mend, Mend::Retry);
    }
    *file_of(&mut sink) = Some(good);
    assert_eq!(sink.write(&row("next")).await.unwrap(), []);
    let token = sink.prepare(Epoch(1)).await.unwrap().unwrap();
    sink.commit(&token).await.unwrap();
    assert_eq!(files(dir.path()), ["[taken]", "[next]"]);
}
