//! A reload: check every definition, drain what is gone or changed, then start. Nothing starts before the last of
//! them is at rest, so a queue or a folder that goes from one pipeline to another never has two.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use actix::{fut::wrap_future, prelude::*};
use tokio::task::{JoinError, spawn_blocking};

use super::{Member, Occupant, Supervisor};
use crate::{
    model::Slot,
    pipeline::ExitReason,
    supervisor::{
        ReloadReport,
        changes::{Changes, PlanKnown, compare},
        handle::rfc3339,
        pipeline::{Begin, Described, Leave, Stop},
    },
    telemetry::ReloadResult,
};

/// A reload that is under way.
#[derive(Default)]
pub(super) struct Reloading {
    changes: Changes,
    /// What has to be at rest before anything starts.
    waiting: HashSet<Slot>,
    report: ReloadReport,
    /// Asked for again meanwhile: what was read may be old already.
    again: bool,
}

impl Supervisor {
    pub(super) fn reload(&mut self, ctx: &mut Context<Self>) {
        if let Some(reloading) = &mut self.reloading {
            reloading.again = true;
            tracing::info!("a reload is under way; one more follows");
            return;
        }
        self.reloads += 1;
        let report = ReloadReport { began: rfc3339(SystemTime::now()), ..ReloadReport::default() };
        self.reloading = Some(Reloading { report, ..Reloading::default() });
        tracing::info!(number = self.reloads, "a reload was asked for");
        let load = Arc::clone(&self.settings.load);
        ctx.spawn(wrap_future(spawn_blocking(move || load())).map(|loaded, supervisor: &mut Self, ctx| {
            supervisor.loaded(loaded, ctx);
        }));
    }

    fn loaded(&mut self, loaded: Result<Result<Vec<Member>, String>, JoinError>, ctx: &mut Context<Self>) {
        // A stop that came meanwhile has taken it away.
        let Some(mut reloading) = self.reloading.take() else { return };
        let members = match loaded {
            Ok(members) => members,
            Err(error) => Err(match ExitReason::of(Err(error)) {
                ExitReason::Panicked(text) => format!("reading the definitions panicked: {text}"),
                ExitReason::Stopped | ExitReason::Cancelled => "reading the definitions was cut off".to_owned(),
            }),
        };
        match members {
            Ok(members) => {
                let known = self.slots.iter().map(|(slot, occupant)| (*slot, occupant.known.clone())).collect();
                reloading.changes = compare(&known, members);
                self.describe(&mut reloading);
                self.stop_what_goes(&mut reloading);
            }
            Err(reason) => reloading.report.error = Some(reason),
        }
        self.reloading = Some(reloading);
        self.finish_reload_if_stopped(ctx);
    }

    /// What needs no pipeline to stop is done at once; the report is written of everything.
    fn describe(&mut self, reloading: &mut Reloading) {
        let Reloading { changes, report, .. } = reloading;
        let name = |slot: &Slot| self.slots.get(slot).map(|occupant| occupant.known.name.to_string());
        report.changed = changes.changed.iter().map(|(_, name, ..)| name.to_string()).collect();
        report.unchanged = changes.unchanged.iter().filter_map(|(slot, _)| name(slot)).collect();
        report.removed = changes.gone.iter().filter_map(name).collect();
        for member in &changes.added {
            match &member.plan {
                Ok(_) => report.added.push(member.name.to_string()),
                Err(reason) => drop(report.broken.insert(member.name.to_string(), reason.clone())),
            }
        }
        let unchanged = std::mem::take(&mut changes.unchanged).into_iter().map(|(slot, file)| (slot, file, None));
        let broken = std::mem::take(&mut changes.broken).into_iter();
        for (slot, file, error) in unchanged.chain(broken.map(|(slot, file, reason)| (slot, file, Some(reason)))) {
            let Some(occupant) = self.slots.get_mut(&slot) else { continue };
            occupant.known.file.clone_from(&file);
            if let Some(reason) = &error {
                report.broken.insert(occupant.known.name.to_string(), reason.clone());
            }
            match (&occupant.pipeline, error) {
                (Some(pipeline), error) => pipeline.do_send(Described { file, error }),
                (None, Some(reason)) => {
                    let (known, vitals) = (occupant.known.clone(), Arc::clone(&occupant.vitals));
                    self.show_broken(slot, &known, &vitals, reason);
                }
                (None, None) => {}
            }
        }
    }

    fn stop_what_goes(&self, reloading: &mut Reloading) {
        let changed = reloading.changes.changed.iter().map(|(slot, ..)| *slot);
        for slot in changed.chain(reloading.changes.gone.iter().copied()) {
            if let Some(Occupant { pipeline: Some(pipeline), deadline, .. }) = self.slots.get(&slot) {
                pipeline.do_send(Stop { deadline: *deadline });
                reloading.waiting.insert(slot);
            }
        }
    }

    /// A pipeline is at rest.
    pub(super) fn stopped_for_reload(&mut self, slot: Slot, ctx: &mut Context<Self>) {
        if self.reloading.as_mut().is_some_and(|reloading| reloading.waiting.remove(&slot)) {
            self.finish_reload_if_stopped(ctx);
        }
    }

    fn finish_reload_if_stopped(&mut self, ctx: &mut Context<Self>) {
        let Some(Reloading { changes, report, again, .. }) =
            self.reloading.take_if(|reloading| reloading.waiting.is_empty())
        else {
            return;
        };
        let Changes { changed, added, gone, .. } = changes;
        for (slot, name, file, plan) in changed {
            match self.slots.get_mut(&slot) {
                Some(Occupant { known, deadline, pipeline: Some(pipeline), .. }) => {
                    known.file.clone_from(&file);
                    known.plan = Some(PlanKnown::of(&plan));
                    *deadline = plan.checkpoint.timeout;
                    pipeline.do_send(Begin { plan: Arc::new(plan), file });
                }
                // Until now its definition was not valid.
                _ => self.admit(slot, Member { name, file, plan: Ok(plan) }, ctx),
            }
        }
        for member in added {
            self.admit_new(member, ctx);
        }
        // Last, so that what is left is not taken for all there is.
        for slot in gone {
            match self.slots.remove(&slot) {
                Some(Occupant { pipeline: Some(pipeline), .. }) => pipeline.do_send(Leave),
                Some(Occupant { vitals, .. }) => {
                    self.board.remove(slot);
                    vitals.metrics.forget();
                }
                None => {}
            }
        }
        self.tell(report);
        if again {
            self.reload(ctx);
        }
    }

    fn tell(&self, mut report: ReloadReport) {
        report.number = self.reloads;
        report.at = rfc3339(SystemTime::now());
        let ReloadReport { number, added, removed, changed, unchanged, broken, error, .. } = &report;
        let result = match error {
            Some(_) => ReloadResult::Failed,
            None if broken.is_empty() => ReloadResult::Done,
            None => ReloadResult::Broken,
        };
        match error {
            Some(error) => tracing::error!(number, error, "the reload failed: nothing was changed"),
            None => {
                tracing::info!(number, ?added, ?removed, ?changed, ?unchanged, broken = broken.len(), "reloaded");
                for (pipeline, reason) in broken {
                    tracing::error!(pipeline, reason, "a definition is not valid");
                }
            }
        }
        self.settings.metrics.reload(result);
        self.board.reloaded(report);
    }
}
