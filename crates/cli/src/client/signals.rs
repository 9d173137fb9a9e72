//! Signals to this process, as something to pass on.

use std::future::poll_fn;
use std::task::Poll;

use ringfence_sys::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Those that are for a command instead of for this process.
pub(crate) const FORWARDED: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Signals that no longer do anything to this process. Those that come before anybody asks are
/// not lost.
#[derive(Debug)]
pub(crate) struct Signals {
    watched: Vec<(i32, Signal)>,
}

impl Signals {
    /// From now on. Within a runtime.
    pub(crate) fn watch(numbers: &[i32]) -> Result<Self, Failure> {
        let one = |number: &i32| {
            let watched = signal(SignalKind::from_raw(*number)).map_err(Failure::broken)?;
            Ok((*number, watched))
        };
        Ok(Self { watched: numbers.iter().map(one).collect::<Result<_, Failure>>()? })
    }

    pub(crate) async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            for (number, watched) in &mut self.watched {
                if watched.poll_recv(context).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }
}
