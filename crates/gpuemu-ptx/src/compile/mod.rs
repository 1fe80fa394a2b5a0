//! Sources of kernels made into PTX, with the compilers that are installed.

mod cuda;
mod file_names;
mod python;
mod triton;

use std::path::{Path, PathBuf};
use std::time::Duration;

use gpuemu_config::{CompileTable, SourceKind, architecture_number};
use thiserror::Error;

use crate::tools::Toolchain;
use crate::tools::process::Limits;

/// The architecture that code is made for where nothing else is said.
pub const DEFAULT_TARGET: &str = "sm_80";

const LIMITS: Limits = Limits { time: Duration::from_secs(120), output_bytes: 16 << 20 };

#[derive(Debug, Clone, Copy)]
pub struct CompileRequest<'a> {
    /// The project's folder. Paths are relative to it.
    pub root: &'a Path,
    /// The source as written: `x.ptx`, `x.cu` or `file.py:kernel`.
    pub source: &'a str,
    pub table: &'a CompileTable,
    /// The project's Python: a name to be found in `PATH`, or a path, relative to the root.
    pub python: &'a Path,
    /// Most bytes of address space that Python may take.
    pub memory_bytes: Option<u64>,
}

/// What came of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledSource {
    /// The file that it was read from.
    pub path: PathBuf,
    /// The PTX; not looked at yet where it was not compiled.
    pub ptx: Vec<u8>,
    /// "as written", or the compiler and its version.
    pub producer: String,
    /// Shared memory that is asked for at launch, where the compiler says it.
    pub dynamic_shared_bytes: Option<u64>,
    /// Threads of a block, where the compiler says them.
    pub block_threads: Option<u64>,
}

/// Why no PTX came of a source.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompileError {
    /// It is not written as a source.
    #[error("'{0}' is not a source of a kernel; write it as x.ptx, x.cu or file.py:kernel")]
    UnknownSource(String),
    /// There is no such file.
    #[error("the source {} is not there; paths are relative to {}", path.display(), root.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
        root: PathBuf,
    },
    /// The file cannot be read.
    #[error("the source {} cannot be read: {message}", path.display())]
    Unreadable { path: PathBuf, message: String },
    /// The architecture cannot be compiled for.
    #[error("'{0}' is not an architecture that can be compiled for; write it as in sm_80")]
    UnknownTarget(String),
    /// Nothing is installed that compiles it.
    #[error("no compiler for {source_text} was found: {message}")]
    NoCompiler {
        source_text: String,
        /// What was looked for, and how to install it.
        message: String,
    },
    /// The compiler could not be run to its end.
    #[error("{compiler} could not compile {source_text}: it {message}")]
    Broken { compiler: String, source_text: String, message: String },
    /// The compiler refuses it.
    #[error("{compiler} cannot compile {source_text}:\n{message}")]
    Refused {
        compiler: String,
        source_text: String,
        /// What the compiler says.
        message: String,
    },
}

/// Makes PTX of a source.
pub fn compile(request: &CompileRequest<'_>, toolchain: &Toolchain) -> Result<CompiledSource, CompileError> {
    let source = request.source;
    match SourceKind::of(source) {
        Some(SourceKind::Ptx) => as_written(request.file(source)?),
        Some(SourceKind::Cuda) => cuda::compile(request, source, toolchain),
        Some(SourceKind::Triton) => {
            let (file, kernel) = source.rsplit_once(':').unwrap_or_default();
            triton::compile(request, file, kernel, toolchain)
        }
        None => Err(CompileError::UnknownSource(source.to_string())),
    }
}

impl CompileRequest<'_> {
    /// The project's folder, absolute: programs are started in it.
    fn root(&self) -> PathBuf {
        std::path::absolute(self.root).unwrap_or_else(|_| self.root.to_path_buf())
    }

    fn file(&self, name: &str) -> Result<PathBuf, CompileError> {
        let path = self.root().join(name);
        if path.is_file() { Ok(path) } else { Err(CompileError::Missing { path, root: self.root() }) }
    }

    fn target(&self) -> &str {
        self.table.target.as_deref().unwrap_or(DEFAULT_TARGET)
    }

    /// The number of the architecture: 90 of `sm_90a`.
    fn target_number(&self) -> Result<u32, CompileError> {
        let target = self.target();
        architecture_number(target).ok_or_else(|| CompileError::UnknownTarget(target.to_string()))
    }

    fn broken(&self, compiler: &str, message: impl ToString) -> CompileError {
        let (compiler, source_text) = (compiler.to_string(), self.source.to_string());
        CompileError::Broken { compiler, source_text, message: message.to_string() }
    }

    fn refused(&self, compiler: &str, message: &str) -> CompileError {
        let (compiler, source_text) = (compiler.to_string(), self.source.to_string());
        CompileError::Refused { compiler, source_text, message: message.trim().to_string() }
    }
}

fn as_written(path: PathBuf) -> Result<CompiledSource, CompileError> {
    match std::fs::read(&path) {
        Ok(ptx) => {
            let producer = "as written".to_string();
            Ok(CompiledSource { path, ptx, producer, dynamic_shared_bytes: None, block_threads: None })
        }
        Err(error) => Err(CompileError::Unreadable { path, message: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(root: &'a Path, source: &'a str, table: &'a CompileTable) -> CompileRequest<'a> {
        CompileRequest { root, source, table, python: Path::new("a-python-that-is-not-there"), memory_bytes: None }
    }

    #[test]
    fn what_is_no_source_is_refused() {
        let (folder, table) = (tempfile::tempdir().unwrap(), CompileTable::default());
        for wrong in ["", "x.py", "x.py:", ":k", "x.txt", "x.cuh", "é", "xé.p", "pkg.mod:kernel"] {
            let compiled = compile(&request(folder.path(), wrong, &table), &Toolchain::default());
            assert_eq!(compiled, Err(CompileError::UnknownSource(wrong.to_string())), "{wrong}");
        }
    }

    #[test]
    fn targets_have_a_number() {
        let number = |target: &str| {
            let table = CompileTable { target: Some(target.to_string()), ..CompileTable::default() };
            request(Path::new("/"), "x.cu", &table).target_number().ok()
        };
        assert_eq!([number("sm_80"), number("sm_90a"), number("sm_100f")], [Some(80), Some(90), Some(100)]);
        assert_eq!([number("80"), number("sm_"), number("sm_+8"), number("compute_80")], [None; 4]);
    }

    #[test]
    fn ptx_is_taken_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.ptx"), b"\xff").unwrap();
        let table = CompileTable::default();
        let compiled = compile(&request(folder.path(), "x.ptx", &table), &Toolchain::default()).unwrap();
        assert_eq!((compiled.ptx.as_slice(), compiled.producer.as_str()), (b"\xff".as_slice(), "as written"));
        let error = compile(&request(folder.path(), "y.ptx", &table), &Toolchain::default()).unwrap_err();
        assert!(error.to_string().contains("y.ptx is not there; paths are relative to"), "{error}");
    }

    #[test]
    fn without_a_compiler_both_ways_to_get_one_are_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.cu"), "").unwrap();
        std::fs::write(folder.path().join("x.py"), "").unwrap();
        let table = CompileTable::default();
        let message =
            |source| compile(&request(folder.path(), source, &table), &Toolchain::default()).unwrap_err().to_string();
        let cuda = message("x.cu");
        assert!(
            cuda.contains("pip install nvidia-cuda-nvcc") && cuda.contains("pip install nvidia-cuda-nvrtc"),
            "{cuda}"
        );
        let triton = message("x.py:k");
        assert!(triton.contains("a-python-that-is-not-there cannot be started"), "{triton}");
    }
}
