//! The threads that generations run on, one arbiter each. A generation stays on one; a thread that does not answer
//! any more is given up for a fresh one.

use std::{cell::RefCell, collections::HashMap, future::Future, io, rc::Rc, sync::Arc, time::Duration};

use actix::prelude::*;
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::{
    model::{Fault, Slot},
    telemetry::{Whereabouts, Who},
};

/// See [`Arbiter`].
pub type ArbiterHandle = actix::ArbiterHandle;

/// Tells a thread from the one that took its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadNumber(u64);

/// A pool of threads. Clones are the same pool; all are on the main arbiter.
#[derive(Clone)]
pub struct Pool(Rc<RefCell<Inner>>);

struct Inner {
    threads: Vec<Thread>,
    /// Threads started so far.
    started: u64,
    stopped: bool,
    tenants: HashMap<Slot, Tenant>,
    /// Given up, and not ended yet.
    hung: Vec<Hung>,
}

/// A pipeline's place: the same thread at every start, or the one that has taken its place.
struct Tenant {
    index: usize,
    lost: Recipient<ThreadLost>,
}

/// Where a generation is to run.
pub struct Seat {
    /// The thread.
    pub thread: ThreadNumber,
    /// Its arbiter.
    pub arbiter: ArbiterHandle,
}

/// Pool -> pipeline: the thread of a generation is lost, and everything on it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ThreadLost {
    /// Which; the pipeline may be on another one by now.
    pub thread: ThreadNumber,
    /// The actor that is to blame, or `thread` if none of this pipeline's is.
    pub actor: &'static str,
    /// Why.
    pub fault: Fault,
    /// Another pipeline is to blame: this one's budget is not spent.
    pub innocent: bool,
}

/// A thread that is lost: what became of it, and who was on it.
pub struct Lost {
    /// The thread.
    pub thread: ThreadNumber,
    /// Who blocks it; `None` if it has ended, or if nobody says so.
    pub who: Option<Arc<Who>>,
    /// It ended instead of being blocked.
    pub ended: bool,
    /// Whether the same pipeline blocks yet another thread, which has not come back.
    pub again: bool,
    /// The pipelines that are to move.
    pub tenants: Vec<(Slot, Recipient<ThreadLost>)>,
}

/// A thread that was given up.
struct Hung {
    /// Held by the thread too, until it ends.
    at: Arc<Whereabouts>,
    who: Option<Arc<Who>>,
}

impl Pool {
    /// Starts `threads` threads, at least one.
    pub fn new(threads: usize) -> Self {
        let started = threads.max(1) as u64;
        let threads = (0..started).map(|number| Thread::new(ThreadNumber(number), Arbiter::new())).collect();
        Self(Rc::new(RefCell::new(Inner {
            threads,
            started,
            stopped: false,
            tenants: HashMap::new(),
            hung: Vec::new(),
        })))
    }

    /// Where the next generation of a pipeline is to run: where the last one did, at first on the thread with the
    /// fewest pipelines. `lost` is told if that thread is lost.
    pub fn seat(&self, slot: Slot, lost: Recipient<ThreadLost>) -> Seat {
        let mut inner = self.0.borrow_mut();
        let index = inner.tenants.get(&slot).map_or_else(|| inner.emptiest(), |tenant| tenant.index);
        inner.tenants.insert(slot, Tenant { index, lost });
        let thread = &inner.threads[index];
        Seat { thread: thread.number, arbiter: thread.arbiter.handle() }
    }

    /// A pipeline is gone for good.
    pub fn leave(&self, slot: Slot) {
        self.0.borrow_mut().tenants.remove(&slot);
    }

    /// Stops them; they end when their current task yields, and that is no loss any more.
    pub fn stop(&self) {
        let mut inner = self.0.borrow_mut();
        inner.stopped = true;
        for thread in &inner.threads {
            thread.arbiter.stop();
        }
    }

    /// Asks every thread for a sign of life. One that has ended, or that has been silent for longer than `deadline`,
    /// is replaced and answered. `since` is how much of the time since the last round counts.
    ///
    /// # Errors
    /// No thread can be started in place of a lost one.
    pub fn round(&self, since: Duration, deadline: Duration) -> io::Result<Vec<Lost>> {
        let mut inner = self.0.borrow_mut();
        let mut lost = Vec::new();
        if inner.stopped {
            return Ok(lost);
        }
        for index in 0..inner.threads.len() {
            match inner.threads[index].pulse(since) {
                Pulse::Beats => {}
                Pulse::Silent(silence) if silence <= deadline => {}
                Pulse::Silent(_) => lost.push(inner.give_up(index, false)?),
                Pulse::Ended => lost.push(inner.give_up(index, true)?),
            }
        }
        Ok(lost)
    }

    /// Threads given up that have ended since the last look, with who blocked them.
    pub fn came_back(&self) -> Vec<Option<Arc<Who>>> {
        let is_over = |hung: &mut Hung| Arc::strong_count(&hung.at) == 1;
        self.0.borrow_mut().hung.extract_if(.., is_over).map(|hung| hung.who).collect()
    }

    /// Who blocks each thread that was given up and has not ended.
    pub fn hung(&self) -> Vec<Option<Arc<Who>>> {
        self.0.borrow().hung.iter().map(|hung| hung.who.clone()).collect()
    }
}

impl Inner {
    fn emptiest(&self) -> usize {
        let tenants = |index: &usize| self.tenants.values().filter(|tenant| tenant.index == *index).count();
        (0..self.threads.len()).min_by_key(tenants).unwrap_or(0)
    }

    fn give_up(&mut self, index: usize, ended: bool) -> io::Result<Lost> {
        let fresh = Thread::new(ThreadNumber(self.started), Arbiter::try_new()?);
        self.started += 1;
        let Thread { number, arbiter, at, .. } = std::mem::replace(&mut self.threads[index], fresh);
        // Should it ever come back, it ends.
        arbiter.stop();
        let who = at.now().filter(|_| !ended);
        let same = |hung: &Hung| hung.who.as_ref().zip(who.as_ref()).is_some_and(|(old, new)| old.slot == new.slot);
        let again = self.hung.iter().any(same);
        let tenants = self.tenants.iter().filter(|(_, tenant)| tenant.index == index);
        let tenants = tenants.map(|(slot, tenant)| (*slot, tenant.lost.clone())).collect();
        if !ended {
            self.hung.push(Hung { at, who: who.clone() });
        }
        Ok(Lost { thread: number, who, ended, again, tenants })
    }
}

struct Thread {
    number: ThreadNumber,
    arbiter: Arbiter,
    at: Arc<Whereabouts>,
    /// A question that has not been answered, and for how long.
    asked: Option<(oneshot::Receiver<()>, Duration)>,
}

enum Pulse {
    Beats,
    Silent(Duration),
    Ended,
}

impl Thread {
    fn new(number: ThreadNumber, arbiter: Arbiter) -> Self {
        let at = Arc::new(Whereabouts::default());
        let there = Arc::clone(&at);
        arbiter.spawn_fn(move || there.of_this_thread());
        Self { number, arbiter, at, asked: None }
    }

    /// Reads the answer to the last question, and asks the next.
    fn pulse(&mut self, since: Duration) -> Pulse {
        if let Some((answer, silence)) = &mut self.asked {
            match answer.try_recv() {
                Ok(()) => {}
                Err(TryRecvError::Empty) => {
                    *silence += since;
                    return Pulse::Silent(*silence);
                }
                Err(TryRecvError::Closed) => return Pulse::Ended,
            }
        }
        let (answer, answered) = oneshot::channel();
        let alive = self.arbiter.spawn_fn(move || {
            let _gone = answer.send(());
        });
        self.asked = Some((answered, Duration::ZERO));
        if alive { Pulse::Beats } else { Pulse::Ended }
    }
}

/// Runs a future on an arbiter; the answer ends when it does, also by a panic.
pub async fn run_on<F, Fut>(arbiter: &ArbiterHandle, make: F) -> Option<tokio::task::JoinHandle<()>>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let (answer, join) = oneshot::channel();
    arbiter.spawn_fn(move || {
        let _receiver_gone = answer.send(tokio::task::spawn_local(make()));
    });
    join.await.ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const TICK: Duration = Duration::from_millis(10);
    const DEADLINE: Duration = Duration::from_millis(100);

    struct Deaf;

    impl Actor for Deaf {
        type Context = Context<Self>;
    }

    impl Handler<ThreadLost> for Deaf {
        type Result = ();

        fn handle(&mut self, _: ThreadLost, _: &mut Self::Context) {}
    }

    async fn first_lost(pool: &Pool) -> Lost {
        let begun = Instant::now();
        loop {
            if let Some(lost) = pool.round(TICK, DEADLINE).unwrap().pop() {
                return lost;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no thread was lost");
            tokio::time::sleep(TICK).await;
        }
    }

    #[test]
    fn pipelines_are_spread_and_stay_where_they_are() {
        actix::System::new().block_on(async {
            let (pool, deaf) = (Pool::new(2), Deaf.start());
            let seat = |slot| pool.seat(Slot(slot), deaf.clone().recipient()).thread;
            let seats = [seat(1), seat(2), seat(3)];
            assert_ne!(seats[0], seats[1]);
            assert_eq!([seat(1), seat(2), seat(3)], seats);
            let crowded = seats[2];
            pool.leave(Slot(3));
            pool.leave(if seats[0] == crowded { Slot(1) } else { Slot(2) });
            assert_eq!(seat(4), crowded, "it is the emptiest now");
        });
    }

    #[test]
    fn a_thread_that_is_blocked_or_has_ended_is_replaced_and_its_pipelines_are_named() {
        actix::System::new().block_on(async {
            let (pool, deaf) = (Pool::new(1), Deaf.start());
            let seat = || pool.seat(Slot(1), deaf.clone().recipient());
            let (go_on, blocked) = std::sync::mpsc::channel::<()>();
            let first = seat();
            first.arbiter.spawn_fn(move || {
                let _gone = blocked.recv();
            });
            let lost = first_lost(&pool).await;
            assert_eq!((lost.thread, lost.ended, lost.tenants.len()), (first.thread, false, 1));
            assert_eq!(pool.hung().len(), 1);

            let second = seat();
            assert_ne!(second.thread, first.thread);
            second.arbiter.stop();
            let lost = first_lost(&pool).await;
            assert_eq!((lost.thread, lost.ended, lost.tenants.len()), (second.thread, true, 1));

            drop(go_on);
            let begun = Instant::now();
            while pool.came_back().is_empty() {
                assert!(begun.elapsed() < Duration::from_secs(20), "the first one did not end");
                tokio::time::sleep(TICK).await;
            }
            assert!(pool.hung().is_empty());
        });
    }
}
