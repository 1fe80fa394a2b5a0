//! Runners that crash, cheat or damage memory: each is a verdict, never a panic and never a pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_engine::case::{Layout, Strategy, materialise};
use gpuemu_engine::oracle::state::repeat;
use gpuemu_engine::runner::{Buffer, Invocation, Placement, Runner, RunnerDescription, RunnerError, RunnerKind};
use gpuemu_engine::verdict::{BugClass, Check, Finding, Outcome, Verdict};
use gpuemu_engine::{Sampler, Subject, judge, ops};
use gpuemu_tensor::rng::case_seed;
use gpuemu_tensor::{DType, Tensor};

/// A relu with something wrong about it.
struct Relu<F: FnMut(&mut Invocation<'_>) -> Result<(), RunnerError> + Send> {
    description: RunnerDescription,
    body: F,
}

fn relu<F: FnMut(&mut Invocation<'_>) -> Result<(), RunnerError> + Send>(body: F) -> Relu<F> {
    let description = RunnerDescription {
        name: "relu".to_string(),
        kind: RunnerKind::Callable,
        layouts: true,
        writes_into_buffers: true,
        inputs_watched: true,
        refills: false,
        remembers: false,
    };
    Relu { description, body }
}

impl<F: FnMut(&mut Invocation<'_>) -> Result<(), RunnerError> + Send> Runner for Relu<F> {
    fn description(&self) -> &RunnerDescription {
        &self.description
    }
    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        (self.body)(invocation)
    }
}

fn values(buffer: &Buffer) -> Vec<f64> {
    let bytes = buffer.contiguous_bytes();
    bytes.chunks_exact(4).map(|chunk| f64::from(f32::from_le_bytes(chunk.try_into().unwrap()))).collect()
}

fn write(buffer: &mut Buffer, index: usize, value: f64) {
    let start = (buffer.offset() + index) * 4;
    buffer.memory_mut()[start..start + 4].copy_from_slice(&(value as f32).to_le_bytes());
}

/// What a correct relu does.
fn compute(invocation: &mut Invocation<'_>) {
    let input = values(invocation.inputs[0].as_ref().unwrap());
    for (index, x) in input.iter().enumerate() {
        let y = if x.is_nan() || *x > 0.0 { *x } else { 0.0 };
        write(&mut invocation.outputs[0], index, y);
    }
}

fn subject() -> Subject {
    Subject::new(ops::find("relu").unwrap())
}

/// The first verdict on a non-empty case that is not a pass, over some cases.
fn first_failure(runner: &mut dyn Runner, layouts: &[Layout]) -> Option<Verdict> {
    failures(runner, layouts).next()
}

/// The verdicts on some cases that are not a pass.
fn failures(runner: &mut dyn Runner, layouts: &[Layout]) -> impl Iterator<Item = Verdict> {
    let subject = subject();
    let sampler = Sampler {
        dtypes: vec![DType::F32],
        layouts: layouts.to_vec(),
        strategy: Strategy::Regular,
        budget: 2_000,
        ..Sampler::default()
    };
    (0..60).filter_map(move |index| {
        let case = materialise(subject.schema(), &subject.describe(&sampler, case_seed(0, index))).unwrap();
        let verdict = judge(&subject, &case, runner);
        verdict.failed().then_some(verdict)
    })
}

fn failure(body: impl FnMut(&mut Invocation<'_>) -> Result<(), RunnerError> + Send) -> (Check, BugClass, String) {
    let verdict = first_failure(&mut relu(body), &[Layout::Contiguous]).expect("a failure");
    let finding = verdict.finding().unwrap();
    (finding.check, finding.bug_class, finding.explanation.clone())
}

#[test]
fn a_correct_relu_passes() {
    let mut runner = relu(|invocation| {
        compute(invocation);
        Ok(())
    });
    assert!(first_failure(&mut runner, &Layout::ALL).is_none());
}

#[test]
fn an_error_is_a_verdict_with_its_own_words() {
    let (check, class, text) = failure(|_| Err(RunnerError::Raised("out of luck".to_string())));
    assert_eq!((check, class), (Check::Runner, BugClass::Crash));
    assert!(text.contains("out of luck"));
}

#[test]
fn a_panic_is_a_verdict() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (check, _, text) = failure(|_| panic!("index 7 is out of range"));
    std::panic::set_hook(quiet);
    assert_eq!(check, Check::Runner);
    assert!(text.contains("index 7"), "{text}");
}

#[test]
fn outputs_never_written_are_named_as_such() {
    let (check, class, text) = failure(|invocation| {
        // A kernel that stops one element short.
        let input = values(invocation.inputs[0].as_ref().unwrap());
        for (index, x) in input.iter().enumerate().take(input.len().saturating_sub(1)) {
            write(&mut invocation.outputs[0], index, x.max(0.0));
        }
        Ok(())
    });
    assert_eq!((check, class), (Check::NotWritten, BugClass::NeverWritten));
    assert!(text.contains("never written"), "{text}");
}

#[test]
fn a_store_past_the_end_is_seen_though_every_value_is_right() {
    let (check, class, text) = failure(|invocation| {
        compute(invocation);
        let count = invocation.outputs[0].shape().iter().product::<usize>();
        write(&mut invocation.outputs[0], count + 2, 1.0);
        Ok(())
    });
    assert_eq!((check, class), (Check::OutOfBounds, BugClass::OutOfBounds));
    assert!(text.contains("8 bytes after the end"), "{text}");
}

#[test]
fn a_store_out_of_bounds_in_the_second_run_only_is_seen_too() {
    let mut calls = 0u32;
    let (check, ..) = failure(move |invocation| {
        compute(invocation);
        calls += 1;
        let count = invocation.outputs[0].shape().iter().product::<usize>();
        if calls.is_multiple_of(2) {
            write(&mut invocation.outputs[0], count, 1.0);
        }
        Ok(())
    });
    assert_eq!(check, Check::OutOfBounds);
}

#[test]
fn an_overwritten_input_is_seen_though_every_value_is_right() {
    let (check, class, _) = failure(|invocation| {
        compute(invocation);
        if let Some(input) = invocation.inputs[0].as_mut()
            && input.shape().iter().product::<usize>() > 0
        {
            write(input, 0, 42.0);
        }
        Ok(())
    });
    assert_eq!((check, class), (Check::InputModified, BugClass::InputOverwritten));
}

#[test]
fn results_that_change_from_run_to_run_are_a_race() {
    let mut calls = 0u32;
    let (check, class, _) = failure(move |invocation| {
        compute(invocation);
        calls += 1;
        // Within the bound of nothing: relu is exact, so the change must stay invisible to the value
        // check. A negative zero is equal to zero and different in bits.
        let results = values(&invocation.outputs[0]);
        if let Some(zero) = results.iter().position(|value| *value == 0.0)
            && calls.is_multiple_of(2)
        {
            write(&mut invocation.outputs[0], zero, -0.0);
        }
        Ok(())
    });
    assert_eq!((check, class), (Check::Nondeterministic, BugClass::Race));
}

#[test]
fn a_kernel_that_ignores_strides_is_blamed_for_that() {
    let mut runner = relu(|invocation| {
        let input = invocation.inputs[0].as_ref().unwrap();
        let count = input.shape().iter().product::<usize>();
        let start = input.offset();
        let flat: Vec<f64> = (start..start + count)
            .map(|at| input.memory().get(at * 4..at * 4 + 4))
            .map(|bytes| bytes.map_or(0.0, |bytes| f64::from(f32::from_le_bytes(bytes.try_into().unwrap()))))
            .collect();
        for (index, x) in flat.iter().enumerate() {
            write(&mut invocation.outputs[0], index, if x.is_nan() || *x > 0.0 { *x } else { 0.0 });
        }
        Ok(())
    });
    let layouts = [Layout::Transposed, Layout::ColumnStep, Layout::RowGap];
    for refills in [false, true] {
        // New data at the same addresses has the same layout: a failure there takes nothing from the blame.
        runner.description.refills = refills;
        let classes: Vec<BugClass> =
            failures(&mut runner, &layouts).map(|verdict| verdict.finding().unwrap().bug_class).collect();
        assert!(classes.len() > 20 && classes.iter().all(|class| *class == BugClass::Stride), "{classes:?}");
    }
}

#[test]
fn wrong_shapes_and_dtypes_are_findings() {
    let (check, _, text) = failure(|invocation| {
        let wrong = Tensor::from_f64(DType::F32, vec![1, 2, 3], &[0.0; 6]).unwrap();
        invocation.replace_output(0, &wrong);
        Ok(())
    });
    assert_eq!(check, Check::Shape);
    assert!(text.contains("[1, 2, 3]"), "{text}");
    let (check, _, text) = failure(|invocation| {
        let shape = invocation.outputs[0].shape().to_vec();
        let zeros = vec![0.0; shape.iter().product()];
        invocation.replace_output(0, &Tensor::from_f64(DType::F64, shape, &zeros).unwrap());
        Ok(())
    });
    assert_eq!(check, Check::Dtype);
    assert!(text.contains("float64") && text.contains("float32"), "{text}");
}

#[test]
fn state_kept_by_the_first_shape_is_seen() {
    let mut cached: Option<usize> = None;
    let verdict = first_failure(
        &mut relu(move |invocation| {
            // A kernel compiled for the first shape it saw, and never again.
            let count = invocation.outputs[0].shape().iter().product::<usize>();
            let known = *cached.get_or_insert(count);
            let input = values(invocation.inputs[0].as_ref().unwrap());
            for (index, x) in input.iter().enumerate().take(known) {
                write(&mut invocation.outputs[0], index, x.max(0.0));
            }
            Ok(())
        }),
        &[Layout::Contiguous],
    );
    assert!(verdict.is_some());
}

#[test]
fn a_runner_that_owns_its_memory_is_not_said_to_be_checked_for_it() {
    let mut runner = relu(|invocation| {
        compute(invocation);
        Ok(())
    });
    runner.description.writes_into_buffers = false;
    runner.description.inputs_watched = false;
    runner.description.layouts = false;
    let subject = subject();
    let sampler = Sampler { dtypes: vec![DType::F32], ..Sampler::default() };
    let case = materialise(subject.schema(), &subject.describe(&sampler, 4)).unwrap();
    let verdict = judge(&subject, &case, &mut runner);
    assert_eq!(verdict.outcome, Outcome::Passed);
    assert_eq!(verdict.not_checked, ["layouts", "unwritten outputs", "stores out of bounds", "modified inputs"]);
}

/// An op whose reference forgets the last element.
struct Forgetful(gpuemu_engine::schema::Schema);

impl gpuemu_engine::Op for Forgetful {
    fn schema(&self) -> &gpuemu_engine::schema::Schema {
        &self.0
    }
    fn expect(&self, call: &ops::Call<'_>) -> Result<Vec<ops::Expectation>, ops::OpError> {
        let mut expectation = ops::Expectation::default();
        call.input("input")?.iter().skip(1).for_each(|x| expectation.push(x.max(0.0), 0.0));
        Ok(vec![expectation])
    }
}

#[test]
fn a_reference_that_forgets_elements_is_no_pass() {
    let schema = gpuemu_engine::schema::Schema::from_signature("forgetful", "input[N] -> out[N]").unwrap();
    let subject = Subject::new(std::sync::Arc::new(Forgetful(schema.at_least("N", 1))));
    let sampler = Sampler { dtypes: vec![DType::F32], ..Sampler::default() };
    let case = materialise(subject.schema(), &subject.describe(&sampler, 1)).unwrap();
    let mut runner = relu(|invocation| {
        compute(invocation);
        Ok(())
    });
    let verdict = judge(&subject, &case, &mut runner);
    assert_eq!(verdict.outcome, Outcome::Undetermined);
    assert!(verdict.result.message.unwrap().contains("forgetful"));
}

#[test]
fn a_bound_that_says_nothing_is_undetermined_and_says_why() {
    use gpuemu_engine::schema::Precision;
    let subject = Subject::new(ops::find("sum").unwrap())
        .precision(Precision { accumulate: Some(DType::BF16), ..Precision::default() });
    let mut runner = relu(|_| Ok(()));
    let sampler = Sampler { dtypes: vec![DType::BF16], ..Sampler::default() };
    let verdict = (0..40)
        .map(|index| materialise(subject.schema(), &subject.describe(&sampler, case_seed(2, index))).unwrap())
        .map(|case| judge(&subject, &case, &mut runner))
        .find(|verdict| verdict.outcome == Outcome::Undetermined)
        .unwrap();
    assert!(verdict.result.message.unwrap().contains("no bound"));
}

#[test]
fn inputs_that_do_not_fit_their_sizes_are_refused_by_name() {
    let subject = Subject::new(ops::find("matmul").unwrap());
    let sampler = Sampler { dtypes: vec![DType::F32], layouts: vec![Layout::Contiguous], ..Sampler::default() };
    let mut case = materialise(subject.schema(), &subject.describe(&sampler, 3)).unwrap();
    case.inputs[1] = Some(Tensor::from_f64(DType::F32, vec![1], &[1.0]).unwrap());
    let error = subject.expect(&case).unwrap_err().to_string();
    assert!(error.contains("input 'b' has shape [1]"), "{error}");
    case.inputs[1] = None;
    assert!(subject.expect(&case).unwrap_err().to_string().contains("input 'b' is missing"));
    case.inputs.truncate(1);
    assert!(subject.expect(&case).is_err());
    // A class outside of its range names the input and the index.
    let subject = Subject::new(ops::find("cross_entropy").unwrap());
    let mut case = materialise(subject.schema(), &subject.describe(&sampler, 5)).unwrap();
    let shape = case.inputs[1].as_ref().unwrap().shape().to_vec();
    let targets = vec![1e6; shape.iter().product()];
    case.inputs[1] = Some(Tensor::from_f64(DType::I64, shape, &targets).unwrap());
    let error = subject.expect(&case).unwrap_err().to_string();
    assert!(error.contains("input 'target' has 1000000 at [0], outside of 0..V"), "{error}");
}

/// What goes wrong with a relu whose addresses can be filled again.
fn remembered(body: impl FnMut(&mut Invocation<'_>) -> Result<(), RunnerError> + Send) -> (Check, BugClass, String) {
    let mut runner = relu(body);
    runner.description.refills = true;
    let verdict = first_failure(&mut runner, &[Layout::Contiguous]).expect("a failure");
    let finding = verdict.finding().unwrap();
    (finding.check, finding.bug_class, finding.explanation.clone())
}

#[test]
fn a_result_kept_by_address_is_stale_once_the_data_there_changes() {
    let mut kept: Option<Vec<u8>> = None;
    let (check, class, explanation) = remembered(|invocation| {
        compute(invocation);
        match (&kept, invocation.placement) {
            (Some(kept), Placement::Refilled) => invocation.outputs[0].memory_mut().copy_from_slice(kept),
            _ => kept = Some(invocation.outputs[0].memory().to_vec()),
        }
        Ok(())
    });
    assert_eq!((check, class), (Check::StaleResult, BugClass::CachedByAddress));
    assert!(explanation.contains("cached by address"), "{explanation}");
}

#[test]
fn constants_and_returned_inputs_are_told_from_other_wrong_outputs() {
    let constant = remembered(|invocation| {
        for index in 0..invocation.outputs[0].shape().iter().product() {
            write(&mut invocation.outputs[0], index, 0.0);
        }
        Ok(())
    });
    assert_eq!((constant.0, constant.1), (Check::Value, BugClass::Constant), "{}", constant.2);
    let returned = remembered(|invocation| {
        for (index, x) in values(invocation.inputs[0].as_ref().unwrap()).into_iter().enumerate() {
            write(&mut invocation.outputs[0], index, x);
        }
        Ok(())
    });
    assert_eq!((returned.0, returned.1), (Check::Value, BugClass::InputReturned), "{}", returned.2);
    assert!(returned.2.contains("it is the input 'input', bit for bit"), "{}", returned.2);
}

#[test]
fn a_case_that_is_repeated_must_stay_right() {
    let subject = subject();
    let sampler = Sampler { dtypes: vec![DType::F32], strategy: Strategy::Regular, ..Sampler::default() };
    let case = materialise(subject.schema(), &subject.describe(&sampler, 4)).unwrap();
    let mut calls = 0;
    let mut tiring = relu(|invocation| {
        calls += 1;
        compute(invocation);
        if calls > 30 {
            write(&mut invocation.outputs[0], 0, 77.0);
        }
        Ok(())
    });
    let hour = std::time::Duration::from_secs(3600);
    assert_eq!(repeat(&subject, &case, &mut tiring, 30, hour), (30, None));
    let (made, finding) = repeat(&subject, &case, &mut tiring, 30, hour);
    let finding = finding.expect("the 31st call is wrong");
    assert_eq!((made, finding.check, finding.bug_class), (1, Check::LaterCalls, BugClass::FirstCallsOnly));
}

#[test]
fn what_a_runner_saw_itself_is_part_of_the_verdict() {
    let mut runner = relu(|invocation| {
        compute(invocation);
        invocation.findings.push(Finding {
            check: Check::Aliasing,
            tensor: "out".to_string(),
            mismatched: 0,
            elements: 0,
            worst: None,
            bug_class: BugClass::InputReturned,
            places: Vec::new(),
            explanation: "'out' lies in the memory of 'input'".to_string(),
        });
        Ok(())
    });
    let verdict = first_failure(&mut runner, &[Layout::Contiguous]).unwrap();
    assert_eq!(verdict.failures.len(), 1);
    assert_eq!(verdict.reason(), Some(Check::Aliasing));
}

/// The findings of a runner of `relu_`, which works in place, on rows with gaps between them.
fn in_place(body: impl FnMut(&mut Invocation<'_>) -> Result<(), RunnerError> + Send) -> Vec<Finding> {
    let subject = Subject::new(ops::find("relu_").unwrap());
    let shapes = Sampler { dtypes: vec![DType::F32], strategy: Strategy::Regular, ..Sampler::default() };
    let mut descriptor = subject.describe(&shapes, 1);
    descriptor.sizes.batch = vec![4, 6];
    descriptor.layouts = vec![("input".to_string(), Layout::RowGap)];
    let case = materialise(subject.schema(), &descriptor).unwrap();
    judge(&subject, &case, &mut relu(body)).result.failures
}

/// Positions in memory of the elements of an output, and what is between their rows.
fn places(buffer: &Buffer) -> (Vec<usize>, usize) {
    let (rows, columns) = (buffer.shape()[0], buffer.shape()[1]);
    let step = buffer.strides()[0] as usize;
    assert!(step > columns, "there is no gap");
    let place = |element: usize| buffer.offset() + element / columns * step + element % columns;
    ((0..rows * columns).map(place).collect(), buffer.offset() + columns)
}

#[test]
fn what_is_written_in_place_is_one_buffer_and_its_gaps_are_not_the_kernels() {
    let store = |buffer: &mut Buffer, place: usize, value: f32| {
        buffer.memory_mut()[place * 4..place * 4 + 4].copy_from_slice(&value.to_le_bytes());
    };
    let right = move |invocation: &mut Invocation<'_>| {
        let buffer = &mut invocation.outputs[0];
        for place in places(buffer).0 {
            let bytes = buffer.memory()[place * 4..place * 4 + 4].try_into().unwrap();
            store(buffer, place, f32::from_le_bytes(bytes).max(0.0));
        }
        Ok(())
    };
    assert_eq!(in_place(right), []);
    let untouched = in_place(|_| Ok(()));
    assert_eq!(untouched[0].check, Check::Value);
    let found = in_place(move |invocation| {
        right(invocation)?;
        let gap = places(&invocation.outputs[0]).1;
        store(&mut invocation.outputs[0], gap, 1.0);
        Ok(())
    });
    assert_eq!((found[0].check, found[0].bug_class), (Check::OutOfBounds, BugClass::OutOfBounds));
    assert!(found[0].explanation.contains("between the elements of 'input'"), "{}", found[0].explanation);
}

/// A relu that is made for batches of two dims or more only, as a compiled kernel may be.
struct ForRowsOnly;

impl Runner for ForRowsOnly {
    fn description(&self) -> &RunnerDescription {
        static DESCRIPTION: std::sync::LazyLock<RunnerDescription> = std::sync::LazyLock::new(|| RunnerDescription {
            name: "relu".to_string(),
            kind: RunnerKind::PtxMachine,
            layouts: false,
            writes_into_buffers: true,
            inputs_watched: true,
            refills: false,
            remembers: false,
        });
        &DESCRIPTION
    }

    fn covers(&self, _: &gpuemu_engine::schema::Schema, descriptor: &gpuemu_engine::case::CaseDescriptor) -> bool {
        descriptor.sizes.batch.iter().all(|size| *size >= 2)
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        if invocation.sizes.batch.iter().any(|size| *size < 2) {
            return Err(RunnerError::Raised(format!("no variant covers {}", invocation.sizes)));
        }
        compute(invocation);
        Ok(())
    }
}

#[test]
fn a_kernel_is_not_blamed_for_shapes_that_it_is_not_made_for() {
    let subject = subject();
    let covered = gpuemu_engine::case::Coverage::by(|schema, descriptor| ForRowsOnly.covers(schema, descriptor));
    let sampler = Sampler { dtypes: vec![DType::F32], budget: 2_000, covered, ..Sampler::default() };
    let mut judged = 0;
    for index in 0..300 {
        let descriptor = subject.describe(&sampler, case_seed(3, index));
        if !ForRowsOnly.covers(subject.schema(), &descriptor) {
            continue;
        }
        let case = materialise(subject.schema(), &descriptor).unwrap();
        let verdict = judge(&subject, &case, &mut ForRowsOnly);
        assert!(!verdict.failed(), "{:#?}", verdict.failures);
        judged += 1;
    }
    assert!(judged > 200, "{judged} cases");
}
