//! Start, stop, destroy. Repeating one of them succeeds.

use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ringfence_link::warden::Request;
use ringfence_runtime::Limits;
use ringfence_sys::removal::remove_tree;
use ringfence_warden::Config;

use super::create::{DOCKER, network_of};
use super::layers::Ground;
use super::reach::blocking;
use super::{Belongs, Live, Running, Sandboxes, private};
use crate::problem::{Problem, Result};
use crate::store::{SandboxRecord, Status, now_ms};
use crate::wardens::call::Call;
use crate::wardens::end::{clean_up, is_alive};
use crate::wardens::launch::{Launched, launch};

/// How long a warden may take to end in order.
const ORDERLY: Duration = Duration::from_secs(20);

impl Sandboxes {
    pub async fn start(&self, account: &str, id: &str) -> Result<SandboxRecord> {
        let live = self.live_of(account, id)?;
        let _gate = live.gate.lock().await;
        let record = self.get(account, id)?;
        if record.status == Status::Running {
            return Ok(record);
        }
        if record.runtime == DOCKER {
            self.fetch_image(&record.image, |_| ControlFlow::Continue(())).await?;
        }
        live.close_journal();
        self.check_journal(id)?;
        let config = self.describe(record).await?;
        let result = self.launch_as_described(config.clone()).await;
        match result {
            Ok(launched) => {
                let pid = launched.info.warden_pid;
                self.watch(id, &live, launched.info, pid, Some(launched.child))?;
                self.change(id, |record| {
                    record.status = Status::Running;
                    record.reason = None;
                    (record.started_ms, record.stopped_ms) = (Some(now_ms()), None);
                })
            }
            Err(problem) => {
                self.clean_up_failed(&config.dir, id);
                let reason = problem.message.clone();
                self.change(id, |record| {
                    record.status = Status::Error;
                    record.reason = Some(reason.clone());
                })?;
                Err(problem)
            }
        }
    }

    async fn launch_as_described(&self, config: Config) -> Result<Launched> {
        if self.is_of_command() {
            private::mark(&config.dir)?;
        }
        launch(&self.inner.settings.program, &config).await
    }

    /// A command has no use for what did not start; callers of others may look at it.
    fn clean_up_failed(&self, dir: &Path, id: &str) {
        match self.is_of_command() {
            true => {
                private::clean_up(dir, id, self.users());
                remove_dir(dir);
            }
            false => clean_up(dir, id, self.users()),
        }
    }

    pub async fn stop(&self, account: &str, id: &str) -> Result<SandboxRecord> {
        let live = self.live_of(account, id)?;
        let _gate = live.gate.lock().await;
        let record = self.get(account, id)?;
        if record.status != Status::Running {
            return Ok(record);
        }
        self.end_warden(id, &live, "asked to").await;
        self.remember_head(id, &self.dir(id));
        self.change(id, |record| {
            record.status = Status::Stopped;
            record.stopped_ms = Some(now_ms());
        })
    }

    /// Ends it and removes everything that is its own.
    pub async fn destroy(&self, account: &str, id: &str) -> Result<()> {
        self.destroy_because(account, id, "destroyed by its owner").await
    }

    /// For who is about to destroy it: its codebase does not go with it.
    pub fn keep_codebase_of(&self, account: &str, id: &str) -> Result<()> {
        match self.inner.store.sandbox(account, id)? {
            Some(record) => self.inner.store.keep_codebase(&record.codebase_id),
            None => Ok(()),
        }
    }

    /// The same, with what is put on record as the reason.
    pub async fn destroy_because(&self, account: &str, id: &str, reason: &str) -> Result<()> {
        if self.inner.store.kept_journal(account, id)?.is_some() {
            return Ok(());
        }
        let live = self.live_of(account, id)?;
        let _gate = live.gate.lock().await;
        // Somebody may have been first while we waited.
        if self.inner.store.sandbox(account, id)?.is_none() {
            return Ok(());
        }
        self.end_warden(id, &live, reason).await;
        live.close_journal();
        // The record first: a directory without one is removed at the next start.
        let record = self.get(account, id)?;
        self.keep_journal(&record, reason)?;
        self.inner.live.lock().remove(id);
        let (dir, sandboxes) = (self.dir(id), self.clone());
        let removed = tokio::task::spawn_blocking(move || {
            remove_dir(&dir);
            sandboxes.release_layer(&record.layer);
            // The files it stood on may be nobody's now.
            sandboxes.inner.codebases.release(&record.codebase_id, record.codebase_version)
        });
        removed.await.map_err(|e| Problem::internal("remove the sandbox", e))?
    }

    /// Stops all that run, of all accounts, at once.
    pub async fn stop_all(&self) {
        let records = self.inner.store.all_sandboxes().unwrap_or_default();
        let running = records.into_iter().filter(|record| record.status == Status::Running);
        let mut stops = tokio::task::JoinSet::new();
        for record in running {
            let sandboxes = self.clone();
            stops.spawn(async move {
                if let Err(problem) = sandboxes.stop(&record.account, &record.id).await {
                    tracing::warn!(sandbox = record.id, %problem, "cannot be stopped");
                }
            });
        }
        stops.join_all().await;
    }

    fn live_of(&self, account: &str, id: &str) -> Result<Arc<Live>> {
        self.get(account, id)?;
        Ok(self.live(id))
    }

    pub(super) fn change(
        &self,
        id: &str,
        change: impl FnOnce(&mut SandboxRecord),
    ) -> Result<SandboxRecord> {
        self.inner.store.update_sandbox(id, change)?.ok_or_else(super::not_found)
    }

    /// Ends the warden, by asking or by force, and waits until nothing of it is left.
    pub(super) async fn end_warden(&self, id: &str, live: &Live, reason: &str) {
        let running = live.warden.lock().clone();
        let dir = self.dir(id);
        if let Some(running) = running {
            running.stopping.store(true, Ordering::Release);
            let socket = dir.join("warden.sock");
            let stop = Call::ask(&socket, Request::StopBecause { reason: reason.into() });
            let asked = tokio::time::timeout(ORDERLY, stop).await;
            if !matches!(asked, Ok(Ok(_))) {
                kill(&running);
            }
            let mut ended = running.ended.clone();
            if tokio::time::timeout(ORDERLY, ended.wait_for(|ended| *ended)).await.is_err() {
                kill(&running);
                let _ = ended.wait_for(|ended| *ended).await;
            }
        }
    }

    /// What its warden is told.
    async fn describe(&self, record: SandboxRecord) -> Result<Config> {
        let dir = self.dir(&record.id);
        make_private_dir(&dir).map_err(|e| Problem::internal("make the sandbox's directory", e))?;
        wait_for_the_last_one(&dir).await?;
        let sandboxes = self.clone();
        let Ground { record, base, layer } = blocking(move || sandboxes.ground(record)).await?;
        Ok(Config {
            id: record.id.clone(),
            layer,
            base: base.path,
            rules: record.rules.clone(),
            mask: base.mask.patterns,
            default_mask: base.mask.weak,
            ignore_files: base.mask.files,
            limits: Limits {
                memory: record.memory,
                cpu_quota: record.cpu_quota,
                cpu_shares: record.cpu_shares,
                pids: record.pids,
            },
            network: network_of(&record.network),
            env: record.env.clone().into_iter().collect(),
            read_only: record.read_only_paths.clone(),
            ends_with_caller: self.inner.settings.belongs != Belongs::Host,
            keeps_files: !self.is_of_command(),
            image_user: record.image_user,
            image: (record.runtime == DOCKER).then(|| record.image.clone()),
            bwrap: std::env::var_os("RINGFENCE_BWRAP").map(Into::into),
            users: self.inner.settings.users.clone(),
            dir,
        })
    }
}

/// What is left of a warden that has ended may take a moment to go.
pub(super) async fn wait_for_the_last_one(dir: &Path) -> Result<()> {
    let deadline = std::time::Instant::now() + ORDERLY;
    while is_alive(dir) {
        if std::time::Instant::now() > deadline {
            return Err(Problem::internal("start the sandbox", "another warden owns it"));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

fn kill(running: &Running) {
    if let Some(pid) = rustix::process::Pid::from_raw(running.info.warden_pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

pub(super) fn make_private_dir(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// What cannot be removed now (somebody looks at it) is removed at the next start.
pub(super) fn remove_dir(dir: &Path) {
    if let Err(e) = remove_tree(dir) {
        tracing::warn!(dir = %dir.display(), error = %e, "a sandbox's directory is left");
    }
}
