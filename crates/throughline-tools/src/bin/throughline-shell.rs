//! Runs one command under Landlock and resource limits: see `confined_shell_main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    throughline_tools::confined_shell_main(std::env::args_os().skip(1))
}
