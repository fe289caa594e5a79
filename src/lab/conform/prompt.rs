//! Adapter for the vectors of the system prompt. Translates words; behaves in no way of its own.

use std::cell::Cell;
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::agent::prompt::catalogue::{self, Offer, Root, Rows, shown_description};
use crate::agent::prompt::context_files::{self, ContextKind};
use crate::agent::prompt::date_line::{self, DateInputs};
use crate::agent::prompt::identity::{self, Environment, MODEL, PLATFORM, PROVIDER, Runtime, SESSION};
use crate::agent::prompt::index_delta::IndexDelta;
use crate::agent::prompt::restore::{StaticPart, Stored, restore};
use crate::agent::prompt::subdir_hints::SubdirHints;
use crate::agent::prompt::workspace::{KeptLook, Workspace};
use crate::agent::prompt::{Block, Profile, PromptInputs, assembly, gates, texts, truncate};
use crate::agent::threats::{Scanner, Scope};
use crate::lab::conform::{Fixtures, ReplayError};
use crate::policy::{Prompt, Threats, preset};
use crate::world::{Files, MemFiles, normalize};

type Answer = Result<Value, ReplayError>;

/// Answers one vector.
///
/// # Errors
/// An unknown function, or an input that lacks something.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Answer {
    match function {
        "description" => Ok(description(given)),
        "catalogue" => Ok(catalogue_of(given)),
        "truncate" => Ok(truncated(given)),
        "context_cap" => {
            Ok(json!({"max_chars": truncate::context_cap(field(given, "context_tokens"), &current())}))
        }
        "model_gate" => {
            let defaults = words(given, "defaults");
            let on = gates::model_gate(field(given, "setting"), text(given, "model"), &defaults);
            Ok(json!({"on": on}))
        }
        "platform_hint" => {
            let hint = gates::platform_hint(
                field(given, "overrides"),
                text(given, "platform"),
                text(given, "default"),
            );
            Ok(json!({"hint": hint}))
        }
        "join" => {
            let parts: Vec<Option<&str>> = items(given, "parts").iter().map(Value::as_str).collect();
            Ok(json!({"text": assembly::join(&parts)}))
        }
        "date_line" => date_line_of(given),
        "reuse" => Ok(reuse(given)),
        "identity_rewrite" => {
            let prompt =
                identity::rewrite(text(given, "prompt"), text(given, "model"), text(given, "provider"));
            Ok(json!({"prompt": prompt}))
        }
        "context_files" => Ok(context_files_of(given)),
        "subdir_hints" => Ok(subdir_hints(given)),
        "assembly" => Ok(assembled(given)),
        "restore" => Ok(restored(given)),
        "static_prefix" => Ok(static_prefix(given)),
        "index_delta" => Ok(index_delta(given)),
        other => Err(ReplayError::UnknownFunction(format!("prompt.{other}"))),
    }
}

/// The vectors were taken from the current revision.
fn current() -> Prompt {
    preset::policy("hermes-0.22").and_then(Result::ok).unwrap_or_default().prompt
}

fn field<'a>(given: &'a Value, key: &str) -> &'a Value {
    given.get(key).unwrap_or(&Value::Null)
}

fn text<'a>(given: &'a Value, key: &str) -> &'a str {
    field(given, key).as_str().unwrap_or("")
}

fn flag(given: &Value, key: &str) -> bool {
    field(given, key).as_bool().unwrap_or(false)
}

fn items<'a>(given: &'a Value, key: &str) -> &'a [Value] {
    field(given, key).as_array().map_or(&[], Vec::as_slice)
}

fn words(given: &Value, key: &str) -> Vec<String> {
    items(given, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn optional_words(given: &Value, key: &str) -> Option<Vec<String>> {
    field(given, key).is_array().then(|| words(given, key))
}

/// The tree of a vector; a key that ends in `/` is an empty directory.
fn tree(given: &Value, under: &str) -> MemFiles {
    let mut files = MemFiles::new();
    for (path, content) in field(given, "files").as_object().into_iter().flatten() {
        let path = format!("{under}{path}");
        // A path that collides with another one is left out, as on a disk.
        let _ = match path.strip_suffix('/') {
            Some(dir) => files.create_dir(dir),
            None => files.write(&path, content.as_str().unwrap_or("").as_bytes()),
        };
    }
    files
}

fn scan(text: &str) -> Vec<String> {
    Scanner::new(&Threats::default())
        .scan(text, Scope::Context)
        .into_iter()
        .map(|finding| finding.id().to_owned())
        .collect()
}

fn description(given: &Value) -> Value {
    let (shown, cut) = shown_description(Some(field(given, "description")), current().description_chars_max);
    json!({"text": shown, "length": shown.chars().count(), "cut": cut})
}

fn catalogue_of(given: &Value) -> Value {
    let files = tree(given, "skills/");
    let (tools, toolsets) = (optional_words(given, "tools"), optional_words(given, "toolsets"));
    let (disabled, demoted) = (words(given, "disabled"), words(given, "compact"));
    let offer = Offer {
        tools: tools.as_deref(),
        toolsets: toolsets.as_deref(),
        channel: field(given, "platform").as_str(),
        disabled: &disabled,
        demoted: &demoted,
        ..Offer::default()
    };
    let roots = [Root::home("skills")];
    let built = catalogue::build(&files, &roots, &[], &offer, &current());
    let again = catalogue::build(&files, &roots, &[], &offer, &current());
    let index: Vec<Value> = built
        .categories
        .iter()
        .map(|category| match &category.rows {
            Rows::Full(rows) => {
                json!({"category": category.name, "description": category.description, "skills": rows})
            }
            Rows::Names(names) => json!({"category": category.name, "names_only": names}),
        })
        .collect();
    json!({"index": index, "empty": built.text().is_empty(), "same_when_repeated": built.text() == again.text()})
}

fn truncated(given: &Value) -> Value {
    let cap = field(given, "max").as_u64().unwrap_or(0);
    let done = truncate::truncate(text(given, "content"), cap, "x", &current());
    let cut = done.cut.as_ref();
    json!({
        "cut": cut.is_some(),
        "head": cut.map(|cut| cut.head),
        "tail": cut.map(|cut| cut.tail),
        "omitted_headings": cut.map(|cut| cut.headings.clone()).unwrap_or_default(),
    })
}

fn instant(value: &Value) -> Option<i64> {
    value.as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

fn date_line_of(given: &Value) -> Answer {
    let knobs = Prompt { pass_session_id: flag(given, "pass_session_id"), ..current() };
    let inputs = DateInputs {
        now: instant(field(given, "now")).ok_or_else(|| ReplayError::Missing("now".to_owned()))?,
        zone: field(given, "zone").as_str(),
        session_id: text(given, "session_id"),
        session_start: instant(field(given, "session_start")),
        lineage_root: field(given, "lineage_root").as_str(),
        model: text(given, "model"),
        provider: text(given, "provider"),
        platform: text(given, "platform"),
        timeless: flag(given, "timeless"),
    };
    let line = date_line::date_line(inputs, &knobs);
    let mut answer = Map::new();
    if let Some(started) = line.started {
        answer.insert("started".to_owned(), json!(started));
    }
    if let Some(as_of) = line.as_of {
        answer.insert("as_of".to_owned(), json!(as_of));
    }
    if !line.zone.is_empty() {
        answer.insert("zone".to_owned(), json!(line.zone));
    }
    let fields = line.fields.into_iter().map(|(label, value)| (label.to_owned(), json!(value))).collect();
    answer.insert("fields".to_owned(), Value::Object(fields));
    Ok(Value::Object(answer))
}

fn directory(value: &str) -> String {
    value.replace("@here", "/here").replace("@else", "/else")
}

fn runtime(given: &Value) -> Runtime {
    Runtime {
        model: text(given, "model").to_owned(),
        provider: text(given, "provider").to_owned(),
        session: text(given, "session_id").to_owned(),
        directory: directory(text(given, "cwd")),
    }
}

fn reuse(given: &Value) -> Value {
    let stored = field(given, "stored");
    let mut lines = vec!["Started: 2026-09-24".to_owned()];
    for (label, key) in
        [(SESSION, "session_id"), (MODEL, "model"), (PROVIDER, "provider"), (PLATFORM, "platform")]
    {
        if !text(stored, key).is_empty() {
            lines.push(format!("{label}: {}", text(stored, key)));
        }
    }
    let environment = Environment { directory: directory(text(stored, "cwd")), ..Environment::default() };
    let environment = (!environment.directory.is_empty()).then(|| environment.text());
    let parts = [
        Some(texts::IDENTITY.to_owned()),
        Some(text(given, "noise").to_owned()),
        Some(lines.join("\n")),
        environment,
    ];
    let prompt = assembly::join(&parts);
    let mismatch =
        identity::mismatch(&prompt, &runtime(field(given, "runtime")), flag(given, "pass_session_id"));
    json!({"reuse": mismatch.is_none()})
}

fn kind_word(kind: ContextKind) -> &'static str {
    match kind {
        ContextKind::Hermes => "hermes_md",
        ContextKind::Agents => "agents_md",
        ContextKind::Claude => "claude_md",
        ContextKind::Cursor => "cursorrules",
    }
}

/// Words `mark<N>` of a text, in order.
fn marks(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            word.strip_prefix("mark")
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .collect()
}

fn context_files_of(given: &Value) -> Value {
    let files = tree(given, "");
    let cwd = normalize(text(given, "cwd")).unwrap_or_default();
    let found =
        context_files::project_context(&files, &cwd, field(given, "context_tokens"), &scan, &current());
    let listed: Vec<Value> =
        found.found.iter().map(|file| json!([kind_word(file.kind), file.label, file.is_blank()])).collect();
    let sections: Vec<&str> = found.sections.iter().map(|section| section.label.as_str()).collect();
    json!({
        "found": listed,
        "sections": sections,
        "marks": marks(&found.text),
        "blocked": found.sections.iter().any(|section| !section.objections.is_empty()),
        "cut": found.cut || found.sections.iter().any(|section| section.cut),
        "empty": found.text.is_empty(),
    })
}

/// Arguments with `@` standing for the root of the tree.
fn rooted(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) => Value::from(text.replace("@/", "/").replace('@', "/")),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), rooted(value))).collect())
        }
        other => other.clone(),
    }
}

fn subdir_hints(given: &Value) -> Value {
    let knobs = current();
    let files = tree(given, "");
    let cwd = normalize(text(given, "cwd")).unwrap_or_default();
    let mut seen = SubdirHints::new(&files, &cwd, flag(given, "enabled"), &knobs);
    let calls: Vec<Value> = items(given, "calls")
        .iter()
        .map(|call| {
            let arguments = rooted(field(call, "args"));
            let hints = seen.after_call(&files, text(call, "tool"), &arguments, &scan, &knobs);
            let loaded: BTreeSet<&str> = hints.iter().map(|hint| hint.label.as_str()).collect();
            json!({
                "loaded": loaded,
                "blocked": hints.iter().any(|hint| !hint.objections.is_empty()),
                "cut": hints.iter().any(|hint| hint.cut),
            })
        })
        .collect();
    json!({"calls": calls})
}

/// The vectors' name of a block; none for blocks that they do not tell apart.
fn block_word(block: Block) -> Option<&'static str> {
    Some(match block {
        Block::Soul => "soul",
        Block::Identity => "identity_default",
        Block::Help => "help",
        Block::Finishing => "task_completion",
        Block::ParallelCalls => "parallel_calls",
        Block::MemoryGuidance => "memory_guidance",
        Block::SearchGuidance => "session_search_guidance",
        Block::SkillsGuidance => "skills_guidance",
        Block::Steering => "steer_note",
        Block::Enforcement => "tool_enforcement",
        Block::PlatformHint => "platform_hint",
        Block::SystemMessage => "system_message",
        Block::ContextFiles => "context_files",
        Block::Workspace => "workspace",
        Block::Catalogue => "skills_index",
        Block::Memory => "memory",
        Block::UserProfile => "user_profile",
        Block::Profile => "profile_line",
        Block::Date => "date_line",
        Block::Environment => "runtime_environment",
        _ => return None,
    })
}

fn assembled(given: &Value) -> Value {
    let knobs = current();
    let mut files = MemFiles::new();
    let mut put = |path: &str, text: &str| files.write(path, text.as_bytes()).is_ok();
    if let Some(soul) = field(given, "soul").as_str() {
        put("home/SOUL.md", soul);
    }
    if let Some(context) = field(given, "context_file").as_str() {
        put("work/AGENTS.md", context);
    }
    if flag(given, "skills") {
        put("home/skills/a/one/SKILL.md", "---\nname: one\ndescription: d\n---\nbody\n");
    }
    if flag(given, "manual_skill") {
        put("home/skills/a/hermes-agent/SKILL.md", "---\nname: hermes-agent\ndescription: d\n---\nbody\n");
    }
    if flag(given, "repository") {
        put("work/.git/HEAD", "ref: refs/heads/main");
    }
    let tools = words(given, "tools");
    let offer = Offer { tools: Some(&tools), ..Offer::default() };
    let list = catalogue::build(&files, &[Root::home("home/skills")], &[], &offer, &knobs).text();
    let skips = flag(given, "skip_context_files");
    let (soul, _) = context_files::soul(&files, "home/SOUL.md", false, &Value::Null, &scan, &knobs);
    let project = context_files::project_context(&files, "work", &Value::Null, &scan, &knobs);
    let mut look = KeptLook::default();
    let snapshot = look.of(&files, "work");
    let inputs = PromptInputs {
        soul: soul.as_deref().filter(|_| !skips),
        tools: &tools,
        system_message: field(given, "system_message").as_str(),
        context_files: Some(project.text.as_str()).filter(|_| !skips),
        workspace: snapshot.map(|look| Workspace { snapshot: Some(look), ..Workspace::default() }),
        catalogue: Some(&list),
        memory: field(given, "memory").as_str(),
        user_profile: field(given, "user").as_str(),
        memory_enabled: flag(given, "memory_enabled"),
        user_enabled: flag(given, "user_enabled"),
        profile: Some(Profile { name: "default".to_owned(), home: "/home".to_owned() }),
        date: DateInputs {
            model: text(given, "model"),
            provider: "p1",
            platform: text(given, "platform"),
            ..DateInputs::default()
        },
        environment: Some(Environment { directory: "/work".to_owned(), ..Environment::default() }),
        ..PromptInputs::default()
    };
    let built = assembly::build(&inputs, &knobs);
    let named = |blocks: &[Block]| blocks.iter().copied().filter_map(block_word).collect::<Vec<_>>();
    let tiers = [Some(&built.stable.text), Some(&built.context.text), Some(&built.volatile.text)];
    let trailing = identity::trailer_value(&built.text, MODEL) == Some(text(given, "model"));
    json!({
        "stable": named(&built.stable.blocks),
        "context": named(&built.context.blocks),
        "volatile": named(&built.volatile.blocks),
        "is_concatenation": assembly::join(&tiers) == built.text,
        "ephemeral_inside": built.text.contains("EPHEMERAL"),
        "model_lines_last_paragraph_before_environment": trailing,
    })
}

fn restored(given: &Value) -> Value {
    let stored = match field(given, "row") {
        _ if flag(given, "db_fails") => Stored::Unreadable,
        row => row
            .get("system_prompt")
            .and_then(Value::as_str)
            .map_or(Stored::Missing, |prompt| Stored::Text(prompt.to_owned())),
    };
    let runtime = Runtime {
        model: text(given, "runtime_model").to_owned(),
        provider: "p1".to_owned(),
        ..Runtime::default()
    };
    let done = restore(
        flag(given, "history"),
        stored,
        &runtime,
        &current(),
        || text(given, "builder_returns").to_owned(),
        |_| !flag(given, "write_fails"),
    );
    json!({
        "prompt": done.prompt,
        "built": done.built.is_some(),
        "persisted": done.persisted.then_some(&done.prompt),
    })
}

fn static_prefix(given: &Value) -> Value {
    let mut part = StaticPart::known(field(given, "existing").as_str().map(str::to_owned));
    let rebuilds = Cell::new(0);
    let mut found = None;
    for _ in 0..2 {
        let rebuild = || {
            rebuilds.set(rebuilds.get() + 1);
            text(given, "rebuilt_stable").to_owned()
        };
        found = part.of(text(given, "stored"), flag(given, "caching"), rebuild).map(str::to_owned);
    }
    json!({"static": found, "rebuilds": rebuilds.get()})
}

fn index_delta(given: &Value) -> Value {
    let mut delta = IndexDelta::new(optional_words(given, "prompt_index"));
    let turns: Vec<Value> = items(given, "turns")
        .iter()
        .map(|names| {
            let names = names.as_array().map_or(&[][..], Vec::as_slice);
            let note = delta.turn(names.iter().filter_map(Value::as_str));
            json!({
                "note": note.is_some(),
                "added": note.as_ref().map(|note| &note.added),
                "removed": note.as_ref().map(|note| &note.removed),
            })
        })
        .collect();
    json!({"turns": turns})
}
