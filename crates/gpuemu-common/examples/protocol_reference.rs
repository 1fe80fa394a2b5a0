//! Prints the reference of the daemon's messages: `cargo run -p gpuemu-common --example protocol_reference`.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

fn main() {
    print!("{}", gpuemu_common::protocol::reference_page());
}
