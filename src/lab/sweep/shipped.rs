//! Defaults in question: the sweeps whose results lie in `reports/`.

use super::{Axis, Sweep, World};
use crate::lab::life::Kind;
use crate::lab::play::Plan;
use crate::policy::Policy;

/// A shipped sweep: one knob, what a value costs and what it buys.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// Name of its files.
    pub name: &'static str,
    /// What is asked, for people.
    pub asks: &'static str,
    /// The range, as on the command line.
    pub range: &'static str,
    /// The life in which it is asked, and its days.
    pub life: (Kind, u64),
    /// Measure that is paid.
    pub cost: &'static str,
    /// Measure that is bought.
    pub benefit: &'static str,
    /// What the curve says, where it needs saying.
    pub note: &'static str,
}

/// Every shipped sweep.
pub const QUESTIONS: [Question; 7] = [
    Question {
        name: "skill-interval",
        asks: "after how many steps should a review look for skills?",
        range: "review.skill_interval=2..40:2",
        life: (Kind::OnCall, 30),
        cost: "review_tokens_per_day",
        benefit: "skills_used",
        note: "A review is due when so many tool rounds lie behind it. The interval counts within a session, and a day on call is about thirty \
               rounds: above that nothing is learned at all.",
    },
    Question {
        name: "memory-interval",
        asks: "after how many turns should a review look for facts?",
        range: "review.memory_interval=2..60:2",
        life: (Kind::Chat, 24),
        cost: "review_tokens_per_day",
        benefit: "learned_facts_seen_thousandths",
        note: "What was said counts as seen while it stands in the history, too. A long interval writes facts down after the \
               compaction that takes them away.",
    },
    Question {
        name: "memory-cap",
        asks: "how many characters of memory should every prompt carry?",
        range: "memory.chars_max=200..4200:400",
        life: (Kind::Chat, 24),
        cost: "memory_chars_max",
        benefit: "memory_facts_seen_thousandths",
        note: "",
    },
    Question {
        name: "stale-days",
        asks: "after how many days is a skill stale?",
        range: "curator.stale_after_days=2..30:2",
        life: (Kind::OnCall, 60),
        cost: "catalogue_share_thousandths",
        benefit: "skills_used",
        note: "`stale` is a word in the usage record. Neither the catalogue nor the next pass reads it: a skill is archived by its idle \
               days whether it was called stale before or not. The line is flat because the knob moves nothing that a model sees; the \
               sweep stays to show it.",
    },
    Question {
        name: "archive-days",
        asks: "after how many days does a skill leave the catalogue?",
        range: "curator.archive_after_days=5..60:5",
        life: (Kind::OnCall, 60),
        cost: "catalogue_share_thousandths",
        benefit: "skills_used",
        note: "",
    },
    Question {
        name: "compaction-threshold",
        asks: "how full may the window be before the history is compacted?",
        range: "compress.small_window_threshold=0.35..0.85:0.05",
        life: (Kind::Chat, 24),
        cost: "cost_micro_usd_per_day",
        benefit: "history_facts_seen_thousandths",
        note: "Up to 0.5 the floor in tokens decides, not the share.",
    },
    Question {
        name: "tail-budget",
        asks: "how many tokens of history should a compaction keep word for word?",
        range: "compress.tail_budget=1000..12000:1000",
        life: (Kind::Chat, 24),
        cost: "cost_micro_usd_per_day",
        benefit: "history_facts_seen_thousandths",
        note: "Above a fifth of the window the budget is cut to that share. The default computes its budget from the window and has no \
               place on this axis.",
    },
];

impl Question {
    /// The sweep.
    ///
    /// # Panics
    /// When its range does not fit its knob, which a test forbids.
    pub fn sweep(&self) -> Sweep {
        let axis = Axis::parse(self.range).expect("a shipped range fits its knob");
        Sweep {
            world: World::Life(self.life.0, self.life.1),
            axes: vec![axis],
            seeds: 1,
            plan: Plan::default(),
        }
    }

    /// Where the default stands, if it is a number.
    pub fn default(&self) -> Option<f64> {
        let knob = self.range.split('=').next().unwrap_or_default();
        Policy::default().get(knob).and_then(|value| value.as_f64())
    }
}
