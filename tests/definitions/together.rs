//! What is only wrong of several definitions together.

use std::{fs, os::unix::fs::symlink, path::Path};

use queuewarden::{
    connectors::{self, Loaded},
    definition::Style,
};

use crate::{EXAMPLE, environment};

/// Loads files of these contents, called `a.yaml`, `b.yaml` and so on.
fn load(folder: &Path, texts: &[String]) -> Vec<Loaded> {
    let files = ('a'..).zip(texts).map(|(letter, text)| {
        let file = folder.join(format!("{letter}.yaml"));
        fs::write(&file, text).unwrap();
        file
    });
    connectors::load(&files.collect::<Vec<_>>(), &environment())
}

/// What is told of each file, without its folder.
fn told(loaded: &[Loaded], folder: &Path) -> Vec<String> {
    let prefix = format!("{}/", folder.display());
    assert!(loaded.iter().all(|one| one.plan.is_none() == one.read.report.has_errors()));
    loaded.iter().map(|one| one.read.report.render(Style::Line).replace(&prefix, "")).collect()
}

fn definition(name: &str, queue: &str, path: &str) -> String {
    EXAMPLE
        .replace("name: oss-created", &format!("name: {name}"))
        .replace("oss-events", queue)
        .replace("path: out", &format!("path: {path}"))
}

#[test]
fn a_name_a_queue_and_a_folder_belong_to_the_first_that_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let texts = [
        definition("a", "qa", "a"),
        definition("b", "qa", "b"),
        definition("c", "qc", "a"),
        definition("a", "qd", "d"),
        definition("a", "qa", "a"),
        // What a refused one wanted is free.
        definition("b", "qc", "b"),
    ];
    let name = "another pipeline is called `a`; it is declared in a.yaml; each needs a name of its own";
    let queue =
        "another pipeline reads this queue; it is declared in a.yaml; two readers would take each other's messages";
    let path = "another pipeline writes to this folder; it is declared in a.yaml; each needs a folder of its own";
    let loaded = load(folder, &texts);
    assert_eq!(
        told(&loaded, folder),
        [
            String::new(),
            format!("b.yaml:6:14: error: {queue}\n"),
            format!("c.yaml:21:9: error: {path}\n"),
            format!("d.yaml:1:7: error: {name}\n"),
            format!("e.yaml:1:7: error: {name}\ne.yaml:6:14: error: {queue}\ne.yaml:21:9: error: {path}\n"),
            String::new(),
        ]
    );
    let names: Vec<_> = loaded.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "2-b", "c", "d", "e", "b"], "each is shown under a name of its own");
}

#[test]
fn one_queue_is_one_however_its_endpoint_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str, endpoint: &str| {
        definition(name, "q", name).replace("endpoint: http://127.0.0.1:9871", &format!("endpoint: {endpoint}"))
    };
    let texts = [
        at("a", "http://1.mns.cn-hangzhou.aliyuncs.com"),
        at("b", "https://1.mns.cn-hangzhou-internal.aliyuncs.com/"),
        at("c", "HTTP://1.MNS.cn-hangzhou.aliyuncs.com:80"),
        at("d", "http://2.mns.cn-hangzhou.aliyuncs.com"),
    ];
    let valid: Vec<_> = load(dir.path(), &texts).iter().map(|one| one.plan.is_some()).collect();
    assert_eq!(valid, [true, false, false, true]);
}

#[test]
fn one_folder_is_one_however_its_path_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir(root.join("real")).unwrap();
    symlink("real", root.join("link")).unwrap();
    let texts = |second: &str| {
        let path = |path: &str| root.join(path).display().to_string();
        [definition("a", "qa", &path("real/out")), definition("b", "qb", &path(second))]
    };
    for second in
        ["real/out", "real/out/", "./real/./out", "real/x/../out", "link/out", "link/../real/out", "link//out"]
    {
        let loaded = load(&root, &texts(second));
        assert!(loaded[0].plan.is_some());
        assert!(loaded[1].plan.is_none(), "{second}");
    }
    for second in ["real", "real/out2", "out", "link/../out", "real/out/sub"] {
        let loaded = load(&root, &texts(second));
        assert!(loaded.iter().all(|one| one.plan.is_some()), "{second}");
    }
}

#[test]
fn a_target_is_absolute_and_does_not_change_with_a_slash() {
    let dir = tempfile::tempdir().unwrap();
    let expected = std::env::current_dir().unwrap().join("some/out").display().to_string();
    for path in ["some/out", "./some/out/", "some//out/."] {
        let loaded = load(dir.path(), &[definition("a", "q", path)]);
        assert_eq!(loaded[0].plan.as_ref().unwrap().sink_identity.target, expected, "{path}");
    }
}

#[test]
fn print_and_blackhole_may_be_the_sink_of_many() {
    let dir = tempfile::tempdir().unwrap();
    for sink in ["print", "blackhole"] {
        let other = |name: &str| {
            let text = definition(name, name, name);
            format!("{}sink: {{ connector: {sink} }}\n", &text[..text.find("sink:").unwrap()])
        };
        let loaded = load(dir.path(), &[other("a"), other("b")]);
        assert_eq!(told(&loaded, dir.path()), ["", ""]);
    }
}

#[test]
fn a_broken_definition_has_a_name_to_be_shown_under() {
    let dir = tempfile::tempdir().unwrap();
    let broken = |name: &str| definition(name, "q", "o").replace("batchSize: 16", "batchSize: x");
    let texts = [broken("orders"), broken("'no name'"), "][".to_owned(), definition("d", "q", "o"), broken("d")];
    let loaded = load(dir.path(), &texts);
    let names: Vec<_> = loaded.iter().map(|one| (one.name.as_str(), one.plan.is_some())).collect();
    assert_eq!(names, [("orders", false), ("b", false), ("c", false), ("d", true), ("e", false)]);

    let odd = dir.path().join("mes données.yaml");
    fs::write(&odd, "][").unwrap();
    assert_eq!(connectors::load(&[odd], &environment())[0].name.as_str(), "mes-donn-es");
}

#[test]
fn rows_that_are_made_up_are_not_taken_from_anyone() {
    let dir = tempfile::tempdir().unwrap();
    let one = |name: &str| {
        format!("name: {name}\nsource: {{ connector: datagen, schema: {{ a: INT }} }}\nsink: {{ connector: print }}\n")
    };
    let loaded = load(dir.path(), &["a", "b"].map(one));
    assert!(loaded.iter().all(|one| one.plan.is_some()), "{:?}", told(&loaded, dir.path()));
}

#[test]
fn nothing_is_written_to_what_the_pipeline_reads() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let cmq = |queue: &str| {
        format!(
            "  connector: cmq\n  hosts: http://127.0.0.1:1\n  secret-id: AKID1\n  secret-key: s\n  format: json\n  queue: {queue}\n"
        )
    };
    let rocketmq = |lines: &str| format!("  connector: rocketmq5\n  rocketmq.client.endpoints: b:1;a:1\n{lines}");
    let read = rocketmq("  rocketmq.source.topic: s;t\n  rocketmq.source.group: g\n");
    let written = rocketmq("  rocketmq.sink.topic: t\n").replace("b:1;a:1", "a:1;b:1");
    let schema = "  schema: { id: INT }\n";
    let blackhole = "sink: { connector: blackhole }\non_error: dead_letter\n";
    let texts = [
        format!("source:\n{}{schema}sink:\n{}", cmq("q"), cmq("Q")),
        format!("source:\n{}{schema}{blackhole}dead_letter:\n{}", cmq("q"), cmq("q")),
        format!("source:\n{read}{schema}sink:\n{written}"),
        // What is written may have another tag.
        format!("source:\n{read}  rocketmq.source.filter.tag: x\n{schema}sink:\n{written}")
            .replace("group: g", "group: h"),
    ];
    let help = "each row would come back as a message, without end";
    assert_eq!(
        told(&load(folder, &texts), folder),
        [
            format!("a.yaml:15:10: error: what is written here goes to the queue that the pipeline reads; {help}\n"),
            format!("b.yaml:17:10: error: what is written here goes to the queue that the pipeline reads; {help}\n"),
            format!("c.yaml:10:24: error: what is written here goes to the topic that the pipeline reads; {help}\n"),
            String::new(),
        ]
    );
}
