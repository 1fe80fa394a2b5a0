//! Impossible values of compiled kernels, each pointed at where it stands.

use super::check_launch::check_launch;
use super::error::{ConfigError, Source};
use super::kernels::{KernelTable, LintTable, SourceKind, check_architecture};
use super::located::Located;

/// Checks one `[[kernels]]` entry.
pub(super) fn check_kernel(kernel: &KernelTable, source: &Source) -> Result<(), ConfigError> {
    let name = &kernel.name.value;
    let Some(kind) = SourceKind::of(&kernel.source.value) else {
        let message = format!("the source '{}' of kernel '{name}' is of no known kind", kernel.source.value);
        let hint = "name a .ptx file, a .cu file, or a Triton kernel as file.py:kernel".to_string();
        return Err(source.invalid(&kernel.source.span, message, Some(hint)));
    };
    check_launch(kernel, source)?;
    let Some(compile) = &kernel.compile else { return Ok(()) };
    let known = kind.compile_keys();
    if let Some((key, span)) = compile.keys().into_iter().find(|(key, _)| !known.contains(key)) {
        let message = format!("'{key}' means nothing to kernel '{name}': its source is {}", kind.describe());
        let hint = match known {
            [] => "remove it".to_string(),
            known => format!("remove it; known here: {}", known.join(", ")),
        };
        return Err(source.invalid(&span, message, Some(hint)));
    }
    if let Some(target) = &compile.target {
        check_located(source, target)?;
    }
    match &compile.num_warps {
        // Triton splits a block into a power of two of warps.
        Some(warps) if !(warps.value.is_power_of_two() && warps.value <= 32) => {
            let message = format!("num_warps is {}, but must be 1, 2, 4, 8, 16 or 32", warps.value);
            Err(source.invalid(&warps.span, message, None))
        }
        _ => Ok(()),
    }
}

/// Checks `[lint]`.
pub(super) fn check_lint(lint: &LintTable, source: &Source) -> Result<(), ConfigError> {
    lint.architectures.iter().flatten().try_for_each(|architecture| check_located(source, architecture))
}

fn check_located(source: &Source, architecture: &Located<String>) -> Result<(), ConfigError> {
    check_architecture(&architecture.value).map_err(|_| {
        let message = format!("'{}' is not an architecture", architecture.value);
        source.invalid(&architecture.span, message, Some("write it as in sm_80 or sm_90a".to_string()))
    })
}
