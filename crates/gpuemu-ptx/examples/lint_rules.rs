//! Prints the page on the linter's rules: `cargo run -p gpuemu-ptx --example lint_rules > docs/reference/lint-rules.md`.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

fn main() {
    print!("{}", gpuemu_ptx::lint::page::page());
}
