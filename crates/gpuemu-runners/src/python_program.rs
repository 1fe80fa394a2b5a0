//! Where Python code of a project is, and how it is started.

use std::path::PathBuf;

use gpuemu_config::Framework;
use gpuemu_tensor::Tensor;

use crate::definition::Definition;
use crate::executor::{Accepted, ColdScript, ExecutorError, Interpreter, NamedTensors, Pool, Program};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A script, one process for each call.
    Cold(PathBuf),
    /// A script in a worker that keeps its imports.
    Warm(PathBuf),
    /// A callable, `pkg.mod` or `pkg.mod:function`, and what its calls have to run, `pkg.mod:name`.
    Callable(String, Option<String>),
}

/// Python code of a project, not yet started.
#[derive(Clone)]
pub struct PythonProgram {
    pub entry: Entry,
    /// The Python it runs in.
    pub interpreter: Interpreter,
    /// The arrays that callables get.
    pub framework: Framework,
    pub pool: Pool,
}

impl PythonProgram {
    /// Starts it. A callable also says what it accepts.
    pub fn start(&self, op: &str) -> Result<(Box<dyn Program>, Option<Accepted>), ExecutorError> {
        match &self.entry {
            Entry::Cold(script) => Ok((Box::new(ColdScript::new(self.interpreter.clone(), script.clone())?), None)),
            Entry::Warm(script) => Ok((Box::new(self.pool.script(&self.interpreter, script)?), None)),
            Entry::Callable(target, launches) => {
                let (launches, interpreter) = (launches.as_deref(), &self.interpreter);
                let callable = self.pool.callable_that_launches(launches, interpreter, target, op, self.framework)?;
                let accepted = callable.accepted().clone();
                Ok((Box::new(callable), Some(accepted)))
            }
        }
    }

    /// Whether it is a function that is given real arrays.
    pub fn is_callable(&self) -> bool {
        matches!(self.entry, Entry::Callable(..))
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        let shown = |path: &PathBuf| path.strip_prefix(&self.interpreter.root).unwrap_or(path).display().to_string();
        match &self.entry {
            Entry::Cold(script) => format!("script {}", shown(script)),
            Entry::Warm(script) => format!("warm script {}", shown(script)),
            Entry::Callable(target, _) => format!("module {target}"),
        }
    }

    /// Where it is defined: the function, of a script its start.
    pub fn definition(&self, op: &str) -> Option<Definition> {
        let files = self.files();
        match &self.entry {
            Entry::Cold(_) | Entry::Warm(_) => Definition::find(&files, &[]),
            Entry::Callable(target, _) => match target.split_once(':') {
                Some((_, function)) => Definition::find(&files, &[function]),
                None => Definition::find(&files, &[op, "run"]),
            },
        }
    }

    /// The files of the project that it is surely made of.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.entry {
            Entry::Cold(script) | Entry::Warm(script) => vec![script.clone()],
            Entry::Callable(target, _) => {
                let module = target.split(':').next().unwrap_or_default().replace('.', "/");
                let base = self.interpreter.root.join(module);
                vec![base.with_extension("py"), base.join("__init__.py")]
                    .into_iter()
                    .filter(|file| file.is_file())
                    .collect()
            }
        }
    }
}

/// The outputs that have names, in order: a single one under any name, several by name or, where a
/// callable returned a tuple, by place. Optional ones that nobody asked for may be there too, up to `most`.
pub fn match_outputs<'a>(names: &[String], most: usize, outputs: &'a NamedTensors) -> Result<Vec<&'a Tensor>, String> {
    let found = || outputs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if names.is_empty() || !(names.len()..=most.max(names.len())).contains(&outputs.len()) {
        let (have, want) = (outputs.len(), names.len());
        return Err(format!("{have} outputs came back ({}), the op has {want} ({})", found(), names.join(", ")));
    }
    if let ([(_, tensor)], [_]) = (outputs.as_slice(), names) {
        return Ok(vec![tensor]);
    }
    let by_place = outputs.iter().enumerate().all(|(place, (name, _))| *name == place.to_string());
    let mut matched = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let wanted =
            |(index, (known, _)): &(usize, &(String, Tensor))| if by_place { *index == place } else { known == name };
        match outputs.iter().enumerate().find(wanted) {
            Some((_, (_, tensor))) => matched.push(tensor),
            None => return Err(format!("output '{name}' is missing; what came back: {}", found())),
        }
    }
    Ok(matched)
}

#[cfg(test)]
mod tests {
    use gpuemu_tensor::DType;

    use super::*;

    fn outputs(names: &[&str]) -> NamedTensors {
        let tensor = |value: usize| Tensor::from_f64(DType::F32, vec![], &[value as f64]).unwrap();
        names.iter().enumerate().map(|(place, name)| (name.to_string(), tensor(place))).collect()
    }

    fn matched(names: &[&str], found: &[&str]) -> Result<Vec<f64>, String> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        match_outputs(&names, 2, &outputs(found))
            .map(|tensors| tensors.iter().flat_map(|tensor| tensor.to_f64()).collect())
    }

    #[test]
    fn outputs_are_matched_by_name_or_place() {
        assert_eq!(matched(&["out"], &["result"]), Ok(vec![0.0]));
        assert_eq!(matched(&["out", "lse"], &["lse", "out"]), Ok(vec![1.0, 0.0]));
        assert_eq!(matched(&["out", "lse"], &["0", "1"]), Ok(vec![0.0, 1.0]));
        assert!(matched(&["out", "lse"], &["out", "l"]).unwrap_err().contains("'lse' is missing"));
        assert!(matched(&["out"], &[]).unwrap_err().contains("0 outputs"));
        assert!(matched(&["out"], &["a", "b", "c"]).unwrap_err().contains("3 outputs"));
        assert_eq!(matched(&["out"], &["0", "1"]), Ok(vec![0.0]));
        assert!(matched(&["out"], &["a", "b"]).unwrap_err().contains("'out' is missing"));
        assert!(matched(&[], &["a"]).is_err());
    }
}
