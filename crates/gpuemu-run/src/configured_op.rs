//! An op of a project, made ready: what it is, what it is judged by, which cases are drawn, what runs it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gpuemu_config::failure::Failure;
use gpuemu_config::{ExecutionMode, Framework, OpSource, ReferenceDtype};
use gpuemu_engine::ops;
use gpuemu_engine::schema::Schema;
use gpuemu_engine::{Sampler, Subject};
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::nearest::nearest;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_runners::definition::Definition;
use gpuemu_runners::executor::{Accepted, Pool};
use gpuemu_runners::external_reference::ExternalReference;
use gpuemu_runners::op_runner::OpRunner;
use gpuemu_runners::python_program::{Entry, PythonProgram};
use gpuemu_runners::python_runner::PythonRunner;
use gpuemu_tensor::{DType, Layout};
use serde_json::{Map, Value};

use crate::kernel_program::KernelProgram;
use crate::op_definition::{
    bound_beside, built_in_subject, check_calibrated, check_calibrated_outputs, extra_arguments, judged_as_configured,
    narrow, sampler_of, schema_of,
};
use crate::project::Project;

/// An op, ready to be tried.
#[derive(Clone)]
pub struct ConfiguredOp {
    /// Its name in the project.
    pub name: String,
    /// Line of its definition, from 1; 0 where there is none.
    pub line: usize,
    /// What it is judged by.
    pub subject: Subject,
    /// The rigorous bound of the built-in op of that name, where the project judges by something else.
    pub bound: Option<Subject>,
    /// What cases are drawn from.
    pub sampler: Sampler,
    /// What it is judged by, in words.
    pub reference: String,
    /// Where it comes from, in words.
    pub source: String,
    /// Things worth knowing before anything was run.
    pub warnings: Vec<String>,
    program: Option<OpProgram>,
    reference_program: Option<PythonProgram>,
    extra: Map<String, Value>,
    timeout: Duration,
}

/// What an op is made of.
#[derive(Clone)]
enum OpProgram {
    Python(PythonProgram),
    Kernel(KernelProgram),
}

impl OpProgram {
    fn describe(&self) -> String {
        match self {
            OpProgram::Python(program) => program.describe(),
            OpProgram::Kernel(program) => program.describe(),
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        match self {
            OpProgram::Python(program) => program.files(),
            OpProgram::Kernel(program) => program.files(),
        }
    }
}

/// An op whose program was started.
pub struct StartedOp {
    pub op: ConfiguredOp,
    pub runner: OpRunner,
}

impl ConfiguredOp {
    /// Makes an op of a project ready: one that it defines, or a built-in one.
    pub fn open(project: &Project, name: &str, settings: &FuzzConfig, pool: &Pool) -> Result<Self, Failure> {
        let config = &project.config;
        let Some(op) = config.ops.iter().find(|op| op.name == name) else {
            return Self::built_in(project, name, settings);
        };
        let program = program_of(project, op, pool)?;
        let mut schema = schema_of(project, op)?;
        narrow(&mut schema, settings)?;
        let extra = extra_arguments(op, &schema);
        let (subject, reference, reference_program) = match &op.reference {
            None => (built_in_subject(project, op, schema)?, "built-in fp64 reference".to_string(), None),
            Some(text) => {
                let program = reference_of(project, op, text, pool)?;
                let words = program.describe();
                let native = op.reference_dtype == ReferenceDtype::Native;
                let external =
                    ExternalReference::new(schema.clone(), program.clone(), extra.clone(), native, op.timeout);
                (Subject::with_schema(Arc::new(external), schema), words, Some(program))
            }
        };
        let subject = judged_as_configured(subject, project, op)?;
        let bound = bound_beside(&subject, op);
        let sampler = sampler_of(project, Some(op), subject.schema(), settings)?;
        let warnings = check_calibrated(project, op, subject.schema(), &sampler)?;
        let mut ready = Self {
            name: op.name.clone(),
            line: op.line,
            sampler,
            subject,
            bound,
            reference,
            source: source_words(program.as_ref()),
            warnings,
            program,
            reference_program,
            extra,
            timeout: op.timeout,
        };
        match &ready.program {
            // Scripts get contiguous data: a layout in the report would be one that nobody saw.
            Some(OpProgram::Python(program)) if !program.is_callable() => {
                ready.sampler.layouts = vec![Layout::Contiguous];
            }
            Some(OpProgram::Kernel(program)) => program.narrow(&mut ready.sampler),
            _ => {}
        }
        Ok(ready)
    }

    fn built_in(project: &Project, name: &str, settings: &FuzzConfig) -> Result<Self, Failure> {
        let Some(op) = ops::find(name) else {
            let defined = project.config.ops.iter().map(|op| op.name.as_str());
            let known = defined.chain(ops::builtin().iter().map(|op| op.schema().name.as_str()));
            let failure = Failure::new(ErrorCode::OpNotFound, format!("there is no op '{name}'"));
            return Err(match nearest(name, known) {
                Some(meant) => failure.hint(format!("did you mean '{meant}'?")),
                None => failure.hint("`gpuemu ops` lists the built-in ops; the project's own are in gpuemu.toml"),
            });
        };
        let mut schema = op.schema().clone();
        narrow(&mut schema, settings)?;
        let mut subject = Subject::with_schema(op, schema);
        subject.measured = true;
        let sampler = sampler_of(project, None, subject.schema(), settings)?;
        Ok(Self { timeout: project.config.daemon.script_timeout, ..Self::of_subject(subject, sampler) })
    }

    /// An op that no project defines: others run it, and it is judged by its subject alone.
    pub fn of_subject(subject: Subject, sampler: Sampler) -> Self {
        Self {
            name: subject.schema().name.clone(),
            line: 0,
            subject,
            bound: None,
            sampler,
            reference: "built-in fp64 reference".to_string(),
            source: "submitted".to_string(),
            warnings: Vec::new(),
            program: None,
            reference_program: None,
            extra: Map::new(),
            timeout: Duration::MAX,
        }
    }

    /// An op that exists only in the client's process, ready to be tried there.
    pub fn custom(
        project: &Project,
        mut schema: Schema,
        op: impl FnOnce(Schema) -> Subject,
        settings: &FuzzConfig,
    ) -> Result<Self, Failure> {
        narrow(&mut schema, settings)?;
        let mut subject = op(schema);
        subject.measured = true;
        let sampler = sampler_of(project, None, subject.schema(), settings)?;
        Ok(Self {
            reference: "callable of the client".to_string(),
            source: "callable".to_string(),
            timeout: project.config.daemon.script_timeout,
            ..Self::of_subject(subject, sampler)
        })
    }

    /// Whether gpuemu itself can run it.
    pub fn is_runnable(&self) -> bool {
        self.program.is_some()
    }

    /// Whether its calls are watched for the kernel that they have to run.
    pub fn watches_launches(&self) -> bool {
        matches!(&self.program, Some(OpProgram::Python(program)) if matches!(program.entry, Entry::Callable(_, Some(_))))
    }

    /// Arguments beside the op's parameters.
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }

    /// Files whose change concerns it.
    pub fn files(&self) -> Vec<PathBuf> {
        let own = self.program.iter().flat_map(OpProgram::files);
        own.chain(self.reference_program.iter().flat_map(PythonProgram::files)).collect()
    }

    /// Where what runs it is defined.
    pub fn definition(&self) -> Option<Definition> {
        match self.program.as_ref()? {
            OpProgram::Python(program) => program.definition(&self.name),
            OpProgram::Kernel(program) => program.definition(),
        }
    }

    /// Where its reference is defined, if it has one of its own.
    pub fn reference_definition(&self) -> Option<Definition> {
        self.reference_program.as_ref()?.definition(&self.name)
    }

    /// Starts what runs it. What a callable does not take is not tried, and said so.
    pub fn start(mut self) -> Result<StartedOp, Failure> {
        let Some(program) = &self.program else {
            let message = format!("op '{}' has no module, script or kernel that gpuemu could run", self.name);
            let hint = "give it one in gpuemu.toml, or run it in Python with gpuemu.check or fuzz_op_client_side";
            return Err(Failure::invalid(message).hint(hint));
        };
        if let Some(reference) = &self.reference_program {
            // A reference that is not there is found now, not after the first case.
            reference.start(&self.name)?;
        }
        let runner = match program.clone() {
            OpProgram::Kernel(program) => {
                // A launch table names the tensors that take part; optional ones cannot be left out of it.
                self.fit_kernel(&program);
                OpRunner::Kernel(Box::new(program.start(&self.name, self.timeout)?))
            }
            OpProgram::Python(program) => {
                self.check_dtypes(&program)?;
                let (started, accepted) = program.start(&self.name)?;
                let out = accepted.as_ref().and_then(|accepted| self.out_keyword(accepted));
                let withheld = self.fit(accepted.map(|accepted| accepted.without(out)).as_ref());
                let (words, extra, out) = (program.describe(), self.extra.clone(), out.map(ToString::to_string));
                let runner = PythonRunner::new(words, started, &program.entry, extra, withheld, out, self.timeout);
                OpRunner::Python(Box::new(runner))
            }
        };
        check_calibrated_outputs(&self.name, &self.subject, &self.sampler)?;
        Ok(StartedOp { op: self, runner })
    }

    /// Optional tensors that a launch table names always take part, the others never do.
    fn fit_kernel(&mut self, program: &KernelProgram) {
        let schema = self.subject.schema();
        for spec in schema.inputs.iter().chain(&schema.outputs).filter(|spec| spec.optional) {
            if program.names(&spec.name) {
                self.sampler.always.push(spec.name.clone());
            } else {
                self.warnings.push(format!("'{}' is not exercised: the launch table does not name it", spec.name));
                self.sampler.absent.push(spec.name.clone());
            }
        }
    }

    /// The keyword by which a callable is given memory for its outputs.
    pub fn out_keyword(&self, accepted: &Accepted) -> Option<&'static str> {
        let schema = self.subject.schema();
        let inputs = schema.inputs.iter().map(|spec| spec.name.as_str());
        let parameters = schema.parameters.iter().map(|spec| spec.name.as_str());
        accepted.out_keyword(inputs.chain(parameters).chain(self.extra.keys().map(String::as_str)))
    }

    /// Narrows the cases to what a callable takes, with a warning for each thing that is not tried. Returns the
    /// parameters that must not be passed.
    pub fn fit(&mut self, accepted: Option<&Accepted>) -> Vec<String> {
        // Python code is not told which optional outputs are wanted: none are.
        let optional_outputs = self.subject.schema().outputs.iter().filter(|spec| spec.optional);
        self.sampler.absent.extend(optional_outputs.map(|spec| spec.name.clone()));
        if let Some(accepted) = accepted {
            let optional = self.subject.schema().inputs.iter().filter(|spec| spec.optional);
            let needed = optional.filter(|spec| accepted.required.contains(&spec.name));
            self.sampler.always.extend(needed.map(|spec| spec.name.clone()));
        }
        let mut withheld = Vec::new();
        if let Some(accepted) = accepted.filter(|accepted| !accepted.any) {
            let takes = |name: &String| accepted.names.contains(name);
            let inputs: Vec<String> = self.subject.schema().inputs.iter().map(|spec| spec.name.clone()).collect();
            let by_keyword = inputs.iter().any(takes);
            for spec in self.subject.schema().parameters.iter().filter(|spec| !takes(&spec.name)) {
                self.sampler
                    .parameters
                    .set(&spec.name, self.sampler.parameters.get(&spec.name).unwrap_or(spec.default));
                withheld.push(spec.name.clone());
            }
            let optional = self.subject.schema().inputs.iter().filter(|spec| spec.optional && !takes(&spec.name));
            let mut absent: Vec<String> = optional.filter(|_| by_keyword).map(|spec| spec.name.clone()).collect();
            if !by_keyword && !accepted.any_positional && accepted.required != ["inputs"] {
                // By place: an optional input that has one is always there, since nothing can stand in for it.
                let parameters = self.subject.schema().parameters.iter().filter(|spec| takes(&spec.name)).count();
                let room = accepted.names.len() - parameters.min(accepted.names.len());
                let demanded = self.subject.schema().inputs.iter().filter(|spec| !spec.optional).count();
                for (place, spec) in self.subject.schema().inputs.iter().enumerate().filter(|(_, spec)| spec.optional) {
                    if place < room {
                        self.sampler.always.push(spec.name.clone());
                    } else if demanded <= room {
                        absent.push(spec.name.clone());
                    }
                }
            }
            for name in withheld.iter().chain(&absent) {
                self.warnings.push(format!("'{name}' is not exercised: the function does not take it"));
            }
            self.sampler.absent.extend(absent);
            for name in self.extra.keys().filter(|name| !takes(name)) {
                self.warnings.push(format!("'{name}' of kwargs is not passed: the function does not take it"));
            }
            self.extra.retain(|name, _| takes(name));
        }
        withheld
    }

    /// NumPy knows bfloat16 and fp8 only through ml_dtypes.
    fn check_dtypes(&self, program: &PythonProgram) -> Result<(), Failure> {
        let schema = self.subject.schema();
        let fixed = schema.inputs.iter().chain(&schema.outputs).filter_map(|spec| spec.dtype);
        let mut used = self.sampler.dtypes.iter().copied().chain(fixed);
        let Some(dtype) = used.find(|dtype| matches!(dtype, DType::BF16 | DType::F8E4M3FN | DType::F8E5M2)) else {
            return Ok(());
        };
        let python = &program.interpreter.python;
        match program.interpreter.imports("ml_dtypes") {
            Ok(true) => Ok(()),
            Ok(false) => {
                let message =
                    format!("{dtype} needs the Python package ml_dtypes, which {} does not have", python.display());
                let hint = format!("pip install ml_dtypes, or take {dtype} out of dtypes");
                Err(Failure::new(ErrorCode::ConfigError, message).hint(hint))
            }
            Err(error) => {
                Err(Failure::new(ErrorCode::ConfigError, error.to_string()).hint("set GPUEMU_PYTHON to a Python 3"))
            }
        }
    }
}

fn source_words(program: Option<&OpProgram>) -> String {
    program.map_or_else(|| "submitted".to_string(), OpProgram::describe)
}

fn python(project: &Project, entry: Entry, framework: Framework, pool: &Pool) -> PythonProgram {
    PythonProgram { entry, interpreter: project.interpreter.clone(), framework, pool: pool.clone() }
}

fn program_of(project: &Project, op: &gpuemu_config::Op, pool: &Pool) -> Result<Option<OpProgram>, Failure> {
    let framework = project.config.project.framework;
    Ok(match &op.source {
        OpSource::Module(target) => {
            let entry = Entry::Callable(target.clone(), op.launches.clone());
            Some(OpProgram::Python(python(project, entry, framework, pool)))
        }
        OpSource::Script(path) => {
            let path = existing(project, op, path, "script")?;
            let warm = op.execution_mode == ExecutionMode::DaemonOrchestrated;
            let entry = if warm { Entry::Warm(path) } else { Entry::Cold(path) };
            Some(OpProgram::Python(python(project, entry, framework, pool)))
        }
        OpSource::Kernel(kernel) => Some(OpProgram::Kernel(KernelProgram::open(project, &op.name, kernel)?)),
        OpSource::Submitted => None,
    })
}

fn existing(project: &Project, op: &gpuemu_config::Op, path: &str, what: &str) -> Result<PathBuf, Failure> {
    let full = project.config.root.join(path);
    if full.is_file() {
        return Ok(full);
    }
    let message = format!("the {what} of op '{}' is not there: {}", op.name, full.display());
    let hint = format!("paths are relative to {}", project.config.root.display());
    Err(project.config.error_at(&op.span, message, Some(hint)).into())
}

fn reference_of(project: &Project, op: &gpuemu_config::Op, text: &str, pool: &Pool) -> Result<PythonProgram, Failure> {
    let framework = project.config.project.framework;
    let is_callable = op.execution_mode == ExecutionMode::ClientSide || (text.contains(':') && !text.ends_with(".py"));
    let entry = if is_callable {
        Entry::Callable(text.to_string(), None)
    } else {
        let path = existing(project, op, text, "reference script")?;
        match op.execution_mode {
            ExecutionMode::DaemonOrchestrated => Entry::Warm(path),
            _ => Entry::Cold(path),
        }
    };
    Ok(python(project, entry, framework, pool))
}
