//! Checks of the calls that a scripted model makes: a name or an argument that no tool has is a slip of the pen.
//!
//! A name that begins with `no_such_` is how a scenario plays a model that invents tools and arguments.

use crate::diag::did_you_mean;
use crate::scenario::CallSpec;
use crate::wire::tools::{Kind, Parameter, SPECS, spec};

use super::Reader;

/// How names begin that are meant to be wrong.
const MEANT: &str = "no_such_";

impl Reader<'_> {
    pub(super) fn check_call(&mut self, at: usize, call: &CallSpec) {
        if self.foreign.contains(&call.tool) {
            return;
        }
        if let Some(spec) = spec(&call.tool) {
            self.check_arguments(at, spec.name, spec.parameters, &call.args);
        } else if !call.tool.starts_with(MEANT) {
            let names = SPECS.iter().map(|spec| spec.name).chain(self.foreign.iter().map(String::as_str));
            let near = did_you_mean(&call.tool, names);
            self.fault(at, format!("unknown tool `{}`{near}", call.tool));
        }
    }

    fn check_arguments(&mut self, at: usize, tool: &str, known: &[Parameter], given: &toml::Table) {
        for (name, value) in given {
            let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
                if !name.starts_with(MEANT) {
                    let near = did_you_mean(name, known.iter().map(|parameter| parameter.name));
                    self.fault(at, format!("unknown argument `{name}` of `{tool}`{near}"));
                }
                continue;
            };
            if let (Kind::Records(fields), toml::Value::Array(items)) = (parameter.kind, value) {
                for item in items.iter().filter_map(toml::Value::as_table) {
                    self.check_arguments(at, &format!("{tool}: {name}"), fields, item);
                }
            }
        }
    }
}
