//! Ending a command before its time: the command goes, the shell stays.
//!
//! The shell is taken out of the command's group and interrupted; what is left in the group is
//! asked to end and then made to. A shell that does not come back after that is ended too.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::run::Running;
use crate::tree::{SIGKILL, SIGTERM};

/// Between asking to end and ending.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked at whether that is still needed.
const LOOK: Duration = Duration::from_millis(20);
/// How long the shell may take to come back, each time it is asked to.
const COME_BACK: Duration = Duration::from_secs(2);
const SIGCONT: i32 = 18;

/// How far it has got.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    NotBegun,
    Asked {
        until: Instant,
    },
    Forced,
    InterruptedAgain,
    AskedAgain,
    GivenUp,
}

#[derive(Debug, Default)]
pub(super) struct Early {
    stage: Stage,
    /// When there is something to do next.
    pub(super) at: Option<Instant>,
    pub(super) timed_out: bool,
    pub(super) cancelled: bool,
    foreground: i32,
}

impl Early {
    pub(super) fn begun(&self) -> bool {
        self.stage != Stage::NotBegun
    }
}

impl Running<'_> {
    pub(super) fn cancel(&mut self) {
        if !self.early.begun() {
            self.early.cancelled = true;
            self.ask();
        }
    }

    /// The time for the next step has come.
    pub(super) fn advance(&mut self) {
        let now = Instant::now();
        match self.early.stage {
            Stage::NotBegun => {
                self.early.timed_out = true;
                self.ask();
            }
            Stage::Asked { until } if now < until && self.something_is_left() => {
                self.early.at = Some((now + LOOK).min(until));
            }
            Stage::Asked { .. } => self.force(),
            Stage::Forced => self.interrupt_again(),
            Stage::InterruptedAgain if self.shell.has_read_all() => self.ask_again(),
            Stage::InterruptedAgain | Stage::AskedAgain => self.give_up(),
            Stage::GivenUp => self.early.at = None,
        }
    }

    fn ask(&mut self) {
        self.shell.groups.move_out(self.number);
        self.early.foreground = self.shell.foreground();
        // An interrupt is the only way out of a loop of builtins; a stopped shell has to go on.
        self.shell.signal(Signal::INT);
        self.shell.signal(Signal::CONT);
        for signal in [SIGTERM, SIGCONT] {
            self.shell.groups.signal_left(signal);
            self.shell.groups.signal_foreground(signal, self.early.foreground);
        }
        let now = Instant::now();
        self.enter(Stage::Asked { until: now + GRACE }, LOOK);
    }

    fn something_is_left(&self) -> bool {
        let foreground = self.early.foreground;
        let stays = self.shell.groups.is_foreign(foreground);
        !self.shell.groups.left_is_empty() || (stays && self.shell.foreground() == foreground)
    }

    fn force(&mut self) {
        self.shell.groups.kill_left();
        if self.shell.foreground() == self.early.foreground {
            self.shell.groups.signal_foreground(SIGKILL, self.early.foreground);
        }
        self.enter(Stage::Forced, COME_BACK);
    }

    /// The first interrupt may have been eaten by a wait for the child.
    fn interrupt_again(&mut self) {
        self.shell.signal(Signal::INT);
        self.shell.groups.signal_foreground(SIGKILL, self.shell.foreground());
        self.enter(Stage::InterruptedAgain, COME_BACK);
    }

    /// The interrupt may have thrown away the line that asks for the status.
    fn ask_again(&mut self) {
        self.shell.ask_status(self.visited);
        self.enter(Stage::AskedAgain, COME_BACK);
    }

    fn give_up(&mut self) {
        let text = "the shell did not come back from the command and was ended";
        self.reason.get_or_insert_with(|| text.into());
        self.shell.kill();
        self.enter(Stage::GivenUp, COME_BACK);
    }

    fn enter(&mut self, stage: Stage, time: Duration) {
        self.early.stage = stage;
        self.early.at = Some(Instant::now() + time);
    }
}
