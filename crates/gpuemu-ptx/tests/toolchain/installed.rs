//! The Python that has the tools, and what the tests do with it.

use std::fs;
use std::path::{Path, PathBuf};

use gpuemu_config::CompileTable;
use gpuemu_ptx::compile::{CompileError, CompileRequest, CompiledSource, compile};
use gpuemu_ptx::tools::{ToolSearch, Toolchain};

/// Where the sources and the PTX of the tests are.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// A Python with tools.
pub struct Installed {
    pub python: PathBuf,
    pub toolchain: Toolchain,
}

impl Installed {
    /// The one that the environment names. Without one the test has to return.
    pub fn find() -> Option<Self> {
        let Some(python) = std::env::var_os("GPUEMU_TEST_KERNELS_PYTHON").map(PathBuf::from) else {
            eprintln!("skipped: GPUEMU_TEST_KERNELS_PYTHON is not set; `cargo xtask test --only kernels` sets it");
            return None;
        };
        let toolchain = Toolchain::find(&ToolSearch::of_process(Some(python.clone())));
        for tool in ["ptxas", "cuobjdump", "nvdisasm", "nvcc"] {
            assert!(toolchain.has(tool), "{}", toolchain.missing(tool));
        }
        Some(Self { python, toolchain })
    }

    /// Compiles a source of the tests.
    pub fn compile(&self, source: &str, table: &CompileTable) -> Result<CompiledSource, CompileError> {
        self.compile_in(&data(), source, table, &self.toolchain)
    }

    /// Compiles a source with other tools.
    pub fn compile_in(
        &self,
        root: &Path,
        source: &str,
        table: &CompileTable,
        toolchain: &Toolchain,
    ) -> Result<CompiledSource, CompileError> {
        let memory_bytes = Some(8 << 30);
        compile(&CompileRequest { root, source, table, python: &self.python, memory_bytes }, toolchain)
    }
}

/// The text of PTX.
pub fn text(compiled: &CompiledSource) -> String {
    String::from_utf8(compiled.ptx.clone()).unwrap()
}

/// The words after a directive, as in `.entry NAME`, in order.
pub fn words_after<'a>(ptx: &'a str, directive: &str) -> Vec<&'a str> {
    let lines = ptx.lines().filter_map(|line| line.split_once(directive).map(|(_, rest)| rest.trim()));
    lines.map(|rest| rest.split(['(', ' ', ',', ';']).next().unwrap()).collect()
}

/// Demands that PTX is what was kept of it, for the tests that have no compiler. `GPUEMU_TEST_WRITE=1` keeps it anew.
pub fn as_kept(name: &str, compiled: &CompiledSource) {
    let file = data().join("ptx/pairs").join(name);
    if std::env::var_os("GPUEMU_TEST_WRITE").is_some_and(|value| value == "1") {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &compiled.ptx).unwrap();
    }
    let kept = fs::read(&file).unwrap();
    assert!(kept == compiled.ptx, "{name} is not what the compiler gives; write it with GPUEMU_TEST_WRITE=1");
}
