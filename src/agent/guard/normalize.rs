//! Text preparation: the one spelling that the rules see.
//!
//! Escape sequences, compatibility characters, continuations, homes, backslashes, empty quotes and `$IFS` are folded
//! away, in this order. The outcome is for detection only; nobody runs it.

use unicode_normalization::UnicodeNormalization;

/// Where the user and the agent live, as absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Homes {
    /// The user's home, written `~` after folding.
    pub user: String,
    /// The agent's home, written `~/.hermes` after folding.
    pub agent: String,
}

/// Folds a command into the spelling that the rules know (Hermes tools/approval_detection.py:521).
pub fn normalize(command: &str, homes: &Homes) -> String {
    let text = strip_escapes(command);
    let text = if text.is_ascii() { text } else { text.nfkc().collect() };
    let text = if text.contains('\\') { text.replace("\\\r\n", "").replace("\\\n", "") } else { text };
    let text = fold_home(&text, &homes.agent, "~/.hermes");
    let text = fold_home(&text, &homes.user, "~");
    let text = unescape(&text);
    let text = drop_empty_quotes(&text);
    fold_ifs(&text)
}

/// Folds both homes, also where a home stands by itself.
pub(super) fn fold_homes(text: &str, homes: &Homes) -> String {
    let text = fold_home(text, &homes.agent, "~/.hermes");
    let text = fold_home(&text, &homes.user, "~");
    let home = homes.user.trim_end_matches(['/', '\\']);
    if home.split(['/', '\\']).filter(|part| !part.is_empty()).count() < 2 {
        return text;
    }
    let bare = |word: &str| if word == home { "~".to_owned() } else { word.to_owned() };
    text.split(' ').map(bare).collect::<Vec<_>>().join(" ")
}

/// Removes terminal escape sequences, the 8-bit ones as well, and NUL.
pub fn strip_escapes(text: &str) -> String {
    if !text.contains(|ch: char| ch == '\u{1b}' || ch == '\0' || ('\u{80}'..='\u{9f}').contains(&ch)) {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    // Once no terminator was found, none comes later; asking again would make hostile input quadratic.
    let mut no_more = [false; 2];
    while at < chars.len() {
        let length = match chars[at] {
            '\u{1b}' => escape_length(&chars[at..], &mut no_more),
            '\u{9b}' => control_sequence(&chars[at + 1..]).map_or(1, |length| length + 1),
            '\u{9d}' => string_length(&chars[at + 1..], true, &mut no_more[0]).map_or(1, |length| length + 1),
            '\0' | '\u{80}'..='\u{9f}' => 1,
            other => {
                kept.push(other);
                1
            }
        };
        at += length.max(1);
    }
    kept
}

fn escape_length(chars: &[char], no_more: &mut [bool; 2]) -> usize {
    match chars.get(1) {
        Some('[') => control_sequence(&chars[2..]).map_or(2, |length| length + 2),
        Some(']') => string_length(&chars[2..], true, &mut no_more[0]).map_or(2, |length| length + 2),
        Some('P' | 'X' | '^' | '_') => {
            string_length(&chars[2..], false, &mut no_more[1]).map_or(2, |length| length + 2)
        }
        Some(' '..='/') => {
            let middle = chars[1..].iter().take_while(|ch| (' '..='/').contains(*ch)).count();
            match chars.get(1 + middle) {
                Some('0'..='~') => middle + 2,
                _ => 1,
            }
        }
        Some('0'..='~') => 2,
        Some(_) | None => 1,
    }
}

/// Length of parameters, intermediates and final byte of a control sequence.
fn control_sequence(chars: &[char]) -> Option<usize> {
    let parameters = chars.iter().take_while(|ch| ('0'..='?').contains(*ch)).count();
    let middle = chars[parameters..].iter().take_while(|ch| (' '..='/').contains(*ch)).count();
    let end = parameters + middle;
    chars.get(end).filter(|ch| ('@'..='~').contains(*ch)).map(|_| end + 1)
}

/// Length of a string sequence up to and with its terminator.
fn string_length(chars: &[char], bell_ends: bool, no_more: &mut bool) -> Option<usize> {
    if *no_more {
        return None;
    }
    let found = chars.iter().enumerate().find_map(|(at, ch)| match ch {
        '\u{7}' if bell_ends => Some(at + 1),
        '\u{9c}' => Some(at + 1),
        '\u{1b}' if chars.get(at + 1) == Some(&'\\') => Some(at + 2),
        _ => None,
    });
    *no_more = found.is_none();
    found
}

fn ends_path(ch: char) -> bool {
    ch.is_whitespace() || matches!(ch, '\'' | '"' | '`' | ';' | '|' | '&' | '<' | '>' | '(' | ')')
}

/// Writes `short` for every path that begins with `home`; homes of fewer than two components are left alone.
fn fold_home(text: &str, home: &str, short: &str) -> String {
    let home = home.trim_end_matches(['/', '\\']);
    let mut components = home.split(['/', '\\']).filter(|part| !part.is_empty());
    let own = components.next_back().unwrap_or("");
    // Only slashes may be written otherwise: without the last name there is no home.
    if components.next().is_none() || !text.contains(own) {
        return text.to_owned();
    }
    let first = home.chars().next().unwrap_or('/');
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = ' ';
    while let Some(ch) = rest.chars().next() {
        let candidate = ch == first || (is_slash(ch) && is_slash(first));
        let tail = if candidate && !continues_path(previous) { behind_home(rest, home) } else { None };
        if let Some(tail) = tail {
            let end = tail.find(ends_path).unwrap_or(tail.len());
            folded.push_str(short);
            folded.push_str(&tail[..end].replace('\\', "/"));
            previous = '/';
            rest = &tail[end..];
        } else {
            folded.push(ch);
            previous = ch;
            rest = &rest[ch.len_utf8()..];
        }
    }
    folded
}

fn is_slash(ch: char) -> bool {
    matches!(ch, '/' | '\\')
}

/// A home in the middle of a longer path is not a home.
fn continues_path(previous: char) -> bool {
    previous.is_alphanumeric() || matches!(previous, '/' | '\\' | '.' | '_' | '-' | '~')
}

/// What follows the home, if the text begins with it and a separator comes next.
fn behind_home<'a>(text: &'a str, home: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for expected in home.chars() {
        let found = rest.next()?;
        if found != expected && !(is_slash(found) && is_slash(expected)) {
            return None;
        }
    }
    let rest = rest.as_str();
    rest.starts_with(is_slash).then_some(rest)
}

/// Every backslash that stands before something other than a newline goes.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        match chars.peek() {
            Some(next) if ch == '\\' && *next != '\n' => {
                kept.push(*next);
                chars.next();
            }
            _ => kept.push(ch),
        }
    }
    kept
}

fn drop_empty_quotes(text: &str) -> String {
    if !text.contains("''") && !text.contains("\"\"") {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        if matches!(ch, '\'' | '"') && chars.peek() == Some(&ch) {
            chars.next();
        } else {
            kept.push(ch);
        }
    }
    kept
}

/// `$IFS` and every `${IFS…}` become one blank.
fn fold_ifs(text: &str) -> String {
    if !text.contains("IFS") {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let word = |tail: &str| tail.starts_with(|ch: char| ch.is_alphanumeric() || ch == '_');
        let length = if let Some(tail) = rest.strip_prefix("${IFS") {
            if word(tail) { None } else { tail.find('}').map(|end| 5 + end + 1) }
        } else {
            rest.strip_prefix("$IFS").filter(|tail| !word(tail)).map(|_| 4)
        };
        kept.push(if length.is_some() { ' ' } else { '$' });
        rest = &rest[length.unwrap_or(1)..];
        // An unclosed brace would be searched for again at every later dollar.
        if length.is_none() && rest.starts_with("{IFS") && !rest.contains('}') {
            break;
        }
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes() -> Homes {
        Homes { user: "/home/ada".to_owned(), agent: "/srv/agent".to_owned() }
    }

    #[test]
    fn the_agents_home_is_folded_wherever_it_lies() {
        assert_eq!(normalize("cat /srv/agent/config.yaml", &homes()), "cat ~/.hermes/config.yaml");
        assert_eq!(normalize("cat /mnt/home/ada/x", &homes()), "cat /mnt/home/ada/x");
    }

    #[test]
    fn a_home_of_one_component_is_never_folded() {
        let homes = Homes { user: "/root".to_owned(), agent: "/".to_owned() };
        assert_eq!(normalize("ls /root/x", &homes), "ls /root/x");
    }

    #[test]
    fn an_unterminated_title_loses_only_its_opener() {
        assert_eq!(strip_escapes("\u{1b}]0;rm -rf /"), "0;rm -rf /");
    }

    #[test]
    fn backslashes_of_a_home_path_become_slashes() {
        let homes = Homes { user: "C:\\Users\\ada".to_owned(), agent: String::new() };
        assert_eq!(normalize("type C:\\Users\\ada\\.ssh\\id", &homes), "type ~/.ssh/id");
    }
}
