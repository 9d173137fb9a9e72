//! What was changed in a workspace.

use std::io::{self, Write};

use ringfence_fs::LayerError;
use ringfence_fs::changes::LayerView;
use ringfence_fs::diff::write_diff;
use ringfence_link::files::LayerChange;
use ringfence_link::warden::{Reply, Request};
use ringfence_warden::files::convert::changes_to_link;
use ringfence_warden::journal::event::FileCall;

use super::Sandboxes;
use super::ask::problem_of;
use super::reach::{Held, Opened, Reach, blocking};
use crate::problem::{Code, Problem, Result};
use crate::wardens::call::{Call, Step};

/// A diff is one message; whoever has changed more than this looks at single files.
const LARGEST_DIFF: usize = 64 << 20;

impl Sandboxes {
    /// What differs from the codebase, sorted by path.
    pub async fn changes(&self, account: &str, id: &str) -> Result<Vec<LayerChange>> {
        match self.reach(account, id).await? {
            Reach::Warden(socket) => {
                let call = Call::begin(&socket, Request::Changes).await.map_err(problem_of)?;
                Ok(collect_changes(call).await?.0)
            }
            Reach::Disk(held) => {
                let sandboxes = self.clone();
                let look = move || {
                    let opened = sandboxes.look(&held, "changes")?;
                    let changes = view_of(&opened)?.changes().map_err(not_compared)?;
                    Ok(changes_to_link(&changes))
                };
                blocking(look).await
            }
        }
    }

    /// The same as a patch.
    pub async fn diff(&self, account: &str, id: &str) -> Result<Vec<u8>> {
        match self.reach(account, id).await? {
            Reach::Warden(socket) => {
                let call = Call::begin(&socket, Request::Diff).await.map_err(problem_of)?;
                collect_output(call).await
            }
            Reach::Disk(held) => {
                let sandboxes = self.clone();
                let look = move || diff_of(&view_of(&sandboxes.look(&held, "diff")?)?);
                blocking(look).await
            }
        }
    }

    fn look(&self, held: &Held, operation: &'static str) -> Result<Opened> {
        let opened = self.open(held)?;
        self.note(held, FileCall::new(operation, b"/"));
        Ok(opened)
    }
}

fn view_of(opened: &Opened) -> Result<LayerView> {
    LayerView::open(opened.layer()).map_err(not_compared)
}

pub(super) fn not_compared(error: LayerError) -> Problem {
    Problem::internal("compare the workspace with its codebase", error)
}

fn diff_of(view: &LayerView) -> Result<Vec<u8>> {
    let changes = view.changes().map_err(not_compared)?;
    let mut text = Bounded(Vec::new());
    match write_diff(view, &changes, &mut text) {
        Ok(()) => Ok(text.0),
        Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Err(too_large()),
        Err(e) => Err(Problem::internal("write the diff", e)),
    }
}

struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LARGEST_DIFF {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_large() -> Problem {
    Problem::new(Code::ResourceLimitExceeded, "the diff is larger than one message can be")
        .with("limit", "diff")
        .with("most", LARGEST_DIFF.to_string())
}

/// Follows a call that lists changes to its last reply.
pub(super) async fn collect_changes(mut call: Call) -> Result<(Vec<LayerChange>, Reply)> {
    let mut found = Vec::new();
    loop {
        match call.steps.next().await.map_err(problem_of)? {
            Step::Reply(Reply::Changes(changes)) => found.extend(changes),
            Step::Reply(reply) if reply.is_last() => return Ok((found, reply)),
            _ => {}
        }
    }
}

async fn collect_output(mut call: Call) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        match call.steps.next().await.map_err(problem_of)? {
            Step::Output(bytes) if text.len() + bytes.len() > LARGEST_DIFF => {
                return Err(too_large());
            }
            Step::Output(bytes) => text.extend(bytes),
            Step::Reply(reply) if reply.is_last() => return Ok(text),
            _ => {}
        }
    }
}
