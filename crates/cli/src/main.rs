//! The program. Its commands are a crate of their own, since link-time optimization takes its level from this one (`Cargo.toml`).

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    heedful_commands::main()
}
