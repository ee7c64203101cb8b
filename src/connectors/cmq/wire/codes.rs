//! What the service's codes mean. There are two families: the documented code (4430), and the code of the module that
//! answered (10260), which stands in brackets before the words of a message. HTTP answers carry the former; what TCP
//! answers carry is known for "no message" only, where it is the latter. So each side takes both.

use crate::model::{FaultKind, Mend};

/// Everything went well.
pub const OK: i32 = 0;
/// TCP only: the connection has not authenticated itself.
pub const NOT_AUTHENTICATED: i32 = 306;
/// TCP only: the connection has authenticated itself already.
pub const ALREADY_AUTHENTICATED: i32 = 307;
/// A bad parameter; the module's code says which.
pub const BAD_PARAMETER: i32 = 4000;
/// Authentication failed; the module's code says how.
pub const NOT_AUTHORISED: i32 = 4100;
/// A message is too large.
pub const TOO_LARGE: i32 = 4400;
/// The queue is full.
pub const QUEUE_FULL: i32 = 4410;
/// Too many requests a second.
pub const THROTTLED: i32 = 4420;
/// The receipt handle is wrong, used or expired.
pub const INVALID_HANDLE: i32 = 4430;
/// There is no such queue.
pub const NO_QUEUE: i32 = 4440;
/// The queue exists.
pub const QUEUE_EXISTS: i32 = 4460;
/// A batch is too large.
pub const BATCH_TOO_LARGE: i32 = 4470;
/// The service failed.
pub const SERVICE_FAILED: i32 = 6000;
/// A batch delete failed in part; the failures are listed.
pub const PARTLY_DELETED: i32 = 6010;
/// A batch delete failed wholly; the failures are listed.
pub const NOTHING_DELETED: i32 = 6020;
/// The same, by either family of codes.
pub const ALL_DELETES_FAILED: [i32; 2] = [NOTHING_DELETED, 10_290];
/// Too many messages are unacknowledged or delayed.
pub const TOO_MANY_IN_FLIGHT: i32 = 6070;
/// The queue has nothing to deliver.
pub const NO_MESSAGE: i32 = 7000;
/// [`NO_MESSAGE`] as the module says it, and TCP answers it.
pub const NO_MESSAGE_MODULE: i32 = 10_200;

/// What a code means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Done.
    Done,
    /// Nothing to deliver; no fault.
    NoMessage,
    /// The connection has to authenticate itself (again).
    NotAuthenticated,
    /// The connection has done so before; no fault.
    AlreadyAuthenticated,
    /// Some or all deletes of a batch failed; the list says which.
    DeletesFailed,
    /// The delivery cannot be deleted by this handle any more: the message will come back.
    InvalidHandle,
    /// The message, or the batch, is too large.
    TooLarge,
    /// Any other fault.
    Fault(FaultKind, Mend),
}

/// What a code of either family means. Whether trying again can help is nowhere documented: it is inferred from the
/// words of the error tables. A code that no table has is taken for a fault that passes, since what TCP answers is
/// hardly documented: the pipeline is Degraded with the words of the answer rather than stopped for good.
pub fn class_of(code: i32) -> Class {
    use Class::Fault;
    match code {
        OK => Class::Done,
        NO_MESSAGE | NO_MESSAGE_MODULE => Class::NoMessage,
        NOT_AUTHENTICATED | 10_031 => Class::NotAuthenticated,
        ALREADY_AUTHENTICATED | 10_032 => Class::AlreadyAuthenticated,
        PARTLY_DELETED | NOTHING_DELETED | 10_150 | 10_290 => Class::DeletesFailed,
        INVALID_HANDLE | 10_260 => Class::InvalidHandle,
        // The last one is of a whole HTTP request, in which a body may take three times its size.
        TOO_LARGE | BATCH_TOO_LARGE | 10_230 | 10_300 | 10_420 => Class::TooLarge,
        THROTTLED | 4480 | 10_250 | 10_460 => Fault(FaultKind::Throttled, Mend::Retry),
        // Full queues get empty again.
        QUEUE_FULL | TOO_MANY_IN_FLIGHT | 10_240 | 10_690 => Fault(FaultKind::Throttled, Mend::Retry),
        NO_QUEUE | 10_100 | 10_600 => Fault(FaultKind::Missing, Mend::Never),
        // A key that was changed or enabled can be told to the service while this runs: as MNS's are, a refused
        // signature is tried again.
        NOT_AUTHORISED | 10_030 => Fault(FaultKind::Credentials, Mend::Retry),
        // The id is unknown or disabled, not of the right form, not allowed this, or overdue.
        10_080 | 10_270 | 10_440 | 10_450 | 10_461 | 4300 | 10_040 => Fault(FaultKind::Credentials, Mend::Never),
        SERVICE_FAILED | 10_050 | 10_090 | 10_130 | 10_140 | 10_160..=10_190 => Fault(FaultKind::Service, Mend::Retry),
        // The name was deleted less than 30 s ago.
        6040 | 10_660 => Fault(FaultKind::Missing, Mend::Retry),
        BAD_PARAMETER
        | 4450
        | QUEUE_EXISTS
        | 4490
        | 6030
        | 6050
        | 10_000
        | 10_010
        | 10_020
        | 10_110
        | 10_120
        | 10_220
        | 10_280
        | 10_320..=10_430
        | 10_470
        | 10_650
        | 10_670
        | 10_692
        | 10_730
        | 10_770..=10_790 => Fault(FaultKind::Rejected, Mend::Never),
        _ => Fault(FaultKind::Service, Mend::Retry),
    }
}

/// What an answer means: as [`class_of`], but the module's code before the words says more than a code that many have.
/// (A queue that is not there is documented as 4440, and as 4000 with "(10100)".)
pub fn class_of_answer(code: i32, message: &str) -> Class {
    match code {
        BAD_PARAMETER | NOT_AUTHORISED => module_code(message).map_or_else(|| class_of(code), class_of),
        _ => class_of(code),
    }
}

/// The code of the module that answered, as in `(10200)no message`.
fn module_code(message: &str) -> Option<i32> {
    message.strip_prefix('(')?.split_once(')')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_mean_the_same() {
        for (code, module) in [
            (NO_MESSAGE, 10_200),
            (INVALID_HANDLE, 10_260),
            (NO_QUEUE, 10_100),
            (THROTTLED, 10_250),
            (4480, 10_460),
            (QUEUE_FULL, 10_240),
            (TOO_LARGE, 10_230),
            (BATCH_TOO_LARGE, 10_300),
            (SERVICE_FAILED, 10_050),
            (PARTLY_DELETED, 10_150),
            (NOTHING_DELETED, 10_290),
            (TOO_MANY_IN_FLIGHT, 10_690),
            (6040, 10_660),
            (NOT_AUTHORISED, 10_030),
            (NOT_AUTHENTICATED, 10_031),
            (ALREADY_AUTHENTICATED, 10_032),
            (4300, 10_040),
            (4450, 10_220),
            (BAD_PARAMETER, 10_370),
        ] {
            assert_eq!(class_of(code), class_of(module), "{code}");
            assert_eq!(class_of_answer(code, &format!("({module})words")), class_of(module), "{code}");
        }
    }

    #[test]
    fn a_code_that_many_have_is_told_by_the_module() {
        let missing = Class::Fault(FaultKind::Missing, Mend::Never);
        assert_eq!(class_of_answer(4440, "(10100)queue is not existed"), missing);
        assert_eq!(class_of_answer(4000, "(10100)queue is not existed"), missing);
        assert_eq!(class_of_answer(4000, "(10450)secret id"), Class::Fault(FaultKind::Credentials, Mend::Never));
        assert_eq!(class_of_answer(4000, "no code"), Class::Fault(FaultKind::Rejected, Mend::Never));
        assert_eq!(class_of_answer(4100, "(10031)not authenticated"), Class::NotAuthenticated);
        assert_eq!(class_of_answer(4100, "(10030)failed"), Class::Fault(FaultKind::Credentials, Mend::Retry));
    }

    #[test]
    fn what_no_table_has_is_tried_again() {
        assert_eq!(class_of(1), Class::Fault(FaultKind::Service, Mend::Retry));
        assert_eq!(class_of(-1), Class::Fault(FaultKind::Service, Mend::Retry));
    }
}
