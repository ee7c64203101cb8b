//! The value that a signal carries: the one place that is not safe Rust, since no crate reads or sends it.

#![allow(unsafe_code, reason = "siginfo_t is a C union, and sigqueue is in libc only")]

use std::io;

use libc::{SI_QUEUE, c_int, c_void, pid_t, siginfo_t};

/// C's `union sigval`.
#[repr(C)]
union Value {
    int: c_int,
    pointer: *mut c_void,
}

unsafe extern "C" {
    /// POSIX `sigqueue(3)`, which the crate libc does not declare.
    fn sigqueue(pid: pid_t, signal: c_int, value: Value) -> c_int;
}

/// The number that `sigqueue` sent along; `None` for a signal that was sent without one, as `kill` does.
pub(super) fn received(info: &siginfo_t) -> Option<i32> {
    if info.si_code != SI_QUEUE {
        return None;
    }
    // SAFETY: SI_QUEUE says that the sender filled `si_value`; every bit pattern of it is a number.
    let value = Value { pointer: unsafe { info.si_value() }.sival_ptr };
    // SAFETY: both members are plain numbers, and the smaller one lies within the larger one.
    Some(unsafe { value.int })
}

/// Sends a signal with a number to a process.
///
/// # Errors
/// There is no such process, it is another user's, or too many signals wait to be received already.
pub(super) fn send(process: pid_t, signal: c_int, number: i32) -> io::Result<()> {
    let mut value = Value { pointer: std::ptr::null_mut() };
    value.int = number;
    // SAFETY: all arguments are passed by value.
    match unsafe { sigqueue(process, signal, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
