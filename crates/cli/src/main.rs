//! The program: everything is in the library of this crate.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    heedful_cli::main()
}
