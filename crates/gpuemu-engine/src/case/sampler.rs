//! From a seed to a case descriptor.

use std::fmt;
use std::sync::Arc;

use gpuemu_tensor::rng::case_seed;
use gpuemu_tensor::{DType, Stream};

use super::shapes::draw_case_sizes;
use super::{CaseDescriptor, GENERATOR_VERSION, Layout, Strategy};
use crate::schema::{Parameters, Schema};

/// What cases are drawn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampler {
    /// Dtypes; the schema's if empty.
    pub dtypes: Vec<DType>,
    pub layouts: Vec<Layout>,
    pub strategy: Strategy,
    /// Elements, and work beyond them, that a case may take.
    pub budget: usize,
    /// Parameters that are fixed.
    pub parameters: Parameters,
    /// If not empty, the sizes of a case are one of these; dims that an entry leaves out are drawn.
    pub shapes: Vec<Vec<(String, usize)>>,
    /// Optional tensors that never take part.
    pub absent: Vec<String>,
    /// Optional tensors that always take part.
    pub always: Vec<String>,
    /// Which cases can be run at all; those that cannot are drawn again.
    pub covered: Coverage,
}

/// Draws of a case before it is given up: by then cases that can be run are too rare to be found.
const MOST_DRAWS: u64 = 1000;

type Covers = dyn Fn(&Schema, &CaseDescriptor) -> bool + Send + Sync;

/// What can be run: everything, or what a compiled kernel covers.
#[derive(Clone, Default)]
pub struct Coverage(Option<Arc<Covers>>);

impl Coverage {
    /// What a function says.
    pub fn by(covers: impl Fn(&Schema, &CaseDescriptor) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(covers)))
    }

    /// Whether a case can be run.
    pub fn covers(&self, schema: &Schema, descriptor: &CaseDescriptor) -> bool {
        self.0.as_ref().is_none_or(|covers| covers(schema, descriptor))
    }
}

impl fmt::Debug for Coverage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "some cases" } else { "all cases" })
    }
}

impl PartialEq for Coverage {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            _ => false,
        }
    }
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            dtypes: Vec::new(),
            layouts: Layout::ALL.to_vec(),
            strategy: Strategy::Adversarial,
            budget: 16_384,
            parameters: Parameters::default(),
            shapes: Vec::new(),
            absent: Vec::new(),
            always: Vec::new(),
            covered: Coverage::default(),
        }
    }
}

impl Sampler {
    /// The descriptor of case `index` of a run.
    pub fn case(&self, schema: &Schema, fingerprint: &str, base_seed: u64, index: u64) -> CaseDescriptor {
        self.describe(schema, fingerprint, case_seed(base_seed, index))
    }

    /// The descriptor that a case seed stands for. `fingerprint` is the schema's, computed once.
    pub fn describe(&self, schema: &Schema, fingerprint: &str, seed: u64) -> CaseDescriptor {
        let first = self.draw(schema, fingerprint, seed);
        if self.covered.covers(schema, &first) {
            return first;
        }
        // Drawn again from seeds that follow from the case's own: the same case, whoever draws it.
        let again = (0..MOST_DRAWS).map(|draw| self.draw(schema, fingerprint, case_seed(seed, draw)));
        let found = again.into_iter().find(|descriptor| self.covered.covers(schema, descriptor));
        CaseDescriptor { seed, ..found.unwrap_or(first) }
    }

    /// The case that a seed would have stood for if it could be run.
    pub fn left_out(&self, schema: &Schema, fingerprint: &str, seed: u64) -> Option<CaseDescriptor> {
        // Where everything can be run nothing need be drawn to know.
        self.covered.0.as_ref()?;
        let first = self.draw(schema, fingerprint, seed);
        (!self.covered.covers(schema, &first)).then_some(first)
    }

    fn draw(&self, schema: &Schema, fingerprint: &str, seed: u64) -> CaseDescriptor {
        let dtypes = if self.dtypes.is_empty() { &schema.dtypes } else { &self.dtypes };
        let dtype = Stream::new(seed, "dtype").pick(dtypes).copied().unwrap_or(DType::F32);
        let mut sizes = draw_case_sizes(&mut Stream::new(seed, "shape"), schema, self.budget);
        for (name, size) in Stream::new(seed, "shapes").pick(&self.shapes).into_iter().flatten() {
            sizes.set(name, *size);
        }
        let parameters = self.parameters(schema, seed);
        schema.set_size_parameters(&parameters, &mut sizes);
        CaseDescriptor {
            generator: GENERATOR_VERSION,
            op: schema.name.clone(),
            schema: fingerprint.to_string(),
            seed,
            dtype,
            sizes,
            layouts: self.layouts(schema, seed),
            values: self.strategy.resolve(seed),
            parameters,
            present: self.optional_tensors(schema, seed),
        }
    }

    fn layouts(&self, schema: &Schema, seed: u64) -> Vec<(String, Layout)> {
        let mut stream = Stream::new(seed, "layout");
        let mut layouts = Vec::new();
        // Half of the cases stay contiguous altogether, as most calls of a kernel are.
        let unusual = stream.chance(1, 2);
        for input in schema.inputs.iter().filter(|input| input.is_real()) {
            let layout = stream.pick(&self.layouts).copied().unwrap_or(Layout::Contiguous);
            // What is written in place has an address of its own for every element.
            let written = schema.outputs.iter().any(|output| output.name == input.name);
            let usable = unusual && !(written && layout == Layout::Expanded);
            layouts.push((input.name.clone(), if usable { layout } else { Layout::Contiguous }));
        }
        layouts
    }

    fn parameters(&self, schema: &Schema, seed: u64) -> Parameters {
        let mut stream = Stream::new(seed, "parameters");
        let mut parameters = Parameters::default();
        for spec in &schema.parameters {
            let drawn = stream.pick(&spec.choices).copied().unwrap_or(spec.default);
            parameters.set(&spec.name, self.parameters.get(&spec.name).unwrap_or(drawn));
        }
        parameters
    }

    fn optional_tensors(&self, schema: &Schema, seed: u64) -> Vec<String> {
        let mut stream = Stream::new(seed, "optional");
        let optional = schema.inputs.iter().chain(&schema.outputs).filter(|tensor| tensor.optional);
        // Drawn for each in turn, so that what is fixed for one changes nothing for the others.
        let drawn = optional.map(|tensor| (tensor.name.clone(), stream.chance(1, 2)));
        let takes_part = |(name, drawn): (String, bool)| (drawn || self.always.contains(&name)).then_some(name);
        drawn.filter_map(takes_part).filter(|name| !self.absent.contains(name)).collect()
    }
}
