//! Callables: how they are found and called, what they are given and what they may return.

use gpuemu_config::Framework;
use gpuemu_runners::executor::{CallStyle, ExecutorError, Pool};
use gpuemu_tensor::{DType, Layout, Storage, Tensor};
use serde_json::json;

use crate::project::{PATIENCE, Project, call, laid_out, named, try_call, values};

#[test]
fn a_callable_is_called_as_its_signature_wants() {
    let Some(project) = Project::new() else { return };
    let text = r#"
def by_name(b, a, scale=1): return scale * (10 * a + b)
def any_name(**arrays): return 10 * arrays["a"] + arrays["b"] + arrays.get("scale", 0)
def in_order(x, y): return 10 * x + y
def in_a_dict(tensors): return 10 * tensors["a"] + tensors["b"]
def run(inputs, *, scale): return scale * (10 * inputs["a"] + inputs["b"])
"#;
    project.write("package/ops.py", text);
    let pool = Pool::new(1);
    let inputs = [named("a", DType::F32, &[1], &[1.0]), named("b", DType::F32, &[1], &[2.0])];
    for (target, style, expected) in [
        ("package.ops:by_name", CallStyle::Keywords, 36.0),
        ("package.ops:any_name", CallStyle::Keywords, 15.0),
        ("package.ops:in_order", CallStyle::Positional, 12.0),
        ("package.ops:in_a_dict", CallStyle::Dictionary, 12.0),
        ("package.ops", CallStyle::Dictionary, 36.0),
    ] {
        let mut callable = project.callable(&pool, target).unwrap();
        assert_eq!(callable.accepted().style_for(&["a", "b"]), style, "{target}");
        // What it does not accept is left out.
        let outputs = try_call(&mut callable, &inputs, json!({"scale": 3}), PATIENCE).unwrap();
        assert_eq!(outputs, [named("output", DType::F32, &[1], &[expected])], "{target}");
    }
    let accepted = project.callable(&pool, "package.ops:by_name").unwrap().accepted().clone();
    assert_eq!(accepted.names, ["b", "a", "scale"]);
    assert_eq!(
        (accepted.required.len(), accepted.any, accepted.takes("scale"), accepted.takes("eps")),
        (2, false, true, false)
    );
    // A function that is silent about its parameters.
    let mut builtin = project.callable(&pool, "math:hypot").unwrap();
    let legs = [named("a", DType::F64, &[], &[3.0]), named("b", DType::F64, &[], &[4.0])];
    assert_eq!(values(&mut builtin, &legs), [5.0]);
}

#[test]
fn a_callable_named_like_the_op_goes_before_run() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", "def run(x): return x\ndef op(x): return -x\n");
    let pool = Pool::new(1);
    let input = [named("x", DType::F32, &[1], &[1.0])];
    assert_eq!(values(&mut project.callable(&pool, "ops").unwrap(), &input), [-1.0]);
    let other = pool.callable(&project.interpreter(), "ops", "softmax", Framework::Numpy);
    assert_eq!(values(&mut other.unwrap(), &input), [1.0]);
}

#[test]
fn a_callable_that_cannot_be_had_says_what_there_is() {
    let Some(project) = Project::new() else { return };
    project.write(
        "ops.py",
        "from os.path import join\ndef softmax(x): pass\ndef gelu(x): pass\ndef _hidden(x): pass\nsize = 3\n",
    );
    project.write("broken.py", "import sys\nprint('trying')\nimport no_such_package\n");
    project.write("raising.py", "def f():\n    raise OSError('no device')\nf()\n");
    let pool = Pool::new(1);
    let error = |target: &str| {
        let error = project.callable(&pool, target).unwrap_err();
        assert!(matches!(error, ExecutorError::Import { .. }), "{error}");
        error.to_string()
    };
    let text = error("ops");
    assert!(text.contains("no function 'op' or 'run'; its public callables: softmax, gelu"), "{text}");
    assert!(!text.contains("join") && !text.contains("hidden"), "{text}");
    assert!(error("ops:size").contains("no function 'size'"));
    let text = error("opps:softmax");
    assert!(text.contains("there is no module 'opps' in"), "{text}");
    assert!(error("ops.inner").contains("ops"), "{}", error("ops.inner"));
    let text = error("broken");
    assert!(text.contains("No module named 'no_such_package'") && text.contains("broken.py\", line 3"), "{text}");
    assert!(text.contains("trying") && !text.contains("importlib"), "{text}");
    let text = error("raising");
    assert!(text.contains("OSError: no device") && text.contains("raising.py\", line 2, in f"), "{text}");
    assert!(error("").contains("cannot load the callable"));
}

#[test]
fn results_come_in_many_forms() {
    let Some(project) = Project::new() else { return };
    let text = r#"
import ml_dtypes, numpy as np
def one(x): return x.T
def several(x): return x, [1.5, 2.5], np.float32(3)
def named(x): return {"y": x.astype(ml_dtypes.bfloat16), "count": 7, "flag": True}
def foreign(x): return x.astype(">f4")
def empty(x): return np.zeros((0, 3), np.uint8)
def nothing(x): pass
def text(x): return "seven"
def wide(x): return x.astype(np.complex64)
"#;
    project.write("ops.py", text);
    let pool = Pool::new(8);
    let x = [named("x", DType::F32, &[1, 2], &[1.0, 2.0])];
    let outputs = |name: &str| call(&mut project.callable(&pool, &format!("ops:{name}")).unwrap(), &x);
    assert_eq!(outputs("one").unwrap(), [named("output", DType::F32, &[2, 1], &[1.0, 2.0])]);
    let several = [
        named("0", DType::F32, &[1, 2], &[1.0, 2.0]),
        named("1", DType::F64, &[2], &[1.5, 2.5]),
        named("2", DType::F32, &[], &[3.0]),
    ];
    assert_eq!(outputs("several").unwrap(), several);
    let in_dict = [
        named("y", DType::BF16, &[1, 2], &[1.0, 2.0]),
        named("count", DType::I64, &[], &[7.0]),
        named("flag", DType::Bool, &[], &[1.0]),
    ];
    assert_eq!(outputs("named").unwrap(), in_dict);
    assert_eq!(outputs("foreign").unwrap(), [named("output", DType::F32, &[1, 2], &[1.0, 2.0])]);
    assert_eq!(outputs("empty").unwrap(), [named("output", DType::U8, &[0, 3], &[])]);
    for (name, expected) in
        [("nothing", "returned None"), ("text", "of type str"), ("wide", "unknown dtype 'complex64'")]
    {
        let error = outputs(name).unwrap_err();
        assert!(matches!(error, ExecutorError::BadOutput { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_callable_sees_real_strides_and_owns_its_inputs() {
    let Some(project) = Project::new() else { return };
    let text = r#"
import numpy as np
def strides(x): return np.array(x.strides), x, np.array([x.flags.c_contiguous, x.flags.writeable])
def spoil(x):
    before = x.copy()
    x[...] = 0
    return before
"#;
    project.write("ops.py", text);
    let pool = Pool::new(2);
    let mut strides = project.callable(&pool, "ops:strides").unwrap();
    for dtype in [DType::F32, DType::BF16, DType::F8E4M3FN, DType::F8E5M2, DType::Bool, DType::I64] {
        let plain = named("x", dtype, &[3, 4], &(0..12).map(|index| f64::from(index % 2)).collect::<Vec<_>>()).1;
        for layout in Layout::ALL {
            let tensor = laid_out(layout, &plain);
            let bytes: Vec<f64> =
                tensor.strides().iter().map(|stride| (stride * dtype.size() as isize) as f64).collect();
            let outputs = call(&mut strides, &[("x".to_string(), tensor.clone())]).unwrap();
            assert_eq!(outputs[0].1.to_f64(), bytes, "{dtype} {layout}");
            assert_eq!(outputs[1].1, tensor.to_contiguous(), "{dtype} {layout}");
            assert_eq!(outputs[2].1.to_f64(), [f64::from(u8::from(tensor.is_contiguous())), 1.0]);
        }
    }
    let storage = Storage::copy_of(&[1, 2, 3, 4]);
    let backwards = Tensor::new(DType::U8, vec![2, 2], vec![-2, -1], 3, storage).unwrap();
    let outputs = call(&mut strides, &[("x".to_string(), backwards)]).unwrap();
    assert_eq!((outputs[0].1.to_f64(), outputs[1].1.to_f64()), (vec![-2.0, -1.0], vec![4.0, 3.0, 2.0, 1.0]));
    for shape in [&[0, 3][..], &[2, 0]] {
        let outputs = call(&mut strides, &[named("x", DType::F32, shape, &[])]).unwrap();
        assert_eq!(outputs[1].1.shape(), shape);
    }
    let mut spoil = project.callable(&pool, "ops:spoil").unwrap();
    let input = [named("x", DType::F32, &[2], &[1.0, 2.0])];
    (0..2).for_each(|_| assert_eq!(values(&mut spoil, &input), [1.0, 2.0]));
}

#[test]
fn what_a_callable_prints_is_kept_apart() {
    let Some(project) = Project::new() else { return };
    let text = r#"
import os, subprocess, sys
def op(x, fail=False):
    print("gpe1 printed")
    os.write(1, b"written\n")
    subprocess.run(["echo", "from a child"])
    sys.stdout.write("x" * 100000)
    assert sys.stdin.read() == ""
    print("\nat the end")
    if fail:
        raise KeyError("missing key")
    return x
"#;
    project.write("ops.py", text);
    let pool = Pool::new(1);
    let mut callable = project.callable(&pool, "ops").unwrap();
    let input = [named("x", DType::F32, &[1], &[6.0])];
    (0..3).for_each(|_| assert_eq!(values(&mut callable, &input), [6.0]));
    let error = try_call(&mut callable, &input, json!({"fail": true}), PATIENCE).unwrap_err();
    let ExecutorError::Raised { traceback, stderr, .. } = &error else { panic!("{error}") };
    assert!(
        traceback.contains("KeyError: 'missing key'") && traceback.contains("ops.py\", line 11, in op"),
        "{traceback}"
    );
    assert!(!traceback.contains("<string>"), "{traceback}");
    assert!(stderr.len() < 17 << 10 && stderr.ends_with("xxx\nat the end\n"), "{stderr}");
    assert_eq!(values(&mut callable, &input), [6.0]);
    // What was raised while arguments were bound is the caller's mistake, and shown too.
    let error = call(&mut callable, &[]).unwrap_err();
    assert!(error.to_string().contains("missing 1 required positional argument: 'x'"), "{error}");
}

/// Each framework gets its own arrays where it is installed, and is missed by name where it is not.
#[test]
fn frameworks_get_their_own_arrays() {
    let Some(project) = Project::new() else { return };
    let text = r#"
def op(x):
    kind = list(f"{type(x).__module__} {type(x).__name__}".encode())
    strides = list(x.stride()) if hasattr(x, "stride") else None
    return {"same": x, "kind": kind, **({"strides": strides} if strides else {})}
def twice(x): return x + x
"#;
    project.write("ops.py", text);
    let pool = Pool::new(4);
    for (framework, package) in
        [(Framework::Pytorch, "torch"), (Framework::Jax, "jax"), (Framework::Tensorflow, "tensorflow")]
    {
        let lease = |target: &str| pool.callable(&project.interpreter(), target, "op", framework);
        let mut callable = match lease("ops") {
            Ok(callable) => callable,
            Err(error) => {
                assert!(matches!(error, ExecutorError::Import { .. }), "{error}");
                let text = error.to_string();
                assert!(text.contains(&format!("but {package} cannot be imported by")), "{text}");
                assert!(text.contains("set framework = \"numpy\" in [project]"), "{text}");
                eprintln!("{package} is not installed: only its absence is tested");
                continue;
            }
        };
        for dtype in DType::ALL {
            let plain = named("x", dtype, &[2, 3], &[0.0, 1.0, 1.0, 0.0, 1.0, 0.0]).1;
            for layout in Layout::ALL {
                let tensor = laid_out(layout, &plain);
                let outputs = call(&mut callable, &[("x".to_string(), tensor.clone())]).unwrap();
                assert_eq!(outputs[0].1, tensor.to_contiguous(), "{package} {dtype} {layout}");
                let kind: String = outputs[1].1.to_f64().iter().map(|byte| *byte as u8 as char).collect();
                assert!(kind.starts_with(package), "{kind}");
                if framework == Framework::Pytorch {
                    let strides: Vec<f64> = tensor.strides().iter().map(|stride| *stride as f64).collect();
                    assert_eq!(outputs[2].1.to_f64(), strides, "{dtype} {layout}");
                }
            }
        }
        let mut twice = lease("ops:twice").unwrap();
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64] {
            let outputs = call(&mut twice, &[named("x", dtype, &[2], &[3.0, -5.0])]).unwrap();
            assert_eq!(outputs, [named("output", dtype, &[2], &[6.0, -10.0])], "{package} {dtype}");
            let storage = Storage::copy_of(&named("x", dtype, &[2], &[1.0, 2.0]).1.to_contiguous_bytes());
            let backwards = Tensor::new(dtype, vec![2], vec![-1], 1, storage).unwrap();
            assert_eq!(values(&mut twice, &[("x".to_string(), backwards)]), [4.0, 2.0], "{package} {dtype}");
        }
        assert_eq!(call(&mut twice, &[named("x", DType::F32, &[0, 2], &[])]).unwrap()[0].1.shape(), [0, 2]);
    }
}
