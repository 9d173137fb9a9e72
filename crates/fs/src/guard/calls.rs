//! Operations that calls of the API have beside those of programs, in the view of programs.

use std::fs::File;

use ringfence_policy::Level;
use rustix::io::Result;

use super::{Guard, Pid};
use crate::events::Operation;
use crate::layers::temporary::Temporary;
use crate::tree::NodeId;

impl Guard {
    /// As an open for reading.
    pub(crate) fn open_beside(&self, pid: Pid, id: NodeId) -> Result<File> {
        self.node_with(pid, Operation::Read, id, Level::Read)?;
        self.tree.open_beside(id)
    }

    /// Whether a file may be written to or made here; the answer does not depend on whether there
    /// is one.
    pub(crate) fn may_put(&self, pid: Pid, at: (NodeId, &[u8])) -> Result<()> {
        self.may_make(pid, Operation::Write, at.0, at.1)
    }

    /// Puts a file at a name, in the place of what is there.
    pub(crate) fn put(
        &self,
        pid: Pid,
        at: (NodeId, &[u8]),
        staged: Temporary,
        mode: u32,
    ) -> Result<()> {
        self.may_put(pid, at)?;
        self.tree.put(at, staged, mode)
    }
}
