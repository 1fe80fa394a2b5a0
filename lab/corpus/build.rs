//! Puts the kernels into the program: they are run where there is nothing but the program.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let is_of = |file: &Path, kinds: &[&str]| {
        file.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| kinds.contains(&extension))
    };
    embed("ptx", "ptx_files.rs", |file| is_of(file, &["ptx"]))?;
    // Sources of compiled kernels are not run, and stay outside.
    embed("grown", "grown_files.rs", |file| {
        is_of(file, &["toml", "ptx"]) || file.strip_prefix("python").is_ok_and(|file| is_of(file, &["py"]))
    })
}

/// Writes a table of the files of a folder of this crate that are wanted, by their path in it, sorted. The table names
/// copies beside it: where the crate lies is not in it, and a build of the same files in another place need not make
/// anything anew.
fn embed(folder: &str, table: &str, wanted: impl Fn(&Path) -> bool) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={folder}");
    let output = PathBuf::from(env::var("OUT_DIR")?);
    let mut files = Vec::new();
    list(Path::new(folder), &mut files)?;
    let mut text = String::from("&[\n");
    let mut names: Vec<PathBuf> = Vec::new();
    for file in &files {
        names.push(file.strip_prefix(folder)?.to_path_buf());
    }
    names.retain(|name| wanted(name));
    names.sort();
    for name in names {
        let path = Path::new(folder).join(&name);
        let copy = output.join(&path);
        fs::create_dir_all(copy.parent().unwrap_or(&output))?;
        fs::write(copy, fs::read(&path)?)?;
        let (name, path) = (name.to_str(), path.to_str());
        let (name, path) = name.zip(path).ok_or("a file name that is no text")?;
        writeln!(text, "    ({name:?}, include_str!({path:?})),")?;
    }
    text.push(']');
    fs::write(output.join(table), text)?;
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
