//! What jobs install: gpuemu from a wheel, and the rest from an index in which the name gpuemu is another project's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use snapbox::cmd::{Command, cargo_bin};
use tempfile::TempDir;

use super::fixture;

/// The version of gpuemu.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the gpuemu of the index prints. No job may ever run it.
pub const ANOTHER_PROJECT: &str = "this gpuemu is another project";

/// Writes a wheel `gpuemu-VERSION` whose program is a script.
const WRITE_WHEEL: &str = r##"
import pathlib, sys, zipfile

folder, version, script, *requirements = sys.argv[1:]
described = f"gpuemu-{version}.dist-info"
requires = "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements)
files = {
    "gpuemu/__init__.py": "",
    f"gpuemu-{version}.data/scripts/gpuemu": f"#!/bin/sh\n{script}\n",
    f"{described}/METADATA": f"Metadata-Version: 2.1\nName: gpuemu\nVersion: {version}\n{requires}",
    f"{described}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
files[f"{described}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{described}/RECORD"])
with zipfile.ZipFile(pathlib.Path(folder, f"gpuemu-{version}-py3-none-any.whl"), "w") as wheel:
    for name, text in files.items():
        entry = zipfile.ZipInfo(name)
        entry.external_attr = 0o100755 << 16
        wheel.writestr(entry, text)
"##;

/// Makes a Python environment that sees the packages of the Python that runs this, pip among them.
const MAKE_PYTHON: &str = r#"
import pathlib, sys, sysconfig, venv

venv.create(sys.argv[1], symlinks=True)
packages = pathlib.Path(sysconfig.get_path("purelib", "posix_prefix", {"base": sys.argv[1]}))
packages.joinpath("linked.pth").write_text("\n".join({sysconfig.get_path(of) for of in ("purelib", "platlib")}))
"#;

/// The packages, in a folder that is removed with the last test that uses them.
pub struct Packages {
    folder: TempDir,
    /// The Python whose packages every other one sees.
    seen: PathBuf,
    /// The wheel of gpuemu: the one that is built from the source archive, or a stand-in whose program is the gpuemu of
    /// this build.
    pub wheel: PathBuf,
}

impl Packages {
    /// The packages; `None` where there is no Python, and the test is to be skipped.
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Packages>> = Mutex::new(Weak::new());
        let Some(python) = fixture::python() else {
            eprintln!("skipped: GPUEMU_TEST_PYTHON is not set; `cargo xtask test` sets it");
            return None;
        };
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        Some(shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(Self::make(python));
            *shared = Arc::downgrade(&made);
            made
        }))
    }

    fn make(python: PathBuf) -> Self {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let write = |folder: &Path, version: &str, script: &str, requirements: &[&str]| {
            let command = Command::new(&python).args(["-c", WRITE_WHEEL]).arg(folder);
            command.args([version, script]).args(requirements).assert().success();
            folder.join(format!("gpuemu-{version}-py3-none-any.whl"))
        };
        let [own, others] = [path("own"), path("others")];
        let wheel = std::env::var_os("GPUEMU_TEST_WHEEL").map(PathBuf::from).unwrap_or_else(|| {
            let script = format!("exec '{}' \"$@\"", cargo_bin!("gpuemu").display());
            write(&own, VERSION, &script, &["numpy", "ml_dtypes"])
        });
        let needed = std::env::var_os("GPUEMU_TEST_WHEELS").map(PathBuf::from);
        // A newer version, which pip would choose, and the same one, which it would take for ours.
        let script = format!("echo '{ANOTHER_PROJECT}'\nexit 1");
        let mut wheels = [VERSION, "9.9.9"].map(|version| write(&others, version, &script, &[])).to_vec();
        wheels.extend(needed.iter().flat_map(|folder| wheels_in(folder)));
        write_index(&path("index"), &wheels);
        // Without wheels of what gpuemu needs, that is among what the Python of the tests has. With them there is nothing
        // beside pip.
        let seen = if needed.is_some() {
            let bare = folder.path().join("bare");
            Command::new(&python).args(["-m", "venv"]).arg(&bare).assert().success();
            bare.join("bin/python3")
        } else {
            python
        };
        Self { folder, seen, wheel }
    }

    /// What makes pip take packages from the index alone. It touches nothing outside of an environment.
    pub fn variables(&self) -> Vec<(String, String)> {
        let index = format!("file://{}", self.folder.path().join("index").display());
        [
            ("PIP_INDEX_URL", index.as_str()),
            ("PIP_CONFIG_FILE", "/dev/null"),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
            ("PIP_REQUIRE_VIRTUALENV", "1"),
            // Most of NumPy is never imported here.
            ("PIP_NO_COMPILE", "1"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .to_vec()
    }

    /// A new Python in this folder, without gpuemu; the folder of its programs.
    pub fn python(&self, folder: &Path) -> PathBuf {
        Command::new(&self.seen).args(["-c", MAKE_PYTHON]).arg(folder).assert().success();
        folder.join("bin")
    }

    /// Installs gpuemu into a Python, as its users do.
    pub fn install(&self, programs: &Path) {
        self.pip_install(programs, self.wheel.to_str().unwrap());
    }

    /// Installs the other project of this name into a Python, in the version of ours.
    pub fn install_another(&self, programs: &Path) {
        self.pip_install(programs, &format!("gpuemu=={VERSION}"));
        let output = Command::new(programs.join("gpuemu")).assert().code(1);
        assert_eq!(fixture::text_of(&output.get_output().stdout).trim_end(), ANOTHER_PROJECT);
    }

    fn pip_install(&self, programs: &Path, package: &str) {
        let command = Command::new(programs.join("python3")).args(["-m", "pip", "install", "--quiet"]);
        let command = command.args(["--force-reinstall", "--no-deps", package]);
        command.env_clear().env("HOME", self.folder.path()).envs(self.variables()).assert().success();
    }
}

fn wheels_in(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|ending| ending == "whl")).collect()
}

/// Writes an index as PEP 503 has it: a page for each project, with links to its wheels.
fn write_index(folder: &Path, wheels: &[PathBuf]) {
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    for wheel in wheels {
        let file = wheel.file_name().unwrap().to_str().unwrap();
        let project = file.split('-').next().unwrap().replace('_', "-").to_lowercase();
        let page = pages.entry(project).or_insert_with(|| "<!DOCTYPE html>\n".to_string());
        *page += &format!("<a href=\"file://{}\">{file}</a>\n", wheel.display());
    }
    for (project, page) in pages {
        std::fs::create_dir(folder.join(&project)).unwrap();
        std::fs::write(folder.join(project).join("index.html"), page).unwrap();
    }
}
