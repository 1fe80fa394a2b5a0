//! Where NVIDIA's tools are looked for.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpuemu_model::artifact::ToolSearch;

use super::process::{self, Limits, private_folder};

/// The Python, with its folder.
pub fn python_program(search: &ToolSearch) -> Option<PathBuf> {
    let python = search.python.as_ref()?;
    match python.components().count() {
        1 => search.path.iter().map(|folder| folder.join(python)).find(|program| is_program(program)),
        // A relative one means another place to every process.
        _ => python.is_absolute().then(|| python.clone()),
    }
}

/// Every folder that may have tools, in the order in which they are preferred.
pub(super) fn folders(search: &ToolSearch) -> Vec<PathBuf> {
    let mut folders = search.path.clone();
    folders.extend(search.cuda_home.iter().map(|home| home.join("bin")));
    for packages in python_program(search).iter().flat_map(|python| package_folders(python)) {
        folders.push(packages.join("triton/backends/nvidia/bin"));
        // `nvidia/cu13/bin` since CUDA 13, `nvidia/cuda_nvcc/bin` before.
        folders.extend(folders_in(&packages.join("nvidia")).into_iter().map(|package| package.join("bin")));
    }
    let mut seen = BTreeSet::new();
    folders.retain(|folder| folder.is_dir() && seen.insert(folder.clone()));
    folders
}

/// Where was looked, in words, for a message that says that nothing was found.
pub(super) fn places(search: &ToolSearch) -> String {
    let cuda = match &search.cuda_home {
        Some(home) => format!("in CUDA_HOME ({})", home.display()),
        None => "in CUDA_HOME (which is not set)".to_string(),
    };
    let packages = match &search.python {
        Some(python) => format!("in the Python packages of {}", python.display()),
        None => "in Python packages (no Python is named)".to_string(),
    };
    format!("on PATH, {cuda}, or {packages}")
}

/// Whether this is a file that may be started.
pub(super) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The folders that a Python imports packages from.
fn package_folders(python: &Path) -> Vec<PathBuf> {
    match asked(python) {
        Some(folders) => folders,
        None => beside(python),
    }
}

/// Asks the Python. Its answer goes to a file, since anything may print while it starts.
fn asked(python: &Path) -> Option<Vec<PathBuf>> {
    const PROGRAM: &str = "import json, sys\nwith open(sys.argv[1], 'w') as file:\n    json.dump(sys.path, file)\n";
    let folder = private_folder().ok()?;
    let answer = folder.path().join("answer.json");
    let mut command = Command::new(python);
    // The working folder comes first among those that are imported from: it has to be an empty one.
    command.args(["-B", "-c", PROGRAM]).arg(&answer).current_dir(folder.path());
    let limits = Limits { time: Duration::from_secs(20), output_bytes: 1 << 20 };
    let finished = process::run(&mut command, folder.path(), limits).ok()?;
    let text = fs::read_to_string(answer).ok().filter(|_| finished.success)?;
    let folders: Vec<PathBuf> = serde_json::from_str(&text).ok()?;
    Some(folders.into_iter().filter(|path| path.is_absolute() && !path.starts_with(folder.path())).collect())
}

/// The folders beside a Python that cannot be asked, as virtual environments have them.
fn beside(python: &Path) -> Vec<PathBuf> {
    let Some(home) = python.parent().and_then(Path::parent) else {
        return Vec::new();
    };
    let versions = folders_in(&home.join("lib")).into_iter();
    versions.map(|version| version.join("site-packages")).filter(|folder| folder.is_dir()).collect()
}

/// The folders in a folder, by name; none where it cannot be read.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path, script: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn folders_come_in_order_and_once() {
        let place = private_folder().unwrap();
        let root = place.path();
        let packages = root.join("venv/lib/python3.11/site-packages");
        for folder in ["triton/backends/nvidia/bin", "nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "nvidia/cublas/lib"] {
            fs::create_dir_all(packages.join(folder)).unwrap();
        }
        fs::create_dir_all(root.join("cuda/bin")).unwrap();
        fs::create_dir_all(root.join("tools")).unwrap();
        // A Python that cannot be started: its neighbours are looked at.
        program(&root.join("venv/bin/python"), "#!/nowhere/sh\n");
        let search = ToolSearch {
            path: vec![root.join("tools"), root.join("absent"), root.join("tools")],
            cuda_home: Some(root.join("cuda")),
            python: Some(root.join("venv/bin/python")),
        };
        let expected = [
            root.join("tools"),
            root.join("cuda/bin"),
            packages.join("triton/backends/nvidia/bin"),
            packages.join("nvidia/cu13/bin"),
            packages.join("nvidia/cuda_nvcc/bin"),
        ];
        assert_eq!(folders(&search), expected);
    }

    #[test]
    fn a_python_is_asked_for_its_folders_whatever_it_prints() {
        let place = private_folder().unwrap();
        let python = place.path().join("python");
        // Called as: -B -c PROGRAM FILE
        program(&python, "#!/bin/sh\necho noise\nprintf '[\"/packages\", \"relative\", \"\"]' > \"$4\"\n");
        assert_eq!(package_folders(&python), [PathBuf::from("/packages")]);
        program(&python, "#!/bin/sh\necho '[\"/packages\"]'\nexit 1\n");
        assert_eq!(package_folders(&python), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_python_without_a_folder_is_looked_for() {
        let place = private_folder().unwrap();
        program(&place.path().join("python9"), "#!/bin/sh\n");
        let search =
            ToolSearch { path: vec![place.path().into()], python: Some("python9".into()), ..ToolSearch::default() };
        assert_eq!(python_program(&search), Some(place.path().join("python9")));
        let other = |python: &str| python_program(&ToolSearch { python: Some(python.into()), ..search.clone() });
        assert_eq!([other("python8"), other("bin/python9")], [None, None]);
        assert_eq!(other("/bin/python9"), Some("/bin/python9".into()));
    }

    #[test]
    fn a_file_that_may_not_be_started_is_no_program() {
        let place = private_folder().unwrap();
        let file = place.path().join("ptxas");
        fs::write(&file, "").unwrap();
        assert!(!is_program(&file) && !is_program(place.path()) && !is_program(&place.path().join("absent")));
        program(&file, "");
        assert!(is_program(&file));
    }
}
