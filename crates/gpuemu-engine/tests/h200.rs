//! The oracle on outputs that a real GPU returned: correct kernels, none of which may be flagged.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;

use gpuemu_engine::case::{Case, CaseDescriptor, GENERATOR_VERSION, Strategy};
use gpuemu_engine::ops;
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::oracle::decoy::discriminate;
use gpuemu_engine::schema::{Parameters, Scalar, Sizes};
use gpuemu_model::Precision;
use gpuemu_tensor::{DType, Tensor};
use serde::Deserialize;

#[derive(Deserialize)]
struct Launch {
    id: String,
    op: String,
    sizes: Sizes,
    parameters: BTreeMap<String, Scalar>,
    precision: Precision,
    inputs: BTreeMap<String, Bytes>,
    output: Bytes,
}

#[derive(Deserialize)]
struct Bytes {
    dtype: DType,
    shape: Vec<usize>,
    offset: usize,
    bytes: usize,
}

fn folder() -> String {
    format!("{}/../../testdata/h200", env!("CARGO_MANIFEST_DIR"))
}

fn launches() -> (Vec<Launch>, Vec<u8>) {
    let index = fs::read_to_string(format!("{}/outputs.json", folder())).unwrap();
    (serde_json::from_str(&index).unwrap(), fs::read(format!("{}/outputs.bin", folder())).unwrap())
}

fn prepare(launch: &Launch, data: &[u8]) -> (Subject, Case) {
    let subject = Subject::new(ops::find(&launch.op).unwrap()).precision(launch.precision.clone());
    let schema = subject.schema();
    let mut parameters = Parameters::default();
    for spec in &schema.parameters {
        parameters.set(&spec.name, launch.parameters.get(&spec.name).copied().unwrap_or(spec.default));
    }
    let present = schema.inputs.iter().filter(|spec| spec.optional && launch.inputs.contains_key(&spec.name));
    let descriptor = CaseDescriptor {
        generator: GENERATOR_VERSION,
        op: launch.op.clone(),
        schema: subject.fingerprint().to_string(),
        seed: 0,
        dtype: launch.output.dtype,
        sizes: launch.sizes.clone(),
        layouts: Vec::new(),
        values: Strategy::Regular,
        parameters,
        present: present.map(|spec| spec.name.clone()).collect(),
    };
    let inputs = schema.inputs.iter().map(|spec| launch.inputs.get(&spec.name).map(|bytes| tensor(bytes, data)));
    let inputs = inputs.collect();
    (subject, Case { descriptor, inputs })
}

fn tensor(bytes: &Bytes, data: &[u8]) -> Tensor {
    Tensor::contiguous(bytes.dtype, bytes.shape.clone(), &data[bytes.offset..bytes.offset + bytes.bytes]).unwrap()
}

#[test]
fn no_output_of_a_real_gpu_is_flagged() {
    let (launches, data) = launches();
    assert!(launches.len() >= 40, "{}", launches.len());
    let page = include_str!("../../../docs/concepts/oracle.md");
    let claim = format!("\n{} launches of Triton and CUDA C++ kernels", launches.len());
    assert!(page.contains(&claim), "docs/concepts/oracle.md does not say:{claim}");
    let (mut compared, mut undetermined) = (0, 0);
    for launch in &launches {
        let (subject, case) = prepare(launch, &data);
        let expectations = subject.expect(&case).unwrap();
        let rule = subject.rule(launch.output.dtype);
        let out = &data[launch.output.offset..launch.output.offset + launch.output.bytes];
        let comparison = rule.compare(out, &expectations[0]);
        if let Some(index) = comparison.first {
            let bits = gpuemu_engine::oracle::compare::read_bits(out, rule.dtype.size(), index);
            eprintln!(
                "{}: {} at {index}, expected {} within {:e}",
                launch.id,
                rule.dtype.decode(bits),
                expectations[0].values[index],
                expectations[0].delta[index]
            );
        }
        assert_eq!(comparison.mismatched, 0, "{}", launch.id);
        compared += comparison.compared;
        undetermined += comparison.undetermined;
        // And the check is no empty one: plainly wrong outputs would not have passed.
        let found = discriminate(&rule, &expectations[0], None);
        assert!(!found.is_weak(), "{}: {found:?}", launch.id);
    }
    assert!(compared > 200_000 && undetermined * 20 < compared, "{compared} compared, {undetermined} undetermined");
}

#[test]
fn a_rounding_that_is_not_declared_is_seen() {
    let (launches, data) = launches();
    let mut seen = 0;
    // These kernels round the normalised row to the half format before they scale it.
    for launch in
        launches.iter().filter(|launch| launch.op.ends_with("norm") && launch.precision.intermediate.is_some())
    {
        let (subject, case) = prepare(launch, &data);
        let undeclared = subject.precision(Precision::default());
        let out = &data[launch.output.offset..launch.output.offset + launch.output.bytes];
        let comparison = undeclared.rule(launch.output.dtype).compare(out, &undeclared.expect(&case).unwrap()[0]);
        seen += usize::from(comparison.mismatched > 0);
    }
    assert!(seen >= 5, "{seen}");
}
