//! What an answer that is no success means for the pipeline.

use crate::{
    connectors::cmq::wire::{Class, class_of_answer},
    model::{Fault, FaultKind, Mend},
};

/// Refusals that no other key or signature of the account would change.
const OF_THE_ACCOUNT: [i32; 4] = [4300, 10_040, 10_440, 10_461];

/// The fault of an answer. One that is none of its operation's kinds of success is a fault of the service. `request`: the
/// service's id of it, if it told one.
pub(super) fn fault_of_answer(operation: &'static str, code: i32, message: &str, request: &str) -> Fault {
    let (kind, mend) = match class_of_answer(code, message) {
        Class::Fault(kind, mend) => (kind, mend),
        // As the contract of sends says.
        Class::TooLarge => (FaultKind::Poison, Mend::Never),
        Class::NotAuthenticated => (FaultKind::Credentials, Mend::Retry),
        Class::Done | Class::NoMessage | Class::AlreadyAuthenticated | Class::DeletesFailed | Class::InvalidHandle => {
            (FaultKind::Service, Mend::Retry)
        }
    };
    let words = if message.is_empty() { String::new() } else { format!(": {message}") };
    let request = if request.is_empty() { String::new() } else { format!(" (request {request})") };
    let hint = match kind {
        FaultKind::Credentials if OF_THE_ACCOUNT.contains(&code) => {
            "; check the account: what it owes, and what this key may do"
        }
        FaultKind::Credentials => "; check secret-id, secret-key and sign-method",
        FaultKind::Missing => "; check queue, and that hosts is of its region",
        _ => "",
    };
    Fault::new(kind, mend, format!("{operation}: the service answers {code}{words}{request}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_what_the_service_said_and_what_to_check() {
        let fault = fault_of_answer("receive", 4440, "(10100)queue is not existed", "R1");
        assert_eq!((fault.kind, fault.mend), (FaultKind::Missing, Mend::Never));
        assert_eq!(
            fault.to_string(),
            "receive: the service answers 4440: (10100)queue is not existed (request R1); check queue, and that hosts \
             is of its region"
        );
        let fault = fault_of_answer("send", 10_250, "", "");
        assert_eq!((fault.kind, fault.mend), (FaultKind::Throttled, Mend::Retry));
        assert_eq!(fault.to_string(), "send: the service answers 10250");
    }

    #[test]
    fn what_is_too_large_is_poison_and_an_answer_out_of_place_a_fault_of_the_service() {
        assert_eq!(fault_of_answer("send", 4400, "", "").kind, FaultKind::Poison);
        let fault = fault_of_answer("send", 7000, "", "");
        assert_eq!((fault.kind, fault.mend), (FaultKind::Service, Mend::Retry));
    }
}
