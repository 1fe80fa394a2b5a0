//! Handing out generated cases.

use gpuemu_config::failure::Failure;
use gpuemu_engine::case::materialise;
use gpuemu_model::tensor_data::Payload;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_runners::python_runner::parameters_json;
use gpuemu_tensor::rng::case_seed;
use gpuemu_wire::protocol::{Encoding, GetTestBatch, GetTestCase, Response, TestCase};

use super::run::random_seed;
use super::{Answer, Service, write_tensors};

/// Cases that one answer carries at most.
const MOST_CASES: u64 = 10_000;

impl Service {
    pub(super) fn test_case(&self, request: &GetTestCase) -> Result<Answer, Failure> {
        let project = self.project(&request.project)?;
        let op = ConfiguredOp::open(&project, &request.op_name, &request.config, &self.pool)?;
        let mut payload = Payload::default();
        let seed = request.seed.unwrap_or_else(random_seed);
        let case = Box::new(generate(&op, seed, request.encoding, &mut payload)?);
        Ok(Answer { response: Response::TestCase { case }, payload })
    }

    pub(super) fn test_batch(&self, request: &GetTestBatch) -> Result<Answer, Failure> {
        let project = self.project(&request.project)?;
        let op = ConfiguredOp::open(&project, &request.op_name, &request.config, &self.pool)?;
        let seeds: Vec<u64> = match (request.count, request.seeds.as_slice()) {
            (Some(count), []) if (1..=MOST_CASES).contains(&count) => {
                let base = request.config.seed.unwrap_or_else(random_seed);
                (0..count).map(|index| case_seed(base, index)).collect()
            }
            (Some(count), []) => {
                return Err(Failure::invalid(format!("'count' is {count}; 1 to {MOST_CASES} are possible")));
            }
            (None, seeds @ [_, ..]) if seeds.len() as u64 <= MOST_CASES => seeds.to_vec(),
            _ => return Err(Failure::invalid(format!("give either 'count' or 1 to {MOST_CASES} 'seeds'"))),
        };
        let mut payload = Payload::default();
        let mut cases = Vec::with_capacity(seeds.len());
        let mut bytes = 0;
        for seed in seeds {
            let case = generate(&op, seed, request.encoding, &mut payload)?;
            bytes += case.inputs.0.iter().map(|(_, data)| data.length()).sum::<u64>();
            if bytes > self.settings.message_bytes {
                let message = format!("{} cases have more than {} bytes", cases.len() + 1, self.settings.message_bytes);
                return Err(Failure::invalid(message).hint("ask for fewer at a time"));
            }
            cases.push(case);
        }
        Ok(Answer { response: Response::TestBatch { cases }, payload })
    }
}

fn generate(op: &ConfiguredOp, seed: u64, encoding: Encoding, payload: &mut Payload) -> Result<TestCase, Failure> {
    let descriptor = op.subject.describe(&op.sampler, seed);
    let schema = op.subject.schema();
    let case = materialise(schema, &descriptor).map_err(|error| Failure::invalid(error.to_string()))?;
    let mut kwargs = parameters_json(&descriptor.parameters);
    kwargs.extend(op.extra().clone());
    Ok(TestCase {
        op_name: op.name.clone(),
        seed,
        dtype: descriptor.dtype,
        inputs: write_tensors(&case.named_inputs(schema), encoding, payload),
        kwargs,
        case: descriptor,
    })
}
