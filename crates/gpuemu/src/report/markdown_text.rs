//! Words of others in Markdown: nothing in them is markup, a mention or a link.

/// Text in which no letter means anything to Markdown or HTML, on one line. A mention or a link is broken by a comment that
/// nobody sees: entities would be decoded before mentions are looked for.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    for letter in text.chars() {
        match letter {
            letter if letter.is_control() => escaped.push(' '),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '@' => escaped.push_str("@<!-- -->"),
            // Issue numbers, and the slashes of addresses.
            '#' => escaped.push_str("\\#<!-- -->"),
            '/' if before == '/' => escaped.push_str("<!-- -->/"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '|' | '~' | '$' | '!' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter => escaped.push(letter),
        }
        before = letter;
    }
    escaped
}

/// Text as code on one line, in a table too.
pub fn code(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&line) + 1);
    // A table is cut at bars before code is looked for, and there alone a bar is escaped within code.
    let inner = line.replace('|', "\\|");
    let space = if inner.starts_with('`') || inner.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{inner}{space}{fence}")
}

/// Text as a block of code.
pub fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let plain: String = text.chars().filter(|letter| *letter == '\n' || !letter.is_control()).collect();
    format!("{fence}text\n{}\n{fence}", plain.trim_end())
}

/// At most so many letters, and a sign that there were more.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}

/// Backticks that come one after the other, at most.
fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for letter in text.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_words_of_others_is_markup() {
        assert_eq!(escaped("a|b `c` <img> @you #1"), "a\\|b \\`c\\` &lt;img&gt; @<!-- -->you \\#<!-- -->1");
        assert_eq!(escaped("see https://x.y\nand [a](b)"), "see https:/<!-- -->/x.y and \\[a\\]\\(b\\)");
        assert_eq!(escaped("--> &amp;"), "--&gt; &amp;amp;");
    }

    #[test]
    fn code_holds_backticks_and_bars() {
        assert_eq!(code("gpuemu reproduce 7"), "`gpuemu reproduce 7`");
        assert_eq!(code("a``b|c"), "```a``b\\|c```");
        assert_eq!(code("`x"), "`` `x ``");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(code(""), "");
        assert_eq!(fenced("a\n````\nb\n"), "`````text\na\n````\nb\n`````");
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!((shortened("äöü", 3), shortened("äöü", 2)), ("äöü".to_string(), "äö…".to_string()));
    }
}
