//! The launch table of a `[[kernels]]` entry: how a compiled kernel is launched for any case of an op.

use gpuemu_model::schema::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

use super::expression::{EvaluationError, Expression, LaunchContext, Value};
use super::kernels::KernelTable;
use super::located::Located;

/// Sizes or arguments, as written.
pub(super) type ExpressionList = Option<Located<Vec<Located<Expression>>>>;

/// One of `variants`: a compiled kernel fixes dtype, block size and alignment, so there are several.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariantTable {
    /// When it is launched, as in `"next_pow2(H) == 256 && dtype == 'float16'"`. The first one that holds is taken.
    pub when: Located<Expression>,
    /// The compiled kernel.
    pub ptx: Located<String>,
    /// In place of the kernel's own.
    pub entry: Option<Located<String>>,
    /// In place of the kernel's own.
    pub grid: Option<Located<Vec<Located<Expression>>>>,
    /// In place of the kernel's own.
    pub block: Option<Located<Vec<Located<Expression>>>>,
    /// In place of the kernel's own.
    pub shared: Option<Located<Expression>>,
    /// In place of the kernel's own.
    pub args: Option<Located<Vec<Located<Expression>>>>,
}

/// How a kernel is launched.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchTable {
    /// What holds where no variant says otherwise.
    pub common: LaunchForm,
    /// Compiled kernels, of which the first whose condition holds is launched. If there is none, the kernel's source
    /// is, for every case.
    pub variants: Vec<LaunchVariant>,
}

/// A compiled kernel for some cases.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchVariant {
    /// When it is launched.
    pub when: Expression,
    /// The compiled kernel, relative to the project.
    pub ptx: String,
    pub form: LaunchForm,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LaunchForm {
    /// The entry; the only one of the file if nothing is said.
    pub entry: Option<String>,
    /// Blocks in x, y and z.
    pub grid: [Expression; 3],
    /// Threads of a block in x, y and z.
    pub block: [Expression; 3],
    /// Bytes of dynamic shared memory; what the compiler asks for if nothing is said.
    pub shared: Option<Expression>,
    /// The arguments, in the order of the PTX.
    pub args: Vec<Expression>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LaunchArgument {
    /// A pointer to a tensor of the op.
    Tensor(String),
    /// A number; the parameter's type decides its bytes.
    Value(Value),
    /// A null pointer: what Triton's two scratch parameters at the end are given.
    Null,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CaseLaunch<'a> {
    /// The compiled kernel; the kernel's source if nothing is said.
    pub ptx: Option<&'a str>,
    pub entry: Option<&'a str>,
    /// Blocks in x, y and z; none at all, where one is 0, is no launch.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory; what the compiler asks for if nothing is said.
    pub shared: Option<u32>,
    pub args: Vec<LaunchArgument>,
}

/// Why there is no launch of a case.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CaseLaunchError {
    /// An expression comes to nothing.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// A size cannot be one.
    #[error("{what} is {value}, by the expression \"{text}\", but must be from {least} to 4294967295")]
    Size {
        what: &'static str,
        text: String,
        /// What it comes to.
        value: i64,
        /// What it must at least be.
        least: i64,
    },
}

impl LaunchTable {
    /// The variant that a case is launched by, and nothing where none covers it. Without variants every case is
    /// covered, by the source.
    pub fn covering(&self, context: &dyn LaunchContext) -> Result<Option<Covering<'_>>, EvaluationError> {
        if self.variants.is_empty() {
            return Ok(Some(Covering { ptx: None, form: &self.common }));
        }
        for variant in &self.variants {
            if variant.when.holds(context)? {
                return Ok(Some(Covering { ptx: Some(&variant.ptx), form: &variant.form }));
            }
        }
        Ok(None)
    }
}

/// What a case is launched by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Covering<'a> {
    /// The compiled kernel; the kernel's source if nothing is said.
    pub ptx: Option<&'a str>,
    pub form: &'a LaunchForm,
}

impl<'a> Covering<'a> {
    pub fn launch(&self, context: &dyn LaunchContext) -> Result<CaseLaunch<'a>, CaseLaunchError> {
        let form = self.form;
        let three = |what: &'static str, least: i64, sizes: &[Expression; 3]| {
            let [x, y, z] = sizes;
            Ok::<_, CaseLaunchError>([
                size(what, x, least, context)?,
                size(what, y, least, context)?,
                size(what, z, least, context)?,
            ])
        };
        Ok(CaseLaunch {
            ptx: self.ptx,
            entry: form.entry.as_deref(),
            grid: three("a size of the grid", 0, &form.grid)?,
            block: three("a size of the block", 1, &form.block)?,
            shared: form.shared.as_ref().map(|shared| size("the shared memory", shared, 0, context)).transpose()?,
            args: form.args.iter().map(|argument| value_of(argument, context)).collect::<Result<_, _>>()?,
        })
    }
}

fn size(
    what: &'static str,
    expression: &Expression,
    least: i64,
    context: &dyn LaunchContext,
) -> Result<u32, CaseLaunchError> {
    let value = expression.integer(context)?;
    let size = u32::try_from(value).ok().filter(|_| value >= least);
    size.ok_or_else(|| CaseLaunchError::Size { what, text: expression.text().to_string(), value, least })
}

fn value_of(argument: &Expression, context: &dyn LaunchContext) -> Result<LaunchArgument, EvaluationError> {
    match argument.name() {
        Some("null") => Ok(LaunchArgument::Null),
        // A dim may have the name of a tensor; a pointer is what an argument that is only a name means first.
        Some(name) if context.tensor(name).is_some() => Ok(LaunchArgument::Tensor(name.to_string())),
        _ => argument.evaluate(context).map(LaunchArgument::Value),
    }
}

/// The launch table; none unless the kernel, or all of its variants, say what a launch needs.
pub(super) fn resolve_launch(table: &KernelTable) -> Option<LaunchTable> {
    let common = LaunchForm {
        entry: table.entry.as_ref().map(|located| located.value.clone()),
        grid: three(&table.grid).unwrap_or_else(ones),
        block: three(&table.block).unwrap_or_else(ones),
        shared: table.shared.as_ref().map(|located| located.value.clone()),
        args: list(&table.args).unwrap_or_default(),
    };
    let variants = table.variants.iter().flat_map(|variants| &variants.value).map(|variant| LaunchVariant {
        when: variant.when.value.clone(),
        ptx: variant.ptx.value.clone(),
        form: LaunchForm {
            entry: variant.entry.as_ref().map_or_else(|| common.entry.clone(), |located| Some(located.value.clone())),
            grid: three(&variant.grid).unwrap_or_else(|| common.grid.clone()),
            block: three(&variant.block).unwrap_or_else(|| common.block.clone()),
            shared: variant.shared.as_ref().map(|located| located.value.clone()).or_else(|| common.shared.clone()),
            args: list(&variant.args).unwrap_or_else(|| common.args.clone()),
        },
    });
    let variants: Vec<LaunchVariant> = variants.collect();
    (table.grid.is_some() || !variants.is_empty()).then_some(LaunchTable { common, variants })
}

fn ones() -> [Expression; 3] {
    std::array::from_fn(|_| 1.into())
}

fn list(written: &ExpressionList) -> Option<Vec<Expression>> {
    let written = written.as_ref()?;
    Some(written.value.iter().map(|located| located.value.clone()).collect())
}

/// Sizes that are not written are 1.
fn three(written: &ExpressionList) -> Option<[Expression; 3]> {
    let written = list(written)?;
    Some(std::array::from_fn(|index| written.get(index).cloned().unwrap_or_else(|| 1.into())))
}
