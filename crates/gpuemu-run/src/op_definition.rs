//! What an op of a project is: schema, tolerance and sampler, from its entry in the configuration.

use std::collections::{BTreeMap, BTreeSet};

use gpuemu_config::failure::Failure;
use gpuemu_config::{DimensionRange, ToleranceMode};
use gpuemu_engine::ops;
use gpuemu_engine::oracle::compare::Forgiven;
use gpuemu_engine::schema::{Parameters, Scalar, Schema};
use gpuemu_engine::{Sampler, Subject, Tolerance};
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_tensor::DType;
use serde_json::{Map, Value};

use crate::project::Project;

/// Elements, and work beyond them, of a case in a quick run.
const QUICK_BUDGET: usize = 2_048;

/// The schema of an op: its own signature, or the built-in one, with the dims and dtypes that the project allows.
pub fn schema_of(project: &Project, op: &gpuemu_config::Op) -> Result<Schema, Failure> {
    let config = &project.config;
    let built_in = ops::find(op.built_in_name());
    if let Some(named) = op.op.as_ref().filter(|_| built_in.is_none()) {
        let hint = ops::nearest(&named.value).map(|meant| format!("did you mean `{meant}`? `gpuemu ops` lists all"));
        let message = format!("op '{}' is said to be '{}', which is not built in", op.name, named.value);
        return Err(config.error_at(&named.span, message, hint).into());
    }
    let mut schema = match (&op.signature, built_in) {
        (Some(signature), built_in) => {
            let own = Schema::from_signature(&op.name, &signature.value).map_err(|error| {
                let message = format!("signature of op '{}', column {}: {}", op.name, error.column + 1, error.message);
                config.error_at(&signature.span, message, Some("see docs/guides/op-schema.md".to_string()))
            })?;
            match built_in.filter(|_| op.reference.is_none()) {
                Some(known) if known.schema().inputs == own.inputs && known.schema().outputs == own.outputs => {
                    known.schema().clone()
                }
                Some(known) => {
                    let message = format!("op '{}' is built in with another signature", op.name);
                    let hint =
                        format!("leave the signature out, give a reference, or use: {}", known.schema().signature);
                    return Err(config.error_at(&signature.span, message, Some(hint)).into());
                }
                None => own,
            }
        }
        (None, Some(known)) => known.schema().clone(),
        (None, None) => {
            let message = format!("op '{}' has no signature and is not built in", op.name);
            let hint = match ops::nearest(&op.name) {
                Some(meant) => {
                    format!("give it a signature such as \"a[M,K] b[K,N] -> out[M,N]\", or say op = \"{meant}\"")
                }
                None => "give it a signature such as \"a[M,K] b[K,N] -> out[M,N]\"".to_string(),
            };
            return Err(config.error_at(&op.span, message, Some(hint)).into());
        }
    };
    schema.name.clone_from(&op.name);
    for (name, range) in &op.dims {
        let known: Vec<String> = schema.dimensions.iter().map(|dimension| dimension.name.clone()).collect();
        let Some(dimension) = schema.dimensions.iter_mut().find(|dimension| dimension.name == *name) else {
            let hint = format!("its dims are {}", known.join(", "));
            return Err(config.error_at(&op.span, format!("op '{}' has no dim '{name}'", op.name), Some(hint)).into());
        };
        match range {
            DimensionRange::List(sizes) => {
                dimension.choices.clone_from(sizes);
                dimension.minimum = sizes.iter().copied().min().unwrap_or(0);
                dimension.maximum = sizes.iter().copied().max().unwrap_or(0);
            }
            DimensionRange::Range(low, high) => (dimension.minimum, dimension.maximum) = (*low, *high),
        }
    }
    for name in op.shapes.iter().flat_map(BTreeMap::keys) {
        if !schema.dimensions.iter().any(|dimension| dimension.name == *name) {
            let message = format!("shapes of op '{}' name a dim '{name}' that it does not have", op.name);
            return Err(config.error_at(&op.span, message, None).into());
        }
    }
    let unknown = op.dtypes.iter().find(|dtype| !schema.dtypes.contains(dtype));
    match unknown {
        Some(dtype) if op.reference.is_none() => {
            let known: Vec<String> = schema.dtypes.iter().map(ToString::to_string).collect();
            let message = format!("op '{}' cannot be judged in {dtype}", op.name);
            Err(config.error_at(&op.span, message, Some(format!("it is in {}", known.join(", ")))).into())
        }
        _ => {
            schema.dtypes.clone_from(&op.dtypes);
            Ok(schema)
        }
    }
}

/// An op judged by its built-in reference.
pub fn built_in_subject(project: &Project, op: &gpuemu_config::Op, schema: Schema) -> Result<Subject, Failure> {
    match ops::find(op.built_in_name()) {
        Some(known) => Ok(Subject::with_schema(known, schema)),
        None => {
            let message = format!("op '{}' has no reference and is not built in", op.name);
            let hint = "give it a reference script, or a callable as \"module:function\"".to_string();
            Err(project.config.error_at(&op.span, message, Some(hint)).into())
        }
    }
}

/// Tolerance, precision and demands as the project says.
pub fn judged_as_configured(
    mut subject: Subject,
    project: &Project,
    op: &gpuemu_config::Op,
) -> Result<Subject, Failure> {
    let config = &project.config;
    match op.tolerance_mode() {
        ToleranceMode::Bound if op.reference.is_some() => {
            let message = format!("op '{}' has a reference of its own, which gives values but no bound", op.name);
            let hint = "leave the reference of a built-in op out, or use tolerance = \"fixed\"".to_string();
            return Err(config.error_at(&op.span, message, Some(hint)).into());
        }
        ToleranceMode::Bound => subject.tolerance = Tolerance::Bound,
        ToleranceMode::Calibrated => {
            let measured = op.calibration.iter();
            let pair = |(dtype, pair): (&DType, &gpuemu_config::Calibration)| {
                (*dtype, Tolerance::Calibrated { atol: pair.atol, rtol: pair.rtol })
            };
            subject.tolerances = measured.map(pair).collect();
            // What has no error of its own must be exact: whole numbers.
            subject.tolerance = Tolerance::Calibrated { atol: 0.0, rtol: 0.0 };
        }
        ToleranceMode::Fixed => {
            for dtype in DType::ALL {
                let pair = op.tolerances.get(&dtype).map(|pair| Tolerance::Fixed { atol: pair.atol, rtol: pair.rtol });
                subject.tolerances.insert(dtype, pair.unwrap_or_else(|| Tolerance::fixed_default(dtype)));
            }
            subject.tolerance = Tolerance::fixed_default(DType::F32);
        }
    }
    if let Some(precision) = &op.precision {
        subject.precision = precision.clone();
    }
    subject.invariants.clone_from(&op.invariants);
    subject.forgiven = Forgiven { nan: !config.validation.check_nan, infinity: !config.validation.check_inf };
    subject.measured = true;
    Ok(subject)
}

/// Every float dtype that outputs of the cases have must be calibrated, where that is what decides. Returns what is
/// worth knowing about the calibrations.
pub fn check_calibrated(
    project: &Project,
    op: &gpuemu_config::Op,
    schema: &Schema,
    sampler: &Sampler,
) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    if op.tolerance_mode() != ToleranceMode::Calibrated {
        return Ok(warnings);
    }
    for dtype in float_outputs(schema, sampler) {
        let Some(calibration) = op.calibration.get(&dtype) else {
            let missing = not_calibrated(&op.name, dtype);
            return Err(project.config.error_at(&op.span, missing.message, missing.hint).into());
        };
        let (then, now) = (calibration.values, sampler.strategy);
        if then != now {
            let (then, now) = (then.name(), now.name());
            warnings.push(format!("the tolerance of {dtype} was calibrated with values {then}, these are {now}"));
        }
    }
    Ok(warnings)
}

/// The same once it is known which optional outputs take part.
pub fn check_calibrated_outputs(name: &str, subject: &Subject, sampler: &Sampler) -> Result<(), Failure> {
    if !matches!(subject.tolerance, Tolerance::Calibrated { .. }) {
        return Ok(());
    }
    let missing = float_outputs(subject.schema(), sampler);
    let missing = missing.into_iter().find(|dtype| !subject.tolerances.contains_key(dtype));
    missing.map_or(Ok(()), |dtype| Err(not_calibrated(name, dtype)))
}

fn not_calibrated(name: &str, dtype: DType) -> Failure {
    let message = format!("op '{name}' has tolerance = \"calibrated\", but no calibration is stored for {dtype}");
    let hint = format!(
        "measure one with `gpuemu calibrate --op {name} --control ...`, a trusted implementation of the same op, or use \
         \"bound\" or \"fixed\""
    );
    Failure::new(ErrorCode::ConfigError, message).hint(hint)
}

/// The float dtypes that outputs of cases surely have. Optional outputs count where they always take part.
pub fn float_outputs(schema: &Schema, sampler: &Sampler) -> BTreeSet<DType> {
    let sure = schema.outputs.iter().filter(|spec| !spec.optional || sampler.always.contains(&spec.name));
    let dtypes = sure.flat_map(|spec| sampler.dtypes.iter().map(|dtype| spec.dtype_in(*dtype)));
    dtypes.filter(|dtype| dtype.is_float()).collect()
}

/// The bound of the built-in op of that name, where an op is judged by a tolerance instead.
pub fn bound_beside(subject: &Subject, op: &gpuemu_config::Op) -> Option<Subject> {
    let known = ops::find(op.built_in_name()).filter(|_| !subject.tolerance.is_bound())?;
    let (own, built_in) = (subject.schema(), known.schema());
    let same =
        own.inputs == built_in.inputs && own.outputs == built_in.outputs && own.parameters == built_in.parameters;
    same.then(|| Subject::with_schema(known.clone(), own.clone()).precision(subject.precision.clone()))
}

/// Bounds of a request narrow the schema; they never widen it.
pub fn narrow(schema: &mut Schema, settings: &FuzzConfig) -> Result<(), Failure> {
    for (what, bounds) in [("min_shape", &settings.min_shape), ("max_shape", &settings.max_shape)] {
        if bounds.len() > schema.dimensions.len() {
            let known: Vec<&str> = schema.dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
            let message = format!(
                "{what} has {} sizes, but op '{}' has {} dims ({})",
                bounds.len(),
                schema.name,
                known.len(),
                known.join(", ")
            );
            return Err(Failure::invalid(message));
        }
        for (dimension, bound) in schema.dimensions.iter_mut().zip(bounds) {
            if what == "min_shape" {
                dimension.minimum = dimension.minimum.max(*bound);
            } else {
                dimension.maximum = dimension.maximum.min(*bound);
            }
            let (minimum, maximum) = (dimension.minimum, dimension.maximum);
            let listed = !dimension.choices.is_empty();
            dimension.choices.retain(|size| (minimum..=maximum).contains(size));
            if listed && dimension.choices.is_empty() {
                let message = format!("{what} leaves none of the sizes that dim '{}' may have", dimension.name);
                return Err(Failure::invalid(message));
            }
            dimension.preferred.retain(|size| (minimum..=maximum).contains(size));
        }
    }
    for dimension in &schema.dimensions {
        if dimension.minimum > dimension.maximum {
            let (name, low, high) = (&dimension.name, dimension.minimum, dimension.maximum);
            return Err(Failure::invalid(format!(
                "no size of dim '{name}' is left: at least {low} and at most {high}"
            )));
        }
    }
    Ok(())
}

/// What cases of an op are drawn from.
pub fn sampler_of(
    project: &Project,
    op: Option<&gpuemu_config::Op>,
    schema: &Schema,
    settings: &FuzzConfig,
) -> Result<Sampler, Failure> {
    let config = &project.config;
    let mut sampler =
        Sampler { dtypes: op.map_or_else(|| vec![DType::F32], |op| op.dtypes.clone()), ..Sampler::default() };
    if let Some(dtypes) = &settings.dtypes {
        if dtypes.is_empty() {
            return Err(Failure::invalid("'dtypes' is empty").hint("name at least one dtype, or leave it out"));
        }
        sampler.dtypes.clone_from(dtypes);
    } else if settings.quick {
        let quick: Vec<DType> =
            sampler.dtypes.iter().copied().filter(|dtype| config.ci.quick_dtypes.contains(dtype)).collect();
        if !quick.is_empty() {
            sampler.dtypes = quick;
        }
    }
    // An op with a reference of its own takes any float dtype; a built-in one those of its schema.
    let own_reference = op.is_some_and(|op| op.reference.is_some());
    let known = op.and_then(|op| ops::find(op.built_in_name())).or_else(|| ops::find(&schema.name));
    let judged = known.filter(|_| !own_reference).map(|known| known.schema().dtypes.clone());
    if let Some(dtype) = judged.and_then(|judged| sampler.dtypes.iter().copied().find(|dtype| !judged.contains(dtype)))
    {
        return Err(Failure::invalid(format!("op '{}' cannot be judged in {dtype}", schema.name)));
    }
    if let Some(layouts) = settings.layouts().map_err(Failure::invalid)? {
        sampler.layouts = layouts;
    }
    sampler.strategy = settings.values.or(op.map(|op| op.values)).unwrap_or(config.validation.values);
    if settings.quick {
        sampler.budget = QUICK_BUDGET;
        let shapes = op.into_iter().flat_map(|op| &op.shapes);
        sampler.shapes = shapes.map(|shape| shape.iter().map(|(name, size)| (name.clone(), *size)).collect()).collect();
    }
    for (name, value) in op.into_iter().flat_map(|op| &op.kwargs) {
        set_parameter(&mut sampler.parameters, schema, name, value).map_err(|message| {
            op.map_or_else(
                || Failure::invalid(message.clone()),
                |op| config.error_at(&op.span, message.clone(), None).into(),
            )
        })?;
    }
    Ok(sampler)
}

/// Sets a parameter from JSON, if the op has one of that name.
pub fn set_parameter(parameters: &mut Parameters, schema: &Schema, name: &str, value: &Value) -> Result<(), String> {
    let Some(spec) = schema.parameters.iter().find(|spec| spec.name == *name) else { return Ok(()) };
    let scalar = match spec.default {
        Scalar::Float(_) => value.as_f64().map(Scalar::Float),
        Scalar::Int(_) => value.as_i64().map(Scalar::Int),
        Scalar::Bool(_) => value.as_bool().map(Scalar::Bool),
    };
    let expected = match spec.default {
        Scalar::Float(_) => "a number",
        Scalar::Int(_) => "a whole number",
        Scalar::Bool(_) => "true or false",
    };
    let scalar =
        scalar.ok_or_else(|| format!("parameter '{name}' of op '{}' is {value}; expected {expected}", schema.name))?;
    parameters.set(name, scalar);
    Ok(())
}

/// Arguments that are no parameters of the schema: they go to the Python code as they are.
pub fn extra_arguments(op: &gpuemu_config::Op, schema: &Schema) -> Map<String, Value> {
    let own = op.kwargs.iter().filter(|(name, _)| !schema.parameters.iter().any(|spec| spec.name == **name));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}
