//! Programs that read text and write text: the ones that people put into pipelines.
//!
//! Numbers are integers; a column that holds something else is a mistake, as in the real program.

use super::{Ran, done, failed};

/// Runs a filter over its files, or over its input when it names none; `None` for a name that is no filter.
pub(super) fn run(
    name: &str,
    arguments: &[&str],
    input: Option<&str>,
    read: &dyn Fn(&[&str]) -> Result<String, String>,
) -> Option<Ran> {
    let text = |files: &[&str]| match (files, input) {
        ([], Some(input)) => Ok(input.to_owned()),
        ([], None) => Ok(String::new()),
        (files, _) => read(files).map_err(|error| failed(1, &format!("{name}: {error}"))),
    };
    let flag = |letter: char| arguments.iter().any(|word| word.starts_with('-') && word.contains(letter));
    let plain: Vec<&str> = arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let ran = match name {
        "cat" => text(&plain).map(done),
        "sort" => text(&plain).map(|text| {
            let mut lines: Vec<&str> = text.lines().collect();
            if flag('n') {
                lines.sort_by_key(|line| leading_number(line));
            } else {
                lines.sort_unstable();
            }
            if flag('r') {
                lines.reverse();
            }
            joined(lines)
        }),
        "uniq" => text(&plain).map(|text| {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.dedup();
            joined(lines)
        }),
        "wc" => text(&plain).map(|text| {
            let count = if flag('c') { text.len() } else { text.lines().count() };
            done(format!("{count}\n"))
        }),
        "grep" => {
            let Some((pattern, files)) = plain.split_first() else {
                return Some(failed(2, "grep: expected a pattern"));
            };
            let Ok(pattern) = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build() else {
                return Some(failed(2, "grep: not a valid pattern"));
            };
            text(files).map(|text| {
                let found: Vec<&str> = text.lines().filter(|line| pattern.is_match(line)).collect();
                match (flag('c'), found.is_empty()) {
                    (true, _) => done(format!("{}\n", found.len())),
                    (false, true) => failed(1, ""),
                    (false, false) => joined(found),
                }
            })
        }
        "head" | "tail" => {
            let (count, files) = counted(arguments);
            text(&files).map(|text| {
                let lines: Vec<&str> = text.lines().collect();
                let kept = if name == "head" {
                    lines.iter().take(count).copied().collect()
                } else {
                    lines[lines.len().saturating_sub(count)..].to_vec()
                };
                joined(kept)
            })
        }
        "cut" => {
            let (separator, field) = (option(arguments, 'd').unwrap_or("\t"), option(arguments, 'f'));
            let Some(field) = field.and_then(|field| field.parse::<usize>().ok()).filter(|field| *field > 0)
            else {
                return Some(failed(1, "cut: expected one field, as in -f2"));
            };
            text(&[]).map(|text| {
                joined(text.lines().map(|line| line.split(separator).nth(field - 1).unwrap_or_default()))
            })
        }
        "datamash" => text(&[]).map(|text| {
            let separator = option(arguments, 't').unwrap_or("\t");
            match datamash(&text, separator, &plain) {
                Ok(values) => done(values.join(separator) + "\n"),
                Err(message) => failed(1, &format!("datamash: {message}")),
            }
        }),
        _ => return None,
    };
    Some(ran.unwrap_or_else(|failed| failed))
}

fn joined<'a>(lines: impl IntoIterator<Item = &'a str>) -> Ran {
    done(lines.into_iter().flat_map(|line| [line, "\n"]).collect())
}

fn leading_number(line: &str) -> i64 {
    let digits = line.trim_start();
    let end = digits
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || (*at == 0 && *c == '-')))
        .map_or(digits.len(), |(at, _)| at);
    digits[..end].parse().unwrap_or(0)
}

/// The value of an option that is written with its letter, `-f2`.
fn option<'a>(arguments: &[&'a str], letter: char) -> Option<&'a str> {
    arguments.iter().find_map(|word| word.strip_prefix('-')?.strip_prefix(letter))
}

/// Number of lines and files of `head` and `tail`: `-n 3`, `-n3`, `-3`, ten when absent.
fn counted<'a>(arguments: &[&'a str]) -> (usize, Vec<&'a str>) {
    let (mut count, mut files, mut next_is_count) = (10, Vec::new(), false);
    for word in arguments {
        match word.strip_prefix('-').map(|word| word.trim_start_matches('n')) {
            _ if next_is_count => (count, next_is_count) = (word.parse().unwrap_or(10), false),
            Some("") => next_is_count = true,
            Some(number) => count = number.parse().unwrap_or(10),
            None => files.push(*word),
        }
    }
    (count, files)
}

/// Pairs of operation and column over the lines.
fn datamash(text: &str, separator: &str, words: &[&str]) -> Result<Vec<String>, String> {
    words
        .chunks(2)
        .map(|pair| {
            let [operation, column] = pair else {
                return Err("expected pairs of operation and column".to_owned());
            };
            let at =
                column.parse::<usize>().ok().filter(|at| *at > 0).ok_or("expected a column from 1 on")?;
            let cells: Vec<&str> = text
                .lines()
                .map(|line| line.split(separator).nth(at - 1).unwrap_or_default().trim())
                .collect();
            if *operation == "count" {
                return Ok(cells.len().to_string());
            }
            let numbers: Vec<i64> = cells
                .iter()
                .map(|cell| cell.parse().map_err(|_| format!("`{cell}` is not a whole number")))
                .collect::<Result<_, _>>()?;
            let value = match *operation {
                "sum" => numbers.iter().try_fold(0i64, |sum, number| sum.checked_add(*number)),
                "max" => numbers.iter().max().copied(),
                "min" => numbers.iter().min().copied(),
                other => return Err(format!("unknown operation `{other}`")),
            };
            value.map(|value| value.to_string()).ok_or_else(|| format!("no {operation} of this column"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(name: &str, arguments: &[&str], input: &str) -> Ran {
        run(name, arguments, Some(input), &|_| Err("nothing".to_owned())).unwrap()
    }

    #[test]
    fn filters_do_what_their_names_promise() {
        let text = "b 2\na 10\nb 2\n";
        assert_eq!(over("sort", &[], text).output, "a 10\nb 2\nb 2\n");
        assert_eq!(over("head", &["-n", "1"], text).output, "b 2\n");
        assert_eq!(over("tail", &["-1"], text).output, "b 2\n");
        assert_eq!(over("cut", &["-d ", "-f2"], text).output, "2\n10\n2\n");
        assert_eq!(over("sort", &["-nr"], "2\n10\n1\n").output, "10\n2\n1\n");
        assert_eq!(over("grep", &["-c", "b"], text).output, "2\n");
        assert_eq!(over("grep", &["z"], text).exit, 1);
        assert_eq!(over("datamash", &["-t ", "sum", "2"], text).output, "14\n");
        assert_eq!(over("datamash", &["-t ", "sum", "1"], text).exit, 1);
        assert!(run("npm", &[], None, &|_| Ok(String::new())).is_none());
    }
}
