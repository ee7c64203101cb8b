//! What the service says: codes, and why something was not done.

use std::borrow::Cow;

use crate::{
    connectors::cmq::wire::codes,
    emulator::{cell::NotDone, orders::Refused},
};

/// A code, the code of the module that answers, and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Code {
    pub code: i32,
    pub module: i32,
    pub words: Cow<'static, str>,
}

/// Why a request was not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Code(Code),
    /// A page of something that stands before the service.
    Unavailable,
    /// No answer: the connection is closed.
    Cut,
}

impl Code {
    const fn new(code: i32, module: i32, words: &'static str) -> Self {
        Self { code, module, words: Cow::Borrowed(words) }
    }

    /// What a bad parameter is answered.
    pub(super) const fn bad(module: i32, words: &'static str) -> Self {
        Self::new(codes::BAD_PARAMETER, module, words)
    }

    /// As a queue's endpoint answers the actions of topics, and any that there is not.
    pub(super) fn no_action(name: &str) -> Self {
        let words = Cow::Owned(format!("action name {name} is not existed"));
        Self { code: codes::BAD_PARAMETER, module: 10_430, words }
    }

    /// Words with the module's code before them, in the form that public programs compare. Empty on success.
    pub(super) fn message(&self) -> String {
        if self.code == codes::OK { String::new() } else { format!("({}){}", self.module, self.words) }
    }
}

// The codes are those of the error tables; the words are theirs as far as anyone has shown them. [inferred] marks a
// module's code that no source gives for just this case.

pub(super) const OK: Code = Code::new(codes::OK, 0, "");
pub(super) const NO_MESSAGE: Code = Code::new(codes::NO_MESSAGE, codes::NO_MESSAGE_MODULE, "no message");
pub(super) const NO_QUEUE: Code = Code::new(codes::NO_QUEUE, 10_100, "queue is not existed, or deleted");
/// [inferred]
pub(super) const QUEUE_EXISTS: Code = Code::new(codes::QUEUE_EXISTS, 10_210, "queue is already existed");
pub(super) const NAME_RELEASED: Code = Code::new(6040, 10_660, "queue with the same name is being deleted");
pub(super) const INVALID_HANDLE: Code = Code::new(codes::INVALID_HANDLE, 10_260, "receipt handle is invalid");
pub(super) const PARTLY_DELETED: Code = Code::new(codes::PARTLY_DELETED, 10_150, "delete message partially failed");
pub(super) const NOTHING_DELETED: Code = Code::new(codes::NOTHING_DELETED, 10_290, "delete message all failed");
pub(super) const TOO_LARGE: Code = Code::new(codes::TOO_LARGE, 10_230, "message is too large");
pub(super) const BATCH_TOO_LARGE: Code = Code::new(codes::BATCH_TOO_LARGE, 10_300, "batch message is too large");
pub(super) const EMPTY_BODY: Code = Code::bad(10_120, "message body is empty");
pub(super) const BATCH_SIZE: Code = Code::bad(10_370, "batch is not of 1 to 16");
pub(super) const INDEX_GAP: Code = Code::bad(10_380, "index is not consecutive");
pub(super) const QUEUE_NAME: Code = Code::bad(10_020, "queue name is invalid");
pub(super) const DELAY: Code = Code::bad(10_692, "delaySeconds is out of range");
pub(super) const REQUEST_TOO_LARGE: Code = Code::bad(10_420, "request is too large");
/// [inferred]
pub(super) const MISSING: Code = Code::bad(10_010, "parameter is missing");
/// [inferred]
pub(super) const OUT_OF_RANGE: Code = Code::bad(10_110, "parameter is out of range");
pub(super) const SECRET_ID: Code = Code::bad(10_450, "secretId is invalid");
pub(super) const NOT_AUTHENTICATED: Code = Code::new(codes::NOT_AUTHORISED, 10_030, "authentication failed");
pub(super) const UNKNOWN_ID: Code = Code::new(codes::NOT_AUTHORISED, 10_270, "secretId is not existed");
/// TCP only.
pub(super) const NOT_LOGGED_IN: Code = Code::new(codes::NOT_AUTHENTICATED, 10_031, "connection is not authenticated");
/// TCP only.
pub(super) const LOGGED_IN: Code = Code::new(codes::ALREADY_AUTHENTICATED, 10_032, "connection is authenticated");
pub(super) const THROTTLED: Code = Code::new(codes::THROTTLED, 10_250, "qps throttling");
/// [inferred]
pub(super) const FAILED: Code = Code::new(codes::SERVICE_FAILED, 10_050, "server internal error");

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self::Code(code)
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Throttled => THROTTLED.into(),
            Refused::Unavailable => Self::Unavailable,
            // CMQ is never ordered to find a time expired.
            Refused::NotAuthenticated | Refused::TimeExpired => NOT_AUTHENTICATED.into(),
            Refused::Cut => Self::Cut,
        }
    }
}

impl From<NotDone> for Refusal {
    fn from(why: NotDone) -> Self {
        match why {
            NotDone::Gone => NO_QUEUE.into(),
            NotDone::Failed => FAILED.into(),
            NotDone::Lost => Self::Cut,
        }
    }
}
