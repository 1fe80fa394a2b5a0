//! What callables do to memory, and what they return in place of arrays.

use gpuemu_config::Framework;
use gpuemu_engine::runner::GuardDamage;
use gpuemu_runners::executor::{Arguments, Callable, ExecutorError, NamedTensors, Pool, Program, Seen, Watch};
use gpuemu_tensor::{DType, Tensor};
use serde_json::Map;

use crate::project::{PATIENCE, Project, call, laid_out, named, small};

const OPS: &str = r#"
import ml_dtypes, numpy as np
class Lazy:
    shape, dtype = (2,), np.dtype("float32")
    def __array__(self, dtype=None, copy=None): return np.ones(2, np.float32)
class Own(np.float32): pass
buffer, calls = np.zeros(300, np.float32), []
def right(x, y): return x + y
def spoil(x, y):
    out = x + y
    y[1:] += 1
    return out
def behind(x, y):
    np.lib.stride_tricks.as_strided(y, (y.size + 3,))[-2:] = 0
    return x + y
def ahead(x, y):
    np.lib.stride_tricks.as_strided(x[::-1], (x.size + 1,), (-4,))[-1] = 0
    return x + y
def same(x, y): return x
def part(x, y): return {"sum": x + y, "tail": y[::-1][:1]}
def reuse(x, y):
    np.add(x, y, out=buffer[:x.size].reshape(x.shape))
    return np.zeros(1), buffer[:x.size].reshape(x.shape)
def unwritten(x, y): return np.empty_like(x)
def addresses(x, y): return np.array([x.ctypes.data, y.ctypes.data])
def numbers(x, y): return np.float32(1), np.array(2.0), np.bool_(True), ml_dtypes.bfloat16(3)
def list_of_numbers(x, y): return [1.0, 2.0]
def list_of_arrays(x, y): return [x + y]
def lazy(x, y): return Lazy()
def matrix(x, y): return np.matrix(x + y)
def masked(x, y): return np.ma.array(x + y)
def memmap(x, y): return np.memmap("file", np.float32, "w+", shape=(2,))
def own(x, y): return Own(1)
def number(x, y): return 1.5
def nothing(x, y): return None
def nothing_inside(x, y): return x + y, None
"#;

fn inputs(values: [f64; 2]) -> NamedTensors {
    vec![named("x", DType::F32, &[2], &values), named("y", DType::F32, &[2], &[2.0, 3.0])]
}

fn watched(callable: &mut Callable, inputs: &[(String, Tensor)], poison: u8, refill: bool) -> Watched {
    let bytes = inputs.first().map_or(0, |(_, tensor)| tensor.len() * tensor.dtype().size());
    let watch = Watch { poison, output_bytes: vec![bytes, bytes], refill, ..Watch::default() };
    callable.call_watched(&Arguments { inputs, parameters: &Map::new(), timeout: PATIENCE }, &watch, &mut [])
}

type Watched = Result<(NamedTensors, Vec<Seen>), ExecutorError>;

fn aliasing(output: &str, input: &str) -> Seen {
    Seen::Aliasing { output: output.to_string(), input: input.to_string() }
}

fn modified(input: &str, elements: usize, first: usize) -> Seen {
    Seen::InputModified { input: input.to_string(), elements, first }
}

#[test]
fn what_a_callable_does_to_memory_is_seen() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", OPS);
    let pool = Pool::new(8);
    let callable = |name: &str| project.callable(&pool, &format!("ops:{name}")).unwrap();
    let seen = |name: &str| watched(&mut callable(name), &inputs([1.0, 2.0]), 0xff, false).unwrap().1;
    assert_eq!(seen("right"), []);
    assert_eq!(seen("spoil"), [modified("y", 1, 1)]);
    assert_eq!(seen("same"), [aliasing("output", "x")]);
    let outside = |input: &str, after, distance, bytes| {
        [Seen::OutOfBounds { input: input.to_string(), damage: GuardDamage { after, distance, bytes } }]
    };
    assert_eq!(seen("behind"), outside("y", true, 4, 8));
    assert_eq!(seen("ahead"), outside("x", false, 0, 4));
    // Marks that a call left are gone before the next.
    let mut behind = callable("behind");
    for refill in [false, true, false] {
        let found = watched(&mut behind, &inputs([1.0, 2.0]), 0xff, refill).unwrap().1;
        assert_eq!(found, outside("y", true, 4, 8));
    }
    assert_eq!(seen("part"), [aliasing("tail", "y")]);

    let mut reuse = callable("reuse");
    let overwritten = [Seen::OutputOverwritten { output: "1".to_string() }];
    assert_eq!(watched(&mut reuse, &inputs([1.0, 2.0]), 0xff, false).unwrap().1, []);
    for value in [5.0, 6.0] {
        assert_eq!(watched(&mut reuse, &inputs([value, 2.0]), 0xff, false).unwrap().1, overwritten);
    }
    // The same values in the same memory are no loss.
    assert_eq!(watched(&mut reuse, &inputs([6.0, 2.0]), 0xff, false).unwrap().1, []);
    // Whoever leases the worker next has nothing to do with these calls.
    drop(reuse);
    assert_eq!(watched(&mut callable("reuse"), &inputs([7.0, 2.0]), 0xff, false).unwrap().1, []);

    // A reference is not watched, and may return what can be made an array.
    assert_eq!(call(&mut callable("list_of_numbers"), &inputs([1.0, 2.0])).unwrap().len(), 2);
    assert!(call(&mut callable("lazy"), &inputs([1.0, 2.0])).is_ok());
    assert!(call(&mut callable("spoil"), &inputs([1.0, 2.0])).is_ok());
}

#[test]
fn what_is_written_in_place_is_read_off_the_input() {
    let Some(project) = Project::new() else { return };
    let ops = "def right(x, y):\n    x += y\ndef returned(x, y):\n    x += y\n    return x\n\
               def both(x, y):\n    out = x - y\n    x += y\n    return out\n\
               def elsewhere(x, y):\n    return x + y\ndef forgot(x, y):\n    pass\n";
    project.write("ops.py", ops);
    let pool = Pool::new(5);
    let call = |name: &str, outputs: &[&str]| {
        let inputs = inputs([1.0, 2.0]);
        let mut callable = project.callable(&pool, &format!("ops:{name}")).unwrap();
        let outputs = outputs.iter().map(ToString::to_string).collect();
        let watch = Watch { outputs, in_place: vec!["x".to_string()], ..Watch::default() };
        let arguments = Arguments { inputs: &inputs, parameters: &Map::new(), timeout: PATIENCE };
        let (outputs, _) = callable.call_watched(&arguments, &watch, &mut [])?;
        Ok::<_, ExecutorError>(outputs.into_iter().map(|(name, tensor)| (name, tensor.to_f64())).collect::<Vec<_>>())
    };
    let x = |values: [f64; 2]| ("x".to_string(), values.to_vec());
    assert_eq!(call("right", &["x"]).unwrap(), [x([3.0, 5.0])]);
    assert_eq!(call("returned", &["x"]).unwrap(), [x([3.0, 5.0])]);
    assert_eq!(call("both", &["out", "x"]).unwrap(), [("out".to_string(), vec![-1.0, -1.0]), x([3.0, 5.0])]);
    assert_eq!(call("forgot", &["x"]).unwrap(), [x([1.0, 2.0])]);
    let error = call("elsewhere", &["x"]).unwrap_err().to_string();
    assert!(error.contains("'x' came back as another array than the input"), "{error}");
}

#[test]
fn elements_of_strided_and_empty_inputs_are_counted() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", "import numpy as np\ndef op(x):\n    x[..., -1:] = 0\n    return np.array(x)\n");
    let mut callable = project.callable(&Pool::new(1), "ops").unwrap();
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::F8E4M3FN] {
        let plain = named("x", dtype, &[2, 3], &[1.0; 6]).1;
        for layout in gpuemu_tensor::Layout::ALL {
            let tensor = laid_out(layout, &plain);
            let (outputs, seen) = watched(&mut callable, &[("x".to_string(), tensor)], 0xff, false).unwrap();
            let [Seen::InputModified { elements, .. }] = seen.as_slice() else { panic!("{dtype} {layout}: {seen:?}") };
            // An element that a broadcast repeats lies in memory once.
            assert!((1..=2).contains(elements), "{dtype} {layout}: {seen:?}");
            assert_eq!(outputs[0].1.len(), 6);
        }
    }
    assert_eq!(watched(&mut callable, &[named("x", DType::F32, &[0, 3], &[])], 0xff, false).unwrap().1, []);
}

#[test]
fn memory_that_was_freed_holds_poison() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", OPS);
    let mut callable = project.callable(&Pool::new(1), "ops:unwritten").unwrap();
    for size in [2, 100, 3000, 40_000] {
        let inputs = [small("x", DType::F32, &[size]), small("y", DType::F32, &[size])];
        for poison in [0xff, 0xab] {
            // The first block of a length may come from the system.
            let _ = watched(&mut callable, &inputs, poison, false).unwrap();
            let (outputs, _) = watched(&mut callable, &inputs, poison, false).unwrap();
            let bytes = outputs[0].1.to_contiguous_bytes();
            let share = bytes.iter().filter(|byte| **byte == poison).count() as f64 / bytes.len() as f64;
            // The allocator has its own mind about blocks, and keeps its lists in them.
            assert!(share > if size == 2 { 0.0 } else { 0.5 }, "{size} {poison:x}: {share}");
        }
    }
}

#[test]
fn inputs_lie_elsewhere_or_where_they_lay() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", OPS);
    let mut callable = project.callable(&Pool::new(1), "ops:addresses").unwrap();
    let mut addresses = |size: usize, refill: bool| {
        let inputs = [small("x", DType::F32, &[size]), small("y", DType::F32, &[size])];
        watched(&mut callable, &inputs, 0xff, refill).unwrap().0[0].1.to_f64()
    };
    // Up to a length of which only the last call's are kept.
    for size in [5, 5000, 16 << 20] {
        let mut last = addresses(size, false);
        for _ in 0..6 {
            let now = addresses(size, false);
            assert!(now.iter().all(|address| !last.contains(address)), "{size}: {now:?} {last:?}");
            assert_eq!(addresses(size, true), now, "{size}");
            last = now;
        }
    }
    // There is nothing of that length to refill.
    addresses(7, true);
}

#[test]
fn what_only_becomes_an_array_is_refused() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", OPS);
    let pool = Pool::new(1);
    let outcome = |name: &str| {
        let mut callable = project.callable(&pool, &format!("ops:{name}")).unwrap();
        watched(&mut callable, &inputs([1.0, 2.0]), 0xff, false)
    };
    let (outputs, seen) = outcome("numbers").unwrap();
    let dtypes: Vec<DType> = outputs.iter().map(|(_, tensor)| tensor.dtype()).collect();
    assert_eq!((dtypes, seen), (vec![DType::F32, DType::F64, DType::Bool, DType::BF16], vec![]));
    for (name, words) in [
        ("list_of_numbers", "output 'output' is of type list, which is no array; return an array, or a tuple or dict"),
        ("list_of_arrays", "is of type list, which is no array"),
        ("lazy", "is of type ops.Lazy, which is no array"),
        ("matrix", "is of type numpy.matrix, a subclass of numpy.ndarray; return numpy.array(...) of it"),
        ("masked", "MaskedArray, a subclass of numpy.ndarray"),
        ("memmap", "memmap, a subclass of numpy.ndarray"),
        ("own", "is of type ops.Own, which is no array"),
        ("number", "is of type float, which is no array"),
        ("nothing", "it returned None"),
        ("nothing_inside", "output '1' is of type NoneType, which is no array"),
    ] {
        let error = outcome(name).unwrap_err();
        assert!(matches!(error, ExecutorError::BadOutput { .. }), "{name}: {error}");
        assert!(error.to_string().contains(words), "{name}: {error}");
    }
}

#[test]
fn memory_of_frameworks_is_watched_where_it_can_be_written() {
    let Some(project) = Project::new() else { return };
    let text = r#"
kept = {}
def right(x): return x + x
def same(x): return x[:]
def spoil(x):
    out = x + x
    x.mul_(2)
    return out
def reuse(x):
    import torch
    return torch.add(x, x, out=kept.setdefault(x.dtype, torch.empty(0, dtype=x.dtype)))
def subclass(x):
    import torch
    return x.as_subclass(type("Other", (torch.Tensor,), {}))
"#;
    project.write("ops.py", text);
    let pool = Pool::new(8);
    for framework in [Framework::Pytorch, Framework::Jax, Framework::Tensorflow] {
        let lease = |name: &str| pool.callable(&project.interpreter(), &format!("ops:{name}"), "op", framework);
        if let Err(error) = lease("right") {
            eprintln!("skipped: {error}");
            continue;
        }
        for dtype in [DType::F32, DType::BF16] {
            let input = |value: f64| [named("x", dtype, &[2], &[value, 2.0])];
            let seen = |name: &str| {
                let mut callable = lease(name).unwrap();
                let calls = [1.0, 4.0].map(|value| watched(&mut callable, &input(value), 0xff, false).unwrap().1);
                calls.concat()
            };
            assert_eq!(seen("right"), []);
            if framework != Framework::Pytorch {
                // What cannot be written can be shared.
                assert_eq!(seen("same"), []);
                continue;
            }
            assert_eq!(seen("same"), [aliasing("output", "x"), aliasing("output", "x")]);
            assert_eq!(seen("spoil"), [modified("x", 2, 0), modified("x", 2, 0)]);
            assert_eq!(seen("reuse"), [Seen::OutputOverwritten { output: "output".to_string() }]);
            let error = watched(&mut lease("subclass").unwrap(), &input(1.0), 0xff, false).unwrap_err();
            assert!(error.to_string().contains("is of type ops.Other, which is no array"), "{error}");
        }
    }
}
