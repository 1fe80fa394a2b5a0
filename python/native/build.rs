//! Where the system's linker wants to be told that Python's symbols come later, it is told.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
