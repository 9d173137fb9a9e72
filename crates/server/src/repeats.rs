//! Requests that carry an id: the same one does nothing twice and gets the same answer.
//!
//! The store remembers answers, for a day and over restarts. Who asks while the first is still at it
//! waits for that one here. An error is not remembered, and neither is work whose caller went away
//! in the middle: the next who asks does it anew. What must not stop half way whether or not its
//! caller is still there goes through [`to_the_end`] as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prost::Message;
use ringfence_engine::problem::{Problem, Result as Outcome};
use ringfence_engine::store::{Begin, Store};
use serde::Serialize;
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use crate::caller::caller;
use crate::status::status_of;

/// Account and request id.
type Key = (String, String);

/// What is being worked on now. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Repeats {
    store: Store,
    /// Whoever waits is woken when the sender goes.
    at_it: Arc<Mutex<HashMap<Key, watch::Receiver<()>>>>,
}

/// A request as it is told apart from others.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) account: String,
    /// Empty if the caller does not care.
    pub(crate) request_id: String,
    pub(crate) method: &'static str,
    /// See [`content`].
    pub(crate) content: Vec<u8>,
}

impl Asked {
    pub(crate) fn of<T: Serialize>(
        request: &Request<T>,
        method: &'static str,
        request_id: &str,
    ) -> Result<Self, Status> {
        let account = caller(request).map_err(status_of)?.account;
        let content = match request_id.is_empty() {
            true => Vec::new(),
            false => content(request.get_ref()),
        };
        Ok(Self { account, request_id: request_id.to_owned(), method, content })
    }
}

/// An answer, and whether it was remembered.
#[derive(Debug)]
pub(crate) struct Answered<M> {
    pub(crate) message: M,
    pub(crate) is_repeated: bool,
}

impl<M> Answered<M> {
    pub(crate) fn response(self) -> Response<M> {
        Response::new(self.message)
    }
}

enum Entered {
    New(AtIt),
    Done(Vec<u8>),
    Wait(watch::Receiver<()>),
}

/// That somebody is at it. Dropping this gives it up, unless it was finished.
struct AtIt {
    repeats: Repeats,
    key: Key,
    finished: bool,
    _tell: watch::Sender<()>,
}

impl Repeats {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, at_it: Arc::default() }
    }

    /// Does the work, unless a request of the same id has done it.
    pub(crate) async fn once<M: Message + Default>(
        &self,
        asked: Asked,
        work: impl Future<Output = Result<M, Status>>,
    ) -> Result<Answered<M>, Status> {
        if asked.request_id.is_empty() {
            return Ok(Answered { message: work.await?, is_repeated: false });
        }
        loop {
            match self.enter(&asked).map_err(status_of)? {
                Entered::Done(bytes) => {
                    let broken = |e| status_of(Problem::internal("read a former answer", e));
                    let message = M::decode(&bytes[..]).map_err(broken)?;
                    return Ok(Answered { message, is_repeated: true });
                }
                // Done or given up: the next look says which.
                Entered::Wait(mut gone) => while gone.changed().await.is_ok() {},
                Entered::New(at_it) => {
                    let message = work.await?;
                    at_it.finish(&message).map_err(status_of)?;
                    return Ok(Answered { message, is_repeated: false });
                }
            }
        }
    }

    fn enter(&self, asked: &Asked) -> Outcome<Entered> {
        let Asked { account, request_id, method, content } = asked;
        let mut at_it = self.at_it.lock();
        let key = (account.clone(), request_id.clone());
        match self.store.begin_request(account, request_id, method, content)? {
            Begin::Done(answer) => Ok(Entered::Done(answer)),
            Begin::InProgress => match at_it.get(&key) {
                Some(gone) => Ok(Entered::Wait(gone.clone())),
                None => Err(Problem::internal("find who is at it", "nobody is")),
            },
            Begin::New => {
                let (tell, gone) = watch::channel(());
                at_it.insert(key.clone(), gone);
                let repeats = self.clone();
                Ok(Entered::New(AtIt { repeats, key, finished: false, _tell: tell }))
            }
        }
    }
}

impl AtIt {
    fn finish(mut self, message: &impl Message) -> Outcome<()> {
        let (account, request_id) = &self.key;
        let answer = message.encode_to_vec();
        self.repeats.store.finish_request(account, request_id, &answer)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for AtIt {
    fn drop(&mut self) {
        let mut at_it = self.repeats.at_it.lock();
        let (account, request_id) = &self.key;
        if !self.finished
            && let Err(problem) = self.repeats.store.abandon_request(account, request_id)
        {
            tracing::warn!(%problem, "a request that came to nothing stays on record");
        }
        at_it.remove(&self.key);
    }
}

/// Work that goes on if its caller leaves: half a sandbox is of no use to anybody, and the caller
/// may come back with the same request id.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::spawn(work).await;
    done.map_err(|e| status_of(Problem::internal("finish", e)))?
}

/// Tells requests apart. By their JSON with sorted keys: maps are encoded in no fixed order.
pub(crate) fn content(request: &impl Serialize) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    if let Ok(value) = serde_json::to_value(request) {
        add(&mut hasher, &value);
    }
    hasher.finalize().as_bytes().to_vec()
}

fn add(hasher: &mut blake3::Hasher, value: &serde_json::Value) {
    use serde_json::Value;
    let mut text = |kind: u8, text: &str| {
        hasher.update(&[kind]).update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    };
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text(b'o', &fields.len().to_string());
            for (name, value) in fields {
                hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
                add(hasher, value);
            }
        }
        Value::Array(items) => {
            text(b'a', &items.len().to_string());
            items.iter().for_each(|item| add(hasher, item));
        }
        Value::String(string) => text(b's', string),
        other => text(b'v', &other.to_string()),
    }
}

#[cfg(test)]
mod tests;
