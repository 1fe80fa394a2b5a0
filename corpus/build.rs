//! Puts the kernels into the program: they are run where there is nothing but the program.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let is_of = |file: &Path, kinds: &[&str]| {
        file.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| kinds.contains(&extension))
    };
    embed(&root.join("ptx"), "ptx_files.rs", |file| is_of(file, &["ptx"]))?;
    // Sources of compiled kernels are not run, and stay outside.
    embed(&root.join("grown"), "grown_files.rs", |file| {
        is_of(file, &["toml", "ptx"]) || file.strip_prefix("python").is_ok_and(|file| is_of(file, &["py"]))
    })
}

/// Writes a table of the files of a folder that are wanted, by their path in it, sorted.
fn embed(folder: &Path, table: &str, wanted: impl Fn(&Path) -> bool) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    list(folder, &mut files)?;
    let mut text = String::from("&[\n");
    let mut names: Vec<PathBuf> = Vec::new();
    for file in &files {
        names.push(file.strip_prefix(folder)?.to_path_buf());
    }
    names.retain(|name| wanted(name));
    names.sort();
    for name in names {
        let path = folder.join(&name).display().to_string();
        writeln!(text, "    ({:?}, include_str!({path:?})),", name.to_str().ok_or("a file name that is no text")?)?;
    }
    text.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join(table), text)?;
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
