//! What a call is part of, in the words of whoever made it (W3C Trace Context), for the record.
//!
//! A call is answered on a thread of its own and a session's commands on the session's, so the thread
//! knows it.

use std::cell::RefCell;

/// As long as the standard's own; anything else is not one.
const LONGEST: usize = 64;

thread_local! {
    static TRACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on this thread works for that.
pub(crate) fn set(trace: Option<String>) {
    TRACE.set(trace.filter(|trace| trace.len() <= LONGEST));
}

pub(crate) fn current() -> Option<String> {
    TRACE.with_borrow(Clone::clone)
}
