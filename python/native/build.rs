//! Where the system's linker wants to be told that Python's symbols come later, it is told.

fn main() {
    // Not whenever a file of the package has another time: a build of the same files in another place has.
    println!("cargo::rerun-if-changed=build.rs");
    pyo3_build_config::add_extension_module_link_args();
}
