//! An op made ready in this process: built in, of a project, or defined in Python.

use std::sync::Arc;

use gpuemu_config::Environment;
use gpuemu_config::failure::Failure;
use gpuemu_engine::case::given::given;
use gpuemu_engine::case::materialise;
use gpuemu_engine::ops::gradient::{GRADIENT_BUDGET, GRADIENT_STRATEGY};
use gpuemu_engine::ops::{self, GradientOp, Op};
use gpuemu_engine::schema::{Schema, TensorSpec};
use gpuemu_engine::{Case, Subject, Tolerance, Verdict};
use gpuemu_model::json::ToJson;
use gpuemu_model::report::ValidationResult;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::project::Project;
use gpuemu_run::result::reference_failure;
use gpuemu_run::result::{Context, result_of};
use gpuemu_run::submitted::{judge_tensors, parameters_of};
use gpuemu_runners::executor::{Accepted, Pool};
use gpuemu_runners::python_runner::parameters_json;
use gpuemu_tensor::{DType, Tensor};
use numpy::PyArray1;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::arrays::{GivenTensor, HandedTensor, hand_over};
use crate::callable::Calling;
use crate::options::Options;
use crate::reference::PythonReference;
use crate::refusal::{invalid, refusal};

/// Warm workers for references that are scripts of a project: as many as one process needs.
const REFERENCE_WORKERS: usize = 2;

/// An op, ready to be judged in this process.
#[pyclass(frozen)]
pub struct ReadyOp {
    pub(crate) op: ConfiguredOp,
    pub(crate) options: Options,
    pub(crate) warn_threshold: f64,
    pub(crate) snapshot_bytes: u64,
    pub(crate) reference: Option<Arc<PythonReference>>,
}

/// Settings of a caller, from JSON.
pub(crate) fn options_of(py: Python<'_>, text: &str) -> PyResult<Options> {
    serde_json::from_str(text).map_err(|error| invalid(py, &format!("the options cannot be read: {error}")))
}

/// Reads JSON that Python wrote.
pub(crate) fn accepted_of(py: Python<'_>, text: &str) -> PyResult<Accepted> {
    serde_json::from_str(text).map_err(|error| invalid(py, &format!("a signature cannot be read: {error}")))
}

impl ReadyOp {
    fn from(mut op: ConfiguredOp, options: Options, project: &Project) -> Result<Self, Failure> {
        options.apply(&mut op)?;
        let warn_threshold = project.config.policies.warn_threshold;
        let snapshot_bytes = project.config.storage.snapshot_bytes;
        Ok(Self { op, options, warn_threshold, snapshot_bytes, reference: None })
    }

    /// A verdict as it travels.
    pub(crate) fn result(&self, verdict: Verdict, case: &Case) -> ValidationResult {
        result_of(&self.op.subject, case, verdict, self.context())
    }

    /// What results say beside their verdicts.
    pub(crate) fn context(&self) -> Context<'_> {
        let context = Context::new(&self.op.name, None, &self.options.settings, self.warn_threshold);
        Context { replay: self.options.replay.as_deref(), inputs_up_to: Some(self.snapshot_bytes), ..context }
    }
}

fn tensors(given: Vec<(String, GivenTensor<'_>)>) -> PyResult<Vec<(String, Tensor)>> {
    given.into_iter().map(|(name, tensor)| Ok((name, tensor.tensor()?))).collect()
}

fn parameters_map(py: Python<'_>, text: &str) -> PyResult<Map<String, Value>> {
    serde_json::from_str(text).map_err(|error| invalid(py, &format!("the parameters cannot be read: {error}")))
}

/// A case for Python: its descriptor, its inputs by name, and its other arguments.
type HandedCase<'py> = (String, Vec<(String, HandedTensor<'py>)>, String);

/// An expected output: its name, its shape, its values and how far from them a kernel may be.
type Expected<'py> = (String, Vec<usize>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl ReadyOp {
    /// An op of a project, or a built-in one.
    #[staticmethod]
    fn open(py: Python<'_>, name: &str, options: &str) -> PyResult<Self> {
        let options = options_of(py, options)?;
        let open = || -> Result<Self, Failure> {
            let project = Project::open(&options.project, &Environment::of_process())?;
            let op = ConfiguredOp::open(&project, name, &options.settings, &Pool::new(REFERENCE_WORKERS))?;
            Self::from(op, options.clone(), &project)
        };
        py.detach(open).map_err(|failure| refusal(py, &failure))
    }

    /// An op with a signature and a reference that is a callable of this process.
    #[staticmethod]
    fn custom(
        py: Python<'_>,
        name: &str,
        signature: &str,
        bridge: Py<PyAny>,
        accepted: &str,
        dtypes: Vec<String>,
        options: &str,
    ) -> PyResult<Self> {
        let options = options_of(py, options)?;
        let calling = Calling {
            bridge,
            accepted: accepted_of(py, accepted)?,
            withheld: Vec::new(),
            extra: Map::new(),
            dictionary: false,
        };
        let mut schema = Schema::from_signature(name, signature).map_err(|error| {
            let marker = format!("{}^", " ".repeat(error.column));
            invalid(
                py,
                &format!(
                    "signature of op '{name}', column {}: {}\n  {signature}\n  {marker}",
                    error.column + 1,
                    error.message
                ),
            )
        })?;
        if !dtypes.is_empty() {
            let parsed: Result<Vec<DType>, _> = dtypes.iter().map(|dtype| dtype.parse()).collect();
            schema.dtypes = parsed.map_err(|error| invalid(py, &format!("dtypes of op '{name}': {error}")))?;
        }
        let mut reference = None;
        let make = |schema: Schema| {
            let own = Arc::new(PythonReference::new(schema.clone(), calling));
            reference = Some(own.clone());
            let mut subject = Subject::with_schema(own, schema);
            // A reference gives values without bounds: what is allowed is a tolerance.
            for dtype in DType::ALL {
                subject.tolerances.insert(dtype, Tolerance::fixed_default(dtype));
            }
            subject.tolerance = Tolerance::fixed_default(DType::F32);
            subject
        };
        let open = || -> Result<Self, Failure> {
            let project = Project::open(&options.project, &Environment::of_process())?;
            let op = ConfiguredOp::custom(&project, schema, make, &options.settings)?;
            Self::from(op, options.clone(), &project)
        };
        let mut ready = open().map_err(|failure| refusal(py, &failure))?;
        ready.reference = reference;
        Ok(ready)
    }

    /// The backward of the op: its gradients by finite differences of its reference. Cases stay small.
    ///
    /// Optional inputs that are named always take part, so that their gradients are asked for.
    fn backward(&self, py: Python<'_>, named: Vec<String>) -> PyResult<Self> {
        let forward = &self.op.subject;
        let mut narrowed = forward.schema().clone();
        for spec in narrowed.inputs.iter_mut().filter(|spec| named.contains(&spec.name)) {
            spec.optional = false;
        }
        let gradient = GradientOp::of(forward.op(), &narrowed).map_err(|error| invalid(py, &error.to_string()))?;
        let schema = gradient.schema().clone();
        let mut op = self.op.clone();
        op.subject = Subject::with_schema(Arc::new(gradient), schema).precision(forward.precision.clone());
        op.subject.measured = true;
        op.name.clone_from(&op.subject.schema().name);
        op.reference = "finite differences of the fp64 reference".to_string();
        op.sampler.budget = op.sampler.budget.min(GRADIENT_BUDGET);
        if self.options.settings.values.is_none() {
            op.sampler.strategy = GRADIENT_STRATEGY;
        }
        Ok(Self { op, options: self.options.clone(), reference: self.reference.clone(), ..*self })
    }

    /// The names of the inputs.
    fn inputs(&self) -> Vec<String> {
        self.op.subject.schema().inputs.iter().map(|spec| spec.name.clone()).collect()
    }

    /// The keyword by which a function is given memory for its outputs, if its signature names one that is free.
    fn out_keyword(&self, py: Python<'_>, accepted: &str) -> PyResult<Option<&'static str>> {
        Ok(self.op.out_keyword(&accepted_of(py, accepted)?))
    }

    /// What the op is, as JSON.
    fn describe(&self) -> String {
        let schema = self.op.subject.schema();
        let tensor = |spec: &TensorSpec| json!({"name": spec.name, "optional": spec.optional, "dtype": spec.dtype});
        json!({
            "name": self.op.name,
            "signature": schema.signature,
            "summary": schema.summary,
            "formula": schema.formula,
            "inputs": schema.inputs.iter().map(tensor).collect::<Vec<_>>(),
            "outputs": schema.outputs.iter().map(tensor).collect::<Vec<_>>(),
            "parameters": schema.parameters.iter().map(|spec| spec.name.clone()).collect::<Vec<_>>(),
            "dims": schema.dimensions.iter().map(|dimension| dimension.name.clone()).collect::<Vec<_>>(),
            "dtypes": if self.op.sampler.dtypes.is_empty() { &schema.dtypes } else { &self.op.sampler.dtypes },
            "reference": self.op.reference,
            "tolerance": self.op.subject.tolerance.describe(),
            "precision": self.op.subject.precision,
        })
        .to_string()
    }

    /// The case of a seed: its descriptor, its inputs by name, and its other arguments.
    fn case<'py>(&self, py: Python<'py>, seed: u64) -> PyResult<HandedCase<'py>> {
        let descriptor = self.op.subject.describe(&self.op.sampler, seed);
        let schema = self.op.subject.schema();
        let made = py.detach(|| materialise(schema, &descriptor));
        let case = made.map_err(|error| invalid(py, &error.to_string()))?;
        let mut inputs = Vec::new();
        for (name, tensor) in case.named_inputs(schema) {
            let handed = hand_over(py, &tensor)?;
            inputs.push((name, handed));
        }
        let mut arguments = parameters_json(&descriptor.parameters);
        arguments.extend(self.op.extra().clone());
        let text = descriptor.to_json().unwrap_or_default();
        Ok((text, inputs, Value::Object(arguments).to_string()))
    }

    /// Judges outputs for inputs, both given; the result as JSON.
    fn validate(
        &self,
        py: Python<'_>,
        inputs: Vec<(String, GivenTensor<'_>)>,
        outputs: Vec<(String, GivenTensor<'_>)>,
        parameters: &str,
    ) -> PyResult<String> {
        let (inputs, outputs) = (tensors(inputs)?, tensors(outputs)?);
        let given = parameters_map(py, parameters)?;
        let judged = py.detach(|| -> Result<(Case, Verdict), Failure> {
            let parameters = parameters_of(&self.op, &given)?;
            let (case, verdict) = judge_tensors(&self.op, inputs, outputs, &parameters)?;
            match reference_failure(&verdict) {
                Some(failure) => Err(failure),
                None => Ok((case, verdict)),
            }
        });
        self.interrupted()?;
        let (case, verdict) = judged.map_err(|failure| refusal(py, &failure))?;
        Ok(self.result(verdict, &case).to_json().unwrap_or_default())
    }

    /// What the reference says of inputs that are given.
    fn expected<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<(String, GivenTensor<'py>)>,
        parameters: &str,
    ) -> PyResult<Vec<Expected<'py>>> {
        let inputs = tensors(inputs)?;
        let given_parameters = parameters_map(py, parameters)?;
        let schema = self.op.subject.schema();
        let asked = py.detach(|| -> Result<_, Failure> {
            let parameters = parameters_of(&self.op, &given_parameters)?;
            let wanted: Vec<String> = schema.outputs.iter().map(|spec| spec.name.clone()).collect();
            let refused = |message: String| Failure::invalid(format!("op '{}': {message}", self.op.name));
            let case = given(schema, self.op.subject.fingerprint(), 0, inputs, &parameters, &wanted)
                .map_err(|error| refused(error.to_string()))?;
            let expected = self.op.subject.expect(&case).map_err(|error| refused(error.to_string()))?;
            Ok((case, expected))
        });
        self.interrupted()?;
        let (case, expected) = asked.map_err(|failure| refusal(py, &failure))?;
        let specs = schema.outputs.iter().filter(|spec| spec.is_in(&case.descriptor));
        let mut answers = Vec::new();
        for (spec, expectation) in specs.zip(expected) {
            let shape = spec.shape(&case.descriptor.sizes).unwrap_or_default();
            let values = PyArray1::from_vec(py, expectation.values);
            answers.push((spec.name.clone(), shape, values, PyArray1::from_vec(py, expectation.delta)));
        }
        Ok(answers)
    }
}

impl ReadyOp {
    /// An interrupt that reached the reference is the caller's, not a failure of the reference.
    pub(crate) fn interrupted(&self) -> PyResult<()> {
        self.reference.as_ref().and_then(|reference| reference.take_broken()).map_or(Ok(()), Err)
    }
}

/// How a callable is given inputs of these names: `keywords`, `positional` or `dictionary`.
#[pyfunction]
pub fn call_style(py: Python<'_>, accepted: &str, names: Vec<String>) -> PyResult<&'static str> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(accepted_of(py, accepted)?.style_for(&names).name())
}

/// The names of the built-in ops.
#[pyfunction]
pub fn builtin_ops() -> Vec<String> {
    ops::builtin().iter().map(|op| op.schema().name.clone()).collect()
}
