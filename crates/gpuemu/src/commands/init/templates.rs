//! The files of a new project.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// A framework whose arrays the project's functions are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Framework {
    /// PyTorch tensors.
    Pytorch,
    /// JAX arrays.
    Jax,
    /// TensorFlow tensors.
    Tensorflow,
    /// NumPy arrays.
    Numpy,
}

impl Framework {
    /// The name in the configuration.
    fn name(self) -> &'static str {
        match self {
            Framework::Pytorch => "pytorch",
            Framework::Jax => "jax",
            Framework::Tensorflow => "tensorflow",
            Framework::Numpy => "numpy",
        }
    }

    /// The Python package that it is.
    pub fn package(self) -> &'static str {
        match self {
            Framework::Pytorch => "torch",
            Framework::Jax => "jax",
            Framework::Tensorflow => "tensorflow",
            Framework::Numpy => "numpy",
        }
    }

    /// The setting of the dtypes: all that work with nothing but the framework installed.
    fn dtypes(self) -> &'static str {
        match self {
            // Both depend on ml_dtypes themselves.
            Framework::Jax | Framework::Tensorflow => r#"dtypes = ["float32", "float16", "bfloat16"]"#,
            Framework::Pytorch | Framework::Numpy => {
                "# \"bfloat16\" and fp8 need the Python package ml_dtypes.\ndtypes = [\"float32\", \"float16\"]"
            }
        }
    }

    /// The head of the table of CI runs.
    fn runs(self) -> &'static str {
        match self {
            Framework::Jax => {
                "[ci]\n# Cases of each op. JAX compiles for every new shape: the default, 200, would take minutes.\nfuzz_iterations = 50"
            }
            _ => "#[ci]\n# Cases of each op.\n#fuzz_iterations = 200",
        }
    }

    /// The example of a built-in op.
    fn softmax(self) -> &'static str {
        match self {
            Framework::Pytorch => include_str!("templates/pytorch/softmax.py"),
            Framework::Jax => include_str!("templates/jax/softmax.py"),
            Framework::Tensorflow => include_str!("templates/tensorflow/softmax.py"),
            Framework::Numpy => include_str!("templates/numpy/softmax.py"),
        }
    }

    /// The example of an op with a reference of its own.
    fn scale_bias_relu(self) -> &'static str {
        match self {
            Framework::Pytorch => include_str!("templates/pytorch/scale_bias_relu.py"),
            Framework::Jax => include_str!("templates/jax/scale_bias_relu.py"),
            Framework::Tensorflow => include_str!("templates/tensorflow/scale_bias_relu.py"),
            Framework::Numpy => include_str!("templates/numpy/scale_bias_relu.py"),
        }
    }
}

impl From<gpuemu_config::Framework> for Framework {
    fn from(framework: gpuemu_config::Framework) -> Self {
        match framework {
            gpuemu_config::Framework::Pytorch => Framework::Pytorch,
            gpuemu_config::Framework::Jax => Framework::Jax,
            gpuemu_config::Framework::Tensorflow => Framework::Tensorflow,
            gpuemu_config::Framework::Numpy => Framework::Numpy,
        }
    }
}

/// A file of a new project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Its path from the current folder.
    pub path: PathBuf,
    pub text: String,
}

/// The files of a new project in a folder.
pub fn files(directory: &Path, name: &str, framework: Framework, with_examples: bool) -> Vec<NewFile> {
    let file = |path: &str, text: &str| NewFile { path: directory.join(path), text: text.to_string() };
    let mut files = vec![file("gpuemu.toml", &configuration(name, framework, with_examples))];
    if with_examples {
        files.extend([
            // An installed package of the same name would win over a folder without this file.
            file("kernels/__init__.py", include_str!("templates/kernels_init.py")),
            file("kernels/softmax.py", framework.softmax()),
            file("kernels/scale_bias_relu.py", framework.scale_bias_relu()),
            file("references/scale_bias_relu.py", include_str!("templates/scale_bias_relu_reference.py")),
        ]);
    }
    files
}

fn configuration(name: &str, framework: Framework, with_examples: bool) -> String {
    let ops = if with_examples {
        include_str!("templates/ops_with_examples.toml")
    } else {
        include_str!("templates/ops_without_examples.toml")
    };
    // The name comes last: whatever is in it is not looked at again.
    include_str!("templates/gpuemu.toml")
        .replace("@FRAMEWORK@", framework.name())
        .replace("@DTYPES@", framework.dtypes())
        .replace("@CI@", framework.runs())
        .replace("@OPS@\n", ops)
        .replace("@NAME@", &toml::Value::from(name).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_is_toml_whatever_the_name() {
        for framework in [Framework::Pytorch, Framework::Jax, Framework::Tensorflow, Framework::Numpy] {
            for with_examples in [true, false] {
                for name in ["plain", "a \"quoted\" \\ name\nof two lines", "@OPS@ @NAME@", "''' \u{1}"] {
                    let text = configuration(name, framework, with_examples);
                    let table: toml::Table = text.parse().unwrap();
                    assert_eq!(table["project"]["name"].as_str(), Some(name));
                    assert_eq!(table["project"]["framework"].as_str(), Some(framework.name()));
                    assert_eq!(table.contains_key("ops"), with_examples);
                }
            }
        }
    }
}
