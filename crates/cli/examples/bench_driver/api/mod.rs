//! A server and what is asked of it through its API.
//!
//! | file | what is in it |
//! |---|---|
//! | [`ask`] | what can be asked for |
//! | [`served`] | the server's process, and connections to it |
//! | [`echo`] | a bare gRPC server, to tell the server's time from that of its transport |
//! | [`sandboxes`] | single calls about sandboxes |
//! | [`work`] | the loops about sandboxes and commands |
//! | [`layers`] | forks and snapshots |
//! | [`uploads`] | one file to the server and back |

mod ask;
mod echo;
mod layers;
mod sandboxes;
mod served;
mod uploads;
mod work;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tokio::runtime::{Builder, Runtime};

pub(crate) use ask::Ask;
pub(crate) use echo::serve as serve_echo;

use self::echo::Echo;
use self::sandboxes::{Shape, codebase_on, destroy};
use self::served::{Callers, Served};
use crate::order::{Answer, Trouble};

/// What is kept between orders.
#[derive(Debug)]
pub(crate) struct Api {
    ringfence: PathBuf,
    scratch: PathBuf,
    /// On one thread: no time is lost to waking another one.
    runtime: Runtime,
    served: Option<Served>,
    echo: Option<Echo>,
    codebases: HashMap<PathBuf, String>,
    /// Ids; the orders use the first.
    open: Vec<String>,
    session: Option<String>,
}

impl Api {
    pub(crate) fn new(ringfence: PathBuf, scratch: PathBuf) -> Result<Self, Trouble> {
        Ok(Self {
            ringfence,
            scratch,
            runtime: Builder::new_current_thread().enable_all().build()?,
            served: None,
            echo: None,
            codebases: HashMap::new(),
            open: Vec::new(),
            session: None,
        })
    }

    fn serve(&mut self) -> Result<Answer, Trouble> {
        let served = Served::start(&self.ringfence, &self.scratch)?;
        let answer = Answer::Server { pid: served.pid(), address: served.address.clone() };
        self.served = Some(served);
        Ok(answer)
    }

    fn end(&mut self) -> Result<Answer, Trouble> {
        (self.echo, self.session) = (None, None);
        self.open.clear();
        self.codebases.clear();
        match self.served.take() {
            Some(served) => served.end().map(|()| Answer::Done),
            None => Ok(Answer::Done),
        }
    }

    fn served(&self) -> Result<&Served, Trouble> {
        self.served.as_ref().ok_or_else(|| Trouble::new("no server runs"))
    }

    /// A connection of its own for every order: none is kept while nobody looks after it.
    fn callers(&self, via: ask::Via) -> Result<Callers, Trouble> {
        self.runtime.block_on(self.served()?.connect(via))
    }

    /// The codebase that is this directory. Only the Unix socket may name one.
    fn codebase(&mut self, base: &Path) -> Result<String, Trouble> {
        if let Some(id) = self.codebases.get(base) {
            return Ok(id.clone());
        }
        let callers = self.callers(ask::Via::Unix)?;
        let id = self.runtime.block_on(codebase_on(&callers, base))?;
        self.codebases.insert(base.into(), id.clone());
        Ok(id)
    }

    fn first(&self) -> Result<String, Trouble> {
        self.open.first().cloned().ok_or_else(|| Trouble::new("no sandbox is open"))
    }

    fn keep(&mut self, base: &Path, size: usize, start: bool) -> Result<Answer, Trouble> {
        let shape = Shape { codebase: self.codebase(base)?, preset: "agent-safe", start };
        let callers = self.callers(ask::Via::Unix)?;
        for _ in 0..size {
            self.open.push(self.runtime.block_on(shape.create(&callers))?);
        }
        Ok(Answer::Done)
    }

    fn close(&mut self) -> Result<Answer, Trouble> {
        let callers = self.callers(ask::Via::Unix)?;
        self.session = None;
        for id in self.open.drain(..) {
            self.runtime.block_on(destroy(&callers, &id))?;
        }
        Ok(Answer::Done)
    }
}
