//! A compiled kernel of a project, as an op: where its PTX comes from, and what runs it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use gpuemu_config::failure::Failure;
use gpuemu_config::{CompileTable, Kernel, SourceKind};
use gpuemu_engine::{Sampler, case::Coverage};
use gpuemu_machine::LaunchOptions;
use gpuemu_model::tool_search::ToolSearch;
use gpuemu_process::fault;
use gpuemu_ptx::Source;
use gpuemu_ptx::compile::{CompileRequest, compile};
use gpuemu_ptx::tools::Toolchain;
use gpuemu_runners::definition::Definition;
use gpuemu_runners::kernels::{CompiledKernel, KernelRunner, PtxSource};

use crate::project::Project;

/// A compiled kernel that an op is made of.
#[derive(Debug, Clone)]
pub struct KernelProgram {
    kernel: Arc<CompiledKernel>,
    files: Vec<PathBuf>,
    words: String,
    /// The function that a Triton kernel is written as.
    triton_function: Option<String>,
}

/// The files of a project, and its compilers.
struct ProjectFiles {
    root: PathBuf,
    source: String,
    compile: CompileTable,
    python: PathBuf,
    memory_bytes: Option<u64>,
    /// What the compiler asks for, once it has.
    shared_bytes: AtomicU32,
}

impl PtxSource for ProjectFiles {
    fn ptx(&self, variant: Option<&str>) -> Result<Source, String> {
        fault!("kernel.read", "injected".to_string(), Ok(()))?;
        if let Some(variant) = variant {
            return Source::read(&self.root.join(variant)).map_err(|error| error.to_string());
        }
        let toolchain = Toolchain::find(&ToolSearch::of_process(Some(self.python.clone())));
        let request = CompileRequest {
            root: &self.root,
            source: &self.source,
            table: &self.compile,
            python: &self.python,
            memory_bytes: self.memory_bytes,
        };
        let compiled = compile(&request, &toolchain).map_err(|error| error.to_string())?;
        let shared_bytes = u32::try_from(compiled.dynamic_shared_bytes.unwrap_or(0));
        let shared_bytes =
            shared_bytes.map_err(|_| "its compiler asks for 4 GiB of shared memory or more".to_string())?;
        self.shared_bytes.store(shared_bytes, Ordering::Relaxed);
        Source::from_bytes(self.source.clone(), compiled.ptx).map_err(|error| error.to_string())
    }

    fn shared_bytes(&self) -> u32 {
        self.shared_bytes.load(Ordering::Relaxed)
    }
}

impl KernelProgram {
    /// The kernel that an op names.
    pub fn open(project: &Project, op: &str, name: &str) -> Result<Self, Failure> {
        let kernel = project.config.kernels.iter().find(|kernel| kernel.name == name);
        let launch = kernel.and_then(|kernel| kernel.launch.clone());
        // The configuration was checked for both when it was read.
        let (Some(kernel), Some(launch)) = (kernel, launch) else {
            return Err(Failure::invalid(format!("op '{op}' names the kernel '{name}', which cannot be launched")));
        };
        let mut files: Vec<PathBuf> =
            launch.variants.iter().map(|variant| project.config.root.join(&variant.ptx)).collect();
        if files.is_empty() {
            // `file.py:kernel` is in `file.py`.
            let file = match SourceKind::of(&kernel.source) {
                Some(SourceKind::Triton) => kernel.source.rsplit_once(':').map_or("", |(file, _)| file),
                _ => &kernel.source,
            };
            files.push(project.config.root.join(file));
        }
        let source = ProjectFiles {
            root: project.config.root.clone(),
            source: kernel.source.clone(),
            compile: kernel.compile.clone(),
            python: project.interpreter.python.clone(),
            memory_bytes: project.interpreter.memory_bytes,
            shared_bytes: AtomicU32::new(0),
        };
        let words = words(kernel);
        let triton = SourceKind::of(&kernel.source) == Some(SourceKind::Triton);
        let function = kernel.source.rsplit_once(':').filter(|_| triton).map(|(_, function)| function.to_string());
        let kernel = Arc::new(CompiledKernel::new(name, launch, Box::new(source)));
        Ok(Self { kernel, files, words, triton_function: function })
    }

    pub fn describe(&self) -> String {
        self.words.clone()
    }

    /// Files whose change concerns it.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// Where it is defined: its entry, as far as a name is known.
    pub fn definition(&self) -> Option<Definition> {
        let entry = self.kernel.launch_table().common.entry.as_deref();
        let names: Vec<&str> = self.triton_function.as_deref().into_iter().chain(entry).collect();
        Definition::find(&self.files, &names)
    }

    /// Narrows cases to those that can be launched.
    pub fn narrow(&self, sampler: &mut Sampler) {
        let kernel = Arc::clone(&self.kernel);
        sampler.covered = Coverage::by(move |schema, descriptor| kernel.covers(schema, descriptor));
        if !self.kernel.reads_strides() {
            // It is not told strides: a layout in the report would be one that nobody saw.
            sampler.layouts = vec![gpuemu_tensor::Layout::Contiguous];
        }
    }

    /// Whether its launch table gives a tensor to the kernel.
    pub fn names(&self, tensor: &str) -> bool {
        let table = self.kernel.launch_table();
        let forms = std::iter::once(&table.common).chain(table.variants.iter().map(|variant| &variant.form));
        forms.flat_map(|form| &form.args).any(|argument| argument.name() == Some(tensor))
    }

    /// What runs it, each launch within a time. Code that does not decode is found now, not after the first case.
    pub fn start(&self, op: &str, timeout: Duration) -> Result<KernelRunner, Failure> {
        let table = self.kernel.launch_table();
        let mut programs: Vec<(Option<&str>, Option<&str>)> =
            table.variants.iter().map(|variant| (Some(variant.ptx.as_str()), variant.form.entry.as_deref())).collect();
        if programs.is_empty() {
            programs.push((None, table.common.entry.as_deref()));
        }
        for (variant, entry) in programs {
            let program = self.kernel.program(variant, entry);
            fault!("kernel.decode", "injected".to_string(), program)
                .map_err(|error| Failure::invalid(format!("the kernel of op '{op}' cannot be run: {error}")))?;
        }
        Ok(KernelRunner::new(
            Arc::clone(&self.kernel),
            LaunchOptions { most_time: Some(timeout), ..LaunchOptions::default() },
        ))
    }
}

fn words(kernel: &Kernel) -> String {
    format!("kernel {} in the PTX machine", kernel.name)
}
