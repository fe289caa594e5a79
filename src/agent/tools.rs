//! The tool table of a session, as segments of its prompt.
//!
//! It is sorted by name and frozen when a session begins, since it is the first thing that a prefix cache compares.

use std::sync::LazyLock;

use crate::policy::MemoryEdit;
use crate::wire::tools::{MEMORY_WITH_PATCH, SPECS, ToolSpec};
use crate::wire::{Level, Segment};

fn segment(spec: &ToolSpec) -> Segment {
    Segment::new(Level::Tools, spec.definition().to_string())
}

/// Every tool as a segment of a prompt, in the order of [`SPECS`]: sessions share the texts.
static SEGMENTS: LazyLock<Vec<Segment>> = LazyLock::new(|| SPECS.iter().map(segment).collect());

static MEMORY_WITH_PATCH_SEGMENT: LazyLock<Segment> = LazyLock::new(|| segment(&MEMORY_WITH_PATCH));

/// The tool table as segments of a prompt, in the order of `names`, where the memory tool offers this edit.
pub fn table(names: &[String], edit: MemoryEdit) -> Vec<Segment> {
    let segment = |name: &String| match (name.as_str(), edit) {
        ("memory", MemoryEdit::Patch) => Some(MEMORY_WITH_PATCH_SEGMENT.clone()),
        _ => SPECS.iter().position(|spec| spec.name == name).map(|place| SEGMENTS[place].clone()),
    };
    names.iter().filter_map(segment).collect()
}
