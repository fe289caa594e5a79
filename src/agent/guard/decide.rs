//! The order of checks: who lets a command pass, and what is remembered.
//!
//! The first decision wins: isolation, floor, password guard, deny rules, switches, allowlist, absence, approved
//! rules, reviewer, human. A [`Guard`] keeps what was approved and how often the reviewer refused.
//!
//! Never: an approval that was not given, a rule remembered that was not named.

use std::collections::{BTreeMap, BTreeSet};

use super::lists::{self, denied};
use super::normalize::Homes;
use super::reviewer::{ReviewRequest, ReviewerFailed, Verdict};
use super::tally::Tally;
use super::unattended::{Context, is_isolated};
use super::variants::Budget;
use super::{Classification, classify, message, own};
use crate::policy::{self, GuardMode, Unattended};

/// A command that wants to run.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The command as the model wrote it.
    pub command: &'a str,
    /// Where user and agent live.
    pub homes: &'a Homes,
    /// The session that approvals and refusals belong to.
    pub session: &'a str,
    /// Who could answer.
    pub context: Context,
    /// Where it would run: `local`, `docker`, `ssh`, ….
    pub backend: &'a str,
    /// True when the backend reaches the host's files.
    pub reaches_host: bool,
}

/// What a human is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question<'a> {
    /// The command.
    pub command: &'a str,
    /// The rule that fired.
    pub rule: &'a str,
    /// False when the answer may only be once or no: the reviewer has refused already.
    pub may_remember: bool,
    /// Seconds until silence counts as no.
    pub timeout_seconds: u64,
}

/// A human's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This time.
    Once,
    /// This rule for the session.
    Session,
    /// This rule from now on.
    Always,
    /// No.
    Deny,
    /// None came in time.
    Timeout,
    /// The question was taken back.
    Withdrawn,
}

/// How a decision came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing spoke against it, or it was approved before.
    Passed,
    /// A human approved.
    UserApproved,
    /// The reviewer approved.
    SmartApproved,
    /// The floor.
    Hardline,
    /// A password from the input of sudo.
    SudoStdin,
    /// One of the user's deny rules.
    DenyRule,
    /// A human or the reviewer refused.
    Denied,
    /// The question was taken back: refused, without blame.
    Withdrawn,
    /// Nobody answered in time.
    Timeout,
    /// A chat in which nobody listens; the answer may come later.
    Pending,
    /// Nobody is there and the policy refuses.
    UnattendedDenied,
}

impl Kind {
    /// The kind as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::UserApproved => "user_approved",
            Self::SmartApproved => "smart_approved",
            Self::Hardline => "hardline",
            Self::SudoStdin => "sudo_stdin",
            Self::DenyRule => "deny_rule",
            Self::Denied | Self::Withdrawn => "denied",
            Self::Timeout => "timeout",
            Self::Pending => "pending",
            Self::UnattendedDenied => "unattended_denied",
        }
    }

    /// True when the command may run.
    pub fn approves(self) -> bool {
        matches!(self, Self::Passed | Self::UserApproved | Self::SmartApproved)
    }
}

/// The decision about one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// True when the command may run.
    pub approved: bool,
    /// How it came about.
    pub kind: Kind,
    /// The dangerous rule that fired, if it was looked for.
    pub rule: Option<String>,
    /// The entry of the floor that fired.
    pub hardline: Option<String>,
    /// What the floor says of the command, asked or not.
    pub floor: Option<String>,
    /// Reviewer refusals in a row after this decision.
    pub denials: u64,
    /// True when they reached the breaker's threshold.
    pub breaker_tripped: bool,
    /// What the model reads; empty when the command simply passes.
    pub message: String,
}

/// The reviewing model, as the guard asks it.
pub type Reviewer<'a> = dyn FnMut(&ReviewRequest) -> Result<String, ReviewerFailed> + 'a;
/// The human, as the guard asks them.
pub type Human<'a> = dyn FnMut(&Question) -> Answer + 'a;

/// Approvals and refusals of a run.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    knobs: policy::Guard,
    session_rules: BTreeMap<String, BTreeSet<String>>,
    permanent_rules: BTreeSet<String>,
    yolo_sessions: BTreeSet<String>,
    tally: Tally,
}

impl Guard {
    /// A guard without any approvals but those of the allowlist.
    pub fn new(knobs: &policy::Guard) -> Self {
        Self {
            knobs: knobs.clone(),
            session_rules: BTreeMap::new(),
            permanent_rules: BTreeSet::new(),
            yolo_sessions: BTreeSet::new(),
            tally: Tally::default(),
        }
    }

    /// The guard of the process that follows: approvals for good are in the configuration, the others are gone.
    #[must_use]
    pub fn in_new_process(&self) -> Self {
        Self { permanent_rules: self.permanent_rules.clone(), ..Self::new(&self.knobs) }
    }

    /// Says what a command is.
    pub fn classify(&self, command: &str, homes: &Homes) -> Classification {
        classify(command, homes, &self.knobs)
    }

    /// Approves a rule for one session.
    pub fn approve_for_session(&mut self, session: &str, rule: &str) {
        self.session_rules.entry(session.to_owned()).or_default().insert(rule.to_owned());
    }

    /// Lets every command of a session pass except for floor, password guard and deny rules, or ends that.
    pub fn set_yolo(&mut self, session: &str, on: bool) {
        if on {
            self.yolo_sessions.insert(session.to_owned());
        } else {
            self.yolo_sessions.remove(session);
        }
    }

    /// Rules approved for a session, sorted.
    pub fn session_rules(&self, session: &str) -> impl Iterator<Item = &str> {
        self.session_rules.get(session).into_iter().flatten().map(String::as_str)
    }

    /// Rules that a human approved for good in this run, sorted.
    pub fn permanent_rules(&self) -> impl Iterator<Item = &str> {
        self.permanent_rules.iter().map(String::as_str)
    }

    /// Forgets a session.
    pub fn end_session(&mut self, session: &str) {
        self.session_rules.remove(session);
        self.yolo_sessions.remove(session);
        self.tally.reset(session);
    }

    /// Decides about a command (Hermes tools/approval.py:1128).
    ///
    /// `reviewer` is called at most once, `human` at most once.
    pub fn decide(&mut self, request: &Request, reviewer: &mut Reviewer, human: &mut Human) -> Decision {
        let Classification { rule, hardline: floor } = self.classify(request.command, request.homes);
        let decision = match self.before_anyone(request, floor.as_deref()) {
            Some(decision) => decision,
            None => self.judge(request, rule, reviewer, human),
        };
        Decision { floor, ..decision }
    }

    /// True when a tool that runs code is refused as a whole: nobody is there, and what is dangerous is refused.
    pub fn refuses_code(&self, context: Context, backend: &str, reaches_host: bool) -> bool {
        let knobs = &self.knobs;
        context.is_unattended()
            && context.policy(knobs) == Some(Unattended::Deny)
            && !is_isolated(backend, reaches_host, knobs)
            && !knobs.yolo
            && knobs.mode != GuardMode::Off
    }

    /// What the rules say, and whoever may be asked about it.
    fn judge(
        &mut self,
        request: &Request,
        rule: Option<String>,
        reviewer: &mut Reviewer,
        human: &mut Human,
    ) -> Decision {
        let Some(rule) = rule else {
            return self.settle(request, Kind::Passed, None, "");
        };
        if !request.context.has_person() {
            return self.unattended(request, rule);
        }
        if self.is_permanent(&rule) || self.is_approved(request.session, &rule) {
            return self.settle(request, Kind::Passed, Some(rule), "");
        }
        let mut refused_by_reviewer = false;
        if self.knobs.mode == GuardMode::Smart {
            let asked = ReviewRequest::new(request.command, &rule, &self.knobs);
            let answer = reviewer(&asked);
            match Verdict::of(answer.as_deref().map_err(|failed| *failed)) {
                Verdict::Approve => {
                    self.tally.reset(request.session);
                    let what = rule.clone();
                    return self.settle(request, Kind::SmartApproved, Some(rule), &what);
                }
                Verdict::Deny => {
                    self.tally.deny(request.session, self.knobs.tallied_sessions_max);
                    refused_by_reviewer = true;
                }
                Verdict::Escalate => {}
            }
        }
        self.ask(request, rule, !refused_by_reviewer, human)
    }

    /// The checks that nobody is asked about.
    fn before_anyone(&self, request: &Request, floor: Option<&str>) -> Option<Decision> {
        let knobs = &self.knobs;
        let isolated = is_isolated(request.backend, request.reaches_host, knobs);
        if !isolated && let Some(decision) = self.floor(request, floor) {
            return Some(decision);
        }
        if (!isolated || knobs.deny_in_isolation)
            && let Some(hit) = denied(request.command, &knobs.deny, request.homes, Budget::of(knobs))
        {
            return Some(self.settle(request, Kind::DenyRule, None, &hit.rule));
        }
        let unasked = isolated
            || knobs.yolo
            || self.yolo_sessions.contains(request.session)
            || knobs.mode == GuardMode::Off
            || lists::allowed(request.command, &knobs.allowlist);
        unasked.then(|| self.settle(request, Kind::Passed, None, ""))
    }

    /// What no setting lifts.
    fn floor(&self, request: &Request, floor: Option<&str>) -> Option<Decision> {
        let knobs = &self.knobs;
        if knobs.hardline {
            let own = own::deletes_own(request.command, request.homes, &knobs.own_environment);
            if let Some(entry) = floor.or_else(|| own.then_some("own_environment")) {
                let decision = self.settle(request, Kind::Hardline, None, entry);
                return Some(Decision { hardline: Some(entry.to_owned()), ..decision });
            }
        }
        let reads =
            !knobs.sudo_password_configured && super::sudo_reads_stdin(request.command, request.homes, knobs);
        reads.then(|| self.settle(request, Kind::SudoStdin, None, ""))
    }

    fn unattended(&self, request: &Request, rule: String) -> Decision {
        let denies = request.context.policy(&self.knobs) == Some(Unattended::Deny);
        if denies && !self.is_permanent(&rule) {
            let what = rule.clone();
            return self.settle(request, Kind::UnattendedDenied, Some(rule), &what);
        }
        self.settle(request, Kind::Passed, Some(rule), "")
    }

    fn ask(&mut self, request: &Request, rule: String, may_remember: bool, human: &mut Human) -> Decision {
        if request.context == Context::ChatWithoutListener {
            let what = rule.clone();
            return self.settle(request, Kind::Pending, Some(rule), &what);
        }
        let question = Question {
            command: request.command,
            rule: &rule,
            may_remember,
            timeout_seconds: self.knobs.human_timeout_seconds,
        };
        let answer = human(&question);
        let kind = match answer {
            Answer::Once | Answer::Session | Answer::Always => Kind::UserApproved,
            Answer::Deny => Kind::Denied,
            Answer::Timeout => Kind::Timeout,
            Answer::Withdrawn => Kind::Withdrawn,
        };
        if kind.approves() {
            self.tally.reset(request.session);
        }
        if may_remember && matches!(answer, Answer::Session | Answer::Always) {
            self.approve_for_session(request.session, &rule);
        }
        if may_remember && answer == Answer::Always {
            self.permanent_rules.insert(rule.clone());
        }
        let what = if kind == Kind::Denied { format!("the user said no to {rule}") } else { rule.clone() };
        self.settle(request, kind, Some(rule), &what)
    }

    fn is_approved(&self, session: &str, rule: &str) -> bool {
        self.session_rules.get(session).is_some_and(|rules| rules.contains(rule))
    }

    fn is_permanent(&self, rule: &str) -> bool {
        self.permanent_rules.contains(rule) || self.knobs.allowlist.iter().any(|entry| entry.trim() == rule)
    }

    fn settle(&self, request: &Request, kind: Kind, rule: Option<String>, what: &str) -> Decision {
        let tripped = self.tally.tripped(request.session, self.knobs.denial_breaker_threshold);
        Decision {
            approved: kind.approves(),
            kind,
            rule,
            hardline: None,
            floor: None,
            denials: self.tally.count(request.session),
            breaker_tripped: tripped,
            message: message::text(kind, what, tripped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(command: &'a str, homes: &'a Homes) -> Request<'a> {
        Request {
            command,
            homes,
            session: "s",
            context: Context::Interactive,
            backend: "local",
            reaches_host: false,
        }
    }

    fn nobody(_: &ReviewRequest) -> Result<String, ReviewerFailed> {
        Err(ReviewerFailed)
    }

    #[test]
    fn no_switch_lifts_the_floor() {
        let homes = Homes::default();
        let knobs = policy::Guard { mode: GuardMode::Off, yolo: true, ..policy::Guard::default() };
        let decision =
            Guard::new(&knobs).decide(&request("rm -rf /", &homes), &mut nobody, &mut |_| Answer::Always);
        assert_eq!((decision.kind, decision.approved), (Kind::Hardline, false));
        assert!(decision.message.contains("never run"));
    }

    #[test]
    fn a_withdrawn_question_refuses_and_remembers_nothing() {
        let homes = Homes::default();
        let mut guard = Guard::new(&policy::Guard::default());
        let decision = guard.decide(&request("rm -r x", &homes), &mut nobody, &mut |_| Answer::Withdrawn);
        assert_eq!((decision.kind, decision.denials), (Kind::Withdrawn, 0));
        assert_eq!(guard.session_rules("s").count(), 0);
    }

    #[test]
    fn an_approved_session_rule_does_not_count_when_nobody_is_there() {
        let homes = Homes::default();
        let mut guard = Guard::new(&policy::Guard::default());
        guard.approve_for_session("s", "delete/recursive");
        let unattended = Request { context: Context::Cron, ..request("rm -r x", &homes) };
        let decision = guard.decide(&unattended, &mut nobody, &mut |_| Answer::Once);
        assert_eq!(decision.kind, Kind::UnattendedDenied);
    }

    #[test]
    fn a_name_on_the_allowlist_approves_its_rule_for_unattended_runs_as_well() {
        let homes = Homes::default();
        let knobs =
            policy::Guard { allowlist: vec!["delete/recursive".to_owned()], ..policy::Guard::default() };
        let unattended = Request { context: Context::Cron, ..request("rm -r x", &homes) };
        assert!(Guard::new(&knobs).decide(&unattended, &mut nobody, &mut |_| Answer::Deny).approved);
    }

    #[test]
    fn a_tripped_breaker_tells_the_model_to_stop() {
        let homes = Homes::default();
        let knobs = policy::Guard { mode: GuardMode::Smart, ..policy::Guard::default() };
        let mut guard = Guard::new(&knobs);
        let mut deny = |_: &ReviewRequest| Ok("DENY".to_owned());
        let mut last = None;
        for _ in 0..3 {
            last = Some(guard.decide(&request("rm -r x", &homes), &mut deny, &mut |_| Answer::Deny));
        }
        let last = last.unwrap();
        assert!(last.breaker_tripped && last.message.contains("Stop calling tools"));
    }
}
