//! A compiled kernel with its launch table: which cases it covers, and the programs of its variants.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use gpuemu_config::expression::Names;
use gpuemu_config::launch::LaunchTable;
use gpuemu_engine::case::CaseDescriptor;
use gpuemu_engine::schema::Schema;
use gpuemu_machine::Program;
use gpuemu_ptx::Source;

use crate::kernels::facts::CaseFacts;

/// Where PTX comes from: the file of a variant, or the kernel's own source if none is named.
pub trait PtxSource: Send + Sync {
    fn ptx(&self, variant: Option<&str>) -> Result<Source, String>;

    /// Bytes of dynamic shared memory that the compiler of the kernel's own source asks for; known once it is compiled.
    fn shared_bytes(&self) -> u32 {
        0
    }
}

type Programs = HashMap<(Option<String>, Option<String>), Result<Arc<Program>, String>>;

/// A compiled kernel that can be launched for cases of an op.
pub struct CompiledKernel {
    name: String,
    launch: LaunchTable,
    source: Box<dyn PtxSource>,
    programs: Mutex<Programs>,
}

impl fmt::Debug for CompiledKernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CompiledKernel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CompiledKernel {
    /// A kernel; nothing is read or decoded before it is needed.
    pub fn new(name: impl Into<String>, launch: LaunchTable, source: Box<dyn PtxSource>) -> Self {
        Self { name: name.into(), launch, source, programs: Mutex::new(HashMap::new()) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn launch_table(&self) -> &LaunchTable {
        &self.launch
    }

    /// Whether it is told the strides of a tensor, and so can read what is not contiguous.
    pub fn reads_strides(&self) -> bool {
        let forms =
            std::iter::once(&self.launch.common).chain(self.launch.variants.iter().map(|variant| &variant.form));
        forms.flat_map(|form| &form.args).any(|argument| {
            let Names { tensors, .. } = argument.names();
            argument.text().contains("stride(") && !tensors.is_empty()
        })
    }

    /// Whether a case can be launched: whether a variant covers it. What an expression cannot say of a case is an error
    /// of the launch table, and comes up when the case is run.
    pub fn covers(&self, schema: &Schema, descriptor: &CaseDescriptor) -> bool {
        match CaseFacts::of_descriptor(schema, descriptor) {
            Some(facts) => self.launch.covering(&facts).map_or(true, |covering| covering.is_some()),
            None => true,
        }
    }

    /// The PTX file that a case is launched from; nothing where no variant covers it, or where there are none.
    pub fn variant(&self, schema: &Schema, descriptor: &CaseDescriptor) -> Option<&str> {
        let facts = CaseFacts::of_descriptor(schema, descriptor)?;
        self.launch.covering(&facts).ok()??.ptx
    }

    /// Bytes of dynamic shared memory of a launch whose table does not say them; known once there is a program.
    pub fn shared_bytes(&self, variant: Option<&str>) -> u32 {
        if variant.is_some() { 0 } else { self.source.shared_bytes() }
    }

    /// The program of a variant, decoded once.
    pub fn program(&self, variant: Option<&str>, entry: Option<&str>) -> Result<Arc<Program>, String> {
        let key = (variant.map(ToString::to_string), entry.map(ToString::to_string));
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let program = programs.entry(key).or_insert_with(|| {
            let source = self.source.ptx(variant)?;
            Program::decode(&source, entry).map(Arc::new).map_err(|error| error.to_string())
        });
        program.clone()
    }
}
