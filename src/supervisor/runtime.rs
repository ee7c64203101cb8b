//! The main arbiter, for those above that know no actor.

/// Runs a future to its end on a new main arbiter. [`super::start`] must be called inside.
pub fn block_on<F: Future>(future: F) -> F::Output {
    actix::System::new().block_on(future)
}
