//! The loops about sandboxes and commands.

use ringfence_link::client::Client;
use ringfence_link::warden::{Request, SessionExec};
use ringfence_wire::v1;
use tokio::task::JoinSet;

use super::Api;
use super::ask::{Ask, Via};
use super::echo::Echo;
use super::sandboxes::{self, Shape, exec, exec_request, printed, session_request, succeeded};
use super::served::Callers;
use super::{layers, uploads};
use crate::order::{Answer, Trouble};
use crate::sandbox::TRUE;
use crate::work::{Life, expect, lives, micros_since, repeat, times_of};

impl Api {
    pub(crate) fn carry_out(&mut self, ask: Ask) -> Result<Answer, Trouble> {
        match ask {
            Ask::Serve => self.serve(),
            Ask::End => self.end(),
            Ask::Open { base, size, start } => self.keep(&base, size, start),
            Ask::Close => self.close(),
            Ask::Echo { via, count } => self.echo(via, count),
            Ask::Info { via, count } => self.infos(via, count),
            Ask::Get { via, count } => self.gets(via, count),
            Ask::Exec { via, argv, count } => self.execs(via, &argv, count),
            Ask::ExecOutput { via, argv, bytes, count } => self.output(via, &argv, bytes, count),
            Ask::SessionOpen { via, count } => self.sessions(via, count),
            Ask::SessionExec { via, text, count } => self.in_session(via, &text, count),
            Ask::SessionOutput { via, text, bytes, count } => {
                self.session_output(via, &text, bytes, count)
            }
            Ask::Straight { text, count } => self.straight(&text, count),
            Ask::Life { via, base, count } => {
                let codebase = self.codebase(&base)?;
                self.lives(via, codebase, count)
            }
            Ask::LifeOf { via, codebase, count } => self.lives(via, codebase, count),
            Ask::Crowd { via, base, size, count } => {
                let codebase = self.codebase(&base)?;
                self.crowds(via, codebase, size, count)
            }
            Ask::Copy { via, base, copying, files, count } => {
                let codebase = self.codebase(&base)?;
                let callers = self.callers(via)?;
                let work = layers::copies(&callers, codebase, copying, files, count);
                self.runtime.block_on(work)
            }
            Ask::Upload { via, bytes, count } => {
                let callers = self.callers(via)?;
                self.runtime.block_on(uploads::up(&callers, bytes, count))
            }
            Ask::Download { via, bytes, count } => {
                let callers = self.callers(via)?;
                self.runtime.block_on(uploads::down(&callers, bytes, count))
            }
        }
    }

    fn echo(&mut self, via: Via, count: usize) -> Result<Answer, Trouble> {
        let echo = match self.echo.take() {
            Some(echo) => echo,
            None => Echo::start(&self.scratch, self.size_of_a_sandbox()?)?,
        };
        let client = self.runtime.block_on(echo.connect(via));
        self.echo = Some(echo);
        let client = client?;
        self.each("echo", count, async || {
            client.clone().info(v1::InfoRequest {}).await?;
            Ok(())
        })
    }

    /// As its answer is encoded.
    fn size_of_a_sandbox(&self) -> Result<usize, Trouble> {
        let (callers, id) = (self.callers(Via::Unix)?, self.first()?);
        let sandbox = self.runtime.block_on(sandboxes::get(&callers, &id))?;
        Ok(prost::Message::encoded_len(&sandbox))
    }

    fn infos(&self, via: Via, count: usize) -> Result<Answer, Trouble> {
        let callers = self.callers(via)?;
        self.each("info", count, async || {
            callers.info.clone().info(v1::InfoRequest {}).await?;
            Ok(())
        })
    }

    fn gets(&self, via: Via, count: usize) -> Result<Answer, Trouble> {
        let (callers, id) = (self.callers(via)?, self.first()?);
        self.each("get", count, async || sandboxes::get(&callers, &id).await.map(drop))
    }

    fn execs(&self, via: Via, argv: &[String], count: usize) -> Result<Answer, Trouble> {
        let (callers, id) = (self.callers(via)?, self.first()?);
        self.each("exec", count, async || exec(&callers, exec_request(&id, argv)).await)
    }

    fn output(
        &self,
        via: Via,
        argv: &[String],
        bytes: u64,
        count: usize,
    ) -> Result<Answer, Trouble> {
        let (callers, id) = (self.callers(via)?, self.first()?);
        self.each("output", count, async || {
            let request = exec_request(&id, argv);
            let output = callers.sandboxes.clone().exec_stream(request).await?;
            expect(bytes, printed(output.into_inner()).await?)
        })
    }

    fn sessions(&self, via: Via, count: usize) -> Result<Answer, Trouble> {
        let (callers, id) = (self.callers(via)?, self.first()?);
        self.runtime.block_on(async {
            let mut times = Vec::with_capacity(count);
            for _ in 0..count {
                let start = std::time::Instant::now();
                let session = sandboxes::open_session(&callers, &id).await?;
                times.push(micros_since(start));
                sandboxes::close_session(&callers, &id, &session).await?;
            }
            Ok(times_of("open", times))
        })
    }

    /// The session all commands are run in, opened when it is needed first.
    fn session(&mut self) -> Result<String, Trouble> {
        if self.session.is_none() {
            let (callers, id) = (self.callers(Via::Unix)?, self.first()?);
            let opened = self.runtime.block_on(sandboxes::open_session(&callers, &id))?;
            self.session = Some(opened);
        }
        self.session.clone().ok_or_else(|| Trouble::new("no session is open"))
    }

    fn in_session(&mut self, via: Via, text: &str, count: usize) -> Result<Answer, Trouble> {
        let session = self.session()?;
        let (callers, id) = (self.callers(via)?, self.first()?);
        self.each("exec", count, async || {
            let request = session_request(&id, &session, text);
            let result = callers.sandboxes.clone().session_exec(request).await?;
            succeeded(result.get_ref())
        })
    }

    fn session_output(
        &mut self,
        via: Via,
        text: &str,
        bytes: u64,
        count: usize,
    ) -> Result<Answer, Trouble> {
        let session = self.session()?;
        let (callers, id) = (self.callers(via)?, self.first()?);
        self.each("output", count, async || {
            let request = session_request(&id, &session, text);
            let output = callers.sandboxes.clone().session_exec_stream(request).await?;
            expect(bytes, printed(output.into_inner()).await?)
        })
    }

    fn straight(&mut self, text: &str, count: usize) -> Result<Answer, Trouble> {
        let session = self.session()?;
        let client = Client::new(&self.served()?.warden_socket(&self.first()?));
        repeat("exec", count, || {
            let exec = SessionExec::new(text);
            let request = Request::SessionExec { which: session.clone(), exec };
            match client.run(request, |_| {})?.exit_code {
                0 => Ok(()),
                code => Err(Trouble::new(format!("the command ended with {code}"))),
            }
        })
    }

    fn lives(&self, via: Via, codebase: String, count: usize) -> Result<Answer, Trouble> {
        let callers = self.callers(via)?;
        let shape = Shape { codebase, preset: "agent-safe", start: true };
        lives(count, || self.runtime.block_on(live(&callers, &shape)))
    }

    fn crowds(
        &self,
        via: Via,
        codebase: String,
        size: usize,
        count: usize,
    ) -> Result<Answer, Trouble> {
        let callers = self.callers(via)?;
        let shape = Shape { codebase, preset: "agent-safe", start: true };
        self.each("whole", count, async || crowd(&callers, &shape, size).await)
    }

    /// Does something so often and tells every time.
    fn each(
        &self,
        name: &'static str,
        count: usize,
        mut work: impl AsyncFnMut() -> Result<(), Trouble>,
    ) -> Result<Answer, Trouble> {
        self.runtime.block_on(async {
            let mut times = Vec::with_capacity(count);
            for _ in 0..count {
                let start = std::time::Instant::now();
                work().await?;
                times.push(micros_since(start));
            }
            Ok(times_of(name, times))
        })
    }
}

async fn live(callers: &Callers, shape: &Shape) -> Result<Life, Trouble> {
    let begun = std::time::Instant::now();
    let id = shape.create(callers).await?;
    let start = micros_since(begun);
    exec(callers, exec_request(&id, &[TRUE.into()])).await?;
    let first_exec = micros_since(begun) - start;
    sandboxes::destroy(callers, &id).await?;
    let destroy = micros_since(begun) - start - first_exec;
    Ok(Life { start, first_exec, destroy })
}

/// All at once.
async fn crowd(callers: &Callers, shape: &Shape, size: usize) -> Result<(), Trouble> {
    let mut all = JoinSet::new();
    for _ in 0..size {
        let (callers, shape) = (callers.clone(), shape.clone());
        all.spawn(async move { live(&callers, &shape).await });
    }
    while let Some(done) = all.join_next().await {
        done.map_err(|e| Trouble::new(e.to_string()))??;
    }
    Ok(())
}
