//! Puts the compiled kernels into the program: they are run where there is nothing but the program.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("ptx");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).ok_or("a file name that is no text")?;
        writeln!(table, "    ({name:?}, include_str!({:?})),", file.display().to_string())?;
    }
    table.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("ptx_files.rs"), table)?;
    Ok(())
}
