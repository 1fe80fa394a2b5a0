//! cross_entropy of logits against class indices: one loss per row, or their mean.

use crate::case::Strategy;
use crate::ops::loss::row_loss::{LOGIT_SUM, RowLoss, RowLosses, mean_of};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

/// The per-row op.
pub(in crate::ops) fn op() -> BuiltIn {
    let signature =
        "input[N,V] target:int64[N] in 0..V or ignore_index label_smoothing:float=0.0 ignore_index:int=-100 -> out[N]";
    let schema = Schema::builtin("cross_entropy", signature)
        .alias(&["cross_entropy_loss", "softmax_cross_entropy", "sparse_categorical_crossentropy"])
        .describe(
            "Negative log-likelihood of one class per row (reduction none), mixed with that of all classes by `label_smoothing`; 0 for a row whose target is `ignore_index`, whatever its logits are. A row with NaN or +Inf, or of -Inf only, is NaN.",
            "(1 - label_smoothing)*(max + log(sum(exp(x - max))) - x[target]) + label_smoothing*mean(max + log(sum(exp(x - max))) - x)",
        )
        .bounded_by("u*(F + aW + E + 3*log S + 3*(|max| + |x[target]|)); smoothing adds its share of u*(F + 3)*mean(max(|x|, |lse - x|))");
    BuiltIn::new(shared(schema), expect)
}

/// The mean of the rows that are not ignored.
pub(in crate::ops) fn mean_op() -> BuiltIn {
    let signature =
        "input[N,V] target:int64[N] in 0..V or ignore_index label_smoothing:float=0.0 ignore_index:int=-100 -> out[]";
    let schema = Schema::builtin("cross_entropy_mean", signature)
        .alias(&["cross_entropy_loss_mean", "liger_cross_entropy"])
        .reduces(&["N"])
        .describe(
            "Mean of the negative log-likelihoods of one class per row over the rows whose target is not `ignore_index` (reduction mean), mixed with that of all classes by `label_smoothing`; NaN where every row is ignored.",
            "mean over rows with target != ignore_index of (1 - label_smoothing)*(lse(x) - x[target]) + label_smoothing*mean(lse(x) - x)",
        )
        .bounded_by("mean of the rows' bounds, and u*(F + Q)*mean of their losses")
        .usual_bugs(&["divided by all rows, ignored ones too"]);
    BuiltIn::new(shared(schema), expect_mean)
}

fn shared(schema: Schema) -> Schema {
    smoothed(schema)
        .reduces(&["V"])
        .at_least("V", 1)
        .holds(&[Property::ShiftInvariant { input: "input" }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&["padding enters the denominator", "target off by one", "maximum not added back"])
}

/// What ops with these parameters share.
pub(super) fn smoothed(schema: Schema) -> Schema {
    schema
        .choices("label_smoothing", &[Scalar::Float(0.0), Scalar::Float(0.1)])
        .choices("ignore_index", &[Scalar::Int(-100), Scalar::Int(-1), Scalar::Int(0)])
        .help("target", "the class of each row, or `ignore_index`")
        .help("label_smoothing", "the share of the loss that is the mean over all classes, the target included")
        .help("ignore_index", "a target with this value is ignored; it may be a class too")
        .keywords(&["loss", "classification", "nll", "logits", "language model"])
        .usual_bugs(&["ignored rows counted", "smoothing leaves the target out"])
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let target = call.input("target")?;
    let mut expectation = Expectation::with_capacity(target.len());
    for loss in losses(call)? {
        match loss {
            RowLoss::Ignored => expectation.push(0.0, 0.0),
            RowLoss::Undetermined(y, reason) => expectation.push_undetermined(y, reason),
            RowLoss::Known(loss) => expectation.push_rounded(loss, LOGIT_SUM),
        }
    }
    Ok(vec![expectation])
}

fn expect_mean(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    mean_of(losses(call)?, LOGIT_SUM, call)
}

fn losses(call: &Call<'_>) -> Result<Vec<RowLoss>, OpError> {
    let (input, target, width) = (call.input("input")?, call.input("target")?, call.size("V")?);
    let mut rows = RowLosses::new(call, width)?;
    let pairs = input.chunks_exact(width.max(1)).zip(target);
    pairs.map(|(row, target)| rows.of(row, None, *target)).collect()
}

#[cfg(test)]
mod tests {
    use gpuemu_tensor::DType;

    use crate::case::{Sampler, materialise};
    use crate::ops::{self, ExcuseKind};
    use crate::oracle::Subject;

    #[test]
    fn vocabularies_of_language_models_can_be_judged() {
        for op in ["cross_entropy", "cross_entropy_mean"] {
            let subject = Subject::new(ops::find(op).unwrap());
            for (seed, width) in [(1, 50_257), (2, 131_072), (3, 128_256)] {
                let shapes = vec![vec![("N".to_string(), 3), ("V".to_string(), width)]];
                let sampler = Sampler { shapes, dtypes: vec![DType::BF16, DType::F32], ..Sampler::default() };
                let case = materialise(subject.schema(), &subject.describe(&sampler, seed)).unwrap();
                let expectations = subject.expect(&case).unwrap();
                let excused = |kind: ExcuseKind| kind == ExcuseKind::Undetermined;
                assert!(!expectations[0].excuses.iter().any(|excuse| excused(excuse.kind)), "{op} {width}");
            }
        }
    }

    #[test]
    fn targets_that_are_ignored_are_generated_and_cost_nothing() {
        let subject = Subject::new(ops::find("cross_entropy").unwrap());
        let sampler = Sampler { dtypes: vec![DType::F32], ..Sampler::default() };
        let (mut ignored, mut targets) = (0, 0);
        for seed in 0..200 {
            let case = materialise(subject.schema(), &subject.describe(&sampler, seed)).unwrap();
            let index = case.descriptor.parameters.int("ignore_index").unwrap() as f64;
            let expectation = subject.expect(&case).unwrap().remove(0);
            for (target, y) in case.inputs[1].as_ref().unwrap().to_f64().into_iter().zip(&expectation.values) {
                targets += 1;
                if target == index {
                    ignored += 1;
                    assert_eq!(*y, 0.0);
                }
            }
        }
        assert!(ignored > targets / 16 && ignored < targets / 2, "{ignored} of {targets}");
    }
}
