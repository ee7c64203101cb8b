//! Which positions the service has been told, and which it is to be told next. Plain data.

use std::collections::BTreeMap;

use crate::model::LaneId;

/// One commit is under way at a time; of each lane only its newest position is told.
#[derive(Debug, Default)]
pub struct Commits {
    wanted: BTreeMap<LaneId, u64>,
    under_way: Option<BTreeMap<LaneId, u64>>,
}

impl Commits {
    /// The store holds these; the service may know.
    pub fn want(&mut self, positions: impl IntoIterator<Item = (LaneId, u64)>) {
        self.wanted.extend(positions);
    }

    /// Nothing need be told of this lane any more.
    pub fn forget(&mut self, lane: &LaneId) {
        self.wanted.remove(lane);
    }

    /// What to tell now. `None`: nothing, or a commit is under way.
    pub fn begin(&mut self) -> Option<BTreeMap<LaneId, u64>> {
        if self.under_way.is_some() || self.wanted.is_empty() {
            return None;
        }
        self.under_way = Some(std::mem::take(&mut self.wanted));
        self.under_way.clone()
    }

    /// The commit has ended. What it did not do is left to the next one, unless there is something newer.
    pub fn ended(&mut self, done: bool) {
        for (lane, position) in self.under_way.take().unwrap_or_default() {
            if !done {
                self.wanted.entry(lane).or_insert(position);
            }
        }
    }

    /// Whether a commit is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether the service knows everything of the lane that it may know.
    pub fn is_told(&self, lane: &LaneId) -> bool {
        !self.wanted.contains_key(lane) && self.under_way.as_ref().is_none_or(|told| !told.contains_key(lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_commit_at_a_time_the_newest_positions_and_what_failed_again_unless_it_is_old_by_then() {
        let (a, b) = (LaneId("a".into()), LaneId("b".into()));
        let mut commits = Commits::default();
        assert_eq!(commits.begin(), None);
        commits.want([(a.clone(), 1), (b.clone(), 1)]);
        commits.want([(a.clone(), 2)]);
        assert_eq!(commits.begin(), Some(BTreeMap::from([(a.clone(), 2), (b.clone(), 1)])));
        commits.want([(a.clone(), 3)]);
        assert_eq!(commits.begin(), None);
        assert!(!commits.is_told(&a) && !commits.is_told(&b));
        commits.ended(false);
        assert_eq!(commits.begin(), Some(BTreeMap::from([(a.clone(), 3), (b.clone(), 1)])));
        commits.ended(true);
        assert!(commits.begin().is_none() && commits.is_told(&a) && commits.is_told(&b));
    }
}
