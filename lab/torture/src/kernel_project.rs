//! A project whose ops are compiled kernels of the corpus, one right and one wrong: it needs no Python.

use gpuemu_model::settings::ProjectReference;

use crate::daemon_process::DaemonProcess;

/// The op whose kernel is right.
pub const RIGHT: &str = "softmax";

/// The op whose kernel reads 0 where it should read nothing.
pub const WRONG: &str = "softmax_masked";

macro_rules! corpus {
    ($name:literal) => {
        ($name, include_str!(concat!("../../corpus/ptx/", $name)))
    };
}

const FILES: &[(&str, &str)] = &[
    corpus!("softmax_float32_8.ptx"),
    corpus!("softmax_float32_16.ptx"),
    corpus!("softmax_float32_32.ptx"),
    corpus!("softmax_float32_64.ptx"),
    corpus!("softmax_other_zero_float32_8.ptx"),
    corpus!("softmax_other_zero_float32_16.ptx"),
    corpus!("softmax_other_zero_float32_32.ptx"),
    corpus!("softmax_other_zero_float32_64.ptx"),
];

/// Makes the project in the daemon's folder.
pub fn kernel_project(daemon: &DaemonProcess) -> Result<ProjectReference, String> {
    let mut config = "[project]\nname = \"compiled\"\nframework = \"numpy\"\n\n".to_string();
    config.push_str(&op(RIGHT, "softmax"));
    config.push_str(&op(WRONG, "softmax_other_zero"));
    let mut files = vec![("gpuemu.toml", config.as_str())];
    files.extend_from_slice(FILES);
    daemon.project("kernels", &files)
}

/// An op and its kernel: for rows of up to 64 elements, as the corpus has it.
fn op(name: &str, code: &str) -> String {
    let mut variants = String::new();
    for (block, shared) in [(8, 0), (16, 0), (32, 0), (64, 8)] {
        let when = format!("dtype == 'float32' && next_pow2(H) == {block} && numel(out) > 0");
        let file = format!("{code}_float32_{block}.ptx");
        variants.push_str(&format!("  {{ when = \"{when}\", ptx = \"{file}\", shared = {shared} }},\n"));
    }
    format!(
        "[[kernels]]\nname = \"{name}_kernel\"\nsource = \"{code}_float32_64.ptx\"\ngrid = [\"rows(input)\"]\n\
         block = [128]\nargs = [\"out\", \"input\", \"H\", \"null\", \"null\"]\nvariants = [\n{variants}]\n\n\
         [[ops]]\nname = \"{name}\"\nop = \"softmax\"\nkernel = \"{name}_kernel\"\ndtypes = [\"float32\"]\n\n"
    )
}
