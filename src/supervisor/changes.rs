//! What a reload changes: the definitions as they are now, against those that run. Plain data.

use std::collections::BTreeMap;

use super::Member;
use crate::{
    connectors::{Claim, Plan},
    definition::Digest,
    model::{PipelineName, Slot},
};

/// What is known of the pipeline in a slot.
#[derive(Debug, Clone)]
pub struct Known {
    pub name: PipelineName,
    pub file: String,
    /// `None`: its definition is not valid, and was not when it came.
    pub plan: Option<PlanKnown>,
}

/// What is known of a plan that runs.
#[derive(Debug, Clone)]
pub struct PlanKnown {
    pub definition: Digest,
    pub claims: Vec<Claim>,
}

impl PlanKnown {
    pub fn of(plan: &Plan) -> Self {
        Self { definition: plan.definition, claims: plan.claims.clone() }
    }
}

/// What is to be done.
#[derive(Default)]
pub struct Changes {
    /// For new slots; those whose definition is not valid among them.
    pub added: Vec<Member>,
    /// To be stopped, then started from another plan.
    pub changed: Vec<(Slot, PipelineName, String, Plan)>,
    /// Each with its file, which may have another name.
    pub unchanged: Vec<(Slot, String)>,
    /// To be left alone, each with the file and what is wrong with it.
    pub broken: Vec<(Slot, String, String)>,
    /// To be stopped and forgotten.
    pub gone: Vec<Slot>,
}

/// Compares. A definition that is valid belongs to the pipeline of its name. One that is not may not even have a name
/// that can be read: it belongs to the pipeline that came from its file.
pub fn compare(known: &BTreeMap<Slot, Known>, members: Vec<Member>) -> Changes {
    let mut changes = Changes::default();
    let mut left: BTreeMap<Slot, &Known> = known.iter().map(|(slot, known)| (*slot, known)).collect();
    let mut take = |is_it: &dyn Fn(&Known) -> bool| {
        let slot = left.iter().find(|(_, known)| is_it(known)).map(|(slot, _)| *slot)?;
        left.remove(&slot).map(|known| (slot, known))
    };
    let mut broken = Vec::new();
    for Member { name, file, plan } in members {
        let plan = match plan {
            Ok(plan) => plan,
            Err(reason) => {
                broken.push((name, file, reason));
                continue;
            }
        };
        match take(&|known| known.name == name) {
            None => changes.added.push(Member { name, file, plan: Ok(plan) }),
            Some((slot, known)) if known.plan.as_ref().is_some_and(|known| known.definition == plan.definition) => {
                changes.unchanged.push((slot, file));
            }
            Some((slot, _)) => changes.changed.push((slot, name, file, plan)),
        }
    }
    let mut unmatched = Vec::new();
    for (name, file, reason) in broken {
        match take(&|known| known.file == file) {
            Some((slot, _)) => changes.broken.push((slot, file, reason)),
            None => unmatched.push((name, file, reason)),
        }
    }
    for (name, file, reason) in unmatched {
        match take(&|known| known.name == name) {
            Some((slot, _)) => changes.broken.push((slot, file, reason)),
            None => changes.added.push(Member { name, file, plan: Err(reason) }),
        }
    }
    changes.gone = left.into_keys().collect();
    changes.refuse_what_is_taken(known);
    changes.rename_what_is_shown_twice(known);
    changes
}

impl Changes {
    /// A pipeline whose definition is broken goes on, so what it has cannot be another's yet. Whoever is refused goes
    /// on, or not, likewise: so again, until nobody is.
    fn refuse_what_is_taken(&mut self, known: &BTreeMap<Slot, Known>) {
        loop {
            let kept: Vec<&Known> = self.broken.iter().filter_map(|(slot, ..)| known.get(slot)).collect();
            let taken = |plan: &Plan| kept.iter().find_map(|known| taken(known, plan));
            if let Some((at, reason)) =
                self.changed.iter().enumerate().find_map(|(at, (.., plan))| Some((at, taken(plan)?)))
            {
                let (slot, _, file, _) = self.changed.remove(at);
                self.broken.push((slot, file, reason));
                continue;
            }
            for member in &mut self.added {
                if let Some(reason) = member.plan.as_ref().ok().and_then(taken) {
                    member.plan = Err(reason);
                }
            }
            return;
        }
    }

    /// A broken definition may be shown under a name that a pipeline has whose own file cannot be read any more.
    fn rename_what_is_shown_twice(&mut self, known: &BTreeMap<Slot, Known>) {
        let kept = self.broken.iter().filter_map(|(slot, ..)| Some(known.get(slot)?.name.clone()));
        let mut names: Vec<PipelineName> = kept.collect();
        for member in self.added.iter_mut().filter(|member| member.plan.is_err()) {
            let shown = member.name.clone();
            let mut number = 2_u64;
            while names.contains(&member.name) {
                member.name = PipelineName::resembling(&format!("{number}-{shown}"));
                number += 1;
            }
            names.push(member.name.clone());
        }
    }
}

/// Why a plan cannot be carried out while `known` goes on as before. Repeats neither queue nor path: either may have
/// come from a secret.
fn taken(known: &Known, plan: &Plan) -> Option<String> {
    let claims = &known.plan.as_ref()?.claims;
    let what = plan.claims.iter().find(|claim| known.name != plan.name && claims.contains(claim))?;
    let what = match what {
        Claim::Name(_) => "has this name",
        Claim::Queue(_) => "reads this queue",
        Claim::Folder(_) => "writes to this folder",
    };
    Some(format!(
        "pipeline `{}` {what}, and goes on with its earlier definition since the one in {} is not valid",
        known.name, known.file
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::SourceIdentity,
        pipeline::tests::harness::{Rig, Setup},
    };

    fn name(name: &str) -> PipelineName {
        PipelineName::new(name).unwrap()
    }

    fn queue(queue: &str) -> Claim {
        Claim::Queue(SourceIdentity(queue.to_owned()))
    }

    fn valid(rig: &Rig, file: &str, called: &str, text: &str, reads: &str) -> Member {
        let plan = Plan { definition: Digest::of(text), claims: vec![queue(reads)], ..rig.plan_of(called, &rig.world) };
        Member { name: name(called), file: file.to_owned(), plan: Ok(plan) }
    }

    fn broken(file: &str, called: &str) -> Member {
        Member { name: name(called), file: file.to_owned(), plan: Err("it is broken".to_owned()) }
    }

    fn known(members: impl IntoIterator<Item = Member>) -> BTreeMap<Slot, Known> {
        let known = |member: Member| Known {
            plan: member.plan.as_ref().ok().map(PlanKnown::of),
            name: member.name,
            file: member.file,
        };
        (1..).map(Slot).zip(members.into_iter().map(known)).collect()
    }

    fn slots<'a, T: 'a>(list: &'a [T], slot: impl Fn(&'a T) -> Slot) -> Vec<u32> {
        list.iter().map(|one| slot(one).0).collect()
    }

    /// Slots that are changed, unchanged, broken and gone; then names that are added, and whether each is valid.
    type Told = ([Vec<u32>; 4], Vec<(String, bool)>);

    fn told(changes: &Changes) -> Told {
        let kept = [
            slots(&changes.changed, |one| one.0),
            slots(&changes.unchanged, |one| one.0),
            slots(&changes.broken, |one| one.0),
            slots(&changes.gone, |one| *one),
        ];
        (kept, changes.added.iter().map(|member| (member.name.to_string(), member.plan.is_ok())).collect())
    }

    fn compared(before: Vec<Member>, after: Vec<Member>) -> Told {
        told(&compare(&known(before), after))
    }

    fn added(names: &[(&str, bool)]) -> Vec<(String, bool)> {
        names.iter().map(|(name, valid)| ((*name).to_owned(), *valid)).collect()
    }

    #[test]
    fn new_gone_changed_unchanged_and_broken_are_told_apart() {
        let rig = Rig::new(Setup::default());
        let before = ["a", "b", "c", "d"].map(|n| valid(&rig, n, n, "v1", n)).into_iter();
        let before = before.chain([broken("e", "e"), broken("f", "f")]).collect();
        let after = vec![
            valid(&rig, "moved", "a", "v1", "a"),
            valid(&rig, "b", "b", "v2", "b"),
            broken("c", "c"),
            valid(&rig, "e", "e", "v1", "e"),
            broken("f", "f"),
            valid(&rig, "g", "g", "v1", "g"),
            broken("h", "h"),
        ];
        let expected = ([vec![2, 5], vec![1], vec![3, 6], vec![4]], added(&[("g", true), ("h", false)]));
        assert_eq!(compared(before, after), expected);
    }

    #[test]
    fn a_file_whose_name_cannot_be_read_any_more_leaves_its_pipeline_alone() {
        let rig = Rig::new(Setup::default());
        let before = vec![valid(&rig, "a.yaml", "orders", "v1", "q")];
        assert_eq!(compared(before, vec![broken("a.yaml", "a")]), ([vec![], vec![], vec![1], vec![]], vec![]));
    }

    #[test]
    fn another_name_for_the_same_queue_is_one_gone_and_one_new() {
        let rig = Rig::new(Setup::default());
        let before = vec![valid(&rig, "a", "a", "v1", "q")];
        let after = vec![valid(&rig, "a", "b", "v1", "q")];
        assert_eq!(compared(before, after), ([vec![], vec![], vec![], vec![1]], added(&[("b", true)])));
    }

    #[test]
    fn what_a_pipeline_with_a_broken_definition_has_is_nobody_elses_whoever_has_to_wait_for_it() {
        let rig = Rig::new(Setup::default());
        let before = vec![valid(&rig, "a", "a", "v1", "q1"), valid(&rig, "b", "b", "v1", "q2")];
        // `b` may not have q1 yet, so `c` may not have q2 yet.
        let after = vec![broken("a", "a"), valid(&rig, "b", "b", "v2", "q1"), valid(&rig, "c", "c", "v1", "q2")];
        let changes = compare(&known(before), after);
        assert_eq!(told(&changes), ([vec![], vec![], vec![1, 2], vec![]], added(&[("c", false)])));
        let reason = changes.added[0].plan.as_ref().err().unwrap();
        assert!(reason.starts_with("pipeline `b` reads this queue, and goes on"), "{reason}");
    }

    #[test]
    fn no_two_are_shown_under_one_name() {
        let rig = Rig::new(Setup::default());
        let before = vec![valid(&rig, "y.yaml", "x", "v1", "q")];
        let after = vec![broken("x.yaml", "x"), broken("y.yaml", "y")];
        assert_eq!(compared(before, after), ([vec![], vec![], vec![1], vec![]], added(&[("2-x", false)])));
    }
}
