//! A command line taken apart: pipelines, words, redirection. Quotes are kept together and taken off.

/// Commands that feed one another, and where the last one's output goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Pipeline {
    /// The commands, in order.
    pub commands: Vec<String>,
    /// The file that takes the output, and whether it is added to what is there.
    pub into: Option<(String, bool)>,
}

/// The pipelines of a line, split at `&&` and `;`.
pub(super) fn pipelines(line: &str) -> Vec<Pipeline> {
    let mut all = Vec::new();
    let mut pipeline = Pipeline::default();
    let mut command = String::new();
    let mut quote = None;
    let mut chars = line.chars().peekable();
    let end_command = |pipeline: &mut Pipeline, command: &mut String| {
        let text = std::mem::take(command);
        let (text, into) = redirected(&text);
        pipeline.commands.push(text);
        pipeline.into = into.or(pipeline.into.take());
    };
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ';') => {
                end_command(&mut pipeline, &mut command);
                all.push(std::mem::take(&mut pipeline));
                continue;
            }
            (None, '&') if chars.peek() == Some(&'&') => {
                chars.next();
                end_command(&mut pipeline, &mut command);
                all.push(std::mem::take(&mut pipeline));
                continue;
            }
            (None, '|') if chars.peek() != Some(&'|') => {
                end_command(&mut pipeline, &mut command);
                continue;
            }
            _ => {}
        }
        command.push(c);
    }
    end_command(&mut pipeline, &mut command);
    all.push(pipeline);
    all
}

/// A command without its `> file`, and that file.
fn redirected(command: &str) -> (String, Option<(String, bool)>) {
    let mut quote = None;
    for (at, c) in command.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '>') => {
                let rest = &command[at + 1..];
                let append = rest.starts_with('>');
                let target = rest.trim_start_matches('>').trim().trim_matches(['"', '\'']);
                return (command[..at].trim().to_owned(), Some((target.to_owned(), append)));
            }
            _ => {}
        }
    }
    (command.trim().to_owned(), None)
}

/// The words of a command, without their quotes.
pub(super) fn words(command: &str) -> Vec<String> {
    let (mut all, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if begun {
                    all.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        all.push(word);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_their_text_together() {
        assert_eq!(words("grep 'a | b' \"c d\" e"), ["grep", "a | b", "c d", "e"]);
        let lines = pipelines("echo 'a; b > c' >> out.txt; cat out.txt | wc -l");
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].commands, ["echo 'a; b > c'"]);
        assert_eq!(lines[0].into, Some(("out.txt".to_owned(), true)));
        assert_eq!(lines[1].commands, ["cat out.txt", "wc -l"]);
    }
}
