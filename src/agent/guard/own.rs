//! Deletion of the running program's own interpreter or environment.
//!
//! An agent that removes what it runs on cannot even report it. The paths are given; nothing is looked up.

use super::normalize::{Homes, normalize};
use super::scan::Scan;
use super::words::{base_name, commands, unquote};

/// True when a deleting command names one of the program's own paths, something above it, or something below it.
pub fn deletes_own(command: &str, homes: &Homes, own: &[String]) -> bool {
    if own.is_empty() {
        return false;
    }
    let own: Vec<String> =
        own.iter().map(|path| clean(path, homes)).filter(|path| !path.is_empty()).collect();
    let scan = Scan::new(command);
    commands(&scan).iter().any(|simple| {
        simple.programs().any(|(name, args)| {
            matches!(base_name(name), "rm" | "rmdir" | "unlink" | "shred" | "trash")
                && args
                    .iter()
                    .map(|word| unquote(&command[word.range.clone()]))
                    .filter(|word| !word.starts_with('-'))
                    .map(|word| clean(word.trim_end_matches('*'), homes))
                    .any(|path| own.iter().any(|own| within(&path, own) || within(own, &path)))
        })
    })
}

fn clean(path: &str, homes: &Homes) -> String {
    normalize(&format!("{}/", path.trim_end_matches('/')), homes).trim_end_matches('/').to_owned()
}

fn within(path: &str, dir: &str) -> bool {
    !dir.is_empty() && path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_recognised_from_above_and_below_but_not_beside() {
        let homes = Homes { user: "/home/ada".to_owned(), agent: "/home/ada/.hermes".to_owned() };
        let own = ["/home/ada/.hermes/venv".to_owned()];
        assert!(deletes_own("rm -rf ~/.hermes/venv/bin", &homes, &own));
        assert!(deletes_own("sudo rm -rf /home/ada/.hermes/*", &homes, &own));
        assert!(!deletes_own("rm -rf ~/.hermes/venv2", &homes, &own));
    }
}
