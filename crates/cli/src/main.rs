//! The program `heedful`. The commands are a library of their own: this crate only adds the commit that it was built from, so that
//! a commit does not compile the commands again.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    heedful_commands::main(option_env!("HEEDFUL_COMMIT"))
}
