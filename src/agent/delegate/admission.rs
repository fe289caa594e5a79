//! Whether a call of `delegate_task` may spawn. The first failure refuses the whole call; nothing is spawned then.
//!
//! Sources: Hermes tools/delegate_tool.py:483, tools/delegate_tool_tasks.py.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::policy;

/// Images that one task may carry; Hermes tools/delegate_tool_tasks.py.
const IMAGES_MAX: usize = 8;
/// Shortest goal among several, in characters; Hermes tools/delegate_tool_tasks.py.
const GOAL_CHARS_MIN: usize = 10;

/// A template that nobody filled in: several joined words in angle brackets or braces.
static MARKER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"<[A-Za-z][A-Za-z0-9]*(?:[ _-][A-Za-z0-9]+)+>|\{[A-Za-z][A-Za-z0-9]*(?:[ _-][A-Za-z0-9]+)+\}")
        .ok()
});
/// A goal that only says that there is one.
static PLACEHOLDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(?:todo|task\s*\d+)$").ok());

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody asks.
    #[error("no_parent")]
    NoParent,
    /// The action is none.
    #[error("unknown_action")]
    UnknownAction,
    /// The operator has paused spawning.
    #[error("paused")]
    Paused,
    /// The agent is too deep.
    #[error("depth_limit")]
    DepthLimit,
    /// The tasks are a text that is no JSON array.
    #[error("tasks_not_array")]
    TasksNotArray,
    /// There is neither a task nor a goal.
    #[error("no_tasks")]
    NoTasks,
    /// There are more tasks than may run at once.
    #[error("too_many_tasks")]
    TooManyTasks,
    /// A task is no object.
    #[error("task_not_object")]
    TaskNotObject,
    /// A task has no goal.
    #[error("goal_missing")]
    GoalMissing,
    /// A goal says nothing.
    #[error("placeholder_goal")]
    PlaceholderGoal,
    /// A goal holds a template that nobody filled in.
    #[error("template_marker")]
    TemplateMarker,
    /// A goal among several is too short to tell them apart.
    #[error("goal_too_short")]
    GoalTooShort,
    /// An output schema is none.
    #[error("schema_invalid")]
    SchemaInvalid,
    /// Images are no texts.
    #[error("images_invalid")]
    ImagesInvalid,
    /// A task has too many images.
    #[error("images_too_many")]
    ImagesTooMany,
    /// The turn has spawned as many children as it may.
    #[error("turn_budget")]
    TurnBudget,
    /// A run that cannot wait for later results has used up its children.
    #[error("oneshot_budget")]
    OneshotBudget,
}

/// A call and who makes it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The arguments.
    pub arguments: &'a Value,
    /// False when there is no agent to report to.
    pub has_parent: bool,
    /// Depth of the agent that asks; the root has 0.
    pub depth: u64,
    /// True while the operator has paused spawning.
    pub paused: bool,
    /// Children that this turn has spawned so far.
    pub spawned_this_turn: u64,
    /// Children so far of a run that cannot wait for later results; `None` when this is no such run.
    pub oneshot_children: Option<u64>,
}

/// One admitted task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// What is to be done.
    pub goal: String,
    /// What the child has to know beside its goal; text alone counts.
    pub context: Option<String>,
    /// Group of results that are delivered together.
    pub group: Value,
    /// What the answer must look like.
    pub schema: Option<Value>,
}

/// The tasks of a call that may spawn; no task for a control call (`list`, `steer`, `stop`).
///
/// # Errors
/// The first check that fails.
pub fn admit(call: &Call<'_>, policy: &policy::Delegate) -> Result<Vec<Task>, Refusal> {
    if !call.has_parent {
        return Err(Refusal::NoParent);
    }
    match call.arguments["action"].as_str().unwrap_or_default().trim().to_lowercase().as_str() {
        "list" | "steer" | "stop" => return Ok(Vec::new()),
        "" | "spawn" => {}
        _ => return Err(Refusal::UnknownAction),
    }
    if call.paused {
        return Err(Refusal::Paused);
    }
    if call.depth >= policy.max_spawn_depth {
        return Err(Refusal::DepthLimit);
    }
    let tasks = tasks(call.arguments, policy)?;
    // Differs: the real agent bounds a call, not the calls of a turn; the knob is off by default.
    let over = |so_far: u64, most: u64| most > 0 && so_far + tasks.len() as u64 > most;
    if over(call.spawned_this_turn, policy.spawns_per_turn_max) {
        return Err(Refusal::TurnBudget);
    }
    if let Some(so_far) = call.oneshot_children
        && over(so_far, policy.oneshot_max_children)
    {
        return Err(Refusal::OneshotBudget);
    }
    Ok(tasks)
}

fn tasks(arguments: &Value, policy: &policy::Delegate) -> Result<Vec<Task>, Refusal> {
    let Some(list) = task_list(&arguments["tasks"])? else {
        let goal =
            arguments["goal"].as_str().filter(|goal| !goal.trim().is_empty()).ok_or(Refusal::NoTasks)?;
        let schema = schema(&arguments["output_schema"])?;
        images(&arguments["images"])?;
        return Ok(vec![Task {
            goal: goal.to_owned(),
            context: context(arguments),
            group: Value::Null,
            schema,
        }]);
    };
    if list.len() as u64 > policy.max_concurrent_children {
        return Err(Refusal::TooManyTasks);
    }
    let goals: Vec<&str> = list.iter().map(goal_of).collect::<Result<_, _>>()?;
    for goal in &goals {
        well_said(goal, goals.len())?;
    }
    let mut admitted = Vec::new();
    for (task, goal) in list.iter().zip(goals) {
        // The call's own schema is meant for its single task.
        let own = Some(&task["output_schema"]).filter(|schema| !schema.is_null());
        let shared = (list.len() == 1).then(|| &arguments["output_schema"]);
        let schema = own.or(shared).map_or(Ok(None), schema)?;
        admitted.push(Task {
            goal: goal.to_owned(),
            context: context(task),
            group: task["group"].clone(),
            schema,
        });
    }
    list.iter().try_for_each(|task| images(&task["images"]))?;
    Ok(admitted)
}

/// The tasks, given as a list or as the JSON text of one; `None` when there are none.
fn task_list(tasks: &Value) -> Result<Option<Vec<Value>>, Refusal> {
    let list = match tasks {
        Value::Null => return Ok(None),
        Value::Array(list) => list.clone(),
        Value::String(text) if text.trim().is_empty() => return Err(Refusal::NoTasks),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Array(list)) => list,
            _ => return Err(Refusal::TasksNotArray),
        },
        _ => return Err(Refusal::TasksNotArray),
    };
    Ok(Some(list).filter(|list| !list.is_empty()))
}

fn goal_of(task: &Value) -> Result<&str, Refusal> {
    let task = task.as_object().ok_or(Refusal::TaskNotObject)?;
    let goal = task.get("goal").and_then(Value::as_str).unwrap_or_default();
    if goal.trim().is_empty() { Err(Refusal::GoalMissing) } else { Ok(goal) }
}

fn well_said(goal: &str, of: usize) -> Result<(), Refusal> {
    let goal = goal.trim();
    let matches = |pattern: &LazyLock<Option<Regex>>, text: &str| {
        pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
    };
    if matches(&PLACEHOLDER, &goal.to_lowercase()) {
        Err(Refusal::PlaceholderGoal)
    } else if matches(&MARKER, goal) {
        Err(Refusal::TemplateMarker)
    } else if of > 1 && goal.chars().count() < GOAL_CHARS_MIN {
        Err(Refusal::GoalTooShort)
    } else {
        Ok(())
    }
}

fn schema(value: &Value) -> Result<Option<Value>, Refusal> {
    let schema = match value {
        Value::Null => return Ok(None),
        Value::String(text) => serde_json::from_str(text).map_err(|_| Refusal::SchemaInvalid)?,
        other => other.clone(),
    };
    if schema.is_object() && super::schema::is_schema(&schema) {
        Ok(Some(schema))
    } else {
        Err(Refusal::SchemaInvalid)
    }
}

fn context(given: &Value) -> Option<String> {
    given["context"].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn images(value: &Value) -> Result<(), Refusal> {
    let blank = |image: &Value| image.as_str().is_none_or(|path| path.trim().is_empty());
    match value {
        Value::Array(list) if list.iter().any(blank) => Err(Refusal::ImagesInvalid),
        Value::Array(list) if list.len() > IMAGES_MAX => Err(Refusal::ImagesTooMany),
        Value::Null | Value::Array(_) => Ok(()),
        one if blank(one) => Err(Refusal::ImagesInvalid),
        _ => Ok(()),
    }
}
