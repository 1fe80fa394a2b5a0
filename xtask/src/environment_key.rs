//! Names the folder of a Python environment after everything that decides its content.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// A Python interpreter as far as compiled packages depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    implementation: String,
    version: (u32, u32, u32),
    machine: String,
}

impl Interpreter {
    /// The program that makes Python print what [`FromStr`] reads.
    ///
    /// Written so that an old Python, too, can say which version it is.
    pub const QUERY: &str = "import platform, sys; \
        print('%s %d.%d.%d %s' % ((platform.python_implementation().lower(),) + tuple(sys.version_info[:3]) + (platform.machine(),)))";

    /// Whether this Python is at least the `oldest` that will do; says so if not.
    pub fn check_age(&self, oldest: (u32, u32)) -> Result<(), String> {
        let (major, minor, patch) = self.version;
        if (major, minor) >= oldest {
            return Ok(());
        }
        let (oldest_major, oldest_minor) = oldest;
        Err(format!(
            "Python {oldest_major}.{oldest_minor} or newer is needed, the one found is {major}.{minor}.{patch}"
        ))
    }
}

impl FromStr for Interpreter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unreadable = || format!("cannot read the version of Python from {text:?}");
        let mut words = text.split_whitespace();
        let (Some(implementation), Some(version), Some(machine)) = (words.next(), words.next(), words.next()) else {
            return Err(unreadable());
        };
        let numbers: Vec<u32> =
            version.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| unreadable())?;
        let [major, minor, patch] = numbers[..] else {
            return Err(unreadable());
        };
        Ok(Self { implementation: implementation.into(), version: (major, minor, patch), machine: machine.into() })
    }
}

impl fmt::Display for Interpreter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.version;
        write!(formatter, "{}-{major}.{minor}.{patch}-{}", self.implementation, self.machine)
    }
}

/// The name of the folder for what pip installs on this interpreter, given these requirements and options.
///
/// Comments, blank lines and line endings do not count: they install nothing.
pub fn environment_key(requirements: &str, options: &[&str], interpreter: &Interpreter) -> String {
    let mut hasher = Sha256::new();
    let installed = requirements.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in installed.chain(options.iter().copied()) {
        hasher.update(line);
        hasher.update("\n");
    }
    let mut key = format!("python-{interpreter}-");
    // 64 bits tell apart every requirements file that this project will ever have.
    for byte in &hasher.finalize()[..8] {
        // Writing to a string cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpreter(text: &str) -> Interpreter {
        text.parse().unwrap()
    }

    #[test]
    fn the_key_depends_on_what_is_installed_and_on_the_interpreter() {
        let python = interpreter("cpython 3.11.7 x86_64\n");
        let key_of = |requirements| environment_key(requirements, &[], &python);
        let key = key_of("numpy==1\nruff==2\n");
        assert!(key.starts_with("python-cpython-3.11.7-x86_64-"), "{key}");
        assert_eq!(key, key_of("# why\r\nnumpy==1\r\n\r\n  ruff==2"));
        assert_ne!(key, key_of("numpy==1\nruff==3\n"));
        assert_ne!(key, key_of("numpy==1ruff==2\n"));
        assert_ne!(key, environment_key("numpy==1\nruff==2\n", &["--no-deps"], &python));
        for other in ["cpython 3.12.0 x86_64", "cpython 3.11.7 aarch64"] {
            assert_ne!(key, environment_key("numpy==1\nruff==2\n", &[], &interpreter(other)));
        }
    }

    #[test]
    fn an_old_python_is_refused_with_its_version() {
        assert_eq!(interpreter("cpython 3.10.0 x86_64").check_age((3, 10)), Ok(()));
        assert_eq!(interpreter("cpython 4.0.0 x86_64").check_age((3, 10)), Ok(()));
        let message = interpreter("cpython 3.9.18 x86_64").check_age((3, 10)).unwrap_err();
        assert_eq!(message, "Python 3.10 or newer is needed, the one found is 3.9.18");
    }

    #[test]
    fn an_answer_that_is_no_version_is_refused() {
        for text in ["", "cpython", "cpython 3.11 x86_64", "cpython 3.x.1 x86_64"] {
            assert!(text.parse::<Interpreter>().unwrap_err().contains("cannot read the version"), "{text}");
        }
    }
}
