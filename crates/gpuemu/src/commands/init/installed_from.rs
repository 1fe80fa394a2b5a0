//! Where a program was installed from. What is installed from an address and not from an index has a record of that
//! beside the package's description, `direct_url.json`: see PEP 610.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The address that a program was installed from, with what pins it; `None` if that was an index, a folder of the
/// machine, or not pip at all. The program's path has no links in it.
pub fn address_of(program: &Path) -> Option<String> {
    let description = description_of(program)?;
    let record = fs::read_to_string(description.join("direct_url.json")).ok()?;
    address_in(&serde_json::from_str(&record).ok()?)
}

/// The folder that describes the package which a program belongs to, in one of the places where pip puts packages for
/// programs of this folder.
fn description_of(program: &Path) -> Option<PathBuf> {
    let prefix = program.parent()?.parent()?;
    let description = concat!("gpuemu-", env!("CARGO_PKG_VERSION"), ".dist-info");
    let pythons = ["lib", "lib64"].into_iter().filter_map(|library| fs::read_dir(prefix.join(library)).ok()).flatten();
    let pythons = pythons.filter_map(|entry| Some(entry.ok()?.path()));
    let packages = pythons.flat_map(|python| ["site-packages", "dist-packages"].map(|packages| python.join(packages)));
    packages.map(|packages| packages.join(description)).find(|description| lists(description, program))
}

/// Whether a program is among the files of a package. Another gpuemu may have been put beside its description since.
fn lists(description: &Path, program: &Path) -> bool {
    let Ok(record) = fs::read_to_string(description.join("RECORD")) else { return false };
    let Some(packages) = description.parent() else { return false };
    let files = record.lines().filter_map(|line| line.split(',').next());
    let programs = files.filter(|file| Path::new(file).file_name() == program.file_name());
    programs.map(|file| packages.join(file).canonicalize()).any(|file| file.is_ok_and(|file| file == program))
}

/// The address in a record, as pip is given it.
fn address_in(record: &Value) -> Option<String> {
    let url = record["url"].as_str()?;
    let subdirectory = record["subdirectory"].as_str().map(|folder| format!("subdirectory={folder}"));
    if let Some(source) = record.get("vcs_info") {
        let commit = source["commit_id"].as_str().filter(|_| source["vcs"] == "git")?;
        let fragment = subdirectory.map(|folder| format!("#{folder}")).unwrap_or_default();
        return Some(format!("git+{url}@{commit}{fragment}"));
    }
    let archive = record.get("archive_info")?;
    // The second place is that of records before pip 23.1.
    let digest = archive["hashes"]["sha256"].as_str();
    let digest = digest.or_else(|| archive["hash"].as_str()?.strip_prefix("sha256="));
    let parts = [digest.map(|digest| format!("sha256={digest}")), subdirectory];
    let fragment: Vec<String> = parts.into_iter().flatten().collect();
    Some(if fragment.is_empty() { url.to_string() } else { format!("{url}#{}", fragment.join("&")) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A place that pip has installed into; the program, and the description.
    fn installation(folder: &Path, packages: &str) -> (PathBuf, PathBuf) {
        let folder = folder.canonicalize().unwrap();
        let description = folder.join(packages).join(concat!("gpuemu-", env!("CARGO_PKG_VERSION"), ".dist-info"));
        fs::create_dir_all(&description).unwrap();
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::write(folder.join("bin/gpuemu"), "").unwrap();
        fs::write(folder.join("bin/gpuemu-daemon"), "").unwrap();
        let record = "../../../bin/gpuemu,sha256=4,5\ngpuemu/__init__.py,sha256=4,5\n";
        fs::write(description.join("RECORD"), record).unwrap();
        fs::write(description.join("direct_url.json"), r#"{ "url": "https://h/g.whl", "archive_info": {} }"#).unwrap();
        (folder.join("bin/gpuemu"), description)
    }

    #[test]
    fn the_record_of_the_package_that_a_program_belongs_to_is_found() {
        for packages in
            ["lib/python3.11/site-packages", "lib64/python3.12/site-packages", "lib/python3.13/dist-packages"]
        {
            let folder = tempfile::TempDir::new().unwrap();
            let (program, description) = installation(folder.path(), packages);
            // Other Pythons may be there too.
            fs::create_dir_all(folder.path().join("lib/python3.9/site-packages")).unwrap();
            assert_eq!(address_of(&program).as_deref(), Some("https://h/g.whl"), "{packages}");
            // The package does not say that this is its program.
            assert_eq!(address_of(&program.with_file_name("gpuemu-daemon")), None);
            fs::write(description.join("direct_url.json"), "not JSON").unwrap();
            assert_eq!(address_of(&program), None);
            // An index leaves no record.
            fs::remove_file(description.join("direct_url.json")).unwrap();
            assert_eq!(address_of(&program), None);
        }
        assert_eq!(address_of(Path::new("/gpuemu")), None);
        assert_eq!(address_of(Path::new("gpuemu")), None);
    }

    #[test]
    fn a_program_of_another_version_is_not_the_one_that_is_described() {
        let folder = tempfile::TempDir::new().unwrap();
        let (program, description) = installation(folder.path(), "lib/python3.11/site-packages");
        fs::rename(&description, description.with_file_name("gpuemu-0.0.0.dist-info")).unwrap();
        assert_eq!(address_of(&program), None);
    }

    #[test]
    fn a_record_becomes_the_address_that_pip_is_given() {
        let git = |vcs: &str| json!({ "url": "https://h/o/r.git", "vcs_info": { "vcs": vcs, "requested_revision": "main", "commit_id": "c0de" } });
        assert_eq!(address_in(&git("git")).as_deref(), Some("git+https://h/o/r.git@c0de"));
        assert_eq!(address_in(&git("hg")), None);
        let mut inside = git("git");
        inside["subdirectory"] = "a/b".into();
        assert_eq!(address_in(&inside).as_deref(), Some("git+https://h/o/r.git@c0de#subdirectory=a/b"));
        for archive in [json!({ "hashes": { "sha256": "5a" } }), json!({ "hash": "sha256=5a" })] {
            let record = json!({ "url": "https://h/g.tar.gz", "archive_info": archive, "subdirectory": "a" });
            assert_eq!(address_in(&record).as_deref(), Some("https://h/g.tar.gz#sha256=5a&subdirectory=a"));
        }
        let weak = json!({ "url": "https://h/g.whl", "archive_info": { "hash": "md5=1" } });
        assert_eq!(address_in(&weak).as_deref(), Some("https://h/g.whl"));
        assert_eq!(address_in(&json!({ "url": "file:///g", "dir_info": { "editable": true } })), None);
        assert_eq!(address_in(&json!([])), None);
    }
}
