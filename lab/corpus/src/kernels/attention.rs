//! Attention, one program per query row with all keys at once.

use gpuemu_engine::runner::{Buffer, Invocation, RunnerError};
use gpuemu_engine::schema::{Parameters, Schema};
use gpuemu_tensor::DType;

use super::{Plan, add_up, optional, required, scaled};
use crate::memory::{load, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

/// What both attention kernels read from a call.
pub(super) struct Setting<'a, R> {
    pub q: &'a Buffer,
    pub k: &'a Buffer,
    pub v: &'a Buffer,
    mask: Option<&'a Buffer>,
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub width: usize,
    groups: usize,
    scale: R,
    softcap: f64,
    bottom_right: bool,
    causal: bool,
    window: usize,
    pub zero_rows: bool,
}

impl<'a, R: Real> Setting<'a, R> {
    pub fn of(
        inputs: &'a [Option<Buffer>],
        schema: &Schema,
        parameters: &Parameters,
        plan: &Plan,
    ) -> Result<Self, RunnerError> {
        let (q, k, v) = (required(inputs, 0)?, required(inputs, 1)?, required(inputs, 2)?);
        let ([_, heads, queries, width], [_, key_heads, keys, _]) = (*array(q)?, *array(k)?);
        let given = parameters.float("scale").unwrap_or(0.0);
        let mut scale = if given == 0.0 { 1.0 / (width as f64).sqrt() } else { given };
        if plan.mutation.is(Mutation::DropFactor) {
            scale = 1.0;
        }
        Ok(Self {
            q,
            k,
            v,
            mask: optional(inputs, schema, "mask"),
            heads,
            queries,
            keys,
            width,
            groups: (heads / key_heads.max(1)).max(1),
            scale: R::new(scale * plan.mutation.constant()),
            softcap: parameters.float("softcap").unwrap_or(0.0),
            causal: parameters.flag("causal"),
            window: parameters.int("window").unwrap_or(0).max(0) as usize,
            bottom_right: parameters.flag("bottom_right"),
            zero_rows: parameters.flag("masked_rows_zero"),
        })
    }

    /// The key head that a query head reads.
    pub fn key_head(&self, plan: &Plan, head: usize) -> usize {
        if plan.mutation.is(Mutation::SwapOperands) { 0 } else { head / self.groups }
    }

    /// A vector of q, k or v; rows beyond the edge are read where the layout would put them.
    pub fn vector(buffer: &Buffer, batch: usize, head: usize, row: usize) -> Result<Vec<R>, RunnerError> {
        let strides = buffer.strides();
        let start = buffer.offset() as isize
            + batch as isize * strides[0]
            + head as isize * strides[1]
            + row as isize * strides[2];
        (0..buffer.shape()[3]).map(|column| load(buffer, start + column as isize * strides[3])).collect()
    }

    pub fn sees(&self, plan: &Plan, query: usize, key: usize) -> Result<bool, RunnerError> {
        let shift = if self.bottom_right { self.keys as isize - self.queries as isize } else { 0 };
        let (own, place) = (query as isize + shift, key as isize);
        let reach = own + isize::from(plan.mutation.is(Mutation::OffByOne));
        if (self.causal || self.window > 0) && place > reach {
            return Ok(false);
        }
        if self.window > 0 && place + self.window as isize <= own {
            return Ok(false);
        }
        let Some(mask) = self.mask else { return Ok(true) };
        let place = query as isize * mask.strides()[0] + key as isize * mask.strides()[1];
        let flag: f64 = load(mask, mask.offset() as isize + place)?;
        Ok(flag != 0.0)
    }

    /// The score of a key for a query.
    pub fn score(&self, dot: R) -> R {
        let score = dot * self.scale;
        if self.softcap == 0.0 {
            return score;
        }
        let cap = R::new(self.softcap);
        cap * (score / cap).tanh()
    }
}

fn array(buffer: &Buffer) -> Result<&[usize; 4], RunnerError> {
    buffer.shape().try_into().map_err(|_| RunnerError::Raised("expected four dims".to_string()))
}

/// The larger of a maximum and zero in place of −Inf, so that −Inf − −Inf never happens.
pub(crate) fn finite_maximum<R: Real>(maximum: R) -> R {
    if maximum == R::lowest() { R::zero() } else { maximum }
}

/// Rounds a weight to the dtype of the second product, where the kernel does.
pub(crate) fn round_weight<R: Real>(weight: R, intermediate: Option<DType>) -> R {
    match intermediate {
        Some(dtype) => R::new(dtype.decode(dtype.encode(weight.value()))),
        None => weight,
    }
}

/// softmax(q kᵀ·scale) v.
pub fn attention<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let setting = Setting::<R>::of(&call.inputs, call.schema, call.parameters, plan)?;
    let batches = setting.q.shape()[0];
    let keys = match plan.mutation {
        Some(Mutation::DropMask) => setting.keys.next_power_of_two(),
        _ => setting.keys,
    };
    for batch in 0..batches {
        for head in 0..setting.heads {
            let key_head = setting.key_head(plan, head);
            let load_all = |buffer: &Buffer| -> Result<Vec<Vec<R>>, RunnerError> {
                (0..keys).map(|key| Setting::<R>::vector(buffer, batch, key_head, key)).collect()
            };
            let (k, v) = (load_all(setting.k)?, load_all(setting.v)?);
            for query in 0..setting.queries {
                let q: Vec<R> = Setting::vector(setting.q, batch, head, query)?;
                let mut scores = Vec::with_capacity(keys);
                for (key, vector) in k.iter().enumerate() {
                    let visible = key >= setting.keys || setting.sees(plan, query, key)?;
                    let skipped =
                        plan.mutation.is(Mutation::SkipElement) && key == setting.keys / 2 && setting.keys > 1;
                    let products: Vec<R> = q.iter().zip(vector).map(|(x, y)| *x * *y).collect();
                    let score = setting.score(add_up(plan, &products));
                    scores.push(if visible && !skipped { score } else { R::lowest() });
                }
                if let Some(Mutation::PadZero(multiple)) = plan.mutation {
                    scores.resize(setting.keys.next_multiple_of(multiple.max(1)), R::zero());
                }
                let maximum = finite_maximum(scores.iter().fold(R::lowest(), |most, score| most.larger(*score)));
                let weights: Vec<R> = scores.iter().map(|score| (*score - maximum).exp(plan.style.exp)).collect();
                let total = add_up(plan, &weights);
                let row = (batch * setting.heads + head) * setting.queries + query;
                for column in 0..setting.width {
                    let terms: Vec<R> = weights
                        .iter()
                        .zip(&v)
                        .map(|(weight, vector)| round_weight(*weight, plan.style.intermediate) * vector[column])
                        .collect();
                    let mut value = add_up(plan, &terms).over(total, plan.style.division);
                    if setting.zero_rows && total == R::zero() {
                        value = R::zero();
                    }
                    let output = &mut call.outputs[0];
                    store(output, (output.offset() + row * setting.width + column) as isize, scaled(plan, value))?;
                }
                if let Some(lse) = call.outputs.get_mut(1) {
                    store(lse, (lse.offset() + row) as isize, maximum + total.ln())?;
                }
            }
        }
    }
    Ok(())
}
