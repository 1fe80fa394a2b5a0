//! scatter_add, index_add and the gradient of an embedding: sums of whatever shares an index.

use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    let in_place = "input[M,N] index:int64[K] in 0..M source[K,N] alpha:float=1.0 -> input[M,N]";
    let apart = "input[M,N] index:int64[K] in 0..M source[K,N] alpha:float=1.0 -> out[M,N]";
    vec![
        scatter_add(),
        index_add("index_add", apart, "Rows added"),
        index_add("index_add_", in_place, "Rows added in place"),
        embedding_backward(),
    ]
}

const OVERFLOW: &str = "sum of |addends|";

/// δ in words.
const BOUND: &str = "u*F*sum(|addends|), F of as many addends as share the index; 0 where nothing is added";

/// Sums by atomics come in another order each time.
fn atomic(mut schema: Schema) -> Schema {
    schema.precision.atomics = true;
    schema.amplified_by(&[Strategy::Integers, Strategy::Regular])
}

fn scatter_add() -> BuiltIn {
    BuiltIn::new(
        atomic(Schema::builtin("scatter_add", "input[M,N] index:int64[M,K] in 0..N src[M,K] -> out[M,N]"))
            .alias(&["scatter_add_"])
            .at_least("N", 1)
            .reduces(&["K"])
            .describe(
                "Elements added to columns of their own row (torch.scatter_add with dim=1); those that share a column add up.",
                "out[i,c] = input[i,c] + sum(src[i,j] for index[i,j] == c)",
            )
            .help("index", "the column that each element of `src` is added to")
            .help("src", "what is added")
            .keywords(&["atomic", "segment sum", "accumulate", "put"])
            .bounded_by(BOUND)
            .holds(&[Property::Linear { input: "src" }, Property::Linear { input: "input" }])
            .usual_bugs(&[
                "store in place of an atomic add: elements that share an index are lost",
                "input not added",
                "last indices of a row ignored",
                "accumulation in a narrow dtype",
            ]),
        expect_scatter_add,
    )
}

fn index_add(name: &str, signature: &str, what: &str) -> BuiltIn {
    BuiltIn::new(
        atomic(Schema::builtin(name, signature))
            .at_least("M", 1)
            .reduces(&["K"])
            .choices("alpha", &[Scalar::Float(1.0), Scalar::Float(-2.0), Scalar::Float(0.3)])
            .describe(
                &format!(
                    "{what} to rows by index (torch.{name} with dim=0), times `alpha`; those that share a row add up."
                ),
                "out[r] = input[r] + alpha*sum(source[i] for index[i] == r)",
            )
            .help("index", "the row that each row of `source` is added to")
            .help("source", "what is added")
            .help("alpha", "factor on `source`")
            .keywords(&["atomic", "segment sum", "accumulate", "scatter rows"])
            .bounded_by(BOUND)
            .holds(&[Property::Linear { input: "source" }, Property::Linear { input: "input" }])
            .usual_bugs(&[
                "store in place of an atomic add: rows that share an index are lost",
                "alpha missing, or on the input as well",
                "last columns of a row not added",
                "accumulation in a narrow dtype",
            ]),
        expect_index_add,
    )
}

fn embedding_backward() -> BuiltIn {
    BuiltIn::new(
        atomic(Schema::builtin(
            "embedding_backward",
            "grad_output[N,D] indices:int64[N] in 0..num_weights num_weights:int=16 padding_idx:int=-1 scale_grad_by_freq:bool=false -> grad_weight[num_weights,D]",
        ))
        .alias(&["embedding_dense_backward"])
        .reduces(&["N"])
        .choices("num_weights", &[Scalar::Int(16), Scalar::Int(1), Scalar::Int(7), Scalar::Int(64)])
        .choices("padding_idx", &[Scalar::Int(-1), Scalar::Int(0), Scalar::Int(-1)])
        .choices("scale_grad_by_freq", &[Scalar::Bool(false), Scalar::Bool(true)])
        .describe(
            "Gradient of an embedding's table: rows of the upstream gradient added up by index; zero for rows that no index names and for `padding_idx`.",
            "grad_weight[v] = sum(grad_output[i] for indices[i] == v), over their count where scale_grad_by_freq",
        )
        .help("grad_output", "upstream gradient, one row for each index")
        .help("indices", "the row of the table that each was read from")
        .help("num_weights", "rows of the table")
        .help("padding_idx", "the row whose gradient is zero, -1 for none")
        .help("scale_grad_by_freq", "whether a row's gradient is divided by how often its index occurs")
        .keywords(&["gradient", "table", "atomic", "segment sum", "token"])
        .bounded_by(BOUND)
        .holds(&[Property::Linear { input: "grad_output" }, Property::Homogeneous { input: "grad_output", degree: 1 }])
        .usual_bugs(&[
            "store in place of an atomic add: tokens that occur twice are lost",
            "gradient of the padding index not zeroed",
            "rows that no index names left unwritten",
            "accumulation in a narrow dtype",
        ]),
        expect_embedding_backward,
    )
}

/// Which entries name each of `count` places, in order.
fn by_place(index: &[f64], count: usize) -> Vec<Vec<usize>> {
    let mut entries = vec![Vec::new(); count];
    for (entry, place) in index.iter().enumerate() {
        if let Some(list) = entries.get_mut(*place as usize) {
            list.push(entry);
        }
    }
    entries
}

/// F of `addends` that share an index, of `all` that there are. Kernels add them up alone, or run over all with zeros
/// for the others: an addend then goes through no more roundings than there are others, and no more than the order of
/// them all has. What it is added to takes one more.
fn summation(call: &Call<'_>, addends: usize, all: usize) -> Result<f64, OpError> {
    let share = if call.units.reference > 0.0 { 2.0 } else { 1.0 };
    let alone = call.summation(addends.max(1))?;
    let among_all = call.summation(all.max(1)).unwrap_or(f64::INFINITY);
    Ok(alone.max(among_all.min(share * addends as f64)) + share)
}

fn expect_scatter_add(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, index, src) = (call.input("input")?, call.input("index")?, call.input("src")?);
    let (rows, columns, taken) = (call.size("M")?, call.size("N")?, call.size("K")?);
    let arithmetic = Arithmetic::of(call);
    let mut expectation = Expectation::with_capacity(input.len());
    for row in 0..rows {
        let added = &src[row * taken..][..taken];
        let entries = by_place(&index[row * taken..][..taken], columns);
        for (start, entries) in input[row * columns..][..columns].iter().zip(&entries) {
            let addends = entries.iter().map(|entry| Rounded::exact(added[*entry]));
            let terms = std::iter::once(Rounded::exact(*start)).chain(addends);
            let total = arithmetic.sum(terms, summation(call, entries.len(), taken)?);
            expectation.push_rounded(total, OVERFLOW);
        }
    }
    Ok(vec![expectation])
}

fn expect_index_add(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, index, source) = (call.input("input")?, call.input("index")?, call.input("source")?);
    let (rows, columns) = (call.size("M")?, call.size("N")?);
    let arithmetic = Arithmetic::of(call);
    let alpha = arithmetic.constant(call.float("alpha")?);
    let mut expectation = Expectation::with_capacity(input.len());
    for (row, entries) in by_place(index, rows).iter().enumerate() {
        let roundings = summation(call, entries.len(), index.len())?;
        for column in 0..columns {
            let added = |entry: &usize| arithmetic.multiply(alpha, Rounded::exact(source[entry * columns + column]));
            let start = Rounded::exact(input[row * columns + column]);
            let terms = std::iter::once(start).chain(entries.iter().map(added));
            expectation.push_rounded(arithmetic.sum(terms, roundings), OVERFLOW);
        }
    }
    Ok(vec![expectation])
}

fn expect_embedding_backward(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (gradient, index) = (call.input("grad_output")?, call.input("indices")?);
    let (rows, columns) = (call.size("num_weights")?, call.size("D")?);
    let (padding, scaled) = (call.int("padding_idx")?, call.flag("scale_grad_by_freq"));
    let arithmetic = Arithmetic::of(call);
    let mut expectation = Expectation::with_capacity(rows * columns);
    for (row, entries) in by_place(index, rows).iter().enumerate() {
        if entries.is_empty() || usize::try_from(padding).is_ok_and(|padding| padding == row) {
            (0..columns).for_each(|_| expectation.push(0.0, 0.0));
            continue;
        }
        let roundings = summation(call, entries.len(), index.len())?;
        let count = Rounded::exact(entries.len() as f64);
        for column in 0..columns {
            let terms = entries.iter().map(|entry| Rounded::exact(gradient[entry * columns + column]));
            let mut total = arithmetic.sum(terms.clone(), roundings);
            if scaled && entries.len() > 1 {
                // Each addend is divided, or the sum is, which may have overflowed by then.
                let each = arithmetic.sum(terms.map(|term| arithmetic.divide(term, count)), roundings);
                let overflow = if total.overflow == Overflow::None { each.overflow } else { Overflow::Before };
                total = Rounded { overflow, ..each };
            }
            expectation.push_rounded(total, OVERFLOW);
        }
    }
    Ok(vec![expectation])
}
