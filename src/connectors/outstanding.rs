//! What sinks have in common that return from a write with sends outstanding: sends under way, and how often and for how
//! long one is tried again.

use std::{fmt, future::Future, time::Duration};

use tokio::{
    task::{AbortHandle, JoinError, JoinSet},
    time::Instant,
};

use crate::{
    model::{Fault, FaultKind, Mend},
    telemetry::attributed_as_here,
};

/// How long a send is tried again before its fault is told, however many retries are left, and how long an answer is
/// waited for before that is told: whoever waits takes what says nothing for longer for a hang. It goes on all the same.
const LONGEST: Duration = Duration::from_secs(15);

/// How often and how fast a send is tried again.
#[derive(Debug, Clone, Copy)]
pub struct Retries {
    /// After the first try.
    pub times: u32,
    /// Before each.
    pub pause: Duration,
}

/// The tries of one send.
pub struct Tries {
    left: u32,
    pause: Duration,
    begun: Instant,
}

impl Tries {
    /// The first one begins now.
    pub fn new(Retries { times, pause }: Retries) -> Self {
        Self { left: times, pause, begun: Instant::now() }
    }

    /// Whether what failed so is to be tried again; if it is, the pause before that is over when this answers.
    pub async fn again<T>(&mut self, result: &Result<T, Fault>) -> bool {
        let mendable = result.as_ref().is_err_and(|fault| fault.mend == Mend::Retry);
        if !mendable || self.left == 0 || self.begun.elapsed() >= LONGEST {
            return false;
        }
        self.left -= 1;
        tokio::time::sleep(self.pause).await;
        true
    }
}

/// Sends under way. Each belongs to the actor that began it; all end with this.
pub struct UnderWay<T>(JoinSet<T>);

impl<T> fmt::Debug for UnderWay<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnderWay").field(&self.0.len()).finish()
    }
}

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        Self(JoinSet::new())
    }
}

impl<T: Send + 'static> UnderWay<T> {
    /// Begins one more.
    pub fn begin(&mut self, send: impl Future<Output = T> + Send + 'static) -> AbortHandle {
        self.0.spawn(attributed_as_here(send))
    }

    /// How many there are, those included that are answered and not taken in yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All that is answered by now: what failed together is to be told together, or after an outage each would cost a pause
    /// of its own.
    pub fn answered(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.0.try_join_next()).filter_map(joined).collect()
    }

    /// Waits for the next answer. `None`: there is none under way, or what was next had been aborted.
    ///
    /// # Errors
    /// None came for long; a retry waits on.
    pub async fn next(&mut self) -> Result<Option<T>, Fault> {
        self.next_within(LONGEST).await
    }

    async fn next_within(&mut self, longest: Duration) -> Result<Option<T>, Fault> {
        match tokio::time::timeout(longest, self.0.join_next()).await {
            Ok(next) => Ok(next.and_then(joined)),
            Err(_) => {
                let text = format!("send: no answer within {longest:?}, of {} that wait", self.0.len());
                Err(Fault::retry(FaultKind::Timeout, text))
            }
        }
    }
}

/// A panic goes on in the actor that waits for it.
fn joined<T>(result: Result<T, JoinError>) -> Option<T> {
    match result {
        Ok(answered) => Some(answered),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_aborted) => None,
    }
}

/// The gravest of the faults of what failed together: one that no retry mends, else the last.
pub fn gravest(results: impl Iterator<Item = Result<(), Fault>>) -> Result<(), Fault> {
    let gravest = results.filter_map(Result::err).reduce(|one, other| match one.mend {
        Mend::Retry => other,
        _ => one,
    });
    gravest.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(text: &'static str) -> Fault {
        Fault::retry(FaultKind::Throttled, text)
    }

    #[test]
    fn of_what_failed_together_the_gravest_is_told() {
        let gone = || Fault::never(FaultKind::Missing, "gone");
        let told = |faults: Vec<Fault>| gravest(faults.into_iter().map(Err)).err().map(|fault| fault.to_string());
        assert_eq!(told(vec![]), None);
        assert_eq!(told(vec![busy("1"), gone(), busy("2")]).as_deref(), Some("gone"));
        assert_eq!(told(vec![busy("1"), busy("2")]).as_deref(), Some("2"));
    }

    #[tokio::test]
    async fn an_answer_that_does_not_come_is_trouble_and_still_taken_when_it_does() {
        let mut sends = UnderWay::default();
        let (answer, answered) = tokio::sync::oneshot::channel();
        sends.begin(answered);
        let fault = sends.next_within(Duration::ZERO).await.unwrap_err();
        assert_eq!((fault.kind, fault.mend), (FaultKind::Timeout, Mend::Retry));
        assert_eq!(sends.answered(), []);
        answer.send(7).unwrap();
        assert_eq!((sends.next().await.unwrap(), sends.len()), (Some(Ok(7)), 0));
    }

    #[tokio::test]
    async fn a_send_is_tried_again_as_often_as_asked_and_not_for_long() {
        let count = async |mut tries: Tries, fault: Fault| {
            let mut count = 1;
            while tries.again::<()>(&Err(fault.clone())).await {
                count += 1;
            }
            count
        };
        let tries = || Tries::new(Retries { times: 3, pause: Duration::ZERO });
        assert_eq!(count(tries(), busy("x")).await, 4);
        assert_eq!(count(tries(), Fault::never(FaultKind::Rejected, "x")).await, 1);
        let long_ago = Instant::now().checked_sub(LONGEST).unwrap();
        assert_eq!(count(Tries { begun: long_ago, ..tries() }, busy("x")).await, 1);
        assert!(!tries().again(&Ok(())).await);
    }

    #[tokio::test]
    async fn a_send_that_was_taken_back_is_no_answer() {
        let mut sends = UnderWay::<u8>::default();
        sends.begin(std::future::pending()).abort();
        assert_eq!((sends.next().await.unwrap(), sends.len()), (None, 0));
    }
}
