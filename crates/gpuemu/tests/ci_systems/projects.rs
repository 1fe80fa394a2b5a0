//! Projects that CI is tried on: softmax kernels, compiled and run by gpuemu itself, so that nothing has to be installed.

use super::fixture::Project;
use super::fixture::kernels::softmax_kernel;

fn config(kernels: &str, op: &str) -> String {
    format!("[project]\nname = \"checked\"\nframework = \"numpy\"\n\n[ci]\nfuzz_iterations = 40\n\n{kernels}{op}")
}

pub fn passing() -> Project {
    let project = Project::without_python();
    let op = "[[ops]]\nname = \"softmax\"\nkernel = \"softmax\"\ndtypes = [\"float32\"]\n";
    project.write("gpuemu.toml", &config(&softmax_kernel(&project, "softmax", "softmax"), op));
    project
}

/// A right kernel and one that fills masked lanes with 0.
pub fn failing() -> Project {
    let project = Project::without_python();
    let kernels =
        softmax_kernel(&project, "softmax", "softmax") + &softmax_kernel(&project, "masked", "softmax_other_zero");
    let ops = "[[ops]]\nname = \"softmax\"\nkernel = \"softmax\"\ndtypes = [\"float32\"]\n\n\
               [[ops]]\nname = \"masked\"\nop = \"softmax\"\nkernel = \"masked\"\ndtypes = [\"float32\"]\n";
    project.write("gpuemu.toml", &config(&kernels, ops));
    project
}

/// A right kernel with a tolerance so loose that [`worsen`] makes its errors larger and no case fail.
pub fn tolerant() -> Project {
    let project = Project::without_python();
    let op = "[[ops]]\nname = \"softmax\"\nkernel = \"softmax\"\ndtypes = [\"float32\"]\nvalues = \"regular\"\n\
              tolerance = \"fixed\"\n[ops.tolerances.float32]\natol = 10.0\nrtol = 0.0\n";
    project.write("gpuemu.toml", &config(&softmax_kernel(&project, "softmax", "softmax"), op));
    project
}

/// Puts the kernel that fills masked lanes with 0 in place of the right one.
pub fn worsen(project: &Project) {
    softmax_kernel(project, "softmax", "softmax_other_zero");
    project.replace("gpuemu.toml", "kernels/softmax_float32", "kernels/softmax_other_zero_float32");
}
