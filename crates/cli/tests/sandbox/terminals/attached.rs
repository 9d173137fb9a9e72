//! Someone who watches a terminal and types on it.

use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use ringfence_link::client::{ClientError, Event, Ongoing};
use ringfence_link::warden::{Control, ProcessStatus, Reply};

use super::PROMPT;
use crate::support::PATIENCE;

pub(super) struct Attached {
    pub(super) id: String,
    pub(super) call: Ongoing,
    events: Receiver<Result<Event, ClientError>>,
    /// What was shown and not looked for yet.
    pub(super) shown: Vec<u8>,
    /// How much had been shown when it got live.
    replayed: Option<usize>,
    end: Option<Result<ProcessStatus, ClientError>>,
}

impl Attached {
    pub(super) fn new(call: Ongoing) -> Self {
        let id = match call.next().unwrap() {
            Event::Reply(Reply::Terminal(info), _) if info.attached => info.id,
            other => panic!("{other:?}"),
        };
        let (sender, events) = channel();
        let reader = call.try_clone().unwrap();
        std::thread::spawn(move || {
            loop {
                let event = reader.next();
                let over = event.is_err();
                if sender.send(event).is_err() || over {
                    return;
                }
            }
        });
        Self { id, call, events, shown: Vec::new(), replayed: None, end: None }
    }

    /// Takes one thing that happens; whether there was one before the deadline.
    fn step(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(left) {
            Ok(Ok(Event::Output(bytes))) => self.shown.extend(bytes),
            Ok(Ok(Event::Reply(Reply::Live, _))) => self.replayed = Some(self.shown.len()),
            Ok(Ok(Event::Reply(Reply::Log { .. }, _))) => {}
            Ok(Ok(Event::Reply(Reply::LogEnd { status, .. }, _))) => {
                self.end = Some(Ok(status.unwrap()));
            }
            Ok(Ok(other)) => panic!("{other:?}"),
            Ok(Err(_)) if self.end.is_some() => {}
            Ok(Err(error)) => self.end = Some(Err(error)),
            Err(_) => return false,
        }
        true
    }

    pub(super) fn type_in(&self, text: &str) {
        self.call.input(text.as_bytes()).unwrap();
    }

    pub(super) fn control(&self, control: Control) {
        self.call.control(control).unwrap();
    }

    /// Waits until a text is shown, and takes everything up to it.
    pub(super) fn expect(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.shown.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = found {
                let taken: Vec<u8> = self.shown.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            assert!(self.end.is_none(), "no {text:?} before the end: {shown:?} {:?}", self.end);
            assert!(self.step(deadline), "no {text:?} in a minute: {shown:?}");
        }
    }

    /// Runs a line at the prompt of [`bash`](super::bash), and returns what it showed.
    pub(super) fn run(&mut self, line: &str) -> String {
        self.type_in(&format!("{line}\n"));
        self.expect("\n");
        let shown = self.expect(PROMPT);
        let shown = shown.strip_suffix(PROMPT).unwrap().replace('\r', "");
        // What the shell says to turn pasting by brackets on and off.
        shown.replace("\x1b[?2004l", "").replace("\x1b[?2004h", "")
    }

    /// Takes everything that was shown before it got live.
    pub(super) fn live(&mut self) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        while self.replayed.is_none() {
            assert!(self.step(deadline) && self.end.is_none(), "it does not get live");
        }
        self.shown.drain(..self.replayed.take().unwrap()).collect()
    }

    pub(super) fn ended(&mut self) -> Result<ProcessStatus, ClientError> {
        let deadline = Instant::now() + PATIENCE;
        while self.end.is_none() {
            assert!(self.step(deadline), "no end: {:?}", String::from_utf8_lossy(&self.shown));
        }
        self.end.take().unwrap()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.call.hang_up();
    }
}
