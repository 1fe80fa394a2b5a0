//! Workers: how many there are, who has them, and how fast they answer.

use std::time::Instant;

use gpuemu_config::Framework;
use gpuemu_runners::executor::{Arguments, Callable, Pool, Program, Watch};
use gpuemu_tensor::DType;
use serde_json::Map;

use crate::project::{MATMUL, PATIENCE, Project, all_gone, is_running, named, small, values};

#[test]
fn idle_workers_are_limited() {
    let Some(project) = Project::new() else { return };
    project.write("ops.py", "import os\ndef op(x): return os.getpid()\n");
    let pool = Pool::new(2);
    let input = [named("x", DType::F32, &[], &[0.0])];
    let mut leased: Vec<Callable> = (0..4).map(|_| project.callable(&pool, "ops").unwrap()).collect();
    let workers: Vec<i32> = leased.iter_mut().map(|callable| values(callable, &input)[0] as i32).collect();
    drop(leased);
    assert!(all_gone(&workers[..2]));
    assert!(is_running(workers[2]) && is_running(workers[3]));
    let mut again = project.callable(&pool, "ops").unwrap();
    assert_eq!(values(&mut again, &input), [f64::from(workers[3])]);
    pool.clear();
    assert!(all_gone(&workers[2..3]) && is_running(workers[3]));
    drop((pool, again));
    assert!(all_gone(&workers));
}

#[test]
fn threads_lease_at_the_same_time() {
    let Some(project) = Project::new() else { return };
    let pool = Pool::new(2);
    let script = project.write("script.py", MATMUL);
    project.write("ops.py", "def op(a, b): return a @ b\n");
    let interpreter = project.interpreter();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (pool, interpreter, script) = (pool.clone(), &interpreter, &script);
            scope.spawn(move || {
                for round in 0..3 {
                    let mut program = pool.script(interpreter, script).unwrap();
                    let mut callable = pool.callable(interpreter, "ops", "op", Framework::Numpy).unwrap();
                    for call in 0..5 {
                        let value = f64::from(100 * thread + 10 * round + call);
                        let inputs =
                            [named("a", DType::F64, &[1, 1], &[value]), named("b", DType::F64, &[1, 1], &[2.0])];
                        assert_eq!(values(&mut program, &inputs), [2.0 * value]);
                        assert_eq!(values(&mut callable, &inputs), [2.0 * value]);
                    }
                }
            });
        }
    });
    assert!(pool.distrusted().is_empty(), "{:?}", pool.distrusted());
}

/// Prints rates; what they are depends on the machine.
#[test]
fn rates_are_printed() {
    let Some(project) = Project::new() else { return };
    let pool = Pool::new(1);
    project.write("ops.py", "def op(a, b): return a @ b\n");
    let inputs = [small("a", DType::F32, &[16, 16]), small("b", DType::F32, &[16, 16])];
    let parameters = Map::new();
    let arguments = Arguments { inputs: &inputs, parameters: &parameters, timeout: PATIENCE };
    let watch = Watch { poison: 0xff, output_bytes: vec![16 * 16 * 4], ..Watch::default() };
    let rate_of = |calls: u32, call: &mut dyn FnMut()| {
        (0..3).for_each(|_| call());
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        f64::from(calls) / start.elapsed().as_secs_f64()
    };
    let rate = |program: &mut dyn Program, calls| rate_of(calls, &mut || drop(program.call(&arguments).unwrap()));
    let cold = rate(&mut project.cold(MATMUL), 5);
    let warm = rate(&mut project.warm(&pool, MATMUL), 5000);
    let mut ops = project.callable(&pool, "ops").unwrap();
    let callable = rate(&mut ops, 5000);
    let watched = rate_of(5000, &mut || assert!(ops.call_watched(&arguments, &watch, &mut []).unwrap().1.is_empty()));
    eprintln!(
        "16x16 matmul, calls per second: script cold {cold:.1}, script warm {warm:.0}, callable {callable:.0}, \
         watched {watched:.0}"
    );
}
