//! A running generation, and what it reports.

use std::time::Duration;

use actix::prelude::*;
use tokio::sync::mpsc;

use crate::pipeline::{Child, Controls, Event, Report};

/// Nothing takes longer.
pub const SOON: Duration = Duration::from_secs(20);

/// A running generation.
pub struct Running {
    pub controls: Controls,
    pub events: Events,
    /// Actors that were started since.
    started: Vec<Child>,
}

/// What a generation reports.
pub struct Events {
    listener: Addr<Listener>,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Events {
    /// What reports go to, and what comes of them.
    pub fn listen() -> (Recipient<Report>, Self) {
        let (send, events) = mpsc::unbounded_channel();
        let listener = Listener(send).start();
        (listener.clone().recipient(), Self { listener, events })
    }

    pub async fn next(&mut self) -> Event {
        let event = tokio::time::timeout(SOON, self.events.recv()).await;
        event.expect("an event in time").expect("the generation can still report")
    }

    /// What has been reported by now, if anything.
    pub fn try_recv(&mut self) -> Result<Event, mpsc::error::TryRecvError> {
        self.events.try_recv()
    }
}

struct Listener(mpsc::UnboundedSender<Event>);

impl Actor for Listener {
    type Context = Context<Self>;
}

/// Answered when everything that was reported before has been handed on.
#[derive(Message)]
#[rtype(result = "()")]
struct Flush;

impl Handler<Flush> for Listener {
    type Result = ();

    fn handle(&mut self, _: Flush, _: &mut Self::Context) {}
}

impl Handler<Report> for Listener {
    type Result = ();

    fn handle(&mut self, report: Report, _: &mut Self::Context) {
        let _test_is_over = self.0.send(report.event);
    }
}

impl Running {
    pub fn new(controls: Controls, events: Events) -> Self {
        Self { controls, events, started: Vec::new() }
    }

    /// The next event that is about neither health nor lanes.
    pub async fn event(&mut self) -> Event {
        loop {
            match self.events.next().await {
                Event::HealthChanged | Event::Begun => {}
                Event::Started(child) => self.started.push(child),
                event => return event,
            }
        }
    }

    /// Drains to the end, and cuts off what is left of the actors.
    pub async fn drain(mut self) {
        self.controls.drain();
        match self.event().await {
            Event::Drained => self.cut().await,
            Event::Fault { actor, fault } => panic!("{actor}: {fault}"),
            _ => panic!("something else than the end of the drain"),
        }
    }

    /// As the supervisor cuts off a generation.
    pub async fn cut(self) {
        let Self { controls, mut events, started } = self;
        end(controls.children.into_iter().chain(started)).await;
        events.listener.send(Flush).await.unwrap();
        while let Ok(event) = events.try_recv() {
            if let Event::Started(child) = event {
                end([child]).await;
            }
        }
    }
}

async fn end(children: impl IntoIterator<Item = Child>) {
    for child in children {
        child.join.abort();
        let _cancelled = child.join.await;
    }
}
