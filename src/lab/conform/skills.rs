//! Adapter of the family `skills`.

use serde_json::{Map, Value, json};

use super::{Fixtures, ReplayError};
use crate::agent::skills::{
    self, Done, Library, Lifecycle, Operation, Origin, Owners, Record, Refusal, Request, State, Usage,
    Writer, fuzzy,
};
use crate::agent::stamp;
use crate::policy::{self, Policy, ReviewPolicy};
use crate::world::{Files, MemFiles, Millis};

/// Where the adapter keeps foreign skills.
const EXTERNAL: &str = "external";
const NOW: Millis = 1_790_000_000_000;

/// Replays one vector of the skills' functions.
///
/// # Errors
/// When the function is unknown or the input lacks something.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    let text = |key: &str| {
        given.get(key).and_then(Value::as_str).ok_or_else(|| ReplayError::Missing(key.to_owned()))
    };
    let knobs = policy::Skills::default();
    let checked = |result: Result<(), Refusal>| json!({"error": result.err().map(|refusal| refusal.id())});
    Ok(match function {
        "validate_name" => checked(skills::validate_name(text("name")?, &knobs)),
        "validate_category" => checked(skills::validate_category(given.get("category"), &knobs).map(drop)),
        "validate_frontmatter" => {
            let new = given["new_skill"].as_bool().unwrap_or(false);
            checked(skills::validate_content(text("content")?, new, &knobs))
        }
        "parse_frontmatter" => {
            let (fields, body) = skills::parse_frontmatter(text("content")?);
            json!({"frontmatter": fields, "body": body})
        }
        "index_description" => {
            let (line, truncated) = skills::catalogue_line(&given["description"], knobs.catalogue_chars_max);
            json!({"text": line, "truncated": truncated})
        }
        "content_size" => {
            let count = usize::try_from(given["chars"].as_u64().unwrap_or(0)).unwrap_or(0);
            checked(Library::new(&Policy::default(), &[]).check_size(&text("char")?.repeat(count)))
        }
        "validate_file_path" => checked(skills::validate_file_path(text("path")?).map(drop)),
        "excluded_path" => {
            let above = given["skill_root_above_support_dir"].as_bool().unwrap_or(false);
            json!({"excluded": skills::is_excluded(text("path")?, &|_| above)})
        }
        "op_shape" => {
            let mut args = given["args"].clone();
            args["action"] = given["action"].clone();
            checked(Operation::read(&args).check_shape())
        }
        "fuzzy_replace" => {
            let (content, all) = (text("content")?, given["replace_all"].as_bool().unwrap_or(false));
            match fuzzy::replace(content, text("old")?, text("new")?, all) {
                Ok(done) => json!({"content": done.content, "replacements": done.replacements,
                    "strategy": done.strategy.word(), "error": null}),
                Err(reason) => {
                    json!({"content": content, "replacements": 0, "strategy": null, "error": reason.id()})
                }
            }
        }
        "already_applied" => {
            json!({"already_applied": fuzzy::already_applied(text("content")?, text("old")?, text("new")?)})
        }
        "lint" => {
            let found = skills::lint(text("content")?, None, &knobs);
            let rules: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
            let errors: Vec<&str> =
                found.iter().filter(|finding| finding.error).map(|finding| finding.rule).collect();
            json!({"rules": rules, "errors": errors})
        }
        "counters" => counters(given),
        "eligibility" => eligibility(given),
        "background_guard" => background_guard(given),
        "scenario" => scenario(given),
        _ => return Err(ReplayError::UnknownFunction(format!("skills.{function}"))),
    })
}

/// A plain skill for vectors that only name one.
pub(super) fn plain_skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Use when {name}.\n---\n\nBody text.\n")
}

/// Writes a file of a vector's tree, which has no clashes.
pub(super) fn put(files: &mut MemFiles, path: &str, text: &str) {
    let _ = files.write(path, text.as_bytes());
}

/// Writes the files that say who owns which names.
pub(super) fn put_owners(files: &mut MemFiles, bundled: &Value, hub: &Value) {
    let names = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let manifest: String = names(bundled).iter().flat_map(|name| [name, ":0\n"]).collect();
    if !manifest.is_empty() {
        put(files, "skills/.bundled_manifest", &manifest);
    }
    let installed: Map<String, Value> =
        names(hub).into_iter().map(|name| (name.clone(), json!({"install_path": name}))).collect();
    if !installed.is_empty() {
        put(files, "skills/.hub/lock.json", &json!({"installed": installed}).to_string());
    }
}

fn counters(given: &Value) -> Value {
    let mut usage = Usage::default();
    if let Value::Object(fields) = &given["start"] {
        usage.put("s", Record::of(fields.clone()));
    }
    let mut lifecycle: Vec<Lifecycle> = Vec::new();
    for event in given["events"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        match event {
            "view" => usage.viewed("s", NOW),
            "use" => lifecycle.push(usage.used("s", NOW)),
            "patch" => lifecycle.push(usage.patched("s", NOW)),
            "forget" => usage.forget("s"),
            "mark" => usage.adopt("s", NOW),
            "pin" | "unpin" => usage.pin("s", event == "pin", NOW),
            "created_agent" => lifecycle.push(usage.created("s", "agent", NOW)),
            "created_user" => lifecycle.push(usage.created("s", "learn", NOW)),
            "installed" => lifecycle.push(usage.installed("s", NOW)),
            word => lifecycle.extend(State::parse(word).and_then(|state| usage.set_state("s", state, NOW))),
        }
    }
    let record = usage.get("s").map(|record| {
        let raw = |key: &str| record.fields().get(key).cloned().unwrap_or_default();
        let set = |key: &str| record.fields().get(key).is_some_and(|value| !value.is_null());
        let mut shown = json!({
            "created_by": raw("created_by"), "use_count": raw("use_count"), "view_count": raw("view_count"),
            "patch_count": raw("patch_count"), "patch_generation": record.count("patch_generation"),
            "last_reused_patch_generation": record.count("last_reused_patch_generation"),
            "state": raw("state"), "pinned": raw("pinned"), "activity_count": record.activity_count(),
        });
        for key in ["last_used_at", "last_viewed_at", "last_patched_at", "archived_at"] {
            shown[format!("{key}_set")] = set(key).into();
        }
        shown
    });
    let lifecycle: Vec<Value> = lifecycle
        .into_iter()
        .map(|event| {
            let (action, reused, after_patch) = match event {
                Lifecycle::Created => ("created", None, None),
                Lifecycle::Installed => ("installed", None, None),
                Lifecycle::Loaded { reused, after_patch } => ("loaded", Some(reused), Some(after_patch)),
                Lifecycle::Patched => ("patched", None, None),
                Lifecycle::Stale => ("stale", None, None),
                Lifecycle::Archived => ("archived", None, None),
                Lifecycle::Restored => ("restored", None, None),
            };
            json!({"action": action, "reused": reused, "reuse_after_patch": after_patch})
        })
        .collect();
    json!({"record": record, "lifecycle": lifecycle})
}

fn record_by(created_by: &Value) -> Option<Record> {
    let mut record = Record::fresh(NOW);
    match created_by.as_str() {
        Some("missing_record") => return None,
        Some("legacy_flag") => record.set("agent_created", true),
        _ => record.set("created_by", created_by.clone()),
    }
    Some(record)
}

/// A home with one skill `s` that belongs to somebody.
fn owned(kind: &str, record: Option<Record>) -> (Library, MemFiles) {
    let mut policy = Policy::default();
    policy.curator.prune_builtins = kind.contains("prune");
    let mut files = MemFiles::new();
    let dir = if kind.contains("external") { EXTERNAL } else { "skills" };
    put(&mut files, &format!("{dir}/s/SKILL.md"), &plain_skill("s"));
    let names = |owned: bool| if owned { json!(["s"]) } else { json!([]) };
    put_owners(&mut files, &names(kind.contains("bundled")), &names(kind.contains("hub")));
    let mut usage = Usage::default();
    if let Some(record) = record {
        usage.put("s", record);
    }
    let _ = usage.save(&mut files, "skills");
    (Library::new(&policy, &[EXTERNAL.to_owned()]), files)
}

fn eligibility(given: &Value) -> Value {
    let kind = given["kind"].as_str().unwrap_or_default();
    let (library, mut files) = owned(kind, record_by(&given["created_by"]));
    let owners = Owners::load(&files, library.root());
    let usage = Usage::load(&files, library.root());
    let listed = crate::agent::curator::candidates(&library, &policy::Curator::default(), &files);
    json!({
        "eligible": library.is_eligible(&files, &owners, "s"),
        "managed": usage.get("s").is_some_and(Record::is_managed),
        "in_curator_list": listed.iter().any(|name| name == "s"),
        "provenance": library.provenance(&files, &owners, "s").word(),
        "adopt_ok": library.adopt(&mut files, NOW, "s").is_ok(),
    })
}

fn origin(word: &Value) -> Origin {
    if word == "background_review" { Origin::BackgroundReview } else { Origin::Foreground }
}

fn background_guard(given: &Value) -> Value {
    let record = record_by(&given["created_by"]).map(|mut record| {
        record.set("pinned", given["pinned"].as_bool().unwrap_or(false));
        record
    });
    let (library, files) = owned(given["owner"].as_str().unwrap_or_default(), record);
    let writer = Writer::new(origin(&given["origin"]));
    let Some(dir) = library.find(&files, "s") else { return json!({"refused": false, "reason": null}) };
    let refusal = library.check_provenance(&files, &writer, "s", &dir).err();
    json!({"refused": refusal.is_some(), "reason": refusal.map(|refusal| refusal.id())})
}

fn scenario(given: &Value) -> Value {
    let mut policy = Policy::default();
    let managed_only = given["policy"] == "managed_only";
    policy.skills.review_policy =
        if managed_only { ReviewPolicy::ManagedOnly } else { ReviewPolicy::ContentOpen };
    for (key, value) in given["config"].as_object().into_iter().flatten() {
        // Settings without a knob have no effect here.
        let _ = policy.set(key, value);
    }
    let mut files = MemFiles::new();
    for (root, tree) in [("skills", &given["tree"]), (EXTERNAL, &given["external"])] {
        for (path, text) in tree.as_object().into_iter().flatten() {
            put(&mut files, &format!("{root}/{path}"), text.as_str().unwrap_or_default());
        }
    }
    let list = |key: &str| given.get(key).cloned().unwrap_or_default();
    put_owners(&mut files, &list("bundled"), &list("hub"));
    if let Some(usage) = given.get("usage").filter(|usage| usage.is_object()) {
        put(&mut files, "skills/.usage.json", &usage.to_string());
    }
    let library = Library::new(&policy, &[EXTERNAL.to_owned()]);
    let mut writer = Writer::new(origin(&given["origin"]));
    let results: Vec<Value> = given["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| {
            if step["op"] == "view" {
                let name = step["name"].as_str().unwrap_or_default();
                let viewed = library.load(&files, &mut writer, name, step["file_path"].as_str()).is_ok();
                return json!({"viewed": viewed});
            }
            show_result(library.manage(&mut files, NOW, &writer, &Request::read(step)))
        })
        .collect();
    json!({
        "results": results,
        "tree": show_tree(&files, "skills", true),
        "archive": show_tree(&files, "skills/.archive", false),
        "usage": show_usage(&files, managed_only),
    })
}

fn show_result(result: Result<Done, Refusal>) -> Value {
    match result {
        Ok(done) => {
            let mut shown = json!({"success": true, "error": null});
            match done {
                Done::Staged => shown["staged"] = true.into(),
                Done::Single(applied) if applied.archived => shown["archived"] = true.into(),
                Done::Single(_) => {}
                Done::Batch(all) => shown["operations_applied"] = all.len().into(),
            }
            shown
        }
        Err(refusal) => {
            let mut shown = json!({"success": false, "error": refusal.id()});
            if let (Some(cause), Some(index)) = (refusal.cause, refusal.failed_index) {
                shown["cause"] = cause.id().into();
                shown["failed_index"] = index.into();
                shown["completed_before_failure"] = index.into();
            }
            if refusal.wants_read_first() {
                shown["read_first"] = true.into();
            }
            if refusal.is_fail_closed() {
                shown["fail_closed"] = true.into();
            }
            if let Some(available) = refusal.available_files {
                shown["available_files"] = json!(available);
            }
            shown
        }
    }
}

/// The files below a directory by relative path, without the library's own records.
fn show_tree(files: &MemFiles, root: &str, hide_records: bool) -> Map<String, Value> {
    let prefix = format!("{root}/");
    files
        .walk(root)
        .into_iter()
        .filter_map(|path| {
            let relative = path.strip_prefix(&prefix)?.to_owned();
            let hidden = hide_records && relative.starts_with('.');
            (!hidden).then(|| (relative, Value::from(files.read_text(&path).unwrap_or_default())))
        })
        .collect()
}

fn show_usage(files: &MemFiles, older: bool) -> Map<String, Value> {
    let usage = Usage::load(files, "skills");
    usage
        .iter()
        .map(|(name, record)| {
            let raw = |key: &str| record.fields().get(key).cloned().unwrap_or_default();
            let mut shown = json!({
                "created_by": raw("created_by"), "use_count": raw("use_count"), "view_count": raw("view_count"),
                "patch_count": raw("patch_count"), "state": raw("state"), "pinned": raw("pinned"),
            });
            if !older {
                shown["patch_generation"] = record.count("patch_generation").into();
            }
            (name.clone(), shown)
        })
        .collect()
}

/// The instant of an ISO text of a vector.
pub(super) fn instant(value: &Value) -> Millis {
    value.as_str().and_then(stamp::parse).unwrap_or(NOW)
}
