//! conv1d and conv2d: cross-correlation with stride, zero padding, dilation and groups.

use crate::case::Strategy;
use crate::ops::convolution::dot::{Dot, Products};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

/// conv1d.
pub(in crate::ops) fn conv1d() -> BuiltIn {
    let signature = "input[N,G*C,L] weight[G*O,C,K] bias?[G*O] stride:int=1 padding:int=0 dilation:int=1 -> out[N,G*O,(L+2*padding-dilation*(K-1)-1)/stride+1]";
    let schema = Schema::builtin("conv1d", signature)
        .alias(&["convolution1d", "conv_1d"])
        .describe(
            "1D cross-correlation (the kernel is not flipped) with stride, padding by zeros, dilation and G groups, each with its own C input channels and its own O output channels.",
            "out[n,o,l] = bias[o] + sum_{c,k} weight[o,c,k]*input[n,group(o)*C+c,l*stride-padding+k*dilation]",
        )
        .sizes("K", &[1, 2, 3, 5])
        // The longest kernel at its largest dilation.
        .at_least("L", 9);
    BuiltIn::new(shared(schema), |call| expect(call, &Geometry::one(call)?))
}

/// conv2d.
pub(in crate::ops) fn conv2d() -> BuiltIn {
    let signature = "input[N,G*C,H,W] weight[G*O,C,KH,KW] bias?[G*O] stride:int=1 padding:int=0 dilation:int=1 -> out[N,G*O,(H+2*padding-dilation*(KH-1)-1)/stride+1,(W+2*padding-dilation*(KW-1)-1)/stride+1]";
    let schema = Schema::builtin("conv2d", signature)
        .alias(&["convolution", "convolution2d", "conv_2d", "depthwise_conv2d"])
        .describe(
            "2D cross-correlation (the kernel is not flipped) with stride, padding by zeros and dilation, the same for both dims, and G groups, each with its own C input channels and its own O output channels.",
            "out[n,o,y,x] = bias[o] + sum_{c,i,j} weight[o,c,i,j]*input[n,group(o)*C+c,y*stride-padding+i*dilation,x*stride-padding+j*dilation]",
        )
        .sizes("KH", &[1, 2, 3])
        .sizes("KW", &[1, 3, 5])
        .at_least("H", 5)
        .at_least("W", 9)
        .at_most("H", 128)
        .at_most("W", 128);
    BuiltIn::new(shared(schema), |call| expect(call, &Geometry::two(call)?))
}

fn shared(schema: Schema) -> Schema {
    let numbers = |values: &[i64]| values.iter().map(|value| Scalar::Int(*value)).collect::<Vec<_>>();
    let mut schema = schema.reduces(&["C"]);
    for (dimension, most) in [("G", 8), ("C", 256), ("O", 64)] {
        schema = schema.at_least(dimension, 1).at_most(dimension, most);
    }
    schema
        .choices("stride", &numbers(&[1, 2, 3]))
        .choices("padding", &numbers(&[0, 1, 2]))
        .choices("dilation", &numbers(&[1, 2]))
        .help("weight", "one kernel for each output channel; C is the number of input channels of a group")
        .help("bias", "added to each output channel")
        .help("stride", "steps of the kernel, 1 or more")
        .help("padding", "zeros on each side")
        .help("dilation", "distance between the taps of the kernel, 1 or more")
        .keywords(&["cnn", "cross-correlation", "depthwise", "groups", "im2col", "implicit gemm"])
        .bounded_by(
            "u*F*(|input|*|weight| + |bias|) with F over C*K products and the bias (K*K in 2D); no Winograd or FFT",
        )
        .holds(&[Property::Linear { input: "input" }, Property::Linear { input: "weight" }])
        .amplified_by(&[Strategy::Integers, Strategy::Regular])
        .usual_bugs(&[
            "padding not masked at an edge",
            "kernel flipped",
            "channels of another group",
            "stride and dilation swapped",
            "last channels dropped",
        ])
}

/// Sizes of a convolution; in one dim the height is 1.
struct Geometry {
    batch: usize,
    groups: usize,
    channels: usize,
    outputs: usize,
    input: [usize; 2],
    kernel: [usize; 2],
    padding: [usize; 2],
    stride: usize,
    dilation: usize,
    output: [usize; 2],
}

impl Geometry {
    fn one(call: &Call<'_>) -> Result<Self, OpError> {
        Self::of(call, [1, call.size("L")?], [1, call.size("K")?], [0, call.size("padding")?])
    }

    fn two(call: &Call<'_>) -> Result<Self, OpError> {
        let padding = call.size("padding")?;
        let (input, kernel) = ([call.size("H")?, call.size("W")?], [call.size("KH")?, call.size("KW")?]);
        Self::of(call, input, kernel, [padding; 2])
    }

    fn of(call: &Call<'_>, input: [usize; 2], kernel: [usize; 2], padding: [usize; 2]) -> Result<Self, OpError> {
        let (stride, dilation) = (call.size("stride")?, call.size("dilation")?);
        let mut output = [0; 2];
        for axis in 0..2 {
            let reach = dilation * kernel[axis].saturating_sub(1) + 1;
            let room = (input[axis] + 2 * padding[axis]).checked_sub(reach);
            // A stride of 0 or a kernel longer than its input has no output shape, and no case gets here.
            let steps = room.and_then(|room| room.checked_div(stride));
            output[axis] = steps.ok_or_else(|| OpError::MissingSize("stride".to_string()))? + 1;
        }
        let (batch, groups) = (call.size("N")?, call.size("G")?);
        let (channels, outputs) = (call.size("C")?, call.size("O")?);
        Ok(Self { batch, groups, channels, outputs, input, kernel, padding, stride, dilation, output })
    }

    /// Where a tap falls along an axis; nothing where that is padding.
    fn place(&self, axis: usize, output: usize, tap: usize) -> Option<usize> {
        let place = (output * self.stride + tap * self.dilation).checked_sub(self.padding[axis])?;
        (place < self.input[axis]).then_some(place)
    }
}

fn expect(call: &Call<'_>, geometry: &Geometry) -> Result<Vec<Expectation>, OpError> {
    let (input, weight, bias) = (call.input("input")?, call.input("weight")?, call.optional("bias"));
    let Geometry { batch, groups, channels, outputs, input: [height, width], kernel, output, .. } = *geometry;
    let taps = kernel[0] * kernel[1];
    let products = Products::of(call, &[input, weight], bias, channels * taps)?;
    let flush = products.units.flush;
    let mut expectation = Expectation::with_capacity(batch * groups * outputs * output[0] * output[1]);
    for (entry, filter) in (0..batch).flat_map(|entry| (0..groups * outputs).map(move |filter| (entry, filter))) {
        let first_channel = (entry * groups + filter / outputs) * channels;
        let weights = &weight[filter * channels * taps..][..channels * taps];
        let own_bias = bias.and_then(|bias| bias.get(filter)).copied();
        for (row, column) in (0..output[0]).flat_map(|row| (0..output[1]).map(move |column| (row, column))) {
            let mut dot = Dot::starting(own_bias);
            for channel in 0..channels {
                let plane = &input[(first_channel + channel) * height * width..][..height * width];
                for (tap, weight) in weights[channel * taps..][..taps].iter().enumerate() {
                    let down = geometry.place(0, row, tap / kernel[1]);
                    match (down, geometry.place(1, column, tap % kernel[1])) {
                        (Some(down), Some(along)) => dot.add(plane[down * width + along], *weight, flush),
                        _ => dot.pad(*weight),
                    }
                }
            }
            dot.push(&products, &mut expectation);
        }
    }
    Ok(vec![expectation])
}
