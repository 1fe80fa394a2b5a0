//! Detached Ed25519 signatures over the exact bytes of a file, and the keys they are made with.
//!
//! Keys are PEM (PKCS #8 and SubjectPublicKeyInfo) and a signature is its 64 bytes: what other tools read.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use gpuemu_run::sources::sha256;

use crate::expected_error::ExpectedError;

/// The user's own keys, in gpuemu's folder.
pub struct KeyFiles {
    /// The key that signs; only its owner may read it.
    pub private: PathBuf,
    /// The key that verifies.
    pub public: PathBuf,
}

impl KeyFiles {
    /// Where the keys of a home are.
    pub fn of(home: &Path) -> Self {
        let folder = home.join("keys");
        Self { private: folder.join("signing.pem"), public: folder.join("signing.pub.pem") }
    }

    /// The key that signs; made where there is none. The second is whether it was made.
    pub fn load_or_create(&self) -> Result<(SigningKey, bool), ExpectedError> {
        if self.private.try_exists().map_err(|error| unusable(&self.private, &error.to_string()))? {
            return Ok((read_private(&self.private)?, false));
        }
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| {
            ExpectedError::plain(format!("no key can be made: the system gives no random bytes: {error}"))
        })?;
        let key = SigningKey::from_bytes(&seed);
        let text = key.to_pkcs8_pem(LineEnding::LF).map_err(|error| unusable(&self.private, &error.to_string()))?;
        if let Some(folder) = self.private.parent() {
            make_private_folder(folder).map_err(|error| unusable(folder, &error.to_string()))?;
        }
        match write_private(&self.private, text.as_bytes()) {
            Ok(()) => {}
            // Somebody else was faster: that key is the key.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok((read_private(&self.private)?, false)),
            Err(error) => return Err(unusable(&self.private, &error.to_string())),
        }
        std::fs::write(&self.public, public_pem(&key.verifying_key())?)
            .map_err(|error| unusable(&self.public, &error.to_string()))?;
        Ok((key, true))
    }
}

fn unusable(path: &Path, problem: &str) -> ExpectedError {
    ExpectedError::plain(format!("the key {} cannot be used: {problem}", path.display()))
}

/// A public key as others read it.
pub fn public_pem(key: &VerifyingKey) -> Result<String, ExpectedError> {
    key.to_public_key_pem(LineEnding::LF)
        .map_err(|error| ExpectedError::plain(format!("the public key cannot be written: {error}")))
}

/// Reads a key that signs. One that others may read is refused.
pub fn read_private(path: &Path) -> Result<SigningKey, ExpectedError> {
    refuse_shared(path)?;
    let text = std::fs::read_to_string(path).map_err(|error| unusable(path, &error.to_string()))?;
    SigningKey::from_pkcs8_pem(&text).map_err(|error| {
        ExpectedError::new(
            format!("{} is no private Ed25519 key: {error}", path.display()),
            "it has to be PKCS #8 in PEM, as `openssl genpkey -algorithm ed25519` writes it",
        )
    })
}

/// Reads a key that verifies.
pub fn read_public(path: &Path) -> Result<VerifyingKey, ExpectedError> {
    let text = std::fs::read_to_string(path).map_err(|error| unusable(path, &error.to_string()))?;
    public_key(&text).map_err(|error| {
        ExpectedError::new(
            format!("{} is no public Ed25519 key: {error}", path.display()),
            "it has to be PEM, as `openssl pkey -pubout` and `gpuemu sign --public-key` write it",
        )
    })
}

/// A key that verifies, from its PEM.
pub fn public_key(pem: &str) -> Result<VerifyingKey, String> {
    VerifyingKey::from_public_key_pem(pem).map_err(|error| error.to_string())
}

/// What a key is told from others by: SHA-256 of its 32 bytes.
pub fn fingerprint(key: &VerifyingKey) -> String {
    sha256(key.as_bytes())
}

pub fn signature_file(report: &Path) -> PathBuf {
    let mut name = report.as_os_str().to_os_string();
    name.push(".sig");
    PathBuf::from(name)
}

/// The signature of bytes.
pub fn sign(key: &SigningKey, bytes: &[u8]) -> [u8; 64] {
    key.sign(bytes).to_bytes()
}

/// Whether a signature is that of bytes by a key. Forms of a signature that several keys or messages could share are
/// refused.
pub fn is_valid(key: &VerifyingKey, bytes: &[u8], signature: &[u8]) -> bool {
    Signature::from_slice(signature).is_ok_and(|signature| key.verify_strict(bytes, &signature).is_ok())
}

#[cfg(unix)]
fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(unix)]
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(unix)]
fn refuse_shared(path: &Path) -> Result<(), ExpectedError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map_err(|error| unusable(path, &error.to_string()))?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let message =
        format!("others may read the key {} (mode {:o}): what it signs proves nothing", path.display(), mode & 0o777);
    Err(ExpectedError::new(message, format!("make a new key, or `chmod 600 {}` if nobody has read it", path.display())))
}

#[cfg(not(unix))]
compile_error!("keys need a system on which a file can belong to its owner alone");

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_is_its_owners_alone() {
        let home = tempfile::TempDir::new().unwrap();
        let files = KeyFiles::of(home.path());
        let (key, made) = files.load_or_create().unwrap();
        let (again, made_again) = files.load_or_create().unwrap();
        assert!(made && !made_again && key.to_bytes() == again.to_bytes());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&files.private), mode(files.private.parent().unwrap())), (0o600, 0o700));
        assert_eq!(read_public(&files.public).unwrap(), key.verifying_key());
        std::fs::set_permissions(&files.private, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = files.load_or_create().unwrap_err().message;
        assert!(refused.contains("others may read the key") && refused.contains("mode 640"), "{refused}");
    }

    #[test]
    fn what_is_no_key_is_said() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("key.pem");
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read_private(&path).unwrap_err().message.contains("is no private Ed25519 key"));
        assert!(read_public(&path).unwrap_err().message.contains("is no public Ed25519 key"));
        assert!(read_public(&folder.path().join("none")).is_err());
    }

    #[test]
    fn only_the_signed_bytes_are_valid() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let signature = sign(&key, b"report");
        assert!(is_valid(&key.verifying_key(), b"report", &signature));
        assert!(!is_valid(&key.verifying_key(), b"repors", &signature));
        assert!(!is_valid(&SigningKey::from_bytes(&[8; 32]).verifying_key(), b"report", &signature));
        assert!(!is_valid(&key.verifying_key(), b"report", &signature[..63]));
    }
}
