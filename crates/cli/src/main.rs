//! The program `heedful`. The commands are in a library; this crate only adds the commit that it was built
//! from, so that a new commit does not recompile the commands.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    heedful_commands::main(option_env!("HEEDFUL_COMMIT"))
}
