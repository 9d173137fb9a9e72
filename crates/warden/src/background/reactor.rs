//! The one thread that reads what everything in the background prints, and notices when it ends.
//!
//! One thread for all, because most of them are silent most of the time and there may be hundreds.
//! Nothing it does may wait; what may (the last steps of an end) is done elsewhere.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use super::job::Job;
use crate::pump::poll_until;
use crate::sandbox::Sandbox;

const BUFFER: usize = 64 * 1024;
const STACK: usize = 256 * 1024;

/// Begins to run with the first job.
#[derive(Debug, Default)]
pub(crate) struct Reactor {
    inbox: Mutex<Inbox>,
    /// How many are not over yet, and someone who waits for all of them.
    open: Mutex<usize>,
    one_less: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    jobs: Vec<Job>,
    /// There is one as long as the thread runs.
    bell: Option<Arc<OwnedFd>>,
}

impl Reactor {
    /// To be called before something is started that is to be added.
    pub(super) fn prepare(&self, sandbox: &Arc<Sandbox>) -> io::Result<()> {
        let mut inbox = self.inbox.lock();
        if inbox.bell.is_none() {
            inbox.bell = Some(start(sandbox)?);
        }
        Ok(())
    }

    pub(super) fn add(&self, job: Job) {
        *self.open.lock() += 1;
        self.inbox.lock().jobs.push(job);
        self.wake();
    }

    /// Makes it look again: somebody typed, or set a deadline.
    pub(crate) fn wake(&self) {
        if let Some(bell) = &self.inbox.lock().bell {
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
    }

    /// Waits until everything that was started is over, as long as that may take.
    pub(crate) fn settle(&self, longest: Duration) {
        let deadline = Instant::now() + longest;
        let mut open = self.open.lock();
        while *open > 0 && !self.one_less.wait_until(&mut open, deadline).timed_out() {}
    }

    fn run(&self, sandbox: &Arc<Sandbox>, bell: &OwnedFd) {
        let (mut jobs, mut buffer) = (Vec::new(), vec![0; BUFFER]);
        loop {
            jobs.append(&mut self.inbox.lock().jobs);
            let ready = wait(&jobs, bell);
            let mut over = Vec::new();
            for (at, (job, ready)) in jobs.iter_mut().zip(ready).enumerate() {
                if job.advance(ready, &mut buffer) {
                    over.push(at);
                }
            }
            for at in over.into_iter().rev() {
                self.finish(sandbox, jobs.swap_remove(at));
            }
        }
    }

    fn finish(&self, sandbox: &Arc<Sandbox>, job: Job) {
        let slot = Arc::new(Mutex::new(Some(job)));
        let (theirs, owner) = (slot.clone(), sandbox.clone());
        let finish = move || {
            if let Some(job) = theirs.lock().take() {
                job.finish(&owner);
                owner.reactor.count_down();
            }
        };
        let thread = std::thread::Builder::new().name("finish".into()).stack_size(STACK);
        if thread.spawn(finish).is_err() {
            // Late is better than never.
            if let Some(job) = slot.lock().take() {
                job.finish(sandbox);
                self.count_down();
            }
        }
    }

    fn count_down(&self) {
        *self.open.lock() -= 1;
        self.one_less.notify_all();
    }
}

fn start(sandbox: &Arc<Sandbox>) -> io::Result<Arc<OwnedFd>> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sandbox, ours) = (sandbox.clone(), bell.clone());
    let run = move || sandbox.reactor.run(&sandbox, &ours);
    let thread = std::thread::Builder::new().name("background".into()).stack_size(STACK);
    thread.spawn(run)?;
    Ok(bell)
}

/// Waits until something happens to one of the jobs or a deadline is over.
fn wait(jobs: &[Job], bell: &OwnedFd) -> Vec<super::job::Ready> {
    let mut set = Vec::with_capacity(1 + 3 * jobs.len());
    set.push(PollFd::new(bell, PollFlags::IN));
    jobs.iter().for_each(|job| job.watch(&mut set));
    let deadline = jobs.iter().filter_map(Job::deadline).min();
    poll_until(&mut set, deadline);
    let mut flags = set.iter().map(PollFd::revents);
    if flags.next().is_some_and(|flags| !flags.is_empty()) {
        let _ = rustix::io::read(bell, &mut [0u8; 8]);
    }
    jobs.iter().map(|job| job.ready(&mut flags)).collect()
}
