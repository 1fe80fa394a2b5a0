//! What the jobs of a CI system install gpuemu from. Never the name: in the public package index it belongs to another
//! project.

use std::net::IpAddr;
use std::path::Path;

use super::ci::Repository;
use super::installed_from;
use crate::expected_error::ExpectedError;

/// A wheel of the repository, by its path from the root, or an address that pip fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package(String);

const HINT: &str = "give the path of a wheel that lies in the repository, or an address such as \
                    git+https://HOST/REPOSITORY@REVISION or https://HOST/gpuemu-VERSION-....whl";

impl Package {
    /// The package that a user names: a wheel by its path from the current folder, or an address.
    pub fn named(text: &str, repository: &Repository) -> Result<Self, ExpectedError> {
        // As `pip freeze` prints it.
        let text = text.strip_prefix("gpuemu @ ").unwrap_or(text);
        if text.contains("://") {
            return match unusable(text) {
                Some(reason) => {
                    Err(ExpectedError::new(format!("CI cannot install gpuemu from '{text}': {reason}"), HINT))
                }
                None => Ok(Self(text.to_string())),
            };
        }
        let path = Path::new(text);
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !file.ends_with(".whl") {
            let reason = "in the public package index the name gpuemu belongs to another project";
            let message = format!("'{text}' is neither a wheel nor an address, and {reason}");
            return Err(ExpectedError::new(message, HINT));
        }
        if !file.starts_with("gpuemu-") {
            return Err(ExpectedError::new(format!("{text} is a wheel of another package than gpuemu"), HINT));
        }
        if !path.is_file() {
            let hint = "`cargo xtask release` in a checkout of gpuemu builds a wheel";
            return Err(ExpectedError::new(format!("there is no file {text}"), hint));
        }
        let message = || format!("{text} lies outside of the repository {}", repository.root().display());
        let inside = repository.path_of(path)?;
        let inside = inside.ok_or_else(|| {
            ExpectedError::new(
                message(),
                format!("copy it into the repository, such as to wheels/{file}, and name that copy"),
            )
        })?;
        Ok(Self(inside))
    }

    /// The package that this program was installed from, if that is an address which others reach.
    pub fn of_this_program() -> Option<Self> {
        let program = std::env::current_exe().and_then(|program| program.canonicalize()).ok()?;
        let address = installed_from::address_of(&program)?;
        unusable(&address).is_none().then_some(Self(address))
    }

    /// The wheel's path from the root of the repository, or the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why the machines of a CI system cannot install from an address; `None` if they can.
fn unusable(address: &str) -> Option<&'static str> {
    if address.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Some("an address has no spaces");
    }
    if address.contains("${") {
        return Some("pip fills in no variables there");
    }
    let (scheme, rest) = address.split_once("://").unwrap_or_default();
    let is_known = match scheme {
        "git+https" | "git+ssh" | "https" => true,
        // What is fetched without encryption has to be recognised.
        "http" => address.contains("#sha256="),
        _ => false,
    };
    if !is_known {
        return Some("it has to begin with git+https://, git+ssh:// or https://");
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    // A token in place of a user's name is as secret as a password.
    if user.contains(':') || !(user.is_empty() || scheme == "git+ssh") {
        return Some("the password or token in it would be readable in the repository");
    }
    if is_this_machine(host) {
        return Some("no other machine reaches it");
    }
    let file = path.split(['#', '?']).next().unwrap_or_default();
    let is_package = scheme.starts_with("git+") || [".whl", ".tar.gz", ".zip"].iter().any(|end| file.ends_with(end));
    (!is_package).then_some("it is neither a wheel nor a source archive; the address of a repository begins with git+")
}

fn is_this_machine(host: &str) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let name = bracketed.unwrap_or_else(|| host.split(':').next().unwrap_or_default()).to_ascii_lowercase();
    let is_loopback = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    name.is_empty() || name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> (tempfile::TempDir, Repository) {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::create_dir_all(folder.path().join("inside/.git")).unwrap();
        std::fs::create_dir_all(folder.path().join("inside/wheels")).unwrap();
        std::fs::create_dir_all(folder.path().join("inside/kernels")).unwrap();
        let repository = Repository::of(&folder.path().join("inside/kernels")).unwrap();
        (folder, repository)
    }

    fn refused(text: &str) -> String {
        Package::named(text, &repository().1).unwrap_err().message
    }

    #[test]
    fn a_wheel_is_named_from_the_root_of_its_repository() {
        let (folder, repository) = repository();
        let wheel = "gpuemu-0.1.0-cp310-abi3-linux_x86_64.whl";
        for place in ["inside/wheels", "."] {
            std::fs::write(folder.path().join(place).join(wheel), "").unwrap();
        }
        let named = |path: &str| Package::named(folder.path().join(path).join(wheel).to_str().unwrap(), &repository);
        let inside = Package(format!("wheels/{wheel}"));
        assert_eq!(named("inside/wheels"), Ok(inside.clone()));
        assert_eq!(named("inside/kernels/../wheels"), Ok(inside));
        let outside = named(".").unwrap_err();
        assert!(outside.message.contains("lies outside of the repository"), "{outside:?}");
        assert!(outside.hint.unwrap().contains(&format!("wheels/{wheel}")));
        // What lies in the repository is a link; what it leads to does not.
        std::os::unix::fs::symlink(folder.path().join(wheel), folder.path().join("inside/kernels").join(wheel))
            .unwrap();
        assert!(named("inside/kernels").is_err());
        assert!(named("inside").unwrap_err().message.starts_with("there is no file "));
    }

    #[test]
    fn a_name_is_refused_because_it_is_somebody_elses() {
        for name in ["gpuemu", "gpuemu==0.1.0", "gpuemu[torch]", "dist/", "gpuemu-0.1.0.tar.gz", ""] {
            let message = refused(name);
            assert!(message.contains(&format!("'{name}'")) && message.contains("another project"), "{message}");
        }
        assert!(refused("numpy-2.0.0-py3-none-any.whl").contains("another package than gpuemu"));
    }

    #[test]
    fn addresses_that_every_machine_reaches_are_taken_as_they_are() {
        let commit = "a5ce3f0b1c0de0123456789abcdef0123456789a";
        for address in [
            "git+https://example.org/owner/gpuemu".to_string(),
            format!("git+https://example.org/owner/gpuemu.git@{commit}#subdirectory=python"),
            "git+ssh://git@example.org/owner/gpuemu.git@v1".to_string(),
            "https://example.org:8443/gpuemu-0.1.0-cp310-abi3-linux_x86_64.whl".to_string(),
            format!("http://example.org/gpuemu-0.1.0.tar.gz#sha256={commit}"),
        ] {
            assert_eq!(Package::named(&address, &repository().1), Ok(Package(address.clone())));
            assert_eq!(Package::named(&format!("gpuemu @ {address}"), &repository().1), Ok(Package(address)));
        }
    }

    #[test]
    fn addresses_that_others_cannot_or_should_not_use_are_refused() {
        for (address, reason) in [
            ("git+https://user:secret@example.org/gpuemu", "password or token"),
            ("https://secret@example.org/gpuemu.whl", "password or token"),
            ("git+ssh://git:secret@example.org/gpuemu", "password or token"),
            ("git+https://${TOKEN}@example.org/gpuemu", "no variables"),
            ("git+https://localhost/gpuemu", "no other machine"),
            ("git+https://LOCALHOST:3000/gpuemu", "no other machine"),
            ("git+https://127.1.2.3/gpuemu", "no other machine"),
            ("git+https://[::1]:3000/gpuemu", "no other machine"),
            ("https:///gpuemu.whl", "no other machine"),
            ("file:///home/me/gpuemu.whl", "begin with"),
            ("git+file:///home/me/gpuemu", "begin with"),
            ("http://example.org/gpuemu.whl", "begin with"),
            ("://example.org/gpuemu.whl", "begin with"),
            ("https://example.org/owner/gpuemu", "begins with git+"),
            ("https://example.org/a b.whl", "no spaces"),
            ("git+https://example.org/gpuemu\n", "no spaces"),
        ] {
            let message = refused(address);
            assert!(message.contains(reason) && message.contains(address), "{address}: {message}");
        }
    }
}
