//! Exit codes, by `sysexits.h` where it has a fitting one.

use std::process::ExitCode;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well; after SIGTERM or SIGINT: everything received was finished.
    Done = 0,
    /// A pipeline was restarted as asked, and is Failed again; or a replay failed.
    PipelineFailed = 1,
    /// A definition does not do what its test says.
    TestFailed = 2,
    /// The command line cannot be understood (EX_USAGE).
    Usage = 64,
    /// The state store cannot be read, or a file to replay (EX_DATAERR).
    StoreUnreadable = 65,
    /// What is named is not there: a path, a definition in it, a pipeline's state (EX_NOINPUT).
    NoInput = 66,
    /// No supervisor runs on the state directory, or none that can be reached from here; or a queue service that was
    /// asked does not answer (EX_UNAVAILABLE).
    Unavailable = 69,
    /// Too many threads are blocked at once, or what supervises the pipelines panicked (EX_SOFTWARE).
    Software = 70,
    /// The address to listen on cannot be bound, or another thing the system denies (EX_OSERR).
    System = 71,
    /// A change to a stored state was refused: output is pending, or the name is taken; or a file is not written over
    /// (EX_CANTCREAT).
    Refused = 73,
    /// The state store failed while running; nothing after that could be believed (EX_IOERR).
    StoreFailed = 74,
    /// Another supervisor holds the state directory (EX_TEMPFAIL).
    LockHeld = 75,
    /// A definition, a test of one, or a script to import is not valid (EX_CONFIG).
    Definition = 78,
    /// A restart or reload that was asked for was not done before its deadline.
    RestartTimeout = 123,
    /// Not everything could be finished before the shutdown deadline; it will be read again. As `timeout(1)`.
    DrainDeadline = 124,
}

impl Exit {
    /// For `--help`.
    pub const HELP: &str = "\
Exit codes:
    0  done; after SIGTERM or SIGINT: every pipeline that ran finished what it had received
    1  a pipeline was restarted, and is failed again; or a replay failed
    2  a definition does not do what its test says
   64  the command line cannot be understood
   65  the state store cannot be read, or a file to replay
   66  what is named is not there: a path, a definition in it, a pipeline, or its state
   69  no supervisor is running on the state directory, or it cannot be reached; `lag`: nor can the service
   70  too many threads are blocked at once, or the supervisor itself failed
   71  an address cannot be bound, or another thing the system denies
   73  `state` refused a change: output is pending, or the new name is taken; `init` and `import`: a file is there
   74  the state store failed while running
   75  another supervisor holds the state directory
   78  a definition, a test of one, or a script to import is not valid
  123  restart or reload was not done before --deadline
  124  not everything was finished before the shutdown deadline; it will be read again";
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
