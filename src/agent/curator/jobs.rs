//! The skills that scheduled jobs name: they are spared by ageing, and follow a merge.
//!
//! Called by a run before ageing and after a consolidation.

use std::collections::{BTreeMap, BTreeSet};

/// The skill fields of one job: the list, and the older single field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobSkills {
    /// The list.
    pub skills: Option<Vec<String>>,
    /// The single field.
    pub skill: Option<String>,
}

impl JobSkills {
    /// The names that the job uses.
    pub fn names(&self) -> Vec<String> {
        match &self.skills {
            Some(list) if !list.is_empty() => list.clone(),
            _ => self.skill.iter().filter(|name| !name.is_empty()).cloned().collect(),
        }
    }
}

/// How the names of one job changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// Index of the job.
    pub job: usize,
    /// The names before.
    pub before: Vec<String>,
    /// The names after.
    pub after: Vec<String>,
    /// Names that were replaced, and by what.
    pub mapped: BTreeMap<String, String>,
    /// Names that were dropped.
    pub dropped: Vec<String>,
}

/// Every name that any job uses, paused and disabled jobs included.
pub fn referenced(jobs: &[JobSkills]) -> BTreeSet<String> {
    jobs.iter().flat_map(JobSkills::names).collect()
}

/// Lets the jobs follow merges and drop what is gone (Hermes cron/jobs.py:3453). A name in both counts as merged.
pub fn rewrite(
    jobs: &mut [JobSkills],
    consolidated: &BTreeMap<String, String>,
    pruned: &BTreeSet<String>,
) -> Vec<Rewrite> {
    let mut rewrites = Vec::new();
    for (job, fields) in jobs.iter_mut().enumerate() {
        let before = fields.names();
        let mut after: Vec<String> = Vec::new();
        let mut mapped = BTreeMap::new();
        let mut dropped = Vec::new();
        for name in &before {
            let next = match consolidated.get(name) {
                Some(target) => {
                    mapped.insert(name.clone(), target.clone());
                    target
                }
                None if pruned.contains(name) => {
                    dropped.push(name.clone());
                    continue;
                }
                None => name,
            };
            if !after.contains(next) {
                after.push(next.clone());
            }
        }
        if mapped.is_empty() && dropped.is_empty() {
            continue;
        }
        fields.skill = after.first().cloned();
        fields.skills = Some(after.clone());
        rewrites.push(Rewrite { job, before, after, mapped, dropped });
    }
    rewrites
}
