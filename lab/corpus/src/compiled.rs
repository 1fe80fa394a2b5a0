//! The published Triton kernels, compiled: their PTX is part of the program, and runs in the PTX machine.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use gpuemu_ptx::Source;
use gpuemu_runners::kernels::{CompiledKernel, PtxSource};

/// The PTX files, by name, sorted.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/ptx_files.rs"));

static TABLES: &str = include_str!("../ptx/kernels.toml");

struct Included;

impl PtxSource for Included {
    fn ptx(&self, variant: Option<&str>) -> Result<Source, String> {
        source(variant.ok_or("a kernel of the corpus is compiled already")?)
    }
}

/// The PTX of a file's name, as launch tables have it.
pub fn source(name: &str) -> Result<Source, String> {
    let place = FILES.binary_search_by_key(&name, |(name, _)| name).map_err(|_| format!("there is no '{name}'"))?;
    Ok(Source::new(format!("lab/corpus/ptx/{name}"), FILES[place].1))
}

static KERNELS: LazyLock<Result<BTreeMap<String, Arc<CompiledKernel>>, String>> = LazyLock::new(|| {
    let tables = gpuemu_config::kernels_of("lab/corpus/ptx/kernels.toml", TABLES).map_err(|error| error.to_string())?;
    let kernel = |kernel: gpuemu_config::Kernel| {
        let launch = kernel.launch.ok_or_else(|| format!("kernel '{}' has no launch table", kernel.name))?;
        let compiled = CompiledKernel::new(kernel.name.clone(), launch, Box::new(Included));
        Ok((kernel.name, Arc::new(compiled)))
    };
    tables.into_iter().map(kernel).collect()
});

/// The compiled kernel of a name; none if it is not one that was compiled.
pub fn find(name: &str) -> Result<Option<Arc<CompiledKernel>>, String> {
    KERNELS.as_ref().map(|kernels| kernels.get(name).cloned()).map_err(Clone::clone)
}
