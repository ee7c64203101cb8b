//! `queuewarden replay`: dead letters go through their pipeline again, each once, whoever is killed.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{collections::BTreeSet, fs, path::PathBuf, process::Output};

use base64::{Engine, engine::general_purpose::STANDARD};
use common::{
    EmulatorProcess, Place, SOON, binary,
    letters::{letters, names, text_of, with_letters},
    numbers::{lines, numbers, send},
    until,
};

const QUICK: &str = "checkpoint: { interval: 100ms }";

/// A supervisor ran, and left rows and dead letters behind.
struct Scene {
    place: Place,
    endpoint: String,
    _emulator: EmulatorProcess,
}

impl Scene {
    /// `n` is INT at first, so that what is no INT is refused.
    fn after(sent: &[&str]) -> Self {
        Self::after_with(sent, "")
    }

    /// `option`: one of the source, with its indent and newline.
    fn after_with(sent: &[&str], option: &str) -> Self {
        let emulator = EmulatorProcess::start(&[]);
        let endpoint = emulator.endpoint.clone();
        let place = Place::new();
        send(&endpoint, "q", 60, sent);
        let mut scene = Self { place, endpoint, _emulator: emulator };
        scene.define("INT", option);
        let mut supervisor = scene.place.run();
        until(SOON, "the queue is empty", || (scene._emulator.left("q") == 0).then_some(()));
        assert_eq!(supervisor.stop(), 0);
        scene
    }

    fn define(&self, ty: &str, option: &str) {
        let (out, letters) = (self.place.path("out"), self.place.path("letters"));
        let rest = format!("{QUICK}\n{}", with_letters(&letters));
        let definition = numbers(&self.endpoint, "q", &out, &rest);
        let schema = format!("{option}  schema: {{ n: {ty}, message-id: STRING METADATA }}");
        self.place.define("q", &definition.replace("  schema: { n: INT }", &schema));
    }

    fn command(&self, path: &str, to: &str) -> std::process::Command {
        let mut command = binary();
        command.arg("replay").arg(self.place.path(path)).args(["--to", to]);
        command.arg("--pipelines").arg(self.place.path("pipelines")).arg("--state").arg(self.place.path("state"));
        command
    }

    fn replay(&self, path: &str) -> Output {
        self.command(path, "q").output().expect("it runs")
    }

    /// Replays; answers what is said.
    fn replayed(&self, path: &str) -> String {
        let output = self.replay(path);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The numbers written, with the id of each one's message.
    fn rows(&self) -> Vec<(String, String)> {
        let rows = lines(&self.place.path("out")).into_iter().map(|line| {
            let row: serde_json::Value = serde_json::from_str(&line).unwrap();
            (row["n"].to_string(), row["message-id"].as_str().unwrap().to_owned())
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        rows
    }

    fn numbers(&self) -> Vec<String> {
        self.rows().into_iter().map(|(n, _)| n).collect()
    }

    fn letters(&self) -> PathBuf {
        self.place.path("letters")
    }
}

#[test]
fn once_the_definition_is_mended_exactly_the_dead_letters_are_written_and_a_second_time_nothing() {
    let scene = Scene::after(&["{\"n\":1}", "{\"n\":\"two\"}", "{\"n\":3}", "{\"n\":\"four\"}", "broken"]);
    assert_eq!((scene.numbers(), letters(&scene.letters()).len()), (vec!["1".to_owned(), "3".to_owned()], 3));
    let ids: BTreeSet<String> =
        letters(&scene.letters()).iter().map(|letter| letter["message_id"].as_str().unwrap().to_owned()).collect();

    scene.define("STRING", "");
    let said = scene.replayed("letters");
    assert_eq!(said, "3 dead letters: 2 rows written, 1 dead again\n");
    assert_eq!(scene.numbers(), ["\"four\"", "\"two\"", "1", "3"]);
    let replayed = scene.rows().into_iter().filter(|(n, _)| n.starts_with('"')).map(|(_, id)| id);
    assert!(replayed.into_iter().all(|id| ids.contains(&id)), "metadata is that of the message");

    // The one that was refused again is a letter of its own, which says where it came from.
    let all = letters(&scene.letters());
    let again: Vec<_> = all.iter().filter(|letter| letter["pipeline"] == "q.replay").collect();
    assert_eq!((all.len(), again.len(), text_of(&again[0]["body"]).as_str()), (4, 1, "broken"));
    let first = all.iter().find(|letter| letter["id"] == again[0]["message_id"]).expect("the letter it was");
    assert_eq!(first["metadata"], again[0]["metadata"]);

    let said = scene.replayed("letters");
    assert_eq!(said, "4 dead letters: 0 rows written, 1 dead again, 3 replayed before\n");
    // Known by what it is, also in another file and under another name of the pipeline.
    let folder = scene.letters();
    let oldest = folder.join(&names(&folder)[0]);
    fs::rename(&oldest, scene.place.path("moved.json")).unwrap();
    let said = scene.replayed("moved.json");
    assert!(said.starts_with("nothing to do: all ") && said.contains("state reset q.replay"), "{said}");
    for (old, new) in [("q", "r"), ("q.replay", "r.replay")] {
        let mut rename = binary();
        rename.args(["state", "rename", old, new]).arg("--state").arg(scene.place.path("state"));
        assert!(rename.output().unwrap().status.success());
    }
    let pipelines = scene.place.path("pipelines");
    fs::rename(pipelines.join("q.yaml"), pipelines.join("r.yaml")).unwrap();
    let output = scene.command("moved.json", "r").output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("nothing to do"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("are of the pipeline q"), "{output:?}");
    assert_eq!(scene.numbers().len(), 4);
}

#[test]
fn a_body_whose_encoding_was_broken_is_decoded_as_the_definition_says_now() {
    let scene = Scene::after_with(&["{\"n\":1}", "eyJuIjoyfQ=="], "  bodyEncoding: base64\n");
    assert_eq!((scene.numbers(), letters(&scene.letters()).len()), (vec!["2".to_owned()], 1));
    assert_eq!(scene.replayed("letters"), "1 dead letters: 0 rows written, 1 dead again\n");
    scene.define("INT", "");
    assert_eq!(scene.replayed("letters"), "2 dead letters: 1 rows written, 1 replayed before\n");
    assert_eq!(scene.numbers(), ["1", "2"]);
}

#[test]
fn a_replay_writes_files_that_no_other_ever_had_the_name_of_and_leaves_the_pipeline_its_state() {
    let mut scene = Scene::after(&["{\"n\":1}", "{\"n\":\"two\"}"]);
    let before = names(&scene.place.path("out"));
    scene.define("STRING", "");
    scene.replayed("letters");
    let after = names(&scene.place.path("out"));
    let incarnations: BTreeSet<_> = after.iter().map(|name| name.split('-').nth(1).unwrap()).collect();
    assert_eq!((before.len(), after.len(), incarnations.len()), (1, 2, 2), "{after:?}");
    // The supervisor goes on where it was.
    send(&scene.endpoint, "q", 60, &["{\"n\":\"five\"}"]);
    let mut supervisor = scene.place.run();
    until(SOON, "the queue is empty", || (scene._emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.pipeline("q").unwrap()["generation"], 2);
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(scene.numbers(), ["\"five\"", "\"two\"", "1"]);
}

#[test]
fn what_cannot_be_replayed_is_told_before_anything_is_written() {
    let mut scene = Scene::after(&["{\"n\":1}", "{\"n\":\"two\"}"]);
    let told = |output: Output| (output.status.code(), String::from_utf8(output.stderr).unwrap());
    scene.define("STRING", "");

    let (code, text) = told(scene.command("letters", "p").output().unwrap());
    assert_eq!(code, Some(66));
    assert!(text.contains("there is no pipeline `p`"), "{text}");
    let (code, text) = told(scene.replay("nowhere"));
    assert!(code == Some(66) && text.contains("nowhere"), "{text}");
    let (code, text) = told(scene.replay("out"));
    assert_eq!(code, Some(65));
    assert!(text.contains(".json:1: not a dead letter: missing field `id`"), "{text}");

    fs::create_dir(scene.place.path("empty")).unwrap();
    fs::write(scene.place.path("empty/notes.txt"), "x").unwrap();
    let output = scene.replay("empty");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "nothing to do: there is no dead letter in 0 files\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("notes.txt is left out"));

    let (code, text) =
        told(scene.command("letters", "q").arg("--state").arg(scene.place.path("elsewhere")).output().unwrap());
    assert_eq!(code, Some(64), "given twice: {text}");
    let mut elsewhere = binary();
    elsewhere
        .arg("replay")
        .arg(scene.letters())
        .args(["--to", "q"])
        .arg("--pipelines")
        .arg(scene.place.path("pipelines"));
    let (code, text) = told(elsewhere.arg("--state").arg(scene.place.path("elsewhere")).output().unwrap());
    assert!(code == Some(66) && text.contains("there is no state in"), "{text}");

    let mut supervisor = scene.place.run();
    let (code, text) = told(scene.replay("letters"));
    assert!(code == Some(75) && text.contains("stop the supervisor first"), "{text}");
    assert_eq!(supervisor.stop(), 0);

    scene.place.define("q", "source: {}");
    let (code, text) = told(scene.replay("letters"));
    assert!(code == Some(78) && text.contains("is not valid"), "{text}");
    assert_eq!(scene.numbers(), ["1"]);
}

#[test]
fn under_fail_the_neighbours_are_written_and_the_next_replay_goes_on_from_there() {
    let scene = Scene::after(&["{\"n\":\"two\"}", "broken", "{\"n\":\"four\"}"]);
    scene.define("STRING", "");
    let without = |text: String| text.split("on_error:").next().unwrap().to_owned();
    let file = scene.place.path("pipelines").join("q.yaml");
    fs::write(&file, without(fs::read_to_string(&file).unwrap())).unwrap();
    for _ in 0..2 {
        let output = scene.replay("letters");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("not all was replayed") && text.contains("cannot be processed"), "{text}");
        assert_eq!(scene.numbers(), ["\"four\"", "\"two\""]);
    }
    let text = fs::read_to_string(&file).unwrap() + "on_error: skip\n";
    fs::write(&file, text).unwrap();
    assert_eq!(scene.replayed("letters"), "3 dead letters: 0 rows written, 1 skipped, 2 replayed before\n");
}

#[test]
fn of_a_body_of_many_rows_only_the_row_of_the_letter_is_written() {
    let mut place = Place::new();
    let (out, folder) = (place.path("out"), place.path("letters"));
    // A message of datagen is a stretch of rows; its body names the first and the one behind the last.
    let text = format!(
        "source:\n  connector: datagen\n  number-of-rows: 10\n  fields.n.kind: sequence\n  fields.n.start: 1\n  \
         fields.n.end: 400\n  schema: {{ n: INT }}\nsink: {{ connector: filesystem, path: {}, format: json }}\n{QUICK}\n{}",
        out.display(),
        with_letters(&folder)
    );
    place.define("q", &text);
    let status = place.run_command().arg("--exit-when-finished").status().expect("it runs");
    assert_eq!((status.code(), lines(&out).len()), (Some(0), 10));

    let body = STANDARD.encode([0_u64.to_le_bytes(), 256_u64.to_le_bytes()].concat());
    let letter = |id: &str, row: u32| {
        let (stage, pipeline, metadata) = ("sink", "q", serde_json::json!({}));
        let letter = serde_json::json!({
            "id": id, "body": body, "row": row, "stage": stage, "pipeline": pipeline, "metadata": metadata
        });
        letter.to_string()
    };
    let file = place.path("given.json");
    fs::write(&file, [letter("a", 99), letter("b", 255), letter("c", 256), letter("a", 99)].join("\n")).unwrap();
    fs::remove_dir_all(&out).unwrap();
    let mut command = binary();
    command.arg("replay").arg(&file).args(["--to", "q"]);
    let output =
        command.arg("--pipelines").arg(place.path("pipelines")).arg("--state").arg(place.path("state")).output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_eq!(said, "4 dead letters: 2 rows written, 1 dead again, 1 replayed before\n");
    assert_eq!(lines(&out), ["{\"n\":100}", "{\"n\":256}"]);
    let again = letters(&folder);
    assert_eq!((again.len(), &again[0]["row"]), (1, &256.into()));
    assert!(again[0]["reason"].as_str().unwrap().contains("only 256 rows"), "{again:?}");
}

#[cfg(feature = "failpoints")]
mod killed {
    use super::*;
    use common::{
        letters::{PLACES, once_each},
        numbers::bodies,
    };

    #[test]
    fn a_replay_that_is_killed_at_any_place_is_finished_by_the_next_one() {
        let sent: Vec<String> = (0..12).map(|n| format!("{{\"n\":\"a{n}\"}}")).chain(["bad".to_owned()]).collect();
        let scene = Scene::after(&bodies(&sent));
        fs::create_dir(scene.place.path("given")).unwrap();
        let given = |scene: &Scene| {
            for name in names(&scene.letters()) {
                fs::copy(scene.letters().join(&name), scene.place.path("given").join(&name)).unwrap();
            }
        };
        given(&scene);
        scene.define("STRING", "");
        for (round, at) in PLACES.into_iter().enumerate() {
            if round > 0 {
                // What was replayed is forgotten, so that there is something to be done again.
                let mut reset = binary();
                reset.args(["state", "reset", "q.replay"]).arg("--state").arg(scene.place.path("state"));
                assert!(reset.output().unwrap().status.success());
                fs::remove_dir_all(scene.place.path("out")).unwrap();
                fs::remove_dir_all(scene.letters()).unwrap();
            }
            let killed = scene.command("given", "q").env("QUEUEWARDEN_KILL_AT", at).output().expect("it runs");
            assert_eq!(killed.status.code(), None, "{at}: it is killed");
            let said = scene.replayed("given");
            println!("{at}: {said}");
            once_each(&scene.numbers(), 12, at);
            let letters: Vec<String> =
                letters(&scene.letters()).iter().map(|letter| text_of(&letter["body"])).collect();
            if round > 0 {
                assert_eq!(letters, ["bad"], "{at}");
            }
            let said = scene.replayed("given");
            assert!(said.starts_with("nothing to do"), "{at}: {said}");
        }
    }
}

#[test]
fn a_state_that_never_saw_the_pipeline_is_told_before_anything_is_written() {
    let scene = Scene::after(&["{\"n\":1}", "{\"n\":\"two\"}"]);
    scene.define("STRING", "");
    let mut other = Place::new();
    other.define("made", "source: { connector: datagen, schema: { n: INT } }\nsink: { connector: blackhole }");
    let mut supervisor = other.run();
    supervisor.wait_for_state("made", "running");
    assert_eq!(supervisor.stop(), 0);
    let mut command = binary();
    command.arg("replay").arg(scene.letters()).args(["--to", "q"]);
    command.arg("--pipelines").arg(scene.place.path("pipelines")).arg("--state").arg(other.path("state"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(66), "{said}");
    assert!(said.contains("has never seen the pipeline q") && said.contains("It knows: made"), "{said}");
    assert_eq!(scene.numbers(), ["1"]);
    scene.replayed("letters");
    assert_eq!(scene.rows().len(), 2, "with its own state it works");
}

#[test]
fn a_pipe_among_the_letters_is_not_waited_for() {
    let scene = Scene::after(&["{\"n\":1}", "{\"n\":\"two\"}"]);
    let pipe = scene.letters().join("pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    scene.define("STRING", "");
    let output = scene.replay("letters");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("pipe.json is left out: it is neither a file nor a folder"), "{said}");
    let output = scene.replay("letters/pipe.json");
    assert_eq!(output.status.code(), Some(66), "{}", String::from_utf8_lossy(&output.stderr));
}
