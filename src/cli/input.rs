//! Reading what people name on the command line, and writing results so that nothing is ever half-written.

use std::path::{Path, PathBuf};

use crate::diag::{Diagnostic, nearest};
use crate::drive::{self, Driver};
use crate::lab::breaks::{self, Break};
use crate::lab::expect;
use crate::policy::{CacheModel, KnobValue as _, Overlay, preset};
use crate::scenario::{self, Scenario};
use crate::serve::upstream::{self, Authority};

use super::BadInput;

/// Reads a whole text file.
pub(super) fn text(path: &str) -> Result<String, BadInput> {
    let bytes = std::fs::read(path).map_err(|error| Diagnostic::of_file(path, reason(&error)))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
        Diagnostic::at_byte(path, &before, at, "not UTF-8 from here on").into()
    })
}

/// Why a file could not be opened, in plain words.
pub(super) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "the file may not be read".to_owned(),
        std::io::ErrorKind::IsADirectory => "a folder, where a file is expected".to_owned(),
        _ => error.to_string(),
    }
}

/// A scenario by shipped name or by path.
pub(super) fn scenario(name: &str) -> Result<Scenario, BadInput> {
    if looks_like_path(name) {
        let scenario = scenario::load(name, &text(name)?)?;
        let unknown = expect::unknown(&scenario);
        return if unknown.is_empty() { Ok(scenario) } else { Err(unknown.into()) };
    }
    breaks::shipped_scenario(name).ok_or_else(|| {
        let known = scenario::shipped().iter().chain(scenario::live()).map(|(name, _)| *name);
        unknown("scenario", name, known, "give a path to play a file of your own")
    })
}

/// A break by shipped id or by path.
pub(super) fn break_(name: &str) -> Result<Break, BadInput> {
    if looks_like_path(name) {
        return Ok(breaks::load(name, &text(name)?)?);
    }
    breaks::shipped_break(name).ok_or_else(|| {
        let known = breaks::SHIPPED.iter().map(|(id, _)| *id);
        unknown("break", name, known, "give a path to play a file of your own")
    })
}

/// A driver by shipped name or by path.
pub(super) fn driver(name: &str) -> Result<Driver, BadInput> {
    if looks_like_path(name) {
        return Ok(drive::load(name, &text(name)?)?);
    }
    drive::shipped(name).ok_or_else(|| {
        let known = drive::SHIPPED.iter().map(|(name, _)| *name);
        unknown("driver", name, known, "give a path to use a file of your own")
    })
}

/// A policy preset by name.
pub(super) fn preset_overlay(name: &str) -> Result<Overlay, BadInput> {
    preset::overlay(name).ok_or_else(|| {
        let known = preset::PRESETS.iter().map(|(name, _)| *name);
        unknown("policy", name, known, "`hermes-lab list` shows them all")
    })
}

/// A scenario of one's own for real models: its name and its text, in which `{seed}` may stand.
#[cfg(feature = "live")]
pub(super) fn scenario_text(name: &str) -> Result<(String, String), BadInput> {
    if looks_like_path(name) {
        return Ok((name.to_owned(), text(name)?));
    }
    let found = scenario::shipped().iter().chain(scenario::live()).find(|(known, _)| *known == name);
    match found {
        Some((name, text)) => Ok(((*name).to_owned(), (*text).to_owned())),
        None => Err(scenario(name).err().unwrap_or_else(|| Diagnostic::of_file(name, "not found").into())),
    }
}

/// Where a provider is.
pub(super) fn provider_address(flag: &str, text: &str) -> Result<hyper::Uri, BadInput> {
    text.parse::<hyper::Uri>()
        .ok()
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
        .ok_or_else(|| Diagnostic::of_file(flag, "expected an address such as https://api.openai.com").into())
}

/// A cache model by name.
pub(super) fn cache_model(name: &str) -> Result<CacheModel, BadInput> {
    CacheModel::read(&name.into(), None).map_err(|_| {
        let known = crate::cache::MODELS.iter().map(|(name, _)| *name);
        unknown("cache model", name, known, "`hermes-lab list models` says more")
    })
}

/// The authorities of a PEM file; none without one.
pub(super) fn authorities(path: Option<&str>) -> Result<Vec<Authority>, BadInput> {
    let Some(path) = path else { return Ok(Vec::new()) };
    upstream::authorities(&text(path)?).map_err(|message| Diagnostic::of_file(path, message).into())
}

fn looks_like_path(name: &str) -> bool {
    name.contains(['/', '\\']) || Path::new(name).extension().is_some_and(|ending| ending == "toml")
}

/// The diagnostic for a name that nothing has.
pub(super) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> BadInput {
    let known: Vec<&str> = known.into_iter().collect();
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}; {otherwise}", known.join(", ")),
    };
    Diagnostic::of_file(name, format!("unknown {what} `{name}`")).with_help(help).into()
}

/// Writes a file in one step: to a temporary neighbour, then renamed.
pub(super) fn write(path: &str, content: &str) -> Result<(), BadInput> {
    let target = PathBuf::from(path);
    let mut temporary = target.clone().into_os_string();
    temporary.push(".part");
    let written = std::fs::write(&temporary, content).and_then(|()| std::fs::rename(&temporary, &target));
    written.map_err(|error| {
        // What was half-written must not stay; its removal cannot say more than the first failure.
        let _ = std::fs::remove_file(&temporary);
        Diagnostic::of_file(path, format!("cannot be written: {}", reason(&error))).into()
    })
}
