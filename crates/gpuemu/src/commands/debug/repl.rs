//! The commands of `gpuemu debug`.

use std::fmt::Write;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

use gpuemu_model::nearest::nearest;
use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{GetResult, InspectionStep, Minimize, ReplayCase, Request, Response};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::export;
use super::open_case::{OpenCase, read_tensors};
use crate::commands::{failures, minimize};
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::write_text;
use crate::report::style::{BAD, GOOD, WARNING, paint};
use crate::report::text;
use crate::session::{Session, note};

/// Failures that are listed.
const MOST_FAILURES: u64 = 100;

/// A command: its name, other names, its arguments, and what it does.
struct Command {
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: &'static str,
    summary: &'static str,
}

const fn command(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: &'static str,
    summary: &'static str,
) -> Command {
    Command { name, aliases, arguments, summary }
}

const COMMANDS: [Command; 14] = [
    command("list", &["ls"], "[OP]", "stored failures, newest first, numbered"),
    command("show", &[], "N|SEED [OP]", "one of them"),
    command("open", &[], "N|SEED [OP]", "run a case again and keep its tensors"),
    command("reproduce", &[], "", "run the open case again"),
    command("minimize", &["minimise"], "", "shrink the open case to the smallest that fails for the same reason"),
    command("checks", &[], "", "what each check said of the open case"),
    command("step", &[], "", "the next check"),
    command("tensors", &[], "", "tensors of the open case, with dtype and shape"),
    command("print", &["p"], "NAME [SLICE]", "a tensor, or part of it: print out[0, 3:7, ::2, -1, ...]"),
    command("expected", &[], "NAME [SLICE]", "what is expected of an output"),
    command("diff", &[], "NAME [SLICE]", "an output minus what is expected of it"),
    command("export", &[], "FILE.py", "write a Python script that runs the open case without gpuemu"),
    command("help", &["?"], "", "this list"),
    command("quit", &["exit", "q"], "", "leave; so does the end of input"),
];

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Continue,
    Quit,
}

/// A session of commands over one project.
pub struct Repl {
    session: Session,
    quiet: bool,
    /// What numbers stand for: the list as it was last shown.
    listed: Option<Vec<ValidationResult>>,
    open: Option<OpenCase>,
}

impl Repl {
    /// A session with nothing open.
    pub fn new(session: Session, quiet: bool) -> Self {
        Self { session, quiet, listed: None, open: None }
    }

    /// Reads and does commands until there are no more. What goes wrong is said, and ends nothing.
    pub fn run(&mut self) -> Result<u8, ExpectedError> {
        let editor = std::io::stdin().is_terminal().then(DefaultEditor::new);
        if let Some(Ok(editor)) = editor {
            return self.interactive(editor);
        }
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            if self.line(&String::from_utf8_lossy(&line))? == Flow::Quit {
                break;
            }
            line.clear();
        }
        Ok(exit_code::PASSED)
    }

    fn interactive(&mut self, mut editor: DefaultEditor) -> Result<u8, ExpectedError> {
        if !self.quiet {
            note("`list` shows stored failures, `open 1` opens the newest, `help` lists all commands");
        }
        loop {
            let prompt = self.open.as_ref().map_or_else(String::new, |open| format!(" {}", open.result.op));
            match editor.readline(&format!("gpuemu{prompt}> ")) {
                Ok(line) => {
                    // A line that cannot be remembered can still be done.
                    let _ = editor.add_history_entry(&line);
                    if self.line(&line)? == Flow::Quit {
                        break;
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(ExpectedError::plain(format!("commands cannot be read: {error}"))),
            }
        }
        Ok(exit_code::PASSED)
    }

    fn line(&mut self, line: &str) -> Result<Flow, ExpectedError> {
        let flow = self.perform(line.trim()).unwrap_or_else(|error| {
            crate::report_error(&error);
            Flow::Continue
        });
        if Session::interrupted() {
            // From here on every job would be stopped as soon as it starts.
            return Err(ExpectedError::plain("interrupted"));
        }
        Ok(flow)
    }

    fn perform(&mut self, line: &str) -> Result<Flow, ExpectedError> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if word.is_empty() || word.starts_with('#') {
            return Ok(Flow::Continue);
        }
        let Some(known) = COMMANDS.iter().find(|known| known.name == word || known.aliases.contains(&word)) else {
            return Err(unknown_command(word));
        };
        if known.arguments.is_empty() && !rest.is_empty() {
            return Err(ExpectedError::plain(format!("{word} takes nothing after it, but '{rest}' was given")));
        }
        match known.name {
            "list" => self.list(rest)?,
            "show" => self.show(rest)?,
            "open" => {
                let (seed, op) = self.case_of(rest, "open")?;
                self.open(seed, op, FuzzConfig::default())?;
            }
            "reproduce" => self.reproduce()?,
            "minimize" => self.minimize()?,
            "checks" => self.checks()?,
            "step" => self.step()?,
            "tensors" => write_text(&self.opened()?.list())?,
            "print" | "expected" | "diff" => self.print(known.name, rest)?,
            "export" => self.export(rest)?,
            "help" => write_text(&help())?,
            _ => return Ok(Flow::Quit),
        }
        Ok(Flow::Continue)
    }

    fn opened(&mut self) -> Result<&mut OpenCase, ExpectedError> {
        self.open.as_mut().ok_or_else(|| {
            ExpectedError::new("no case is open", "`list` shows stored failures, `open 1` opens the newest")
        })
    }

    fn stored(&mut self, op: Option<String>) -> Result<Vec<ValidationResult>, ExpectedError> {
        self.session.reload()?;
        failures::stored(&mut self.session, op, MOST_FAILURES)
    }

    fn list(&mut self, op: &str) -> Result<(), ExpectedError> {
        let op = (!op.is_empty()).then(|| op.to_string());
        let found = self.stored(op)?;
        if found.is_empty() {
            return write_text("no failure is stored\n");
        }
        let width = found.len().to_string().len();
        let mut text = String::new();
        for (place, failure) in found.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{:>width$}  {}", place + 1, failures::failure_line(failure));
        }
        if found.len() as u64 == MOST_FAILURES {
            let _ = writeln!(text, "these are the newest {MOST_FAILURES}; `list OP` shows those of one op");
        }
        self.listed = Some(found);
        write_text(&text)
    }

    /// The failure that a number stands for, if it is a place in the list and not a seed.
    fn listed(&mut self, number: u64) -> Result<Option<ValidationResult>, ExpectedError> {
        if self.listed.is_none() {
            self.listed = Some(self.stored(None)?);
        }
        let listed = self.listed.as_deref().unwrap_or_default();
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let found = place.and_then(|place| listed.get(place)).cloned();
        if found.is_none() && number <= MOST_FAILURES && !self.quiet {
            note(&format!("{number} is not a place in the list of {}: it is taken as a seed", listed.len()));
        }
        Ok(found)
    }

    /// The seed, and the op if it is known, of `N|SEED [OP]`.
    fn case_of(&mut self, rest: &str, word: &str) -> Result<(u64, Option<String>), ExpectedError> {
        let (number, op) = read_number(rest, word)?;
        if op.is_some() {
            return Ok((number, op));
        }
        Ok(match self.listed(number)? {
            Some(failure) => {
                if failure.minimized && !self.quiet {
                    note("this is the minimized form of a failure; what its seed stands for is the original");
                }
                (failure.seed, Some(failure.op))
            }
            None => (number, None),
        })
    }

    fn show(&mut self, rest: &str) -> Result<(), ExpectedError> {
        let (number, op_name) = read_number(rest, "show")?;
        if op_name.is_none()
            && let Some(failure) = self.listed(number)?
        {
            return write_text(&text::result(&failure));
        }
        let request = GetResult { project: self.session.project(), op_name, seed: number };
        match self.session.call(&Request::GetResult(request))? {
            Response::ValidationResult { result } => write_text(&text::result(&result)),
            other => Err(unexpected(&other).into()),
        }
    }

    /// Runs a case again and keeps its tensors.
    pub fn open(&mut self, seed: u64, op_name: Option<String>, config: FuzzConfig) -> Result<(), ExpectedError> {
        self.session.reload()?;
        let request =
            ReplayCase { project: self.session.project(), op_name, seed, config: config.clone(), minimized: false };
        let inspection = match self.session.run(Request::Inspect(request))? {
            Response::Inspection { inspection } => *inspection,
            other => return Err(unexpected(&other).into()),
        };
        let open = OpenCase::read(inspection, config)?;
        write_text(&format!("{}{}", text::result(&open.result), open.list()))?;
        if open.result.failing_case.is_some() && !self.quiet {
            note("these are the tensors of the extra case that failed; the case itself passed");
        }
        self.open = Some(open);
        Ok(())
    }

    /// The open case as requests name it.
    fn replay_case(&mut self) -> Result<ReplayCase, ExpectedError> {
        let open = self.opened()?;
        let (op_name, seed, config) = (Some(open.result.op.clone()), open.result.seed, open.config.clone());
        self.session.reload()?;
        Ok(ReplayCase { project: self.session.project(), op_name, seed, config, minimized: false })
    }

    fn reproduce(&mut self) -> Result<(), ExpectedError> {
        let request = self.replay_case()?;
        match self.session.run(Request::Reproduce(request))? {
            Response::ValidationResult { result } => write_text(&text::result(&result)),
            other => Err(unexpected(&other).into()),
        }
    }

    fn minimize(&mut self) -> Result<(), ExpectedError> {
        let ReplayCase { project, op_name, seed, config, .. } = self.replay_case()?;
        let request = Minimize { project, op_name, seed, config, strategy: None, max_runs: None };
        let minimized = match self.session.run(Request::Minimize(request))? {
            Response::Minimized { minimized } => minimized,
            other => return Err(unexpected(&other).into()),
        };
        let inputs = read_tensors(&minimized.inputs)?;
        let names: Vec<String> = inputs.iter().map(|(name, _)| format!("print minimized.{name}")).collect();
        self.opened()?.minimized = inputs;
        write_text(&format!("{}its inputs: {}\n", minimize::describe(&minimized), names.join(", ")))
    }

    fn checks(&mut self) -> Result<(), ExpectedError> {
        let steps = &self.opened()?.steps;
        write_text(&steps.iter().map(|step| step_line(step, check_width(steps))).collect::<String>())
    }

    fn step(&mut self) -> Result<(), ExpectedError> {
        let open = self.opened()?;
        let Some(step) = open.steps.get(open.next_step) else {
            open.next_step = 0;
            return write_text("that was the last check; the next step is the first again\n");
        };
        open.next_step += 1;
        let line = format!("{}/{}  {}", open.next_step, open.steps.len(), step_line(step, check_width(&open.steps)));
        write_text(&line)
    }

    fn print(&mut self, what: &str, rest: &str) -> Result<(), ExpectedError> {
        let end = rest.find(|letter: char| letter.is_whitespace() || letter == '[').unwrap_or(rest.len());
        let (name, slice) = (&rest[..end], rest[end..].trim());
        let open = self.opened()?;
        if name.is_empty() {
            return Err(ExpectedError::new(format!("{what} needs the name of a tensor"), "`tensors` lists them"));
        }
        write_text(&match what {
            "print" => open.print(name, slice)?,
            "expected" => open.print_expected(name, slice)?,
            _ => open.print_difference(name, slice)?,
        })
    }

    fn export(&mut self, file: &str) -> Result<(), ExpectedError> {
        self.opened()?;
        if file.is_empty() {
            return Err(ExpectedError::new("export needs the name of a file", "export case.py"));
        }
        self.session.reload()?;
        let Self { session, open, .. } = self;
        let Some(open) = open else { return Ok(()) };
        export::write(open, &session.config, Path::new(file))?;
        write_text(&format!("wrote {file}\n"))
    }
}

fn read_number(rest: &str, word: &str) -> Result<(u64, Option<String>), ExpectedError> {
    let mut words = rest.split_whitespace();
    let usage = || format!("{word} N, a place in `list`, or {word} SEED [OP]");
    let Some(number) = words.next() else {
        return Err(ExpectedError::new(format!("{word} needs a number"), usage()));
    };
    let Ok(read) = number.parse() else {
        return Err(ExpectedError::new(format!("'{number}' is neither a place in the list nor a seed"), usage()));
    };
    let op = words.next().map(ToString::to_string);
    match words.next() {
        Some(more) => Err(ExpectedError::new(format!("'{more}' is one word too many"), usage())),
        None => Ok((read, op)),
    }
}

fn unknown_command(word: &str) -> ExpectedError {
    let names = COMMANDS.iter().flat_map(|known| [known.name].into_iter().chain(known.aliases.iter().copied()));
    // Anything is near to a name of one letter.
    let hint = match nearest(word, names.filter(|name| name.len() > 1)) {
        Some(meant) => format!("did you mean '{meant}'? `help` lists all commands"),
        None => "`help` lists all commands".to_string(),
    };
    ExpectedError::new(format!("unknown command '{word}'"), hint)
}

fn check_width(steps: &[InspectionStep]) -> usize {
    steps.iter().map(|step| step.check.len()).max().unwrap_or(0)
}

fn step_line(step: &InspectionStep, width: usize) -> String {
    let style = match step.status.as_str() {
        "passed" => GOOD,
        "failed" => BAD,
        _ => WARNING,
    };
    let status = paint(style, &step.status);
    let mut lines = step.detail.trim_end().lines();
    let mut text = format!("{:width$}  {status}", step.check);
    if let Some(first) = lines.next() {
        let padding = " ".repeat("not checked".len().saturating_sub(step.status.len()));
        text.push_str(&format!("{padding}  {first}"));
    }
    text.push('\n');
    lines.for_each(|line| text.push_str(&format!("    {line}\n")));
    text
}

fn help() -> String {
    let usage = |known: &Command| format!("{} {}", known.name, known.arguments);
    let width = COMMANDS.iter().map(|known| usage(known).len()).max().unwrap_or(0);
    let mut text = String::new();
    for known in &COMMANDS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:width$}  {}", usage(known), known.summary);
    }
    text.push_str(
        "\nA number up to the length of the list is a place in it, any other a seed. Where an input and an output\n\
         have one name, they are input.NAME and output.NAME. Rows of float64 numbers are rounded to 8 digits, a single\n\
         one is shown in full. A difference is 0 where both are NaN.\n",
    );
    text
}
