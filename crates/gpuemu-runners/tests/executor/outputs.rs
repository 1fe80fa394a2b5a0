//! Callables that are given memory for their outputs.

use gpuemu_config::Framework;
use gpuemu_engine::runner::Buffer;
use gpuemu_runners::executor::{Arguments, Callable, ExecutorError, Pool, Program, Seen, Watch};
use gpuemu_tensor::DType;
use serde_json::Map;

use crate::project::{PATIENCE, Project, named};

const OPS: &str = r#"
import numpy as np
kept = []
def fills(x, out): np.multiply(x, 2, out=out)
def returns(x, out): return np.multiply(x, 2, out=out)
def returns_part(x, out):
    np.multiply(x, 2, out=out)
    return out.reshape(-1)[::-1][1:]
def other(x, out): return x * 2
def as_list(x, out):
    np.multiply(x, 2, out=out)
    return [out]
def copies(x, out):
    np.multiply(x, 2, out=out)
    return {"out": out.copy()}
def tail(x, out): np.multiply(x[:-1], 2, out=out[:-1])
def past(x, out):
    np.multiply(x, 2, out=out)
    np.lib.stride_tricks.as_strided(out, (out.size + 1,))[-1] = 0
def before(x, out):
    np.multiply(x, 2, out=out)
    np.lib.stride_tricks.as_strided(out[:1], (2,), (-out.itemsize,))[1] = 0
def spoils(x, out):
    np.multiply(x, 2, out=out)
    x[1:] = 0
def pair(x, out):
    np.multiply(x, 2, out=out[0])
    out[1][...] = x.sum()
def raises(x, out): raise ValueError("no")
def keywords(x, **kwargs): return x * (len(kwargs) + 2)
def of_dict(inputs, out): np.multiply(inputs["x"], 2, out=out)
"#;

const POISON: u8 = 0xab;

/// Calls a callable with memory for outputs of these shapes, by a keyword that its signature names.
fn write(
    callable: &mut Callable,
    dtype: DType,
    shapes: &[&[usize]],
) -> Result<(Vec<Buffer>, Vec<Seen>), ExecutorError> {
    let inputs = [named("x", dtype, &[3], &[1.0, 2.0, 3.0])];
    let mut outputs: Vec<Buffer> = shapes.iter().map(|shape| Buffer::poisoned(dtype, shape.to_vec(), POISON)).collect();
    let out = callable.accepted().out_keyword(["x"].into_iter()).map(ToString::to_string);
    let watch = Watch { poison: POISON, out, output_bytes: vec![12; shapes.len()], ..Watch::default() };
    let arguments = Arguments { inputs: &inputs, parameters: &Map::new(), timeout: PATIENCE };
    let (returned, seen) = callable.call_watched(&arguments, &watch, &mut outputs)?;
    assert_eq!(returned.is_empty(), watch.out.is_some());
    Ok((outputs, seen))
}

fn values(output: &Buffer) -> Vec<f64> {
    output.to_tensor().unwrap().to_f64()
}

#[test]
fn outputs_are_written_into_memory_that_is_given() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", OPS);
    let pool = Pool::new(8);
    let callable = |name: &str| project.callable(&pool, &format!("ops:{name}")).unwrap();
    // The worker of the first call, and the same once it is warm.
    for name in ["fills", "returns", "returns_part", "of_dict", "fills"] {
        for dtype in [DType::F32, DType::BF16] {
            let (outputs, seen) = write(&mut callable(name), dtype, &[&[3]]).unwrap();
            assert_eq!((values(&outputs[0]), seen), (vec![2.0, 4.0, 6.0], vec![]), "{name}");
            assert_eq!(outputs[0].guard_damage(), None, "{name}");
        }
    }
    let (outputs, _) = write(&mut callable("pair"), DType::F32, &[&[3], &[]]).unwrap();
    assert_eq!(outputs.iter().map(values).collect::<Vec<_>>(), [vec![2.0, 4.0, 6.0], vec![6.0]]);
    // What takes any keyword promises nothing about outputs: it is given none.
    assert_eq!(write(&mut callable("keywords"), DType::F32, &[&[3]]).unwrap().0[0].data(), [POISON; 12]);
    // Where nothing is watched, as of a reference, nothing is given either.
    let error = crate::project::call(&mut callable("fills"), &[named("x", DType::F32, &[1], &[1.0])]).unwrap_err();
    assert!(error.to_string().contains("missing 1 required positional argument: 'out'"), "{error}");
}

#[test]
fn what_is_written_beside_outputs_or_not_at_all_is_seen() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", OPS);
    let pool = Pool::new(8);
    let outcome = |name: &str| {
        let mut callable = project.callable(&pool, &format!("ops:{name}")).unwrap();
        write(&mut callable, DType::F32, &[&[3]])
    };
    let (outputs, seen) = outcome("tail").unwrap();
    assert_eq!((outputs[0].data()[8..].to_vec(), seen), (vec![POISON; 4], vec![]));
    for (name, after) in [("past", true), ("before", false)] {
        let damage = outcome(name).unwrap().0[0].guard_damage().unwrap();
        assert_eq!((damage.after, damage.distance, damage.bytes), (after, 0, 4), "{name}");
    }
    let modified = Seen::InputModified { input: "x".to_string(), elements: 2, first: 1 };
    assert_eq!(outcome("spoils").unwrap().1, [modified]);
    for (name, words) in [
        ("other", "it took `out=` and returned another array; return that one, or nothing"),
        ("copies", "it took `out=` and returned another array; return that one, or nothing"),
        ("as_list", "output 'output' is of type list, which is no array"),
        ("raises", "ValueError: no"),
    ] {
        let error = outcome(name).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
}

#[test]
fn frameworks_that_can_write_are_given_memory() {
    let Some(project) = Project::new() else { return };
    let ops = "def op(x, out=None):\n    if out is None:\n        return x + x\n    out[:-1] = (x + x)[:-1]\n";
    project.write("ops.py", ops);
    let pool = Pool::new(4);
    for framework in [Framework::Pytorch, Framework::Jax, Framework::Tensorflow] {
        let mut callable = match pool.callable(&project.interpreter(), "ops", "op", framework) {
            Ok(callable) => callable,
            Err(error) => {
                eprintln!("skipped: {error}");
                continue;
            }
        };
        for dtype in [DType::F32, DType::BF16] {
            let given = framework == Framework::Pytorch;
            assert_eq!(callable.accepted().out_keyword(["x"].into_iter()).is_some(), given);
            let (outputs, seen) = write(&mut callable, dtype, &[&[3]]).unwrap();
            assert_eq!((outputs[0].guard_damage(), seen), (None, vec![]));
            let written = if given { vec![2.0, 4.0] } else { values(&Buffer::poisoned(dtype, vec![2], POISON)) };
            assert_eq!(values(&outputs[0])[..2], written);
            assert!(outputs[0].data().ends_with(&vec![POISON; dtype.size()]));
        }
    }
}
