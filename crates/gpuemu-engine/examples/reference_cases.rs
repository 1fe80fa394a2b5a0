//! Writes generated cases of built-in ops with what their references expect, for an independent implementation to be
//! compared with: `reference_cases OP COUNT [SEED]`, in float64 all through.
//!
//! To stdout, for each case one line of JSON and then raw little-endian float64, tensor after tensor as the line lists
//! them: the inputs, and for each output its values, δ (of a float32 kernel) and, for excused elements, a 1.
#![allow(clippy::expect_used, reason = "an example")]

use std::io::Write;

use gpuemu_engine::case::materialise;
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::{Sampler, ops};
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "reference_cases OP COUNT [SEED]";
    let (op, count) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?.parse::<u64>()?);
    let seed = arguments.next().map_or(Ok(1), |text| text.parse::<u64>())?;
    let subject = Subject::new(ops::find(&op).ok_or(format!("there is no op '{op}'"))?);
    let schema = subject.schema();
    let sampler = Sampler { dtypes: vec![DType::F32, DType::F16, DType::BF16], budget: 3_000, ..Sampler::default() };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for index in 0..count {
        let descriptor = subject.describe(&sampler, case_seed(seed, index));
        let case = materialise(schema, &descriptor)?;
        let expectations = subject.expect(&case)?;
        let mut payload: Vec<f64> = Vec::new();
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (spec, tensor) in schema.inputs.iter().zip(&case.inputs) {
            let Some(tensor) = tensor else { continue };
            inputs.push(json!({"name": spec.name, "shape": tensor.shape(), "dtype": tensor.dtype()}));
            payload.extend(tensor.to_f64());
        }
        let present = schema.outputs.iter().filter(|spec| spec.is_in(&descriptor));
        for (spec, expectation) in present.zip(&expectations) {
            let (shape, dtype) = (spec.shape(&descriptor.sizes), spec.dtype_in(descriptor.dtype));
            outputs.push(json!({"name": spec.name, "shape": shape, "dtype": dtype}));
            let mut excused = vec![0.0; expectation.values.len()];
            expectation.excuses.iter().for_each(|excuse| excused[excuse.index] = 1.0);
            payload.extend(expectation.values.iter().chain(&expectation.delta).chain(&excused));
        }
        let parameters: serde_json::Map<String, serde_json::Value> =
            descriptor.parameters.0.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let sizes: serde_json::Map<String, serde_json::Value> =
            descriptor.sizes.named.iter().map(|(name, size)| (name.clone(), json!(size))).collect();
        let line = json!({
            "op": op, "seed": descriptor.seed.to_string(), "dtype": descriptor.dtype, "strategy": descriptor.values,
            "sizes": sizes, "parameters": parameters, "inputs": inputs, "outputs": outputs, "numbers": payload.len(),
        });
        writeln!(out, "{line}")?;
        payload.iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))?;
    }
    out.flush()?;
    Ok(())
}
