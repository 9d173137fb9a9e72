//! Calls about files of a workspace, in every state of its sandbox.

use std::borrow::Cow;
use std::ops::ControlFlow;

use ringfence_fs::files::{FileError, Files, View as FsView};
use ringfence_link::files::{Entry, EntryKind, FileCall, FileRequest, View};
use ringfence_link::warden::{Reply, Request};
use ringfence_policy::WorkspacePath;
use ringfence_warden::files::convert::{entry_to_link, to_failure};
use ringfence_warden::journal::Text;
use ringfence_warden::journal::event::{Decision, FileCall as Recorded, RuleName, Viewer};

use super::Sandboxes;
use super::ask::{problem_of, refusal};
use super::reach::{Held, Reach, blocking};
use crate::problem::{Code, Problem, Result};
use crate::wardens::call::{Call, Step};

/// In bytes, as Linux has it.
const MOST_OF_A_TARGET: usize = 4095;

/// Whose file, and with whose eyes.
#[derive(Debug, Clone)]
pub struct FileAt {
    pub account: String,
    pub sandbox: String,
    pub view: View,
    pub path: WorkspacePath,
}

impl FileAt {
    pub fn with_path(&self, path: WorkspacePath) -> Self {
        Self { path, ..self.clone() }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        caller_spelling(&self.path)
    }
}

/// A path as callers spell it: `/x`, `x` and `/workspace/x` are the same.
pub fn parse_path(spelling: &str) -> Result<WorkspacePath> {
    WorkspacePath::from_caller(spelling).map_err(|error| {
        let shown: String = spelling.chars().take(200).collect();
        Problem::invalid(format!("{shown:?} is not a path in the workspace: {error}"))
            .with("path", shown)
    })
}

/// What the kernel takes as the target of a symlink.
fn parse_target(target: &str) -> Result<Vec<u8>> {
    let why = match target.len() {
        0 => "target is required",
        1..=MOST_OF_A_TARGET if !target.contains('\0') => return Ok(target.into()),
        1..=MOST_OF_A_TARGET => "the target of a link cannot have a zero byte in it",
        _ => "the target of a link has 4095 bytes at most",
    };
    Err(Problem::invalid(why))
}

/// Such that a directory called `workspace` at the top is not taken for the workspace.
pub fn caller_spelling(path: &WorkspacePath) -> Vec<u8> {
    let ambiguous = path.components().next() == Some(&WorkspacePath::MOUNT[1..]);
    let prefix = if ambiguous { WorkspacePath::MOUNT } else { b"" };
    [prefix, path.as_bytes()].concat()
}

impl Sandboxes {
    /// What is at a path; a symlink itself and not what it points to.
    pub async fn stat_file(&self, at: &FileAt) -> Result<Entry> {
        one(self.file_call(at, FileCall::Stat { path: at.bytes(), follow: false }).await?)
    }

    /// What is in a directory, sorted by path; with `recursive` all files below it.
    pub async fn list_directory(&self, at: &FileAt, recursive: bool) -> Result<Vec<Entry>> {
        let list = FileCall::List { path: at.bytes(), recursive, files_only: recursive };
        let mut entries = self.file_call(at, list).await?;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// With those above it; one that is there already is fine.
    pub async fn make_directory(&self, at: &FileAt) -> Result<Entry> {
        let make = FileCall::MakeDirectory { path: at.bytes(), mode: None, parents: true };
        one(self.file_call(at, make).await?)
    }

    /// A symlink as it is given, wherever it leads; with `parents` also the directories above it.
    pub async fn make_symlink(&self, at: &FileAt, target: &str, parents: bool) -> Result<Entry> {
        let target = parse_target(target)?;
        let make = FileCall::MakeSymlink { path: at.bytes(), target, parents };
        one(self.file_call(at, make).await?)
    }

    pub async fn remove_file(&self, at: &FileAt, recursive: bool) -> Result<()> {
        self.file_call(at, FileCall::Remove { path: at.bytes(), recursive }).await.map(drop)
    }

    /// Returns what is at the new place.
    pub async fn rename_file(&self, at: &FileAt, to: WorkspacePath) -> Result<Entry> {
        let to = at.with_path(to);
        self.file_call(at, FileCall::Rename { from: at.bytes(), to: to.bytes() }).await?;
        self.stat_file(&to).await
    }

    /// The one sandbox of a codebase that has been started and not destroyed. Nothing if there are
    /// several.
    pub fn only_started(&self, account: &str, codebase: &str) -> Result<Option<String>> {
        let mut started = self.inner.store.started_sandboxes(account, codebase)?.into_iter();
        Ok(started.next().filter(|_| started.next().is_none()).map(|record| record.id))
    }

    async fn file_call(&self, at: &FileAt, call: FileCall) -> Result<Vec<Entry>> {
        let reach = self.reach(&at.account, &at.sandbox).await?;
        match self.file_call_at(reach, at, call.clone()).await {
            Err(problem) if problem.code == Code::SandboxNotRunning && only_looks(&call) => {
                let reach = self.reach_in_turn(&at.account, &at.sandbox).await?;
                self.file_call_at(reach, at, call).await
            }
            done => done,
        }
    }

    async fn file_call_at(&self, reach: Reach, at: &FileAt, call: FileCall) -> Result<Vec<Entry>> {
        match reach {
            Reach::Warden(socket) => {
                let request = Request::File(FileRequest { view: at.view, call });
                collect(Call::begin(&socket, request).await.map_err(problem_of)?).await
            }
            Reach::Disk(held) => {
                let (sandboxes, view) = (self.clone(), at.view);
                blocking(move || sandboxes.call_on_disk(&held, view, &call)).await
            }
        }
    }

    fn call_on_disk(&self, held: &Held, view: View, call: &FileCall) -> Result<Vec<Entry>> {
        let opened = self.open(held)?;
        let about = About::of(call, view)?;
        let done = answer(&opened.files(fs_view(view)), &about, call);
        self.settle(held, &about, done)
    }

    /// Puts a call on record and turns its error into what the caller hears.
    pub(super) fn settle<T>(
        &self,
        held: &Held,
        about: &About,
        done: std::result::Result<T, FileError>,
    ) -> Result<T> {
        self.note(held, about.recorded(done.as_ref().err()));
        done.map_err(|error| refusal(to_failure(&error)))
    }
}

/// What a call is about.
#[derive(Debug)]
pub(super) struct About {
    operation: &'static str,
    view: View,
    path: WorkspacePath,
    to: Option<WorkspacePath>,
    /// Of a symlink.
    target: Option<Vec<u8>>,
}

impl About {
    pub(super) fn new(operation: &'static str, at: &FileAt) -> Self {
        Self { operation, view: at.view, path: at.path.clone(), to: None, target: None }
    }

    fn of(call: &FileCall, view: View) -> Result<Self> {
        let (operation, path, to) = match call {
            FileCall::Stat { path, .. } => ("stat", path, None),
            FileCall::List { path, .. } => ("list", path, None),
            FileCall::Read { path, .. } => ("read", path, None),
            FileCall::Write { path, .. } => ("write", path, None),
            FileCall::MakeDirectory { path, .. } => ("mkdir", path, None),
            FileCall::MakeSymlink { path, .. } => ("symlink", path, None),
            FileCall::Remove { path, .. } => ("remove", path, None),
            FileCall::Rename { from, to } => ("rename", from, Some(to)),
        };
        let parse = |path: &Vec<u8>| {
            WorkspacePath::from_caller(path).map_err(|e| Problem::invalid(e.to_string()))
        };
        let target = match call {
            FileCall::MakeSymlink { target, .. } => Some(target.clone()),
            _ => None,
        };
        Ok(Self { operation, view, path: parse(path)?, to: to.map(parse).transpose()?, target })
    }

    fn recorded(&self, error: Option<&FileError>) -> Recorded {
        let denial = error.and_then(|error| error.denial.as_ref());
        let kind = error.map(|error| error.kind().as_str());
        let refused = denial.is_some() || kind == Some("denied");
        Recorded {
            to: self
                .to
                .as_ref()
                .map(WorkspacePath::as_bytes)
                .or(self.target.as_deref())
                .map(Text::new),
            view: match self.view {
                View::Owner => Viewer::Owner,
                View::Agent => Viewer::Agent,
            },
            decision: if refused { Decision::Denied } else { Decision::Granted },
            rule: denial.and_then(|denial| denial.rule.as_ref()).map(RuleName::from),
            error: kind.map(Cow::Borrowed),
            ..Recorded::new(self.operation, self.path.as_bytes())
        }
    }
}

/// A call that can be made again: a warden that ends in the middle does not say how far it came.
fn only_looks(call: &FileCall) -> bool {
    matches!(call, FileCall::Stat { .. } | FileCall::List { .. })
}

/// Contents of files are not among these calls.
fn answer(
    files: &Files,
    about: &About,
    call: &FileCall,
) -> std::result::Result<Vec<Entry>, FileError> {
    let path = &about.path;
    match call {
        FileCall::Stat { follow, .. } => {
            files.stat(path, *follow).map(|entry| vec![entry_to_link(entry)])
        }
        FileCall::List { recursive: true, files_only, .. } => walk(files, path, *files_only),
        FileCall::List { .. } => Ok(files.list(path)?.into_iter().map(entry_to_link).collect()),
        FileCall::MakeDirectory { mode, parents, .. } => {
            files.mkdir(path, *mode, *parents).map(|entry| vec![entry_to_link(entry)])
        }
        FileCall::MakeSymlink { target, parents, .. } => {
            files.symlink(path, target, *parents).map(|entry| vec![entry_to_link(entry)])
        }
        FileCall::Remove { recursive, .. } => files.remove(path, *recursive).map(|()| vec![]),
        FileCall::Rename { .. } => {
            files.rename(path, about.to.as_ref().unwrap_or(path)).map(|()| vec![])
        }
        FileCall::Read { .. } | FileCall::Write { .. } => Ok(vec![]),
    }
}

fn walk(
    files: &Files,
    path: &WorkspacePath,
    files_only: bool,
) -> std::result::Result<Vec<Entry>, FileError> {
    let mut found = Vec::new();
    files.walk(path, &mut |entry| {
        let entry = entry_to_link(entry);
        if !files_only || entry.kind != EntryKind::Directory {
            found.push(entry);
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

async fn collect(mut call: Call) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    loop {
        match call.steps.next().await.map_err(problem_of)? {
            Step::Reply(Reply::Entries(entries)) => found.extend(entries),
            Step::Reply(Reply::File(entry)) => return Ok(vec![entry]),
            Step::Reply(reply) if reply.is_last() => return Ok(found),
            _ => {}
        }
    }
}

fn one(entries: Vec<Entry>) -> Result<Entry> {
    let first = entries.into_iter().next();
    first.ok_or_else(|| Problem::internal("understand the sandbox", "it named no file"))
}

pub(super) fn fs_view(view: View) -> FsView {
    match view {
        View::Owner => FsView::Owner,
        View::Agent => FsView::Agent,
    }
}
