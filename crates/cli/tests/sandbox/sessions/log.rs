//! The log of a session.

use ringfence_link::client::Event;
use ringfence_link::warden::{Reply, Request};

use crate::support::eventually;

use super::Session;

/// The log from an offset on, and the offset it begins at.
pub(crate) fn read(s: &Session, from: u64) -> (String, u64) {
    let request = Request::SessionLog { which: s.id.clone(), from, follow: false };
    let (mut bytes, mut begin, mut moved) = (Vec::new(), None, false);
    let call = s.sandbox.client.call(request).unwrap();
    let end = call.finish(|event| match event {
        Event::Output(more) | Event::Error(more) => bytes.extend(more),
        Event::Reply(Reply::Log { from }, _) => {
            moved = begin.is_some();
            begin = begin.or(Some(*from));
        }
        other => panic!("{other:?}"),
    });
    let Reply::LogEnd { next, .. } = end.unwrap() else { panic!() };
    let begin = begin.unwrap();
    // One that is written to meanwhile may have moved on.
    assert!(moved || next == begin + bytes.len() as u64);
    (String::from_utf8_lossy(&bytes).into_owned(), begin)
}

in_every_shell! {
    fn it_is_empty_at_first_and_after_ordinary_commands(s) {
        assert_eq!(read(s, 0), (String::new(), 0));
        s.ok("echo a; cd /tmp");
        s.run("echo b >&2; false; nosuch; echo )");
        assert_eq!(read(s, 0), (String::new(), 0));
    }

    fn it_is_read_from_any_offset(s) {
        let wait = s.gate("gate");
        s.ok(&format!("({wait}; printf 0123456789) &"));
        s.open_gate("gate");
        eventually("it is there", || read(s, 0).0.len() == 10);
        assert_eq!(read(s, 7), ("789".into(), 7));
        assert_eq!(read(s, 99), (String::new(), 10));
    }

    fn it_is_followed_until_the_session_is_closed(s) {
        let wait = s.gate("gate");
        let request = Request::SessionLog { which: s.id.clone(), from: 0, follow: true };
        let call = s.sandbox.client.call(request).unwrap();
        assert!(matches!(call.next().unwrap(), Event::Reply(Reply::Log { from: 0 }, _)));
        s.ok(&format!("({wait}; echo one) &"));
        s.open_gate("gate");
        assert_eq!(crate::sessions::until(&call, "one\n"), "one\n");
        let wait = s.gate("second");
        // Shells say here that the first is done, if they have noticed.
        assert_eq!(s.run(format!("({wait}; echo two) &")).code(), 0);
        s.open_gate("second");
        assert_eq!(crate::sessions::until(&call, "two\n"), "two\n");
        crate::sessions::close(&s.sandbox, &s.id).unwrap();
        let Reply::LogEnd { next, .. } = call.finish(|_| {}).unwrap() else { panic!() };
        assert_eq!(next, 8);
    }
}
