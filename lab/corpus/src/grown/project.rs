//! The grown corpus as a project: its files, and its configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};

use super::{FILES, Language, Pair, Side, file};

/// The configuration of a project, and the files that it names.
#[derive(Debug, Clone)]
pub struct Project {
    configuration: String,
    files: Vec<(String, &'static str)>,
}

/// The op that a twin is in the project. Pairs that share a right twin share its op.
pub fn op_of(pair: &Pair, side: Side) -> String {
    match side {
        Side::Wrong => pair.name.clone(),
        Side::Right => {
            let name = pair.right.replace(':', "_");
            let op = pair.op.get("op").and_then(Value::as_str).unwrap_or_default();
            let settings = pair.op.iter().filter(|(key, _)| key.as_str() != "op");
            let settings: String = settings.map(|(key, value)| format!("_{key}_{value}")).collect();
            let words = |text: &str| text.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
            format!("right_{}_{op}{}", words(&name), words(&settings))
        }
    }
}

impl Project {
    /// Of the pairs that are given.
    pub fn of(pairs: &[Pair]) -> Result<Self, String> {
        let mut ops: BTreeMap<String, Table> = BTreeMap::new();
        let mut kernels = BTreeSet::new();
        for pair in pairs {
            for (side, twin) in [(Side::Right, &pair.right), (Side::Wrong, &pair.wrong)] {
                let name = op_of(pair, side);
                let mut op = pair.op.clone();
                let program = if pair.language == Language::Python { "module" } else { "kernel" };
                op.insert("name".to_string(), Value::String(name.clone()));
                op.insert(program.to_string(), Value::String(twin.clone()));
                ops.insert(name, op);
                kernels.insert((pair.language, twin.as_str()));
            }
        }
        let mut tables = Vec::new();
        let mut wanted = BTreeSet::new();
        for language in [Language::Triton, Language::Cuda] {
            for table in launch_tables(language)? {
                let name = table.get("name").and_then(Value::as_str).unwrap_or_default();
                if kernels.contains(&(language, name)) {
                    wanted.extend(ptx_files(&table));
                    tables.push(Value::Table(table));
                }
            }
        }
        let known = |name: &str| tables.iter().any(|table| table.get("name").and_then(Value::as_str) == Some(name));
        if let Some((_, name)) = kernels.iter().find(|(language, name)| *language != Language::Python && !known(name)) {
            return Err(format!("no launch table has the kernel '{name}'"));
        }
        let mut all = Table::new();
        let mut project = Table::new();
        project.insert("name".to_string(), Value::String("grown corpus".to_string()));
        project.insert("framework".to_string(), Value::String("numpy".to_string()));
        all.insert("project".to_string(), Value::Table(project));
        all.insert("kernels".to_string(), Value::Array(tables));
        all.insert("ops".to_string(), Value::Array(ops.into_values().map(Value::Table).collect()));
        let configuration = toml::to_string(&all).map_err(|error| error.to_string())?;
        let python = |path: &str| path.strip_prefix("python/").filter(|path| path.ends_with(".py")).map(str::to_string);
        let files = FILES.iter().filter_map(|(path, text)| {
            let place = wanted.contains(*path).then(|| (*path).to_string()).or_else(|| python(path))?;
            Some((place, *text))
        });
        Ok(Self { configuration, files: files.collect() })
    }

    /// Writes it into a folder.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        for (path, text) in &self.files {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, text)?;
        }
        std::fs::write(folder.join("gpuemu.toml"), &self.configuration)
    }
}

/// The PTX files of a twin, as the project has them; none if it is not compiled.
pub fn ptx_of(pair: &Pair, side: Side) -> Result<Vec<String>, String> {
    if pair.language == Language::Python {
        return Ok(Vec::new());
    }
    let twin = if side == Side::Right { &pair.right } else { &pair.wrong };
    let tables = launch_tables(pair.language)?;
    let table = tables.iter().find(|table| table.get("name").and_then(Value::as_str) == Some(twin));
    table.map(ptx_files).ok_or_else(|| format!("no launch table has the kernel '{twin}'"))
}

/// The launch tables of a language, with files as the project has them.
fn launch_tables(language: Language) -> Result<Vec<Table>, String> {
    let path = format!("{}/kernels.toml", language.folder());
    let text = file(&path).ok_or_else(|| format!("lab/corpus/grown/{path} is missing"))?;
    let mut all: Table = toml::from_str(text).map_err(|error| format!("lab/corpus/grown/{path}: {error}"))?;
    let Some(Value::Array(tables)) = all.remove("kernels") else {
        return Err(format!("lab/corpus/grown/{path} has no kernels"));
    };
    let mut found = Vec::new();
    for table in tables {
        let Value::Table(mut table) = table else {
            return Err(format!("lab/corpus/grown/{path}: a kernel is no table"));
        };
        for variant in table.get_mut("variants").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(Value::String(ptx)) = variant.as_table_mut().and_then(|variant| variant.get_mut("ptx")) {
                *ptx = format!("{}/{ptx}", language.folder());
            }
        }
        // The project has compiled kernels alone: what is measured and checked of one is the first of them.
        if let Some(ptx) = ptx_files(&table).into_iter().next() {
            table.insert("source".to_string(), Value::String(ptx));
        }
        found.push(table);
    }
    Ok(found)
}

/// The PTX files of a launch table.
fn ptx_files(table: &Table) -> Vec<String> {
    let variants = table.get("variants").and_then(Value::as_array).into_iter().flatten();
    variants.filter_map(|variant| Some(variant.get("ptx")?.as_str()?.to_string())).collect()
}
