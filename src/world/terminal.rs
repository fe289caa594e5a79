//! A simulated shell over a workspace of files.
//!
//! Commands that a scenario declares answer as it says; beside them the shell knows the few that work on files, so
//! that `rm -rf ./dist` really removes and `cat data/*.csv | datamash -t, sum 2` really adds. Everything else is not
//! found, as in a real shell. What lies outside the workspace can be read only where the caller hands it over.

mod filters;
mod line;

use crate::world::files::join;
use crate::world::{FileError, Files, normalize};

/// A command that a scenario declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declared {
    /// The command, with `*` for any text.
    pub pattern: String,
    /// What it prints.
    pub output: String,
    /// Its exit code.
    pub exit: i64,
    /// A file that it writes, with what it prints.
    pub writes: Option<String>,
    /// A file to which it adds what it prints.
    pub appends: Option<String>,
    /// A file whose content it prints after its own output; one that is not there is empty.
    pub shows: Option<String>,
    /// True when the answer never arrives, though the command took effect.
    pub times_out: bool,
    /// True when it never ends and has no effect.
    pub endless: bool,
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

/// The files that a command can reach.
pub struct Reach<'a> {
    /// The workspace.
    pub files: &'a mut dyn Files,
    /// The rest of the machine, from its root; nothing where the shell is confined.
    pub outside: Option<&'a dyn Files>,
    /// Where the command runs, from the workspace's root.
    pub directory: &'a str,
}

/// The shell.
#[derive(Debug, Clone, Default)]
pub struct Terminal {
    declared: Vec<Declared>,
}

/// Where the workspace lies on the machine.
pub const WORKSPACE: &str = "/workspace";
/// Longest output that a command may print, in bytes; more is cut, as a real runner does.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// A path as a command names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the workspace, from its root.
    Inside(String),
    /// Elsewhere on the machine, from its root, without the leading slash.
    Outside(String),
}

impl Place {
    /// Where a path leads that is read from this directory of the workspace.
    pub fn of(path: &str, directory: &str) -> Self {
        let path = path.trim_matches(['"', '\'']);
        let full = match path.strip_prefix('~') {
            Some(below) => format!("/home/lab{below}"),
            None if path.starts_with('/') => path.to_owned(),
            None => format!("{WORKSPACE}/{directory}/{path}"),
        };
        // A path that climbs above the root stays there, as on a real machine.
        let mut parts: Vec<&str> = Vec::new();
        for part in full.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
        match parts.split_first() {
            Some((&"workspace", rest)) => Self::Inside(rest.join("/")),
            _ => Self::Outside(parts.join("/")),
        }
    }
}

impl Reach<'_> {
    fn read(&self, word: &str) -> Option<String> {
        match Place::of(word, self.directory) {
            Place::Inside(path) => self.files.read_text(&path).ok(),
            Place::Outside(path) => self.outside?.read_text(&path).ok(),
        }
    }

    /// The workspace path of something that is to be changed; nothing outside ever is.
    fn change(word: &str, directory: &str) -> Result<String, FileError> {
        match Place::of(word, directory) {
            Place::Inside(path) => Ok(path),
            Place::Outside(path) => Err(FileError::Escapes(format!("/{path}"))),
        }
    }

    /// Words with a `*` become the workspace files that they mean; others stay.
    fn expand(&self, words: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        for word in words {
            let found = match Place::of(word, self.directory) {
                Place::Inside(path) if word.contains('*') && !word.starts_with(['\'', '"']) => {
                    let dir = crate::world::files::parent(&path).to_owned();
                    let name = crate::world::files::file_name(&path).to_owned();
                    let names = self.files.list(&dir).into_iter().map(|(name, _)| name);
                    names
                        .filter(|other| matches(&name, other))
                        .map(|name| format!("{WORKSPACE}/{}", join(&dir, &name)))
                        .collect()
                }
                _ => Vec::new(),
            };
            if found.is_empty() { all.push((*word).to_owned()) } else { all.extend(found) }
        }
        all
    }
}

impl Terminal {
    /// A shell that knows these commands besides its own.
    pub fn new(declared: Vec<Declared>) -> Self {
        Self { declared }
    }

    /// Runs a command line: pipelines joined by `&&` or `;`.
    pub fn run(&self, reach: &mut Reach<'_>, command: &str) -> Ran {
        if let Some(declared) = self.declared.iter().find(|known| matches(&known.pattern, command)) {
            return declared.run(reach);
        }
        let mut all = done(String::new());
        for pipeline in line::pipelines(command) {
            let one = Self::pipeline(reach, &pipeline);
            all.output.push_str(&one.output);
            all.exit = one.exit;
            if one.exit != 0 {
                break;
            }
        }
        all.output = cut(all.output);
        all
    }

    fn pipeline(reach: &mut Reach<'_>, pipeline: &line::Pipeline) -> Ran {
        let mut flow = done(String::new());
        for (place, command) in pipeline.commands.iter().enumerate() {
            let input = (place > 0).then_some(flow.output.as_str());
            flow = Self::builtin(reach, command, input);
            if flow.exit != 0 {
                return flow;
            }
        }
        let Some((target, append)) = &pipeline.into else { return flow };
        let into = Reach::change(target, reach.directory).and_then(|path| {
            let before =
                if *append { reach.files.read_text(&path).unwrap_or_default() } else { String::new() };
            reach.files.write(&path, (before + &flow.output).as_bytes())
        });
        written(into)
    }

    fn builtin(reach: &mut Reach<'_>, command: &str, input: Option<&str>) -> Ran {
        let words = line::words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some((name, rest)) = words.split_first() else { return done(String::new()) };
        let operands: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
        let directory = reach.directory;
        if let Some(ran) = filters::run(name, rest, input, &|words| read_all(reach, words)) {
            return ran;
        }
        match *name {
            "true" | ":" => done(String::new()),
            "false" => failed(1, ""),
            "pwd" => done(format!("{WORKSPACE}\n")),
            "echo" => done(format!("{}\n", rest.join(" "))),
            "ls" => {
                let listed = match Place::of(operands.first().copied().unwrap_or_default(), directory) {
                    Place::Inside(dir) => Some(reach.files.list(&dir)),
                    Place::Outside(dir) => reach.outside.map(|files| files.list(&dir)),
                };
                match listed {
                    Some(names) => done(names.into_iter().map(|(name, _)| name + "\n").collect()),
                    None => failed(2, "ls: no such directory"),
                }
            }
            "mkdir" => {
                written(each(&operands, |word| reach.files.create_dir(&Reach::change(word, directory)?)))
            }
            "touch" => written(each(&operands, |word| {
                let path = Reach::change(word, directory)?;
                if reach.files.exists(&path) { Ok(()) } else { reach.files.write(&path, b"") }
            })),
            "rm" => {
                let force = rest.iter().any(|word| word.starts_with('-') && word.contains('f'));
                let result = each(&operands, |word| {
                    let path = Reach::change(word, directory)?;
                    if reach.files.is_dir(&path) {
                        reach.files.remove_dir(&path)
                    } else {
                        reach.files.remove_file(&path)
                    }
                });
                if force { done(String::new()) } else { written(result) }
            }
            "mv" | "cp" => match operands[..] {
                [from, to] => written(copy(reach, from, to, *name == "mv")),
                _ => failed(1, &format!("{name}: expected two paths")),
            },
            _ => failed(127, &format!("{name}: command not found")),
        }
    }
}

impl Declared {
    fn run(&self, reach: &mut Reach<'_>) -> Ran {
        if self.endless {
            return Ran { timed_out: true, ..failed(124, "") };
        }
        let files = &mut *reach.files;
        if let Some(path) = self.writes.as_deref().and_then(normalize) {
            // A full disk shows as a failing command.
            if let Err(error) = files.write(&path, self.output.as_bytes()) {
                return failed(1, &error.to_string());
            }
        }
        if let Some(path) = self.appends.as_deref().and_then(normalize) {
            let before = files.read_text(&path).unwrap_or_default();
            if let Err(error) = files.write(&path, (before + &self.output).as_bytes()) {
                return failed(1, &error.to_string());
            }
        }
        let shown = self.shows.as_deref().and_then(normalize).and_then(|path| files.read_text(&path).ok());
        let output = cut(self.output.clone() + &shown.unwrap_or_default());
        Ran { output, exit: self.exit, timed_out: self.times_out }
    }
}

/// The texts of files one after the other, or which of them cannot be read.
fn read_all(reach: &Reach<'_>, words: &[&str]) -> Result<String, String> {
    let mut text = String::new();
    for word in reach.expand(words) {
        text.push_str(&reach.read(&word).ok_or_else(|| format!("{word}: no such file"))?);
    }
    Ok(text)
}

fn copy(reach: &mut Reach<'_>, from: &str, to: &str, remove: bool) -> Result<(), FileError> {
    let (from, mut to) = (Reach::change(from, reach.directory)?, Reach::change(to, reach.directory)?);
    let files = &mut *reach.files;
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

    fn run(files: &mut MemFiles, command: &str) -> Ran {
        Terminal::default().run(&mut Reach { files, outside: None, directory: "" }, command)
    }

    #[test]
    fn removing_a_directory_really_removes_it() {
        let mut files = MemFiles::new();
        files.write("dist/a.js", b"x").unwrap();
        let ran = run(&mut files, "rm -rf ./dist");
        assert_eq!((ran.exit, files.exists("dist")), (0, false));
    }

    #[test]
    fn an_undeclared_program_is_not_found() {
        assert_eq!(run(&mut MemFiles::new(), "npm ci").exit, 127);
    }

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(
            matches("npm *", "npm run build")
                && matches("git push*", "git push")
                && !matches("npm *", "pnpm i")
        );
    }

    #[test]
    fn what_lies_outside_is_read_only_where_it_is_handed_over() {
        let (mut files, mut machine) = (MemFiles::new(), MemFiles::new());
        files.write("a.txt", b"inside\n").unwrap();
        machine.write("etc/secret", b"outside\n").unwrap();
        for path in ["/etc/secret", "../etc/secret", "../../../etc/secret"] {
            let confined = run(&mut files, &format!("cat {path}"));
            assert_eq!((confined.exit, confined.output.contains("outside")), (1, false), "{path}");
            let mut reach = Reach { files: &mut files, outside: Some(&machine), directory: "" };
            let open = Terminal::default().run(&mut reach, &format!("cat {path}"));
            assert_eq!(open.output, "outside\n", "{path}");
            assert_eq!(Terminal::default().run(&mut reach, &format!("rm {path}")).exit, 1);
        }
        assert_eq!(run(&mut files, "cat /workspace/a.txt").output, "inside\n");
        assert_eq!(run(&mut files, "echo x > ../out.txt").exit, 1);
    }

    #[test]
    fn a_pipeline_computes_from_many_files() {
        let mut files = MemFiles::new();
        for index in 0..12 {
            files.write(&format!("data/{index}.csv"), format!("n{index},{index}\n").as_bytes()).unwrap();
        }
        let ran =
            run(&mut files, "cat data/*.csv | datamash -t, count 2 sum 2 max 2 > out.txt && cat out.txt");
        assert_eq!(ran.output, "12,66,11\n");
        assert_eq!(run(&mut files, "cat data/*.csv | grep 'n1' | wc -l").output, "3\n");
    }

    #[test]
    fn a_declared_command_that_hangs_had_its_effect_and_an_endless_one_had_none() {
        let mut files = MemFiles::new();
        let base =
            Declared { output: "x\n".to_owned(), appends: Some("log".to_owned()), ..Declared::default() };
        let shell = Terminal::new(vec![
            Declared { pattern: "push".to_owned(), times_out: true, ..base.clone() },
            Declared { pattern: "spin".to_owned(), endless: true, ..base },
        ]);
        let mut reach = Reach { files: &mut files, outside: None, directory: "" };
        let (pushed, spun) = (shell.run(&mut reach, "push"), shell.run(&mut reach, "spin"));
        assert!(pushed.timed_out && spun.timed_out);
        assert_eq!(files.read_text("log").unwrap(), "x\n");
    }
}
