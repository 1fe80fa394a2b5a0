//! Validating a large output from a client's process: through shared memory, and as base64 in JSON.

use std::process::Command;

use gpuemu_model::settings::ProjectReference;
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_tensor::{DType, Tensor};
use gpuemu_wire::protocol::{Request, Response, ValidateOp};
use gpuemu_wire::shared_memory::Segment;

use crate::daemon_process::DaemonProcess;
use crate::row::Row;
use crate::timing::median_seconds;

const ELEMENTS: usize = 16 << 20;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let Some(daemon) = DaemonProcess::start() else { return Vec::new() };
    let (Some(mut client), Some(project)) = (daemon.client(), daemon.project("plain", &[])) else { return Vec::new() };
    let values: Vec<f64> = (0..ELEMENTS).map(|index| (index % 2001) as f64 / 1000.0 - 1.0).collect();
    let clipped: Vec<f64> = values.iter().map(|value| value.max(0.0)).collect();
    let tensor = |values: &[f64]| Tensor::from_f64(DType::F32, vec![ELEMENTS], values).ok();
    let (Some(input), Some(output)) = (tensor(&values), tensor(&clipped)) else { return Vec::new() };
    let (input_bytes, output_bytes) = (input.to_contiguous_bytes(), output.to_contiguous_bytes());
    let Ok(mut segment) = Segment::create() else { return Vec::new() };
    let mut check = |request: &Request| match client.call(request) {
        Ok(Response::ValidationResult { result }) => assert!(result.passed, "{result:?}"),
        other => eprintln!("no verdict: {other:?}"),
    };
    let shared = median_seconds(7, || {
        segment.clear();
        let mut place = |bytes: &[u8]| {
            segment.push(bytes).map(|place| TensorData::in_shared_memory(DType::F32, &[ELEMENTS], place)).ok()
        };
        if let (Some(input), Some(output)) = (place(&input_bytes), place(&output_bytes)) {
            check(&request(&project, input, output));
        }
    });
    let text = median_seconds(3, || check(&request(&project, TensorData::base64(&input), TensorData::base64(&output))));
    let bytes = (input_bytes.len() + output_bytes.len()) as f64 / 1e9;
    let name = "validate relu of 16 M float32 from another process";
    let mut rows = vec![Row::rate(
        name,
        "GB/s",
        bytes / shared,
        Some(bytes / text),
        "base64 in JSON, same socket, same client in Rust",
        "64 MiB of input and 64 of output through reused shared memory, the fp64 reference included",
    )];
    if let Some(python) = python_seconds(&daemon, &project) {
        rows.push(Row::rate(
            name,
            "GB/s",
            bytes / shared,
            Some(bytes / python),
            "base64 in JSON, same socket, Python's json, base64 and pynng",
            "aim 20",
        ));
    }
    rows
}

fn request(project: &ProjectReference, input: TensorData, output: TensorData) -> Request {
    Request::ValidateOp(ValidateOp {
        project: project.clone(),
        op_name: "relu".to_string(),
        inputs: NamedTensorData { 0: vec![("input".to_string(), input)] },
        output: Some(output),
        outputs: None,
        kwargs: Default::default(),
    })
}

/// What the documented messages cost a Python client.
fn python_seconds(daemon: &DaemonProcess, project: &ProjectReference) -> Option<f64> {
    let program = r#"
import base64, json, sys, time
import numpy as np
import pynng
x = (np.arange(16 << 20, dtype=np.float32) % 2001) / np.float32(1000) - np.float32(1)
y = np.maximum(x, 0)
def encoded(array):
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode()}
times = []
with pynng.Req0(dial="ipc://" + sys.argv[1], recv_timeout=600000, send_timeout=600000) as socket:
    socket.recv_max_size = 0
    for _ in range(3):
        start = time.perf_counter()
        message = {"type": "ValidateOp", "project": {"root": sys.argv[2]}, "op_name": "relu",
                   "inputs": {"input": encoded(x)}, "output": encoded(y)}
        socket.send(json.dumps(message).encode())
        assert json.loads(socket.recv())["result"]["passed"]
        times.append(time.perf_counter() - start)
print(sorted(times)[1])
"#;
    let python = std::env::var_os("GPUEMU_BENCH_PYTHON")?;
    let output = Command::new(python).args(["-c", program]).arg(daemon.socket()).arg(&project.root).output().ok()?;
    if !output.status.success() {
        eprintln!("Python could not be measured: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}
