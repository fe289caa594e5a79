//! A simulated shell over a workspace of files.
//!
//! Commands that a scenario declares answer as it says; beside them the shell knows the few that work on files, so
//! that `rm -rf ./dist` really removes. Everything else is not found, as in a real shell.

use crate::world::files::join;
use crate::world::{FileError, Files, normalize};

/// A command that a scenario declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The command, with `*` for any text.
    pub pattern: String,
    /// What it prints.
    pub output: String,
    /// Its exit code.
    pub exit: i64,
    /// A file that it writes, with what it prints.
    pub writes: Option<String>,
    /// True when the answer never arrives, though the command took effect.
    pub times_out: bool,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// What it printed.
    pub output: String,
    /// Its exit code; 127 for a command that does not exist.
    pub exit: i64,
    /// True when the answer never arrived.
    pub timed_out: bool,
}

/// The shell.
#[derive(Debug, Clone, Default)]
pub struct Terminal {
    declared: Vec<Declared>,
}

/// Longest output that a command may print, in bytes; more is cut, as a real runner does.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

impl Terminal {
    /// A shell that knows these commands besides its own.
    pub fn new(declared: Vec<Declared>) -> Self {
        Self { declared }
    }

    /// Runs a command line: parts joined by `&&` or `;`.
    pub fn run(&self, files: &mut dyn Files, command: &str) -> Ran {
        if let Some(declared) = self.declared.iter().find(|known| matches(&known.pattern, command)) {
            if let Some(path) = declared.writes.as_deref().and_then(normalize) {
                // A full disk shows as a failing command.
                if let Err(error) = files.write(&path, declared.output.as_bytes()) {
                    return failed(1, &error.to_string());
                }
            }
            let output = cut(declared.output.clone());
            return Ran { output, exit: declared.exit, timed_out: declared.times_out };
        }
        let mut all = Ran { output: String::new(), exit: 0, timed_out: false };
        for part in command.split("&&").flat_map(|part| part.split(';')) {
            let one = Self::builtin(files, part.trim());
            all.output.push_str(&one.output);
            all.exit = one.exit;
            if one.exit != 0 {
                break;
            }
        }
        all.output = cut(all.output);
        all
    }

    fn builtin(files: &mut dyn Files, command: &str) -> Ran {
        let words: Vec<&str> = command.split_whitespace().collect();
        let Some((name, rest)) = words.split_first() else { return done(String::new()) };
        let operands: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
        let path = |word: &&str| normalize(word.trim_matches(['"', '\'']));
        match *name {
            "true" | ":" => done(String::new()),
            "false" => failed(1, ""),
            "pwd" => done("/workspace\n".to_owned()),
            "echo" => {
                let text = rest.join(" ");
                match text.split_once('>') {
                    Some((text, target)) => match normalize(target.trim_start_matches('>').trim()) {
                        Some(path) => written(files.write(&path, format!("{}\n", unquoted(text)).as_bytes())),
                        None => failed(1, "no such directory"),
                    },
                    None => done(format!("{}\n", unquoted(&text))),
                }
            }
            "ls" => {
                let dir = operands.first().map_or(Some(String::new()), path);
                let names = dir.map(|dir| files.list(&dir)).unwrap_or_default();
                done(names.into_iter().map(|(name, _)| name + "\n").collect())
            }
            "cat" => {
                let mut text = String::new();
                for operand in &operands {
                    match path(operand).and_then(|path| files.read_text(&path).ok()) {
                        Some(content) => text.push_str(&content),
                        None => return failed(1, &format!("cat: {operand}: no such file")),
                    }
                }
                done(text)
            }
            "mkdir" => written(each(&operands, |word| files.create_dir(&path(&word).unwrap_or_default()))),
            "touch" => written(each(&operands, |word| {
                let path = path(&word).unwrap_or_default();
                if files.exists(&path) { Ok(()) } else { files.write(&path, b"") }
            })),
            "rm" => {
                let force = rest.iter().any(|word| word.starts_with('-') && word.contains('f'));
                let result = each(&operands, |word| {
                    let path = path(&word).unwrap_or_default();
                    if files.is_dir(&path) { files.remove_dir(&path) } else { files.remove_file(&path) }
                });
                if force { done(String::new()) } else { written(result) }
            }
            "mv" | "cp" => match operands[..] {
                [from, to] => written(copy(files, from, to, *name == "mv")),
                _ => failed(1, &format!("{name}: expected two paths")),
            },
            _ => failed(127, &format!("{name}: command not found")),
        }
    }
}

fn copy(files: &mut dyn Files, from: &str, to: &str, remove: bool) -> Result<(), FileError> {
    let clean = |path: &str| normalize(path).ok_or_else(|| FileError::Escapes(path.to_owned()));
    let (from, mut to) = (clean(from)?, clean(to)?);
    if files.is_dir(&to) {
        to = join(&to, crate::world::files::file_name(&from));
    }
    let bytes = files.read(&from)?;
    files.write(&to, &bytes)?;
    if remove { files.remove_file(&from) } else { Ok(()) }
}

fn each<'a>(
    words: &[&'a str],
    mut act: impl FnMut(&'a str) -> Result<(), FileError>,
) -> Result<(), FileError> {
    words.iter().try_for_each(|word| act(word))
}

fn written(result: Result<(), FileError>) -> Ran {
    match result {
        Ok(()) => done(String::new()),
        Err(error) => failed(1, &error.to_string()),
    }
}

fn done(output: String) -> Ran {
    Ran { output, exit: 0, timed_out: false }
}

fn failed(exit: i64, message: &str) -> Ran {
    let output = if message.is_empty() { String::new() } else { format!("{message}\n") };
    Ran { output, exit, timed_out: false }
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

fn cut(mut text: String) -> String {
    if text.len() > OUTPUT_BYTES_MAX {
        let mut end = OUTPUT_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

/// True when `text` has the form of `pattern`, in which each `*` stands for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return text.is_empty() };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    #[test]
    fn removing_a_directory_really_removes_it() {
        let mut files = MemFiles::new();
        files.write("dist/a.js", b"x").unwrap();
        let ran = Terminal::default().run(&mut files, "rm -rf ./dist");
        assert_eq!((ran.exit, files.exists("dist")), (0, false));
    }

    #[test]
    fn an_undeclared_program_is_not_found() {
        assert_eq!(Terminal::default().run(&mut MemFiles::new(), "npm ci").exit, 127);
    }

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(
            matches("npm *", "npm run build")
                && matches("git push*", "git push")
                && !matches("npm *", "pnpm i")
        );
    }
}
