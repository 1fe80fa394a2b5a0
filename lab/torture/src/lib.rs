//! Where bytes of others come into gpuemu, one function each, for all that throws bytes at them: the trial `hostile`, and
//! the fuzzing program of `torture/fuzz`.

pub mod hostile;
