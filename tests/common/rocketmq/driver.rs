//! The Java client in a process of its own: `tests/rocketmq/Driver.java`.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write as _},
    path::Path,
    process::{ChildStdin, ChildStdout, Stdio},
};

use serde_json::Value;

use super::{super::Process, ACCESS_KEY, Generation, SECRET_KEY, java};

pub struct Driver {
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
    pub process: Process,
}

impl Driver {
    pub fn start(home: &Path, generation: Generation, name_server: &str, access_control: bool) -> Self {
        let mut command = java(home, generation);
        command.args(["Driver", name_server]);
        if access_control {
            command.args([ACCESS_KEY, SECRET_KEY]);
        }
        let log = File::create(home.join("driver.out")).expect("a file");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().expect("java starts");
        let (input, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { input, answers: BufReader::new(answers), process: Process(child) }
    }

    pub fn ask(&mut self, what: &Value) -> Result<Value, String> {
        writeln!(self.input, "{what}").map_err(|error| format!("the driver is gone: {error}"))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| format!("the driver is gone: {error}"))?;
        let mut answer: Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line:?}"))?;
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["ok"].take()),
        }
    }
}
