//! Files of a running sandbox, through calls to its warden.

mod agent;
mod calls;
mod layer;

use ringfence_link::client::{ClientError, Event};
use ringfence_link::files::{Entry, FileCall, FileRequest, LayerChange, View};
use ringfence_link::warden::{Failure, Reply, Request};

use crate::support::Sandbox;

/// Short forms of calls.
impl Sandbox {
    fn file(&self, view: View, call: FileCall) -> Result<Reply, ClientError> {
        self.client.ask(Request::File(FileRequest { view, call }))
    }

    fn stat(&self, view: View, path: &str) -> Result<Entry, ClientError> {
        entry(self.file(view, FileCall::Stat { path: path.into(), follow: false }))
    }

    fn put(&self, view: View, path: &str, content: &[u8]) -> Result<Entry, ClientError> {
        self.put_as(view, write(path), content)
    }

    fn put_as(&self, view: View, call: FileCall, content: &[u8]) -> Result<Entry, ClientError> {
        let call = self.client.call(Request::File(FileRequest { view, call }))?;
        entry(call.send_file(content))
    }

    fn get(&self, view: View, path: &str) -> Result<Vec<u8>, ClientError> {
        self.get_part(view, path, 0, None).map(|(_, content)| content)
    }

    fn get_part(
        &self,
        view: View,
        path: &str,
        offset: u64,
        length: Option<u64>,
    ) -> Result<(Entry, Vec<u8>), ClientError> {
        let call = FileCall::Read { path: path.into(), offset, length };
        let (mut entry, mut content) = (None, Vec::new());
        let call = self.client.call(Request::File(FileRequest { view, call }))?;
        call.finish(|event| match event {
            Event::Reply(Reply::Reading(found), _) => entry = Some(found.clone()),
            Event::Output(bytes) => content.extend(bytes),
            other => panic!("{other:?}"),
        })?;
        Ok((entry.unwrap(), content))
    }

    fn list(&self, view: View, path: &str, recursive: bool) -> Result<Vec<Entry>, ClientError> {
        let call = FileCall::List { path: path.into(), recursive, files_only: recursive };
        let mut entries = Vec::new();
        let call = self.client.call(Request::File(FileRequest { view, call }))?;
        call.finish(|event| match event {
            Event::Reply(Reply::Entries(some), _) => entries.extend(some.clone()),
            other => panic!("{other:?}"),
        })?;
        Ok(entries)
    }

    fn names(&self, view: View, path: &str, recursive: bool) -> Vec<String> {
        let entries = self.list(view, path, recursive).unwrap();
        entries.into_iter().map(|entry| String::from_utf8(entry.path).unwrap()).collect()
    }

    fn make_dir(&self, view: View, path: &str, parents: bool) -> Result<Entry, ClientError> {
        entry(self.file(view, FileCall::MakeDirectory { path: path.into(), mode: None, parents }))
    }

    fn make_link(&self, view: View, path: &str, target: &str) -> Result<Entry, ClientError> {
        let (path, target) = (path.into(), target.into());
        entry(self.file(view, FileCall::MakeSymlink { path, target, parents: false }))
    }

    fn remove(&self, view: View, path: &str, recursive: bool) -> Result<Reply, ClientError> {
        self.file(view, FileCall::Remove { path: path.into(), recursive })
    }

    fn rename(&self, view: View, from: &str, to: &str) -> Result<Reply, ClientError> {
        self.file(view, FileCall::Rename { from: from.into(), to: to.into() })
    }

    /// Changes that come before the last reply, and that one.
    fn changes(&self, request: Request) -> Result<(Vec<LayerChange>, Reply), ClientError> {
        let mut changes = Vec::new();
        let reply = self.client.call(request)?.finish(|event| match event {
            Event::Reply(Reply::Changes(some), _) => changes.extend(some.clone()),
            other => panic!("{other:?}"),
        })?;
        Ok((changes, reply))
    }
}

fn write(path: &str) -> FileCall {
    FileCall::Write { path: path.into(), mode: None, parents: false }
}

fn entry(reply: Result<Reply, ClientError>) -> Result<Entry, ClientError> {
    match reply? {
        Reply::File(entry) => Ok(entry),
        other => panic!("{other:?}"),
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Failure {
    match result {
        Err(ClientError::Refused(failure)) => failure,
        other => panic!("{other:?}"),
    }
}
