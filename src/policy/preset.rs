//! Named overlays that ship with the lab: revisions of the real agent, and a hardened one.

use crate::policy::{KnobError, Overlay, Policy};

/// Name and text of every preset. The first is the default and turns nothing.
pub const PRESETS: &[(&str, &str)] = &[
    ("hermes-pinned", include_str!("../../presets/hermes-pinned.toml")),
    ("hermes-0.19", include_str!("../../presets/hermes-0.19.toml")),
    ("hermes-0.22", include_str!("../../presets/hermes-0.22.toml")),
    ("hardened", include_str!("../../presets/hardened.toml")),
];

/// The overlay of a preset; `None` when there is none of that name.
pub fn overlay(name: &str) -> Option<Overlay> {
    let (_, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
    let table: toml::Table = toml::from_str(text).expect("shipped presets are valid");
    Some(Overlay::from_table(&table))
}

/// The policy of a preset; `None` when there is none of that name.
///
/// # Errors
/// The turns that do not fit, which only happens to a preset that was broken by a change of the knobs.
pub fn policy(name: &str) -> Option<Result<Policy, Vec<KnobError>>> {
    let overlay = overlay(name)?;
    let mut policy = Policy::default();
    Some(overlay.apply(&mut policy).map(|()| policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_fits_the_knobs_and_the_first_is_the_default() {
        for (name, _) in PRESETS {
            policy(name).unwrap().unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        }
        assert_eq!(policy("hermes-pinned").unwrap().unwrap(), Policy::default());
    }
}
