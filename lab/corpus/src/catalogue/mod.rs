//! Stand-ins of the op catalogue, group by group: for each op correct kernels in several styles and orders of
//! summation, and the mutations that make them wrong.

mod attention;
mod backward;
mod convolution;
mod elementwise;
mod experts;
mod indexing;
mod linear;
mod loss;
mod normalisation;
mod optimiser;
mod quantisation;
mod reduction;
mod scan;

use crate::implementations::Family;

/// Every op of the groups.
pub fn families() -> Vec<Family> {
    let groups = [
        attention::families(),
        backward::families(),
        convolution::families(),
        elementwise::families(),
        experts::families(),
        indexing::families(),
        linear::families(),
        loss::families(),
        normalisation::families(),
        optimiser::families(),
        quantisation::families(),
        reduction::families(),
    ];
    groups.into_iter().flatten().collect()
}
