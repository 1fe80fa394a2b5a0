//! The native module of the Python package: the engine and the client of gpuemu, in the process of Python.

mod arrays;
mod callable;
mod client;
mod client_error;
mod emulation;
mod kernel_source;
mod layouts;
mod local_service;
mod op_run;
mod options;
mod project;
mod random;
mod ready_op;
mod reference;
mod refusal;
mod shared_segment;

use pyo3::prelude::*;

/// What `gpuemu` is made of.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", gpuemu_service::VERSION)?;
    module.add("PROTOCOL_VERSION", gpuemu_wire::protocol::PROTOCOL_VERSION)?;
    module.add_class::<client::DaemonConnection>()?;
    module.add_class::<shared_segment::SharedSegment>()?;
    module.add_class::<ready_op::ReadyOp>()?;
    module.add_class::<op_run::OpRun>()?;
    module.add_class::<local_service::LocalService>()?;
    module.add_class::<emulation::KernelProgram>()?;
    module.add_function(wrap_pyfunction!(kernel_source::compile_cuda, module)?)?;
    module.add_function(wrap_pyfunction!(project::project_reference, module)?)?;
    module.add_function(wrap_pyfunction!(project::default_socket, module)?)?;
    module.add_function(wrap_pyfunction!(random::random_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(ready_op::builtin_ops, module)?)?;
    module.add_function(wrap_pyfunction!(ready_op::call_style, module)?)?;
    module.add_function(wrap_pyfunction!(layouts::layout_names, module)?)?;
    module.add_function(wrap_pyfunction!(layouts::lay_out, module)?)
}
