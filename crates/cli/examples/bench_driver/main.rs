//! Does what `benches/running` and `benches/api` ask for and tells how long it took. Not part of the product.
//!
//! A warden speaks a binary protocol and its answers come within a fraction of a millisecond, so
//! the loops are here and the evaluation is there. One order per line on standard input, one answer
//! per line on standard output, both JSON; times are microseconds.
//!
//! | file | what is in it |
//! |---|---|
//! | [`order`] | what can be asked for, and what is answered |
//! | [`sandbox`] | a sandbox through its warden, from start to end |
//! | [`work`] | the loops |
//! | [`api`] | a server, and the same through its API |

mod api;
mod order;
mod sandbox;
mod work;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::order::{Answer, Trouble};
use crate::work::Worker;

fn main() -> ExitCode {
    ringfence_sys::memory::keep_large_blocks_mapped();
    ringfence_sys::memory::raise_open_file_limit();
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(ringfence), Some(scratch)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: bench_driver RINGFENCE SCRATCH");
        return ExitCode::from(2);
    };
    // How it starts itself as the server that does nothing but answer.
    let done = match (ringfence.to_str(), arguments.next()) {
        (Some("echo"), Some(socket)) => api::serve_echo(&scratch, &socket),
        _ => Worker::new(ringfence, scratch).and_then(|mut worker| serve(&mut worker)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:?}");
            ExitCode::FAILURE
        }
    }
}

/// Until there are no more orders.
fn serve(worker: &mut Worker) -> Result<(), Trouble> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let order = serde_json::from_str(&line).map_err(Trouble::from);
        let answer = order.and_then(|order| worker.carry_out(order));
        let answer = answer.unwrap_or_else(Answer::from);
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
        out.flush()?;
    }
    Ok(())
}
