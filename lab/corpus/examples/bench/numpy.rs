//! NumPy as a peer, in a process of its own.

use std::process::Command;

/// The median seconds that a NumPy statement takes, after `setup`; `None` without NumPy.
pub fn median_seconds(setup: &str, statement: &str, repeats: usize) -> Option<f64> {
    let program = format!(
        "import time\nimport numpy as np\n{setup}\ndef run():\n    {statement}\nrun()\ntimes = []\nfor _ in range({repeats}):\n    start = time.perf_counter()\n    run()\n    times.append(time.perf_counter() - start)\nprint(sorted(times)[len(times) // 2])\n"
    );
    let python = std::env::var_os("GPUEMU_BENCH_PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(python).args(["-c", &program]).output().ok()?;
    if !output.status.success() {
        eprintln!("NumPy could not be measured: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}
