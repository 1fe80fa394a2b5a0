//! Kernels that are compiled from their sources, where the compilers are installed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

mod fixture;

use fixture::Project;
use fixture::kernels::{LEAKY_RELU, stdout};
use snapbox::str;

const TRITON: &str = r#"import triton
import triton.language as tl


@triton.jit
def leaky_relu(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x > 0, x, x * 0.01), mask=mask)
"#;

const CUDA: &str = r#"extern "C" __global__ void __launch_bounds__(256) scale(float* out, const float* in) {
    out[blockIdx.x * 256 + threadIdx.x] = 2.0f * in[blockIdx.x * 256 + threadIdx.x];
}
"#;

const SOURCES: &str = r#"[project]
name = "sources"
framework = "numpy"

[lint]
architectures = ["sm_80", "sm_90"]

[[kernels]]
name = "leaky_relu"
source = "leaky_relu.py:leaky_relu"
compile = { signature = ["*fp32", "*fp32", "i32"], constants = { BLOCK = 1024 } }

[[kernels]]
name = "scale"
source = "scale.cu"
[kernels.artifact_checks]
max_registers = 200
"#;

#[test]
fn sources_are_compiled_measured_and_compared_where_the_compilers_are() {
    let Some(python) = std::env::var_os("GPUEMU_TEST_KERNELS_PYTHON") else {
        eprintln!("skipped: GPUEMU_TEST_KERNELS_PYTHON is not set");
        return;
    };
    let mut project = Project::without_python();
    project.python = python.into();
    project.write("gpuemu.toml", SOURCES);
    project.write("leaky_relu.py", TRITON);
    project.write("scale.cu", CUDA);
    let report = project.json(&["ci", "--format", "json"], 0);
    for kernel in report["kernels"].as_array().unwrap() {
        let entry = &kernel["artifact"]["entries"][0];
        let architectures: Vec<&str> =
            entry["compiled"].as_array().unwrap().iter().map(|one| one["architecture"].as_str().unwrap()).collect();
        assert_eq!(architectures, ["sm_80", "sm_90"]);
        assert!(entry["compiled"][0]["registers"].as_u64().unwrap() > 0, "{entry}");
        assert_eq!(entry["occupancy"][0]["registers"], entry["compiled"][0]["registers"]);
        assert_eq!(kernel["lint"]["not_checked"], serde_json::json!([]), "{kernel}");
    }
    project.gpuemu(&["baseline", "good"]).assert().success().stdout_eq("good  2 kernels\n");
    project.replace("leaky_relu.py", "0.01", "0.1");
    project.gpuemu(&["diff", "--baseline", "good"]).assert().success().stdout_eq(str![[r#"
against baseline good (threshold 10 %)
  changed    leaky_relu  kernel, all counts are equal, 2 constants differ
    constant mul.f32 0f3DCCCCCD (0.1): 0 -> [..] times
    constant mul.f32 0f3C23D70A (0.01): [..] -> 0 times
  same       scale       kernel, all counts are equal

"#]]);
    project.replace("gpuemu.toml", "max_registers = 200", "max_registers = 4");
    let text = project.stdout(&["lint", "--kernel", "scale"], 1);
    assert!(text.contains("error[max-registers] scale: "), "{text}");
    // Without the assembler what the baseline knows cannot be compared: no pass.
    project.write("as_written.ptx", LEAKY_RELU);
    project.write("gpuemu.toml", "[project]\nname = \"p\"\n[[kernels]]\nname = \"k\"\nsource = \"as_written.ptx\"\n");
    project.gpuemu(&["baseline", "measured"]).assert().success();
    project.python = "no-python".into();
    let text = stdout(&project, &["diff", "--baseline", "measured"], 2);
    assert!(text.contains("sm_80 registers: ") && text.contains(" -> not measured  not comparable"), "{text}");
    project.write("leaky_relu.py", TRITON);
    project.write("gpuemu.toml", SOURCES);
    let text = stdout(&project, &["lint"], 2);
    assert!(text.contains("ERROR  leaky_relu") && text.contains("ERROR  scale"), "{text}");
}
