//! The tools that were found, and how they are started.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpuemu_model::artifact::ToolUse;

use super::ToolSearch;
use super::process::{self, Limits, private_folder};
use super::search::{folders, is_program, places};

/// The names that the assembler has. Triton has one more for newer machines.
const ASSEMBLERS: [&str; 2] = ["ptxas", "ptxas-blackwell"];

/// A program that was found and says its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub path: PathBuf,
    /// Its version, as in `12.9.86`.
    pub version: String,
    numbers: Vec<u64>,
}

/// NVIDIA's tools on this machine. What was found is kept as long as this value, and no longer.
#[derive(Debug, Clone, Default)]
pub struct Toolchain {
    search: ToolSearch,
    pub(super) ptxas: Vec<Tool>,
    pub(super) cuobjdump: Option<Tool>,
    pub(super) nvdisasm: Option<Tool>,
    nvcc: Option<Tool>,
    /// Programs that were found and cannot be used: the name, and why.
    faults: Vec<(String, String)>,
}

impl Toolchain {
    /// Looks for the tools.
    pub fn find(search: &ToolSearch) -> Self {
        let folders = folders(search);
        let mut toolchain = Self { search: search.clone(), ..Self::default() };
        toolchain.ptxas = toolchain.newest_first(&ASSEMBLERS, &folders);
        // The newest disassembler knows all the machines that an older assembler knows.
        toolchain.cuobjdump = toolchain.newest_first(&["cuobjdump"], &folders).into_iter().next();
        toolchain.nvdisasm = toolchain.newest_first(&["nvdisasm"], &folders).into_iter().next();
        // The compiler is the one that the project is built with: the first one.
        toolchain.nvcc = toolchain.usable("nvcc", &folders).into_iter().next();
        toolchain
    }

    /// The same without one of them, as if it were not installed.
    pub fn without(mut self, name: &str) -> Self {
        match name {
            "ptxas" => self.ptxas.clear(),
            "cuobjdump" => self.cuobjdump = None,
            "nvdisasm" => self.nvdisasm = None,
            "nvcc" => self.nvcc = None,
            _ => {}
        }
        self
    }

    pub fn search(&self) -> &ToolSearch {
        &self.search
    }

    pub fn nvcc(&self) -> Option<&Tool> {
        self.nvcc.as_ref()
    }

    /// Whether a tool was found.
    pub fn has(&self, name: &str) -> bool {
        match name {
            "ptxas" => !self.ptxas.is_empty(),
            "cuobjdump" => self.cuobjdump.is_some(),
            "nvdisasm" => self.nvdisasm.is_some(),
            "nvcc" => self.nvcc.is_some(),
            _ => false,
        }
    }

    /// Why a tool is not there.
    pub fn missing(&self, name: &str) -> String {
        let faults = self.faults.iter().filter(|(fault, _)| fault == name).map(|(_, why)| why.as_str());
        match faults.collect::<Vec<_>>().join("; ") {
            faults if faults.is_empty() => format!("{name} was not found {}", places(&self.search)),
            faults => faults,
        }
    }

    /// A command with the environment that was searched, not with that of this process.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some(path) = env::join_paths(&self.search.path).ok().filter(|path| !path.is_empty()) {
            command.env("PATH", path);
        }
        command
    }

    fn newest_first(&mut self, names: &[&str], folders: &[PathBuf]) -> Vec<Tool> {
        let mut tools: Vec<Tool> = names.iter().flat_map(|name| self.usable(name, folders)).collect();
        tools.sort_by(|one, other| other.numbers.cmp(&one.numbers));
        tools
    }

    /// The programs of this name that can be started, in the order of the folders.
    fn usable(&mut self, name: &str, folders: &[PathBuf]) -> Vec<Tool> {
        let mut seen = BTreeSet::new();
        let mut tools = Vec::new();
        for path in folders.iter().map(|folder| folder.join(name)).filter(|path| is_program(path)) {
            // A toolkit is often there by two names.
            if !seen.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())) {
                continue;
            }
            match self.version_of(&path) {
                Ok((version, numbers)) => tools.push(Tool { path, version, numbers }),
                Err(why) => self.faults.push((name.to_string(), format!("{} cannot be used: {why}", path.display()))),
            }
        }
        tools
    }

    fn version_of(&self, program: &Path) -> Result<(String, Vec<u64>), String> {
        let folder = private_folder().map_err(|error| format!("no temporary folder can be made: {error}"))?;
        let limits = Limits { time: Duration::from_secs(20), output_bytes: 1 << 20 };
        let mut command = self.command(program);
        command.arg("--version").current_dir(folder.path());
        let finished = process::run(&mut command, folder.path(), limits).map_err(|error| error.to_string())?;
        if !finished.success {
            return Err(format!("asked for its version it {}", finished.ending));
        }
        read_version(&finished.stdout).ok_or_else(|| "it does not say its version".to_string())
    }
}

impl Tool {
    /// How it is named in a report.
    pub(super) fn used(&self) -> ToolUse {
        ToolUse { name: self.name(), version: self.version.clone() }
    }

    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The version in "Cuda compilation tools, release 12.9, V12.9.86".
fn read_version(text: &str) -> Option<(String, Vec<u64>)> {
    let release = text.lines().find_map(|line| line.split_once("release ").map(|(_, rest)| rest))?;
    let version = release.split(['V', ',']).map(str::trim).rfind(|part| !part.is_empty())?;
    let numbers = version.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
    Some((version.to_string(), numbers))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(path: &Path, version: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\necho 'Cuda compilation tools, release {version}'\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn versions_are_read() {
        let ptxas = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.9, V12.9.86\n";
        assert_eq!(read_version(ptxas), Some(("12.9.86".to_string(), vec![12, 9, 86])));
        assert_eq!(read_version("release 13.0"), Some(("13.0".to_string(), vec![13, 0])));
        for none in ["", "release", "release ", "release soon, Vx", "version 3"] {
            assert_eq!(read_version(none), None, "{none}");
        }
    }

    #[test]
    fn the_newest_assembler_and_the_first_compiler_are_taken() {
        let place = private_folder().unwrap();
        let [one, two] = ["one", "two"].map(|name| place.path().join(name));
        program(&one.join("ptxas"), "9.2, V9.2.100");
        program(&two.join("ptxas"), "12.9, V12.9.86");
        program(&two.join("ptxas-blackwell"), "13.4, V13.4.59");
        program(&one.join("nvcc"), "9.2, V9.2.100");
        program(&two.join("nvcc"), "12.9, V12.9.86");
        // The same program by another name is not tried twice.
        let linked = place.path().join("linked");
        std::os::unix::fs::symlink(&two, &linked).unwrap();
        // PATH has none of the commands that the scripts could need: `echo` is part of the shell.
        let search = ToolSearch { path: vec![one, two.clone(), linked], ..ToolSearch::default() };
        let toolchain = Toolchain::find(&search);
        let versions: Vec<&str> = toolchain.ptxas.iter().map(|tool| tool.version.as_str()).collect();
        assert_eq!(versions, ["13.4.59", "12.9.86", "9.2.100"]);
        assert_eq!(toolchain.nvcc().unwrap().version, "9.2.100");
        assert_eq!(toolchain.ptxas[0].used().name, "ptxas-blackwell");
        assert!(toolchain.cuobjdump.is_none() && toolchain.nvdisasm.is_none());
    }

    #[test]
    fn what_is_missing_says_where_was_looked_and_what_is_broken() {
        let place = private_folder().unwrap();
        let broken = place.path().join("ptxas");
        program(&broken, "soon");
        let search = ToolSearch {
            path: vec![place.path().into()],
            cuda_home: None,
            python: Some(place.path().join("bin/python")),
        };
        let toolchain = Toolchain::find(&search);
        assert!(["ptxas", "cuobjdump", "nvdisasm", "nvcc"].iter().all(|name| !toolchain.has(name)));
        let why = toolchain.missing("ptxas");
        assert_eq!(why, format!("{} cannot be used: it does not say its version", broken.display()));
        let why = toolchain.missing("cuobjdump");
        let python = place.path().join("bin/python");
        let packages = format!("in the Python packages of {}", python.display());
        let expected = format!("cuobjdump was not found on PATH, in CUDA_HOME (which is not set), or {packages}");
        assert_eq!(why, expected);
    }
}
