//! Reports as a comment on a pull request: short, the worst first, and never longer than a comment may be.

use gpuemu_model::report::{Conclusion, RunReport};

use super::issues::{Issue, Subject, Weight, issues, not_checked};
use super::markdown_text::{code, escaped, fenced, shortened};
use super::{kernels, text};

/// The first line, by which a comment of an earlier run is found and replaced.
pub const MARKER: &str = "<!-- gpuemu-report -->";

/// Bytes of a comment. Services take 65,536 characters.
pub const MOST_BYTES: usize = 60_000;

/// What the lines after the table are kept.
const RESERVED: usize = 2_000;

/// Letters of what is shown of a message, a name and a command. A command is whole or not shown.
const MESSAGE: usize = 200;
const NAME: usize = 100;
const COMMAND: usize = 500;

/// Letters of the details of one issue.
const DETAILS: usize = 3_000;

/// Remarks that are listed.
const REMARKS: usize = 20;

/// The report on a run as Markdown.
pub fn run(report: &RunReport) -> String {
    let issues = issues(report);
    let conclusion = report.conclusion();
    let word = match conclusion {
        Conclusion::Passed => "passed",
        Conclusion::Failed => "failed",
        Conclusion::Error => "could not be judged",
    };
    let project =
        if report.project.is_empty() { String::new() } else { format!(" {}", code(&shortened(&report.project, NAME))) };
    let mut comment = format!("{MARKER}\n**gpuemu{project}: {word}.** {}\n", escaped(&text::summary(report)));
    let (grave, remarks): (Vec<&Issue>, Vec<&Issue>) = issues.iter().partition(|issue| issue.weight != Weight::Remark);
    if !grave.is_empty() {
        let subjects = by_subject(&grave);
        add_table(&mut comment, &subjects);
        add_details(&mut comment, &subjects);
    }
    add_remarks(&mut comment, &remarks, report);
    comment
}

/// The issues of each op or kernel, in the order of the worst of each.
fn by_subject<'a>(issues: &[&'a Issue]) -> Vec<(&'a Subject, Vec<&'a Issue>)> {
    let mut subjects: Vec<(&Subject, Vec<&Issue>)> = Vec::new();
    for issue in issues.iter().copied() {
        match subjects.iter_mut().find(|(subject, _)| *subject == &issue.subject) {
            Some((_, mine)) => mine.push(issue),
            None => subjects.push((&issue.subject, vec![issue])),
        }
    }
    subjects
}

fn add_table(comment: &mut String, subjects: &[(&Subject, Vec<&Issue>)]) {
    comment.push_str("\n| | op or kernel | what is wrong | see it again |\n| --- | --- | --- | --- |\n");
    let mut shown = 0;
    for (subject, mine) in subjects {
        let row = row(subject, mine);
        if comment.len() + row.len() > MOST_BYTES / 2 {
            break;
        }
        comment.push_str(&row);
        shown += 1;
    }
    if shown < subjects.len() {
        let more = subjects.len() - shown;
        comment.push_str(&format!("\nand {more} more, none of them worse; the JSON report has all of them.\n"));
    }
}

fn row(subject: &Subject, issues: &[&Issue]) -> String {
    let Some(worst) = issues.first() else { return String::new() };
    let word = word(worst.weight);
    let name = match subject {
        Subject::Op(name) => code(&shortened(name, NAME)),
        Subject::Kernel(name) => format!("kernel {}", code(&shortened(name, NAME))),
        Subject::Run => "the run".to_string(),
    };
    let cases = worst.failed.as_ref().map_or(String::new(), |failed| {
        format!(" ({} of {} cases in {})", failed.failed_cases, failed.cases, failed.dtype)
    });
    let others = match issues.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let what = escaped(&shortened(&worst.summary, MESSAGE));
    format!("| {word} | {name} | {what}{cases}{others} | {} |\n", command(worst))
}

fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Failed => "FAIL",
        Weight::Error => "ERROR",
        Weight::Unfinished => "STOP",
        Weight::Remark => "note",
    }
}

fn command(issue: &Issue) -> String {
    match &issue.replay {
        Some(replay) if replay.chars().count() <= COMMAND => code(replay),
        Some(_) => "see the report".to_string(),
        None => String::new(),
    }
}

/// All issues in full as far as there is room, folded away.
fn add_details(comment: &mut String, subjects: &[(&Subject, Vec<&Issue>)]) {
    const END: &str = "\n</details>\n";
    let mut details = String::from("\n<details><summary>details, the worst first</summary>\n");
    let all = subjects.iter().map(|(_, mine)| mine.len()).sum::<usize>();
    let room = MOST_BYTES.saturating_sub(RESERVED + comment.len());
    let mut shown = 0;
    for issue in subjects.iter().flat_map(|(_, mine)| mine) {
        let place = issue.places.first().map_or(String::new(), |place| {
            let line = place.line.map_or(String::new(), |line| format!(":{line}"));
            format!("at {}{line}", place.file)
        });
        let replay = issue.replay.iter().filter(|replay| replay.chars().count() <= COMMAND).cloned();
        let head = [format!("{} {}", word(issue.weight), issue.title()), place];
        let lines: Vec<String> = head.into_iter().chain(issue.details.iter().cloned()).chain(replay).collect();
        let block = format!("\n{}\n", fenced(&shortened(&lines.join("\n"), DETAILS)));
        if details.len() + block.len() + END.len() > room {
            break;
        }
        details.push_str(&block);
        shown += 1;
    }
    if shown == 0 {
        return;
    }
    comment.push_str(&details);
    comment.push_str(END);
    if shown < all {
        comment.push_str(&format!("\nThe other {} have their details in the JSON report.\n", all - shown));
    }
}

/// What is worth a look, and what a pass does not say.
fn add_remarks(comment: &mut String, remarks: &[&Issue], report: &RunReport) {
    let unchecked = not_checked(report);
    let mut lines: Vec<String> = Vec::new();
    for issue in remarks.iter().take(REMARKS) {
        let expected = if issue.accepted.is_some() { "fails as expected: " } else { "" };
        lines.push(format!("- {expected}{}\n", escaped(&shortened(&issue.title(), MESSAGE))));
    }
    lines.extend(
        unchecked.iter().take(REMARKS).map(|what| format!("- not checked: {}\n", escaped(&shortened(what, MESSAGE)))),
    );
    let all = remarks.len() + unchecked.len();
    if all == 0 {
        return;
    }
    const END: &str = "\n</details>\n";
    let counted = [
        (remarks.len(), kernels::counted(remarks.len() as u64, "remark", "remarks")),
        (unchecked.len(), format!("{} not checked", kernels::counted(unchecked.len() as u64, "thing", "things"))),
    ];
    let counted: Vec<String> = counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
    let mut folded = format!("\n<details><summary>{}</summary>\n\n", counted.join(", "));
    let mut shown = 0;
    for line in &lines {
        // A line that says how many are not shown is still to come.
        if comment.len() + folded.len() + line.len() + 100 + END.len() > MOST_BYTES {
            break;
        }
        folded.push_str(line);
        shown += 1;
    }
    if shown < all {
        folded.push_str(&format!("- and {} more\n", all - shown));
    }
    comment.push_str(&folded);
    comment.push_str(END);
}
