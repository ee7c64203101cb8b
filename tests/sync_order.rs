//! What reaches the disk before what leaves for the queue, as the kernel sees it.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]
#![cfg(target_os = "linux")]

mod common;

use std::{
    fs,
    process::{Command, Stdio},
};

use common::{EmulatorProcess, Place, Process, SOON, assert_exactly_once, traffic, traffic_definition, until};

/// What matters of a system call that has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// The part file was synced.
    FileSynced,
    /// The staging folder was synced.
    StagingSynced,
    /// The store's database was synced.
    StoreSynced,
    /// A part became visible.
    Renamed,
    /// The target folder was synced.
    TargetSynced,
    /// A delete was sent.
    DeleteSent,
}

/// Reads strace's lines (`-f -y`) in the order in which calls began to be sent or had returned.
fn calls(trace: &str) -> Vec<Call> {
    let mut unfinished = std::collections::HashMap::new();
    let mut found = Vec::new();
    for line in trace.lines() {
        let Some((pid, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix("<unfinished ...>") {
            // A request counts from its beginning, a sync only when it has returned.
            if begun.contains("\"DELETE /queues/") {
                found.push(Call::DeleteSent);
            } else {
                unfinished.insert(pid.to_owned(), begun.to_owned());
            }
            continue;
        }
        let whole =
            if call.starts_with("<... ") { unfinished.remove(pid).unwrap_or_default() } else { call.to_owned() };
        found.extend(classify(&whole));
    }
    found
}

fn classify(call: &str) -> Option<Call> {
    if call.contains("\"DELETE /queues/") {
        return Some(Call::DeleteSent);
    }
    if call.starts_with("rename") || call.starts_with("link") {
        // The first rename of a part is within the staging folder, by which it gets its name.
        let target = call.rsplit('"').nth(1)?;
        return (target.contains("part-")
            && !call.rsplit(',').nth(1)?.contains(".queuewarden")
            && !target.contains(".queuewarden"))
        .then_some(Call::Renamed);
    }
    let path = call.split_once('<')?.1.split_once('>')?.0;
    if call.starts_with("fdatasync") && path.ends_with("/state/store/db") {
        Some(Call::StoreSynced)
    } else if !call.starts_with("fsync") && !call.starts_with("fdatasync") {
        None
    } else if path.contains("/.queuewarden/q/") {
        Some(Call::FileSynced)
    } else if path.ends_with("/.queuewarden/q") {
        Some(Call::StagingSynced)
    } else if path.ends_with("/out") {
        Some(Call::TargetSynced)
    } else {
        None
    }
}

fn last(calls: &[Call], call: Call) -> Option<usize> {
    calls.iter().rposition(|other| *other == call)
}

#[test]
fn file_and_folder_then_store_then_rename_then_folder_then_delete() {
    let strace = Command::new("strace").arg("-V").stdout(Stdio::null()).status();
    assert!(strace.is_ok(), "strace is not installed: run `make sdk`, or `apt-get install strace`");
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    traffic(&["create", &emulator.endpoint, "q", "30"]);
    traffic(&["send", &emulator.endpoint, "q", "0", "400"]);
    // Several epochs: half of the limit starts a checkpoint.
    let rest = "checkpoint: { interval: 200ms, max_unacknowledged: 100 }";
    place.define("q", &traffic_definition(&emulator.endpoint, "q", &out, rest));
    let trace = place.path("trace");
    let run = place.run_command();
    let mut command = Command::new("strace");
    command
        .args(["-f", "-y", "-s", "200", "-e"])
        .arg("trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat,write,writev,sendto,sendmsg")
        .arg("-o")
        .arg(&trace)
        .arg(run.get_program())
        .args(run.get_args())
        .envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut traced = Process(command.spawn().expect("strace starts"));
    until(SOON * 2, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    // strace passes the end of what it traces on; the traced process is ended by its own pid.
    let lock: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.path("state/lock")).expect("the lock file")).expect("JSON");
    let pid = lock["pid"].as_u64().expect("a pid").to_string();
    assert!(Command::new("/bin/kill").args(["-s", "TERM", &pid]).status().expect("kill runs").success());
    assert_eq!(traced.wait(SOON).code(), Some(0));

    let calls = calls(&fs::read_to_string(&trace).expect("the trace"));
    let count = |call| calls.iter().filter(|other| **other == call).count();
    println!(
        "{} renames, {} deletes, {} syncs of the store",
        count(Call::Renamed),
        count(Call::DeleteSent),
        count(Call::StoreSynced)
    );
    assert!(count(Call::Renamed) >= 2 && count(Call::DeleteSent) >= 25, "{calls:?}");
    for (at, call) in calls.iter().enumerate() {
        let before = &calls[..at];
        match call {
            Call::Renamed => {
                let [file, staging, store] =
                    [Call::FileSynced, Call::StagingSynced, Call::StoreSynced].map(|call| last(before, call));
                assert!(
                    file.is_some() && file < staging && staging < store,
                    "rename {at}: {file:?} {staging:?} {store:?}"
                );
            }
            Call::DeleteSent => {
                let (renamed, target) = (last(before, Call::Renamed), last(before, Call::TargetSynced));
                assert!(renamed.is_some() && renamed < target, "delete {at}: renamed {renamed:?}, folder {target:?}");
            }
            _ => {}
        }
    }
    let blobs = fs::read_dir(place.path("state/store/blobs")).map(|entries| entries.count()).unwrap_or(0);
    assert_eq!(blobs, 0, "files in blobs/ are never synced");
    assert_exactly_once(&out, 400);
}
