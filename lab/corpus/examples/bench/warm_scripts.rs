//! Fuzzing a NumPy matmul whose op and reference are scripts: kept warm, and cold for each call.

use std::time::Instant;

use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_wire::protocol::{FuzzOp, Request, Response};

use crate::daemon_process::DaemonProcess;
use crate::row::Row;

const SCRIPT: &str = r#"import base64
import json
import sys

import numpy as np


def decode(encoded):
    data = base64.b64decode(encoded["data"])
    return np.frombuffer(data, dtype=np.dtype(encoded["dtype"])).reshape(encoded["shape"])


def encode(array):
    data = base64.b64encode(array.tobytes()).decode("ascii")
    return {"data": data, "dtype": str(array.dtype), "shape": list(array.shape)}


request = json.loads(sys.stdin.read())
result = np.matmul(decode(request["inputs"]["a"]), decode(request["inputs"]["b"]))
json.dump({"outputs": {"result": encode(result)}}, sys.stdout)
"#;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let Some(daemon) = DaemonProcess::start() else { return Vec::new() };
    let rate = |mode: &str, iterations: u64| {
        let config = format!(
            "[project]\nname = \"{mode}\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"product\"\nsignature = \"a[M,K] b[K,N] -> out[M,N]\"\nscript = \"matmul.py\"\nreference = \"matmul.py\"\nexecution_mode = \"{mode}\"\nvalues = \"regular\"\ndims = {{ M = 16, K = 16, N = 16 }}\ntolerances = {{ float32 = {{ atol = 1e-3, rtol = 1e-3 }} }}\n"
        );
        let project = daemon.project(mode, &[("gpuemu.toml", &config), ("matmul.py", SCRIPT)])?;
        let mut client = daemon.client()?;
        // The workers start and prove themselves once.
        if mode == "daemon_orchestrated" {
            client.call(&fuzz(&project, 10)).ok()?;
        }
        let start = Instant::now();
        match client.call(&fuzz(&project, iterations)) {
            Ok(Response::Report { report }) if report.passed => Some(iterations as f64 / start.elapsed().as_secs_f64()),
            other => {
                eprintln!("the {mode} scripts could not be measured: {other:?}");
                None
            }
        }
    };
    let (Some(warm), cold) = (rate("daemon_orchestrated", 2000), rate("script_based", 8)) else { return Vec::new() };
    let note = "16x16 NumPy matmul, op and reference both scripts, every check included; aim 500 cases/s and 50x";
    vec![Row::rate("warm-script fuzzing", "cases/s", warm, cold, "a cold python for each call", note)]
}

fn fuzz(project: &ProjectReference, iterations: u64) -> Request {
    let config = FuzzConfig { iterations: Some(iterations), seed: Some(7), ..FuzzConfig::default() };
    Request::FuzzOp(FuzzOp {
        project: project.clone(),
        op_name: "product".to_string(),
        config,
        fail_fast: false,
        shard: None,
    })
}
