//! The README's commands are run, and what it shows of their output must still be true.
#![expect(clippy::disallowed_methods, reason = "the README is a file")]

use crate::support::lab;

/// Code blocks whose first line is `$ hermes-lab …`; the rest is what the command prints.
fn shown() -> Vec<(Vec<String>, String)> {
    let text = std::fs::read_to_string(format!("{}/README.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut found = Vec::new();
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let (command, output) = block.split_once('\n').unwrap();
        let Some(command) = command.strip_prefix("$ hermes-lab ") else { continue };
        found.push((command.split_whitespace().map(str::to_owned).collect(), output.to_owned()));
    }
    found
}

#[test]
fn what_the_readme_shows_is_what_the_command_prints() {
    let shown = shown();
    assert!(shown.len() >= 2, "the README shows real output");
    for (arguments, expected) in shown {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = lab(&arguments);
        let printed = String::from_utf8(output.stdout).unwrap();
        for part in expected.split("…\n") {
            assert!(printed.contains(part), "{arguments:?} no longer prints:\n{part}\nbut:\n{printed}");
        }
    }
}

#[test]
fn every_command_and_knob_section_is_in_the_readme() {
    let text = std::fs::read_to_string(format!("{}/README.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let help = String::from_utf8(lab(&["--help"]).stdout).unwrap();
    let commands = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    for line in commands.take_while(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().unwrap();
        assert!(name == "help" || text.contains(&format!("`{name}")), "the README does not name `{name}`");
    }
}
